//! The time stamp counter.

use crate::units::Ticks;

use super::Eal;

/// Reads the time stamp counter of this core. It takes about 25 cycles, so read it once per burst.
#[inline]
#[must_use]
pub fn now() -> Ticks {
    // SAFETY: every x86-64 processor has the instruction, and user programs may run it unless CR4.TSD forbids it,
    // in which case DPDK itself would not have started.
    Ticks(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Returns the ticks of [`now`] per second, as DPDK measured at its start.
#[must_use]
pub fn hz(_eal: &Eal) -> u64 {
    // SAFETY: the function returns a number that the running EAL has set at its start.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
