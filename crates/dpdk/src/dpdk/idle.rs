//! Functions with which an idle lcore waits until an instant. They differ in the state of the waiting CPU and in how
//! late they return.

use std::time::Duration;

use dpdk_sys::libc;

use crate::units::Ticks;

use super::{Eal, Error, EthIo, hz, now};

/// PAUSE instructions between two reads of the clock: a few hundred cycles, so that the CPU mostly rests.
const PAUSES: usize = 8;

/// A way to wait. It must be used only on the lcore that owns it.
#[derive(Debug)]
pub enum Waiter {
    /// Executes PAUSE until the instant.
    Pause,
    /// Executes TPAUSE. If the lcore has a single port whose driver provides the address of its next descriptor, it
    /// executes UMONITOR and UMWAIT instead. A frame then wakes the lcore. Both end early at the kernel's limit
    /// (`/sys/devices/system/cpu/umwait_control/max_time`).
    Umwait,
    /// Sleeps in the kernel.
    Sleep(Sleeper),
}

/// Sleeps in the kernel with its most precise timer.
#[derive(Debug)]
pub struct Sleeper {
    /// Nanoseconds of a tick, in parts of 2^32.
    tick_ns: u64,
    /// Whether the timer slack of this thread has been reduced.
    is_precise: bool,
}

impl Waiter {
    /// Creates a waiter with UMWAIT and TPAUSE.
    ///
    /// # Errors
    ///
    /// [`Error::NoWaitpkg`] if this CPU has neither.
    pub fn umwait() -> Result<Self, Error> {
        let mut support = dpdk_sys::rte_cpu_intrinsics::default();
        // SAFETY: the function queries the CPU and writes the result to a local value; EAL need not run.
        unsafe { dpdk_sys::rte_cpu_get_intrinsics_support(&mut support) };
        if support.power_pause() == 0 { Err(Error::NoWaitpkg) } else { Ok(Self::Umwait) }
    }

    /// Creates a waiter that sleeps in the kernel.
    #[must_use]
    pub fn sleep(eal: &Eal) -> Self {
        Self::Sleep(Sleeper { tick_ns: (1_000_000_000_u64 << 32) / hz(eal).max(1), is_precise: false })
    }

    /// Waits until `until`, or less if the way to wait can end early. `io` are the ports that the lcore polls, if any.
    pub fn wait(&mut self, io: Option<&EthIo>, until: Ticks) {
        match self {
            Self::Pause => {
                while now() < until {
                    (0..PAUSES).for_each(|_| std::hint::spin_loop());
                }
            }
            Self::Umwait => {
                if !io.and_then(EthIo::only_queue).is_some_and(|queue| queue.monitor(until)) {
                    // SAFETY: the CPU has the instruction, as `umwait` has checked. A failure is an early end.
                    unsafe { dpdk_sys::rte_power_pause(until.0) };
                }
            }
            Self::Sleep(sleeper) => sleeper.sleep(until),
        }
    }
}

impl Sleeper {
    fn sleep(&mut self, until: Ticks) {
        if !self.is_precise {
            self.is_precise = true;
            // The kernel may end a thread's timers up to 50 us late, to combine wake-ups.
            // SAFETY: the call takes numbers and changes the calling thread only. If it fails, sleep is less precise.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
        }
        let left = until.since(now());
        let ns = (u128::from(left) * u128::from(self.tick_ns)) >> 32;
        if ns > 0 {
            std::thread::sleep(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)));
        }
    }
}
