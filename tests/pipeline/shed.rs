//! Lossy frames that a core without enough time sheds at the receive ring.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use crate::harness::{HZ, LOSSLESS, LOSSLESS_DSCP, frame, mac, pfc_of, spec};
use crate::watched::{Watch, Watched};
use holdfast::dataplane::Pipeline;
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::io::{Burst, Ports};
use holdfast::plan::{Counters, DropReason, SwitchSpec};
use holdfast::qos::RoceMap;
use holdfast::sets::{ClassSet, LEAST_BURST};
use holdfast::units::{BitRate, Nanos, Ticks};

/// Frames of a flood that arrive between two polls.
const FLOOD: usize = 3 * LEAST_BURST;
/// Time of a poll, of a frame on its way in or out, and of a shed frame. A poll should take 10 us, so it has time to
/// forward 48 frames, and to shed a flood.
pub const POLL_NS: u64 = 300;
pub const FRAME_NS: u64 = 100;
const SHED_NS: u64 = 10;
/// Time after a flood in which shedding ends: all of the patience of 500 us is back.
const ENDS_NS: u64 = 33_000_000;
/// The poll gap in nanoseconds.
pub const GAP: u64 = 20_000;
/// Time after an interruption in which a frame takes longer.
const COLD_NS: u64 = 20_000;
/// Frames that a receive ring is said to hold.
const RING: u16 = 1024;
/// Polls after which the allowance has settled.
const SETTLED: usize = 256;

/// Frames take time.
pub struct Timed {
    pub now: u64,
    /// Time of a shed frame.
    pub shed_ns: u64,
    /// Time at which the core is next taken away while it receives, and for how long.
    pub away_at: u64,
    pub away_ns: u64,
    /// Frames that come to ports meanwhile.
    pub meanwhile: Vec<(usize, Vec<u8>)>,
    cold_until: u64,
}

impl Timed {
    fn new() -> Self {
        Self { now: HZ, shed_ns: SHED_NS, away_at: u64::MAX, away_ns: 0, meanwhile: Vec::new(), cold_until: 0 }
    }

    fn pass(&mut self, io: &mut MemPorts, frames: usize) {
        // Caches are cold after an interruption.
        let part = if self.now < self.cold_until { 4 } else { 1 };
        self.now += part * FRAME_NS * frames as u64;
        if self.now >= self.away_at {
            (self.now, self.away_at) = (self.now + self.away_ns, u64::MAX);
            self.cold_until = self.now + COLD_NS;
            self.meanwhile.drain(..).for_each(|(port, frame)| io.inject(port, &frame));
        }
    }
}

impl Watch for Timed {
    fn time(&self) -> Option<Ticks> {
        Some(Ticks(self.now))
    }

    fn received(&mut self, io: &mut MemPorts, frames: usize) {
        self.pass(io, frames);
    }

    fn sheds(&mut self, frames: usize) {
        self.now -= (FRAME_NS - self.shed_ns) * frames as u64;
    }

    fn sends(&mut self, io: &mut MemPorts, _: usize, packets: &Burst<MemPacket>) {
        self.pass(io, packets.len());
    }
}

/// A switch of one lcore and three ports that knows station `n` behind port `n`.
pub struct Bed {
    pub switch: Pipeline<MemPacket>,
    pub io: Watched<Timed>,
    scratch: Scratch<MemPacket>,
    counters: Arc<Counters>,
}

impl Bed {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut SwitchSpec)) -> Self {
        Self::sized(3, change)
    }

    pub fn sized(ports: usize, change: impl FnOnce(&mut SwitchSpec)) -> Self {
        let mut spec = spec(ports);
        (spec.lcores, spec.poll_gap) = (1, Nanos(GAP));
        for port in &mut spec.ports {
            (port.lcore, port.backlog_mark, port.ring_frames) = (0, Some(LEAST_BURST as u32), Some(RING));
        }
        change(&mut spec);
        let counters = Arc::new(Counters::new(ports, 1));
        let mut switch = Pipeline::new(&spec, counters.clone(), HZ, 1);
        (0..ports).for_each(|port| _ = switch.learn(1, mac(port), port, Ticks(HZ)));
        Self { switch, io: Watched::new(ports, Timed::new()), scratch: Scratch::default(), counters }
    }

    pub fn inject(&mut self, port: usize, count: usize, frame: &[u8]) {
        (0..count).for_each(|_| self.io.io.inject(port, frame));
    }

    pub fn poll(&mut self) {
        let now = Ticks(self.io.now);
        self.io.now += POLL_NS;
        self.switch.poll(&mut self.io, &mut self.scratch, now);
    }

    /// Polls for `time_ns`, in which no frame comes.
    fn poll_for(&mut self, time_ns: u64) {
        let end = self.io.now + time_ns;
        while self.io.now < end {
            self.poll();
        }
    }

    /// Polls `polls` times. Before each poll, only frames of `dscp` arrive at port 0, as a flood.
    fn flood(&mut self, polls: usize, dscp: u8) {
        for _ in 0..polls {
            self.inject(0, FLOOD, &frame(0, 1, dscp, 60));
            self.poll();
        }
    }

    pub fn shed(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].drops[class][DropReason::Shed as usize].get()
    }

    /// Returns the frames of `class` that `port` received and did not shed.
    pub fn passed(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].rx_frames[class].get() - self.shed(port, class)
    }

    fn left(&mut self, port: usize) -> usize {
        self.io.backlog(port, ClassSet::ALL).expect("memory can count")
    }
}

#[test]
fn a_short_overload_sheds_nothing() {
    let mut bed = Bed::new();
    bed.flood(1, 0);
    (0..8).for_each(|_| bed.poll());
    assert_eq!((bed.shed(0, 0), bed.left(0)), (0, 0));
    assert_eq!(bed.counters.ports[0].rx_frames[0].get(), FLOOD as u64);
}

#[test]
fn a_stall_is_drained_and_sheds_nothing() {
    let mut bed = Bed::new();
    // The core is fast enough, and was away for long.
    for _ in 0..60 {
        bed.inject(0, 8, &frame(0, 1, 0, 60));
        bed.poll();
    }
    bed.io.now += 1_000_000;
    bed.inject(0, 800, &frame(0, 1, 0, 60));
    for _ in 0..60 {
        bed.inject(0, 4, &frame(0, 1, 0, 60));
        bed.poll();
    }
    assert_eq!((bed.shed(0, 0), bed.left(0)), (0, 0));
    assert!(bed.counters.ports[0].backlog_xoffs.get() > 0, "it was a backlog");
}

/// A core may be away again while the frames of its first absence have just left: the ring is full, but drains.
#[test]
fn a_ring_that_is_full_after_a_second_stall_is_drained_and_sheds_nothing() {
    let mut bed = Bed::new();
    for (frames, time_ns) in [(200, 100_000), (900, 1_000_000)] {
        bed.io.now += 200_000;
        bed.inject(0, frames, &frame(0, 1, 0, 60));
        bed.poll_for(time_ns);
        assert_eq!(bed.left(0), 0);
    }
    assert_eq!(bed.shed(0, 0), 0);
    assert!(bed.counters.ports[0].backlog_xoffs.get() > 1, "both were a backlog");
}

/// A core that comes back long after its poll gap every time is overloaded, not away.
#[test]
fn a_flood_is_shed_by_a_core_that_polls_far_too_seldom() {
    let mut bed = Bed::new();
    for _ in 0..200 {
        bed.io.now += 1_000_000;
        bed.inject(0, 2 * usize::from(RING) / 3, &frame(0, 1, 0, 60));
        bed.poll();
    }
    assert!(bed.shed(0, 0) > 0);
}

#[test]
fn host_that_ignores_pfc_causes_no_shed_at_other_ports() {
    let mut bed = Bed::new();
    let mut began = 0;
    for poll in 0..1000 {
        // Port 0 is never drained. Port 2 sends little, as TCP does that shares a core.
        bed.inject(0, FLOOD, &frame(0, 1, LOSSLESS_DSCP, 60));
        bed.inject(2, 2, &frame(2, 1, 0, 60));
        bed.poll();
        if poll == SETTLED {
            began = bed.shed(2, 0);
        }
    }
    assert_eq!(bed.shed(2, 0), began);
    assert!(began <= 8, "{began}");
    // It is not told at each poll.
    assert!(bed.counters.ports[0].pfc_tx_xoff[LOSSLESS].get() < 64);
}

#[test]
fn mac_control_from_anywhere_but_the_link_peer_is_shed() {
    let mut bed = Bed::new();
    let mut control = frame(0, 1, 0, 60);
    control[12..16].copy_from_slice(&[0x88, 8, 1, 1]);
    // They are refused behind the receive ring, and nothing is sent.
    for _ in 0..SETTLED {
        bed.inject(0, 4 * FLOOD, &control);
        bed.poll();
    }
    assert!(bed.shed(0, 0) > 0);
    let held = bed.counters.ports[0].backlog_held_ns.get();
    for _ in 0..1000 {
        bed.inject(0, 4 * FLOOD, &control);
        bed.poll();
    }
    (0..128).for_each(|_| bed.poll());
    let held = bed.counters.ports[0].backlog_held_ns.get() - held;
    assert!(held < 1_000_000 / 5, "held for {held} ns of 1 ms");
}

#[test]
fn acks_with_the_dscp_of_lossless_data_are_shed_in_their_own_class() {
    let mut bed = Bed::with(|spec| {
        spec.ports.iter_mut().for_each(|port| port.live.marks.roce = RoceMap { ack: Some(6), cnp: None });
    });
    let mut ack = frame(0, 1, LOSSLESS_DSCP, 60);
    // The opcode behind Ethernet, IPv4 and UDP.
    ack[42] = 0x11;
    for _ in 0..2 * SETTLED {
        bed.inject(0, FLOOD, &ack);
        bed.poll();
    }
    assert!(bed.shed(0, 6) > 0);
    assert_eq!(bed.shed(0, LOSSLESS), 0);
}

#[test]
fn a_lasting_flood_is_shed_and_its_port_goes_on() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, 0);
    let counters = bed.counters.clone();
    assert!(bed.shed(0, 0) > 0);
    assert_eq!(
        counters.ports[0].rx_frames[0].get() as usize,
        SETTLED * FLOOD - bed.io.backlog(0, ClassSet::ALL).unwrap()
    );
    bed.flood(1000, 0);
    (0..128).for_each(|_| bed.poll());
    // Lossless senders wait only until shedding begins and the ring is drained.
    let (xoffs, held) = (counters.ports[0].backlog_xoffs.get(), counters.ports[0].backlog_held_ns.get());
    assert!(xoffs <= 2 && held < 800_000, "{xoffs} {held}");
    // About as many frames pass as a poll may receive.
    let passed = bed.passed(0, 0);
    assert!(passed > 1000 * LEAST_BURST as u64 / 2, "{passed} passed");
}

#[test]
fn lossless_frames_of_a_flooded_port_all_pass_in_order() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, 0);
    bed.io.io.sent_all(1);
    let mut wanted = Vec::new();
    for number in 0..500_u32 {
        bed.inject(0, FLOOD / 2, &frame(0, 1, 0, 60));
        let mut lossless = frame(0, 1, LOSSLESS_DSCP, 100);
        lossless[60..64].copy_from_slice(&number.to_be_bytes());
        bed.io.io.inject(0, &lossless);
        bed.inject(0, FLOOD / 2, &frame(0, 1, 0, 60));
        bed.poll();
        wanted.push(lossless);
    }
    (0..8).for_each(|_| bed.poll());
    let sent: Vec<_> = bed.io.io.sent_all(1).into_iter().filter(|frame| frame.len() == 100).collect();
    assert_eq!(sent, wanted);
    assert_eq!(bed.shed(0, LOSSLESS), 0);
    assert!(bed.shed(0, 0) > 0);
}

/// A bed whose port 0 has two receive queues: lossy frames in the first, lossless ones in the second.
fn two_queues(is_steered: bool) -> Bed {
    let mut bed = Bed::with(|spec| spec.ports[0].rx_queues = 2);
    if is_steered {
        bed.switch.steer(0, ClassSet::only(1), true);
    }
    bed
}

#[test]
fn flood_in_a_steered_queue_pauses_no_lossless_class_and_is_not_shed() {
    for is_steered in [true, false] {
        let mut bed = two_queues(is_steered);
        // Not a lossless frame comes, so only flow rules can tell what the second queue is for.
        for _ in 0..SETTLED {
            (0..FLOOD).for_each(|_| bed.io.io.inject_queue(0, 0, &frame(0, 1, 0, 60)));
            bed.poll();
        }
        let (shed, xoffs) = (bed.shed(0, 0), bed.counters.ports[0].backlog_xoffs.get());
        assert!(xoffs == 0 || !is_steered, "{xoffs}");
        // A poll that sheds may bring eight frames beyond the allowance.
        let few = (SETTLED * 10) as u64;
        assert!(if is_steered { shed < few } else { shed > 2 * few }, "{shed}");
    }
}

#[test]
fn core_that_sheds_receives_no_more_lossy_frames_from_their_queue_than_pass() {
    let mut bed = two_queues(true);
    let mut lossless = 0;
    for poll in 0..2000 {
        (0..FLOOD).for_each(|_| bed.io.io.inject_queue(0, 0, &frame(0, 1, 0, 60)));
        // The flood at a port with one queue makes the core shed.
        bed.inject(2, FLOOD, &frame(2, 1, 0, 60));
        if poll % 4 == 0 {
            bed.io.io.inject_queue(0, 1, &frame(0, 1, LOSSLESS_DSCP, 60));
            lossless += 1;
        }
        bed.poll();
    }
    let (shed, passed) = ([0, 2].map(|port| bed.shed(port, 0)), [0, 2].map(|port| bed.passed(port, 0)));
    assert!(shed[1] > 50_000 && shed[0] * 4 < shed[1], "{shed:?} of {} each were shed", 2000 * FLOOD);
    assert!(passed[0] * 10 > passed[1] * 9, "{passed:?} passed");
    assert_eq!(bed.passed(0, LOSSLESS), lossless);
}

/// Time in which four frames of floods come, of which a core forwards half.
const STEP_NS: u64 = 4 * FRAME_NS;

#[test]
fn floods_share_equally_and_low_rate_class_loses_nothing() {
    let mut bed = Bed::new();
    let (mut quiet, mut next) = (0, bed.io.now);
    for poll in 0..2000 {
        // Classes 0 and 1 of port 0 and class 0 of port 2 flood, one with twice as many frames as another. Class 2 does
        // not.
        while next <= bed.io.now {
            bed.inject(0, 1, &frame(0, 1, 0, 60));
            bed.inject(0, 2, &frame(0, 1, 8, 60));
            bed.inject(2, 1, &frame(2, 1, 0, 60));
            bed.inject(0, usize::from((next / STEP_NS).is_multiple_of(32)), &frame(0, 1, 16, 60));
            next += STEP_NS;
        }
        bed.poll();
        // Until then rings hold the frames of many polls.
        if poll == SETTLED {
            quiet = bed.shed(0, 2);
        }
    }
    let floods = [bed.passed(0, 0), bed.passed(0, 1), bed.passed(2, 0)];
    let (least, most) = (floods.iter().min().unwrap(), floods.iter().max().unwrap());
    assert!(most * 10 <= least * 12, "{floods:?}");
    assert_eq!(bed.shed(0, 2), quiet);
}

#[test]
fn network_control_passes_beside_a_flood_of_its_class() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, 0);
    bed.io.io.sent_all(2);
    let mut arp = vec![0xff; 6];
    arp.extend(mac(0).0);
    arp.extend([8, 6]);
    arp.resize(60, 0);
    for _ in 0..200 {
        bed.inject(0, FLOOD, &frame(0, 1, 0, 60));
        bed.io.io.inject(0, &arp);
        bed.poll();
    }
    (0..8).for_each(|_| bed.poll());
    assert_eq!(bed.io.io.sent_all(2).len(), 200, "each ARP request is flooded to the third port");
}

fn check_end(mut bed: Bed) {
    bed.flood(SETTLED, 0);
    bed.poll_for(ENDS_NS);
    let shed = bed.shed(0, 0);
    assert!(shed > 0);
    // A poll that sheds would pass few of these.
    bed.inject(0, 4 * FLOOD, &frame(0, 1, 0, 60));
    bed.poll_for(4 * GAP);
    assert_eq!((bed.shed(0, 0), bed.left(0)), (shed, 0));
}

#[test]
fn shedding_ends_with_the_flood() {
    check_end(Bed::new());
}

/// Without a clock, a poll has time for a number of frames.
#[test]
fn shedding_ends_without_a_clock_when_polls_may_forward_all_frames() {
    check_end(Bed::with(|spec| spec.poll_gap = Nanos(500)));
}

#[test]
fn an_overload_of_lossless_frames_sheds_nothing() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, LOSSLESS_DSCP);
    assert_eq!((0..8).map(|class| bed.shed(0, class)).sum::<u64>(), 0, "no lossy frame makes it late");
}

/// Ports of [`crowded`]. The last one has lossless frames for the second, which sends nothing.
const CROWD: usize = 8;
const LAST: usize = CROWD - 1;

/// A core whose polls end within a round: they reach few of its ports, which all bring frames that cannot be shed.
/// Frames for the second port have put the last one at XOFF.
fn crowded() -> Bed {
    let mut bed = Bed::sized(CROWD, |spec| {
        spec.poll_gap = Nanos(10_000);
        spec.ports.iter_mut().for_each(|port| port.rate = BitRate(400_000_000_000));
    });
    bed.io.io.set_room(1, Some(0));
    bed.inject(LAST, LEAST_BURST, &frame(LAST, 1, LOSSLESS_DSCP, 60));
    bed.poll();
    assert_eq!(bed.counters.ports[LAST].pfc_tx_xoff[LOSSLESS].get(), 1);
    bed
}

impl Bed {
    /// Polls while all ports but the last bring lossless frames.
    fn poll_others(&mut self) {
        (0..LAST).for_each(|port| self.inject(port, FLOOD, &frame(port, 2, LOSSLESS_DSCP, 60)));
        self.poll();
    }

    /// Does the same while the last port brings a lossy frame. Returns whether the poll reached it.
    fn poll_crowd(&mut self) -> bool {
        let before = self.counters.ports[LAST].rx_frames[0].get();
        self.inject(LAST, 1, &frame(LAST, 2, 0, 60));
        self.poll_others();
        self.counters.ports[LAST].rx_frames[0].get() > before
    }
}

#[test]
fn port_that_a_poll_does_not_reach_refreshes_xoff() {
    let mut bed = crowded();
    // XOFF at 400G lives for 83.9 us.
    let (mut told, mut longest, mut unreached) = (bed.io.now, 0, 0);
    for _ in 0..2000 {
        let begin = bed.io.now;
        unreached += u64::from(!bed.poll_crowd());
        if bed.io.io.sent_all(LAST).iter().any(|frame| pfc_of(frame).is_some()) {
            longest = longest.max(begin - told);
            told = begin;
        }
    }
    assert!(unreached > 1000, "polls reach the last port: {unreached} did not");
    assert!((41_000..60_000).contains(&longest), "XOFF was refreshed after {longest} ns");
}

#[test]
fn port_that_a_poll_does_not_reach_repeats_an_xon_that_did_not_leave() {
    // The poll that repeats it begins with any of the ports.
    for polls in SETTLED..SETTLED + CROWD {
        let mut bed = crowded();
        (0..polls).for_each(|_| bed.poll_others());
        // The frames of the last port leave, and its driver does not take the XON.
        bed.io.io.set_room(1, None);
        bed.io.io.set_room(LAST, Some(0));
        (0..4).for_each(|_| bed.poll_others());
        bed.io.io.sent_all(LAST);
        bed.io.io.set_room(LAST, None);
        bed.poll_others();
        let sent = bed.io.io.sent_all(LAST);
        let quanta: Vec<u16> =
            sent.iter().filter_map(|frame| pfc_of(frame)).map(|pfc| pfc.quanta[LOSSLESS].0).collect();
        assert_eq!(quanta, [0], "after {polls} polls");
    }
}

#[test]
fn poll_that_ends_within_a_round_takes_all_ports_in_turn() {
    let mut bed = crowded();
    let taken =
        |bed: &Bed| -> Vec<u64> { (0..LAST).map(|port| bed.counters.ports[port].rx_frames[LOSSLESS].get()).collect() };
    (0..SETTLED).for_each(|_| bed.poll_others());
    let before = taken(&bed);
    (0..700).for_each(|_| bed.poll_others());
    let counts: Vec<u64> = taken(&bed).iter().zip(&before).map(|(after, before)| after - before).collect();
    let (least, most) = (counts.iter().min().expect("ports"), counts.iter().max().expect("ports"));
    assert!(*least * 10 >= *most * 9, "{counts:?}");
}
