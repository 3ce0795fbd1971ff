//! Whom the statistics are about: what is fixed while the switch runs, and where its counters are.

use std::sync::Arc;

use serde::Serialize;

use super::device::DeviceCounters;
use crate::dataplane::{Counters, PortSpec, SwitchSpec};
use crate::hosts::HostCounters;
use crate::mmu::headroom::HeadroomInput;
use crate::qos::CLASSES;
use crate::units::Length;

/// Whether a port's PFC can be relied upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PfcStanding {
    /// It generates and obeys PFC, and has shown it, or its peer is in this process.
    Proven,
    /// It is on, but nothing has shown that its frames leave and its peer obeys.
    Unproven,
    /// It is off.
    Off,
}

impl PfcStanding {
    /// In metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Unproven => "unproven",
            Self::Off => "off",
        }
    }
}

/// A running switch as its observers see it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Version of the program.
    pub version: &'static str,
    /// What the switch is made of.
    pub spec: SwitchSpec,
    /// Traffic classes that are meant to be lossless, as a mask. A loss in one of them breaks the promise even where a
    /// port cannot keep it.
    pub lossless: u8,
    /// Per port.
    pub pfc: Vec<PfcStanding>,
    /// Per port, what its groups' headroom is computed from, with the poll gap of the configuration.
    pub links: Vec<HeadroomInput>,
    /// Counters of the packet path.
    pub counters: Arc<Counters>,
    /// Per port, counters of the device behind it.
    pub devices: Arc<[DeviceCounters]>,
    /// Counters of the virtual hosts, if there are any.
    pub hosts: Option<Arc<HostCounters>>,
}

impl Subject {
    /// A switch without virtual hosts, whose ports that have PFC count as unproven and whose cables as of no length until
    /// told otherwise, and whose lossless classes are those with a lossless group on any port.
    #[must_use]
    pub fn new(spec: SwitchSpec, counters: Arc<Counters>) -> Self {
        let groups = spec.lossless_groups();
        let lossless = (0..CLASSES)
            .filter(|&class| groups >> (spec.classes.tc_to_group[class] & 7) & 1 == 1)
            .fold(0, |mask, class| mask | 1 << class);
        let link = |port: &PortSpec| HeadroomInput {
            rate: port.rate,
            cable: Length { mm: 0 },
            mtu: port.mtu,
            poll_gap: spec.poll_gap,
            posted: HeadroomInput::posted_by_pacing(port.rate),
            cell: spec.buffer.cell,
            peer_response: None,
        };
        let pfc = |on| if on { PfcStanding::Unproven } else { PfcStanding::Off };
        Self {
            version: env!("HOLDFAST_VERSION"),
            lossless,
            pfc: spec.ports.iter().map(|port| pfc(port.pfc.is_on())).collect(),
            devices: spec.ports.iter().map(|_| DeviceCounters::default()).collect(),
            links: spec.ports.iter().map(link).collect(),
            counters,
            hosts: None,
            spec,
        }
    }

    /// Whether traffic class `class` is meant to be lossless.
    #[must_use]
    pub fn is_lossless(&self, class: usize) -> bool {
        self.lossless >> class & 1 == 1
    }

    /// Whether the peer of port `port` is a virtual host, which is polled at the same instants as the port: no poll gap
    /// lets its frames pile up, since it stands still meanwhile.
    #[must_use]
    pub fn is_in_process(&self, port: usize) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.hosts.iter().any(|host| host.port == port))
    }

    /// Priority groups of port `port` that are lossless and have PFC to be so, as a mask.
    #[must_use]
    pub fn guarded_groups(&self, port: usize) -> u8 {
        self.spec.ports.get(port).filter(|port| port.pfc.is_on()).map_or(0, PortSpec::lossless_groups)
    }

    /// Priority group `group` as people know it: by its traffic class, if it has just one.
    #[must_use]
    pub fn group_name(&self, group: usize) -> String {
        class_or(&self.spec.classes.tc_to_group, group, "group")
    }

    /// Egress queue `queue` as people know it: by its traffic class, if it has just one.
    #[must_use]
    pub fn queue_name(&self, queue: usize) -> String {
        class_or(&self.spec.classes.tc_to_queue, queue, "queue")
    }

    /// Name of port `port`.
    #[must_use]
    pub fn port_name(&self, port: usize) -> &str {
        self.spec.ports.get(port).map_or("?", |port| &port.name)
    }

    /// A number that changes with any setting of the switch (64-bit FNV-1a over all of them).
    #[must_use]
    pub fn config_hash(&self) -> u64 {
        let text = format!("{:?}", self.spec);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// `class 3` if that alone is mapped to `target`, else `target` by its own kind and number.
fn class_or(map: &[u8; CLASSES], target: usize, kind: &str) -> String {
    let mut classes = (0..CLASSES).filter(|&class| usize::from(map[class]) == target);
    match (classes.next(), classes.next()) {
        (Some(class), None) => format!("class {class}"),
        _ => format!("{kind} {target}"),
    }
}
