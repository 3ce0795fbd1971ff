//! The switch that the statistics describe: its settings, and references to its counters.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::device::{BufferPool, DeviceCounters};
use super::flow_control::{DeviceFlowControl, FlowControls};
use super::former::FormerDrops;
use super::health::Health;
use super::pending::PendingCell;
use super::watermarks::Watermarks;
use crate::config::settings::Settings;
use crate::faults::FaultBoard;
use crate::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets, posting_gap};
use crate::hosts::HostCounters;
use crate::lacp;
use crate::lldp::Board;
use crate::mirror::{self, MirrorConfig};
use crate::pfc::PfcMode;
use crate::plan::{BuildFacts, Counters, DropReason, PortSpec, SwitchSpec};
use crate::qos::only_class;
use crate::router::Published;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Length, Nanos};

/// Whether a port's PFC can be relied upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PfcStanding {
    /// PFC is on, and the peer is in this process, obeys, and has received a PFC frame of this port. Or the peer was
    /// seen to stop at XOFF of each lossless priority. Or XOFF stops a receive queue whose device keeps the frames, so
    /// that no peer has to obey.
    Proven,
    /// PFC is on, and the operator asserts that frames pass and the peer obeys (`pfc_proven`). No measurement has
    /// refuted it.
    Trusted,
    /// PFC is on, but it is not shown that its frames leave and the peer obeys, or the peer was seen to disobey, or the
    /// device pauses by itself.
    Unproven,
    /// PFC is off.
    Off,
}

impl PfcStanding {
    /// The word for it in metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Trusted => "trusted",
            Self::Unproven => "unproven",
            Self::Off => "off",
        }
    }

    /// Whether the port counts as lossless: PFC was seen to work, or the operator asserts it.
    #[must_use]
    pub fn is_relied_upon(self) -> bool {
        matches!(self, Self::Proven | Self::Trusted)
    }
}

/// A running switch as its observers see it: settings and references to counters.
#[derive(Debug, Clone)]
pub struct SwitchView {
    /// Facts about the build.
    pub build: BuildFacts,
    /// The settings of the switch.
    pub spec: SwitchSpec,
    /// The traffic classes that are lossless. A loss in one of them breaks the promise even if its port cannot keep it.
    /// A class that a reload makes lossless is one when all ports have its headroom.
    pub lossless: ClassSet,
    /// Drops of classes that a reload has made lossless or lossy.
    pub former: FormerDrops,
    /// PFC standing of each port as known before it runs; [`SwitchView::standing`] returns the current one.
    pub pfc: Vec<PfcStanding>,
    /// For each port, the virtual host behind it that obeys PFC; the counters of that host prove the port's PFC.
    pub witnesses: Vec<Option<usize>>,
    /// The device's own flow control of each port.
    pub flow_control: Arc<FlowControls>,
    /// For each port, the driver if it does not report frames lost in front of it; `None` if the device counts them.
    pub blind: Vec<Option<String>>,
    /// For each port, the input of the headroom formula, with the configured poll gap.
    pub links: Vec<HeadroomInput>,
    /// For each lcore, its longest rest without traffic; `None` if it always polls.
    pub rests: Vec<Option<Nanos>>,
    /// Counters of the packet path.
    pub counters: Arc<Counters>,
    /// For each port, counters of the device behind it.
    pub devices: Arc<[DeviceCounters]>,
    /// Pools of packet buffers; empty without DPDK.
    pub pools: Arc<[BufferPool]>,
    /// Watermarks from before the last clearing.
    pub watermarks: Arc<Watermarks>,
    /// Health checks of the lcores.
    pub health: Arc<Health>,
    /// State of the router; `None` if the switch does not route.
    pub router: Option<Arc<Published>>,
    /// State of LLDP; `None` if no port can have a neighbour.
    pub lldp: Option<Arc<Board>>,
    /// Injected faults; `None` if the configuration does not allow any.
    pub faults: Option<Arc<FaultBoard>>,
    /// State of link aggregation groups; `None` if there are none.
    pub lacp: Option<Arc<lacp::Board>>,
    /// Names and destinations of the sessions of [`SwitchSpec::mirror`], and the agent of sFlow.
    pub mirror_config: MirrorConfig,
    /// State of the exporters of copies; `None` if nothing exports any.
    pub mirror: Option<Arc<mirror::Board>>,
    /// Counters of the virtual hosts, if there are any.
    pub hosts: Option<Arc<HostCounters>>,
    /// The settings of the configuration; none without one.
    pub settings: Arc<Settings>,
    /// Cells that the last reload has not given to other parts of the buffer yet.
    pub pending: Arc<PendingCell>,
}

impl SwitchView {
    /// A switch without virtual hosts. Ports with PFC count as unproven, and cables have length zero until they are
    /// set. A class is lossless if its group is lossless on any port.
    #[must_use]
    pub fn new(spec: SwitchSpec, counters: Arc<Counters>) -> Self {
        let pfc = |mode| match mode {
            PfcMode::Off => PfcStanding::Off,
            PfcMode::Queue => PfcStanding::Proven,
            PfcMode::Symmetric | PfcMode::Asymmetric | PfcMode::Nic => PfcStanding::Unproven,
        };
        Self {
            build: BuildFacts::default(),
            lossless: spec.lossless_classes(),
            former: FormerDrops::default(),
            pfc: spec.ports.iter().map(|port| pfc(port.pfc)).collect(),
            witnesses: vec![None; spec.ports.len()],
            flow_control: Arc::new(FlowControls::new(spec.ports.len())),
            blind: vec![None; spec.ports.len()],
            devices: spec.ports.iter().map(|_| DeviceCounters::default()).collect(),
            links: links(&spec, SmallPackets::ALL),
            rests: vec![None; spec.lcores.into()],
            counters,
            pools: Arc::default(),
            watermarks: Arc::default(),
            health: Arc::default(),
            router: spec.routing.as_ref().map(|_| Arc::default()),
            lldp: None,
            faults: None,
            lacp: None,
            mirror_config: MirrorConfig::default(),
            mirror: None,
            hosts: None,
            settings: Arc::default(),
            pending: Arc::default(),
            spec,
        }
    }

    /// Returns this switch by `spec` and its `settings`, which differ only in what may change at run time. Cables have
    /// length zero until they are set. No class becomes lossless yet.
    #[must_use]
    pub fn tuned(&self, spec: SwitchSpec, settings: Arc<Settings>) -> Self {
        let small_packets = self.links.first().map_or(SmallPackets::ALL, |link| link.small_packets);
        let lossless = self.lossless & spec.lossless_classes();
        Self { links: links(&spec, small_packets), spec, settings, ..self.with_lossless(lossless) }
    }

    /// Returns this switch with the lossless classes `lossless` from now on. What a class has dropped while it was
    /// lossless stays a loss, and what it has dropped while it was not is none.
    #[must_use]
    pub fn with_lossless(&self, lossless: ClassSet) -> Self {
        let former = self.former.after(self, lossless);
        Self { lossless, former, ..self.clone() }
    }

    /// The traffic classes that are lossless, or were so at some time.
    #[must_use]
    pub fn ever_lossless(&self) -> ClassSet {
        self.lossless | self.former.lossless
    }

    /// Returns this switch with the cables and peers of its ports: length, and the time until the peer obeys an XOFF;
    /// `None`: by speed.
    #[must_use]
    pub fn with_cables(mut self, ports: impl IntoIterator<Item = (Length, Option<Nanos>)>) -> Self {
        for (link, (cable, peer_response)) in self.links.iter_mut().zip(ports) {
            link.cable = cable;
            link.peer_response = peer_response.map(|time| link.rate.bytes_in(time));
        }
        self
    }

    /// Returns this switch with other names and destinations of the sessions of its mirrors.
    #[must_use]
    pub fn mirroring(self, mirror_config: MirrorConfig) -> Self {
        Self { mirror_config, ..self }
    }

    /// Whether traffic class `class` is configured as lossless.
    #[must_use]
    pub fn is_lossless(&self, class: usize) -> bool {
        self.lossless.contains(class)
    }

    /// The current PFC standing of port `port`. The port sends its PFC state when its link comes up; a witness that has
    /// received that frame proves it, and so does a peer that was seen to stop. A device that pauses by itself, or a
    /// peer whose frames came too late after XOFF, overrides the operator's assertion.
    #[must_use]
    pub fn standing(&self, port: usize) -> PfcStanding {
        let known = self.pfc.get(port).copied().unwrap_or(PfcStanding::Off);
        let witness = self.witnesses.get(port).copied().flatten();
        let tally = witness.and_then(|host| self.hosts.as_ref()?.hosts.get(host));
        let is_proven = tally.is_some_and(|tally| tally.pfc_rx_frames.get() > 0);
        match known {
            PfcStanding::Off => PfcStanding::Off,
            _ if self.flow_control.get(port).defeats_pfc() || !self.disobeyed(port).is_empty() => PfcStanding::Unproven,
            _ if is_proven || self.is_seen_to_work(port) => PfcStanding::Proven,
            known => known,
        }
    }

    /// Whether the peer of port `port` was seen to stop at XOFF of each lossless priority. If the device may drop PFC
    /// frames, it must also have passed some to the switch. A peer may also have stopped at PAUSE of the device.
    fn is_seen_to_work(&self, port: usize) -> bool {
        let Some(counters) = self.counters.ports.get(port) else { return false };
        let (guarded, obeyed) = (self.guarded_groups(port), ClassSet::from_bits(counters.pfc_obeyed_mask.get() as u8));
        let passes = match self.flow_control.get(port) {
            DeviceFlowControl::None | DeviceFlowControl::Off | DeviceFlowControl::Obeys => true,
            DeviceFlowControl::Filters => counters.pfc_rx_frames.get() > 0,
            DeviceFlowControl::Pauses | DeviceFlowControl::Unknown => false,
        };
        !guarded.is_empty() && (guarded - obeyed).is_empty() && passes
    }

    /// Whether the peer of port `port` is a virtual host, which is polled at the same instants as the port. It stands
    /// still during a poll gap, so no gap lets its frames accumulate.
    #[must_use]
    pub fn is_in_process(&self, port: usize) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.hosts.iter().any(|host| host.port == port))
    }

    /// The priority groups of port `port` that are lossless and guarded by PFC.
    #[must_use]
    pub fn guarded_groups(&self, port: usize) -> ClassSet {
        self.spec
            .ports
            .get(port)
            .filter(|port| port.pfc.is_on() && !port.is_absent)
            .map_or(ClassSet::EMPTY, PortSpec::lossless_groups)
    }

    /// The name of priority group `group` for people: its traffic class, if it has just one.
    #[must_use]
    pub fn group_name(&self, group: usize) -> String {
        class_or(&self.spec.classes.tc_to_group, group, "group")
    }

    /// The name of egress queue `queue` for people: its traffic class, if it has just one.
    #[must_use]
    pub fn queue_name(&self, queue: usize) -> String {
        class_or(&self.spec.classes.tc_to_queue, queue, "queue")
    }

    /// The class whose frames wait in `queue`, if it is the only one.
    #[must_use]
    pub fn class_of_queue(&self, queue: usize) -> Option<usize> {
        only_class(&self.spec.classes.tc_to_queue, queue)
    }

    /// Frames that `port`, which sends copies, could not send: its queues refused or discarded them. Frames that it
    /// received are not among them.
    #[must_use]
    pub fn copies_dropped_at(&self, port: usize) -> u64 {
        // Reasons that only a frame on its way out has.
        const REASONS: [DropReason; 9] = [
            DropReason::Threshold,
            DropReason::PoolEmpty,
            DropReason::QueueThreshold,
            DropReason::Wred,
            DropReason::Watchdog,
            DropReason::NoBuffer,
            DropReason::EgressDown,
            DropReason::EgressStuck,
            DropReason::Shutdown,
        ];
        let rows = self.counters.ports.get(port).into_iter().flat_map(|port| &port.drops);
        rows.map(|row| REASONS.map(|reason| row[reason as usize].get()).iter().sum::<u64>()).sum()
    }

    /// Whether the operator has shut port `port`, or it has no device.
    #[must_use]
    pub fn is_shut(&self, port: usize) -> bool {
        self.spec.ports.get(port).is_some_and(PortSpec::is_shut)
    }

    /// Name of port `port`.
    #[must_use]
    pub fn port_name(&self, port: usize) -> &str {
        self.spec.ports.get(port).map_or("?", |port| &port.name)
    }
}

/// For each port of `spec`, the input of the headroom formula without its cable.
fn links(spec: &SwitchSpec, small_packets: SmallPackets) -> Vec<HeadroomInput> {
    let link = |port: &PortSpec| HeadroomInput {
        rate: port.rate,
        cable: Length { mm: 0 },
        mtu: port.mtu,
        poll_gap: spec.poll_gap,
        posted: HeadroomInput::posted(
            port.rate,
            posting_gap(spec.poll_gap, port.tx_queues),
            spec.has_congestion_points(),
        ),
        cell: spec.buffer.cell,
        peer_response: None,
        left: port.backlog_mark.map_or(LEFT_BEHIND, |mark| mark.saturating_sub(1)),
        small_packets,
        stops_queues: if port.pfc == PfcMode::Queue { port.rx_queues } else { 0 },
        other_rings: if port.pfc == PfcMode::Nic { CLASSES as u8 - 1 } else { 0 },
    };
    spec.ports.iter().map(link).collect()
}

/// `class 3` if only that class is mapped to `target`, otherwise kind and number of `target`.
fn class_or(map: &[u8; CLASSES], target: usize, kind: &str) -> String {
    only_class(map, target).map_or_else(|| format!("{kind} {target}"), |class| format!("class {class}"))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::quiet;
    use super::*;

    #[test]
    fn a_port_is_proven_by_what_its_peer_has_counted() {
        let mut switch_view = quiet();
        switch_view.pfc = vec![PfcStanding::Unproven, PfcStanding::Off];
        let received = |switch_view: &SwitchView, host: usize| {
            switch_view.hosts.as_ref().unwrap().hosts[host].pfc_rx_frames.add(1)
        };
        received(&switch_view, 0);
        assert_eq!(switch_view.standing(0), PfcStanding::Unproven, "by a host that does not obey");
        switch_view.witnesses = vec![Some(1), Some(0)];
        assert_eq!(switch_view.standing(0), PfcStanding::Unproven, "before it has received PFC");
        received(&switch_view, 1);
        assert_eq!(switch_view.standing(0), PfcStanding::Proven);
        assert_eq!(switch_view.standing(1), PfcStanding::Off);
        switch_view.pfc[0] = PfcStanding::Trusted;
        switch_view.witnesses[0] = None;
        assert_eq!(switch_view.standing(0), PfcStanding::Trusted, "the operator cannot make it proven");
        assert_eq!(switch_view.standing(7), PfcStanding::Off);
    }

    #[test]
    fn peer_that_was_seen_to_stop_in_each_lossless_priority_proves_its_port() {
        let mut switch_view = quiet();
        (switch_view.pfc[0], switch_view.witnesses[0]) = (PfcStanding::Unproven, None);
        let groups = switch_view.guarded_groups(0);
        let masks = |obeyed: ClassSet, disobeyed: ClassSet| {
            let counters = &switch_view.counters.ports[0];
            counters.pfc_obeyed_mask.set(obeyed.bits().into());
            counters.pfc_disobeyed_mask.set(disobeyed.bits().into());
            switch_view.standing(0)
        };
        let one = ClassSet::only(groups.iter().next().expect("a lossless group"));
        assert_eq!(masks(groups - one, ClassSet::EMPTY), PfcStanding::Unproven, "one priority was not seen");
        assert_eq!(masks(groups, ClassSet::EMPTY), PfcStanding::Proven, "without the word of the operator");
        assert_eq!(masks(groups - one, one), PfcStanding::Unproven);
        assert_eq!(masks(groups, ClassSet::EMPTY), PfcStanding::Proven);
        switch_view.flow_control.set(0, DeviceFlowControl::Filters);
        assert_eq!(switch_view.standing(0), PfcStanding::Unproven, "received PFC frames may be dropped");
        switch_view.counters.ports[0].pfc_rx_frames.add(1);
        assert_eq!(switch_view.standing(0), PfcStanding::Proven);
        for state in [DeviceFlowControl::Pauses, DeviceFlowControl::Unknown] {
            switch_view.flow_control.set(0, state);
            assert_eq!(switch_view.standing(0), PfcStanding::Unproven, "the device may have paused the peer");
        }
    }

    #[test]
    fn port_is_unproven_if_its_device_pauses_by_itself() {
        let mut switch_view = quiet();
        switch_view.pfc = vec![PfcStanding::Trusted, PfcStanding::Trusted];
        switch_view.flow_control.set(0, DeviceFlowControl::Pauses);
        switch_view.flow_control.set(1, DeviceFlowControl::Unknown);
        assert_eq!(switch_view.standing(0), PfcStanding::Unproven);
        assert_eq!(switch_view.standing(1), PfcStanding::Trusted, "a test by the operator overrides a possible fault");
        switch_view.pfc[0] = PfcStanding::Unproven;
        switch_view.witnesses = vec![Some(0), None];
        switch_view.hosts.as_ref().unwrap().hosts[0].pfc_rx_frames.add(1);
        assert_eq!(switch_view.standing(0), PfcStanding::Unproven);
        switch_view.flow_control.set(0, DeviceFlowControl::Off);
        assert_eq!(switch_view.standing(0), PfcStanding::Proven);
        switch_view.pfc[0] = PfcStanding::Off;
        switch_view.flow_control.set(0, DeviceFlowControl::Pauses);
        assert_eq!(switch_view.standing(0), PfcStanding::Off);
    }
}
