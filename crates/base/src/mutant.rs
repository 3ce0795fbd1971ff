//! Faults for mutation testing. Tests enable one to check that the auditors of the switch detect it.
//!
//! Without the feature `testing`, which only tests enable, no fault exists: [`is`] is the constant false, and the
//! compiler removes its branches.

/// A fault. It takes effect where the code calls [`is`] with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The switch sends each XOFF once and never refreshes it.
    NoRefresh,
    /// A group sends XON before its headroom is empty.
    XonTooEarly,
    /// Only the sum of the port's headrooms bounds the headroom of a group: 352 KB enter a buffer of 100 KB.
    HeadroomShared,
    /// A released frame frees the shared pool first and the headroom last.
    ReleaseOrder,
    /// The tally records the release of a frame when it is queued instead of when it has left.
    ReleasedWhenQueued,
    /// The ledgers collect releases from the tally after the frames of a poll are admitted instead of before.
    TallyReadLast,
    /// The switch never checks the backlog in the receive ring.
    BacklogIgnored,
    /// No lossy frame is shed, even if the core is late.
    NeverSheds,
    /// Lossy frames are shed only at ports whose own backlog pauses their lossless classes.
    ShedsOnlyWhereHeld,
    /// A lossy queue is judged by the sum of all queues of its port.
    QueueOfPort,
    /// An lcore does not obey the pauses of a joint port that another lcore owns.
    GuestIgnoresPauses,
    /// An lcore never tells the others that its frames for a joint port have left.
    DepthStays,
    /// Depths do not count the frames that the device has and the wire has not sent.
    PostedIsForgotten,
    /// A part of the buffer grows before others have given up the cells for it.
    GrowsTooEarly,
    /// A class becomes lossless before it has its headroom.
    PromisesTooEarly,
    /// A peer has no time to stop at XOFF: it must have stopped when the frame is with the driver.
    ReactionForgotten,
    /// Frames that waited in the receive ring count as if they had arrived just before they were read.
    RingForgotten,
    /// Frames that come too late after XOFF are not noticed.
    LatenessIgnored,
    /// The receiver of a reliable flow acknowledges frames that it discards.
    AcknowledgesDiscarded,
}

/// Whether a fault is enabled: none is.
#[must_use]
#[cfg(not(any(test, feature = "testing")))]
#[inline(always)]
pub const fn is(_: Mutant) -> bool {
    false
}

#[cfg(any(test, feature = "testing"))]
thread_local! {
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether `mutant` is enabled on this thread.
#[cfg(any(test, feature = "testing"))]
pub fn is(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// Runs `f` with the fault `mutant` enabled on this thread, and returns its result. The fault ends with `f`, even by a
/// panic.
#[cfg(any(test, feature = "testing"))]
pub fn with<R>(mutant: Mutant, f: impl FnOnce() -> R) -> R {
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
    fn mutant_is_active_only_inside_with() {
        assert!(!is(Mutant::NoRefresh));
        assert!(with(Mutant::NoRefresh, || is(Mutant::NoRefresh) && !is(Mutant::ReleasedWhenQueued)));
        assert!(std::panic::catch_unwind(|| with(Mutant::NoRefresh, || panic!("on purpose"))).is_err());
        assert!(!is(Mutant::NoRefresh));
    }
}
