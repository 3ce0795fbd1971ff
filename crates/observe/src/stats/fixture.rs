//! A switch for tests: two ports, class 3 lossless, two hosts, and counters as after a run.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use super::snapshot::Snapshot;
use super::switch_view::{PfcStanding, SwitchView};
use crate::forward::{FdbSpec, LagsSpec};
use crate::hosts::{FlowKind, FlowPattern, FlowSpec, FlowTarget, HostSpec, Hosts};
use crate::lacp;
use crate::lldp::{self, Agent, Board, System, Timing};
use crate::mirror::{self, CollectorView, MirrorView, SessionView, SflowView};
use crate::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, QueueLimit, Threshold};
use crate::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use crate::plan::{Counters, DropReason, PortSpec, QueueSpec, SwitchSpec};
use crate::qos::{ClassMap, QueueDiscipline};
use crate::route::{FibWriter, NextHopSpec, SoftFib};
use crate::router::{self, Router, Source};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::{Alpha, BitRate, Bytes, Cells, Nanos};
use crate::wire::MacAddr;
use crate::wire::lldp::Aggregation;

const RATE: BitRate = BitRate(10_000_000_000);

fn group(lossless: bool) -> GroupProfile {
    let threshold = Threshold::Dynamic(Alpha::from_exponent(if lossless { -1 } else { 0 }).unwrap());
    let headroom = Cells(if lossless { 200 } else { 0 });
    GroupProfile { lossless, reserve: Cells(10), threshold, xon_offset: Cells(20), xon_floor: Cells(5), headroom }
}

fn port(index: u16) -> PortSpec {
    let groups = std::array::from_fn(|class| group(class == 3));
    PortSpec::new(format!("p{}", index + 1), MacAddr::local(0, index), RATE, groups)
}

fn host(index: u16, flows: Vec<FlowSpec>) -> HostSpec {
    HostSpec {
        name: format!("h{}", index + 1),
        port: usize::from(index),
        mac: MacAddr::local(1, index),
        ip: Ipv4Addr::new(10, 0, 0, index as u8 + 1),
        rate: RATE,
        obeys_pfc: true,
        queues: 1,
        keeps_frames: false,
        flows,
    }
}

fn flow(kind: FlowKind, class: u8) -> FlowSpec {
    FlowSpec {
        to: FlowTarget::Host(1),
        kind,
        rate: RATE,
        frame_len: 1000,
        dscp: class << 3,
        pcp: 0,
        vlan: None,
        class,
        priority: class,
        ecn: true,
        pattern: FlowPattern::Steady,
    }
}

/// The switch before any traffic.
pub fn quiet() -> SwitchView {
    slow(RATE)
}

/// The switch before any traffic, whose flow of class 3 has `rate`.
pub fn slow(rate: BitRate) -> SwitchView {
    let spec = SwitchSpec {
        poll_gap: crate::units::Nanos(20_000),
        lcores: 1,
        floods_lossless: false,
        hpcc: crate::mmu::HpccRules::NONE,
        abm: None,
        reverie: false,
        telemetry_queues: ClassSet::EMPTY,
        congestion_points: [None; CLASSES],
        routing: None,
        mirror: crate::plan::mirror::MirrorSpec::default(),
        ports: vec![port(0), port(1)],
        buffer: BufferPlan {
            cell: Bytes(200),
            total: Cells(10_000),
            reserves: Cells(20 * CLASSES as u32),
            headroom: Cells(400),
            policy: HeadroomPolicy::Independent,
            lossless_shared: Cells(5_000),
            lossy_shared: Cells(4_000),
        },
        classes: ClassMap::identity(),
        queues: [QueueSpec {
            discipline: QueueDiscipline::Dwrr { weight: 1 },
            wred: None,
            limit: None,
            reserve: Cells(0),
        }; CLASSES],
        fdb: FdbSpec { capacity: 1024, ageing: Nanos(0), entries: Vec::new(), seed: 0 },
        lags: LagsSpec::default(),
    };
    let roce = FlowSpec { rate, ..flow(FlowKind::Roce, 3) };
    let hosts = [host(0, vec![roce, flow(FlowKind::Udp, 0)]), host(1, Vec::new())];
    let mut switch_view = SwitchView::new(spec, Arc::new(Counters::new(2, 1)));
    switch_view.build.version = "0.0.0";
    switch_view.pfc = vec![PfcStanding::Proven; 2];
    switch_view.hosts = Some(Hosts::new(&hosts, 1_000_000_000).counters());
    switch_view
}

/// The switch before any traffic, with a router of two ports. A static route has two next hops, one of them usable.
pub fn routing() -> (SwitchView, Router) {
    let mut spec = quiet().spec;
    spec.routing = Some(router::fixture::two_ports());
    let routing = spec.routing.as_ref().expect("it was set");
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let now = Nanos(1_000_000_000);
    let mut router = Router::new(routing, fibs, now);
    let hop = |interface: u16, weight| NextHopSpec { address: [10, 0, interface as u8, 2].into(), interface, weight };
    router.set_route(Source::Static, "10.9.0.0/16".parse().unwrap(), &[hop(0, 1), hop(1, 3)], now);
    router.set_route(Source::Static, "10.8.0.0/16".parse().unwrap(), &[], now);
    router.confirm_neighbour(0, [10, 0, 0, 2].into(), MacAddr([2, 0, 0, 0, 0, 9]), now);
    router.update();
    router.settle();
    let counters = Arc::new(Counters::of(&spec));
    let mut switch_view = SwitchView::new(spec, counters);
    switch_view.build.version = "0.0.0";
    switch_view.router.as_ref().unwrap().publish(&router, |id| switch_view.counters.adjacency_frames(id));
    (switch_view, router)
}

/// The switch before any traffic. At its first port it has a neighbour whose PFC is for another priority.
pub fn neighbours() -> SwitchView {
    let (mut switch_view, now) = (quiet(), Nanos(1_000_000_000));
    let spec = &switch_view.spec;
    let state = |port| lldp::stated(spec, port, &System::default(), Aggregation::default());
    let mut agent = Agent::new(vec![state(0), None], Timing::default());
    agent.link(0, true, now);
    let mut peer = state(1).expect("it is there");
    peer.pdu.ttl = 120;
    peer.pdu.dot1.pfc.as_mut().expect("it states PFC").enabled = ClassSet::only(4);
    agent.received(0, &peer.pdu.emit(peer.source).frame, now);
    let board = Board::default();
    board.publish(agent.view(now), agent.take_events());
    switch_view.lldp = Some(Arc::new(board));
    switch_view
}

/// The switch before any traffic, with a group that LACP negotiates. One of its two members has a link and no peer.
pub fn bonded() -> SwitchView {
    let mut switch_view = quiet();
    let ports = &switch_view.spec.ports;
    let negotiation = Some(lacp::Negotiation { is_active: true, is_fast: true });
    let group = lacp::GroupSettings { name: "bond0".to_owned(), ports: PortSet::first(2), negotiation, min_links: 1 };
    let mut agent = lacp::Agent::new(lacp::Settings {
        system: ports[0].mac,
        names: ports.iter().map(|port| port.name.clone()).collect(),
        macs: ports.iter().map(|port| port.mac).collect(),
        groups: vec![group],
    });
    agent.link(0, true, Nanos(1));
    let board = lacp::Board::default();
    board.publish(agent.view(PortSet::EMPTY), agent.take_events());
    switch_view.lacp = Some(Arc::new(board));
    switch_view
}

/// The switch before any traffic, with a mirror of drops whose file is full, and with sFlow of samples.
pub fn mirroring() -> SwitchView {
    let mut switch_view = quiet();
    let text = "ports: [{name: p1, device: net_null0, speed: 10G}, {name: p2, device: net_null1, speed: 10G}]\n\
                mirrors: [{name: losses, copy: dropped, reasons: [threshold], ports: [p1], classes: [3], \
                to: {file: /d}}]\n\
                sflow: {collectors: [10.0.0.9], agent: 10.0.0.1, drops: off}\n";
    let config = crate::config::parse("test", text).unwrap_or_else(|errors| panic!("{errors}"));
    switch_view.spec.mirror = config.switch.mirror;
    switch_view.mirror_config = config.mirror;
    switch_view.spec.mirror.outputs = PortSet::only(1);
    let output = &switch_view.counters.ports[1];
    output.drops[0][DropReason::QueueThreshold as usize].add(6);
    output.drops[8][DropReason::MirrorOutput as usize].add(2);
    output.drops[8][DropReason::LinkLocal as usize].add(3);
    let lcore = &switch_view.counters.lcores[0];
    lcore.copies[0].add(9);
    lcore.copies_policed[2].add(4);
    lcore.copies_full[0].add(2);
    let error = Some("`/d`: no space is left in `/`; make room, or write a smaller `size` or fewer `files`".to_owned());
    let losses =
        SessionView { name: "losses".to_owned(), copies: 5, bytes: 640, lost: 4, error, ..SessionView::default() };
    let collector = CollectorView { address: "10.0.0.9:6343".to_owned(), datagrams: 7, errors: 1, error: None };
    let sflow = SflowView { datagrams: 8, send_errors: 1, collectors: vec![collector], ..SflowView::default() };
    let board = mirror::Board::default();
    board.publish(MirrorView { sessions: vec![losses], stale: 3, sflow: Some(sflow) }, Vec::new());
    switch_view.mirror = Some(Arc::new(board));
    switch_view
}

/// The switch after ten seconds of traffic and a drain: no loss in class 3, some in class 0.
pub fn run() -> SwitchView {
    let switch_view = quiet();
    let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
    p1.rx_frames[3].add(6_000_000);
    p1.rx_bytes[3].add(6_000_000_000);
    p1.rx_frames[0].add(1_000_000);
    p1.rx_bytes[0].add(1_000_000_000);
    p1.drops[0][DropReason::Threshold as usize].add(1_234);
    p1.drops[8][DropReason::LinkLocal as usize].add(2);
    p1.pfc_tx_xoff[3].add(40);
    p1.pfc_tx_xon[3].add(12);
    p1.pfc_tx_frames.add(52);
    p1.pfc_tx_paused_ns[3].add(3_200_000_000);
    p1.group_used_highest_cells[3].set(2_500);
    p1.group_shared_highest_cells[3].set(2_490);
    p1.group_headroom_highest_cells[3].set(55);
    p2.tx_frames[3].add(6_000_000);
    p2.tx_bytes[3].add(6_000_000_000);
    p2.tx_frames[0].add(998_766);
    p2.tx_bytes[0].add(998_766_000);
    p2.ecn_marked[3].add(70_000);
    p2.queue_highest_cells[3].set(2_555);
    let lcore = &switch_view.counters.lcores[0];
    lcore.polls.set(1_000);
    lcore.busy_polls.set(900);
    lcore.poll_gap[9].add(980);
    lcore.poll_gap[13].add(18);
    lcore.poll_gap[15].add(2);
    lcore.poll_gap_sum_ns.set(600_000);
    lcore.poll_gap_highest_ns.set(21_500);
    lcore.fdb_entries.set(2);
    lcore.fdb_learned.add(2);
    lcore.lossless_used_highest_cells.set(2_490);
    lcore.lossy_used_highest_cells.set(3_999);
    let hosts = switch_view.hosts.as_ref().unwrap();
    let [roce, udp] = &hosts.flows[..] else { panic!("two flows") };
    for (flow, sent, received) in [(roce, 6_000_000, 6_000_000), (udp, 1_000_000, 998_766)] {
        flow.sent_frames.add(sent);
        flow.sent_bytes.add(sent * 1000);
        flow.received_frames.add(received);
        flow.received_bytes.add(received * 1000);
        flow.latency.record(12_000);
        flow.latency_lowest.set(12_000);
        flow.latency_highest.set(12_000);
    }
    roce.ce_frames.add(70_000);
    switch_view
}

/// The fourth second of the switch of [`run`], under load: the snapshots before and after it.
pub fn second() -> (SwitchView, Snapshot, Snapshot) {
    let switch_view = run();
    let before = Snapshot::take(&switch_view, Duration::from_secs(3));
    let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
    p1.rx_frames[3].add(1_000_000);
    p1.rx_bytes[3].add(1_000_000_000);
    p2.tx_frames[3].add(900_000);
    p2.tx_bytes[3].add(900_000_000);
    p1.drops[0][DropReason::Threshold as usize].add(12_345);
    p1.pfc_tx_frames.add(20);
    p1.xoff_mask.set(ClassSet::only(3).bits().into());
    p2.paused_mask.set(0b101_1000);
    p2.ecn_marked[3].add(456);
    p1.group_used_cells[3].set(1_000);
    p1.group_headroom_cells[3].set(25);
    p2.group_used_cells[3].set(500);
    switch_view.counters.lcores[0].lossless_used_cells.set(1_700);
    let after = Snapshot::take(&switch_view, Duration::from_secs(4));
    (switch_view, before, after)
}

/// The switch of [`run`] on two lcores with a headroom pool, with every kind of trouble.
pub fn trouble() -> SwitchView {
    let mut switch_view = run();
    let spec = &mut switch_view.spec;
    spec.lcores = 2;
    spec.buffer.policy = HeadroomPolicy::SharedPool;
    for (index, port) in spec.ports.iter_mut().enumerate() {
        port.buffer.policy = HeadroomPolicy::SharedPool;
        port.buffer.reserve = [Cells(30), Cells(40)];
        port.backlog_mark = Some(256);
        port.lcore = index as u8;
    }
    let (detection, restoration) = (Nanos(200_000_000), Nanos(300_000_000));
    spec.ports[1].live.watchdog = Some(WatchdogSpec { detection, restoration, action: WatchdogAction::Drop });
    spec.ports[1].pfc = PfcMode::Asymmetric;
    spec.queues[0].limit = Some(QueueLimit::from(Threshold::Dynamic(Alpha::from_exponent(-2).unwrap())));
    spec.queues[0].reserve = Cells(15);
    switch_view.rests = vec![None, Some(Nanos(100_000))];
    let before = std::mem::replace(&mut switch_view.counters, Arc::new(Counters::new(2, 2)));
    let [p1, p2] = &switch_view.counters.ports[..] else { panic!("two ports") };
    p1.rx_frames[3].add(before.ports[0].rx_frames[3].get());
    p1.drops[3][DropReason::HeadroomFull as usize].add(12);
    p1.pfc_tx_paused_ns[3].add(4_500_000_000);
    p1.group_headroom_highest_cells[3].set(200);
    p1.reserve_used_cells[1].set(40);
    p1.port_xoff.set(1);
    p1.backlog_frames.set(300);
    p1.backlog_highest_frames.set(600);
    p1.backlog_xoffs.add(7);
    p2.tx_frames[3].add(1);
    p2.drops[3][DropReason::Watchdog as usize].add(99);
    p2.pfc_rx_xoff[3].add(9_000);
    p2.pfc_rx_paused_ns[3].add(9_000_000_000);
    p2.pfc_rx_ignored[3].add(8_000);
    p2.watchdog_storms[3].add(2);
    p2.watchdog_restores[3].add(1);
    p2.watchdog_mask.set(ClassSet::only(3).bits().into());
    p2.egress_stuck.set(1);
    p2.egress_stucks.add(3);
    p2.link_ups.add(2);
    for (lcore, more) in switch_view.counters.lcores.iter().zip([0, 1]) {
        lcore.polls.set(1_000);
        lcore.busy_polls.set(500 + 100 * more);
        lcore.poll_gap[9].add(1_000);
        lcore.poll_gap_highest_ns.set(400 + 100 * more);
        lcore.headroom_pool_used_cells.set(90 + more);
        lcore.headroom_pool_highest_cells.set(350 + more);
        lcore.handed_off_frames.add(5_000 * more);
        lcore.handoff_highest_frames.set(70);
    }
    let lcore = &switch_view.counters.lcores[1];
    lcore.rests.set(40);
    lcore.rested_ns.set(4_200_000);
    lcore.rest_overshoot[0].add(30);
    lcore.rest_overshoot[14].add(10);
    lcore.rest_overshoot_sum_ns.set(90_000);
    lcore.rest_overshoot_highest_ns.set(12_000);
    switch_view
}
