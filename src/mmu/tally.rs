//! Tallies: what was admitted and what was released, as counters that only grow, each with one writer.
//!
//! The ingress owner of a group writes `admitted`; each lcore that owns egress ports writes its own `released`.
//! Occupancy is `admitted - sum of released`; whoever sees a release late over-estimates and so never over-admits.
//!
//! The bound: what is read as released is never more than what really was. It is less by the runs that
//! [`TallyWriter`]s still hold, at most what each released since it last published, and by what is stored and not seen
//! yet. Who publishes and reads once a burst is therefore late by a burst of each lcore, and only ever too careful.

use crossbeam_utils::CachePadded;

use crate::qos::CLASSES;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};
use crate::units::Cells;

/// Released cells of every ingress (port, priority group), by the lcore that released them.
#[derive(Debug)]
pub struct Tallies {
    lcores: Box<[Released]>,
}

/// What one lcore released. Only that lcore writes it.
#[derive(Debug)]
struct Released {
    /// By port and group. A port has cache lines of its own: they have one writer, and one reader, the port's owner.
    ports: Box<[CachePadded<[AtomicU64; CLASSES]>]>,
    /// A [`TallyWriter`] was handed out.
    taken: AtomicBool,
}

impl Released {
    fn new(ports: usize) -> Self {
        let port = |_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { ports: (0..ports).map(port).collect(), taken: AtomicBool::new(false) }
    }
}

impl Tallies {
    /// Zero for `lcores` times `ports`.
    #[must_use]
    pub fn new(lcores: usize, ports: usize) -> Self {
        Self { lcores: (0..lcores).map(|_| Released::new(ports)).collect() }
    }

    /// Lcore `lcore` sent or dropped `cells` that were admitted at `port` and `group`. Only that lcore may say so, and
    /// only if it has no [`TallyWriter`]: one writer, so a load and a store do, and no read-modify-write.
    #[inline]
    pub fn release(&self, lcore: usize, port: usize, group: usize, cells: Cells) {
        let released = &self.lcores[lcore];
        debug_assert!(!released.taken.load(Ordering::Relaxed), "lcore {lcore} releases past its tally writer");
        let tally = &released.ports[port][group];
        // Release, since whoever counts the cells as free may also reuse what the releaser wrote before.
        tally.store(tally.load(Ordering::Relaxed) + u64::from(cells.0), Ordering::Release);
    }

    /// Cells of `port` and `group` released so far by all lcores: never more than really were, and no reader sees it
    /// fall.
    #[inline]
    #[must_use]
    pub fn released(&self, port: usize, group: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.ports[port][group].load(Ordering::Acquire)).sum()
    }

    /// The writer of `lcore`, which goes on from what the lcore released before.
    ///
    /// # Panics
    /// On the second call for one `lcore`: two writers would overwrite each other's totals.
    #[must_use]
    pub fn writer(self: &Arc<Self>, lcore: usize) -> TallyWriter {
        let released = &self.lcores[lcore];
        assert!(!released.taken.swap(true, Ordering::Relaxed), "lcore {lcore} has its tally writer already");
        // Relaxed finds the lcore's own stores: who releases on one thread and writes on another must have met.
        let total =
            |port: &CachePadded<[AtomicU64; CLASSES]>| std::array::from_fn(|group| port[group].load(Ordering::Relaxed));
        let totals = released.ports.iter().map(total).collect();
        TallyWriter { tallies: self.clone(), lcore, totals, run: Run::default() }
    }
}

/// Consecutive releases of one port and group, not stored yet.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    port: usize,
    group: usize,
    cells: u64,
}

/// An lcore's hand in [`Tallies`]: one store for a run of releases of the same port and group, and no load of a line
/// that others read. What is pending is published when the pair changes, by [`publish`](Self::publish) and on drop.
#[derive(Debug)]
pub struct TallyWriter {
    tallies: Arc<Tallies>,
    lcore: usize,
    /// What this lcore stored, by port and group.
    totals: Box<[[u64; CLASSES]]>,
    run: Run,
}

impl TallyWriter {
    /// This lcore sent or dropped `cells` that were admitted at `port` and `group`; readers see it when the pair
    /// changes or with the next [`publish`](Self::publish).
    #[inline]
    pub fn release(&mut self, port: usize, group: usize, cells: Cells) {
        if (self.run.port, self.run.group) != (port, group) {
            self.publish();
            self.run = Run { port, group, cells: 0 };
        }
        self.run.cells += u64::from(cells.0);
    }

    /// Cells of `port` and `group` that this lcore released, those included that no reader sees yet.
    #[must_use]
    pub fn written(&self, port: usize, group: usize) -> u64 {
        let Run { port: run_port, group: run_group, cells } = self.run;
        self.totals[port][group] + if (run_port, run_group) == (port, group) { cells } else { 0 }
    }

    /// Shows readers everything released so far: once a burst, and before the lcore rests. No store if nothing pends.
    #[inline]
    pub fn publish(&mut self) {
        let Run { port, group, cells } = self.run;
        if cells == 0 {
            return;
        }
        self.run.cells = 0;
        let total = &mut self.totals[port][group];
        *total += cells;
        self.tallies.lcores[self.lcore].ports[port][group].store(*total, Ordering::Release);
    }
}

impl Drop for TallyWriter {
    fn drop(&mut self) {
        self.publish();
    }
}
