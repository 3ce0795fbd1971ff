use super::*;
use crate::io::Packet;
use crate::io::memory::MemPorts;
use proptest::prelude::*;

const HZ: u64 = 1_000;
const LOSSLESS: ClassSet = ClassSet::only(3);

/// A port whose frames name their group and number. Queue and group of a frame are the test's choice.
struct Bed {
    io: MemPorts,
    queues: RxQueues,
    now: u64,
}

impl Bed {
    fn new(count: usize, is_stopped_by_xoff: bool) -> Self {
        Self { io: MemPorts::new(1), queues: RxQueues::new(count, is_stopped_by_xoff, LOSSLESS, HZ), now: 1 }
    }

    fn inject(&mut self, queue: usize, group: u8, numbers: std::ops::Range<u8>) {
        numbers.for_each(|number| self.io.inject_queue(0, queue, &[group, number]));
    }

    /// Receives and learns a burst. Returns group and number of its frames.
    fn receive(&mut self, xoff: ClassSet, is_late: bool) -> Vec<(u8, u8)> {
        let mut burst = Burst::new();
        self.queues.receive(&mut self.io, 0, Ticks(self.now), Conditions { xoff, is_late }, &mut burst);
        let frames: Vec<(u8, u8)> = burst.iter().map(|packet| (packet.bytes()[0], packet.bytes()[1])).collect();
        let all = (0..frames.len()).collect();
        self.queues.learn_groups(all, |index| frames[index].0.into());
        self.io.free(&mut burst);
        frames
    }
}

#[test]
fn queue_is_stopped_only_while_a_lossless_group_in_it_is_xoff() {
    let mut bed = Bed::new(2, true);
    bed.inject(0, 0, 0..1);
    bed.inject(1, 3, 0..1);
    assert_eq!(bed.receive(ClassSet::EMPTY, false), [(0, 0), (3, 0)]);
    bed.inject(0, 0, 1..2);
    bed.inject(1, 3, 1..2);
    assert_eq!(bed.receive(LOSSLESS, false), [(0, 1)], "queue 1 is stopped");
    assert_eq!(
        (bed.queues.stopped(LOSSLESS), bed.queues.stopped(ClassSet::only(4))),
        (ClassSet::only(1), ClassSet::EMPTY)
    );
    assert_eq!(bed.receive(ClassSet::EMPTY, false), [(3, 1)], "its frame waited");
}

#[test]
fn only_queue_with_all_classes_is_stopped_by_xoff() {
    let mut bed = Bed::new(1, true);
    bed.inject(0, 3, 0..1);
    bed.receive(ClassSet::EMPTY, false);
    bed.inject(0, 0, 0..1);
    assert_eq!(bed.receive(LOSSLESS, false), []);
    assert_eq!(bed.receive(ClassSet::EMPTY, false), [(0, 0)]);
}

#[test]
fn queue_without_pfc_by_queue_is_never_stopped() {
    let mut bed = Bed::new(2, false);
    bed.inject(1, 3, 0..40);
    assert_eq!(bed.receive(LOSSLESS, false).len(), LEAST_BURST);
    assert_eq!(bed.receive(LOSSLESS, false).len(), 8);
}

#[test]
fn lossless_queues_come_first_and_leave_a_share_to_others() {
    let mut bed = Bed::new(2, false);
    bed.inject(1, 3, 0..1);
    bed.receive(ClassSet::EMPTY, false);
    bed.inject(0, 0, 0..100);
    bed.inject(1, 3, 0..100);
    let lossless = |frames: &[(u8, u8)]| frames.iter().filter(|(group, _)| *group == 3).count();
    let frames = bed.receive(ClassSet::EMPTY, false);
    assert_eq!((frames[0].0, frames.len(), lossless(&frames)), (3, LEAST_BURST, LEAST_BURST - LOSSY_SHARE));
    let late = bed.receive(ClassSet::EMPTY, true);
    assert_eq!(
        (late.len(), lossless(&late)),
        (LEAST_BURST, LEAST_BURST),
        "on a late lcore the others get what remains"
    );
    bed.inject(0, 0, 100..101);
    let mut alone = Bed::new(2, false);
    alone.inject(1, 3, 0..1);
    alone.receive(ClassSet::EMPTY, false);
    alone.inject(1, 3, 0..40);
    assert_eq!(alone.receive(ClassSet::EMPTY, false).len(), LEAST_BURST, "an empty queue needs no share");
}

#[test]
fn other_queues_receive_at_most_the_frames_allowed_in_a_poll() {
    let mut bed = Bed::new(2, false);
    bed.queues.steer(ClassSet::only(1), true);
    bed.inject(0, 0, 0..100);
    bed.inject(1, 3, 0..40);
    let groups = |bed: &mut Bed| {
        let frames = bed.receive(ClassSet::EMPTY, true);
        [3, 0].map(|group| frames.iter().filter(|frame| frame.0 == group).count())
    };
    bed.queues.begin_poll(10);
    assert_eq!((groups(&mut bed), bed.queues.is_cut()), ([LEAST_BURST, 0], false));
    assert!(!bed.queues.is_drained());
    assert_eq!((groups(&mut bed), bed.queues.is_cut()), ([8, 10], true));
    assert!(bed.queues.is_drained());
    assert_eq!(groups(&mut bed), [0, 0]);
    bed.queues.begin_poll(usize::MAX);
    assert_eq!(groups(&mut bed), [0, LEAST_BURST]);
}

#[test]
fn steered_queues_are_lossless_without_frames_and_after_long_silence() {
    let mut bed = Bed::new(4, false);
    assert_eq!(bed.queues.backlogged(), ClassSet::first(4));
    bed.queues.steer(ClassSet::only(2) | ClassSet::only(7), true);
    for _ in 0..4 {
        bed.now += HZ;
        bed.receive(ClassSet::EMPTY, false);
        assert_eq!(bed.queues.backlogged(), ClassSet::only(2), "there is no queue 7");
    }
}

#[test]
fn lossless_queues_are_drained_if_they_left_room_for_themselves() {
    let mut bed = Bed::new(2, false);
    bed.queues.steer(ClassSet::only(1), true);
    let share = LEAST_BURST - LOSSY_SHARE;
    for (lossless, lossy, is_drained) in [
        (0, 0, true),
        (share - 1, 100, true),
        (share, 0, true),
        (share, 100, false),
        (LEAST_BURST - 1, 0, true),
        (LEAST_BURST, 0, false),
    ] {
        bed.inject(0, 0, 0..lossy);
        bed.inject(1, 3, 0..lossless as u8);
        bed.receive(ClassSet::EMPTY, false);
        assert_eq!(bed.queues.is_drained(), is_drained, "{lossless} and {lossy}");
        while !bed.receive(ClassSet::EMPTY, false).is_empty() {}
    }
}

#[test]
fn without_lossless_queues_all_must_be_empty_and_with_incomplete_rules_too() {
    for is_steered in [false, true] {
        let mut bed = Bed::new(2, false);
        if is_steered {
            bed.queues.steer(ClassSet::only(1), false);
        }
        assert_eq!(bed.queues.backlogged(), ClassSet::first(2));
        bed.inject(0, 0, 0..40);
        bed.receive(ClassSet::EMPTY, false);
        assert!(!bed.queues.is_drained(), "frames are left in queue 0");
        bed.receive(ClassSet::EMPTY, false);
        assert!(bed.queues.is_drained());
        // Incomplete rules cut no queue.
        bed.queues.begin_poll(0);
        bed.inject(0, 0, 0..10);
        assert_eq!(bed.receive(ClassSet::EMPTY, true).len(), 10);
    }
}

#[test]
fn busy_queues_of_a_kind_fill_bursts_in_turn() {
    let mut bed = Bed::new(4, false);
    for queue in 0..4 {
        bed.inject(queue, queue as u8 % 3, 0..200);
    }
    let mut seen = [0; 4];
    for _ in 0..8 {
        bed.receive(ClassSet::EMPTY, false).iter().for_each(|(group, _)| seen[usize::from(*group)] += 1);
    }
    // Queue 3 has frames of group 0, as queue 0 has.
    assert_eq!(seen, [128, 64, 64, 0]);
}

#[test]
fn queue_forgets_a_class_after_two_periods_unless_it_is_xoff() {
    let mut bed = Bed::new(2, true);
    bed.inject(1, 3, 0..1);
    bed.receive(ClassSet::EMPTY, false);
    for _ in 0..3 {
        bed.now += HZ;
        bed.receive(LOSSLESS, false);
        assert_eq!(bed.queues.carried(1), LOSSLESS, "a stopped queue cannot show what it carries");
    }
    bed.now += HZ;
    bed.receive(ClassSet::EMPTY, false);
    assert_eq!(bed.queues.carried(1), LOSSLESS, "one period old");
    bed.now += HZ;
    bed.receive(ClassSet::EMPTY, false);
    assert_eq!((bed.queues.carried(1), bed.queues.backlogged()), (ClassSet::EMPTY, ClassSet::first(2)));
}

#[test]
fn receive_queues_learn_groups_of_a_burst_without_its_shed_frames() {
    let mut bed = Bed::new(2, true);
    bed.inject(0, 0, 0..3);
    bed.inject(1, 3, 0..1);
    let mut burst = Burst::new();
    let conditions = Conditions { xoff: ClassSet::EMPTY, is_late: false };
    bed.queues.receive(&mut bed.io, 0, Ticks(1), conditions, &mut burst);
    bed.queues.remove((0..2).collect());
    bed.queues.learn_groups((0..2).collect(), |index| [0, 3][index]);
    assert_eq!([0, 1].map(|queue| bed.queues.carried(queue)), [ClassSet::EMPTY, LOSSLESS]);
    assert_eq!(bed.queues.carried_masks()[0], CARRIES_LOSSY);
}

#[test]
fn queue_that_is_not_known_brings_few_frames_while_a_group_is_xoff() {
    let mut bed = Bed::new(4, true);
    bed.inject(1, 3, 0..1);
    bed.receive(ClassSet::EMPTY, false);
    (0..4).for_each(|queue| bed.inject(queue, 3, 0..40));
    let frames = bed.receive(LOSSLESS, false);
    assert_eq!(frames.len(), 3 * UNKNOWN_QUEUE_FRAMES, "queue 1 is stopped");
    assert_eq!(bed.receive(LOSSLESS, false), [], "all are known now");
}

proptest! {
    /// Frames of a queue keep their order, none is lost or received from a stopped queue, and a burst that is not full
    /// leaves no frame in a queue that may be polled.
    #[test]
    fn receive_queues_keep_frames_in_order_and_lose_none(
        steps in prop::collection::vec((0..4_usize, 0..2_u8, 0..60_usize, any::<bool>(), any::<bool>()), 1..80),
    ) {
        let mut bed = Bed::new(4, true);
        let (mut sent, mut received) = ([0_u64; 4], [0_u64; 4]);
        for (queue, kind, count, is_xoff, is_late) in steps {
            for _ in 0..count {
                let mut frame = vec![kind * 3, queue as u8];
                frame.extend(sent[queue].to_be_bytes());
                bed.io.inject_queue(0, queue, &frame);
                sent[queue] += 1;
            }
            let xoff = if is_xoff { LOSSLESS } else { ClassSet::EMPTY };
            bed.now += 100;
            let most = if is_late { 7 } else { usize::MAX };
            bed.queues.begin_poll(most);
            let mut burst = Burst::new();
            bed.queues.receive(&mut bed.io, 0, Ticks(bed.now), Conditions { xoff, is_late }, &mut burst);
            let stopped = bed.queues.stopped(xoff);
            for packet in &burst {
                let queue = usize::from(packet.bytes()[1]);
                prop_assert!(!stopped.contains(queue), "queue {queue} is stopped");
                let number = u64::from_be_bytes(packet.bytes()[2..10].try_into().expect("eight bytes"));
                prop_assert_eq!(number, received[queue]);
                received[queue] += 1;
            }
            if burst.len() < LEAST_BURST && !is_xoff && !bed.queues.is_cut() {
                prop_assert_eq!(bed.io.backlog(0, ClassSet::first(4) - stopped), Some(0));
            }
            let groups: Vec<usize> = burst.iter().map(|packet| packet.bytes()[0].into()).collect();
            bed.queues.learn_groups((0..groups.len()).collect(), |index| groups[index]);
            bed.io.free(&mut burst);
        }
    }
}
