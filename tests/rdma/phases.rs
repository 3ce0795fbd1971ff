//! The test, in phases: the guests start once, each phase has a switch of its own.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::guest::PATIENCE;
use crate::lab::{GUESTS, Lab, Pfc};
use crate::metrics::Exposition;
use crate::process::wait_for;
use crate::ready::machine_is_ready;
use crate::traffic::{Counts, Flow};

/// Port of iperf3's server.
const IPERF: u16 = 5201;

/// Guests that send.
const SENDERS: u64 = GUESTS as u64 - 1;

/// More packets than the ring of the receiver's network card holds.
const RING: u64 = 300;

/// Retries of a queue pair as perftest sets them.
const RETRIES: u32 = 7;

/// Classes 0 and 3 have weight 1 each.
const SHARE: f64 = 0.5;

/// Part of its share that the flow of class 0 must keep.
const KEPT: f64 = 0.9;

#[test]
#[ignore = "needs QEMU and minutes: make test-rdma"]
fn guests_see_sequence_errors_only_if_their_queues_are_not_stopped() {
    if !machine_is_ready() {
        return;
    }
    let began = Instant::now();
    let mut lab = Lab::start(Pfc::Queue);
    eprintln!("four guests: {:.0} s", began.elapsed().as_secs_f64());
    stopped_queues_lose_nothing(&mut lab);
    senders_survive_a_new_switch(&mut lab);
    control_without_pfc_loses(&mut lab);
    eprintln!("all: {:.0} s", began.elapsed().as_secs_f64());
}

/// Three guests write, then send beside a flow of class 0: no packet is lost or late, and congestion is marked.
#[track_caller]
fn stopped_queues_lose_nothing(lab: &mut Lab) {
    let before = Counts::read(lab);
    let writes = Flow { program: "ib_write_bw", size: 4096, amount: "-D 10".to_owned(), timeout: 24 };
    writes.start(lab);
    writes.wait_for_success(lab);
    let wrote = Counts::read(lab).since(&before);
    eprintln!("pfc: queue, ib_write_bw: {wrote:?}");

    let sends = Flow { program: "ib_send_bw", size: 4096, amount: "-D 40".to_owned(), timeout: 24 };
    sends.start(lab);
    let mix = class_0_beside(lab, &sends);
    sends.wait_for_success(lab);
    let sent = Counts::read(lab).since(&before).since(&wrote);
    eprintln!("pfc: queue, ib_send_bw and iperf3: {sent:?}; {mix:?}");

    let metrics = lab.metrics();
    let drops = metrics.nonzero("holdfast_port_dropped_frames_total");
    for (what, counts) in [("writes", wrote), ("sends", sent)] {
        assert_eq!((counts.errors, counts.given_up), ([0; 3], 0), "{what}: {counts:?}; the switch dropped {drops:?}");
        assert!(counts.received > 1000 && counts.marked > 0, "{what}: {counts:?}");
    }
    assert_eq!(metrics.sum("holdfast_port_dropped_frames_total", &[("tc", "3")]), 0.0, "{drops:?}");
    let stops = metrics.sum("holdfast_pfc_queue_stops_total", &[]);
    assert!(stops > 0.0, "no queue was stopped: there was no congestion");
    assert!(mix.kept() >= KEPT, "{mix:?}");
}

/// Senders whose switch is killed and replaced go on within the time that their queue pairs would retry.
#[track_caller]
fn senders_survive_a_new_switch(lab: &mut Lab) {
    let before = Counts::read(lab);
    // Messages of one packet: soft-RoCE refused the retry of a longer write in one of four runs (`REM_INV_REQ_ERR`).
    let writes = Flow { program: "ib_write_bw", size: 1024, amount: "-n 1200".to_owned(), timeout: 20 };
    writes.start(lab);
    let received_since = |lab: &mut Lab, start: u64, packets: u64| {
        wait_for("packets at the receiver", PATIENCE, || {
            let now = Counts::read(lab);
            (now.received >= start + packets).then_some(now)
        })
    };
    received_since(lab, before.received, 1000);
    assert_eq!(lab.guests[1].ended(writes.program), None, "the programs ended too soon");
    lab.kill_switch();
    let killed = Instant::now();
    let at_end = Counts::read(lab);
    lab.start_switch(Pfc::Queue);
    received_since(lab, at_end.received, RING);
    let gap = killed.elapsed();
    writes.wait_for_success(lab);
    let all = Counts::read(lab).since(&before);
    eprintln!("pfc: queue, switch replaced after {} packets: {gap:.1?}, {all:?}", at_end.received - before.received);
    assert_eq!(all.given_up, 0, "{all:?}");
    let packets = SENDERS * 2 * 1200;
    assert!(all.received >= packets, "of {packets} packets: {all:?}");
    // Soft-RoCE retries without end if it may seven times, which is perftest's choice; NICs do not.
    assert!(gap < writes.retry_after() * (RETRIES + 1), "{gap:?}");
}

/// The traffic of [`stopped_queues_lose_nothing`] causes errors if the switch does not stop the guests' queues.
#[track_caller]
fn control_without_pfc_loses(lab: &mut Lab) {
    lab.kill_switch();
    lab.start_switch(Pfc::Off);
    lab.meet();
    for program in ["ib_write_bw", "ib_send_bw"] {
        let before = Counts::read(lab);
        // A short timeout: packets that are lost at the end of a burst cause no other error.
        let flow = Flow { program, size: 4096, amount: "-D 300".to_owned(), timeout: 16 };
        flow.start(lab);
        sleep(Duration::from_secs(10));
        let counts = wait_for("errors of each kind", PATIENCE, || {
            let counts = Counts::read(lab).since(&before);
            counts.errors.iter().all(|count| *count > 0).then_some(counts)
        });
        flow.kill(lab);
        eprintln!("pfc: off, {program}: {counts:?}");
    }
    assert!(lab.metrics().sum("holdfast_port_dropped_frames_total", &[("tc", "3")]) > 0.0);
}

/// Frames of class 0 beside those of class 3 at the port of the first guest.
#[derive(Debug)]
struct Mix {
    /// Bytes that guest 2 offered in class 0.
    offered: f64,
    /// Bytes sent to the first guest in class 0.
    class_0: f64,
    /// Bytes sent to it in class 3.
    class_3: f64,
}

impl Mix {
    fn new(metrics: &Exposition) -> Self {
        let sent = |queue| metrics.sum("holdfast_port_sent_bytes_total", &[("port", "vm1"), ("queue", queue)]);
        let offered = metrics.sum("holdfast_port_received_bytes_total", &[("port", "vm2"), ("tc", "0")]);
        Self { offered, class_0: sent("0"), class_3: sent("3") }
    }

    /// Returns the part of its share that class 0 got. It has no right to more than it offered.
    fn kept(&self) -> f64 {
        self.class_0 / (SHARE * (self.class_0 + self.class_3)).min(self.offered)
    }
}

/// Lets guest 2 send more datagrams of class 0 than their share beside `sends`, and returns the bytes of some seconds.
#[track_caller]
fn class_0_beside(lab: &mut Lab, sends: &Flow) -> Mix {
    let receiver = lab.guests[0].ipv4();
    lab.guests[0].start("server", "iperf3 -s -1");
    lab.guests[0].wait_for_listener(IPERF);
    let before = Mix::new(&lab.metrics());
    lab.guests[1].start("client", &format!("iperf3 -u -b 8M -l 1400 -t 25 -c {receiver}"));
    // The first second of the flow does not count, nor does its end.
    let enough = 1e6;
    let first = wait_for("frames of iperf3", PATIENCE, || {
        let now = Mix::new(&lab.metrics());
        (now.offered - before.offered > enough).then_some(now)
    });
    sleep(Duration::from_secs(8));
    let last = Mix::new(&lab.metrics());
    for name in ["client", sends.program] {
        assert_eq!(lab.guests[1].ended(name), None, "{name} ended too soon");
    }
    let (status, said) = wait_for("end of iperf3", PATIENCE, || lab.guests[1].ended("client"));
    assert_eq!(status, 0, "{said}");
    Mix {
        offered: last.offered - first.offered,
        class_0: last.class_0 - first.class_0,
        class_3: last.class_3 - first.class_3,
    }
}
