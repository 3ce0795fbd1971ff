//! The shutdown handshake: lcores end when none of them holds a frame, or has one in a ring to another.
//!
//! An lcore ends in three steps. It takes the third after every lcore has taken the second:
//!
//! 1. *quiet*: the lcore has nothing to move; it may become busy again. The drain ends when all lcores are quiet.
//! 2. *drained*: it receives no more from its ports, so it hands over no further frame.
//! 3. *emptied*: it has dropped the frames that others had handed over until they drained, and has published the
//!    releases.
//!
//! After all lcores have taken the third step, one more look finds every release: the ledgers are empty.

use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// The steps that the lcores have taken.
#[derive(Debug)]
pub struct Shutdown {
    lcores: usize,
    /// Lcores that have nothing to move, as a mask.
    quiet: AtomicU64,
    drained: AtomicUsize,
    emptied: AtomicUsize,
}

impl Shutdown {
    /// The handshake of `lcores` lcores.
    ///
    /// # Panics
    /// With more than 64: they share a mask.
    #[must_use]
    pub fn new(lcores: usize) -> Self {
        assert!((1..=64).contains(&lcores), "an lcore mask holds 1 to 64 lcores");
        Self { lcores, quiet: AtomicU64::new(0), drained: AtomicUsize::new(0), emptied: AtomicUsize::new(0) }
    }

    /// Sets whether lcore `number` has nothing to move. Returns whether no lcore has.
    pub fn set_quiet(&self, number: usize, is_quiet: bool) -> bool {
        let bit = 1 << number;
        let quiet = if is_quiet {
            self.quiet.fetch_or(bit, Ordering::Relaxed) | bit
        } else {
            self.quiet.fetch_and(!bit, Ordering::Relaxed) & !bit
        };
        quiet.count_ones() as usize == self.lcores
    }

    /// Takes every step for lcore `number`, which failed to start or panicked, so that the others do not wait for it.
    pub fn give_up(&self, number: usize) {
        self.set_quiet(number, true);
        self.drained.fetch_add(1, Ordering::AcqRel);
        self.emptied.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes the second step: the caller's lcore has published all that it will ever hand over.
    pub fn drained(&self) -> Emptying<'_> {
        self.drained.fetch_add(1, Ordering::AcqRel);
        Emptying { shutdown: self, has_emptied: false }
    }
}

/// An lcore that empties itself, round by round.
#[derive(Debug)]
pub struct Emptying<'a> {
    shutdown: &'a Shutdown,
    has_emptied: bool,
}

impl Emptying<'_> {
    /// Runs one round: `empty` drops the frames that other lcores have handed over, and collects releases. Returns its
    /// result, and whether all lcores were empty before it ran, so that no later round can find more.
    pub fn round<R>(&mut self, empty: impl FnOnce() -> R) -> (R, bool) {
        // Both are read before `empty` runs: it sees everything that lcores did before they took these steps.
        let all_drained = self.shutdown.drained.load(Ordering::Acquire) >= self.shutdown.lcores;
        let all_emptied = self.shutdown.emptied.load(Ordering::Acquire) >= self.shutdown.lcores;
        let result = empty();
        if all_drained && !self.has_emptied {
            self.shutdown.emptied.fetch_add(1, Ordering::AcqRel);
            self.has_emptied = true;
        }
        (result, all_emptied)
    }
}
