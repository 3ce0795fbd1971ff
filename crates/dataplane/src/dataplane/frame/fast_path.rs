//! Counts the short paths that are taken, and turns them off. Tests compare these with the long paths, and must be sure
//! that they ran.
//!
//! Outside of the unit tests the count is an empty function and no path is off, so the compiler removes both.

/// A short path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FastPath {
    /// A burst that begins with a tag or IPv6 was read as frames of one kind.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only forms with vectors have loops for kinds"))]
    OfKind,
    /// Some frames of a burst were read as usual ones.
    Usual,
    /// A frame that looked usual was shorter than it states.
    Truncated,
    /// No frame of the burst needed a rewrite.
    Unchanged,
    /// The whole burst was admitted at once.
    Admitted,
    /// A burst was admitted at once while a group of it was XOFF.
    WhileXoff,
    /// Lossless frames of a burst that was not admitted at once were all admitted, and moved into their queues in runs.
    Lossless,
    /// Several frames of a lossless burst that was not admitted at once were admitted together.
    InParts,
    /// So many parts of a lossless burst were tried in vain that its other frames were admitted one by one.
    InVain,
    /// The groups refused some lossless frames of a burst that was not admitted at once.
    LosslessRefused,
    /// The frames of a burst were moved into their queues in runs.
    Appended,
    /// A run of queued frames left as a whole.
    WholeRun,
    /// All frames of a run were marked without a look at each.
    AllMarked,
    /// All frames of a port left at once.
    AllSent,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn hit(_: FastPath) {}

/// Whether the path `path` is off.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is_off(_: FastPath) -> bool {
    false
}

#[cfg(test)]
pub(crate) use tested::{hit, hits, is_off, without};

#[cfg(test)]
mod tested {
    use std::cell::Cell;

    use super::FastPath;

    const PATHS: usize = FastPath::AllSent as usize + 1;

    thread_local! {
        static TAKEN: [Cell<u64>; PATHS] = const { [const { Cell::new(0) }; PATHS] };
        static OFF: Cell<&'static [FastPath]> = const { Cell::new(&[]) };
    }

    /// Counts a use of the path `path`.
    pub(crate) fn hit(path: FastPath) {
        TAKEN.with(|taken| taken[path as usize].set(taken[path as usize].get() + 1));
    }

    /// Number of uses of the path `path` on this thread.
    pub(crate) fn hits(path: FastPath) -> u64 {
        TAKEN.with(|taken| taken[path as usize].get())
    }

    /// Whether the path `path` is off on this thread.
    pub(crate) fn is_off(path: FastPath) -> bool {
        OFF.get().contains(&path)
    }

    /// Runs `f` without the `paths`, and returns its result.
    pub(crate) fn without<R>(paths: &'static [FastPath], f: impl FnOnce() -> R) -> R {
        let before = OFF.replace(paths);
        let result = f();
        OFF.set(before);
        result
    }
}
