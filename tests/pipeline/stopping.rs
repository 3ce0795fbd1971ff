//! The loop of an lcore, and its shutdown.

use std::cell::Cell;
use std::sync::Arc;

use holdfast::pfc::PfcMode;
use holdfast::plan::{Companion, DropReason, LcoreControl};
use holdfast::sets::ClassSet;
use holdfast::units::{BitRate, Ticks};
use holdfast::wire::mac_control::PfcFrame;

use crate::harness::*;

/// A co-polled peer that sends nothing.
struct Silent;

impl Companion for Silent {
    fn poll(&mut self, _: Ticks) {}
    fn fall_silent(&mut self) {}
}

/// Stops a switch that has `frames` queued for port 1 of `rate`. Returns the frames that port 1 sent and those dropped
/// at shutdown.
fn stop_with_a_queue(rate: u64, frames: usize, companion: Option<Silent>) -> (usize, u64) {
    let mut spec = spec(2);
    spec.ports[1].rate = BitRate(rate);
    let mut bed = Bed::learned(&spec);
    bed.run(20_000_000);
    bed.io.sent_all(1);
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 1, 0, 1500));
    }
    bed.run(50_000);
    let control = Arc::new(LcoreControl::new(1));
    control.stop();
    let counters = bed.counters.clone();
    let now = Cell::new(bed.now);
    let work = work(bed.switch.into_one(), bed.io, companion, &control);
    let mut work = work.run(|| Ticks(now.replace(now.get() + 1000)));
    assert_eq!((work.pipeline.held_cells(), work.pipeline.held_frames(), work.io.held()), (0, 0, 0));
    let dropped = counters.ports[1].drops[0][DropReason::Shutdown as usize].get();
    // Without the PFC frame that each port begins with.
    (work.io.sent_all(1).iter().filter(|frame| pfc_of(frame).is_none()).count(), dropped)
}

/// At 10 Mb/s a frame takes 1.2 ms, so the queue needs longer than the half second allowed for real peers.
#[test]
fn shutdown_drains_queue_of_slow_port_to_co_polled_peer() {
    assert_eq!(stop_with_a_queue(10_000_000, 1000, Some(Silent)), (1000, 0));
}

#[test]
fn shutdown_drops_queue_to_real_peer_after_half_a_second() {
    let (sent, dropped) = stop_with_a_queue(10_000_000, 1000, None);
    assert_eq!(sent as u64 + dropped, 1000);
    assert!((390..=430).contains(&sent), "half a second's worth, got {sent}");
}

/// A switch that was killed may have left a peer paused. The next one sends XON at once.
#[test]
fn xon_is_sent_to_lossless_peers_at_start() {
    let mut spec = spec(3);
    spec.ports[2].pfc = PfcMode::Off;
    let bed = Bed::new(&spec);
    let control = Arc::new(LcoreControl::new(1));
    let (now, polls) = (Cell::new(bed.now), Cell::new(0));
    let clock = || {
        // The second poll is the last.
        polls.set(polls.get() + 1);
        if polls.get() == 2 {
            control.stop();
        }
        Ticks(now.replace(now.get() + 1000))
    };
    let (pipeline, counters) = (bed.switch.into_one(), bed.counters);
    let work = work(pipeline, bed.io, None::<Silent>, &control);
    let mut work = work.run(clock);
    let told: Vec<Vec<PfcFrame>> =
        (0..3).map(|port| work.io.sent_all(port).iter().filter_map(|frame| pfc_of(frame)).collect()).collect();
    let greeting = PfcFrame { enabled: ClassSet::only(LOSSLESS), ..PfcFrame::default() };
    assert_eq!(told, [vec![greeting], vec![greeting], vec![]], "XON once, for what is lossless");
    assert_eq!(counters.ports[0].pfc_tx_xon[LOSSLESS].get(), 1);
}
