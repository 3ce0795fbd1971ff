//! Tallies: what was admitted and what was released, as counters that only grow, each with one writer.
//!
//! The ingress owner of a group writes `admitted`; each lcore that owns egress ports writes its own `released`.
//! Occupancy is `admitted - sum of released`; whoever sees a release late over-estimates and so never over-admits.
//!
//! The bound: what is read as released is never more than what really was. It is less by what
//! [`TallyWriter`]s still hold, at most what each released since it last published, and by what is stored and not seen
//! yet. Who publishes and reads once a poll is therefore late by a poll of each lcore, and only ever too careful.

use crossbeam_utils::CachePadded;

use crate::sets::{CLASSES, MAX_PORTS};
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

    /// Cells of `port` and `group` released so far by all lcores: never more than really were, and no reader sees it
    /// fall.
    #[inline]
    #[must_use]
    pub fn released(&self, port: usize, group: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.ports[port][group].load(Ordering::Acquire)).sum()
    }

    /// The writer of `lcore`: one, so a store does, and no read-modify-write.
    ///
    /// # Panics
    /// On the second call for one `lcore`: two writers would overwrite each other's totals.
    #[must_use]
    pub fn writer(self: &Arc<Self>, lcore: usize) -> TallyWriter {
        let released = &self.lcores[lcore];
        assert!(!released.taken.swap(true, Ordering::Relaxed), "lcore {lcore} has its tally writer already");
        let ports = released.ports.len();
        assert!(ports <= MAX_PORTS, "no more ports than a mask has bits");
        let (totals, pending) = (Box::new([[0; CLASSES]; MAX_PORTS]), Box::new([[0; CLASSES]; MAX_PORTS]));
        TallyWriter { tallies: self.clone(), lcore, totals, pending, touched: 0 }
    }
}

/// An lcore's hand in [`Tallies`]: releases are added up in plain memory, and stored where others read them once a poll,
/// with no load of a line that others read. What is pending is published by [`publish`](Self::publish) and on drop.
#[derive(Debug)]
pub struct TallyWriter {
    tallies: Arc<Tallies>,
    lcore: usize,
    /// What this lcore released and stored, by port and group.
    totals: Box<[[u64; CLASSES]; MAX_PORTS]>,
    /// What it released and has not stored yet.
    pending: Box<[[u32; CLASSES]; MAX_PORTS]>,
    /// Ports with anything pending.
    touched: u64,
}

impl TallyWriter {
    /// This lcore sent or dropped `cells` that were admitted at `port` and `group`; readers see it with the next
    /// [`publish`](Self::publish).
    #[inline]
    pub fn release(&mut self, port: usize, group: usize, cells: Cells) {
        self.pending[port % MAX_PORTS][group] += cells.0;
        self.touched |= 1 << (port % MAX_PORTS);
    }

    /// Cells of `port` and `group` that this lcore released, those included that no reader sees yet.
    #[must_use]
    pub fn written(&self, port: usize, group: usize) -> u64 {
        self.totals[port][group] + u64::from(self.pending[port][group])
    }

    /// Shows readers everything released so far: once a poll, and before the lcore rests. No store if nothing pends.
    #[inline]
    pub fn publish(&mut self) {
        while self.touched != 0 {
            let port = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            let stored = &self.tallies.lcores[self.lcore].ports[port];
            for (group, pending) in self.pending[port].iter_mut().enumerate() {
                if *pending != 0 {
                    let total = &mut self.totals[port][group];
                    *total += u64::from(std::mem::take(pending));
                    // Release, since whoever counts the cells as free may also reuse what the releaser wrote before.
                    stored[group].store(*total, Ordering::Release);
                }
            }
        }
    }
}

impl Drop for TallyWriter {
    fn drop(&mut self) {
        self.publish();
    }
}
