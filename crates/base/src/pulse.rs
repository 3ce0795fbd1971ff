//! Pulses of the threads beside the lcores. A thread that hangs or has ended by a panic is known by its name.
//!
//! Each thread beats at least once a second. While it waits for something outside, such as a disk or the reader of its
//! output, it says so and is not late. [`look`] tells the state of every thread.
//!
//! # Example
//!
//! ```
//! use holdfast_base::pulse::{self, Pulse};
//!
//! let pulse = Pulse::start("example");
//! pulse.beat();
//! assert!(pulse::look().iter().any(|thread| thread.name == "example" && !thread.is_late()));
//! ```

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Longest time between two beats of a thread.
pub const PERIOD: Duration = Duration::from_secs(1);
/// Time without a beat after which a thread is late. A machine under load may keep a thread from its CPU for a second.
pub const LATE: Duration = Duration::from_secs(5);

/// Start of the clock of all pulses.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
static ALL: Mutex<Vec<Arc<Entry>>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Arc<Entry>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> u64 {
    START.elapsed().as_nanos() as u64
}

#[derive(Debug)]
struct Entry {
    name: String,
    /// Time of the last beat.
    at: AtomicU64,
    /// Longest gap between two beats that was too long, since [`look`] took the one before.
    gap: AtomicU64,
    is_outside: AtomicBool,
    has_panicked: AtomicBool,
}

/// The pulse of a thread, which owns it until its end.
#[derive(Debug)]
pub struct Pulse(Arc<Entry>);

impl Pulse {
    /// Begins the pulse of the thread `name`.
    #[must_use]
    pub fn start(name: &str) -> Self {
        let [is_outside, has_panicked] = [(); 2].map(|()| AtomicBool::new(false));
        let (name, at, gap) = (name.to_owned(), AtomicU64::new(now()), AtomicU64::new(0));
        let entry = Arc::new(Entry { name, at, gap, is_outside, has_panicked });
        all().push(entry.clone());
        Self(entry)
    }

    /// Says that the thread runs.
    pub fn beat(&self) {
        self.beat_at(now());
    }

    fn beat_at(&self, now: u64) {
        let gap = now.saturating_sub(self.0.at.swap(now, Ordering::Relaxed));
        if u128::from(gap) >= LATE.as_nanos() && !self.0.is_outside.load(Ordering::Relaxed) {
            self.0.gap.fetch_max(gap, Ordering::Relaxed);
        }
    }

    /// Runs `wait`, which may take long for a reason outside of the program.
    pub fn outside<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.beat();
        self.0.is_outside.store(true, Ordering::Relaxed);
        let result = wait();
        self.beat();
        self.0.is_outside.store(false, Ordering::Relaxed);
        result
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_panicked.store(true, Ordering::Relaxed);
        } else {
            all().retain(|entry| !Arc::ptr_eq(entry, &self.0));
        }
    }
}

/// The state of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Time since its last beat; zero while it waits for something outside.
    pub age: Duration,
    /// Whether a panic has ended it.
    pub has_panicked: bool,
}

impl Thread {
    /// Whether the thread should have beaten by now.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.age >= LATE
    }
}

/// The states of all threads.
#[must_use]
pub fn look() -> Vec<Thread> {
    all().iter().map(|entry| entry.look(now())).collect()
}

/// Threads that were late since the last call, with the time without a beat.
#[must_use]
pub fn take_gaps() -> Vec<(String, Duration)> {
    let gap = |entry: &Arc<Entry>| {
        let gap = entry.gap.swap(0, Ordering::Relaxed);
        (gap > 0).then(|| (entry.name.clone(), Duration::from_nanos(gap)))
    };
    all().iter().filter_map(gap).collect()
}

impl Entry {
    fn look(&self, now: u64) -> Thread {
        // Read first: the last beat is then no older than the end of the wait.
        let is_outside = self.is_outside.load(Ordering::Relaxed);
        let age = if is_outside { 0 } else { now.saturating_sub(self.at.load(Ordering::Relaxed)) };
        let has_panicked = self.has_panicked.load(Ordering::Relaxed);
        Thread { name: self.name.clone(), age: Duration::from_nanos(age), has_panicked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str) -> Option<Thread> {
        look().into_iter().find(|thread| thread.name == name)
    }

    const LATE_NANOS: u64 = LATE.as_nanos() as u64;

    #[test]
    fn thread_without_a_beat_is_late_and_its_gap_is_taken_once() {
        let pulse = Pulse::start("late");
        let start = pulse.0.at.load(Ordering::Relaxed);
        assert!(!pulse.0.look(start + LATE_NANOS - 1).is_late());
        assert!(pulse.0.look(start + LATE_NANOS).is_late());
        pulse.beat_at(start + LATE_NANOS + 7);
        assert!(!pulse.0.look(start + LATE_NANOS + 8).is_late());
        let of_late = || take_gaps().into_iter().filter(|(name, _)| name == "late").collect::<Vec<_>>();
        assert_eq!(of_late(), [("late".to_owned(), LATE + Duration::from_nanos(7))]);
        assert_eq!(of_late(), []);
    }

    #[test]
    fn thread_that_waits_for_something_outside_is_not_late() {
        let pulse = Pulse::start("outside");
        let later = now() + 2 * LATE_NANOS;
        assert!(!pulse.outside(|| pulse.0.look(later)).is_late());
        assert!(pulse.0.look(later).is_late());
    }

    #[test]
    fn panic_of_a_thread_stays_known_and_its_usual_end_removes_it() {
        let panics = || {
            let _pulse = Pulse::start("panics");
            panic!("of the test");
        };
        assert!(std::thread::spawn(panics).join().is_err());
        assert!(state("panics").is_some_and(|thread| thread.has_panicked));
        std::thread::spawn(|| drop(Pulse::start("ends"))).join().unwrap();
        assert_eq!(state("ends"), None);
    }
}
