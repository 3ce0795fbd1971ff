//! Random switches and random traffic: no invariant breaks without a fault. One breaks for each mutant of the ledgers,
//! the tally and the queues.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::bed::*;
use crate::forward::{FdbSpec, LagsSpec};
use crate::mmu::{BufferPlan, GroupProfile, HeadroomPolicy, PortProfile, QueueLimit, Threshold};
use crate::mutant::{self, Mutant};
use crate::pfc::{PfcMode, WatchdogAction, WatchdogSpec};
use crate::plan::{DropReason, PortSpec, QueueSpec, SwitchSpec};
use crate::qos::{ClassMap, QueueDiscipline, WredProfile};
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Alpha, BitRate, Bytes, Cells, Nanos};
use crate::verify::audit::Check;
use crate::wire::MacAddr;

/// Classes of the frames in these tests; the first is lossy.
const TRAFFIC: [u8; 3] = [0, 3, 4];
const LOSSLESS: ClassSet = ClassSet::from_bits(0b1_1000);

fn threshold() -> impl Strategy<Value = Threshold> {
    let dynamic = (-3_i8..4).prop_map(|exponent| Threshold::Dynamic(Alpha::from_exponent(exponent).unwrap()));
    prop_oneof![(0_u32..40).prop_map(|cells| Threshold::Static(Cells(cells))), dynamic]
}

fn group(lossless: bool) -> impl Strategy<Value = GroupProfile> {
    (threshold(), 0_u32..12, 0_u32..8, 0_u32..5, 0_u32..20).prop_map(
        move |(threshold, reserve, offset, floor, headroom)| {
            let [xon_offset, xon_floor, headroom] =
                [offset, floor, headroom].map(|cells| Cells(if lossless { cells } else { 0 }));
            GroupProfile { lossless, reserve: Cells(reserve), threshold, xon_offset, xon_floor, headroom }
        },
    )
}

fn port_profile(policy: HeadroomPolicy) -> impl Strategy<Value = PortProfile> {
    let groups = prop::array::uniform2(group(true));
    (group(false), groups, [0_u32..10, 0_u32..10], 0_u32..20).prop_map(move |(lossy, lossless, reserve, insurance)| {
        let mut groups = [lossy; CLASSES];
        (groups[3], groups[4]) = (lossless[0], lossless[1]);
        let insurance = Cells(if policy == HeadroomPolicy::Dynamic { insurance } else { 0 });
        PortProfile { groups, reserve: reserve.map(Cells), policy, insurance }
    })
}

fn queue(is_lossless: bool) -> impl Strategy<Value = QueueSpec> {
    let limit = prop::option::weighted(0.7, threshold());
    (1_u16..4, limit, 0_u32..6, any::<bool>()).prop_map(move |(weight, limit, reserve, is_marked)| QueueSpec {
        discipline: QueueDiscipline::Dwrr { weight: weight.try_into().unwrap() },
        wred: if is_marked { WredProfile::new(Bytes(1000), Bytes(9000), "50%".parse().unwrap()) } else { None },
        limit: limit.filter(|_| !is_lossless).map(QueueLimit::from),
        reserve: Cells(if is_lossless { 0 } else { reserve }),
    })
}

fn policy() -> impl Strategy<Value = HeadroomPolicy> {
    prop_oneof![Just(HeadroomPolicy::Independent), Just(HeadroomPolicy::SharedPool), Just(HeadroomPolicy::Dynamic)]
}

fn switch() -> impl Strategy<Value = SwitchSpec> {
    // One of four switches has joint ports, and one has both kinds.
    let sizes = ([20_u32..200, 0_u32..200], 0_u32..30, 1_u8..4, 0_usize..4);
    policy().prop_flat_map(move |policy| {
        let ports = prop::collection::vec((port_profile(policy), 0_usize..6), PORTS);
        (ports, queue(false), queue(true), sizes.clone()).prop_map(move |(ports, lossy, lossless, sizes)| {
            let ([lossy_shared, lossless_shared], headroom, lcores, joint) = sizes;
            let port = |(index, (profile, kind)): (usize, (PortProfile, usize))| {
                let is_joint = joint == 0 || joint == 1 && index.is_multiple_of(2);
                let tx_queues = if is_joint { lcores } else { 1 };
                PortSpec { tx_queues, ..port(index, profile, kind, lcores) }
            };
            // With a reserve, no port is joint.
            let lossy = QueueSpec { reserve: if joint < 2 { Cells(0) } else { lossy.reserve }, ..lossy };
            let queues = std::array::from_fn(|queue| if LOSSLESS.contains(queue) { lossless } else { lossy });
            let ports: Vec<PortSpec> = ports.into_iter().enumerate().map(port).collect();
            let own: u64 = ports.iter().map(|port| port.buffer.own_cells()).sum();
            SwitchSpec {
                ports,
                buffer: BufferPlan {
                    cell: Bytes(CELL),
                    total: Cells(own as u32 + lossy_shared + lossless_shared + headroom),
                    reserves: Cells(0),
                    headroom: Cells(headroom),
                    policy,
                    lossless_shared: Cells(lossless_shared),
                    lossy_shared: Cells(lossy_shared),
                },
                classes: ClassMap::identity(),
                queues,
                fdb: FdbSpec { capacity: 64, ageing: Nanos(HZ * 1000), entries: vec![], seed: 0 },
                lags: LagsSpec::default(),
                poll_gap: Nanos(20_000),
                lcores,
                floods_lossless: headroom.is_multiple_of(2),
                hpcc: crate::mmu::HpccRules::NONE,
                abm: None,
                reverie: false,
                telemetry_queues: ClassSet::EMPTY,
                congestion_points: [None; CLASSES],
                routing: None,
                mirror: crate::plan::mirror::MirrorSpec::default(),
            }
        })
    })
}

fn port(index: usize, profile: PortProfile, kind: usize, lcores: u8) -> PortSpec {
    let mac = MacAddr::local(0, index as u16);
    let mut port = PortSpec::new(format!("p{index}"), mac, BitRate(10_000_000_000), profile.groups);
    port.buffer = profile;
    port.lcore = index as u8 % lcores;
    port.backlog_mark = kind.is_multiple_of(2).then_some(5);
    port.pfc = if kind == 5 { PfcMode::Off } else { PfcMode::Symmetric };
    let action = [WatchdogAction::Drop, WatchdogAction::Forward, WatchdogAction::Alert][kind % 3];
    let short = Nanos(400_000);
    port.live.watchdog = (kind < 3).then_some(WatchdogSpec { detection: short, restoration: short, action });
    port
}

fn event() -> impl Strategy<Value = Event> {
    let port = || 0..PORTS;
    let class = prop::sample::select(&TRAFFIC[..]);
    let bytes = prop_oneof![Just(60_usize), 60_usize..1515];
    prop_oneof![
        12 => (0_usize..3).prop_map(Event::Half),
        6 => (port(), 0..=PORTS, class, bytes, 1_usize..30).prop_map(|(a, b, class, len, n)| Event::Frames(a, b, class, len, n)),
        2 => (port(), any::<u8>(), prop_oneof![Just(0_u16), Just(0xffff), any::<u16>()]).prop_map(|(a, b, c)| Event::Pause(a, ClassSet::from_bits(b), c)),
        1 => (port(), any::<bool>()).prop_map(|(port, up)| Event::Link(port, up)),
        1 => (port(), prop::option::of(0_usize..10)).prop_map(|(port, room)| Event::Room(port, room)),
        4 => prop_oneof![4 => 100_u64..5000, 1 => 5000_u64..500_000].prop_map(Event::Wait),
        1 => Just(Event::ClearWatermarks),
        1 => (port(), tuned()).prop_map(|(port, tuned)| Event::Tune(port, tuned)),
        4 => Just(Event::Divide),
        1 => (port(), prop::sample::select(vec![1_u64, 10, 25]), any::<bool>()).prop_map(|(port, rate, has_pfc)| Event::Replace(port, rate, has_pfc)),
        1 => prop::sample::select(vec![0_u8, 0b1000, 0b1_0000, 0b1_1000]).prop_map(|classes| Event::Kinds(ClassSet::from_bits(classes))),
    ]
}

fn tuned() -> impl Strategy<Value = Tuned> {
    let action = prop::sample::select(vec![WatchdogAction::Drop, WatchdogAction::Forward, WatchdogAction::Alert]);
    let queue = (1_u8..4, any::<bool>(), prop::option::of(threshold()));
    (threshold(), 0_u32..8, 0_u32..5, queue, prop::option::of(action), 0_u32..4).prop_map(
        |(threshold, xon_offset, xon_floor, (weight, is_marked, limit), watchdog, halves)| Tuned {
            halves,
            threshold,
            xon_offset,
            xon_floor,
            weight,
            is_marked,
            limit,
            watchdog,
        },
    )
}

/// Counts of the situations that runs have reached.
type Reached = BTreeMap<&'static str, u64>;

fn run(spec: &SwitchSpec, events: &[Event], reached: &mut Reached) -> Check {
    let mut bed = Bed::new(spec);
    for &event in events {
        bed.step(event)?;
        note(&bed, reached);
    }
    bed.drain()?;
    let counters = &bed.fleet[0].telemetry.counters;
    for (reason, label, _) in DropReason::TABLE {
        let rows = (0..PORTS).flat_map(|port| counters.of_port(port)).flat_map(|port| &port.drops);
        *reached.entry(label).or_default() += rows.map(|row| row[*reason as usize].get()).sum::<u64>();
    }
    *reached.entry("replaced").or_default() += bed.replaced;
    *reached.entry("became lossy").or_default() += bed.turned[0];
    *reached.entry("became lossless").or_default() += bed.turned[1];
    *reached.entry("handed off").or_default() +=
        counters.lcores.iter().map(|lcore| lcore.handed_off_frames.get()).sum::<u64>();
    Ok(())
}

fn note(bed: &Bed, reached: &mut Reached) {
    for part in &bed.fleet {
        let is_guest = (0..PORTS).any(|port| !part.owns(port) && !part.ports[port].waiting.is_empty());
        *reached.entry("held by guests").or_default() += u64::from(is_guest);
        for port in (0..PORTS).filter(|&port| part.owns(port)) {
            let state = &part.ports[port];
            let mut note = |place, is_there| *reached.entry(place).or_default() += u64::from(is_there);
            note("headroom", (0..CLASSES).any(|group| part.view(port, group).headroom > Cells(0)));
            note("port reserve", state.ledger.reserve_used()[1] > Cells(0));
            note("group off", !state.ledger.groups_xoff().is_empty());
            note("port off", state.ledger.is_port_xoff());
            note("backlog", state.backlog.is_on());
            note("discarding", !state.discarding.is_empty());
            note("dividing", !bed.is_divided());
            note("ignoring", !part.ignoring(port).is_empty());
        }
    }
}

/// Situations that runs must reach; otherwise they prove little.
const PLACES: [&str; 19] = [
    "became lossy",
    "became lossless",
    "replaced",
    "dividing",
    "held by guests",
    "headroom",
    "port reserve",
    "group off",
    "port off",
    "backlog",
    "discarding",
    "ignoring",
    "handed off",
    "headroom_full",
    "headroom_pool_empty",
    "pool_empty",
    "threshold",
    "queue_threshold",
    "watchdog",
];

#[test]
fn a_switch_without_a_fault_breaks_no_invariant() {
    let cases = Config::default().cases.max(3000);
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let reached = RefCell::new(Reached::new());
    let outcome = runner.run(&(switch(), prop::collection::vec(event(), 1..200)), |(spec, events)| {
        let outcome = run(&spec, &events, &mut reached.borrow_mut());
        outcome.map_err(|broken| TestCaseError::fail(format!("{}: {}", broken.invariant, broken.what)))
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let reached = reached.into_inner();
    assert!(PLACES.iter().all(|place| reached[place] > 0), "{reached:?}");
}

/// Returns the invariants that break when random switches have the fault, and how often in 300 runs.
fn hunt(mutant: Mutant) -> BTreeMap<&'static str, u32> {
    let mut runner = TestRunner::deterministic();
    let cases = (switch(), prop::collection::vec(event(), 1..200));
    let mut found = BTreeMap::new();
    for _ in 0..300 {
        let (spec, events) = cases.new_tree(&mut runner).expect("nothing is filtered").current();
        if let Err(broken) = mutant::with(mutant, || run(&spec, &events, &mut Reached::new())) {
            *found.entry(broken.invariant).or_default() += 1;
        }
    }
    found
}

#[test]
fn mutant_xon_too_early_breaks_xoff_while_headroom() {
    let found = hunt(Mutant::XonTooEarly);
    assert!(found.contains_key("xoff_while_headroom"), "{found:?}");
}

#[test]
fn mutant_headroom_shared_breaks_headroom_limit() {
    let found = hunt(Mutant::HeadroomShared);
    assert!(found.contains_key("headroom_limit"), "{found:?}");
}

#[test]
fn mutant_release_order_breaks_release_order() {
    let found = hunt(Mutant::ReleaseOrder);
    assert!(found.contains_key("release_order"), "{found:?}");
}

#[test]
fn mutant_released_when_queued_breaks_never_underestimated() {
    let found = hunt(Mutant::ReleasedWhenQueued);
    assert!(found.contains_key("never_underestimated"), "{found:?}");
}

#[test]
fn mutant_tally_read_last_breaks_paused_without_cause() {
    let found = hunt(Mutant::TallyReadLast);
    assert!(found.contains_key("paused_without_cause"), "{found:?}");
}

#[test]
fn mutant_depth_stays_breaks_joint_state_told() {
    let found = hunt(Mutant::DepthStays);
    assert!(found.contains_key("joint_state_told"), "{found:?}");
}

#[test]
fn mutant_grows_too_early_breaks_division_fits() {
    let found = hunt(Mutant::GrowsTooEarly);
    assert!(found.contains_key("division_fits"), "{found:?}");
}

#[test]
fn mutant_promises_too_early_breaks_promised_with_headroom() {
    let found = hunt(Mutant::PromisesTooEarly);
    assert!(found.contains_key("promised_with_headroom"), "{found:?}");
}

#[test]
fn mutant_queue_of_port_breaks_dropped_without_cause() {
    let found = hunt(Mutant::QueueOfPort);
    assert!(found.contains_key("dropped_without_cause"), "{found:?}");
}
