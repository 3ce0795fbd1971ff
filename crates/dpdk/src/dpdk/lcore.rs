//! Lcores: the CPUs of the machine, and functions that run on them.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::cpus::{ISOLATED, ONLINE, parse_list, usable};
use dpdk_sys::libc;

use super::eal::Shared;
use super::{Eal, Error};

/// Number of CPUs in an affinity mask.
const CPUS: usize = 8192;

/// An affinity mask.
type Mask = [u64; CPUS / 64];

/// A worker lcore of the running EAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lcore {
    /// DPDK's number of the lcore, from 1: the main lcore is 0.
    pub id: u32,
    /// The CPU that the lcore is bound to. Several lcores may share one.
    pub cpu: usize,
}

/// Returns the CPUs that the calling thread may run on, isolated ones included and last. Call it before EAL starts,
/// which binds the thread to one CPU.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    let Some(mask) = affinity() else {
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    };
    let list =
        |file: &str| std::fs::read_to_string(format!("/{file}")).map(|text| parse_list(&text)).unwrap_or_default();
    let isolated = list(ISOLATED);
    let wanted = usable(&mask, &isolated, &list(ONLINE));
    let mut allowed = mask.clone();
    // A cpuset may exclude isolated CPUs, which only an attempt can tell.
    if wanted != mask && set_affinity(&wanted).is_ok() {
        allowed = affinity().unwrap_or(allowed);
        // The kernel has allowed this mask before.
        let _ = set_affinity(&mask);
    }
    allowed.sort_by_key(|cpu| (isolated.contains(cpu), *cpu));
    allowed.into_iter().map(usize::from).collect()
}

/// The affinity mask of the calling thread; `None` if it is too small for all CPUs, or the kernel lacks the call.
fn affinity() -> Option<Vec<u16>> {
    let mut mask: Mask = [0; CPUS / 64];
    // SAFETY: the kernel writes at most the given number of bytes to the mask, which has them.
    let status = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), mask.as_mut_ptr().cast()) };
    let is_set = |cpu: &u16| mask[usize::from(*cpu) / 64] >> (cpu % 64) & 1 == 1;
    (status >= 0).then(|| (0..CPUS as u16).filter(is_set).collect())
}

/// Lets the calling thread run on `cpus`, of which the kernel must allow one.
pub(super) fn set_affinity(cpus: &[u16]) -> Result<(), std::io::Error> {
    let mut mask: Mask = [0; CPUS / 64];
    for &cpu in cpus.iter().filter(|&&cpu| usize::from(cpu) < CPUS) {
        mask[usize::from(cpu) / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads at most the given number of bytes from the mask, which has them.
    let status = unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), mask.as_ptr().cast()) };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Formats CPUs like `0,2,3` for an error.
pub(super) fn list(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A function that runs on an lcore.
///
/// Dropping it waits for the function to end, like [`Worker::join`], so the function must be stopped first.
pub struct Worker<T> {
    lcore: Lcore,
    slot: Arc<Slot<T>>,
    /// Keeps DPDK from shutting down while a thread runs in it.
    _eal: Arc<Shared>,
}

/// Receives the function's result.
struct Slot<T> {
    outcome: Mutex<LaunchState<T>>,
    arrived: Condvar,
}

/// The state of a launched function.
enum LaunchState<T> {
    Running,
    Returned(T),
    Panicked(String),
    /// The result was returned by `join`.
    Taken,
}

/// The value that `launch` passes to the lcore.
struct Task<F, T> {
    function: F,
    slot: Arc<Slot<T>>,
}

impl Eal {
    /// Runs `function` on `lcore`, which must be idle.
    ///
    /// # Errors
    ///
    /// [`Error::LcoreBusy`] if the lcore is busy, or is no worker of this EAL.
    pub fn launch<T, F>(&self, lcore: Lcore, function: F) -> Result<Worker<T>, Error>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        // DPDK indexes an array by the number without a check.
        if !self.workers().contains(&lcore) {
            return Err(Error::LcoreBusy { lcore: lcore.id });
        }
        let slot = Arc::new(Slot { outcome: Mutex::new(LaunchState::Running), arrived: Condvar::new() });
        let task = Box::into_raw(Box::new(Task { function, slot: Arc::clone(&slot) }));
        // DPDK's check that the lcore is idle and its change to busy are not one atomic step.
        let launching = self.shared().control.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `run::<F, T>` is the function for exactly this type of task, takes ownership of it and does not
        // unwind. The lcore is one of EAL's workers, checked above.
        let status = unsafe { dpdk_sys::rte_eal_remote_launch(Some(run::<F, T>), task.cast(), lcore.id) };
        drop(launching);
        if status != 0 {
            // SAFETY: the lcore did not take the task, so the pointer is still the only one to the box.
            drop(unsafe { Box::from_raw(task) });
            return Err(Error::LcoreBusy { lcore: lcore.id });
        }
        Ok(Worker { lcore, slot, _eal: Arc::clone(self.shared()) })
    }
}

/// Runs a task on the thread of the lcore.
unsafe extern "C" fn run<F: FnOnce() -> T, T>(task: *mut c_void) -> c_int {
    // SAFETY: `launch` made this pointer from a box of exactly this type, for this call alone.
    let Task { function, slot } = *unsafe { Box::from_raw(task.cast::<Task<F, T>>()) };
    // After a panic no state of the function is used, and a panic must not unwind through C.
    let outcome = match catch_unwind(AssertUnwindSafe(function)) {
        Ok(value) => LaunchState::Returned(value),
        Err(payload) => LaunchState::Panicked(panic_message(&*payload)),
    };
    *slot.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    slot.arrived.notify_all();
    0
}

/// Returns the message of a panic.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}

impl<T> Worker<T> {
    /// Returns the lcore that runs the function.
    #[must_use]
    pub fn lcore(&self) -> Lcore {
        self.lcore
    }

    /// Whether the function has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        !matches!(*self.slot.outcome.lock().unwrap_or_else(PoisonError::into_inner), LaunchState::Running)
    }

    /// Waits, asleep, for the function to end and returns its result.
    ///
    /// # Errors
    ///
    /// [`Error::LcorePanicked`] if the function panicked.
    pub fn join(self) -> Result<T, Error> {
        let panicked = |message: String| Error::LcorePanicked { lcore: self.lcore.id, message };
        match std::mem::replace(&mut *self.wait(), LaunchState::Taken) {
            LaunchState::Returned(value) => Ok(value),
            LaunchState::Panicked(message) => Err(panicked(message)),
            LaunchState::Running | LaunchState::Taken => Err(panicked("its result is gone".to_owned())),
        }
    }

    /// Waits for the function to end.
    fn wait(&self) -> MutexGuard<'_, LaunchState<T>> {
        let mut outcome = self.slot.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        // DPDK's own wait spins, which would take the CPU from the function if both share one.
        while matches!(*outcome, LaunchState::Running) {
            outcome = self.slot.arrived.wait(outcome).unwrap_or_else(PoisonError::into_inner);
        }
        outcome
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        drop(self.wait());
        // SAFETY: the lcore is a worker of EAL, which the share held here keeps running. The function has ended, so
        // this spins only for the few instructions until the lcore becomes idle.
        unsafe { dpdk_sys::rte_eal_wait_lcore(self.lcore.id) };
    }
}
