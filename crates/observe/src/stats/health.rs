//! Health and readiness of the switch, for service managers and orchestrators: `/healthz` and `/readyz`.
//!
//! A process is alive if its lcores poll and its control thread runs. It is ready if, in addition, all other threads
//! run, its ports are started and their time to prove PFC is over. An lcore has stopped if its count of polls does not
//! change between two checks.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::plan::Counters;
use crate::pulse;
use crate::sync::{AtomicBool, Ordering};

/// Time without polls after which an lcore counts as stopped. Rests take at most 10 ms, and a machine that cannot run
/// an lcore for a second forwards nothing.
pub const STOPPED: Duration = Duration::from_secs(1);

/// Name of the control thread's pulse.
pub const CONTROL_THREAD: &str = "main";

/// The state of the health checks.
#[derive(Debug, Default)]
pub struct Health {
    is_tested: AtomicBool,
    /// Whether the threads of this process are those of the switch.
    has_threads: AtomicBool,
    lcores: Mutex<Vec<Pulse>>,
}

/// The last check of an lcore.
#[derive(Debug, Clone, Copy)]
struct Pulse {
    polls: u64,
    /// Time at which this count was first seen.
    since: Instant,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Reasons why the switch is not alive; empty if it is.
    pub not_alive: String,
    /// Reasons why the switch is not ready; empty if it is.
    pub not_ready: String,
}

impl State {
    /// Whether no lcore has stopped.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.not_alive.is_empty()
    }

    /// Whether the switch forwards, and the time for its ports to prove PFC is over.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.not_ready.is_empty()
    }
}

impl Health {
    /// Records that the ports are started and that their time to prove PFC is over.
    pub fn set_tested(&self) {
        self.is_tested.store(true, Ordering::Relaxed);
    }

    /// Watches the other threads too from now on.
    pub fn watch_threads(&self) {
        self.has_threads.store(true, Ordering::Relaxed);
    }

    /// The threads beside the lcores; none if they are not watched.
    #[must_use]
    pub fn threads(&self) -> Vec<pulse::Thread> {
        if self.has_threads.load(Ordering::Relaxed) { pulse::look() } else { Vec::new() }
    }

    /// Checks the lcores at `now`, and the other threads. A stopped lcore is detected by two checks, so frequent checks
    /// detect it sooner.
    pub fn look(&self, counters: &Counters, now: Instant) -> State {
        let mut pulses = self.lcores.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.resize(counters.lcores.len(), Pulse { polls: 0, since: now });
        let (mut not_alive, mut not_ready) = (String::new(), String::new());
        for (number, (pulse, lcore)) in pulses.iter_mut().zip(&counters.lcores).enumerate() {
            let polls = lcore.polls.get();
            if polls != pulse.polls {
                *pulse = Pulse { polls, since: now };
            }
            let still = now.saturating_duration_since(pulse.since);
            // Writing to a string cannot fail.
            if still >= STOPPED {
                let _ = writeln!(not_alive, "lcore {number} has not polled for {:.1} s", still.as_secs_f64());
            } else if polls == 0 {
                let _ = writeln!(not_ready, "lcore {number} has not polled yet");
            }
        }
        for thread in self.threads().iter().filter(|thread| thread.is_late() || thread.has_panicked) {
            // Without the control thread nothing else would notice; the others may recover.
            let text = if thread.name == CONTROL_THREAD { &mut not_alive } else { &mut not_ready };
            let _ = writeln!(text, "thread {} has not run for {:.1} s", thread.name, thread.age.as_secs_f64());
        }
        not_ready.insert_str(0, &not_alive);
        if !self.is_tested.load(Ordering::Relaxed) {
            not_ready.push_str("the PFC test of the ports is still running\n");
        }
        State { not_alive, not_ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_requires_polls_the_pfc_test_and_progress() {
        let (counters, health) = (Counters::new(0, 2), Health::default());
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let first = health.look(&counters, at(0));
        assert!(first.is_alive(), "it may still come: {first:?}");
        let expected =
            "lcore 0 has not polled yet\nlcore 1 has not polled yet\nthe PFC test of the ports is still running\n";
        assert_eq!(first.not_ready, expected);

        counters.lcores.iter().for_each(|lcore| lcore.polls.set(5));
        assert_eq!(health.look(&counters, at(100)).not_ready, "the PFC test of the ports is still running\n");
        health.set_tested();
        assert!(health.look(&counters, at(200)).is_ready());

        counters.lcores[0].polls.set(6);
        assert!(health.look(&counters, at(1099)).is_ready(), "not stopped for long enough");
        let stopped = health.look(&counters, at(1100));
        assert_eq!(stopped.not_alive, "lcore 1 has not polled for 1.0 s\n");
        assert_eq!(stopped.not_ready, stopped.not_alive);
        counters.lcores[1].polls.set(6);
        assert!(health.look(&counters, at(1200)).is_ready(), "it polls again");
    }

    #[test]
    fn lcore_that_never_polled_is_not_alive() {
        let (counters, health) = (Counters::new(0, 1), Health::default());
        let start = Instant::now();
        health.look(&counters, start);
        assert_eq!(health.look(&counters, start + STOPPED).not_alive, "lcore 0 has not polled for 1.0 s\n");
    }
}
