//! The specification of a switch: the validated plan from which a pipeline is built.

use crate::forward::{Fdb, FdbSpec, LagsSpec, StaticEntry, VlanMode};
use crate::mmu::{AbmSpec, BufferPlan, GroupProfile, HpccRules, PortProfile, QueueLimit, QueueProfile, QueueReserves};
use crate::pfc::{PfcMode, WatchdogSpec};
use crate::plan::mirror::MirrorSpec;
use crate::qos::{
    ClassMap, CongestionPointSpec, FloodKind, FloodLimits, MarkMap, MaxRate, QueueDiscipline, Rewrite, Trust,
    WredProfile,
};
use crate::route::{ROUTER_PORT, RoutingSpec};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{BitRate, Cells, Nanos};
use crate::wire::MacAddr;

/// Upper bound on the cells of a buffer: a queue counts cells and bytes in one word.
pub const MAX_CELLS: u32 = 1 << 28;

/// Specification of one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// Name in metrics, tables and errors.
    pub name: String,
    /// The port's own address: source of its PFC frames.
    pub mac: MacAddr,
    /// Rate to which the port is paced, and by which pause times are counted.
    pub rate: BitRate,
    /// Largest IP packet in bytes; a frame may have 14 bytes of Ethernet and two tags on top.
    pub mtu: u16,
    /// Whether frames received here are dropped if their transport header has a defect. Packets to the router always
    /// are.
    pub checks_l4: bool,
    /// VLANs of the port. Those of a port that bridges may change while the switch runs.
    pub vlan: VlanMode,
    /// Most stations that are learned at the port. Those of a group count at its head.
    pub fdb_limit: u32,
    /// Whether PFC is generated and obeyed here, and for which priorities.
    pub pfc: PfcMode,
    /// Time that the peer has to stop when it gets XOFF: `headroom::reaction`.
    pub reaction: Nanos,
    /// Buffer settings of the port and its priority groups. All but the policy may change while the switch runs.
    pub buffer: PortProfile,
    /// Number of frames left in the receive ring after a poll at which the lossless groups turn XOFF, because the core
    /// cannot keep up. `None`: never.
    pub backlog_mark: Option<u32>,
    /// Frames that a receive ring holds; `None`: unknown.
    pub ring_frames: Option<u16>,
    /// Receive queues, one to eight.
    pub rx_queues: u8,
    /// Transmit queues of the device that lcores may use. With one for each lcore, every lcore sends by the port.
    pub tx_queues: u8,
    /// Number of the dataplane lcore that owns the port, from zero.
    pub lcore: u8,
    /// Whether the port has no device until a change gives it one. It has no part of the buffer meanwhile.
    pub is_absent: bool,
    /// Settings that may change while the switch runs.
    pub live: PortLive,
}

/// Reaction of a peer of which nothing is known: five poll gaps of 20 us.
const USUAL_REACTION: Nanos = Nanos(100_000);

/// Settings of a port that may change while the switch runs: none determines memory or headroom. The classes of a
/// device with several queues, and whether a joint port is limited, need a restart all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortLive {
    /// Whether the port is in use; a port that is not is shut: it forwards nothing in either direction.
    pub is_enabled: bool,
    /// The operator's words about the port; empty: none.
    pub description: String,
    /// The mark that decides the class of a frame received here.
    pub trust: Trust,
    /// Class of frames without a trusted mark.
    pub port_class: u8,
    /// Map from marks to classes, for frames received here.
    pub marks: MarkMap,
    /// Marks that frames get when they leave here.
    pub rewrite: Rewrite,
    /// Maximum rates of the egress queues; `None`: only the rate of the port bounds the queue.
    pub max_rates: [Option<MaxRate>; CLASSES],
    /// The most frames received here that are flooded.
    pub flood_limits: FloodLimits,
    /// Settings of the watchdog against peers that pause a class without end; `None`: no watchdog.
    pub watchdog: Option<WatchdogSpec>,
    /// Time without a frame taken by the device, while frames are offered, after which the port counts as stuck;
    /// `None`: never.
    pub stuck_after: Option<Nanos>,
}

impl Default for PortLive {
    fn default() -> Self {
        Self {
            is_enabled: true,
            description: String::new(),
            trust: Trust::Dscp,
            port_class: 0,
            marks: MarkMap::identity(),
            rewrite: Rewrite::default(),
            max_rates: [None; CLASSES],
            flood_limits: [None; FloodKind::COUNT],
            watchdog: None,
            stuck_after: None,
        }
    }
}

impl PortSpec {
    /// Creates a port of VLAN 1 with the defaults: an MTU of 1500, DSCP trusted by its class selector, PFC on,
    /// independent headroom, no watchdog, never stuck, on the first lcore.
    #[must_use]
    pub fn new(name: String, mac: MacAddr, rate: BitRate, groups: [GroupProfile; CLASSES]) -> Self {
        Self {
            name,
            mac,
            rate,
            mtu: 1500,
            checks_l4: false,
            vlan: VlanMode::Access(1),
            fdb_limit: u32::MAX,
            pfc: PfcMode::Symmetric,
            reaction: USUAL_REACTION,
            buffer: PortProfile::independent(groups),
            backlog_mark: None,
            ring_frames: None,
            rx_queues: 1,
            tx_queues: 1,
            lcore: 0,
            is_absent: false,
            live: PortLive::default(),
        }
    }

    /// Whether the port forwards nothing in either direction: the operator has shut it, or it has no device.
    #[must_use]
    pub fn is_shut(&self) -> bool {
        self.is_absent || !self.live.is_enabled
    }

    /// Whether `wanted` differs in what the port can take only while it is out: shut and without frames.
    #[must_use]
    pub fn is_replaced_by(&self, wanted: &Self) -> bool {
        self.with_replaced(wanted) != *self
    }

    /// This port with the settings of `wanted` that it can take while it is out.
    fn with_replaced(&self, wanted: &Self) -> Self {
        Self {
            mac: wanted.mac,
            rate: wanted.rate,
            mtu: wanted.mtu,
            pfc: wanted.pfc,
            ring_frames: wanted.ring_frames,
            is_absent: wanted.is_absent,
            ..self.clone()
        }
    }

    /// Whether the switch chooses the receive queues that it polls, and knows what they carry.
    #[must_use]
    pub fn has_managed_queues(&self) -> bool {
        self.rx_queues > 1 || self.pfc == PfcMode::Queue
    }

    /// Whether the port bridges: its VLANs are those of the configuration.
    #[must_use]
    pub fn bridges(&self) -> bool {
        !matches!(self.vlan, VlanMode::Routed(_))
    }

    /// Whether an egress queue of the port has a maximum rate.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.live.max_rates.iter().any(Option::is_some)
    }

    /// Priority groups that are lossless here.
    #[must_use]
    pub fn lossless_groups(&self) -> ClassSet {
        (0..CLASSES).filter(|&group| self.buffer.groups[group].lossless).collect()
    }
}

/// Specification of one egress queue; equal on every port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSpec {
    /// Strict priority or a DWRR weight.
    pub discipline: QueueDiscipline,
    /// ECN and, in lossy classes, early drop.
    pub wred: Option<WredProfile>,
    /// Limit of a lossy queue; a lossless queue is bounded by its groups.
    pub limit: Option<QueueLimit>,
    /// Cells of the lossy pool reserved for each such queue; zero for a lossless one, which is never refused.
    pub reserve: Cells,
}

impl QueueSpec {
    /// The queue's use of the lossy pool.
    #[must_use]
    pub fn admission(&self) -> QueueProfile {
        QueueProfile { reserve: self.reserve, limit: self.limit, wred: self.wred }
    }
}

/// Specification of the whole switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Ports by index; at most [`crate::sets::MAX_PORTS`].
    pub ports: Vec<PortSpec>,
    /// The division of the buffer.
    pub buffer: BufferPlan,
    /// Maps between classes, priority groups, queues and PFC priorities.
    pub classes: ClassMap,
    /// Specification of each queue.
    pub queues: [QueueSpec; CLASSES],
    /// Settings of the forwarding database. Its entries name a link aggregation group by its head.
    pub fdb: FdbSpec,
    /// Link aggregation groups.
    pub lags: LagsSpec,
    /// The longest gap between two polls: a poll must receive all that may have arrived since the one before.
    pub poll_gap: Nanos,
    /// Number of dataplane lcores that share the ports; at least one.
    pub lcores: u8,
    /// Whether lossless frames to unknown stations and groups are flooded and not dropped. No configuration sets it: it
    /// is for the simulator, which shows the resulting deadlock (Guo et al. 2016).
    pub floods_lossless: bool,
    /// Rules of HPCC's simulator by which the buffer decides. No configuration sets them: they are for the simulator,
    /// to explain published results.
    pub hpcc: HpccRules,
    /// Active Buffer Management of lossy queues; `None`: Dynamic Threshold alone.
    pub abm: Option<AbmSpec>,
    /// Whether the buffer decides as Reverie: ABM compares filtered depths and measures no drain rates, filtered shares
    /// pause lossless groups, and both shared pools are one. No configuration sets it: it is for the simulator, to
    /// compare.
    pub reverie: bool,
    /// Queues whose marked packets get notes of in-band telemetry ([`crate::wire::inband`]).
    pub telemetry_queues: ClassSet,
    /// The congestion point of each queue, which sends messages of QCN ([`crate::qos::qcn`]); `None`: it has none.
    pub congestion_points: [Option<CongestionPointSpec>; CLASSES],
    /// The router; `None`: the switch only bridges.
    pub routing: Option<RoutingSpec>,
    /// Frames that are copied.
    pub mirror: MirrorSpec,
}

impl SwitchSpec {
    /// This plan with all settings of `wanted` that may change while a switch runs by this one. It is `wanted` itself
    /// if no other setting differs. Devices, which a plan does not know, may keep more of them.
    #[must_use]
    pub fn with_live_of(&self, wanted: &Self) -> Self {
        let mut spec = self.clone();
        let keeps_classes = self.obstacle_of_classes().or(wanted.obstacle_of_classes()).is_some();
        for (index, (port, new)) in spec.ports.iter_mut().zip(&wanted.ports).enumerate() {
            if self.obstacle(index).or(wanted.obstacle(index)).is_none() {
                *port = port.with_replaced(new);
            }
            // A joint port would get an owner with its first maximum rate, and lose it with the last one.
            let keeps_owner = !self.may_be_joint(index) || port.is_limited() == new.is_limited();
            let max_rates = if keeps_owner { new.live.max_rates } else { port.live.max_rates };
            port.live = PortLive { max_rates, ..new.live.clone() };
            if port.bridges() && new.bridges() && !self.mirror.outputs.contains(index) {
                port.vlan = new.vlan.clone();
            }
            (port.reaction, port.checks_l4, port.fdb_limit) = (new.reaction, new.checks_l4, new.fdb_limit);
            port.backlog_mark = new.backlog_mark;
            let keeps_sizes = self.has_fixed_sizes();
            for (group, new) in port.buffer.groups.iter_mut().zip(&new.buffer.groups) {
                let GroupProfile { lossless, reserve, headroom, .. } = *group;
                *group = if keeps_sizes { GroupProfile { reserve, headroom, ..*new } } else { *new };
                group.lossless = if keeps_classes { lossless } else { new.lossless };
            }
            if !keeps_sizes {
                (port.buffer.reserve, port.buffer.insurance) = (new.buffer.reserve, new.buffer.insurance);
            }
        }
        if !self.has_fixed_sizes() {
            let BufferPlan { cell, total, policy, .. } = self.buffer;
            spec.buffer = BufferPlan { cell, total, policy, ..wanted.buffer };
        }
        for (queue, new) in spec.queues.iter_mut().zip(&wanted.queues) {
            let QueueSpec { discipline, wred, limit, reserve: _ } = *new;
            *queue = QueueSpec { discipline, wred, limit, ..*queue };
        }
        spec.fdb.entries.clone_from(&wanted.fdb.entries);
        spec.mirror = MirrorSpec { outputs: self.mirror.outputs, ..wanted.mirror.clone() };
        if let (Some(routing), Some(new)) = (&mut spec.routing, &wanted.routing) {
            (routing.routes, routing.neighbours) = (new.routes.clone(), new.neighbours.clone());
            for (interface, new) in routing.interfaces.iter_mut().zip(&new.interfaces) {
                (interface.addresses, interface.ports) = (new.addresses.clone(), new.ports);
            }
        }
        spec
    }

    /// Ports that must be out to take the settings of `wanted`: see [`PortSpec::is_replaced_by`].
    #[must_use]
    pub fn replaced_by(&self, wanted: &Self) -> PortSet {
        let ports = self.ports.iter().zip(&wanted.ports).enumerate();
        ports.filter(|(_, (port, new))| port.is_replaced_by(new)).map(|(index, _)| index).collect()
    }

    /// The reason for which `port` cannot be taken out and put in again with other settings while the switch runs;
    /// `None`: it can.
    #[must_use]
    pub fn obstacle(&self, port: usize) -> Option<&'static str> {
        let spec = self.ports.get(port)?;
        match () {
            () if spec.has_managed_queues() => Some("the port has several receive queues, or `pfc: queue`"),
            () if self.may_be_joint(port) => Some("every lcore sends by the port"),
            () if self.has_measures() => Some("the switch has a queue policy, telemetry or congestion points"),
            () if self.has_fixed_sizes() => Some("the buffer decides by the rules of another simulator"),
            () => None,
        }
    }

    /// The reason for which no class can become lossless or lossy while the switch runs; `None`: each can.
    #[must_use]
    pub fn obstacle_of_classes(&self) -> Option<&'static str> {
        match () {
            () if self.ports.iter().any(PortSpec::has_managed_queues) => {
                Some("a port has several receive queues, or `pfc: queue`")
            }
            () if self.has_fixed_sizes() => Some("the buffer decides by the rules of another simulator"),
            () => None,
        }
    }

    /// Whether the switch measures rates of ports: for ABM, telemetry or QCN.
    fn has_measures(&self) -> bool {
        self.abm.is_some() || !self.telemetry_queues.is_empty() || self.has_congestion_points()
    }

    /// Whether the parts of the buffer keep their sizes while the switch runs: with the rules of other simulators.
    fn has_fixed_sizes(&self) -> bool {
        self.reverie || !self.hpcc.is_empty()
    }

    /// Queues that hold frames of lossless classes received by `port`. The port's own lossless groups decide which
    /// classes these are.
    #[must_use]
    pub fn lossless_queues(&self, port: &PortSpec) -> ClassSet {
        let groups = port.lossless_groups();
        let classes = (0..CLASSES).filter(|&class| groups.contains(usize::from(self.classes.tc_to_group[class] & 7)));
        classes.map(|class| usize::from(self.classes.tc_to_queue[class] & 7)).collect()
    }

    /// Joint ports: every lcore sends by its own transmit queue, so that frames stay on the lcore that received them.
    /// Reserves of queues, telemetry, ABM and QCN need one owner of each port, so with them there are none. A maximum
    /// rate of a queue needs an owner of its port.
    #[must_use]
    pub fn joint_ports(&self) -> PortSet {
        (0..self.ports.len()).filter(|&port| !self.ports[port].is_limited() && self.may_be_joint(port)).collect()
    }

    /// Whether `port` is a joint port if none of its queues has a maximum rate.
    #[must_use]
    pub fn may_be_joint(&self, port: usize) -> bool {
        let has_reserve = self.queues.iter().any(|queue| queue.reserve > Cells(0));
        let needs_owner = self.has_measures() || has_reserve;
        self.lcores > 1 && !needs_owner && self.ports[port].tx_queues >= self.lcores
    }

    /// Ports that forward nothing: see [`PortSpec::is_shut`].
    #[must_use]
    pub fn shut_ports(&self) -> PortSet {
        (0..self.ports.len()).filter(|&port| self.ports[port].is_shut()).collect()
    }

    /// Whether any queue is a congestion point of QCN.
    #[must_use]
    pub fn has_congestion_points(&self) -> bool {
        self.congestion_points.iter().any(Option::is_some)
    }

    /// The reserves of the queues, as one view for each lcore.
    #[must_use]
    pub fn queue_reserves(&self) -> Vec<QueueReserves> {
        let owners: Vec<u8> = self.ports.iter().map(|port| port.lcore).collect();
        QueueReserves::fleet(self.queues.map(|queue| queue.reserve), &owners, self.lcores)
    }

    /// The router's stations, as entries of the forwarding database.
    pub fn router_entries(&self) -> impl Iterator<Item = StaticEntry> + '_ {
        let interfaces = self.routing.iter().flat_map(|routing| &routing.interfaces);
        interfaces.map(|interface| StaticEntry { vlan: interface.vlan, mac: interface.mac, port: ROUTER_PORT as u8 })
    }

    /// The forwarding database with the static entries of the configuration and the router's stations.
    #[must_use]
    pub fn whole_fdb(&self) -> FdbSpec {
        let entries = self.fdb.entries.iter().copied().chain(self.router_entries());
        FdbSpec { entries: entries.collect(), ..self.fdb }
    }

    /// Gives the forwarding database the first of `seeds` with which all static entries find a place. Without one it
    /// keeps the fixed hash.
    pub fn seed_fdb(&mut self, seeds: impl IntoIterator<Item = u64>) {
        let whole = self.whole_fdb();
        let spec = |seed: u64| FdbSpec { seed, ..whole.clone() };
        // Four fit in one bucket.
        let fits = |seed: &u64| whole.entries.len() <= Fdb::WAYS || Fdb::try_new(&spec(*seed), 1).is_ok();
        self.fdb.seed = seeds.into_iter().find(fits).unwrap_or_default();
    }

    /// Traffic classes whose group is lossless on any port.
    #[must_use]
    pub fn lossless_classes(&self) -> ClassSet {
        let groups = self.lossless_groups();
        (0..CLASSES).filter(|&class| groups.contains(usize::from(self.classes.tc_to_group[class] & 7))).collect()
    }

    /// Priority groups that are lossless on any port.
    #[must_use]
    pub fn lossless_groups(&self) -> ClassSet {
        self.ports.iter().fold(ClassSet::EMPTY, |groups, port| groups | port.lossless_groups())
    }
}
