//! `ports:` of the configuration.

use super::device;
use super::draft::{Backlog, Class, Common, Lcores, Port, Watchdog};
use super::lldp;
use super::maps::{self, Maps};
use super::max_rate;
use super::nic;
use super::watchdog;
use super::{fdb, storm_control, stuck};
use super::{vdev, vhost};
use crate::config::checks::bounds::{self, MOST_DESCRIPTORS, MTUS, SLOWEST};
use crate::config::keys::Key;
use crate::config::model::{DeviceKind, PortDevice};
use crate::config::overrides::Overrides;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::range::IdRange;
use crate::config::yaml::read::{Fields, Item};
use crate::forward::VlanMode;
use crate::headroom::Lapse;
use crate::pfc::PfcMode;
use crate::plan::PortLive;
use crate::qos::{FloodLimits, Trust};
use crate::sets::{CLASSES, MAX_PORTS};
use crate::units::{Bytes, Length, Nanos};
use crate::wire::MacAddr;
use crate::wire::lldp::Text;

pub const KEYS: &[Key] = &[
    Key::new("name", "required", "up to 32 letters, digits, `_ - . /`; unique", ""),
    Key::new("description", "none", "1 to 255 bytes on one line", "for `show ports`, LLDP, `holdfast_port_info`"),
    Key::new("enabled", "`true`", "`true` `false`", "`false` [shuts](reload.md#shutting-a-port) the port"),
    Key::new(
        "device",
        "required",
        "`ring`, PCI address, `vhost:PATH`, virtual device; unique; or `none`",
        "`none`: a [reload](reload.md#adding-and-removing-ports) adds one",
    ),
    Key::new(
        "socket",
        "the switch's user, mode `0600`",
        "`{owner: libvirt-qemu, group: kvm, mode: \"0660\"}`",
        "access to the socket of a `vhost:` device; names or numbers. With `group` the mode is `0660`",
    ),
    Key::new("speed", "required", "`10M` to `800G`", "pacing rate; sets the time of a pause quantum"),
    Key::new("cable", "`3m`", "up to `100km`", "length to the peer, for headroom"),
    Key::new(
        "peer_response",
        "by speed",
        "`0ns` to `1ms`",
        "peer's time to obey PFC, for headroom, at least that of 3840 B. [Holdfast \
         peer](headroom.md#a-switch-as-the-peer): `poll_gap` + 10 us, by default `30us`; with one lcore, twice a \
         `poll_gap` of 1 to 10 us",
    ),
    Key::new("mtu", "`1500`", "256 to 9600, device's limit", "largest IP packet, without Ethernet header or tags"),
    Key::new(
        "trust",
        "`dscp`",
        "`dscp` `pcp` `port`",
        "mark that decides the class; `pcp`: of the outermost tag; `port`: none",
    ),
    Key::new("class", "`0`", "0 to 7", "class of frames without the trusted mark"),
    Key::new(
        "maps",
        "the switch's",
        "`{dscp: {26: 3}, pcp: {4: 5}, roce: {ack: off}}`",
        "overrides the switch's `maps` by entry, for received frames",
    ),
    Key::new(
        "rewrite",
        "`off`",
        "`dscp` `pcp` `[dscp, pcp]` `off`",
        "marks set at egress, by `maps.tc_to_dscp` and `maps.tc_to_pcp`",
    ),
    Key::new(
        "vlan",
        "`1`",
        "a VLAN, or `{tagged: [10, 20-30], native: 1}`",
        "access port or trunk; without `native` a trunk drops untagged frames",
    ),
    Key::new(
        "queues",
        "1; 8 with `pfc: queue` on `ring` and vhost",
        "1 to 8",
        "receive queues: of a NIC, for [steering](nics.md#receive-queues); of `ring` and vhost, for [PFC by \
         queue](pfc.md#pfc-by-queue)",
    ),
    Key::new(
        "tx_queues",
        "`lcores.count` on `ring` and NICs, else 1",
        "1, or `lcores.count` to 16",
        "with one for each lcore, [every lcore sends by the port](performance.md#two-cores); `ring`, NIC or vhost. A \
         NIC with fewer has one, with a warning, and so has a virtio one with fewer `queues`",
    ),
    Key::new(
        "pfc",
        "`software`; `queue` for `vhost:`",
        "`software` `asymmetric` `nic` `queue` `off`",
        "[mode](pfc.md#modes). `--pfc` overrides it, but not `queue` and `nic` unless by `off`; `--pfc software` keeps \
         `asymmetric`",
    ),
    Key::new(
        "pfc_proven",
        "`false`",
        "`true` `false`",
        "you have [verified](nics.md) PFC: the port is `trusted`, thus lossless, until its peer is measured. Not for `ring`",
    ),
    Key::new(
        "trust_peer",
        "`false`",
        "`true` `false`",
        "required as `true` for `net_memif` and `virtio_user`: their drivers follow the peer's descriptors [without a \
         check](nics.md#peers-that-share-memory)",
    ),
    Key::new(
        "watchdog",
        "the switch's",
        "`{detection: ..., restoration: ..., action: ...}` or `off`",
        "overrides the switch's by key",
    ),
    Key::new("stuck_after", "the switch's", "`100ms` to `60s`, or `off`", ""),
    Key::new(
        "reserve",
        "`buffer.port_reserve`",
        "`{lossless: 20kB, lossy: 10kB}`",
        "guaranteed to the port's groups, beyond their own reserves",
    ),
    Key::new(
        "max_rate",
        "those of `classes`",
        "by class: `{3: 5G, 5: {rate: 1G, burst: 20kB}, 6: off}`",
        "[maximum rates](#max_rate) of this port's queues, at most `speed`",
    ),
    Key::new("lcore", "in turn", "0 to `lcores.count` - 1", "lcore that polls the port"),
    Key::new(
        "backlog_mark",
        "32, or `off` by `lcores.backlog_xoff`",
        "1 to 16383, below `rx_descriptors`; or `off`",
        "XOFF if a poll leaves so many frames in the receive ring, or any for [lack of time](overload.md); needs PFC \
         and a lossless group",
    ),
    Key::new(
        "mac",
        "`02:48:46:00:00:NN`",
        "unicast; unique",
        "source of PFC frames. A NIC's default is its own address",
    ),
    Key::new(
        "rx_descriptors",
        "`1024`",
        "power of two, 64 to 16384",
        "length of the receive ring; `ring`: frames on the link, each way",
    ),
    Key::new("tx_descriptors", "`1024`", "power of two, 64 to 16384", "transmit ring; no effect on `ring`"),
    Key::new("lldp", "`on`, with [exceptions](lldp.md)", "`on` `off`", "whether the port speaks LLDP; not for `ring`"),
    Key::new(
        "storm_control",
        "the switch's",
        "`{broadcast: 1kpps, multicast: off, unknown: 10kpps}` or `off`",
        "overrides the switch's [limits](#storm_control) by key",
    ),
    Key::new(
        "fdb_limit",
        "[`fdb.limit`](#fdb)",
        "1 to `fdb.capacity`",
        "most learned stations of this port; equal at the members of a group",
    ),
];

const DEFAULT_DESCRIPTORS: u16 = 1024;
const DEFAULT_MTU: u16 = 1500;
const DEFAULT_CABLE: Length = Length::metres(3);

/// The parts of the configuration that the ports refer to.
pub struct Context<'a, 'b> {
    pub maps: &'b Maps<'a>,
    pub watchdog: Option<Watchdog<'a>>,
    pub stuck_after: Option<Nanos>,
    pub flood_limits: FloodLimits,
    pub checks_l4: bool,
    pub lcores: &'b Lcores<'a>,
    pub overrides: &'b Overrides,
}

/// Reads all ports. A value with errors is replaced by its default, so that other parts can refer to the port.
pub fn read<'a>(item: Option<Item<'a>>, macs: &mut Unique, context: &Context<'a, '_>) -> Vec<Port<'a>> {
    let example = "`- {name: p1, device: ring, speed: 10G}` for each port";
    let Some((list, items)) = item.and_then(|list| Some((list.clone(), list.list(example)?))) else {
        return Vec::new();
    };
    if items.is_empty() {
        list.fail("there is no port; write e.g. `- {name: p1, device: ring, speed: 10G}`");
    }
    if items.len() > MAX_PORTS {
        list.fail(format!("{} ports are more than the {MAX_PORTS} that a switch can have; remove some", items.len()));
        return Vec::new();
    }
    let (mut devices, mut names) = (Unique::new("device"), Unique::new("name"));
    let ports = items.into_iter().enumerate().filter_map(|(index, item)| {
        let fields = item.fields(KEYS)?;
        let name = names::read(&fields, "name: p1", &mut names).unwrap_or_default();
        let kind = match fields.get("device") {
            None if context.overrides.simulated => Some(DeviceKind::Ring),
            _ => fields.required("device", "device: ring").and_then(|item| device::read(&item, &mut devices)),
        };
        if let Some(kind) = &kind {
            device::check_trust(&fields, kind);
        }
        let mac = names::read_mac(&fields, macs, MacAddr::local(0, u16::try_from(index).unwrap_or(u16::MAX)));
        let identity = Identity { index, name, kind, mac };
        Some(read_port(item, &fields, identity, context))
    });
    ports.collect()
}

/// Refuses ports without a device where a reload could give them none.
pub fn check_absent(ports: &[Port<'_>]) {
    for port in ports.iter().filter(|port| port.device.kind == DeviceKind::Absent) {
        let reason = match () {
            () if port.lag.is_some() => "a member of a group",
            () if port.is_output => "a port that sends copies of mirrors",
            () if matches!(port.vlan, VlanMode::Routed(_)) => "a routed port",
            () => continue,
        };
        port.item
            .child("device")
            .fail(format!("{reason} needs a device from the start; write one, or remove `{}` there", port.name));
    }
}

/// The values of a port that no other port may have.
struct Identity {
    index: usize,
    name: String,
    /// `None` if `device` has an error.
    kind: Option<DeviceKind>,
    mac: MacAddr,
}

fn read_port<'a>(item: Item<'a>, fields: &Fields<'a>, identity: Identity, context: &Context<'a, '_>) -> Port<'a> {
    let Identity { index, name, kind, mac } = identity;
    let rate = fields.required("speed", "speed: 10G").and_then(|item| item.read(bounds::speed));
    let number = |key, what, range| fields.get(key).and_then(|item| item.number::<u16>(what, range));
    let has_device = kind.is_some();
    let kind = kind.unwrap_or(DeviceKind::Ring);
    let pfc = read_pfc(fields, &kind, context.overrides);
    // Simulated cables have one queue.
    let queues = if context.overrides.simulated { 1 } else { device::read_queues(fields, &kind, pfc) };
    let written = device::read_tx_queues(fields, &kind, queues, context.lcores.count);
    let tx_queues = written.unwrap_or_else(|| device::default_tx_queues(&kind, pfc, context.lcores.count));
    let written_lldp = fields.get("lldp").filter(|_| has_device);
    let lldp = lldp::read_of_port(written_lldp, &kind);
    let port = Port {
        name,
        has_device,
        device: PortDevice {
            socket: vhost::read_access(fields, &kind),
            kind,
            queues,
            tx_queues,
            needs_tx_queues: written.is_some(),
            has_mac: item.has("mac"),
            pfc_proven: fields.get("pfc_proven").and_then(|item| item.flag()).unwrap_or(false),
            cable: fields.get("cable").and_then(|item| read_cable(&item)).unwrap_or(DEFAULT_CABLE),
            peer_response: fields.get("peer_response").and_then(|item| item.read(bounds::response)),
            rx_descriptors: read_descriptors(fields, "rx_descriptors"),
            tx_descriptors: read_descriptors(fields, "tx_descriptors"),
            // Decided when the router is known.
            lldp: false,
        },
        mac,
        rate: rate.unwrap_or(SLOWEST),
        mtu: number("mtu", "an MTU", MTUS.0.into()..=MTUS.1.into()).unwrap_or(DEFAULT_MTU),
        live: read_live(fields, context),
        vlan: fields.get("vlan").and_then(|item| read_vlan(&item)).unwrap_or(VlanMode::Access(1)),
        pfc,
        watchdog: watchdog::read_over(fields.get("watchdog"), context.watchdog.clone()),
        checks_l4: context.checks_l4,
        fdb_limit: fdb::read_limit(fields.get("fdb_limit")),
        reserve: fields.get("reserve").map(|item| read_reserve(&item)).unwrap_or_default(),
        max_rates: max_rate::read_of_port(fields.get("max_rate")),
        lcore: context.lcores.of_port(index, fields.get("lcore")),
        backlog: fields.get("backlog_mark").map_or(Backlog::Default, |item| read_backlog(&item)),
        lldp,
        lag: None,
        is_output: false,
        item,
    };
    let written = fields.get("mtu");
    let is_written = written.is_some();
    if let (DeviceKind::Vdev(devargs), Some(item)) = (&port.device.kind, written.or_else(|| fields.get("device"))) {
        vdev::check_mtu(&item, devargs, port.mtu, is_written);
    }
    check_pfc(fields, &port);
    port
}

/// Reads the settings that may change while the switch runs.
fn read_live(fields: &Fields<'_>, context: &Context<'_, '_>) -> PortLive {
    PortLive {
        is_enabled: fields.get("enabled").and_then(|item| item.flag()).unwrap_or(true),
        description: fields.get("description").and_then(|item| read_description(&item)).unwrap_or_default(),
        trust: fields.get("trust").and_then(|item| item.choice(&Trust::WORDS)).unwrap_or(Trust::Dscp),
        port_class: fields.get("class").and_then(|item| item.number("a class", 0..=7)).unwrap_or(0),
        marks: maps::read_of_port(fields.get("maps"), context.maps),
        rewrite: maps::read_rewrite(fields.get("rewrite"), context.maps),
        stuck_after: stuck::read(fields.get("stuck_after"), context.stuck_after),
        flood_limits: storm_control::read(fields.get("storm_control"), context.flood_limits),
        // `build::port_specs` fills these. Without `..`, the compiler names a new field.
        max_rates: [None; CLASSES],
        watchdog: None,
    }
}

/// Checks the keys of a port that depend on its PFC mode.
fn check_pfc(fields: &Fields<'_>, port: &Port<'_>) {
    if port.device.pfc_proven
        && let Some(item) = fields.get("pfc_proven")
    {
        if port.has_device && port.device.kind == DeviceKind::Ring {
            item.fail("a port with a virtual host needs no proof of PFC; remove it");
        } else if port.pfc == PfcMode::Queue {
            item.warn("`pfc: queue` needs no proof, because no PFC frame is sent; remove it");
        } else if !port.pfc.is_on() {
            item.warn("PFC is off at this port, so there is nothing to prove; remove it or write `pfc: software`");
        }
    }
    if !port.pfc.sends_frames()
        && let Some(item) = fields.get("watchdog").filter(|item| !item.is("off"))
    {
        item.warn(match port.pfc {
            PfcMode::Queue => "`pfc: queue` obeys no PFC, so there is nothing to watch; remove it",
            _ => "PFC is off at this port, so there is nothing to watch; remove it or write `pfc: software`",
        });
    }
    if port.pfc == PfcMode::Queue
        && let Some(item) = fields.get("pfc").or_else(|| fields.get("device")).filter(|_| port.has_device)
    {
        device::check_queue_mode(&item, &port.device.kind, port.device.queues);
    }
    if port.pfc == PfcMode::Nic
        && let Some(item) = fields.get("pfc").filter(|_| port.has_device)
    {
        nic::check_device(&item, &port.device);
    }
}

/// Reason why the simulator refuses `pfc: nic`.
const SIMULATED_NIC: &str = "simulated cables have no NIC that obeys PFC by itself; write `pfc: software`";

/// Reason why the simulator refuses `pfc: queue`.
const SIMULATED_QUEUE: &str =
    "simulated cables have no queues that the switch could leave unpolled; write `pfc: software`";

fn read_pfc(fields: &Fields<'_>, kind: &DeviceKind, overrides: &Overrides) -> PfcMode {
    // A guest knows no PFC.
    let default = match kind {
        DeviceKind::Vhost(_) if !overrides.simulated => PfcMode::Queue,
        _ => PfcMode::Symmetric,
    };
    let read = |item: Item<'_>| match () {
        () if item.is("nic") && overrides.simulated => item.refuse(SIMULATED_NIC),
        () if item.is("queue") && overrides.simulated => item.refuse(SIMULATED_QUEUE),
        () => item.choice(&PfcMode::WORDS),
    };
    let written = fields.get("pfc").and_then(read).unwrap_or(default);
    match overrides.pfc {
        // The written mode is checked in any case; `off` applies only when the switch runs.
        None | Some(PfcMode::Off) => written,
        Some(_) if matches!(written, PfcMode::Queue | PfcMode::Nic) => written,
        Some(PfcMode::Symmetric) if written == PfcMode::Asymmetric => written,
        Some(mode) => mode,
    }
}

/// Reads the reserves of all lossy and all lossless groups of a port; indexed by `lossless as usize`.
pub fn read_reserve(item: &Item<'_>) -> [Option<Bytes>; 2] {
    if !item.is_map() {
        let remedy = "write e.g. `{lossless: 20kB, lossy: 10kB}`";
        item.fail(format!("`{}` is not a mapping of reserves; {remedy}", item.shown()));
        return [None; 2];
    }
    let fields = item.fields(&["lossless", "lossy"]);
    ["lossy", "lossless"].map(|key| fields.as_ref().and_then(|fields| fields.parse(key)))
}

/// Longest description in bytes: that of a port in LLDP (802.1AB clause 8.5.5).
const MOST_DESCRIPTION: usize = 255;

fn read_description(item: &Item<'_>) -> Option<String> {
    let text = item.text("a description; write e.g. \"rack 7, server 3\"")?;
    if text.is_empty() || text.len() > MOST_DESCRIPTION {
        return item.refuse(format!("the description has {} bytes; write 1 to {MOST_DESCRIPTION}", text.len()));
    }
    if Text::new(text).as_str() != text {
        return item.refuse("the description has control or invisible characters; write one line of plain text");
    }
    Some(text.to_owned())
}

fn read_backlog(item: &Item<'_>) -> Backlog {
    if item.is("off") {
        return Backlog::Never;
    }
    let most = u64::from(MOST_DESCRIPTORS) - 1;
    item.number("a count of frames", 1..=most).map_or(Backlog::Default, Backlog::From)
}

/// Reads the length of a cable.
pub fn read_cable(item: &Item<'_>) -> Option<Length> {
    item.read(bounds::cable)
}

fn read_descriptors(fields: &Fields<'_>, key: &str) -> u16 {
    let Some(item) = fields.get(key) else { return DEFAULT_DESCRIPTORS };
    match item.number::<u16>("a count of descriptors", 64..=u64::from(MOST_DESCRIPTORS)) {
        Some(count) if count.is_power_of_two() => count,
        Some(count) => {
            let (below, above) = (count.next_power_of_two() / 2, count.next_power_of_two());
            item.fail(format!("`{count}` is not a power of two; write e.g. {below} or {above}"));
            DEFAULT_DESCRIPTORS
        }
        None => DEFAULT_DESCRIPTORS,
    }
}

fn read_vlan(item: &Item<'_>) -> Option<VlanMode> {
    if let Some(list) = item.written_list() {
        return item.refuse(format!("`{list}` is not a VLAN; tagged ones are written as `{{tagged: {list}}}`"));
    }
    if !item.is_map() {
        return item.number("a VLAN", 1..=4094).map(VlanMode::Access);
    }
    let fields = item.fields(&["tagged", "native"])?;
    let native = fields.get("native").and_then(|item| item.number::<u16>("a VLAN", 1..=4094));
    let items = fields.required("tagged", "tagged: [10, 20-30]")?.list("e.g. [10, 20-30]")?;
    let mut tagged = Vec::new();
    for item in items {
        let Some(range) = IdRange::read(&item, "a VLAN", 1..=4094) else { continue };
        if native.is_some_and(|native| (range.first..=range.last).contains(&native)) {
            item.fail(format!("`{}` contains the native VLAN, which is sent untagged; remove it here", item.shown()));
        }
        tagged.extend(range.first..=range.last);
    }
    tagged.sort_unstable();
    tagged.dedup();
    Some(VlanMode::Trunk { tagged, native })
}

/// Checks each port's PFC, trust, class and queues against the lossless classes.
pub fn check_classes(ports: &[Port<'_>], classes: &[Class<'_>; CLASSES]) {
    let is_lossless = |class: u8| classes[usize::from(class)].settings.lossless;
    let has_lossless = classes.iter().any(|class| class.settings.lossless);
    for port in ports.iter().filter(|port| device::chooses_queues(&port.device.kind) && port.device.queues > 1) {
        if !port.pfc.is_on() || !has_lossless {
            port.item.warn("no frame here is lossless, so nothing is steered to its receive queues; write `queues: 1`");
        }
    }
    let lossless: Vec<String> =
        (0..CLASSES as u8).filter(|&class| is_lossless(class)).map(|class| class.to_string()).collect();
    for port in ports.iter().filter(|port| !lossless.is_empty() && !port.is_output) {
        if !port.pfc.is_on() {
            port.item.warn(format!("PFC is off, so class {} is not lossless here", lossless.join(", ")));
            continue;
        }
        let class = port.live.port_class;
        let reason = format!(
            "class {class} of this port is lossless, and broadcast is never sent in a lossless class, so ARP fails here"
        );
        match (port.live.trust, is_lossless(class)) {
            (Trust::Port, true) => port.item.fail(format!("{reason}; write a lossy class and `trust: dscp` or `pcp`")),
            (Trust::Port, false) => port.item.fail(format!(
                "PFC is on, but `trust: port` puts every frame in class {class}, which is lossy; write `trust: dscp` \
                 or `pcp`, or `pfc: off`"
            )),
            (_, true) => port.item.warn(format!("{reason}; write a lossy class as `class`")),
            (_, false) => {}
        }
        if port.live.trust == Trust::Pcp && port.vlan.tagged().is_empty() {
            port.item.warn(format!(
                "this port trusts PCP, but frames leave it untagged and so without a PCP: its peer puts them in class \
                 {class}, and PFC for class {} does not stop them; write `trust: dscp`, which needs no tag, or `vlan: \
                 {{tagged: [...]}}`",
                lossless.join(", ")
            ));
        }
    }
}

/// Warns of ports at which a pause may expire before its refresh reaches the peer. Lossless classes then lose frames
/// however large their headroom is.
pub fn warn_of_lapses(ports: &[Port<'_>], guarded: &[bool], common: &Common) {
    for (port, _) in ports.iter().zip(guarded).filter(|(_, guarded)| **guarded) {
        let Some(lapse) = Lapse::of(&port.headroom_input(common)) else { continue };
        let remedy = match lapse.longest_poll_gap {
            Some(gap) => format!("write `lcores.poll_gap: {}ns` or less, and keep polls within it", gap.0),
            None => "no poll gap is short enough for the peer's response; write a lower `speed`".to_owned(),
        };
        port.item.warn(format!("at {} {lapse} (poll gap {}); {remedy}", port.rate, common.poll_gap));
    }
}
