//! The time stamp counter.

use crate::units::Ticks;

use super::Eal;

/// The time stamp counter of this core: about 25 cycles, so read it once a burst.
#[inline]
#[must_use]
pub fn now() -> Ticks {
    // SAFETY: every x86-64 processor has the instruction, and user programs may run it unless CR4.TSD forbids it,
    // in which case DPDK itself would not have started.
    Ticks(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Ticks of [`now`] in a second, as DPDK measured when it started.
#[must_use]
pub fn hz(_eal: &Eal) -> u64 {
    // SAFETY: the function returns a number that EAL, which runs, has set at its start.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
