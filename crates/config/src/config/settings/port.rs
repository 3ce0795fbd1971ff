//! Settings of ports, of their priority groups and of their queues.

use super::row::{Gauges, Labels, Place, Row, Settings, live, measure, out, restart};
use super::value::{Part, Value};
use super::{class_or, on_or_off, or_off};
use crate::config::model::{Config, DeviceKind, PortDevice};
use crate::config::sections::device::chooses_queues;
use crate::mmu::GroupProfile;
use crate::plan::{PortLive, PortSpec, SwitchSpec};
use crate::qos::{FloodKind, MaxRate};
use crate::sets::{CLASSES, NUMBERS};
use crate::units::{Alpha, Cells, PacketRate};

/// A port with its device.
struct PortAt<'a> {
    config: &'a Config,
    index: usize,
}

impl PortAt<'_> {
    fn spec(&self) -> &PortSpec {
        &self.config.switch.ports[self.index]
    }

    fn device(&self) -> &PortDevice {
        &self.config.devices[self.index]
    }

    fn part(&self, cells: Cells) -> Part {
        Part { cells, cell: self.config.switch.buffer.cell }
    }

    /// Whether the port can be taken out and put in again.
    fn may_leave(&self) -> bool {
        self.config.switch.obstacle(self.index).is_none()
    }

    /// Whether it can get another device meanwhile, or other settings of it. The virtual host of a `ring` stays.
    fn may_change_device(&self) -> bool {
        self.may_leave() && self.device().kind != DeviceKind::Ring
    }

    /// Whether classes may change: flow rules by the marks stay in a device with several queues.
    fn has_live_classes(&self) -> bool {
        self.device().queues == 1 || !chooses_queues(&self.device().kind)
    }
}

fn port_rows<'a>() -> Vec<Row<PortAt<'a>>> {
    vec![
        live("description", |at, _| Some(at.spec().live.description.clone()).filter(|text| !text.is_empty())),
        live("enabled", |at, _| Some(at.spec().live.is_enabled.to_string())),
        out("device", PortAt::may_change_device, |at, _| Some(at.device().kind.to_string())),
        restart("queues", |at, _| Some(at.device().queues.to_string())),
        restart("tx_queues", |at, _| Some(at.device().tx_queues.to_string())),
        out("socket", PortAt::may_change_device, |at, _| match at.device().kind {
            DeviceKind::Vhost(_) => Some(at.device().socket.to_string()),
            _ => None,
        }),
        out("mac", PortAt::may_leave, |at, _| Some(at.spec().mac.to_string())),
        out("speed", PortAt::may_change_device, |at, precision| Some(at.spec().rate.text(precision))),
        out("mtu", PortAt::may_change_device, |at, _| Some(at.spec().mtu.to_string())),
        live("cable", |at, precision| Some(at.device().cable.text(precision))),
        live("peer_response", |at, precision| {
            Some(at.device().peer_response.map_or("by speed".to_owned(), |time| time.text(precision)))
        }),
        out("descriptors", PortAt::may_change_device, |at, _| {
            Some(format!("{} rx, {} tx", at.device().rx_descriptors, at.device().tx_descriptors))
        }),
        live("filter.l4_length", |at, _| Some(at.spec().checks_l4.to_string())),
        live("vlan", |at: &PortAt<'_>, precision| Some(at.spec().vlan.text(precision)))
            .where_live(|at| at.spec().bridges() && at.has_live_classes()),
        out("pfc", PortAt::may_leave, |at, _| Some(at.spec().pfc.label().to_owned())),
        live("pfc_proven", |at, _| Some(at.device().pfc_proven.to_string())),
        restart("lcore", |at, _| Some(at.spec().lcore.to_string())),
        live("lldp", |at, _| Some(on_or_off(at.device().lldp))),
        live("backlog_mark", |at, _| Some(or_off(at.spec().backlog_mark))),
        live("trust", |at: &PortAt<'_>, _| Some(at.spec().live.trust.label().to_owned()))
            .where_live(PortAt::has_live_classes),
        live("class", |at: &PortAt<'_>, _| Some(at.spec().live.port_class.to_string()))
            .where_live(PortAt::has_live_classes),
        live("watchdog", |at, precision| Some(at.spec().live.watchdog.text(precision))),
        live("stuck_after", |at, precision| Some(at.spec().live.stuck_after.text(precision))),
        live("fdb_limit", |at, _| Some(at.spec().fdb_limit.to_string())),
        live("reserve.lossy", |at, precision| Some(at.part(at.spec().buffer.reserve[0]).text(precision))),
        live("reserve.lossless", |at, precision| Some(at.part(at.spec().buffer.reserve[1]).text(precision))),
        live("insurance", |at, precision| Some(at.part(at.spec().buffer.insurance).text(precision))),
    ]
}

/// A priority group of a port.
struct GroupAt<'a> {
    switch: &'a SwitchSpec,
    port: &'a PortSpec,
    group: usize,
}

impl GroupAt<'_> {
    fn profile(&self) -> &GroupProfile {
        &self.port.buffer.groups[self.group]
    }

    fn part(&self, cells: Cells) -> Part {
        Part { cells, cell: self.switch.buffer.cell }
    }

    /// A size in bytes, where the group is lossless.
    fn if_lossless(&self, cells: Cells) -> Option<f64> {
        self.profile().lossless.then(|| self.size(cells))
    }

    fn size(&self, cells: Cells) -> f64 {
        cells.to_bytes(self.switch.buffer.cell).0 as f64
    }

    fn limit(&self) -> Option<Cells> {
        self.profile().threshold.cells()
    }

    fn alpha(&self) -> Option<Alpha> {
        self.profile().threshold.alpha()
    }
}

impl Place for GroupAt<'_> {
    fn labels(&self) -> Labels<'_> {
        [("port", self.port.name.as_str()), ("priority", NUMBERS[self.group])].into()
    }
}

fn group_rows<'a>() -> Vec<Row<GroupAt<'a>>> {
    vec![
        live("lossless", |at: &GroupAt<'_>, _| Some(at.profile().lossless.to_string()))
            .where_live(|at| at.switch.obstacle_of_classes().is_none()),
        live("reserve", |at: &GroupAt<'_>, precision| Some(at.part(at.profile().reserve).text(precision))).gauge(
            "holdfast_group_reserve_bytes",
            "Reserve of the group.",
            |at| Some(at.size(at.profile().reserve)),
        ),
        live("headroom", |at: &GroupAt<'_>, precision| Some(at.part(at.profile().headroom).text(precision))).gauge(
            "holdfast_group_headroom_size_bytes",
            "Headroom of the group: eta.",
            |at| at.if_lossless(at.profile().headroom),
        ),
        live("alpha", |at: &GroupAt<'_>, _| Some(at.alpha()?.to_string())).gauge(
            "holdfast_group_alpha",
            "Dynamic Threshold factor of the group.",
            |at| Some(f64::from(at.alpha()?.exponent()).exp2()),
        ),
        live("limit", |at: &GroupAt<'_>, precision| Some(at.part(at.limit()?).text(precision))).gauge(
            "holdfast_group_static_threshold_bytes",
            "Fixed limit of the group (`limit`).",
            |at| Some(at.size(at.limit()?)),
        ),
        live("xon_offset", |at: &GroupAt<'_>, precision| Some(at.part(at.profile().xon_offset).text(precision))).gauge(
            "holdfast_group_xon_offset_bytes",
            "Distance below the threshold for XON.",
            |at| at.if_lossless(at.profile().xon_offset),
        ),
        live("xon_floor", |at: &GroupAt<'_>, precision| Some(at.part(at.profile().xon_floor).text(precision))).gauge(
            "holdfast_group_xon_floor_bytes",
            "XON below this at any threshold.",
            |at| at.if_lossless(at.profile().xon_floor),
        ),
    ]
}

/// An egress queue of a port.
struct PortQueueAt<'a> {
    switch: &'a SwitchSpec,
    port: usize,
    queue: usize,
}

impl PortQueueAt<'_> {
    fn spec(&self) -> &PortSpec {
        &self.switch.ports[self.port]
    }

    fn max_rate(&self) -> Option<MaxRate> {
        self.spec().live.max_rates[self.queue]
    }
}

impl Place for PortQueueAt<'_> {
    fn labels(&self) -> Labels<'_> {
        [("port", self.spec().name.as_str()), ("queue", NUMBERS[self.queue])].into()
    }
}

fn queue_rows<'a>() -> Vec<Row<PortQueueAt<'a>>> {
    vec![
        live("max_rate", |at: &PortQueueAt<'_>, precision| Some(at.max_rate().text(precision)))
            // A joint port has no maximum rate, and gets one owner with its first one.
            .where_live(|at| at.spec().is_limited() || !at.switch.may_be_joint(at.port))
            .gauge(
                "holdfast_queue_max_rate_bytes_per_second",
                "Maximum rate, with preamble and gap (with `max_rate`).",
                |at| Some((at.max_rate()?.rate.0 / 8) as f64),
            )
            .gauge("holdfast_queue_max_burst_bytes", "Burst of the maximum rate (with `max_rate`).", |at| {
                Some(at.max_rate()?.burst.0 as f64)
            }),
    ]
}

/// Received frames of one kind that are flooded.
struct FloodAt<'a> {
    port: &'a PortSpec,
    kind: FloodKind,
    word: &'static str,
}

impl FloodAt<'_> {
    fn limit(&self) -> Option<PacketRate> {
        self.port.live.flood_limits[self.kind as usize]
    }
}

impl Place for FloodAt<'_> {
    fn labels(&self) -> Labels<'_> {
        [("port", self.port.name.as_str()), ("kind", self.word)].into()
    }
}

fn flood_rows<'a>() -> Vec<Row<FloodAt<'a>>> {
    vec![live("", |at: &FloodAt<'_>, _| Some(or_off(at.limit()))).gauge(
        "holdfast_port_flood_limit_frames_per_second",
        "Most frames to be flooded ([`storm_control`](configuration.md#storm_control)).",
        |at| Some(at.limit()?.0.into()),
    )]
}

/// The priority groups, queues and flooded frames of all ports.
fn groups(switch: &SwitchSpec) -> Vec<GroupAt<'_>> {
    let of = |port| (0..CLASSES).map(move |group| GroupAt { switch, port, group });
    switch.ports.iter().flat_map(of).collect()
}

fn queues(switch: &SwitchSpec) -> Vec<PortQueueAt<'_>> {
    let of = |port| (0..CLASSES).map(move |queue| PortQueueAt { switch, port, queue });
    (0..switch.ports.len()).flat_map(of).collect()
}

fn floods(switch: &SwitchSpec) -> Vec<FloodAt<'_>> {
    let of = |port| FloodKind::TABLE.map(|(kind, word)| FloodAt { port, kind, word });
    switch.ports.iter().flat_map(of).collect()
}

/// Adds the settings of all ports.
pub(super) fn add(config: &Config, settings: &mut Settings) {
    let (switch, rows) = (&config.switch, port_rows());
    for (index, spec) in switch.ports.iter().enumerate().take(config.devices.len()) {
        let at = PortAt { config, index };
        settings.add(Some(&spec.name), "", &rows, &at);
        add_maps(&at, settings);
    }
    let rows = group_rows();
    for at in groups(switch) {
        let prefix = class_or(&switch.classes.tc_to_group, at.group, "group");
        settings.add(Some(&at.port.name), &format!("{prefix}."), &rows, &at);
    }
    let rows = queue_rows();
    for at in queues(switch) {
        let prefix = class_or(&switch.classes.tc_to_queue, at.queue, "queue");
        settings.add(Some(&at.spec().name), &format!("{prefix}."), &rows, &at);
    }
    let rows = flood_rows();
    for at in floods(switch) {
        settings.add(Some(&at.port.name), &format!("storm_control.{}", at.word), &rows, &at);
    }
}

/// Adds each entry of the maps of a port.
fn add_maps(at: &PortAt<'_>, settings: &mut Settings) {
    // Each has a row or is added here: the compiler names a new one.
    let PortLive {
        is_enabled: _,
        description: _,
        trust: _,
        port_class: _,
        marks: _,
        rewrite: _,
        max_rates: _,
        flood_limits: _,
        watchdog: _,
        stuck_after: _,
    } = &at.spec().live;
    let (name, live, is_live) = (Some(at.spec().name.as_str()), &at.spec().live, at.has_live_classes());
    for (key, table) in [("dscp", &live.marks.dscp_to_tc[..]), ("pcp", &live.marks.pcp_to_tc[..])] {
        for (mark, class) in table.iter().enumerate() {
            settings.put(name, format!("maps.{key}.{mark}"), is_live, |_| class.to_string());
        }
    }
    for (key, class) in live.marks.roce.entries() {
        settings.put(name, format!("maps.roce.{key}"), true, |_| or_off(class));
    }
    for (key, table) in [("dscp", live.rewrite.dscp), ("pcp", live.rewrite.pcp)] {
        for (class, mark) in table.iter().enumerate() {
            let kept = |_| mark.map_or("kept".to_owned(), |mark| mark.to_string());
            settings.put(name, format!("rewrite.{key}.{class}"), true, kept);
        }
    }
}

/// Gives the metrics of groups, queues and flooded frames.
pub(super) fn measure_all(switch: &SwitchSpec, gauges: &mut dyn Gauges) {
    measure(&group_rows(), &groups(switch), gauges);
    measure(&queue_rows(), &queues(switch), gauges);
    measure(&flood_rows(), &floods(switch), gauges);
}
