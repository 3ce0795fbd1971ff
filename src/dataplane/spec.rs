//! What a switch is made of: the validated plan from which a [`super::Pipeline`] is built.

use crate::forward::{FdbSpec, VlanMode};
use crate::mmu::{BufferPlan, GroupProfile, QueueLimit};
use crate::qos::{CLASSES, ClassMap, QueueDiscipline, Trust, WredProfile};
use crate::units::{BitRate, Nanos};
use crate::wire::MacAddr;

/// One port.
#[derive(Debug, Clone)]
pub struct PortSpec {
    /// Name in metrics, tables and errors.
    pub name: String,
    /// The port's own address: source of its PFC frames.
    pub mac: MacAddr,
    /// Rate the port is paced to, and by which pause times are counted.
    pub rate: BitRate,
    /// Largest IP packet in bytes; a frame may have 14 bytes of Ethernet and two tags on top.
    pub mtu: u16,
    /// What decides the class of a frame received here.
    pub trust: Trust,
    /// Class of frames that carry nothing trusted.
    pub port_class: u8,
    /// VLANs of the port.
    pub vlan: VlanMode,
    /// Whether PFC is generated and obeyed here.
    pub pfc: bool,
    /// Per priority group, how it uses the buffer.
    pub groups: [GroupProfile; CLASSES],
}

impl PortSpec {
    /// Priority groups that are lossless here, as a mask.
    #[must_use]
    pub fn lossless_groups(&self) -> u8 {
        let bit = |(group, profile): (usize, &GroupProfile)| u8::from(profile.lossless) << group;
        self.groups.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }
}

/// One egress queue; the same on every port.
#[derive(Debug, Clone, Copy)]
pub struct QueueSpec {
    /// Strict or a DWRR weight.
    pub discipline: QueueDiscipline,
    /// ECN and, in lossy classes, early drop.
    pub wred: Option<WredProfile>,
    /// For lossy queues; a lossless queue is bounded by its groups.
    pub limit: Option<QueueLimit>,
}

/// The whole switch.
#[derive(Debug, Clone)]
pub struct SwitchSpec {
    /// Ports by index; at most [`crate::packet::MAX_PORTS`].
    pub ports: Vec<PortSpec>,
    /// The division of the buffer.
    pub buffer: BufferPlan,
    /// The maps.
    pub classes: ClassMap,
    /// Per queue, how it is served.
    pub queues: [QueueSpec; CLASSES],
    /// The forwarding database.
    pub fdb: FdbSpec,
    /// How late a poll may come: a poll takes what may have arrived since the one before.
    pub poll_gap: Nanos,
}

impl SwitchSpec {
    /// Which priority groups are lossless on any port, as a mask.
    #[must_use]
    pub fn lossless_groups(&self) -> u8 {
        self.ports.iter().fold(0, |mask, port| mask | port.lossless_groups())
    }
}
