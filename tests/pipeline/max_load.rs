//! The rate that leaves a core which is offered up to four times as much as it can forward, half of it lossless:
//! docs/overload.md, "Greatest rate".

use crate::harness::{LOSSLESS, LOSSLESS_DSCP, frame, pfc_of};
use crate::shed::{Bed, FRAME_NS, GAP, POLL_NS};
use holdfast::mmu::Threshold;
use holdfast::sets::ClassSet;
use holdfast::units::Cells;

/// Time of a shed frame: a sixth of that of a forwarded one.
const SHED_NS: u64 = 33;
/// Frames that a receive ring holds.
const RING: usize = 1024;
/// Time before and during the measurement.
const SETTLING_NS: u64 = 1_000_000;
const MEASURED_NS: u64 = 5_000_000;

/// Frames that leave, in percent of those that a core without other work forwards.
#[derive(Debug)]
struct Rates {
    lossless: u64,
    lossy: u64,
}

/// A core whose port 0 is offered more than it can forward, half of it lossless from a sender that obeys PFC.
struct Overload {
    bed: Bed,
    /// Receive queue of lossless frames.
    queue: usize,
    /// Time until two frames more have come, and when the last have.
    pair_ns: u64,
    arrived: u64,
    /// Whether the sender is held, and the lossless frames that it has sent.
    is_held: bool,
    sent: u64,
}

impl Overload {
    /// Offers `load` percent of what the core can forward. With `is_steered`, the device has a queue for lossless
    /// frames and PFC.
    fn new(load: u64, is_steered: bool) -> Self {
        let mut bed = Bed::with(|spec| {
            spec.ports[0].rx_queues = 1 + u8::from(is_steered);
            // Only the time of the core limits the rate.
            spec.ports[0].buffer.groups[LOSSLESS].threshold = Threshold::Static(Cells(10_000));
        });
        if is_steered {
            bed.switch.steer(0, ClassSet::only(1), true);
        }
        bed.io.shed_ns = SHED_NS;
        bed.io.io.set_ring(0, RING);
        let (pair_ns, arrived) = (2 * 2 * FRAME_NS * 100 / load, bed.io.now);
        Self { bed, queue: is_steered.into(), pair_ns, arrived, is_held: false, sent: 0 }
    }

    /// Polls for a time while frames come.
    fn run(&mut self, time_ns: u64) {
        let (lossless, lossy) = (frame(0, 1, LOSSLESS_DSCP, 60), frame(0, 1, 0, 60));
        let end = self.bed.io.now + time_ns;
        while self.bed.io.now < end {
            while self.arrived + self.pair_ns <= self.bed.io.now {
                self.arrived += self.pair_ns;
                self.bed.io.io.inject(0, &lossy);
                if !self.is_held {
                    self.bed.io.io.inject_queue(0, self.queue, &lossless);
                    self.sent += 1;
                }
            }
            self.bed.poll();
            if let Some(pfc) = self.bed.io.io.sent_all(0).iter().rev().find_map(|frame| pfc_of(frame)) {
                self.is_held = pfc.quanta[LOSSLESS].0 > 0;
            }
            self.bed.io.io.sent_all(1);
        }
    }

    /// The rates once they are steady. No lossless frame is lost.
    fn rates(mut self) -> Rates {
        let passed = |bed: &Bed| [LOSSLESS, 0].map(|class| bed.passed(0, class));
        self.run(SETTLING_NS);
        let (before, begin) = (passed(&self.bed), self.bed.io.now);
        self.run(MEASURED_NS);
        let (after, time) = (passed(&self.bed), self.bed.io.now - begin);
        (0..1000).for_each(|_| self.bed.poll());
        assert_eq!(self.bed.passed(0, LOSSLESS), self.sent, "lossless frames were lost");
        let share = |row: usize| (after[row] - before[row]) * 2 * FRAME_NS * 100 / time;
        Rates { lossless: share(0), lossy: share(1) }
    }
}

#[test]
fn rate_holds_at_any_load_if_the_nic_steers() {
    for load in [90, 150, 200, 400] {
        let rates = Overload::new(load, true).rates();
        assert!((rates.lossless + rates.lossy) * 100 >= load.min(100) * 85, "{load} %: {rates:?}");
        assert!(rates.lossless * 10 >= (load / 2).min(100) * 8, "lossless first at {load} %: {rates:?}");
    }
}

/// With one queue each frame must be looked at, because it may be lossless or a PFC frame of the peer.
#[test]
fn rate_with_one_queue_is_near_its_bound() {
    for load in [90, 150, 200, 400] {
        let (rates, polls) = (Overload::new(load, false).rates(), 100 * POLL_NS / (GAP / 2));
        // Polls take time, and so do lossy frames that do not pass.
        let shed = (load / 2).saturating_sub(rates.lossy) * SHED_NS / (2 * FRAME_NS);
        let bound = load.min(100 - polls - shed);
        println!("{load} %: {rates:?}, bound {bound}");
        assert!((rates.lossless + rates.lossy) * 100 >= bound * 95, "{load} %: {rates:?}, bound {bound}");
        assert!(rates.lossless * 10 >= (load / 2).min(bound) * 8, "lossless first at {load} %: {rates:?}");
    }
}
