//! Which short ways bursts take, for tests that compare these with the long ones and must see that they were taken.
//!
//! Outside of the unit tests nobody counts, and the compiler leaves nothing of it.

/// A short way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// All of a burst leaves as it came.
    AsItCame,
    /// All of a burst was admitted at once.
    Together,
    /// Some of that into headroom.
    InHeadroom,
}

#[cfg(not(test))]
#[inline(always)]
pub(super) const fn took(_: Way) {}

#[cfg(test)]
thread_local! {
    static TAKEN: [std::cell::Cell<u64>; 3] = const { [const { std::cell::Cell::new(0) }; 3] };
}

/// A burst has taken `way`.
#[cfg(test)]
pub(super) fn took(way: Way) {
    TAKEN.with(|taken| taken[way as usize].set(taken[way as usize].get() + 1));
}

/// How many bursts have taken `way` on this thread.
#[cfg(test)]
pub(super) fn taken(way: Way) -> u64 {
    TAKEN.with(|taken| taken[way as usize].get())
}
