//! Proves that replay and pipeline agree: runs random traces through [`Replay`] and through the whole [`Pipeline`] over
//! in-memory ports, and compares both after every event.
//!
//! The peer of every port pauses all eight priorities; a departure resumes its queue for one poll. Ports are so slow
//! that a poll sends one frame, so that frames leave, and are marked, exactly when the trace requires. After each event
//! the pipeline polls once more, to judge the paused groups. WRED profiles are steps, since any other shape would make
//! the pipeline draw random numbers.

use crate::dataplane::Scratch;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::dataplane::pipeline::Pipeline;
use crate::forward::{FdbSpec, LagsSpec};
use crate::io::memory::{MemPacket, MemPorts};
use crate::mmu::{BufferPlan, GroupProfile, QueueLimit, Threshold};
use crate::pfc::PfcMode;
use crate::plan::counters::Counters;
use crate::plan::spec::QueueSpec;
use crate::qos::{QueueDiscipline, WredProfile};
use crate::units::{Alpha, BitRate, Nanos, Quanta, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::{self, MacControl, PfcFrame};

pub(super) const PORTS: usize = 3;
/// Egress ports of all frames. Departures are controlled by PFC, so only the first port may have none.
pub(super) const EGRESSES: std::ops::Range<usize> = 1..PORTS;
const HZ: u64 = 1_000_000_000;
/// Rate of the ports. At 1 Mb/s a frame of the MTU takes 12 ms, and the shortest frame takes longer than the slack of
/// the shaper.
const RATE: BitRate = BitRate(1_000_000);
const POLL: u64 = 20_000_000;
const CELL: u64 = 208;

#[derive(Debug, Clone, Copy)]
enum Event {
    Arrive(Frame),
    Depart(usize, Option<u8>),
}

/// A pipeline that is driven by events.
pub(super) struct Bed {
    pub pipeline: Pipeline<MemPacket>,
    pub io: MemPorts,
    scratch: Scratch<MemPacket>,
    counters: Arc<Counters>,
    now: u64,
}

/// The effects of one event on the pipeline, as its peers and its counters show them.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    drops: Vec<DropReason>,
    pauses: Vec<Transition>,
    /// Data frames that left: port, bytes, codepoint.
    data: Vec<(usize, usize, u8)>,
}

impl Bed {
    pub fn new(spec: &SwitchSpec) -> Self {
        let counters = Arc::new(Counters::new(PORTS, 1));
        let pipeline = Pipeline::new(spec, counters.clone(), HZ, 1);
        let mut bed = Self { pipeline, io: MemPorts::new(PORTS), scratch: Scratch::default(), counters, now: HZ };
        for port in 0..PORTS {
            bed.pipeline.learn(1, mac(port), port, Ticks(bed.now));
            bed.pause(port, ClassSet::ALL, 0xffff);
        }
        bed.poll();
        bed
    }

    pub fn poll(&mut self) {
        self.now += POLL;
        self.pipeline.poll(&mut self.io, &mut self.scratch, Ticks(self.now));
    }

    /// The peer of `port` pauses these priorities for `quanta`; zero resumes them.
    fn pause(&mut self, port: usize, priorities: ClassSet, quanta: u16) {
        let pfc = PfcFrame { enabled: priorities, quanta: [Quanta(quanta); CLASSES] };
        self.io.inject(port, &pfc.emit(mac(port)));
    }

    fn arrive(&mut self, frame: &Frame) -> Seen {
        let before = self.drops();
        self.io.inject(frame.port, &bytes(frame));
        self.poll();
        self.poll();
        self.seen(&before)
    }

    fn depart(&mut self, egress: usize, queue: usize) -> Seen {
        let before = self.drops();
        self.pause(egress, ClassSet::only(queue), 0);
        self.poll();
        self.pause(egress, ClassSet::only(queue), 0xffff);
        self.poll();
        self.seen(&before)
    }

    /// Returns the count of each drop reason.
    pub fn drops(&self) -> Vec<u64> {
        let count = |reason: DropReason| {
            let rows = self.counters.ports.iter().flat_map(|port| &port.drops);
            rows.map(|row| row[reason as usize].get()).sum()
        };
        DropReason::TABLE.iter().map(|row| count(row.0)).collect()
    }

    fn seen(&mut self, drops_before: &[u64]) -> Seen {
        let reasons = DropReason::TABLE.iter().zip(self.drops().into_iter().zip(drops_before));
        let drops = reasons.flat_map(|(row, (now, before))| vec![row.0; (now - before) as usize]).collect();
        let mut seen = Seen { drops, pauses: Vec::new(), data: Vec::new() };
        for port in 0..PORTS {
            while let Some(frame) = self.io.sent(port) {
                if frame[12..14] == mac_control::ETHERTYPE.to_be_bytes() {
                    seen.pauses.extend(pauses(port, &frame));
                } else {
                    seen.data.push((port, frame.len(), frame[15] & 3));
                }
            }
        }
        seen
    }
}

fn pauses(port: usize, frame: &[u8]) -> Vec<Transition> {
    let Some(MacControl::Pfc(pfc)) = mac_control::parse(frame) else { panic!("neither data nor PFC") };
    let named = pfc.enabled.iter();
    named.map(|group| Transition { port, group, xoff: pfc.quanta[group].0 > 0 }).collect()
}

fn mac(port: usize) -> MacAddr {
    MacAddr::local(1, port as u16)
}

fn codepoint(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

/// Builds an IPv4 packet with a protocol that the switch does not parse. Its class selector is the class.
pub(super) fn bytes(frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(frame.bytes)];
    bytes[..6].copy_from_slice(&mac(frame.egress).0);
    bytes[6..12].copy_from_slice(&mac(frame.port).0);
    bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, frame.class << 5 | codepoint(frame.ecn)]);
    bytes[16..18].copy_from_slice(&(frame.bytes - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 253]);
    bytes
}

/// Runs one trace through both and adds the situations that it reached to `reached`.
fn compare(spec: &SwitchSpec, events: &[Event], reached: &RefCell<BTreeSet<String>>) -> Result<(), TestCaseError> {
    let (mut replay, mut bed) = (Replay::with_clock(spec, HZ), Bed::new(spec));
    for (index, event) in events.iter().enumerate() {
        replay.set_time(Ticks(bed.now + POLL));
        let (decision, seen) = match *event {
            Event::Arrive(frame) => (replay.arrive(frame), bed.arrive(&frame)),
            Event::Depart(egress, class) => {
                let announced = replay.next(egress, class);
                let Some(decision) = replay.depart(egress, class) else {
                    prop_assert_eq!(announced, None);
                    continue;
                };
                let seen = bed.depart(egress, decision.queue);
                (decision, seen)
            }
        };
        prop_assert_eq!(&expected(&decision), &seen, "event {}: {:?}", index, event);
        same_state(&replay, &bed, index)?;
        plausible(&decision)?;
        note(&decision, &mut reached.borrow_mut());
    }
    Ok(())
}

/// Returns the effects on the pipeline that the decision of the replay implies.
fn expected(decision: &Decision) -> Seen {
    let frame = &decision.frame;
    let mut pauses = decision.transitions.clone();
    // Frames of one poll are collected port by port; those of one port keep their order.
    pauses.sort_by_key(|change| change.port);
    Seen {
        drops: if let EventResult::Dropped(reason) = decision.outcome { vec![reason] } else { vec![] },
        pauses,
        data: match decision.outcome {
            EventResult::Released => vec![(frame.egress, usize::from(frame.bytes), codepoint(frame.ecn))],
            _ => vec![],
        },
    }
}

/// Compares every count of the buffer, with watermarks, and the paused groups.
fn same_state(replay: &Replay, bed: &Bed, index: usize) -> Result<(), TestCaseError> {
    for (port, (ours, theirs)) in replay.ports.iter().zip(&bed.pipeline.ports).enumerate() {
        for group in 0..CLASSES {
            let both = (ours.ledger.group(group), theirs.ledger.group(group));
            prop_assert_eq!(both.0, both.1, "event {}: group {}:{}", index, port, group);
        }
        let sums = |ledger: &PortLedger| {
            let (off, port_off) = (ledger.xoff(), ledger.is_port_xoff());
            (ledger.reserve_used(), ledger.shared(), ledger.insurance_used(), off, port_off)
        };
        prop_assert_eq!(sums(&ours.ledger), sums(&theirs.ledger), "event {}: port {}", index, port);
        prop_assert_eq!(ours.announced(), theirs.pfc.xoff(), "event {}: port {}", index, port);
        let depths = |queues: &[Queue; CLASSES]| {
            queues.each_ref().map(|queue| (queue.frames(), queue.cells(), queue.bytes(), queue.cells_highest()))
        };
        prop_assert_eq!(depths(&ours.queues), depths(&theirs.queues), "event {}: port {}", index, port);
    }
    let pools = |pools: &Pools| {
        let shared = pools.shared.each_ref().map(|pool| (pool.used(), pool.free(), pool.used_highest()));
        (shared, pools.headroom.used(), pools.headroom.highest())
    };
    prop_assert_eq!(pools(&replay.pools), pools(&bed.pipeline.buffer.pools), "event {}", index);
    prop_assert_eq!(replay.reserves.unused().0, bed.pipeline.buffer.reserves.unused().0, "event {}", index);
    Ok(())
}

/// Compares the state of two pipelines, like [`same_state`].
pub(super) fn same_parts(one: &Bed, other: &Bed, index: usize) -> Result<(), TestCaseError> {
    let depths = |queues: &[Queue; CLASSES]| {
        queues.each_ref().map(|queue| (queue.frames(), queue.cells(), queue.bytes(), queue.cells_highest()))
    };
    for (port, (one, other)) in one.pipeline.ports.iter().zip(&other.pipeline.ports).enumerate() {
        for group in 0..CLASSES {
            let both = (one.ledger.group(group), other.ledger.group(group));
            prop_assert_eq!(both.0, both.1, "burst {}: group {}:{}", index, port, group);
        }
        prop_assert_eq!(depths(&one.queues), depths(&other.queues), "burst {}: port {}", index, port);
        prop_assert_eq!(one.pfc.xoff(), other.pfc.xoff(), "burst {}: port {}", index, port);
        prop_assert_eq!(one.waiting, other.waiting, "burst {}: port {}", index, port);
        prop_assert_eq!(one.ledger.xoff(), other.ledger.xoff(), "burst {}: port {}", index, port);
        prop_assert_eq!((one.admitted, one.holding), (other.admitted, other.holding), "burst {}: port {}", index, port);
    }
    let pools = |bed: &Bed| {
        let pools = &bed.pipeline.buffer.pools;
        let shared = pools.shared.each_ref().map(|pool| (pool.used(), pool.free(), pool.used_highest()));
        (shared, pools.headroom.used(), pools.headroom.highest(), bed.pipeline.buffer.reserves.unused().0)
    };
    prop_assert_eq!(pools(one), pools(other), "burst {}", index);
    prop_assert_eq!(one.pipeline.held_frames(), other.pipeline.held_frames(), "burst {}", index);
    Ok(())
}

/// Checks that the fields of a decision are consistent.
fn plausible(decision: &Decision) -> Result<(), TestCaseError> {
    let Split { reserve, port_reserve, shared, headroom } = decision.went;
    let sum = reserve.0 + port_reserve.0 + shared.0 + headroom.0;
    let place = match decision.outcome {
        EventResult::Dropped(_) | EventResult::Released => decision.outcome,
        _ if headroom.0 > 0 => EventResult::Headroom,
        _ if shared.0 > 0 => EventResult::Shared,
        _ if port_reserve.0 > 0 => EventResult::PortReserve,
        _ => EventResult::Reserve,
    };
    let cells = if matches!(place, EventResult::Dropped(_)) { 0 } else { decision.cells.0 };
    prop_assert_eq!((sum, place), (cells, decision.outcome));
    let Some(dynamic) = decision.limits.dynamic.filter(|_| shared.0 > 0 && place == EventResult::Shared) else {
        return Ok(());
    };
    // The levels in the decision are those that were used.
    prop_assert!(decision.port.shared <= dynamic.port_xoff);
    let went_off = decision.transitions.iter().any(|change| change.xoff && change.group == decision.group);
    prop_assert!(!went_off || decision.held.shared > dynamic.group_xoff);
    Ok(())
}

fn note(decision: &Decision, reached: &mut BTreeSet<String>) {
    reached.insert(match decision.outcome {
        EventResult::Dropped(reason) => reason.label().to_owned(),
        outcome => format!("{outcome:?}"),
    });
    for change in &decision.transitions {
        reached.insert(if change.xoff { "XOFF" } else { "XON" }.to_owned());
        if change.port != decision.frame.port {
            reached.insert("another port's pause".to_owned());
        }
    }
    if decision.port.is_xoff {
        reached.insert("port XOFF".to_owned());
    }
    if decision.outcome == EventResult::Released && decision.marking == Some(CERTAIN) {
        reached.insert("marked".to_owned());
    }
}

fn threshold() -> impl Strategy<Value = Threshold> {
    prop_oneof![
        (-4_i8..=3).prop_map(|exponent| Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap())),
        (0_u32..30).prop_map(|cells| Threshold::Static(Cells(cells))),
    ]
}

fn group() -> impl Strategy<Value = GroupProfile> {
    (any::<bool>(), 0_u32..6, threshold(), 0_u32..6, 0_u32..4, 1_u32..12).prop_map(
        |(lossless, reserve, threshold, offset, floor, headroom)| GroupProfile {
            lossless,
            reserve: Cells(reserve),
            threshold,
            xon_offset: Cells(if lossless { offset } else { 0 }),
            xon_floor: Cells(if lossless { floor } else { 0 }),
            headroom: Cells(if lossless { headroom } else { 0 }),
        },
    )
}

/// Generates step profiles: probability zero up to a depth, and one from there on.
fn wred() -> impl Strategy<Value = WredProfile> {
    (0_u64..6000, any::<bool>()).prop_map(|(depth, is_line)| {
        let (kmin, pmax) = if is_line { (depth / 2, "0%") } else { (depth, "100%") };
        WredProfile::new(Bytes(kmin), Bytes(depth), pmax.parse().unwrap()).unwrap()
    })
}

fn queue() -> impl Strategy<Value = QueueSpec> {
    (prop::option::of(wred()), prop::option::weighted(0.8, threshold()), prop_oneof![Just(0), 0_u32..8]).prop_map(
        |(wred, limit, reserve)| QueueSpec {
            discipline: QueueDiscipline::Dwrr { weight: 1 },
            wred,
            limit: limit.map(QueueLimit::from),
            reserve: Cells(if limit.is_some() { reserve } else { 0 }),
        },
    )
}

/// Generates an identity map or an arbitrary map.
fn map() -> impl Strategy<Value = [u8; CLASSES]> {
    prop_oneof![Just([0, 1, 2, 3, 4, 5, 6, 7]), any::<[u8; CLASSES]>().prop_map(|map| map.map(|to| to % 8))]
}

pub(super) fn spec(policy: HeadroomPolicy) -> impl Strategy<Value = SwitchSpec> {
    let ports = (
        prop::collection::vec(group(), CLASSES),
        [0_u32..6, 0_u32..6],
        0_u32..12,
        prop_oneof![Just(PfcMode::Asymmetric), Just(PfcMode::Off)],
    );
    let switch = (prop::collection::vec(queue(), CLASSES), [map(), map()], [0_u32..90, 0_u32..90], 0_u32..20);
    (ports, switch).prop_map(move |((groups, reserve, insurance, pfc), (queues, maps, pools, headroom))| {
        let groups: [GroupProfile; CLASSES] = groups.try_into().unwrap();
        let port = |index: usize| {
            let mut port = PortSpec::new(format!("p{index}"), MacAddr::local(0, index as u16), RATE, groups);
            port.pfc = if index == 0 { pfc } else { PfcMode::Asymmetric };
            port.buffer.policy = policy;
            port.buffer.reserve = reserve.map(Cells);
            port.buffer.insurance = Cells(if policy == HeadroomPolicy::Dynamic { insurance } else { 0 });
            port
        };
        SwitchSpec {
            ports: (0..PORTS).map(port).collect(),
            buffer: BufferPlan {
                cell: Bytes(CELL),
                total: Cells(1000),
                reserves: Cells(0),
                headroom: Cells(headroom),
                policy,
                lossy_shared: Cells(pools[0]),
                lossless_shared: Cells(pools[1]),
            },
            classes: ClassMap { tc_to_group: maps[0], tc_to_queue: maps[1], ..ClassMap::identity() },
            queues: queues.try_into().unwrap(),
            fdb: FdbSpec { capacity: 16, ageing: Nanos(HZ * 1000), entries: vec![], seed: 0 },
            lags: LagsSpec::default(),
            poll_gap: Nanos(1000),
            lcores: 1,
            floods_lossless: false,
            hpcc: crate::mmu::HpccRules::NONE,
            abm: None,
            reverie: false,
            telemetry_queues: ClassSet::EMPTY,
            congestion_points: [None; crate::sets::CLASSES],
            routing: None,
            mirror: crate::plan::mirror::MirrorSpec::default(),
        }
    })
}

fn event() -> impl Strategy<Value = Event> {
    let ecn = prop_oneof![Just(Ecn::Ect0), Just(Ecn::NotEct), Just(Ecn::Ect1), Just(Ecn::Ce)];
    // Few classes, so that they fill.
    let class = prop_oneof![3 => 0_u8..3, 1 => 0_u8..8];
    let bytes = prop_oneof![Just(60_u16), 60_u16..1515];
    let arrive = (0..PORTS, class, bytes, EGRESSES, ecn).prop_map(|(port, class, bytes, egress, ecn)| {
        let port = if port == egress { 0 } else { port };
        Event::Arrive(Frame { port, class, bytes, egress, ecn })
    });
    let depart = (EGRESSES, prop::option::of(0_u8..3)).prop_map(|(egress, class)| Event::Depart(egress, class));
    prop_oneof![3 => arrive, 2 => depart]
}

/// Situations that traces must reach; otherwise they prove little.
const PLACES: [&str; 14] = [
    "Reserve",
    "PortReserve",
    "Shared",
    "Headroom",
    "Released",
    "headroom_full",
    "threshold",
    "pool_empty",
    "queue_threshold",
    "wred",
    "marked",
    "XOFF",
    "XON",
    "another port's pause",
];

/// Runs as many traces as `PROPTEST_CASES` specifies. Otherwise runs 400, and up to nine times as many more until all
/// situations were reached. Shows the smallest trace that fails.
fn traces_agree(policy: HeadroomPolicy, must_reach: &[&str]) {
    let asked = std::env::var("PROPTEST_CASES").is_ok();
    let config = if asked { Config::default() } else { Config::with_cases(400) };
    let config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..config };
    let reached = RefCell::new(BTreeSet::new());
    let missing = || PLACES.iter().chain(must_reach).find(|place| !reached.borrow().contains(**place)).copied();
    let trace = (spec(policy), prop::collection::vec(event(), 1..150));
    for _ in 0..10 {
        let mut runner = TestRunner::new(config.clone());
        if let Err(error) = runner.run(&trace, |(spec, events)| compare(&spec, &events, &reached)) {
            panic!("{error}");
        }
        if asked || missing().is_none() {
            return;
        }
    }
    panic!("no trace reached `{}`", missing().unwrap_or_default());
}

#[test]
fn a_replay_decides_as_the_pipeline_does_with_independent_headroom() {
    traces_agree(HeadroomPolicy::Independent, &[]);
}

#[test]
fn a_replay_decides_as_the_pipeline_does_with_a_headroom_pool() {
    traces_agree(HeadroomPolicy::SharedPool, &["headroom_pool_empty"]);
}

#[test]
fn a_replay_decides_as_the_pipeline_does_with_dynamic_headroom() {
    traces_agree(HeadroomPolicy::Dynamic, &["port XOFF"]);
}
