//! Runs against single frames: both choose the same frames at the same time, and mark the same ones.

use proptest::prelude::*;

use super::*;
use crate::config;
use crate::dataplane::egress::queue::Queue;
use crate::dataplane::spec::SwitchSpec;
use crate::io::memory::MemPacket;
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

/// Offers the frames of `steps` to a port. Returns the frames that left, in their order, and the watermarks.
fn run(spec: &SwitchSpec, steps: &[Step]) -> (Vec<Left>, Vec<Cells>) {
    let mut port = Port::new(&spec.ports[0], spec, HZ);
    let mut egress: Egress<MemPacket> = Egress::new(spec, 7);
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
            let chosen = egress.schedule((0, &mut port), &reserves, &rule, Ticks(now));
            let charged: Cells = chosen.charges.iter().map(|charged| charged.cells).sum();
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
    (left, port.queues.iter().map(Queue::cells_highest).collect())
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let paused = prop_oneof![3 => Just(0_u8), 1 => any::<u8>()];
    prop::collection::vec((0_u64..20_000, paused, prop::collection::vec(arrival(), 0..most)), 1..20)
}

proptest! {
    #[test]
    fn runs_leave_like_their_frames_one_by_one(spec in spec(), steps in steps(70)) {
        let in_turns = |run: &dyn Fn() -> (Vec<Left>, Vec<Cells>)| mutant::with(Mutant::AlwaysInTurns, run);
        let runs = in_turns(&|| run(&spec, &steps));
        // Frame by frame, queues that fit one burst are sent in turns too: one fault is on at a time.
        let frames = mutant::with(Mutant::FrameByFrame, || run(&spec, &steps));
        prop_assert_eq!(runs, frames);
    }

    /// If all fits, each queue sends the same frames with and without turns.
    #[test]
    fn frames_that_all_fit_leave_with_and_without_turns(spec in spec(), steps in steps(20)) {
        let by_queue = |(mut left, highest): (Vec<Left>, Vec<Cells>)| {
            left.sort_by_key(|&(poll, queue, ..)| (poll, queue));
            (left, highest)
        };
        // A fast wire, and no pause: each poll sends all.
        let mut spec = spec;
        spec.ports[0].rate = BitRate(400_000_000_000);
        let steps: Vec<Step> = steps.into_iter().map(|(gap, _, arrivals)| (20_000 + gap, 0, arrivals)).collect();
        let together = by_queue(run(&spec, &steps));
        let in_turns = by_queue(mutant::with(Mutant::AlwaysInTurns, || run(&spec, &steps)));
        // WRED draws in the order of frames, which turns change.
        let unmarked = |(left, highest): &(Vec<Left>, Vec<Cells>)| {
            (left.iter().map(|&(poll, queue, len, ingress, group, _)| (poll, queue, len, ingress, group)).collect::<Vec<_>>(), highest.clone())
        };
        prop_assert_eq!(unmarked(&together), unmarked(&in_turns));
    }
}

#[test]
fn short_ways_are_taken() {
    let spec = config::embedded().switch;
    let hits = || [FastPath::AllSent, FastPath::WholeRun].map(fast_path::hits);
    let before = hits();
    let frames = |count| (0..count).map(|_| (3, 64, 0, 3, true)).collect::<Vec<_>>();
    run(&spec, &[(20_000, 0, frames(20)), (20_000, 0, frames(100))]);
    let after = hits();
    assert!(after[0] > before[0] && after[1] > before[1], "{before:?} {after:?}");
}
