//! What a switch is made of: the validated plan from which a [`super::Pipeline`] is built.

use crate::forward::{FdbSpec, VlanMode};
use crate::mmu::{BufferPlan, GroupProfile, PortProfile, QueueLimit, QueueProfile, QueueReserves};
use crate::pfc::{PfcMode, WatchdogSpec};
use crate::qos::{ClassMap, MarkMap, QueueDiscipline, Rewrite, Trust, WredProfile};
use crate::sets::CLASSES;
use crate::units::{BitRate, Cells, Nanos};
use crate::wire::MacAddr;

/// One port.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// From marks to classes, for frames received here.
    pub marks: MarkMap,
    /// Marks that frames get when they leave here.
    pub rewrite: Rewrite,
    /// VLANs of the port.
    pub vlan: VlanMode,
    /// Whether PFC is generated and obeyed here, and for which priorities.
    pub pfc: PfcMode,
    /// Watches for peers that pause a class and never let go; `None`: nobody watches.
    pub watchdog: Option<WatchdogSpec>,
    /// For how long the device may take none of the frames that it is offered until the port counts as stuck; `None`: for
    /// ever.
    pub stuck_after: Option<Nanos>,
    /// How the port and its priority groups use the buffer.
    pub buffer: PortProfile,
    /// Frames left in the receive ring after a poll from which on the lossless groups go XOFF: the core cannot keep up.
    /// `None`: never.
    pub backlog_mark: Option<u32>,
    /// Which dataplane lcore owns the port, from zero.
    pub lcore: u8,
}

impl PortSpec {
    /// A port of VLAN 1 with the defaults: an MTU of 1500, DSCP trusted by its class selector, PFC on, independent
    /// headroom, no watchdog, never stuck, on the first lcore.
    #[must_use]
    pub fn new(name: String, mac: MacAddr, rate: BitRate, groups: [GroupProfile; CLASSES]) -> Self {
        Self {
            name,
            mac,
            rate,
            mtu: 1500,
            trust: Trust::Dscp,
            port_class: 0,
            marks: MarkMap::identity(),
            rewrite: Rewrite::default(),
            vlan: VlanMode::Access(1),
            pfc: PfcMode::Symmetric,
            watchdog: None,
            stuck_after: None,
            buffer: PortProfile::independent(groups),
            backlog_mark: None,
            lcore: 0,
        }
    }

    /// Priority groups that are lossless here, as a mask.
    #[must_use]
    pub fn lossless_groups(&self) -> u8 {
        let bit = |(group, profile): (usize, &GroupProfile)| u8::from(profile.lossless) << group;
        self.buffer.groups.iter().enumerate().map(bit).fold(0, |mask, bit| mask | bit)
    }
}

/// One egress queue; equal on every port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// Strict or a DWRR weight.
    pub discipline: QueueDiscipline,
    /// ECN and, in lossy classes, early drop.
    pub wred: Option<WredProfile>,
    /// For lossy queues; a lossless queue is bounded by its groups.
    pub limit: Option<QueueLimit>,
    /// Cells of the lossy pool that are kept for each such queue; zero for a lossless one, which is never refused.
    pub reserve: Cells,
}

impl QueueSpec {
    /// How the queue uses the lossy pool.
    #[must_use]
    pub fn admission(&self) -> QueueProfile {
        QueueProfile { reserve: self.reserve, limit: self.limit, wred: self.wred }
    }
}

/// The whole switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Ports by index; at most [`crate::sets::MAX_PORTS`].
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
    /// Dataplane lcores among which the ports are spread; one at least.
    pub lcores: u8,
    /// Lossless frames for unknown stations and groups are flooded and not dropped. No configuration says so: it is for
    /// the simulator, which shows the deadlock that comes of it (Guo et al. 2016).
    pub floods_lossless: bool,
}

impl SwitchSpec {
    /// Queues that hold frames of lossless classes when `port` is where they came in, as a mask: the port's own lossless
    /// groups say which classes these are.
    #[must_use]
    pub fn lossless_queues(&self, port: &PortSpec) -> u8 {
        let groups = port.lossless_groups();
        let classes = (0..CLASSES).filter(|&class| groups >> (self.classes.tc_to_group[class] & 7) & 1 == 1);
        classes.fold(0, |mask, class| mask | 1 << (self.classes.tc_to_queue[class] & 7))
    }

    /// The reserves of the queues, as each lcore sees them.
    #[must_use]
    pub fn queue_reserves(&self) -> Vec<QueueReserves> {
        let owners: Vec<u8> = self.ports.iter().map(|port| port.lcore).collect();
        QueueReserves::fleet(self.queues.map(|queue| queue.reserve), &owners, self.lcores)
    }

    /// Which priority groups are lossless on any port, as a mask.
    #[must_use]
    pub fn lossless_groups(&self) -> u8 {
        self.ports.iter().fold(0, |mask, port| mask | port.lossless_groups())
    }
}
