//! Runs against single frames: both choose the same frames at the same time, and mark the same ones.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::*;
use crate::config;
use crate::dataplane::egress::queue::Queue;
use crate::io::memory::MemPacket;
use crate::plan::spec::SwitchSpec;
use crate::qos::QueueDiscipline;
use crate::sets::CLASSES;
use crate::units::{BitRate, Probability};
use crate::wire::parse::L3;

const HZ: u64 = 1_000_000_000;

/// A frame that arrives: queue, length, ingress port, group, whether it is markable.
type Arrival = (usize, u16, u8, u8, bool);

/// A poll: the time since the poll before, paused queues, and frames.
type Step = (u64, u8, Vec<Arrival>);

/// A frame that left: poll, queue, length, ingress port, group, and whether it met congestion.
type Left = (usize, usize, u16, u8, u8, bool);

fn arrival() -> impl Strategy<Value = Arrival> {
    let len = prop_oneof![4 => Just(64_u16), 2 => Just(1514), 1 => 42_u16..70, 1 => 60_u16..9000];
    (0_usize..8, len, 0_u8..3, 0_u8..2, any::<bool>())
}

fn spec() -> impl Strategy<Value = SwitchSpec> {
    let discipline = prop_oneof![
        1 => Just(QueueDiscipline::Strict),
        4 => (1_u8..20).prop_map(|weight| QueueDiscipline::Dwrr { weight }),
    ];
    let wred = prop::option::of((0_u64..20_000, 0_u64..40_000, prop_oneof![Just("100%"), Just("20%")]));
    let queue = (discipline, wred);
    let rate = prop_oneof![Just(1_000_000_000), Just(10_000_000_000_u64), Just(400_000_000_000)];
    (prop::collection::vec(queue, 8), rate).prop_map(|(queues, rate)| {
        let mut spec = config::embedded().switch;
        for (queue, (discipline, wred)) in spec.queues.iter_mut().zip(queues) {
            queue.discipline = discipline;
            queue.wred = wred.and_then(|(kmin, width, pmax)| {
                let pmax: Probability = pmax.parse().expect("a probability");
                WredProfile::new(Bytes(kmin), Bytes(kmin + width), pmax)
            });
        }
        spec.ports[0].rate = BitRate(rate);
        spec
    })
}

/// The frames that left, in their order, the watermarks of the queues, and the state of pacing.
#[derive(Debug, PartialEq)]
struct Ran {
    left: Vec<Left>,
    highest: Vec<Cells>,
    shaper: String,
}

/// Offers the frames of `steps` to a port.
fn run(spec: &SwitchSpec, steps: &[Step]) -> Ran {
    let mut port = Port::new(0, spec, None, HZ);
    let mut egress: Egress<MemPacket> = Egress::new(spec, 7, HZ);
    let rule = QueueAdmission::new(spec.queues.map(|queue| queue.admission()));
    let reserves = spec.queue_reserves().remove(0);
    let (mut now, mut left) = (HZ, Vec::new());
    for (poll, (gap, paused, arrivals)) in steps.iter().enumerate() {
        now += gap;
        for &(queue, len, ingress, group, is_markable) in arrivals {
            let desc = FrameDesc::new(len, Cells(1 + u32::from(len) / 256), ingress, group, queue as u8);
            let desc = desc.with(FrameDesc::ip(L3::V4, 14, is_markable));
            let is_taken = port.queues[queue].push(&mut egress.slab, MemPacket::new(&[0; 14]), desc).is_ok();
            if is_taken {
                port.waiting.insert(queue);
            }
        }
        // A queue that must be discarded does not send, like one that is paused.
        port.discarding = ClassSet::from_bits(*paused);
        loop {
            let mut chosen = Chosen::default();
            egress.schedule(0, &mut port, &reserves, &rule, Ticks(now), &mut chosen);
            let charged: Cells = chosen.runs.iter().map(|charged| charged.cells).sum();
            assert_eq!(charged, egress.charges.iter().map(|desc| desc.cells()).sum(), "all cells are released");
            let sums = (0..CLASSES).map(|queue| chosen.sums[queue].frames()).sum::<u64>();
            assert_eq!(sums, egress.posted.len() as u64, "all frames are counted");
            left.extend(egress.charges.iter().enumerate().map(|(index, desc)| {
                let (ingress, group, _) = desc.charge();
                let is_congested = chosen.congested.contains(index);
                (poll, desc.queue(), desc.frame_len(), ingress as u8, group as u8, is_congested)
            }));
            egress.charges.clear();
            if egress.posted.drain(..).count() == 0 {
                break;
            }
        }
    }
    Ran { left, highest: port.queues.iter().map(Queue::cells_highest).collect(), shaper: format!("{:?}", port.shaper) }
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let paused = prop_oneof![3 => Just(0_u8), 1 => any::<u8>(), 1 => Just(u8::MAX)];
    prop::collection::vec((0_u64..20_000, paused, prop::collection::vec(arrival(), 0..most)), 1..20)
}

/// Checks `cases` random runs, and that they took the path `path` at least `least` times.
fn check<S: Strategy>(strategy: &S, path: FastPath, least: u64, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { failure_persistence: None, ..Config::with_cases(200) };
    let before = fast_path::hits(path);
    if let Err(error) = TestRunner::new(config).run(strategy, test) {
        panic!("{error}");
    }
    let taken = fast_path::hits(path) - before;
    assert!(taken >= least, "{path:?} was taken {taken} times");
}

#[test]
fn runs_leave_like_their_frames_one_by_one() {
    const TURNS: &[FastPath] = &[FastPath::AllSent];
    const FRAMES: &[FastPath] = &[FastPath::AllSent, FastPath::WholeRun, FastPath::AllMarked];
    let agree = |(spec, steps): (SwitchSpec, Vec<Step>)| {
        let runs = fast_path::without(TURNS, || run(&spec, &steps));
        prop_assert_eq!(runs, fast_path::without(FRAMES, || run(&spec, &steps)));
        Ok(())
    };
    check(&(spec(), steps(70)), FastPath::WholeRun, 1000, agree);
    let markable = |(gap, paused, arrivals): Step| {
        (
            gap,
            paused,
            arrivals.into_iter().map(|(queue, len, ingress, group, _)| (queue, len, ingress, group, true)).collect(),
        )
    };
    let marked = steps(70).prop_map(move |steps| steps.into_iter().map(markable).collect());
    check(&(spec(), marked), FastPath::AllMarked, 100, agree);
}

/// If all frames of a queue are of one group, they leave at once where they fit, and turns would send the same ones.
/// They are not marked, and take the same time.
#[test]
fn frames_that_all_fit_leave_at_once_as_in_turns() {
    let in_order = |mut ran: Ran| {
        ran.left.sort_by_key(|&(poll, queue, ..)| (poll, queue));
        ran
    };
    let agree = |(mut spec, steps): (SwitchSpec, Vec<Step>)| {
        // Marks depend on the order of draws, which turns change.
        spec.queues.iter_mut().for_each(|queue| queue.wred = None);
        // A poll sends all, except queues that are paused.
        spec.ports[0].rate = BitRate(400_000_000_000);
        let long = |(gap, paused, arrivals): Step| {
            let arrivals =
                arrivals.into_iter().map(|(queue, len, _, _, ecn)| (queue, len.max(60), 0, queue as u8, ecn));
            (40_000 + gap, paused, arrivals.collect())
        };
        let steps: Vec<Step> = steps.into_iter().map(long).collect();
        let in_turns = fast_path::without(&[FastPath::AllSent], || run(&spec, &steps));
        prop_assert_eq!(in_order(run(&spec, &steps)), in_order(in_turns));
        Ok(())
    };
    check(&(spec(), steps(8)), FastPath::AllSent, 500, agree);
}

/// A port with frames of two queues.
fn two_queues() -> (SwitchSpec, Port, Egress<MemPacket>) {
    let spec = config::embedded().switch;
    let (mut port, mut egress) = (Port::new(0, &spec, None, HZ), Egress::new(&spec, 7, HZ));
    for queue in [0, 3] {
        let desc = FrameDesc::new(64, Cells(1), 0, queue as u8, queue as u8);
        assert!(port.queues[queue].push(&mut egress.slab, MemPacket::new(&[0; 14]), desc).is_ok());
        port.waiting.insert(queue);
    }
    (spec, port, egress)
}

#[test]
fn frames_leave_at_once_only_from_a_port_whose_device_takes_all() {
    let schedule = |takes_all: bool, paused: ClassSet| {
        let (spec, mut port, mut egress) = two_queues();
        (port.takes_all, port.discarding) = (takes_all, paused);
        let rule = QueueAdmission::new(spec.queues.map(|queue| queue.admission()));
        let before = fast_path::hits(FastPath::AllSent);
        let reserves = spec.queue_reserves().remove(0);
        egress.schedule(0, &mut port, &reserves, &rule, Ticks(HZ), &mut Chosen::default());
        (egress.charges.len(), fast_path::hits(FastPath::AllSent) - before)
    };
    assert_eq!(schedule(true, ClassSet::EMPTY), (2, 1));
    assert_eq!(schedule(false, ClassSet::EMPTY), (2, 0), "in turns, so that no queue is always the last");
    assert_eq!(schedule(true, ClassSet::only(3)), (1, 1));
    assert_eq!(schedule(true, ClassSet::ALL), (0, 0), "nothing may leave, and no credit is lost");
}
