//! The pulse of DPDK's interrupt thread, which handles link changes and the connections of memif and vhost ports.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Eal, Error};
use crate::pulse::{PERIOD, Pulse};

/// Name of the thread, which DPDK 22.11 gives it. The metric keeps it with later versions, whose name is `dpdk-intr`.
const NAME: &str = "eal-intr-thread";

static PULSE: Mutex<Option<Pulse>> = Mutex::new(None);

fn pulse() -> MutexGuard<'static, Option<Pulse>> {
    PULSE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Beats in the interrupt thread while it exists.
pub struct InterruptPulse(Eal);

impl InterruptPulse {
    /// Begins the pulse.
    ///
    /// # Errors
    /// If DPDK refuses an alarm.
    pub fn start(eal: &Eal) -> Result<Self, Error> {
        *pulse() = Some(Pulse::start(NAME));
        let watched = Self(eal.clone());
        arm().map(|()| watched)
    }
}

impl Drop for InterruptPulse {
    fn drop(&mut self) {
        // The alarm finds no pulse from now on and ends by itself; EAL, which `self` holds, then forgets it.
        *pulse() = None;
        // SAFETY: EAL runs, and this is the callback and argument of `arm`.
        unsafe { dpdk_sys::rte_eal_alarm_cancel(Some(beat), std::ptr::null_mut()) };
        let _ = &self.0;
    }
}

/// Has the interrupt thread call [`beat`] once.
fn arm() -> Result<(), Error> {
    let micros = PERIOD.as_micros() as u64 / 2;
    // SAFETY: `beat` exists for the whole program, does not unwind and does not use its argument.
    let status = unsafe { dpdk_sys::rte_eal_alarm_set(micros, Some(beat), std::ptr::null_mut()) };
    if status == 0 { Ok(()) } else { Err(Error::Alarm) }
}

unsafe extern "C" fn beat(_: *mut c_void) {
    let pulse = pulse();
    if let Some(pulse) = &*pulse {
        pulse.beat();
        // If DPDK refuses another alarm, the thread counts as late.
        let _ = arm();
    }
}
