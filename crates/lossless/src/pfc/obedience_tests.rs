use super::*;
use crate::units::Quanta;
use proptest::prelude::*;

/// A tick is a nanosecond. At 100G a pause lasts 335.5 us, and its refresh is due after 167.8 us.
const HZ: u64 = 1_000_000_000;
const RATE: BitRate = BitRate(100_000_000_000);
const LIFE: u64 = 335_539;
const REACTION: u64 = 10_000;
/// Time between two polls, unless a test says otherwise.
const GAP: u64 = 1_000;
const CLASS: usize = 3;

/// A port that is polled, and the frames of class 3 that its peer has sent.
struct Bed {
    obedience: Obedience,
    now: u64,
    received: Received,
    poll: JudgedPoll,
}

impl Bed {
    fn new() -> Self {
        Self {
            obedience: Obedience::new(RATE, Nanos(REACTION), HZ),
            now: 1_000_000,
            received: Received::default(),
            poll: JudgedPoll { is_drained: true, takes_frames: true },
        }
    }

    fn send(&mut self, is_xoff: bool) {
        let quanta = Quanta(if is_xoff { u16::MAX } else { 0 });
        let frame = PfcFrame { enabled: ClassSet::only(CLASS), quanta: [quanta; CLASSES] };
        self.obedience.sent(&frame, Ticks(self.now));
    }

    /// Polls `count` times at intervals of `gap`. Each poll receives `frames`.
    fn polls(&mut self, count: u64, gap: u64, frames: u64) {
        for _ in 0..count {
            self.received.frames += frames;
            self.received.bytes += 1000 * frames;
            self.now += gap;
            let received = self.received;
            self.obedience.judge(Ticks(self.now), self.poll, |priority| match priority {
                CLASS => received,
                other => panic!("priority {other} is not paused"),
            });
        }
    }

    fn answers(&self) -> Answers {
        self.obedience.answers()[CLASS]
    }

    fn observed(&self) -> Observed {
        self.answers().observed()
    }

    /// Pauses the peer for `polls`, of which the first `sending` bring frames.
    fn pause(&mut self, sending: u64, polls: u64) {
        self.send(true);
        self.polls(sending, GAP, 2);
        self.polls(polls - sending, GAP, 0);
        self.send(false);
        self.polls(20, GAP, 2);
    }
}

#[test]
fn peer_that_stops_within_its_time_three_times_obeys() {
    let mut bed = Bed::new();
    assert_eq!((bed.observed(), bed.obedience.is_watching()), (Observed::Unseen, false));
    bed.pause(8, 50);
    let answers = bed.answers();
    assert_eq!((answers.stops, answers.late_pauses, answers.late), (1, 0, Received::default()));
    assert_eq!((bed.observed(), bed.obedience.is_watching()), (Observed::Unseen, false), "it may have had no more");
    // The last of eight polls that read frames began 7 us after the one in which XOFF left.
    assert_eq!((answers.times, answers.ticks), ([0, 0, 1, 0, 0, 0, 0, 0, 0, 0], 7_000));
    assert!(bed.obedience.take_change() && !bed.obedience.take_change());
    for observed in [Observed::Unseen, Observed::Obeys, Observed::Obeys] {
        bed.pause(8, 50);
        assert_eq!(bed.observed(), observed);
    }
    bed.obedience.clear();
    assert_eq!((bed.observed(), bed.answers().stops), (Observed::Unseen, 4), "another peer may come");
}

#[test]
fn frames_beyond_the_reaction_are_late_and_three_such_pauses_accuse() {
    let mut bed = Bed::new();
    for pause in 1..=3 {
        assert_eq!(bed.observed(), Observed::Unseen, "{pause}");
        // The deadline is 10 us and a tick after the second poll. The poll at 12 us is the first that begins later, and
        // frames that the next one reads came after it.
        bed.pause(20, 50);
        assert_eq!(bed.answers().late, Received { frames: 2 * 7 * pause, bytes: 2000 * 7 * pause });
    }
    assert_eq!((bed.answers().late_pauses, bed.observed()), (3, Observed::Disobeys));
    for _ in 0..29 {
        bed.pause(5, 50);
        assert_eq!(bed.observed(), Observed::Disobeys);
    }
    bed.pause(5, 50);
    assert_eq!((bed.answers().stops, bed.observed()), (30, Observed::Obeys), "two of the last 32");
}

#[test]
fn peer_that_ignores_a_lasting_xoff_is_found_at_its_third_refresh() {
    let mut bed = Bed::new();
    bed.send(true);
    for refresh in 1..=3 {
        bed.polls(168, GAP, 2);
        assert_eq!(bed.observed(), Observed::Unseen);
        bed.send(true);
        bed.polls(1, GAP, 2);
        assert_eq!(bed.answers().late_pauses, refresh);
    }
    assert_eq!(bed.observed(), Observed::Disobeys);
}

#[test]
fn one_lost_xoff_accuses_no_peer() {
    let mut bed = Bed::new();
    for _ in 0..20 {
        bed.pause(5, 50);
    }
    bed.pause(50, 50);
    assert_eq!((bed.answers().late_pauses, bed.observed()), (1, Observed::Obeys));
}

#[test]
fn frames_that_waited_in_the_ring_are_not_late() {
    let mut bed = Bed::new();
    bed.send(true);
    bed.polls(2, GAP, 2);
    // The core stands still for long, and then needs many polls to drain the ring.
    bed.poll.is_drained = false;
    bed.polls(1, 100_000, 2);
    bed.polls(40, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0);
    // The poll that drains the ring still read old frames, and so may the next.
    bed.poll.is_drained = true;
    bed.polls(1, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0);
    bed.polls(1, GAP, 2);
    assert_eq!(bed.answers().late.frames, 2, "these came after the ring was empty");
}

#[test]
fn poll_that_stands_still_before_it_sends_xoff_delays_the_deadline() {
    let mut bed = Bed::new();
    bed.send(true);
    bed.polls(1, 100_000, 2);
    bed.polls(12, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0);
    bed.polls(1, GAP, 2);
    assert_eq!(bed.answers().late.frames, 2);
}

#[test]
fn pause_that_may_have_run_out_excuses_the_peer() {
    let mut bed = Bed::new();
    bed.send(true);
    bed.polls(20, GAP, 0);
    // No refresh leaves, for example for want of a buffer.
    bed.polls(1, LIFE, 2);
    bed.polls(50, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0);
    // The refresh begins a new deadline.
    bed.send(true);
    bed.polls(12, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0);
    bed.polls(2, GAP, 2);
    assert_eq!(bed.answers().late.frames, 2);
}

#[test]
fn xon_between_two_pauses_begins_a_new_deadline() {
    let mut bed = Bed::new();
    for _ in 0..50 {
        bed.send(true);
        bed.polls(8, GAP, 2);
        bed.send(false);
        bed.polls(1, GAP, 2);
    }
    assert_eq!((bed.answers().late.frames, bed.answers().stops, bed.observed()), (0, 0, Observed::Unseen));
}

#[test]
fn device_that_refuses_frames_excuses_the_peer() {
    let mut bed = Bed::new();
    bed.send(true);
    bed.polls(20, GAP, 0);
    bed.poll.takes_frames = false;
    bed.polls(1, GAP, 0);
    bed.poll.takes_frames = true;
    bed.polls(50, GAP, 2);
    bed.send(false);
    let answers = bed.answers();
    assert_eq!((answers.late.frames, answers.late_pauses, answers.stops), (0, 0, 0), "XOFF may still wait in its ring");
}

#[test]
fn pause_beyond_the_horizon_is_not_judged() {
    let mut bed = Bed::new();
    bed.send(true);
    for _ in 0..400 {
        bed.polls(150, GAP, 0);
        bed.send(true);
    }
    bed.polls(100, GAP, 2);
    assert_eq!(bed.answers().late.frames, 0, "a watchdog of the peer may have ended the pause after 60 ms");
}

#[test]
fn class_without_frames_stays_unseen() {
    let mut bed = Bed::new();
    bed.pause(0, 50);
    assert_eq!((bed.answers().stops, bed.observed()), (0, Observed::Unseen), "the peer had nothing to send");
}

#[test]
fn link_down_ends_the_evidence_but_not_the_totals() {
    let mut bed = Bed::new();
    for _ in 0..3 {
        bed.pause(50, 50);
    }
    bed.send(true);
    bed.obedience.clear();
    assert_eq!((bed.observed(), bed.obedience.is_watching()), (Observed::Unseen, false));
    assert_eq!((bed.answers().late_pauses, bed.answers().late.frames), (3, 3 * 2 * 37));
}

/// A peer in continuous time, and the port that pauses it.
struct World {
    bed: Bed,
    /// PFC frames on their way: arrival, and whether it is XOFF.
    told: Vec<(u64, bool)>,
    paused_until: u64,
    /// Arrivals of frames that wait in the ring.
    ring: std::collections::VecDeque<u64>,
    sent_until: u64,
}

impl World {
    /// Lets the peer send a frame each 300 ns until `to`, if it `obeys` only unless it is paused. A frame that it sends
    /// arrives after a part of the reaction.
    fn run(&mut self, to: u64, obeys: bool, way: u64) {
        while self.sent_until < to {
            let now = self.sent_until;
            self.told.retain(|&(at, is_xoff)| {
                if at <= now {
                    self.paused_until = if is_xoff { at + LIFE } else { 0 };
                }
                at > now
            });
            if !obeys || now >= self.paused_until {
                self.ring.push_back(now + way);
            }
            self.sent_until += 300;
        }
    }

    /// A poll: its true receive and send times lie anywhere in it.
    fn poll(&mut self, gap: u64, late: u64, most: usize, xoff: Option<bool>, obeys: bool, way: u64) {
        let begin = self.bed.now;
        let at = begin + late % gap;
        self.run(at, obeys, way);
        let come = self.ring.iter().take_while(|&&arrival| arrival <= at).count();
        let taken = come.min(most);
        self.ring.drain(..taken);
        if let Some(is_xoff) = xoff {
            self.bed.send(is_xoff);
            self.told.push((at + REACTION - way, is_xoff));
        }
        self.bed.poll.is_drained = taken == come;
        self.bed.polls(1, gap, taken as u64);
    }
}

proptest! {
    /// An obedient peer is never late, although polls stand still, leave frames, and refreshes are late or lost. A peer
    /// that ignores the same pauses is late in each that lasts while polls drain the ring.
    #[test]
    fn obedient_peer_is_never_late(
        steps in prop::collection::vec((1_u64..200, 0_u64..40_000, 0_usize..60, 0_u8..12, 0_u64..100), 1..400),
        way in 0_u64..REACTION,
        obeys in prop::bool::weighted(0.8),
    ) {
        let mut world = World { bed: Bed::new(), told: vec![], paused_until: 0, ring: [].into(), sent_until: 1_000_000 };
        let (mut is_xoff, mut refresh_at, mut sent_at, mut quiet) = (false, 0, 0, 0);
        for (short, long, most, choice, late) in steps {
            let gap = if choice == 0 { long + 1 } else { 100 * short };
            let xoff = match choice {
                1 if is_xoff => Some(false),
                2 if !is_xoff => Some(true),
                3.. if is_xoff && world.bed.now >= refresh_at => Some(true),
                _ => None,
            };
            if let Some(state) = xoff {
                (is_xoff, sent_at, refresh_at) = (state, world.bed.now, world.bed.now + LIFE / 2);
            }
            let most = if choice > 4 { usize::MAX } else { most };
            world.poll(gap, late * gap / 100, most, xoff, obeys, way);
            quiet = if is_xoff && xoff != Some(true) && most == usize::MAX { quiet + gap } else { 0 };
            let answers = world.bed.answers();
            prop_assert!(!obeys || answers.late.frames == 0, "{answers:?}");
            // Four polls or more that drain the ring, while the pause surely stands.
            let must_find = quiet > 140_000 && world.bed.now - sent_at < 300_000;
            prop_assert!(obeys || !must_find || answers.late.frames > 0, "{answers:?}");
        }
    }
}
