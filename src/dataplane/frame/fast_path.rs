//! Counts the short paths that bursts take. Tests compare these with the long paths, and must be sure that they ran.
//!
//! Outside of the unit tests the count is an empty function that the compiler removes.

/// A short path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FastPath {
    /// No frame of the burst needed a rewrite.
    Unchanged,
    /// The whole burst was admitted at once.
    Admitted,
    /// A burst was admitted at once with frames for headroom.
    InHeadroom,
    /// A run of queued frames left as a whole.
    WholeRun,
    /// All frames of a port left at once.
    AllSent,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn hit(_: FastPath) {}

#[cfg(test)]
thread_local! {
    static TAKEN: [std::cell::Cell<u64>; 5] = const { [const { std::cell::Cell::new(0) }; 5] };
}

/// Counts a burst that took the path `path`.
#[cfg(test)]
pub(crate) fn hit(path: FastPath) {
    TAKEN.with(|taken| taken[path as usize].set(taken[path as usize].get() + 1));
}

/// Number of bursts that took the path `path` on this thread.
#[cfg(test)]
pub(crate) fn hits(path: FastPath) -> u64 {
    TAKEN.with(|taken| taken[path as usize].get())
}
