//! Settings that a port takes only while it is out: shut, and without a frame in the buffer or in its queues.
//!
//! The control thread makes the new state of the port, so that the lcore neither allocates nor frees.

use crate::dataplane::ingress::backlog::{Backlog, Rings};
use crate::headroom::{bursts_per_poll, most_slack};
use crate::pfc::{PortPfc, PortPfcSpec, PriorityMap};
use crate::plan::spec::{PortSpec, SwitchSpec};
use crate::qos::Shaper;
use crate::route::Attachment;
use crate::sets::PortSet;
use crate::units::Bytes;
use crate::wire::MacAddr;

/// The state of an empty port that follows from its MTU, its rate, its PFC and its device.
#[derive(Debug, Clone)]
pub(crate) struct Replacement {
    pub mac: MacAddr,
    pub mtu: Bytes,
    pub pfc: PortPfc,
    pub backlog: Backlog,
    pub shaper: Shaper,
    pub bursts: u32,
    /// Routed ports whose MTU is at least that of the port.
    pub fitting: PortSet,
}

impl Replacement {
    /// The state of port `number` of `switch`, on a clock of `hz` ticks a second. With `has_watchdog` it has the
    /// watchdog of its settings.
    pub fn new(number: usize, switch: &SwitchSpec, has_watchdog: bool, hz: u64) -> Self {
        let spec = &switch.ports[number];
        let lossless = spec.lossless_groups();
        let pfc = PortPfcSpec {
            mode: spec.pfc,
            lossless_groups: lossless,
            lossless_queues: switch.lossless_queues(spec),
            map: PriorityMap::new(switch.classes.pfc_to_queue),
            rate: spec.rate,
            reaction: spec.reaction,
            watchdog: spec.live.watchdog.filter(|_| has_watchdog),
        };
        Self {
            mac: spec.mac,
            mtu: Bytes(spec.mtu.into()),
            pfc: PortPfc::new(&pfc, hz),
            backlog: Backlog::new(
                backlog_mark(spec).filter(|_| !lossless.is_empty()),
                Rings { count: spec.rx_queues.into(), frames: spec.ring_frames },
            ),
            shaper: Shaper::new(spec.rate, hz, most_slack(switch.poll_gap)),
            bursts: bursts_per_poll(spec.rate, spec.mtu, switch.poll_gap),
            fitting: fitting(switch, number),
        }
    }
}

/// The mark of the port's backlog, if XOFF can stop its peer.
pub(crate) fn backlog_mark(spec: &PortSpec) -> Option<u32> {
    spec.backlog_mark.filter(|_| spec.pfc.sends_frames())
}

/// Routed ports whose MTU is at least that of port `ingress`.
pub(crate) fn fitting(switch: &SwitchSpec, ingress: usize) -> PortSet {
    let interfaces = switch.routing.iter().flat_map(|routing| &routing.interfaces);
    let routed = interfaces.filter_map(|interface| match interface.attachment {
        Attachment::Port(port) => Some((usize::from(port), interface.mtu)),
        Attachment::Vlan => None,
    });
    let mtu = switch.ports[ingress].mtu;
    routed.filter(|(_, most)| *most >= mtu).map(|(port, _)| port).collect()
}
