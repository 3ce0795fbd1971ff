//! The clock of a wire against arithmetic: time to drain, first mark, wait of a strict frame, and depth in telemetry.
//! Three rates, three poll gaps. A wire of the test's own tells when each frame begins.

use holdfast::qos::{QueueDiscipline, WredProfile};
use holdfast::sets::ClassSet;
use holdfast::units::{BitRate, Bytes, Nanos};

use crate::harness::*;
use crate::telemetry::{marked, notes};

/// A frame of 1000 B on the wire takes 800, 80 or 20 ns.
const LEN: usize = 976;
const WIRE: u64 = 1000;
const RATES_GBPS: [u64; 3] = [10, 100, 400];
const GAPS_NS: [u64; 3] = [10, 1_000, 20_000];
/// Pacing posts no more than this ahead.
const MOST_SLACK_NS: u64 = 10_000;
const BULK: u8 = 0;
const STRICT: usize = 7;
/// Depth that is marked.
const MARKED_BYTES: u64 = 60_000;

/// A frame that left.
struct Sent {
    is_strict: bool,
    is_marked: bool,
    /// The poll that posted it, and when the wire begins with it.
    posted_ns: u64,
    starts_ns: u64,
    /// Depth in its telemetry, and the frames of its queue that wait behind it.
    depth: u64,
    behind: u64,
}

/// A switch of which ports 0 and 2 send to port 1, and the wire of port 1.
struct World {
    bed: Bed,
    gap_ns: u64,
    frame_ns: u64,
    wire_free_ns: u64,
    sent: Vec<Sent>,
}

impl World {
    /// Creates a switch that has sent under load, so that it knows its poll gap, and is empty again.
    fn new(gbps: u64, gap_ns: u64, is_marking: bool) -> Self {
        let mut spec = spec(3);
        spec.poll_gap = Nanos(20_000);
        spec.telemetry_queues = ClassSet::only(BULK.into());
        spec.queues[STRICT].discipline = QueueDiscipline::Strict;
        if is_marking {
            let kmin = Bytes(MARKED_BYTES);
            spec.queues[usize::from(BULK)].wred = WredProfile::new(kmin, kmin, "100%".parse().unwrap());
        }
        for port in &mut spec.ports {
            port.rate = BitRate(gbps * 1_000_000_000);
        }
        let bed = Bed::learned(&spec);
        let mut world = Self { bed, gap_ns, frame_ns: WIRE * 8 / gbps, wire_free_ns: 0, sent: Vec::new() };
        // Gaps of the time before are forgotten in two milliseconds. A time without frames is no gap.
        for _ in 0..4 {
            world.inject(0, 1);
            world.poll();
            world.drain();
            world.bed.now += 1_100_000;
        }
        world
    }

    fn inject(&mut self, from: usize, frames: u64) {
        (0..frames).for_each(|_| self.bed.io.inject(from, &marked(from, 1, BULK, LEN)));
    }

    /// Polls, and puts what leaves on the wire.
    fn poll(&mut self) {
        self.bed.now += self.gap_ns;
        self.bed.poll();
        let now = self.bed.now;
        let sent = self.bed.io.sent_all(1);
        let bulk: Vec<bool> = sent.iter().map(|frame| frame[15] >> 2 == BULK).collect();
        for (index, frame) in sent.iter().enumerate() {
            let is_strict = !bulk[index];
            let starts_ns = self.wire_free_ns.max(now);
            self.wire_free_ns = starts_ns + self.frame_ns;
            let depth = if is_strict { 0 } else { notes(frame).as_slice()[0].queue_bytes() };
            let later = bulk[index + 1..].iter().filter(|is_bulk| **is_bulk).count() as u64;
            let behind = self.bed.switch.held_frames() as u64 + later;
            self.sent.push(Sent { is_strict, is_marked: frame[15] & 3 == 3, posted_ns: now, starts_ns, depth, behind });
        }
    }

    fn drain(&mut self) {
        while self.bed.switch.held_frames() > 0 || self.wire_free_ns > self.bed.now {
            self.poll();
        }
        (0..2).for_each(|_| self.poll());
        self.sent.clear();
    }

    /// The slack that pacing needs.
    fn slack_ns(&self) -> u64 {
        self.gap_ns.min(MOST_SLACK_NS)
    }
}

fn each(is_marking: bool, test: impl Fn(&mut World, &str)) {
    for gbps in RATES_GBPS {
        for gap_ns in GAPS_NS {
            test(&mut World::new(gbps, gap_ns, is_marking), &format!("{gbps}G, polls each {gap_ns} ns"));
        }
    }
}

#[test]
fn queue_drains_at_the_rate_of_the_wire_or_of_the_slack() {
    each(false, |world, place| {
        let frames = 300;
        let begin = world.bed.now + world.gap_ns;
        world.inject(0, frames / 2);
        world.inject(2, frames / 2);
        while world.sent.len() < frames as usize {
            world.poll();
        }
        let took = world.wire_free_ns - begin;
        // With rarer polls than the slack makes up for, each sends as much as the slack holds, and one frame.
        let of_poll = MOST_SLACK_NS / world.frame_ns + 1;
        let expected = if world.gap_ns <= MOST_SLACK_NS {
            frames * world.frame_ns
        } else {
            let polls = frames.div_ceil(of_poll);
            (polls - 1) * world.gap_ns + (frames - (polls - 1) * of_poll) * world.frame_ns
        };
        assert!(took.abs_diff(expected) <= world.frame_ns + 1, "{place}: {took} of {expected} ns");
        let ahead = world.sent.iter().map(|sent| sent.starts_ns - sent.posted_ns).max();
        let most = world.slack_ns() + 1;
        assert!(ahead.is_some_and(|ahead| ahead <= most), "{place}: {ahead:?} ns ahead of the wire, {most} are needed");
    });
}

#[test]
fn telemetry_depth_counts_all_bytes_before_each_frame() {
    each(false, |world, place| {
        world.inject(0, 150);
        world.inject(2, 150);
        while world.sent.len() < 300 {
            world.poll();
        }
        for sent in &world.sent {
            let before = (sent.starts_ns - sent.posted_ns) * WIRE / world.frame_ns;
            let behind = sent.behind * LEN as u64;
            // Notes have units of 80 B; a tick is a nanosecond.
            let tick = WIRE.div_ceil(world.frame_ns);
            let (least, most) = ((before + behind).saturating_sub(80 + tick), before + behind + 2 * tick);
            assert!((least..=most).contains(&sent.depth), "{place}: {} of {before} + {behind} B", sent.depth);
        }
    });
}

#[test]
fn first_mark_comes_with_the_poll_in_which_the_depth_is_reached() {
    each(true, |world, place| {
        let (mut arrived, mut due, begin) = (0, 0, world.bed.now);
        // Two ports send at the rate of the third, so the depth grows at that rate.
        let first = loop {
            let frames = (world.bed.now - begin) / world.frame_ns - due;
            due += frames;
            arrived += 2 * frames;
            world.inject(0, frames);
            world.inject(2, frames);
            world.poll();
            if let Some(first) = world.sent.iter().find(|sent| sent.is_marked) {
                break first.posted_ns;
            }
            // No frame of this poll was marked: all that has arrived and not left is no deeper, but for what ports may
            // not receive in one poll.
            assert!(due < 4_000, "{place}: no mark");
        };
        let depth_at = |ns: u64| {
            let sent = world.sent.iter().filter(|sent| sent.starts_ns < ns).count() as u64;
            (arrived - sent.min(arrived)) * LEN as u64
        };
        let reached = MARKED_BYTES * world.frame_ns / LEN as u64;
        let late = (first - begin).saturating_sub(reached);
        let allowed = 2 * world.gap_ns + 3 * world.frame_ns;
        assert!(late <= allowed, "{place}: marked {late} ns late, depth then {} B", depth_at(first));
        assert!(depth_at(first) + 3 * WIRE > MARKED_BYTES, "{place}: marked at {} B", depth_at(first));
    });
}

#[test]
fn strict_frame_waits_for_one_frame_on_the_wire() {
    each(false, |world, place| {
        world.inject(0, 200);
        world.inject(2, 200);
        // Some of the bulk is posted.
        (0..3).for_each(|_| world.poll());
        world.bed.io.inject(0, &frame(0, 1, (STRICT as u8) << 3, LEN));
        // It waits behind the bulk in the receive ring of a port, if that is not yet empty.
        while !world.sent.iter().any(|sent| sent.is_strict) {
            world.poll();
        }
        let strict = world.sent.iter().find(|sent| sent.is_strict).expect("it was sent");
        let wait = strict.starts_ns - strict.posted_ns;
        assert!(wait <= world.frame_ns + 1, "{place}: {wait} ns behind what is posted");
    });
}

#[test]
fn posted_frames_are_noted_after_the_queue_is_empty() {
    let mut world = World::new(10, 1_000, false);
    world.inject(0, 2);
    world.poll();
    assert_eq!((world.sent.len(), world.bed.switch.held_frames()), (2, 0), "both are posted");
    world.inject(0, 1);
    world.poll();
    // Frames of 1600 ns, less a poll: 750 B, in units of 80.
    assert_eq!(world.sent[2].depth, 720);
}
