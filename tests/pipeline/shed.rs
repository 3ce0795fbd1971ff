//! Lossy frames that a core without enough time sheds at the receive ring.

use holdfast::dataplane::Scratch;
use std::sync::Arc;

use crate::harness::{HZ, LOSSLESS, LOSSLESS_DSCP, frame, mac, spec};
use holdfast::dataplane::{Counters, DropReason, Pipeline, SwitchSpec};
use holdfast::io::Ports;
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::qos::RoceMap;
use holdfast::sets::{ClassSet, LEAST_BURST};
use holdfast::units::Ticks;

/// Frames of a flood that arrive between two polls. Each poll may receive one burst of a port.
const FLOOD: usize = 3 * LEAST_BURST;
/// Polls after which the allowance has settled.
const SETTLED: usize = 64;

/// A switch of one lcore and three ports that knows station `n` behind port `n`.
struct Bed {
    switch: Pipeline<MemPacket>,
    io: MemPorts,
    scratch: Scratch<MemPacket>,
    counters: Arc<Counters>,
    now: u64,
}

impl Bed {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut SwitchSpec)) -> Self {
        let mut spec = spec(3);
        spec.lcores = 1;
        for port in &mut spec.ports {
            (port.lcore, port.backlog_mark) = (0, Some(LEAST_BURST as u32));
        }
        change(&mut spec);
        let counters = Arc::new(Counters::new(3, 1));
        let mut switch = Pipeline::new(&spec, counters.clone(), HZ, 1);
        (0..3).for_each(|port| _ = switch.learn(1, mac(port), port, Ticks(HZ)));
        Self { switch, io: MemPorts::new(3), scratch: Scratch::default(), counters, now: HZ }
    }

    fn inject(&mut self, port: usize, count: usize, frame: &[u8]) {
        (0..count).for_each(|_| self.io.inject(port, frame));
    }

    fn poll(&mut self) {
        self.now += 1000;
        self.switch.poll(&mut self.io, &mut self.scratch, Ticks(self.now));
    }

    /// Polls `polls` times. Before each poll, only frames of `dscp` arrive at port 0, as a flood.
    fn flood(&mut self, polls: usize, dscp: u8) {
        for _ in 0..polls {
            self.inject(0, FLOOD, &frame(0, 1, dscp, 60));
            self.poll();
        }
    }

    fn shed(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].drops[class][DropReason::Shed as usize].get()
    }

    /// Returns the frames of `class` that `port` received and did not shed.
    fn passed(&self, port: usize, class: usize) -> u64 {
        self.counters.ports[port].rx_frames[class].get() - self.shed(port, class)
    }

    fn left(&mut self, port: usize) -> usize {
        self.io.backlog(port, ClassSet::ALL).expect("memory can count")
    }
}

#[test]
fn a_short_overload_sheds_nothing() {
    let mut bed = Bed::new();
    // Three polls receive them, one burst each.
    bed.flood(1, 0);
    (0..8).for_each(|_| bed.poll());
    assert_eq!((bed.shed(0, 0), bed.left(0)), (0, 0));
    assert_eq!(bed.counters.ports[0].rx_frames[0].get(), FLOOD as u64);
}

#[test]
fn a_stall_is_drained_and_sheds_nothing() {
    let mut bed = Bed::new();
    // The core was away for long, and is fast enough: it receives a burst a poll while a few frames arrive.
    bed.inject(0, 800, &frame(0, 1, 0, 60));
    for _ in 0..60 {
        bed.inject(0, 4, &frame(0, 1, 0, 60));
        bed.poll();
    }
    assert_eq!((bed.shed(0, 0), bed.left(0)), (0, 0));
    assert!(bed.counters.ports[0].backlog_xoffs.get() > 0, "it was a backlog");
}

#[test]
fn host_that_ignores_pfc_causes_no_shed_at_other_ports() {
    let mut bed = Bed::new();
    for _ in 0..1000 {
        // Port 0 is never drained. Port 2 sends little, as TCP does that shares a core.
        bed.inject(0, FLOOD, &frame(0, 1, LOSSLESS_DSCP, 60));
        bed.inject(2, 3, &frame(2, 1, 0, 60));
        bed.poll();
    }
    assert_eq!((0..8).map(|class| bed.shed(2, class)).sum::<u64>(), 0);
}

#[test]
fn mac_control_from_anywhere_but_the_link_peer_is_shed() {
    let mut bed = Bed::new();
    let mut control = frame(0, 1, 0, 60);
    control[12..16].copy_from_slice(&[0x88, 8, 1, 1]);
    for _ in 0..SETTLED {
        bed.inject(0, FLOOD, &control);
        bed.poll();
    }
    assert!(bed.shed(0, 0) > 0);
    let held = bed.counters.ports[0].backlog_held_ns.get();
    for _ in 0..1000 {
        bed.inject(0, FLOOD, &control);
        bed.poll();
    }
    (0..128).for_each(|_| bed.poll());
    let held = bed.counters.ports[0].backlog_held_ns.get() - held;
    assert!(held < 1_000_000 / 5, "held for {held} ns of 1 ms");
}

#[test]
fn acks_with_the_dscp_of_lossless_data_are_shed_in_their_own_class() {
    let mut bed = Bed::with(|spec| {
        spec.ports.iter_mut().for_each(|port| port.marks.roce = RoceMap { ack: Some(6), cnp: None });
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
    let xoffs = counters.ports[0].backlog_xoffs.get();
    let held = counters.ports[0].backlog_held_ns.get();
    assert!(xoffs > 0 && held > 0, "{xoffs} {held}");
    // From here lossless senders are rarely paused.
    bed.flood(1000, 0);
    (0..128).for_each(|_| bed.poll());
    let held = counters.ports[0].backlog_held_ns.get() - held;
    assert!(held < 1_000_000 / 5, "held for {held} ns of 1 ms");
    // About as many frames pass as a poll may receive.
    let passed = bed.passed(0, 0);
    assert!(passed > 1000 * LEAST_BURST as u64 / 2, "{passed} passed");
}

#[test]
fn lossless_frames_of_a_flooded_port_all_pass_in_order() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, 0);
    bed.io.sent_all(1);
    let mut wanted = Vec::new();
    for number in 0..500_u32 {
        bed.inject(0, FLOOD / 2, &frame(0, 1, 0, 60));
        let mut lossless = frame(0, 1, LOSSLESS_DSCP, 100);
        lossless[60..64].copy_from_slice(&number.to_be_bytes());
        bed.io.inject(0, &lossless);
        bed.inject(0, FLOOD / 2, &frame(0, 1, 0, 60));
        bed.poll();
        wanted.push(lossless);
    }
    (0..8).for_each(|_| bed.poll());
    let sent: Vec<_> = bed.io.sent_all(1).into_iter().filter(|frame| frame.len() == 100).collect();
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
            (0..FLOOD).for_each(|_| bed.io.inject_queue(0, 0, &frame(0, 1, 0, 60)));
            bed.poll();
        }
        assert_eq!(bed.counters.ports[0].backlog_xoffs.get() == 0, is_steered);
        assert_eq!(bed.shed(0, 0) == 0, is_steered);
    }
}

#[test]
fn core_that_sheds_receives_no_more_lossy_frames_from_their_queue_than_pass() {
    let mut bed = two_queues(true);
    let mut lossless = 0;
    for poll in 0..2000 {
        (0..FLOOD).for_each(|_| bed.io.inject_queue(0, 0, &frame(0, 1, 0, 60)));
        // The flood at a port with one queue makes the core shed.
        bed.inject(2, FLOOD, &frame(2, 1, 0, 60));
        if poll % 4 == 0 {
            bed.io.inject_queue(0, 1, &frame(0, 1, LOSSLESS_DSCP, 60));
            lossless += 1;
        }
        bed.poll();
    }
    let (shed, passed) = ([0, 2].map(|port| bed.shed(port, 0)), [0, 2].map(|port| bed.passed(port, 0)));
    assert!(shed[1] > 100_000 && shed[0] * 8 < shed[1], "{shed:?} of {} each were shed", 2000 * FLOOD);
    assert!(passed[0] * 10 > passed[1] * 9, "{passed:?} passed");
    assert_eq!(bed.passed(0, LOSSLESS), lossless);
}

#[test]
fn floods_share_equally_and_low_rate_class_loses_nothing() {
    let mut bed = Bed::new();
    let mut quiet = 0;
    for poll in 0..2000 {
        // Classes 0 and 1 of port 0 and class 0 of port 2 flood, one with twice as many frames as another. Class 2 does
        // not.
        bed.inject(0, 2 * LEAST_BURST, &frame(0, 1, 0, 60));
        bed.inject(0, 4 * LEAST_BURST, &frame(0, 1, 8, 60));
        bed.inject(0, 1, &frame(0, 1, 16, 60));
        bed.inject(2, 2 * LEAST_BURST, &frame(2, 1, 0, 60));
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
    bed.io.sent_all(2);
    let mut arp = vec![0xff; 6];
    arp.extend(mac(0).0);
    arp.extend([8, 6]);
    arp.resize(60, 0);
    for _ in 0..200 {
        bed.inject(0, FLOOD, &frame(0, 1, 0, 60));
        bed.io.inject(0, &arp);
        bed.poll();
    }
    (0..8).for_each(|_| bed.poll());
    assert_eq!(bed.io.sent_all(2).len(), 200, "each ARP request is flooded to the third port");
}

#[test]
fn shedding_ends_with_the_flood() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, 0);
    (0..200).for_each(|_| bed.poll());
    let shed = bed.shed(0, 0);
    // Too many frames for one poll, as at the beginning.
    bed.flood(1, 0);
    (0..8).for_each(|_| bed.poll());
    assert_eq!((bed.shed(0, 0), bed.left(0)), (shed, 0));
}

#[test]
fn an_overload_of_lossless_frames_sheds_nothing() {
    let mut bed = Bed::new();
    bed.flood(SETTLED, LOSSLESS_DSCP);
    assert_eq!((0..8).map(|class| bed.shed(0, class)).sum::<u64>(), 0, "no lossy frame makes it late");
}
