//! Faults of known kinds, switched on by tests to see that what watches the switch finds them.
//!
//! Outside of the unit tests none exists: [`is`] is the constant false, and the compiler leaves nothing of it.

/// A fault. Each bites where the code asks [`is`] for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// An XOFF is said once and never again.
    NoRefresh,
    /// A group may go on although its headroom is not empty.
    XonTooEarly,
    /// A group's headroom is bounded by the sum of the port's: 352 KB enter a buffer of 100 KB.
    HeadroomShared,
    /// What leaves frees the shared pool first and the headroom last.
    ReleaseOrder,
    /// The tally hears of a frame when it is queued and not when it has left.
    ReleasedWhenQueued,
    /// The tally is read, and the ledgers hear of it, when the frames of a poll have been judged and not before.
    TallyReadLast,
    /// Nobody asks what is left in the receive ring.
    BacklogIgnored,
    /// No lossy frame is shed, however late the core is.
    NeverSheds,
    /// Lossy frames are shed only at ports whose own backlog holds their lossless classes.
    ShedsOnlyWhereHeld,
    /// A lossy queue is judged by all that waits at its port.
    QueueOfPort,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether the switches of this thread have this fault.
#[cfg(test)]
pub(crate) fn is(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// What `f` returns if the switches of this thread have the fault `mutant` meanwhile; it ends with `f`, by a panic too.
#[cfg(test)]
pub(crate) fn with<R>(mutant: Mutant, f: impl FnOnce() -> R) -> R {
    struct Off(Option<Mutant>);
    impl Drop for Off {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _off = Off(ON.replace(Some(mutant)));
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_lasts_as_long_as_it_is_asked_for() {
        assert!(!is(Mutant::NoRefresh));
        assert!(with(Mutant::NoRefresh, || is(Mutant::NoRefresh) && !is(Mutant::ReleasedWhenQueued)));
        assert!(std::panic::catch_unwind(|| with(Mutant::NoRefresh, || panic!("on purpose"))).is_err());
        assert!(!is(Mutant::NoRefresh));
    }
}
