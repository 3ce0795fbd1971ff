//! Tallies of released cells: counters that only grow, each with one writer.
//!
//! Each lcore that owns egress ports counts the cells that it has released. The ingress owner of a group keeps the
//! admitted cells itself; the occupancy is these without the sum of the released ones. An owner that sees a release
//! late over-estimates, and so never over-admits.
//!
//! The bound: the released cells that are read never exceed the cells really released. They are fewer by the cells
//! pending in [`TallyWriter`]s, at most those released since the last publication, and by stores that are not visible
//! yet. An lcore that publishes and reads once a poll is therefore late by one poll of each lcore, always in the safe
//! direction.

use crossbeam_utils::CachePadded;

use crate::sets::{CLASSES, MAX_PORTS, PortSet};
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};
use crate::units::Cells;

/// Released cells of every ingress (port, priority group), by the lcore that released them.
#[derive(Debug)]
pub struct Tallies {
    lcores: Box<[Released]>,
}

/// Cells that one lcore released. Only that lcore writes it.
#[derive(Debug)]
struct Released {
    /// Released cells by port and group. Each port has its own cache lines: they have one writer, and one reader, the
    /// port's owner.
    ports: Box<[CachePadded<[AtomicU64; CLASSES]>]>,
    /// Whether a [`TallyWriter`] exists for the lcore.
    taken: AtomicBool,
}

impl Released {
    fn new(ports: usize) -> Self {
        let port = |_| CachePadded::new(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { ports: (0..ports).map(port).collect(), taken: AtomicBool::new(false) }
    }
}

impl Tallies {
    /// Creates tallies of zero for `lcores` times `ports`.
    #[must_use]
    pub fn new(lcores: usize, ports: usize) -> Self {
        Self { lcores: (0..lcores).map(|_| Released::new(ports)).collect() }
    }

    /// Cells of `port` and `group` released so far by all lcores: never more than were really released, and never
    /// falling for any reader.
    #[inline]
    #[must_use]
    pub fn released(&self, port: usize, group: usize) -> u64 {
        self.lcores.iter().map(|lcore| lcore.ports[port][group].load(Ordering::Acquire)).sum()
    }

    /// Creates the writer of `lcore`. There is only one, so a plain store suffices instead of a read-modify-write.
    ///
    /// # Panics
    /// On the second call for one `lcore`: two writers would overwrite each other's totals.
    #[must_use]
    pub fn writer(self: &Arc<Self>, lcore: usize) -> TallyWriter {
        let released = &self.lcores[lcore];
        assert!(!released.taken.swap(true, Ordering::Relaxed), "lcore {lcore} has its tally writer already");
        let ports = released.ports.len();
        assert!(ports <= MAX_PORTS, "more ports than a port mask holds");
        let (totals, pending) = (Box::new([[0; CLASSES]; MAX_PORTS]), Box::new([[0; CLASSES]; MAX_PORTS]));
        TallyWriter { tallies: self.clone(), lcore, totals, pending, touched: PortSet::EMPTY }
    }
}

/// The write side of [`Tallies`] for one lcore. Releases are added up in plain memory and stored for readers once a
/// poll, without a load from a line that others read. [`publish`](Self::publish) and drop publish pending releases.
#[derive(Debug)]
pub struct TallyWriter {
    tallies: Arc<Tallies>,
    lcore: usize,
    /// Cells that this lcore released and stored, by port and group.
    totals: Box<[[u64; CLASSES]; MAX_PORTS]>,
    /// Cells that this lcore released and has not stored yet, by port and group.
    pending: Box<[[u32; CLASSES]; MAX_PORTS]>,
    /// Ports with pending releases.
    touched: PortSet,
}

impl TallyWriter {
    /// Records that this lcore sent or dropped `cells` that were admitted at `port` and `group`. Readers see it after
    /// the next [`publish`](Self::publish).
    #[inline]
    pub fn release(&mut self, port: usize, group: usize, cells: Cells) {
        self.pending[port % MAX_PORTS][group] += cells.0;
        self.touched.insert(port % MAX_PORTS);
    }

    /// Cells of `port` and `group` that this lcore released, including those not visible to readers yet.
    #[must_use]
    pub fn written(&self, port: usize, group: usize) -> u64 {
        self.totals[port][group] + u64::from(self.pending[port][group])
    }

    /// Publishes all releases so far: once a poll, and before the lcore sleeps. It stores nothing if nothing is
    /// pending.
    #[inline]
    pub fn publish(&mut self) {
        while let Some(port) = self.touched.pop_lowest() {
            let stored = &self.tallies.lcores[self.lcore].ports[port];
            for (group, pending) in self.pending[port].iter_mut().enumerate() {
                if *pending != 0 {
                    let total = &mut self.totals[port][group];
                    *total += u64::from(std::mem::take(pending));
                    // Release: a reader that counts the cells as free may also reuse memory that the releaser wrote
                    // before.
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
