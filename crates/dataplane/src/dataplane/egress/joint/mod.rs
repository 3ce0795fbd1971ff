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
use self::told::{Depth, Heard, Told};
use crate::headroom::PACING_SLACK;
use crate::pfc::PriorityMap;
use crate::plan::spec::SwitchSpec;
use crate::qos::Shaper;
use crate::qos::joint_pacer::JointPacer;
use crate::qos::joint_wire::JointWire;
use crate::sets::{CLASSES, PortSet};

/// Bytes of a frame around the largest IP packet: Ethernet header and two tags.
const HEADERS: u16 = 22;

/// The joint ports of the switch, as one lcore sees them.
#[derive(Debug, Clone)]
pub(crate) struct JointPorts {
    pub ports: PortSet,
    /// Frames that other lcores had sent by own ports at the last look before a rest.
    pub guests_sent: u64,
    told: Arc<Told>,
    /// Ports for which other lcores held frames at the last look.
    standing: Heard,
    /// Ports for which this lcore has told the others that it holds frames.
    told_standing: PortSet,
    /// Ports of other lcores whose watchdogs dropped frames at the last look.
    dropping: Heard,
}

impl JointPorts {
    /// Ends the part of `lcore`, which owns `own`, in joint ports. It hears no pause any more, so it stops the queues
    /// of its ports that obey pauses on all other lcores. They drop the frames there when the switch ends. It sends no
    /// frame any more, so its frames are not told.
    pub fn leave(&self, lcore: usize, own: PortSet) {
        for port in (self.ports & own).iter() {
            self.told.stop_obeyed(port);
        }
        for (port, queue) in self.ports.iter().flat_map(|port| (0..CLASSES).map(move |queue| (port, queue))) {
            self.told.tell_depth(lcore, port, queue, Depth::default());
        }
        self.told.tell_standing(lcore, PortSet::EMPTY);
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
        for port in ports.iter() {
            let of_port = &spec.ports[port];
            told.note_obeyed(port, map.queues(of_port.pfc.obeyed(spec.lossless_queues(of_port), &map)));
        }
        let view = || Self {
            ports,
            guests_sent: 0,
            told: told.clone(),
            standing: Heard::default(),
            told_standing: PortSet::EMPTY,
            dropping: Heard::default(),
        };
        (0..lcores).map(|lcore| (view(), (0..spec.ports.len()).map(|port| side(lcore, port)).collect())).collect()
    }
}
