//! Ways for an lcore to wait until an instant, when nothing is left to poll for: they differ in what the CPU does meanwhile
//! and in how late they come back.

use std::time::Duration;

use dpdk_sys::libc;

use crate::units::Ticks;

use super::{Eal, Error, EthIo, hz, now};

/// PAUSE instructions between two looks at the clock: a few hundred cycles, so that it is the CPU that rests.
const PAUSES: usize = 8;

/// A way to wait. It belongs to one lcore, on which it must be used.
#[derive(Debug)]
pub enum Waiter {
    /// PAUSE until then.
    Pause,
    /// TPAUSE; or, on an lcore of one port whose driver says where its next frame will show, UMONITOR and UMWAIT there, so
    /// that it wakes for the frame. Both end early when the kernel's bound on them is reached
    /// (`/sys/devices/system/cpu/umwait_control/max_time`).
    Umwait,
    /// The kernel's sleep.
    Sleep(Sleeper),
}

/// Sleeps with a timer as precise as the kernel has.
#[derive(Debug)]
pub struct Sleeper {
    /// Nanoseconds in a tick, in parts of 2^32.
    tick_ns: u64,
    /// Whether this thread's timers have been made precise.
    is_precise: bool,
}

impl Waiter {
    /// UMWAIT and TPAUSE.
    ///
    /// # Errors
    ///
    /// [`Error::NoWaitpkg`] if this CPU has neither.
    pub fn umwait() -> Result<Self, Error> {
        let mut support = dpdk_sys::rte_cpu_intrinsics::default();
        // SAFETY: the function asks the CPU and writes its answer to a value that is ours; EAL need not run.
        unsafe { dpdk_sys::rte_cpu_get_intrinsics_support(&mut support) };
        if support.power_pause() == 0 { Err(Error::NoWaitpkg) } else { Ok(Self::Umwait) }
    }

    /// The kernel's sleep.
    #[must_use]
    pub fn sleep(eal: &Eal) -> Self {
        Self::Sleep(Sleeper { tick_ns: (1_000_000_000_u64 << 32) / hz(eal).max(1), is_precise: false })
    }

    /// Waits until `until` or, where a way can wake early, less. `io` are the ports that the lcore polls, if it has any.
    pub fn wait(&mut self, io: Option<&EthIo>, until: Ticks) {
        match self {
            Self::Pause => {
                while now() < until {
                    (0..PAUSES).for_each(|_| std::hint::spin_loop());
                }
            }
            Self::Umwait => {
                if !io.and_then(EthIo::only_queue).is_some_and(|queue| queue.monitor(until)) {
                    // SAFETY: the CPU has the instruction, as `umwait` has found out. A failure is an early end.
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
            // The kernel may let a thread's timers end up to 50 us late, so that it wakes for several at once.
            // SAFETY: the call takes numbers and changes the calling thread only; where it fails sleep is less precise.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
        }
        let left = until.since(now());
        let ns = (u128::from(left) * u128::from(self.tick_ns)) >> 32;
        if ns > 0 {
            std::thread::sleep(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)));
        }
    }
}
