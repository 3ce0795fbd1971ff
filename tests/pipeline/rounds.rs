//! The order of receiving, sending PFC frames and transmitting in a poll of several rounds.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use crate::harness::{CELL, HZ, LOSSLESS, LOSSLESS_DSCP, frame, mac, pfc_of, spec};
use crate::watched::{Watch, Watched};
use holdfast::dataplane::Pipeline;
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::io::{Burst, Packet};
use holdfast::plan::{Counters, SwitchSpec};
use holdfast::sets::{BURST, ClassSet, LEAST_BURST};
use holdfast::units::{BitRate, Nanos, Ticks};

/// A step of the switch, as its ports observe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Processes a burst of this port.
    Works(usize),
    /// Transmits this number of frames by this port.
    Sends(usize, usize),
    /// Sends a PFC frame by this port.
    Tells(usize),
}

/// The order of steps.
struct Diary {
    steps: Vec<Step>,
    /// A frame, copies of which arrive at the second port when the first port's second burst begins.
    late: Option<Vec<u8>>,
    late_frames: usize,
    /// The time, and the time that a burst takes to process. With `None` no time passes.
    time: Option<(Ticks, Nanos)>,
    /// The time that a burst takes to transmit.
    sending: Nanos,
}

impl Watch for Diary {
    fn time(&self) -> Option<Ticks> {
        self.time.map(|(time, _)| time)
    }

    fn begins(&mut self, io: &mut MemPorts, port: usize) {
        let is_second = port == 0 && self.steps.contains(&Step::Works(0));
        if let Some(frame) = self.late.take_if(|_| is_second) {
            (0..self.late_frames).for_each(|_| io.inject(1, &frame));
        }
        self.steps.push(Step::Works(port));
        if let Some((time, burst)) = &mut self.time {
            time.0 += burst.0 * HZ / 1_000_000_000;
        }
    }

    fn sends(&mut self, _: &mut MemPorts, port: usize, packets: &Burst<MemPacket>) {
        let is_pfc = packets.first().is_some_and(|packet| pfc_of(packet.bytes()).is_some());
        self.steps.push(if is_pfc { Step::Tells(port) } else { Step::Sends(port, packets.len()) });
        if let Some((time, _)) = &mut self.time {
            time.0 += self.sending.0 * HZ / 1_000_000_000;
        }
    }
}

/// The instant at which the first poll begins. Each further one begins 100 us after the one before.
const NOW: Ticks = Ticks(2 * HZ);

/// A switch of one lcore that knows station `n` behind port `n` of `ports`, and receives up to three bursts a poll.
struct Bed {
    switch: Pipeline<MemPacket>,
    io: Watched<Diary>,
    scratch: Scratch<MemPacket>,
    counters: Arc<Counters>,
    /// The instant at which the next poll begins.
    next: Ticks,
}

impl Bed {
    fn new(ports: usize, change: impl Fn(&mut SwitchSpec)) -> Self {
        let mut spec = spec(ports);
        // 81 frames of the MTU at 10 Gb/s.
        (spec.lcores, spec.poll_gap) = (1, Nanos(100_000));
        spec.ports.iter_mut().for_each(|port| port.lcore = 0);
        change(&mut spec);
        let counters = Arc::new(Counters::new(ports, 1));
        let mut switch = Pipeline::new(&spec, counters.clone(), HZ, 1);
        for port in 0..ports {
            switch.learn(1, mac(port), port, Ticks(HZ));
        }
        let diary = Diary { steps: Vec::new(), late: None, late_frames: 1, time: None, sending: Nanos(0) };
        let io = Watched::new(ports, diary);
        Self { switch, io, scratch: Scratch::default(), counters, next: NOW }
    }

    fn inject(&mut self, port: usize, bursts: usize, frame: &[u8]) {
        (0..bursts * LEAST_BURST).for_each(|_| self.io.io.inject(port, frame));
    }

    /// Returns the steps of one poll.
    fn poll(&mut self) -> Vec<Step> {
        self.switch.poll(&mut self.io, &mut self.scratch, self.next);
        self.next.0 += HZ / 10_000;
        std::mem::take(&mut self.io.steps)
    }

    /// Returns the ports of the bursts that one poll processes, in order.
    fn works(&mut self) -> Vec<usize> {
        let port = |step| if let Step::Works(port) = step { Some(port) } else { None };
        self.poll().into_iter().filter_map(port).collect()
    }
}

#[test]
fn poll_receives_one_burst_per_port_in_turn() {
    let mut bed = Bed::new(3, |_| {});
    bed.inject(0, 2, &frame(0, 2, 0, 60));
    bed.inject(1, 4, &frame(1, 0, 0, 60));
    assert_eq!(bed.works(), [0, 1, 0, 1, 1]);
    assert_eq!(bed.counters.ports[1].rx_frames[0].get(), 96, "three bursts a poll, the fourth waits");
    assert_eq!(bed.counters.ports[1].backlog_frames.get(), 32);
}

#[test]
fn xoff_leaves_within_a_round() {
    let mut bed = Bed::new(4, |_| {});
    // The last port crosses its threshold with its first burst. The ports before it have all bursts that they may have.
    (0..3).for_each(|port| bed.inject(port, 3, &frame(port, 0, 0, 60)));
    bed.inject(3, 1, &frame(3, 0, LOSSLESS_DSCP, CELL));
    let steps = bed.poll();
    use Step::{Tells, Works};
    assert_eq!(steps[..5], [Works(0), Works(1), Works(2), Works(3), Tells(3)]);
    assert_eq!(bed.counters.ports[3].pfc_tx_xoff[LOSSLESS].get(), 1);
}

#[test]
fn drained_port_is_polled_again_in_later_rounds() {
    let mut bed = Bed::new(2, |_| {});
    bed.inject(0, 3, &frame(0, 1, 0, 60));
    bed.io.late = Some(frame(1, 0, 0, 60));
    assert_eq!(bed.works(), [0, 0, 0, 1], "the second port's frame came in the second round");
}

/// Bursts as in [`Step::Sends`]: port and frames.
type Sends = Vec<(usize, usize)>;

/// Returns the bursts that one poll transmits by the first two ports. Six other ports bring a burst each for each of
/// them.
///
/// The least that a poll transmits is two bursts a port. Pacing permits four bursts and 21 frames: 149 frames of 67.2
/// ns in its 10 us. With `times`, a received burst takes the first and a transmitted burst the second. Three quarters
/// of the poll gap are 30 us. The driver of the first port accepts `room` frames, or any number.
fn sends(times: Option<[Nanos; 2]>, room: Option<usize>) -> Sends {
    let mut bed = Bed::new(14, |spec| spec.poll_gap = Nanos(40_000));
    for port in 2..14 {
        let frame = frame(port, usize::from(port > 7), 0, 60);
        // Not a full burst, so that one round receives all.
        (1..LEAST_BURST).for_each(|_| bed.io.io.inject(port, &frame));
    }
    bed.io.io.set_room(0, room);
    if let Some([received, sent]) = times {
        (bed.io.time, bed.io.sending) = (Some((NOW, received)), sent);
    }
    let sends = |step| if let Step::Sends(port, frames) = step { Some((port, frames)) } else { None };
    bed.poll().into_iter().filter_map(sends).collect()
}

const LEAST: [(usize, usize); 4] = [(0, 32), (0, 32), (1, 32), (1, 32)];

#[test]
fn poll_without_clock_sends_only_the_minimum_bursts() {
    assert_eq!(sends(None, None), LEAST);
}

/// Pacing may permit more small frames than the least number of bursts, which counts large frames.
#[test]
fn poll_with_time_sends_all_paced_bursts_of_each_port_in_turn() {
    let sent = sends(Some([Nanos(500), Nanos(100)]), None);
    let (whole, remaining) = sent.split_at(8);
    assert_eq!(whole, [&LEAST[..], &[(0, 32), (1, 32), (0, 32), (1, 32)]].concat());
    assert_eq!(remaining, [(0, 21), (1, 21)]);
}

#[test]
fn send_round_is_not_started_when_it_would_end_late() {
    // The poll is 16 us old, and 21 and 26 us after rounds of 5 us. The next round would end after 31 us.
    let sent = sends(Some([Nanos(500), Nanos(2500)]), None);
    assert_eq!(sent[4..], [(0, 32), (1, 32), (0, 32), (1, 32)]);
    // The poll is 18.8 us old when the duration of a round is still unknown, and then 25.2 us.
    let sent = sends(Some([Nanos(500), Nanos(3200)]), None);
    assert_eq!(sent[4..], [(0, 32), (1, 32)]);
    // The poll is 30.4 us old.
    assert_eq!(sends(Some([Nanos(500), Nanos(6100)]), None), LEAST);
}

#[test]
fn port_with_full_driver_is_skipped_in_later_send_rounds() {
    let sent = sends(Some([Nanos(500), Nanos(100)]), Some(70));
    let (whole, remaining) = sent.split_at(7);
    assert_eq!(whole, [&LEAST[..], &[(0, 32), (1, 32), (1, 32)]].concat());
    assert_eq!(remaining, [(1, 21)]);
}

/// A port without frames in the first rounds may have all its bursts in later ones, without counting as a backlog.
#[test]
fn empty_receive_rounds_do_not_reduce_the_bursts_of_a_port() {
    let mut bed = Bed::new(2, |spec| spec.ports[1].backlog_mark = Some(5));
    bed.inject(0, 3, &frame(0, 1, 0, 60));
    bed.io.late = Some(frame(1, 0, 0, 60));
    bed.io.late_frames = 70;
    assert_eq!(bed.works(), [0, 0, 0, 1, 1, 1]);
    let counters = &bed.counters.ports[1];
    assert_eq!((counters.rx_frames[0].get(), counters.backlog_xoffs.get()), (70, 0));
}

/// On a core too slow for its load, a poll that received more would last longer. The next poll would be later than
/// headroom assumes.
#[test]
fn receive_round_without_time_is_skipped_and_leaves_a_backlog() {
    // Two bursts of 20 us each end within half of the gap of 100 us. Two more would not. None can be shed.
    let mut bed = Bed::new(2, |spec| spec.ports.iter_mut().for_each(|port| port.backlog_mark = Some(40)));
    bed.inject(0, 3, &frame(0, 1, LOSSLESS_DSCP, 60));
    bed.inject(1, 1, &frame(1, 0, LOSSLESS_DSCP, 60));
    bed.io.io.inject(1, &frame(1, 0, LOSSLESS_DSCP, 60));
    bed.io.time = Some((NOW, Nanos(20_000)));
    assert_eq!(bed.works(), [0, 1]);
    // The one frame of the second port is below its mark, but headroom assumes a poll that would have received it.
    let left = [0, 1].map(|port: usize| {
        let counters = &bed.counters.ports[port];
        (counters.backlog_frames.get(), counters.backlog_xoffs.get())
    });
    assert_eq!(left, [(64, 1), (1, 1)]);
    // With enough time it receives the rest within its gap.
    bed.io.time = Some((bed.next, Nanos(5_000)));
    let mut works = bed.works();
    works.sort_unstable();
    assert_eq!(works, [0, 0, 1]);
}

/// Frames that came after the switch had drained their queue are no backlog, though lossy frames take all of the time.
#[test]
fn receive_round_without_time_leaves_drained_lossless_queues_alone() {
    let lossless = frame(0, 1, LOSSLESS_DSCP, 60);
    for (count, xoffs) in [(LEAST_BURST / 2, 0), (LEAST_BURST + 1, 1)] {
        let mut bed = Bed::new(2, |spec| {
            (spec.ports[0].rx_queues, spec.ports[0].backlog_mark) = (2, Some(40));
        });
        bed.switch.steer(0, ClassSet::only(1), true);
        (0..3 * LEAST_BURST).for_each(|_| bed.io.io.inject_queue(0, 0, &frame(0, 1, 0, 60)));
        (0..count).for_each(|_| bed.io.io.inject_queue(0, 1, &lossless));
        bed.io.time = Some((NOW, Nanos(45_000)));
        assert_eq!(bed.works(), [0]);
        assert_eq!(bed.counters.ports[0].backlog_xoffs.get(), xoffs, "{count} lossless frames came in time");
    }
}

/// The estimate for the next round is the average duration of those before it.
#[test]
fn receive_round_is_started_only_when_it_would_end_in_time() {
    // Either the first port has all the frames, or the last one.
    for (port, (burst_ns, rounds)) in
        [0, 1].into_iter().flat_map(|port| [(18_000, 3), (19_000, 1)].map(|case| (port, case)))
    {
        let mut bed = Bed::new(2, |_| {});
        bed.inject(port, 3, &frame(port, 1 - port, 0, 60));
        bed.io.time = Some((NOW, Nanos(burst_ns)));
        assert_eq!(bed.works(), vec![port; rounds], "bursts of {burst_ns} ns");
    }
}

/// A poll that was quick makes the bursts of the next one large. A long one makes them small.
#[test]
fn bursts_are_large_only_after_a_quick_poll() {
    // 162 frames of the MTU in 20 us: up to 192 frames a poll.
    let mut bed = Bed::new(2, |spec| {
        spec.poll_gap = Nanos(20_000);
        spec.ports.iter_mut().for_each(|port| port.rate = BitRate(100_000_000_000));
    });
    // A poll may take half of the gap with 256 frames, so 15 us with the 384 that it moves here.
    for (begin_us, frames) in [(0, LEAST_BURST), (15, BURST), (30, BURST), (46, LEAST_BURST)] {
        bed.inject(0, 6, &frame(0, 1, 0, 60));
        bed.next = Ticks(NOW.0 + begin_us * HZ / 1_000_000);
        let sent: Vec<Step> = bed.poll().into_iter().filter(|step| matches!(step, Step::Sends(..))).collect();
        assert_eq!(sent, vec![Step::Sends(1, frames); 6 * LEAST_BURST / frames], "after {begin_us} us");
    }
}

/// A poll gap that bounds nothing leaves no time for further rounds, so a poll must send more than it receives.
#[test]
fn standing_queue_drains_without_a_poll_gap_while_frames_arrive() {
    [0, 500].into_iter().for_each(check_standing_queue);
}

fn check_standing_queue(poll_gap_ns: u64) {
    let mut bed = Bed::new(2, |spec| {
        spec.poll_gap = Nanos(poll_gap_ns);
        spec.ports.iter_mut().for_each(|port| port.rate = BitRate(400_000_000_000));
        // The first port always has a backlog.
        spec.ports[0].backlog_mark = Some(1);
    });
    bed.io.io.set_room(1, Some(0));
    bed.inject(0, 8, &frame(0, 1, 0, 60));
    (0..3).for_each(|_| drop(bed.poll()));
    assert_eq!(bed.switch.held_frames(), 3 * BURST);
    bed.io.io.set_room(1, None);
    for poll in 1..=4 {
        bed.io.time = Some((bed.next, Nanos(1_000)));
        bed.inject(0, 2, &frame(0, 1, 0, 60));
        bed.poll();
        assert_eq!(bed.switch.held_frames(), (3 - poll.min(3)) * BURST, "poll {poll}");
    }
}

/// Frames that had waited in queues leave after the first rounds. They do not make further rounds seem slow.
#[test]
fn standing_queues_do_not_end_a_poll_that_has_time() {
    for standing in [0, 40] {
        let mut bed = Bed::new(14, |spec| {
            spec.poll_gap = Nanos(40_000);
            spec.ports[0].backlog_mark = Some(32);
        });
        bed.io.time = Some((NOW, Nanos(0)));
        (2..14).for_each(|port| bed.io.io.set_room(port, Some(0)));
        for port in 2..14 {
            (0..standing).for_each(|_| bed.io.io.inject(0, &frame(0, port, 0, 60)));
        }
        bed.poll();
        assert_eq!(bed.switch.held_frames(), 12 * standing);
        (2..14).for_each(|port| bed.io.io.set_room(port, None));
        bed.inject(0, 8, &frame(0, 1, 0, 60));
        (bed.io.time, bed.io.sending) = (Some((bed.next, Nanos(1_000))), Nanos(600));
        // Eight bursts take 12.8 us, the queues 14.4 us. The poll may take 30 us.
        assert_eq!(bed.works(), [0; 8], "beside {standing} frames in each of twelve queues");
    }
}

/// The time before the first burst counts for all frames that were received in it, not only for those of a small burst.
#[test]
fn small_first_burst_does_not_make_the_core_seem_slow() {
    let mut bed = Bed::new(3, |spec| spec.poll_gap = Nanos(40_000));
    bed.io.io.inject(0, &frame(0, 1, 0, 60));
    (1..3).for_each(|port| bed.inject(port, 2, &frame(port, 0, 0, 60)));
    bed.io.time = Some((NOW, Nanos(1_000)));
    assert_eq!(bed.works(), [0, 1, 2, 1, 2]);
}

/// A round of an incast brings more small frames than the bursts of its egress port, which count MTU-sized ones.
#[test]
fn frames_of_an_incast_leave_before_the_next_round() {
    let mut bed = Bed::new(12, |spec| {
        spec.ports.iter_mut().for_each(|port| port.rate = BitRate(25_000_000_000));
    });
    (2..12).for_each(|port| bed.inject(port, 2, &frame(port, 0, 0, 60)));
    (bed.io.time, bed.io.sending) = (Some((NOW, Nanos(500))), Nanos(100));
    // Pacing allows 373 frames, and the bursts are seven.
    let steps = bed.poll();
    let is_work = |step: &Step| matches!(step, Step::Works(_));
    let second_round = (0..steps.len()).filter(|&at| is_work(&steps[at])).nth(10).expect("a second round");
    let sent = |step: &Step| if let Step::Sends(0, frames) = step { *frames } else { 0 };
    assert_eq!(steps[..second_round].iter().map(sent).sum::<usize>(), 10 * LEAST_BURST);
}
