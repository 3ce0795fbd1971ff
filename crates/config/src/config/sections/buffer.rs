//! `buffer:` of the configuration, and the check that all guarantees to classes and ports fit the buffer.

use std::str::FromStr;

use super::draft::{Class, ClassSettings, Common, Port};
use super::maps::Maps;
use super::policy::{self, Policy};
use super::ports;
use super::queue_policy;
use crate::config::checks::bounds;
use crate::config::checks::levers::Levers;
use crate::config::keys::Key;
use crate::config::model::DeviceKind;
use crate::config::overrides::Overrides;
use crate::config::yaml::read::Item;
use crate::headroom::{SmallPackets, headroom, largest_frame};
use crate::mmu::{AbmSpec, BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, Threshold};
use crate::plan::spec::MAX_CELLS;
use crate::sets::CLASSES;
use crate::units::{Bytes, Cells};

pub const KEYS: &[Key] = &[
    Key::new("size", "`12MiB`", "`64KiB` to `32GiB`", "whole buffer"),
    Key::new("cell", "`208B`", "`64B` to `16KiB`", "frames take whole cells; fewer than 2^28 cells"),
    Key::new(
        "headroom",
        "`independent`",
        "`independent`, `shared-pool`, `dynamic`, or `{policy: ..., ratio: ..., size: ...}`",
        "memory for frames after XOFF, by [policy](headroom.md#policies); `--headroom` overrides it",
    ),
    Key::new(
        "small_packets",
        "`100%`",
        "`0%` to `100%`, whole",
        "share of [small packets](headroom.md#what-the-seed-leaves-out) that headroom covers (SONiC's \
         `small_packet_percentage`)",
    ),
    Key::new("lossy", "`1/4`", "size, or share of what reserves and headroom leave", "lossy pool"),
    Key::new("shared", "`auto`", "size, `auto`", "lossless pool; `auto`: the rest"),
    Key::new("port_reserve", "none", "`{lossless: 20kB, lossy: 10kB}`", "default `reserve` of ports, by key"),
    Key::new(
        "queue_policy",
        "`dt`",
        "`dt`, `abm`, or `{policy: abm, interval: 25us, congested: 20KiB}`",
        "[limits](#queue_policy) of lossy queues",
    ),
];

const DEFAULT_SIZE: Bytes = Bytes(12 << 20);
/// Bounds of `buffer.size`.
pub const SMALLEST_SIZE: Bytes = Bytes(64 << 10);
/// See [`SMALLEST_SIZE`].
pub const LARGEST_SIZE: Bytes = Bytes(32 << 30);
const DEFAULT_CELL: Bytes = Bytes(208);

/// Default size of the lossy pool, as a share of the memory that reserves and headroom leave.
const DEFAULT_LOSSY: Amount = Amount::Share { numerator: 1, denominator: 4 };

/// A size, or a share of the available memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    Size(Bytes),
    Share { numerator: u64, denominator: u64 },
}

impl FromStr for Amount {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let share = text.split_once('/').or_else(|| text.strip_suffix('%').map(|percent| (percent, "100")));
        let amount = match share {
            Some((numerator, denominator)) => match (numerator.trim().parse(), denominator.trim().parse()) {
                (Ok(numerator), Ok(denominator)) if denominator > 0 && numerator <= denominator => {
                    Some(Amount::Share { numerator, denominator })
                }
                _ => None,
            },
            None => text.parse().ok().map(Amount::Size),
        };
        amount.ok_or_else(|| format!("`{text}` is neither a size nor a share; write e.g. 3MiB, 1/4 or 25%"))
    }
}

impl Amount {
    fn cells(self, of: Cells, cell: Bytes) -> Cells {
        match self {
            Amount::Size(size) => size.to_cells_ceil(cell),
            Amount::Share { numerator, denominator } => {
                let cells = u128::from(of.0) * u128::from(numerator) / u128::from(denominator);
                Cells(u32::try_from(cells).unwrap_or(of.0))
            }
        }
    }
}

/// `buffer:` as written.
pub struct Buffer<'a> {
    /// The item at which errors about the whole buffer are reported: the key `buffer`, even if it is absent.
    item: Item<'a>,
    size: Bytes,
    cell: Bytes,
    lossy: Amount,
    lossy_item: Option<Item<'a>>,
    shared: Option<Bytes>,
    shared_item: Option<Item<'a>>,
    pub policy: Policy<'a>,
    /// The share of small packets in the peers' traffic that headroom allows for.
    pub small_packets: SmallPackets,
    /// For ports without a reserve of their own; indexed by `lossless as usize`.
    port_reserve: [Option<Bytes>; 2],
    pub queue_policy: Option<(Item<'a>, AbmSpec)>,
}

/// The division of the buffer.
pub struct Plan {
    pub buffer: BufferPlan,
    pub ports: Vec<PortProfile>,
    pub queue_reserves: [Cells; CLASSES],
    /// Headroom that would be saved if there were no small packets; `None` if headroom is given and no share changes
    /// it.
    pub small_packets_cost: Option<Bytes>,
}

/// Reads `buffer:`; without it, errors are reported at `root`. `overrides` take precedence over the file.
pub fn read<'a>(item: Option<Item<'a>>, root: &Item<'a>, overrides: &Overrides) -> Buffer<'a> {
    let fields = item.as_ref().and_then(|item| item.fields(KEYS));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let size = get("size").and_then(|item| read_size(&item));
    let cell = get("cell").and_then(|item| item.read(bounds::cell));
    let (lossy_item, shared_item) = (get("lossy"), get("shared"));
    let (size, cell) = (overrides.buffer.or(size).unwrap_or(DEFAULT_SIZE), cell.unwrap_or(DEFAULT_CELL));
    if size.to_cells_floor(cell).0 >= MAX_CELLS {
        let least = Bytes((size.0 / u64::from(MAX_CELLS) + 1).next_multiple_of(64));
        get("cell").as_ref().unwrap_or(root).refuse::<()>(format!(
            "{size} in cells of {cell} is more than the {} cells that a queue can count; write `cell: {least}` or \
             more, or a smaller `size`",
            MAX_CELLS - 1
        ));
    }
    Buffer {
        size,
        cell,
        lossy: lossy_item.as_ref().and_then(Item::parse).unwrap_or(DEFAULT_LOSSY),
        shared: shared_item.as_ref().filter(|item| !item.is("auto")).and_then(Item::parse),
        policy: policy::read(get("headroom"), overrides.headroom),
        small_packets: get("small_packets").and_then(|item| item.parse()).unwrap_or_default(),
        port_reserve: get("port_reserve").map(|item| ports::read_reserve(&item)).unwrap_or_default(),
        queue_policy: queue_policy::read(get("queue_policy")),
        item: item.unwrap_or_else(|| root.child("buffer")),
        lossy_item,
        shared_item,
    }
}

fn read_size(item: &Item<'_>) -> Option<Bytes> {
    item.read(|text| bounds::size(text, SMALLEST_SIZE..=LARGEST_SIZE))
}

/// Divides the buffer; returns `None`, and reports errors, if it cannot be divided.
pub fn plan(
    buffer: &Buffer<'_>,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
    maps: &Maps<'_>,
    common: &Common,
) -> Option<Plan> {
    let [used_groups, used_queues] = maps.used();
    // A group without a class holds no frames and has no guarantee.
    let unused = ClassSettings::lossy();
    let settings = |group: usize| if used_groups.contains(group) { &classes[group].settings } else { &unused };
    let profiles: Vec<PortProfile> = ports
        .iter()
        .map(|port| {
            let groups = std::array::from_fn(|index| group(settings(index), port, common));
            profile(groups, port, buffer)
        })
        .collect();
    for (class, settings) in classes.iter().enumerate() {
        check_headroom(class, settings, ports, common);
    }
    let etas = etas(&profiles);
    let headroom = buffer.policy.sum(&etas, buffer.cell);
    if headroom > 0 {
        buffer.policy.check(&etas, ports, buffer.cell, &buffer.item)?;
    }
    let groups = (0..CLASSES).map(settings).filter(|settings| settings.lossless).collect();
    let levers = Levers { buffer, ports, groups, common: *common };
    let divided = divide(buffer, reserves(&profiles), headroom, &levers)?;
    let queue_reserves = std::array::from_fn(|queue| {
        let settings = &classes[queue].settings;
        let counts = used_queues.contains(queue) && !settings.lossless;
        if counts { settings.queue_reserve.to_cells_ceil(buffer.cell) } else { Cells(0) }
    });
    for class in used_groups.iter() {
        warn_of_small_offset(class, &classes[class], ports, buffer);
    }
    let small_packets_cost = levers.cost_of_small_packets();
    let plan = Plan { buffer: divided, ports: profiles, queue_reserves, small_packets_cost };
    let checks = [
        check_pools(&plan, buffer, ports, &levers),
        check_queue_reserves(&plan, ports, classes),
        check_dynamic(&plan, buffer, ports, classes),
    ];
    checks.into_iter().collect::<Option<Vec<()>>>().map(|_| plan)
}

fn profile(groups: [GroupProfile; CLASSES], port: &Port<'_>, buffer: &Buffer<'_>) -> PortProfile {
    let policy = buffer.policy.policy;
    if port.device.kind == DeviceKind::Absent {
        let groups = groups.map(|group| GroupProfile { reserve: Cells(0), headroom: Cells(0), ..group });
        return PortProfile { groups, reserve: [Cells(0); 2], policy, insurance: Cells(0) };
    }
    let etas: Vec<Cells> = groups.iter().map(|group| group.headroom).collect();
    PortProfile {
        groups,
        reserve: std::array::from_fn(|kind| {
            let bytes = port.reserve[kind].or(buffer.port_reserve[kind]).unwrap_or(Bytes(0));
            bytes.to_cells_ceil(buffer.cell)
        }),
        policy,
        insurance: if policy == HeadroomPolicy::Dynamic { policy::insurance(&etas) } else { Cells(0) },
    }
}

/// Headroom (eta) of each lossless group, port by port.
fn etas(profiles: &[PortProfile]) -> Vec<Vec<Cells>> {
    let of_port = |profile: &PortProfile| {
        profile.groups.iter().filter(|group| group.lossless).map(|group| group.headroom).collect()
    };
    profiles.iter().map(of_port).collect()
}

/// The sum of the reserves of all groups and ports, in cells.
pub fn reserves(profiles: &[PortProfile]) -> u64 {
    let of_port = |profile: &PortProfile| {
        let groups = profile.groups.iter().map(|group| group.reserve);
        groups.chain(profile.reserve).map(|cells| u64::from(cells.0)).sum::<u64>()
    };
    profiles.iter().map(of_port).sum()
}

fn group(class: &ClassSettings, port: &Port<'_>, common: &Common) -> GroupProfile {
    let cell = common.cell;
    GroupProfile {
        lossless: class.lossless,
        reserve: class.reserve.cells(port.mtu, cell),
        threshold: class.limit.threshold(cell),
        xon_offset: class.xon_offset.cells(port.mtu, cell),
        xon_floor: class.xon_floor.cells(port.mtu, cell),
        headroom: if class.lossless { eta(class, port, common) } else { Cells(0) },
    }
}

/// The headroom of a lossless class at a port: the configured value, or the formula's.
pub fn eta(class: &ClassSettings, port: &Port<'_>, common: &Common) -> Cells {
    let given = class.headroom.map(|bytes| bytes.to_cells_ceil(common.cell));
    given.unwrap_or_else(|| needed_headroom(port, common))
}

fn needed_headroom(port: &Port<'_>, common: &Common) -> Cells {
    headroom(&port.headroom_input(common)).cells
}

/// Warns of an XON offset below one frame with a shared headroom pool. When that pool is empty, a group may be paused
/// without cells in headroom. Only the XON offset then delays its XON.
fn warn_of_small_offset(class: usize, settings: &Class<'_>, ports: &[Port<'_>], buffer: &Buffer<'_>) {
    let Class { settings, item: Some(item) } = settings else { return };
    let Some(largest) = ports.iter().filter(|port| port.pfc.is_on()).max_by_key(|port| port.mtu) else { return };
    let frame = largest_frame(largest.mtu).to_cells_ceil(buffer.cell);
    let offset = settings.xon_offset.cells(largest.mtu, buffer.cell);
    if buffer.policy.policy != HeadroomPolicy::SharedPool || !settings.lossless || offset >= frame {
        return;
    }
    let (name, mtu) = (&largest.name, largest.mtu);
    item.child("xon_offset").warn(format!(
        "{} is less than one frame of port {name} (mtu {mtu}: {}): when the shared headroom pool is empty, class \
         {class} pauses and resumes for single frames, and loses more of them; write `xon_offset: {}B` or more",
        settings.xon_offset.cells(largest.mtu, buffer.cell).to_bytes(buffer.cell),
        frame.to_bytes(buffer.cell),
        10 * frame.to_bytes(buffer.cell).0
    ));
}

/// Refuses a configured headroom below one frame, and warns of one below the formula's result.
fn check_headroom(class: usize, settings: &Class<'_>, ports: &[Port<'_>], common: &Common) {
    let (Some(given), Some(item)) = (settings.settings.headroom, &settings.item) else { return };
    let Some(largest) = ports.iter().max_by_key(|port| port.mtu) else { return };
    let item = item.child("headroom");
    let frame = largest_frame(largest.mtu);
    if given < frame {
        let (name, mtu) = (&largest.name, largest.mtu);
        item.fail(format!(
            "`{}` is less than one frame of port {name} (mtu {mtu}: {} B); write `auto` or at least {}B",
            item.shown(),
            frame.0,
            frame.0
        ));
        return;
    }
    let needs = |port: &&Port<'_>| needed_headroom(port, common).to_bytes(common.cell);
    if let Some(port) = ports.iter().filter(|port| port.pfc.is_on()).max_by_key(needs)
        && needs(&port) > given
    {
        item.warn(format!(
            "`{}` is below the {} that port {} needs ({}, cable {}, mtu {}, poll gap {}): class {class} may lose \
             frames there; write `auto`",
            item.shown(),
            needs(&port),
            port.name,
            port.rate,
            port.device.cable,
            port.mtu,
            common.poll_gap
        ));
    }
}

impl Buffer<'_> {
    /// Sizes of the lossy and the lossless pool after reserves and headroom; `None` if too little remains for them.
    pub fn pools(&self, reserves: u64, headroom: u64) -> Option<(Cells, Cells)> {
        let left = self.left(reserves, headroom)?;
        let (lossy, shared) = self.wanted_pools(left);
        (u64::from(lossy.0) + u64::from(shared.0) <= u64::from(left.0)).then_some((lossy, shared))
    }

    fn left(&self, reserves: u64, headroom: u64) -> Option<Cells> {
        let total = u64::from(self.size.to_cells_floor(self.cell).0);
        let left = total.checked_sub(reserves.checked_add(headroom)?)?;
        Some(Cells(u32::try_from(left).unwrap_or(u32::MAX)))
    }

    fn wanted_pools(&self, left: Cells) -> (Cells, Cells) {
        let lossy = self.lossy.cells(left, self.cell);
        let rest = Cells(left.0.saturating_sub(lossy.0));
        (lossy, self.shared.map_or(rest, |shared| shared.to_cells_ceil(self.cell)))
    }

    pub fn cell(&self) -> Bytes {
        self.cell
    }

    /// The item at which errors about the whole buffer are reported.
    pub fn item(&self) -> &Item<'_> {
        &self.item
    }
}

/// Splits the memory that reserves and headroom leave into the two pools.
fn divide(buffer: &Buffer<'_>, reserves: u64, headroom: u64, levers: &Levers<'_>) -> Option<BufferPlan> {
    let cell = buffer.cell;
    let total = buffer.size.to_cells_floor(cell);
    let promised = Sum { cell, parts: vec![("reserves", reserves), ("headroom", headroom)] };
    let Some(left) = buffer.left(reserves, headroom) else {
        return buffer.item.refuse(promised.does_not_fit(total, buffer.size) + &levers.change_first());
    };
    let (lossy, shared) = buffer.wanted_pools(left);
    if buffer.pools(reserves, headroom).is_none() {
        let mut parts = promised.parts;
        parts.extend([("lossy", u64::from(lossy.0)), ("shared", u64::from(shared.0))]);
        let culprit = buffer.shared_item.as_ref().or(buffer.lossy_item.as_ref()).unwrap_or(&buffer.item);
        return culprit.refuse(Sum { cell, parts }.does_not_fit(total, buffer.size) + &levers.change_first());
    }
    Some(BufferPlan {
        cell,
        total,
        reserves: Cells(u32::try_from(reserves).ok()?),
        headroom: Cells(u32::try_from(headroom).ok()?),
        policy: buffer.policy.policy,
        lossless_shared: shared,
        lossy_shared: lossy,
    })
}

/// Parts of the buffer that are guaranteed.
struct Sum {
    cell: Bytes,
    parts: Vec<(&'static str, u64)>,
}

impl Sum {
    fn total(&self) -> u64 {
        self.parts.iter().map(|(_, cells)| cells).fold(0, |sum, cells| sum.saturating_add(*cells))
    }

    fn bytes(&self, cells: u64) -> Bytes {
        Bytes(cells.saturating_mul(self.cell.0))
    }

    /// Returns a message with the sums, the amount by which they exceed the buffer, and a remedy.
    fn does_not_fit(&self, total: Cells, size: Bytes) -> String {
        let parts = self.parts.iter().filter(|(_, cells)| *cells > 0);
        let parts: Vec<String> = parts.map(|(name, cells)| format!("{name} {}", self.bytes(*cells))).collect();
        let missing = self.total().saturating_sub(u64::from(total.0));
        let needed = Bytes(self.bytes(self.total()).0.div_ceil(1 << 10) << 10);
        format!(
            "{} exceed the buffer of {size} by {} ({missing} cells of {} B); write `size: {}KiB` or more, or reduce \
             them",
            parts.join(" + "),
            self.bytes(missing),
            self.cell.0,
            needed.0 >> 10
        )
    }
}

/// Refuses a pool in use that is smaller than one frame of the largest MTU.
fn check_pools(plan: &Plan, buffer: &Buffer<'_>, ports: &[Port<'_>], levers: &Levers<'_>) -> Option<()> {
    let mtu = ports.iter().map(|port| port.mtu).max().unwrap_or(0);
    let cell = plan.buffer.cell;
    let frame = largest_frame(mtu).to_cells_ceil(cell);
    let uses = |lossless| plan.ports.iter().flat_map(|port| &port.groups).any(|group| group.lossless == lossless);
    let pools = [
        ("lossless", plan.buffer.lossless_shared, uses(true), &buffer.shared_item),
        ("lossy", plan.buffer.lossy_shared, uses(false), &buffer.lossy_item),
    ];
    let mut fits = Some(());
    for (name, size, used, item) in pools {
        if used && size < frame {
            let item = item.as_ref().unwrap_or(&buffer.item);
            fits = item.refuse(format!(
                "the {name} pool has {}, less than one frame ({}); enlarge the buffer, or reduce reserves and \
                 headroom{}",
                size.to_bytes(cell),
                frame.to_bytes(cell),
                levers.change_first()
            ));
        }
    }
    fits
}

/// Refuses reserves of queues that exceed the lossy pool, which they are part of.
fn check_queue_reserves(plan: &Plan, ports: &[Port<'_>], classes: &[Class<'_>; CLASSES]) -> Option<()> {
    let cell = plan.buffer.cell;
    let of_port: u64 = plan.queue_reserves.iter().map(|reserve| u64::from(reserve.0)).sum();
    let all = of_port.saturating_mul(ports.len() as u64);
    let lossy = plan.buffer.lossy_shared;
    if all <= u64::from(lossy.0) {
        return Some(());
    }
    // The largest reserve is the likeliest mistake.
    let class = (0..CLASSES).max_by_key(|&class| plan.queue_reserves[class])?;
    classes[class].item.as_ref()?.child("queue_reserve").refuse(format!(
        "queue reserves of {} at each of {} ports add up to {}, more than the {} of the lossy pool that holds them; \
         write less, or enlarge `buffer.lossy`",
        Bytes(of_port.saturating_mul(cell.0)),
        ports.len(),
        Bytes(all.saturating_mul(cell.0)),
        lossy.to_bytes(cell)
    ))
}

/// Refuses a class that could never be XON under dynamic headroom. Such a group is paused one eta before its limit, so
/// its limit with an empty buffer must be at least eta and one frame.
fn check_dynamic(plan: &Plan, buffer: &Buffer<'_>, ports: &[Port<'_>], classes: &[Class<'_>; CLASSES]) -> Option<()> {
    if plan.buffer.policy != HeadroomPolicy::Dynamic {
        return Some(());
    }
    let (cell, free) = (plan.buffer.cell, plan.buffer.lossless_shared);
    let mut fits = Some(());
    for (class, settings) in classes.iter().enumerate() {
        let groups = plan.ports.iter().map(|port| &port.groups[class]).zip(ports).filter(|(group, _)| group.lossless);
        let Some((group, port)) = groups.max_by_key(|(group, _)| group.headroom) else { continue };
        let least = group.headroom.0.saturating_add(largest_frame(port.mtu).to_cells_ceil(cell).0);
        let limit = group.threshold.limit(free);
        if limit.0 >= least {
            continue;
        }
        let raise = match group.threshold {
            Threshold::Dynamic(_) => "alpha",
            Threshold::Static(_) => "limit",
        };
        fits = settings.item.as_ref().unwrap_or(&buffer.item).refuse(format!(
            "with dynamic headroom class {class} goes XOFF {} below its limit at port {}, and the limit is {} with an \
             empty buffer: the first frame would cause XOFF; raise `{raise}`, enlarge the buffer, or write `headroom: \
             shared-pool`",
            group.headroom.to_bytes(cell),
            port.name,
            limit.to_bytes(cell)
        ));
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_is_parsed_as_fraction_percentage_or_size() {
        let cell = Bytes(208);
        assert_eq!("1/4".parse::<Amount>().unwrap().cells(Cells(1001), cell), Cells(250));
        assert_eq!("25%".parse::<Amount>().unwrap().cells(Cells(1000), cell), Cells(250));
        assert_eq!("2080".parse::<Amount>().unwrap().cells(Cells(1000), cell), Cells(10));
        for wrong in ["5/4", "1/0", "-1/4", "101%", "x"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }
}
