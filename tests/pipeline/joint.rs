//! Ports by which two lcores send: order of priorities, pauses, depths and the time of the wire.

use std::sync::Arc;

use holdfast::dataplane::{Pipeline, Scratch};
use holdfast::io::Burst;
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::mmu::{QueueLimit, Threshold};
use holdfast::pfc::{WatchdogAction, WatchdogSpec};
use holdfast::plan::{Counters, DropReason, SwitchSpec};
use holdfast::qos::{QueueDiscipline, WredProfile};
use holdfast::sets::ClassSet;
use holdfast::units::{BitRate, Bytes, Cells, Nanos, Probability, Ticks};

use crate::harness::{Bed, CELL, HZ, LOSSLESS, LOSSLESS_DSCP, frame, mac, spec_on};
use crate::layout::Layout;
use crate::watched::{Watch, Watched};

/// A switch of two lcores whose ports are joint.
fn spec(ports: usize) -> SwitchSpec {
    spec_on(Layout::JOINT, ports)
}

/// Ports of the first and of the second lcore that send to port 1, which belongs to the second.
const SENDERS: [usize; 2] = [0, 3];

/// DSCP of a frame of class 0, and of one of class 6.
const LOW: u8 = 0;
const HIGH: u8 = 48;

impl Bed {
    fn handed_off(&self) -> u64 {
        self.counters.lcores.iter().map(|lcore| lcore.handed_off_frames.get()).sum()
    }

    /// Injects `frames` frames of one cell for port 1 at each of [`SENDERS`].
    fn send(&mut self, frames: usize, dscp: u8) {
        for (from, _) in SENDERS.iter().flat_map(|from| (0..frames).map(move |frame| (*from, frame))) {
            self.io.inject(from, &frame(from, 1, dscp, CELL));
        }
    }

    /// Frames that port 1 sends while each sender always has frames of its DSCP, for `ns`; by sender.
    fn compete(&mut self, dscps: [u8; 2], ns: u64) -> [usize; 2] {
        let mut sent = [0; 2];
        let end = self.now + ns;
        while self.now < end {
            for (from, dscp) in SENDERS.into_iter().zip(dscps) {
                let held = self.counters.sum(1, |port| &port.queue_cells[usize::from(dscp >> 3)]);
                (0..if held < 2_000 { 8 } else { 4 }).for_each(|_| self.io.inject(from, &frame(from, 1, dscp, CELL)));
            }
            self.run(1_000);
            for frame in self.data(1) {
                sent[SENDERS.iter().position(|from| frame[6..12] == mac(*from).0).unwrap()] += 1;
            }
        }
        sent
    }
}

/// A switch whose port 1 carries a gigabit, and whose queues are deep.
fn slow() -> SwitchSpec {
    let mut spec = spec(4);
    spec.ports[1].rate = BitRate(1_000_000_000);
    spec
}

#[test]
fn frames_stay_on_the_lcore_that_received_them() {
    let mut bed = Bed::learned(&spec(4));
    let sent = |bed: &Bed| bed.counters.of_port(1).map(|port| port.tx_frames[0].get()).collect::<Vec<u64>>();
    let before = sent(&bed);
    bed.send(100, LOW);
    bed.run(100_000);
    assert_eq!((bed.data(1).len(), bed.handed_off()), (200, 0));
    let by_lcore: Vec<u64> = sent(&bed).iter().zip(before).map(|(now, before)| now - before).collect();
    assert_eq!(by_lcore, [100, 100, 0], "of the owner, of the first lcore, and of the owner as a guest");
    bed.assert_empty();
}

#[test]
fn pause_stops_both_lcores_until_xon() {
    let mut bed = Bed::learned(&spec(4));
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    // The pause is in the same poll as the frames: the first lcore has polled before it arrived.
    bed.switch.poll_once(&mut bed.io, bed.now);
    bed.send(10, LOSSLESS_DSCP);
    bed.run(20_000);
    assert_eq!((bed.data(1).len(), bed.switch.held_frames()), (0, 20));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    assert_eq!((bed.data(1).len(), bed.switch.held_frames()), (20, 0));
}

#[test]
fn pause_ends_for_both_lcores_with_its_time() {
    let mut bed = Bed::learned(&spec(4));
    // 100 quanta of 512 bits at 10G are 5.12 us.
    bed.pause(1, ClassSet::only(LOSSLESS), 100);
    bed.poll();
    bed.send(10, LOSSLESS_DSCP);
    bed.run(4_000);
    assert_eq!(bed.data(1).len(), 0);
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 20);
}

/// A refresh of the pause may wait unread in the ring of an owner that stands still.
#[test]
fn pause_outlasts_a_stall_of_the_lcore_that_received_it() {
    let mut bed = Bed::learned(&spec(4));
    bed.pause(1, ClassSet::only(LOSSLESS), 100);
    bed.poll();
    bed.fill(10);
    for _ in 0..50 {
        bed.now += 1_000;
        bed.switch.poll_one(0, &mut bed.io, bed.now);
    }
    assert_eq!(bed.data(1).len(), 0, "50 us after a pause of 5.12 us");
    bed.run(2_000);
    assert_eq!(bed.data(1).len(), 10, "the owner has found no refresh");
}

#[test]
fn link_that_goes_down_ends_the_pause_and_the_frames_of_both_lcores() {
    let mut bed = Bed::blocked(&spec(4));
    bed.send(10, LOSSLESS_DSCP);
    bed.run(2_000);
    bed.switch.set_link(1, false);
    bed.run(2_000);
    assert_eq!((bed.switch.held_frames(), bed.drops(1, DropReason::EgressDown)), (0, 20));
    bed.switch.set_link(1, true);
    for port in [1, 3] {
        bed.io.inject(port, &frame(port, 0xffff, LOW, 60));
    }
    bed.run(2_000);
    bed.io.sent_all(1);
    bed.send(10, LOSSLESS_DSCP);
    bed.run(20_000);
    assert_eq!(bed.data(1).len(), 20, "the new link has no pause");
}

#[test]
fn queue_limit_counts_the_frames_of_both_lcores() {
    let mut spec = slow();
    spec.queues[0].limit = Some(QueueLimit::from(Threshold::Static(Cells(100))));
    let mut bed = Bed::learned(&spec);
    for _ in 0..50 {
        bed.send(4, LOW);
        bed.run(1_000);
    }
    // An lcore sees the other's frames as of its last poll, so both together exceed the limit by one poll's frames.
    let highest = bed.switch.held_frames();
    assert!((95..=108).contains(&highest), "{highest} frames with a limit of 100");
    assert_eq!(bed.drops(1, DropReason::QueueThreshold) + bed.data(1).len() as u64 + highest as u64, 400);
}

#[test]
fn frames_are_marked_by_the_depth_of_both_lcores() {
    let depth = Bytes(40 * CELL as u64);
    let mut spec = spec(4);
    spec.queues[LOSSLESS].wred = WredProfile::new(depth, depth, Probability::ONE);
    let marked = |frames: usize| {
        let mut bed = Bed::blocked(&spec);
        // Groups of 30 cells turn XOFF and use headroom, but lose nothing.
        bed.send(frames, LOSSLESS_DSCP);
        bed.run(2_000);
        bed.pause(1, ClassSet::only(LOSSLESS), 0);
        bed.run(50_000);
        assert_eq!(bed.data(1).len(), 2 * frames);
        bed.counters.sum(1, |port| &port.ecn_marked[LOSSLESS])
    };
    assert_eq!(marked(15), 0, "30 frames are below the threshold");
    assert!(marked(30) >= 18, "60 frames are above it, although each lcore holds 30");
}

#[test]
fn lcores_share_a_congested_port_equally_at_its_rate() {
    let mut bed = Bed::learned(&slow());
    let sent = bed.compete([LOW, LOW], 5_000_000);
    // A frame of 208 B takes 1.856 us of a gigabit: 2,694 frames in 5 ms.
    let total = sent[0] + sent[1];
    assert!((2_640..=2_710).contains(&total), "{sent:?}");
    assert!(sent[0].abs_diff(sent[1]) < total / 5, "{sent:?}");
}

#[test]
fn strict_class_of_one_lcore_precedes_the_other_lcore() {
    let mut spec = slow();
    spec.queues[6].discipline = QueueDiscipline::Strict;
    let mut bed = Bed::learned(&spec);
    let sent = bed.compete([LOW, HIGH], 5_000_000);
    assert!(sent[0] * 10 < sent[1], "{sent:?}");
    let mut bed = Bed::learned(&spec);
    let sent = bed.compete([HIGH, LOW], 5_000_000);
    assert!(sent[1] * 10 < sent[0], "{sent:?}");
}

#[test]
fn dwrr_weights_hold_between_lcores() {
    let mut spec = slow();
    spec.queues[6].discipline = QueueDiscipline::Dwrr { weight: 3 };
    spec.queues[0].discipline = QueueDiscipline::Dwrr { weight: 1 };
    let mut bed = Bed::learned(&spec);
    let sent = bed.compete([LOW, HIGH], 5_000_000);
    let share = sent[1] as f64 / (sent[0] + sent[1]) as f64;
    assert!((0.68..0.82).contains(&share), "{sent:?}");
}

/// The watchdog of the port's lcore sees frames that only the other lcore holds, and drops them there.
#[test]
fn watchdog_drops_frames_of_the_other_lcore() {
    let mut spec = spec(4);
    let (detection, restoration) = (Nanos(1_000_000), Nanos(1_000_000));
    spec.ports[1].live.watchdog = Some(WatchdogSpec { detection, restoration, action: WatchdogAction::Drop });
    let mut bed = Bed::blocked(&spec);
    bed.fill(10);
    let storm = |bed: &mut Bed, ns: u64| {
        let end = bed.now + ns;
        while bed.now < end {
            bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
            bed.run(100_000);
        }
    };
    storm(&mut bed, 3_000_000);
    assert_eq!(bed.counters.ports[1].watchdog_storms[LOSSLESS].get(), 1);
    assert_eq!((bed.drops(1, DropReason::Watchdog), bed.switch.held_frames()), (10, 0));
    bed.fill(5);
    storm(&mut bed, 100_000);
    assert_eq!(bed.drops(1, DropReason::Watchdog), 15, "new frames are dropped too");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(3_000_000);
    bed.fill(5);
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.drops(1, DropReason::Watchdog)), (5, 15), "no drop once it is over");
}

/// Each transmission takes time.
struct Slow {
    time: u64,
    burst_ns: u64,
}

impl Watch for Slow {
    fn time(&self) -> Option<Ticks> {
        Some(Ticks(self.time))
    }

    fn sends(&mut self, _: &mut MemPorts, _: usize, _: &Burst<MemPacket>) {
        self.time += self.burst_ns;
    }
}

/// An lcore that holds frames for many ports of others has time for its own ports only. It sends what the poll gap
/// permits, at least a burst of each.
#[test]
fn frames_for_ports_of_others_do_not_prolong_a_poll() {
    let mut spec = spec(4);
    spec.poll_gap = Nanos(20_000);
    spec.ports.iter_mut().for_each(|port| port.rate = BitRate(400_000_000_000));
    let counters = Arc::new(Counters::of(&spec));
    let mut lcore = Pipeline::fleet(&spec, &counters, HZ, 1).remove(0);
    let (mut io, mut scratch, mut now) = (Watched::new(4, Slow { time: 0, burst_ns: 0 }), Scratch::default(), HZ);
    for port in [1, 3] {
        lcore.learn(1, mac(port), port, Ticks(HZ));
        io.io.set_room(port, Some(0));
        (0..600).for_each(|_| io.io.inject(port - 1, &frame(port - 1, port, LOW, CELL)));
    }
    let mut poll = |io: &mut Watched<Slow>, now: u64| {
        io.time = now;
        lcore.poll(io, &mut scratch, Ticks(now))
    };
    for _ in 0..100 {
        now += 20_000;
        poll(&mut io, now);
    }
    io.burst_ns = 5_000;
    [1, 3].into_iter().for_each(|port| io.io.set_room(port, None));
    now += 20_000;
    poll(&mut io, now);
    let sent = [1, 3].map(|port| io.io.sent_all(port).len());
    assert!(sent.iter().all(|frames| *frames >= 32), "{sent:?}");
    assert!(io.time - now <= 30_000, "{sent:?} frames in {} ns", io.time - now);
    io.burst_ns = 0;
    poll(&mut io, now + 20_000);
    let remaining = [1, 3].map(|port| io.io.sent_all(port).len());
    assert_eq!([sent[0] + remaining[0], sent[1] + remaining[1]], [600; 2], "the rest follows");
}

/// An lcore that has ended reads no pause any more. So the other sends nothing by its ports that a pause may stop.
#[test]
fn lcore_that_has_ended_stops_lossless_frames_of_the_other() {
    let mut bed = Bed::learned(&spec(4));
    assert!(bed.switch.shutdown_one(1, &mut bed.io, Ticks(bed.now)));
    bed.io.sent_all(1);
    bed.fill(10);
    (0..10).for_each(|_| bed.io.inject(0, &frame(0, 1, LOW, CELL)));
    for _ in 0..20 {
        bed.now += 1_000;
        bed.switch.poll_one(0, &mut bed.io, bed.now);
    }
    assert_eq!((bed.data(1).len(), bed.switch.held_frames()), (10, 10), "lossy frames only");
    assert!(bed.switch.shutdown(&mut bed.io, Ticks(bed.now)));
    assert_eq!(bed.drops(1, DropReason::Shutdown), 10);
    assert_eq!((bed.switch.held_frames(), bed.io.held()), (0, 0));
}

/// Each lcore has a transmit queue of its own. A queue that takes no frames is stuck for its lcore.
#[test]
fn stuck_queue_is_seen_and_recovers() {
    let mut spec = spec(4);
    spec.ports[1].live.stuck_after = Some(Nanos(100_000));
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..400 {
        bed.send(1, LOW);
        bed.run(1_000);
    }
    assert_eq!(bed.counters.of_port(1).filter(|port| port.egress_stuck.get() == 1).count(), 2);
    assert!(bed.drops(1, DropReason::EgressStuck) > 0);
    bed.io.set_room(1, None);
    for _ in 0..100 {
        bed.send(1, LOW);
        bed.run(1_000);
    }
    assert_eq!(bed.counters.of_port(1).filter(|port| port.egress_stuck.get() == 1).count(), 0);
    bed.run(10_000);
    bed.assert_empty();
}
