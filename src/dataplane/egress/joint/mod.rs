//! Joint ports: ports with a transmit queue for each lcore, by which every lcore sends.
//!
//! A frame stays on the lcore that received it: its queue, its packet and its release. Lcores share only what
//! [`told::Told`] has and the time of the wire. Each lcore publishes the depths of its queues at the end of its poll,
//! and only while frames stand. The owner of a port receives its pauses, and publishes them at once.

mod exchange;
mod pacing;
pub(crate) mod side;
pub(crate) mod told;
#[cfg(test)]
mod told_tests;

use std::sync::Arc;

use self::side::JointSide;
use self::told::{Heard, Told};
use crate::dataplane::spec::{PortSpec, SwitchSpec};
use crate::headroom::PACING_SLACK;
use crate::pfc::PriorityMap;
use crate::qos::Shaper;
use crate::qos::joint_pacer::JointPacer;
use crate::qos::joint_wire::JointWire;
use crate::sets::{ClassSet, PortSet};
use crate::units::Ticks;

/// Bytes of a frame around the largest IP packet: Ethernet header and two tags.
const HEADERS: u16 = 22;

/// The joint ports of the switch, as one lcore sees them.
#[derive(Debug, Clone)]
pub(crate) struct JointPorts {
    pub ports: PortSet,
    told: Arc<Told>,
    /// Queues that obey pauses, by port.
    obeyed: Arc<[ClassSet]>,
    /// Ports for which other lcores held frames at the last look.
    standing: Heard,
    /// Ports for which this lcore has told the others that it holds frames.
    told_standing: PortSet,
    /// Ports of other lcores whose watchdogs dropped frames at the last look.
    dropping: Heard,
}

impl JointPorts {
    /// Stops the queues of joint ports `own` that obey pauses on all other lcores, without an end: their owner hears no
    /// pause any more. Frames that wait there are dropped when the switch ends.
    pub fn stop_guests(&self, own: PortSet) {
        for port in (self.ports & own).iter() {
            let until = |queue: usize| Ticks(if self.obeyed[port].contains(queue) { u64::MAX } else { 0 });
            self.told.tell_pauses(port, std::array::from_fn(until));
        }
    }

    /// The state that lcores tell each other, for checks.
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// Creates the views of all lcores of `spec`, and their sides of each port.
    pub fn fleet(spec: &SwitchSpec, hz: u64) -> Vec<(Self, Vec<Option<Box<JointSide>>>)> {
        let (ports, lcores) = (spec.joint_ports(), usize::from(spec.lcores));
        let told = Arc::new(Told::new(if ports.is_empty() { 0 } else { spec.ports.len() }, lcores));
        let wires: Vec<_> = spec.ports.iter().map(|_| Arc::new(JointWire::default())).collect();
        let side = |lcore: usize, number: usize| {
            let (port, wire) = (&spec.ports[number], wires[number].clone());
            let shaper = Shaper::new(port.rate, hz, PACING_SLACK);
            let pacer = JointPacer::new(wire, &shaper, (port.mtu + HEADERS).into(), spec.lcores.into());
            let side = || JointSide::new(pacer, told.clone(), number, usize::from(port.lcore) == lcore);
            ports.contains(number).then(|| Box::new(side()))
        };
        let map = PriorityMap::new(spec.classes.pfc_to_queue);
        let obeyed = |port: &PortSpec| map.queues(port.pfc.obeyed(spec.lossless_queues(port), &map));
        let obeyed: Arc<[ClassSet]> = spec.ports.iter().map(obeyed).collect();
        let view = || Self {
            ports,
            told: told.clone(),
            obeyed: obeyed.clone(),
            standing: Heard::default(),
            told_standing: PortSet::EMPTY,
            dropping: Heard::default(),
        };
        (0..lcores).map(|lcore| (view(), (0..spec.ports.len()).map(|port| side(lcore, port)).collect())).collect()
    }
}
