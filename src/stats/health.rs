//! Whether the switch lives and is ready, for whoever starts, watches and replaces it: `/healthz` and `/readyz`.
//!
//! Alive is a process whose lcores poll. Ready is one that has besides had its ports started and the time in which they
//! prove their PFC. An lcore that stands still is seen by its count of polls, which does not move between two looks.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::dataplane::Counters;
use crate::sync::{AtomicBool, Ordering};

/// An lcore whose count of polls has not moved for so long has stopped: rests are 10 ms at most, and a machine that is
/// too busy to run an lcore for a second forwards nothing.
pub const STOPPED: Duration = Duration::from_secs(1);

/// What is known of the lcores' lives.
#[derive(Debug, Default)]
pub struct Health {
    is_tested: AtomicBool,
    lcores: Mutex<Vec<Pulse>>,
}

/// The last look at an lcore.
#[derive(Debug, Clone, Copy)]
struct Pulse {
    polls: u64,
    /// When it was first seen with that count.
    since: Instant,
}

/// What a look has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Why the switch does not live, or an empty text.
    pub not_alive: String,
    /// Why it is not ready, or an empty text.
    pub not_ready: String,
}

impl State {
    /// Whether all lcores move.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.not_alive.is_empty()
    }

    /// Whether the switch forwards, and its ports have had their time to prove themselves.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.not_ready.is_empty()
    }
}

impl Health {
    /// The ports are started, and the time in which they prove their PFC is over.
    pub fn set_tested(&self) {
        self.is_tested.store(true, Ordering::Relaxed);
    }

    /// Looks at the lcores at `now`. Whoever looks often, knows soon when one has stopped: two looks are needed.
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
            // Writing to a text cannot fail.
            if still >= STOPPED {
                let _ = writeln!(not_alive, "lcore {number} has not polled for {:.1} s", still.as_secs_f64());
            } else if polls == 0 {
                let _ = writeln!(not_ready, "lcore {number} has not polled yet");
            }
        }
        not_ready.insert_str(0, &not_alive);
        if !self.is_tested.load(Ordering::Relaxed) {
            not_ready.push_str("ports still have time to prove their PFC\n");
        }
        State { not_alive, not_ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_polled_and_tested_and_moving() {
        let (counters, health) = (Counters::new(0, 2), Health::default());
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let first = health.look(&counters, at(0));
        assert!(first.is_alive(), "it may still come: {first:?}");
        let expected =
            "lcore 0 has not polled yet\nlcore 1 has not polled yet\nports still have time to prove their PFC\n";
        assert_eq!(first.not_ready, expected);

        counters.lcores.iter().for_each(|lcore| lcore.polls.set(5));
        assert_eq!(health.look(&counters, at(100)).not_ready, "ports still have time to prove their PFC\n");
        health.set_tested();
        assert!(health.look(&counters, at(200)).is_ready());

        counters.lcores[0].polls.set(6);
        assert!(health.look(&counters, at(1099)).is_ready(), "not long enough");
        let stopped = health.look(&counters, at(1100));
        assert_eq!(stopped.not_alive, "lcore 1 has not polled for 1.0 s\n");
        assert_eq!(stopped.not_ready, stopped.not_alive);
        counters.lcores[1].polls.set(6);
        assert!(health.look(&counters, at(1200)).is_ready(), "it moves again");
    }

    #[test]
    fn an_lcore_that_never_came_is_not_alive() {
        let (counters, health) = (Counters::new(0, 1), Health::default());
        let start = Instant::now();
        health.look(&counters, start);
        assert_eq!(health.look(&counters, start + STOPPED).not_alive, "lcore 0 has not polled for 1.0 s\n");
    }
}
