//! Lossless flows of two hosts to a third, through the NICs' drivers.

use std::time::{Duration, Instant};

use holdfast::hosts::Hosts;
use holdfast::sets::ClassSet;
use holdfast::units::Quanta;
use holdfast::wire::mac_control::PfcFrame;

use crate::bench::{Bench, VLAN, host_mac, lossless, port_mac};
use crate::guest::PATIENCE;
use crate::talk::marker;

/// The receiver of the incast.
const RECEIVER: usize = 2;
/// Time without frames after which senders count as paused.
const SILENCE: Duration = Duration::from_millis(700);

/// Two hosts send at twice the rate of the third, in frames of 1000 bytes, jumbo frames and tagged ones. PFC of the
/// switch slows the senders down; PFC of the receiver stops the switch and then the senders. No frame is lost.
#[track_caller]
pub fn incast(bench: &mut Bench) {
    let jumbo = bench.nic.mtu() + 14;
    let flows = [
        (0, lossless(RECEIVER, 1000, None)),
        (0, lossless(RECEIVER, jumbo, None)),
        (1, lossless(RECEIVER, 1004, Some(VLAN))),
    ];
    let mut hosts = bench.hosts(&flows, true);
    let counters = hosts.counters();
    bench.drive("pause of both senders", &mut hosts, |_, _| {
        (0..2).all(|host| counters.hosts[host].paused_ticks[3].get() > 0)
            && counters.flows.iter().all(|flow| flow.received_frames.get() > 50)
    });
    receiver_pauses(bench, &mut hosts);
    let before: Vec<_> = counters.flows.iter().map(|flow| flow.received_frames.get()).collect();
    bench.drive("frames after the receiver's pause", &mut hosts, |_, _| {
        counters.flows.iter().zip(&before).all(|(flow, before)| flow.received_frames.get() > before + 50)
    });
    bench.finish(&mut hosts);
    let seen = bench.wires.seen(RECEIVER);
    let tagged = seen.tagged.iter().filter(|vlan| **vlan == VLAN).count() as u64;
    assert!(tagged >= counters.flows[2].received_frames.get(), "{tagged} frames had their tag");
    assert_eq!(seen.longest, usize::from(jumbo), "the longest frame");
    pfc_frames_are_the_standards(bench);
}

/// A short flow, to see that frames pass and nothing is lost.
#[track_caller]
pub fn short_incast(bench: &mut Bench) {
    let flows = [(0, lossless(RECEIVER, 1000, None)), (1, lossless(RECEIVER, 1000, None))];
    let mut hosts = bench.hosts(&flows, true);
    let counters = hosts.counters();
    bench.drive("pause of both senders", &mut hosts, |_, _| {
        (0..2).all(|host| counters.hosts[host].paused_ticks[3].get() > 0)
            && counters.flows.iter().all(|flow| flow.received_frames.get() > 50)
    });
    bench.finish(&mut hosts);
    pfc_frames_are_the_standards(bench);
}

/// The incast of hosts that ignore PFC, to a receiver that pauses the switch. Their frames are lost, so it is PFC that
/// saves those of hosts that obey.
#[track_caller]
pub fn incast_without_obedience(bench: &mut Bench) {
    let flows = [(0, lossless(RECEIVER, 1000, None)), (1, lossless(RECEIVER, 1000, None))];
    let mut hosts = bench.hosts(&flows, false);
    let end = Instant::now() + PATIENCE;
    let lost = |bench: &mut Bench| {
        bench.ports().iter().any(|port| port["lossless_dropped_frames"].as_u64().expect("a count") > 0)
    };
    while !lost(bench) {
        assert!(Instant::now() < end, "nothing is lost within {PATIENCE:?}: {}", bench.log());
        bench.send(RECEIVER, &pfc(0xffff));
        let soon = Instant::now() + Duration::from_millis(500);
        bench.drive("time", &mut hosts, |_, _| Instant::now() > soon);
    }
}

/// The receiver pauses class 3 by PFC. From then on no frame of that class leaves, frames of other classes do, and the
/// senders fall silent.
#[track_caller]
fn receiver_pauses(bench: &mut Bench, hosts: &mut Hosts) {
    let xoff = pfc(0xffff);
    bench.send(RECEIVER, &xoff);
    // Behind the pause on the same wire: once it is there, the switch has seen the pause.
    let (behind, last) = (marker(RECEIVER, 0, 1), marker(0, RECEIVER, 2));
    bench.send(RECEIVER, &behind);
    let pass = |what: &str, hosts: &mut Hosts, bench: &mut Bench, port: usize, frame: &[u8]| {
        bench.drive(what, hosts, |_, wires| wires.seen(port).others.iter().any(|seen| seen == frame));
    };
    pass("frame behind the receiver's pause", hosts, bench, 0, &behind);
    // Behind all frames that were in the port's transmit ring by then.
    bench.send(0, &last);
    pass("frame of another class", hosts, bench, RECEIVER, &last);
    let counters = hosts.counters();
    let received = || counters.hosts[RECEIVER].rx_frames[3].get();
    let sent = || counters.hosts[0].tx_frames[3].get() + counters.hosts[1].tx_frames[3].get();
    let (before, end) = (received(), Instant::now() + PATIENCE);
    let mut quiet = (Instant::now(), sent());
    while quiet.0.elapsed() < SILENCE {
        assert!(Instant::now() < end, "the senders go on for {PATIENCE:?}: {}", bench.log());
        bench.send(RECEIVER, &xoff);
        let soon = Instant::now() + Duration::from_millis(100);
        bench.drive("time", hosts, |_, _| Instant::now() > soon);
        if sent() != quiet.1 {
            quiet = (Instant::now(), sent());
        }
    }
    assert_eq!(received(), before, "frames that left in spite of the receiver's pause");
    bench.send(RECEIVER, &pfc(0));
}

/// The receiver's PFC frame for priority 3.
fn pfc(quanta: u16) -> [u8; 60] {
    let mut pfc = PfcFrame { enabled: ClassSet::only(3), ..PfcFrame::default() };
    pfc.quanta[3] = Quanta(quanta);
    pfc.emit(host_mac(RECEIVER))
}

/// Compares each PFC frame on the wires, byte by byte, with IEEE 802.3 annex 31D: XOFF or XON of priority 3.
#[track_caller]
fn pfc_frames_are_the_standards(bench: &Bench) {
    for port in 0..2 {
        let frames = &bench.wires.seen(port).control;
        let expected = |quanta: [u8; 2]| {
            let mut frame = vec![0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
            frame.extend(port_mac(port).0);
            frame.extend([0x88, 0x08, 0x01, 0x01, 0x00, 0x08, 0, 0, 0, 0, 0, 0]);
            frame.extend(quanta);
            frame.resize(60, 0);
            frame
        };
        let (xoff, xon) = (expected([0xff, 0xff]), expected([0, 0]));
        let count = |frame: &Vec<u8>| frames.iter().filter(|seen| *seen == frame).count();
        assert!(count(&xoff) > 0 && count(&xon) > 0, "port {port}: {} XOFF, {} XON", count(&xoff), count(&xon));
        let other = frames.iter().find(|frame| **frame != xoff && **frame != xon);
        assert!(other.is_none(), "port {port}: {other:02x?}");
    }
}
