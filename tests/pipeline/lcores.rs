//! Exchange of stations, links and cells between lcores, and their common shutdown.

use holdfast::dataplane::Scratch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast::dataplane::{Idle, Pipeline, Resting, Work};
use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::plan::{Companion, Counters, DropReason, LcoreControl, SwitchSpec};
use holdfast::sets::PortSet;
use holdfast::units::{Cells, Nanos, Ticks};

use crate::harness::{CELL, HZ, LOSSLESS, LOSSLESS_DSCP, frame, mac, spec_on, work};
use crate::layout::Layout;

/// A switch of two lcores.
fn spec(ports: usize) -> SwitchSpec {
    spec_on(Layout::TWO, ports)
}

/// Two lcores that are polled one by one.
struct Pair {
    lcores: Vec<Pipeline<MemPacket>>,
    io: MemPorts,
    scratch: Scratch<MemPacket>,
    counters: Arc<Counters>,
    now: u64,
}

impl Pair {
    /// Creates a switch with ports 0 and 2 on the first lcore, 1 and 3 on the second.
    fn new(spec: &SwitchSpec) -> Self {
        let counters = Arc::new(Counters::new(spec.ports.len(), 2));
        let lcores = Pipeline::fleet(spec, &counters, HZ, 1);
        let mut pair =
            Self { lcores, io: MemPorts::new(spec.ports.len()), scratch: Scratch::default(), counters, now: HZ };
        for port in 0..spec.ports.len() {
            pair.io.inject(port, &frame(port, 0xffff, 0, 60));
        }
        pair.poll(10);
        pair
    }

    fn poll(&mut self, times: usize) {
        for _ in 0..times {
            self.now += 1000;
            for lcore in &mut self.lcores {
                lcore.poll(&mut self.io, &mut self.scratch, Ticks(self.now));
            }
        }
    }

    fn poll_first(&mut self) {
        self.now += 100;
        self.lcores[0].poll(&mut self.io, &mut self.scratch, Ticks(self.now));
    }

    fn unknown(&self, port: usize) -> u64 {
        self.counters.ports[port].drops[LOSSLESS][DropReason::LosslessUnknown as usize].get()
    }
}

/// An lcore readvertises a station four times in an ageing time, so other lcores remember it for a quarter longer. They
/// forget it no earlier than the lcore that owns its port, and at most a quarter of the time later.
#[test]
fn silent_station_ages_out_on_other_lcores_a_quarter_later_at_most() {
    let mut spec = spec(4);
    spec.fdb.ageing = Nanos(100 * HZ);
    let mut pair = Pair::new(&spec);
    pair.io.inject(0, &frame(0, 0xffff, 0, 60));
    pair.poll(10);
    // Port 1's lcore does not own port 0, and must have forgotten its station. Port 2 is on the lcore that owns port 0.
    let lost = |pair: &mut Pair, from: usize| {
        let before = pair.unknown(from);
        pair.io.inject(from, &frame(from, 0, LOSSLESS_DSCP, 60));
        pair.poll(4);
        pair.unknown(from) > before
    };
    let begun = pair.now;
    pair.now = begun + 95 * HZ;
    assert_eq!((lost(&mut pair, 2), lost(&mut pair, 1)), (false, false), "both know it until its time is over");
    pair.now = begun + 110 * HZ;
    assert_eq!((lost(&mut pair, 2), lost(&mut pair, 1)), (true, false), "the other lcore still knows it");
    pair.now = begun + 130 * HZ;
    assert_eq!((lost(&mut pair, 2), lost(&mut pair, 1)), (true, true), "a quarter later neither does");
}

/// More updates than the ring between the lcores holds: no station is forgotten, and all are advertised in the end.
#[test]
fn stations_stay_known_when_the_fdb_update_ring_is_full() {
    const STATIONS: usize = 2000;
    let station = |number: usize| 100 + number;
    let mut spec = spec(3);
    spec.fdb.capacity = 16_384;
    let mut pair = Pair::new(&spec);
    // The second lcore does not poll while all stations send for the first time, and again 70 seconds later.
    for _ in 0..2 {
        for number in 0..STATIONS {
            pair.io.inject(0, &frame(station(number), 2, 0, 60));
            pair.poll_first();
        }
        pair.now += 70 * HZ;
    }
    for number in 0..STATIONS {
        pair.io.inject(2, &frame(2, station(number), LOSSLESS_DSCP, 60));
        pair.poll(1);
    }
    assert_eq!(pair.unknown(2), 0, "of {STATIONS} lossless frames on the lcore that knows their stations");
    for number in 0..STATIONS {
        pair.io.inject(0, &frame(station(number), 2, 0, 60));
        pair.poll(1);
    }
    for number in 0..STATIONS {
        pair.io.inject(1, &frame(1, station(number), LOSSLESS_DSCP, 60));
        pair.poll(1);
    }
    assert_eq!(pair.unknown(1), 0, "of {STATIONS} lossless frames on the other, which has heard of them since");
}

/// A flood at port 0 is more than the first lcore can receive. The second receives all frames of its ports.
#[test]
fn an_overrun_lcore_sheds_and_the_other_does_not() {
    let mut spec = spec(4);
    // Its sender ignores XOFF, so it must shed before the ring is full.
    spec.ports.iter_mut().for_each(|port| (port.backlog_mark, port.ring_frames) = (Some(32), Some(1024)));
    let mut pair = Pair::new(&spec);
    pair.io.sent_all(1);
    for _ in 0..2_000 {
        (0..96).for_each(|_| pair.io.inject(0, &frame(0, 1, 0, 60)));
        pair.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100));
        (0..20).for_each(|_| pair.io.inject(1, &frame(1, 0, 0, 60)));
        pair.poll(1);
    }
    pair.poll(1000);
    let shed = |port: usize| pair.counters.ports[port].drops[0][DropReason::Shed as usize].get();
    assert!(shed(0) > 0);
    assert_eq!(shed(1), 0);
    let lossless = pair.io.sent_all(1).into_iter().filter(|frame| frame.len() == 100).count();
    assert_eq!(lossless, 2_000, "all have crossed");
}

struct Nobody;

impl Companion for Nobody {
    fn poll(&mut self, _: Ticks) {}
    fn fall_silent(&mut self) {}
}

/// Runs the two lcores of a switch in threads, each with its own ports, until `during` has returned. Returns the time
/// that they took to stop.
fn run_and_stop(
    spec: &SwitchSpec,
    prepare: impl Fn(usize, &mut Pipeline<MemPacket>, &mut MemPorts),
    during: impl FnOnce(&LcoreControl),
) -> (Duration, Arc<Counters>) {
    let counters = Arc::new(Counters::new(spec.ports.len(), 2));
    let control = Arc::new(LcoreControl::new(2));
    let start = Instant::now();
    let first = MemPorts::new(spec.ports.len());
    let threads: Vec<_> = Pipeline::fleet(spec, &counters, HZ, 1)
        .into_iter()
        .enumerate()
        .map(|(number, mut pipeline)| {
            let mut io = first.sibling();
            prepare(number, &mut pipeline, &mut io);
            let work = work(pipeline, io, None::<Nobody>, &control);
            std::thread::spawn(move || work.run(move || Ticks(HZ + start.elapsed().as_nanos() as u64)))
        })
        .collect();
    during(&control);
    let stopped = Instant::now();
    control.stop();
    for thread in threads {
        let work = thread.join().expect("an lcore does not panic");
        assert_eq!((work.pipeline.held_cells(), work.pipeline.held_frames(), work.io.held()), (0, 0, 0));
    }
    (stopped.elapsed(), counters)
}

/// The first lcore receives frames at port 0 for the station behind port 1. The second lcore owns port 1, whose device
/// accepts few of them. At the stop the second lcore holds these frames, and the first has their cells charged.
#[test]
fn lcores_end_together_with_nothing_held() {
    let prepare = |number: usize, pipeline: &mut Pipeline<MemPacket>, io: &mut MemPorts| {
        pipeline.learn(1, mac(1), 1, Ticks(HZ));
        if number == 0 {
            (0..1000).for_each(|_| io.inject(0, &frame(0, 1, 0, CELL)));
        } else {
            io.set_room(1, Some(10));
        }
    };
    let (_, counters) = run_and_stop(&spec(2), prepare, |_| std::thread::sleep(Duration::from_millis(20)));
    let dropped: u64 = counters.ports.iter().flat_map(|port| &port.drops[0]).map(|count| count.get()).sum();
    assert_eq!(counters.ports[1].tx_frames[0].get() + dropped, 1000);
}

/// A port that does not accept its XON is given up soon, even when other lcores are still draining.
#[test]
fn port_that_accepts_no_xon_does_not_delay_shutdown() {
    let prepare = |number: usize, pipeline: &mut Pipeline<MemPacket>, io: &mut MemPorts| {
        pipeline.learn(1, mac(2), 2, Ticks(HZ));
        if number == 0 {
            (0..40).for_each(|_| io.inject(0, &frame(0, 2, LOSSLESS_DSCP, CELL)));
            io.set_room(0, Some(1));
            io.set_room(2, Some(0));
        }
    };
    let (took, counters) = run_and_stop(&spec(3), prepare, |_| std::thread::sleep(Duration::from_millis(20)));
    let port = &counters.ports[0];
    assert_eq!((port.pfc_tx_xoff[LOSSLESS].get(), port.pfc_tx_xon[LOSSLESS].get()), (1, 0));
    assert!(took < Duration::from_secs(20), "{took:?}, where the others' drain may take 30 s");
}

/// If a link goes down and up between two readings of an lcore, all lcores still handle the flap.
#[test]
fn a_flap_is_seen_by_every_lcore() {
    let prepare = |_: usize, pipeline: &mut Pipeline<MemPacket>, _: &mut MemPorts| {
        pipeline.learn(1, mac(1), 1, Ticks(HZ));
    };
    let flap = |control: &LcoreControl| {
        std::thread::sleep(Duration::from_millis(50));
        control.set_links(!PortSet::only(1));
        control.set_links(PortSet::ALL);
        std::thread::sleep(Duration::from_millis(300));
    };
    let (_, counters) = run_and_stop(&spec(2), prepare, flap);
    // Both lcores forget the stations of that port and sweep them.
    for lcore in &counters.lcores {
        assert_eq!(lcore.fdb_entries.get(), 0);
    }
}

/// An lcore busy with other traffic keeps almost no cells of a pool that another lcore has used up.
#[test]
fn busy_lcore_keeps_few_cells_of_an_exhausted_pool() {
    let mut spec = spec(4);
    spec.buffer.lossy_shared = Cells(3000);
    let mut pair = Pair::new(&spec);
    // The first lcore gets a lease here, and forwards only lossless frames from then on.
    (0..32).for_each(|_| pair.io.inject(0, &frame(0, 2, 0, CELL)));
    pair.io.set_room(3, Some(0));
    for _ in 0..6000 {
        pair.io.inject(0, &frame(0, 2, LOSSLESS_DSCP, CELL));
        pair.io.inject(1, &frame(1, 3, 0, CELL));
        pair.poll(1);
    }
    let used: u64 = pair.counters.lcores.iter().map(|lcore| lcore.lossy_used_cells.get()).sum();
    // At alpha 8 the queue gets 8/9 of the pool. A lease in so full a pool may keep a sixteenth of the rest.
    let due = 3000 * 8 / 9;
    assert!((due - 8 * 2 * (3000 - due) / 16 / 9 - 2..=due + 1).contains(&used), "{used} of {due} cells");
}

/// Returns the rests of the first lcore in 5 ms, on a clock that they advance, while the second does nothing. `frame`
/// arrives at port 0 of the first lcore, for port 1 of the second.
fn rests_of_the_first(frame: Option<Vec<u8>>) -> usize {
    let spec = spec(2);
    let counters = Arc::new(Counters::new(2, 2));
    let mut fleet = Pipeline::fleet(&spec, &counters, HZ, 1);
    let (mut io, mut pipeline) = (MemPorts::new(2), fleet.remove(0));
    pipeline.learn(1, mac(1), 1, Ticks(HZ));
    frame.iter().for_each(|frame| io.inject(0, frame));
    let control = Arc::new(LcoreControl::new(2));
    control.give_up(1);
    let (clock, rests) = (Arc::new(AtomicU64::new(HZ)), Arc::new(AtomicUsize::new(0)));
    let (hands, count) = (clock.clone(), rests.clone());
    let rest = move |_: &MemPorts, until: Ticks| {
        hands.store(until.0, Ordering::Relaxed);
        count.fetch_add(1, Ordering::Relaxed);
    };
    let resting = Resting { idle: Idle::new(Nanos(50_000), Nanos(100_000), HZ), rest: Box::new(rest) };
    let work = Work { resting: Some(resting), ..work(pipeline, io, None::<Nobody>, &control) };
    let look = || {
        let now = clock.fetch_add(100, Ordering::Relaxed);
        if now > HZ + 5_000_000 {
            control.stop();
        }
        Ticks(now)
    };
    drop(work.run(look));
    rests.load(Ordering::Relaxed)
}

/// The frame's cells are charged to the first lcore, and resuming its sender depends on the prompt receipt of their
/// release.
#[test]
fn lcore_does_not_rest_while_another_lcore_holds_its_frame() {
    assert!(rests_of_the_first(None) > 10);
    assert_eq!(rests_of_the_first(Some(frame(0, 1, 0, CELL))), 0);
}
