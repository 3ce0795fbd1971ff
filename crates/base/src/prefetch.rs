//! Prefetches memory before its use.
//!
//! A load would also fetch one cache line, but it stalls the instructions behind it. Measured with 65,536 flows: 188
//! cycles a packet when a burst loads the lines of its stations, 146 when it prefetches them.

/// Prefetches the cache line at `place`, which may be any address.
#[inline]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program could see, does not change memory and cannot fault at any
    // address.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
