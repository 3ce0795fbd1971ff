//! `buffer:`, and the proof that what classes and ports are promised fits it.

use std::str::FromStr;

use super::classes::Class;
use super::ports::Port;
use super::preset::{ClassSettings, Limit};
use super::read::Item;
use crate::mmu::headroom::{HeadroomInput, headroom, largest_frame};
use crate::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, Threshold};
use crate::qos::CLASSES;
use crate::units::{Bytes, Cells, Nanos};

const DEFAULT_SIZE: Bytes = Bytes(12 << 20);
const LARGEST_SIZE: Bytes = Bytes(64 << 30);
const DEFAULT_CELL: Bytes = Bytes(208);
const SMALLEST_CELL: Bytes = Bytes(64);
const LARGEST_CELL: Bytes = Bytes(16 << 10);

/// The lossy pool's part of what reserves and headroom leave.
const DEFAULT_LOSSY: Amount = Amount::Share { numerator: 1, denominator: 4 };

/// A size, or a share of what there is.
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
    /// To complain of the whole: the key, or the file where it is absent.
    item: Item<'a>,
    size: Bytes,
    cell: Bytes,
    lossy: Amount,
    lossy_item: Option<Item<'a>>,
    shared: Option<Bytes>,
    shared_item: Option<Item<'a>>,
}

/// Reads `buffer:`; `root` stands for it where it is absent.
pub fn read<'a>(item: Option<Item<'a>>, root: &Item<'a>) -> Buffer<'a> {
    let fields = item.as_ref().and_then(|item| item.fields(&["size", "cell", "lossy", "shared"]));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let size = get("size").and_then(|item| read_size(&item, Bytes(64 << 10), LARGEST_SIZE));
    let cell = get("cell").and_then(|item| read_size(&item, SMALLEST_CELL, LARGEST_CELL));
    let (lossy_item, shared_item) = (get("lossy"), get("shared"));
    Buffer {
        size: size.unwrap_or(DEFAULT_SIZE),
        cell: cell.unwrap_or(DEFAULT_CELL),
        lossy: lossy_item.as_ref().and_then(Item::parse).unwrap_or(DEFAULT_LOSSY),
        shared: shared_item.as_ref().filter(|item| !item.is("auto")).and_then(Item::parse),
        item: item.unwrap_or_else(|| root.child("buffer")),
        lossy_item,
        shared_item,
    }
}

fn read_size(item: &Item<'_>, least: Bytes, most: Bytes) -> Option<Bytes> {
    let size = item.parse::<Bytes>()?;
    if (least..=most).contains(&size) {
        return Some(size);
    }
    item.refuse(format!("`{}` is out of range; write a size from {least} to {most}", item.shown()))
}

/// Groups of each port, by port and class.
pub type Groups = Vec<[GroupProfile; CLASSES]>;

/// Divides the buffer; `None`, and errors, if it cannot be done.
pub fn plan(
    buffer: &Buffer<'_>,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
    poll_gap: Nanos,
) -> Option<(BufferPlan, Groups)> {
    let groups: Groups = ports
        .iter()
        .map(|port| std::array::from_fn(|class| group(&classes[class].settings, port, buffer.cell, poll_gap)))
        .collect();
    for (class, settings) in classes.iter().enumerate() {
        check_headroom(class, settings, ports, buffer, poll_gap);
    }
    let reserves = sum(&groups, |group| group.reserve);
    let headroom = sum(&groups, |group| group.headroom);
    let plan = divide(buffer, reserves, headroom)?;
    check_pools(&plan, buffer, ports, classes)?;
    Some((plan, groups))
}

fn sum(groups: &Groups, of: impl Fn(&GroupProfile) -> Cells) -> u64 {
    groups.iter().flatten().map(|group| u64::from(of(group).0)).sum()
}

fn group(class: &ClassSettings, port: &Port<'_>, cell: Bytes, poll_gap: Nanos) -> GroupProfile {
    let threshold = match class.limit {
        Limit::Alpha(alpha) => Threshold::Dynamic(alpha),
        Limit::Static(bytes) => Threshold::Static(bytes.to_cells_floor(cell)),
    };
    let given = class.headroom.map(|bytes| bytes.to_cells_ceil(cell));
    let eta = || given.unwrap_or_else(|| needed_headroom(port, cell, poll_gap));
    GroupProfile {
        lossless: class.lossless,
        reserve: class.reserve.cells(port.mtu, cell),
        threshold,
        xon_offset: class.xon_offset.cells(port.mtu, cell),
        xon_floor: class.xon_floor.cells(port.mtu, cell),
        headroom: if class.lossless { eta() } else { Cells(0) },
    }
}

fn needed_headroom(port: &Port<'_>, cell: Bytes, poll_gap: Nanos) -> Cells {
    headroom(&HeadroomInput {
        rate: port.rate,
        cable: port.device.cable,
        mtu: port.mtu,
        poll_gap,
        posted: HeadroomInput::posted_by_pacing(port.rate),
        cell,
        peer_response: None,
    })
    .cells
}

/// A given headroom is refused below one frame, and doubted below what the formula says.
fn check_headroom(class: usize, settings: &Class<'_>, ports: &[Port<'_>], buffer: &Buffer<'_>, poll_gap: Nanos) {
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
    let needs = |port: &&Port<'_>| needed_headroom(port, buffer.cell, poll_gap).to_bytes(buffer.cell);
    if let Some(port) = ports.iter().filter(|port| port.pfc).max_by_key(needs)
        && needs(&port) > given
    {
        item.warn(format!(
            "`{}` is below the {} that port {} needs ({}, cable {}, mtu {}, poll gap {poll_gap}): class {class} may \
             lose there; write `auto`",
            item.shown(),
            needs(&port),
            port.name,
            port.rate,
            port.device.cable,
            port.mtu
        ));
    }
}

/// Splits what reserves and headroom leave into the two pools.
fn divide(buffer: &Buffer<'_>, reserves: u64, headroom: u64) -> Option<BufferPlan> {
    let cell = buffer.cell;
    let total = buffer.size.to_cells_floor(cell);
    let promised = Sum { cell, parts: vec![("reserves", reserves), ("headroom", headroom)] };
    let Some(left) = u64::from(total.0).checked_sub(promised.total()) else {
        return buffer.item.refuse(promised.does_not_fit(total, buffer.size));
    };
    let left = Cells(u32::try_from(left).unwrap_or(u32::MAX));
    let lossy = buffer.lossy.cells(left, cell);
    let shared = match buffer.shared {
        Some(shared) => shared.to_cells_ceil(cell),
        None => Cells(left.0.saturating_sub(lossy.0)),
    };
    if u64::from(lossy.0) + u64::from(shared.0) > u64::from(left.0) {
        let mut parts = promised.parts;
        parts.extend([("lossy", u64::from(lossy.0)), ("shared", u64::from(shared.0))]);
        let culprit = buffer.shared_item.as_ref().or(buffer.lossy_item.as_ref()).unwrap_or(&buffer.item);
        return culprit.refuse(Sum { cell, parts }.does_not_fit(total, buffer.size));
    }
    Some(BufferPlan {
        cell,
        total,
        reserves: Cells(u32::try_from(reserves).ok()?),
        headroom: Cells(u32::try_from(headroom).ok()?),
        policy: HeadroomPolicy::Independent,
        lossless_shared: shared,
        lossy_shared: lossy,
    })
}

/// Parts of the buffer that are promised.
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

    /// Names the sums, what they exceed, by how much, and what would help.
    fn does_not_fit(&self, total: Cells, size: Bytes) -> String {
        let parts = self.parts.iter().filter(|(_, cells)| *cells > 0);
        let parts: Vec<String> = parts.map(|(name, cells)| format!("{name} {}", self.bytes(*cells))).collect();
        let missing = self.total().saturating_sub(u64::from(total.0));
        let needed = Bytes(self.bytes(self.total()).0.div_ceil(1 << 10) << 10);
        format!(
            "{} do not fit the buffer of {size} by {} ({missing} cells of {} B); write `size: {}KiB` or more, or promise \
             less",
            parts.join(" + "),
            self.bytes(missing),
            self.cell.0,
            needed.0 >> 10
        )
    }
}

/// A pool that cannot hold a frame is none; ECN that comes after XOFF is a warning.
fn check_pools(
    plan: &BufferPlan,
    buffer: &Buffer<'_>,
    ports: &[Port<'_>],
    classes: &[Class<'_>; CLASSES],
) -> Option<()> {
    let mtu = ports.iter().map(|port| port.mtu).max().unwrap_or(0);
    let frame = largest_frame(mtu).to_cells_ceil(plan.cell);
    let lossless = classes.iter().filter(|class| class.settings.lossless).count();
    let pools = [
        ("lossless", plan.lossless_shared, lossless > 0, &buffer.shared_item),
        ("lossy", plan.lossy_shared, lossless < CLASSES, &buffer.lossy_item),
    ];
    let mut fits = Some(());
    for (name, size, used, item) in pools {
        if used && size < frame {
            let item = item.as_ref().unwrap_or(&buffer.item);
            fits = item.refuse(format!(
                "the {name} pool has {}, less than one frame ({}); enlarge the buffer or promise less",
                size.to_bytes(plan.cell),
                frame.to_bytes(plan.cell)
            ));
        }
    }
    let senders = ports.iter().filter(|port| port.pfc).count();
    for (class, settings) in classes.iter().enumerate() {
        if let Some((kmin, bound)) = late_ecn(&settings.settings, plan, senders as u64, lossless as u64) {
            settings.item.as_ref().unwrap_or(&buffer.item).warn(format!(
                "ECN of class {class} marks from {kmin} on, but with {senders} ports it is sure to mark before XOFF only \
                 below {bound}; lower kmin, raise alpha or enlarge the buffer"
            ));
        }
    }
    fits
}

/// DCQCN's inequality: ECN must mark before XOFF is sent, also when one port's frames wait in every queue of its class
/// and all of them are just short of kmin: `kmin < alpha*S / (n*(1 + alpha*L))` for n ports, L lossless classes and a
/// pool of S. Where it does not hold: kmin and the bound.
fn late_ecn(class: &ClassSettings, plan: &BufferPlan, ports: u64, lossless: u64) -> Option<(Bytes, Bytes)> {
    let (true, Some(wred), Limit::Alpha(alpha)) = (class.lossless, class.wred, class.limit) else { return None };
    // alpha in 1/128, so that all stays whole.
    let alpha = 1_u64 << (alpha.exponent() + 7);
    let pool = plan.lossless_shared.to_bytes(plan.cell).0;
    let bound = alpha.saturating_mul(pool) / ports.max(1).saturating_mul(128 + alpha * lossless);
    (wred.kmin.0 >= bound).then_some((wred.kmin, Bytes(bound)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_sizes() {
        let cell = Bytes(208);
        assert_eq!("1/4".parse::<Amount>().unwrap().cells(Cells(1001), cell), Cells(250));
        assert_eq!("25%".parse::<Amount>().unwrap().cells(Cells(1000), cell), Cells(250));
        assert_eq!("2080".parse::<Amount>().unwrap().cells(Cells(1000), cell), Cells(10));
        for wrong in ["5/4", "1/0", "-1/4", "101%", "x"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }
}
