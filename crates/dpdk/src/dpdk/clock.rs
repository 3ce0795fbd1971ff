//! The time stamp counter of x86-64, and the virtual counter of arm64.

use crate::units::Ticks;

use super::Eal;

/// Reads the time stamp counter of this core. It takes about 25 cycles, so read it once per burst.
#[cfg(target_arch = "x86_64")]
#[inline]
#[must_use]
pub fn now() -> Ticks {
    // SAFETY: every x86-64 processor has the instruction, and user programs may run it unless CR4.TSD forbids it,
    // in which case DPDK itself would not have started.
    Ticks(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Reads the virtual counter, which runs at one rate and is one for all cores. DPDK's own times come from it too. Like
/// the time stamp counter it may be read before earlier instructions end.
#[cfg(target_arch = "aarch64")]
#[inline]
#[must_use]
pub fn now() -> Ticks {
    let ticks: u64;
    // SAFETY: Linux lets user programs read this register (CNTKCTL_EL1). The instruction has no other effect.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    Ticks(ticks)
}

/// Returns the ticks of [`now`] per second. DPDK measures those of the time stamp counter at its start, and reads
/// CNTFRQ_EL0 for the virtual counter.
#[must_use]
pub fn hz(_eal: &Eal) -> u64 {
    // SAFETY: the function returns a number that the running EAL has set at its start.
    unsafe { dpdk_sys::rte_get_tsc_hz() }
}
