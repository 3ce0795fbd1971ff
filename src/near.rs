//! Asking for memory ahead of its use.
//!
//! A load would do as well for one cache line, but it holds up what comes after it. Measured with 65,536 flows: 188 cycles a
//! packet when a burst loads the lines of its stations, 146 when it asks for them.

/// Asks for the cache line at `place`, which need not be anybody's.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program could see, has no effect on memory and cannot fault, whatever the
    // address.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
