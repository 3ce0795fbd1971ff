//! Runs random fabrics one after the other, on all CPUs.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Failure, RunSummary, try_seed};
use crate::sim::outcome::Ending;
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Longest time between two calls of `progress`.
const HEARTBEAT: Duration = Duration::from_millis(200);

/// Totals of the fabrics that were run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Number of fabrics.
    pub fabrics: u64,
    /// Fabrics whose switches guaranteed lossless service throughout.
    pub promised: u64,
    /// Fabrics that did not drain, for a known reason.
    pub undrained: u64,
    /// Number of events.
    pub events: u64,
    /// Frames that hosts sent.
    pub frames: u64,
    /// Checks of every invariant.
    pub checks: u64,
}

impl Totals {
    /// Adds the totals of other fabrics.
    pub fn merge(&mut self, other: &Self) {
        self.fabrics += other.fabrics;
        self.promised += other.promised;
        self.undrained += other.undrained;
        self.events += other.events;
        self.frames += other.frames;
        self.checks += other.checks;
    }

    fn add(&mut self, run: &RunSummary) {
        self.fabrics += 1;
        self.promised += u64::from(!run.waived);
        self.undrained += u64::from(run.ending != Ending::Drained);
        self.events += run.events;
        self.frames += run.frames;
        self.checks += run.checks;
    }
}

/// Progress of a soak.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Totals so far.
    pub totals: Totals,
    /// Number of fabrics to run; `None`: until `progress` returns false.
    pub count: Option<u64>,
    /// Time since the beginning.
    pub elapsed: Duration,
}

/// Runs the fabrics of `count` seeds from `first_seed` on; `None`: until `progress` returns false. `progress` is called
/// after each fabric and a few times a second. The soak uses as many threads as there are CPUs; a fabric is the same on
/// any of them.
///
/// # Errors
/// The failure of the first seed that has one, shrunk. Seeds start in order and those under way are completed, so that
/// the number of threads does not matter.
pub fn soak(
    first_seed: u64,
    count: Option<u64>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Totals, Box<Failure>> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    search(threads, first_seed, count, &try_seed, progress)
}

/// Result of a fabric.
type Tried = Result<RunSummary, Box<Failure>>;

/// Runs the fabrics as [`soak`] does, on this number of threads and by `try_seed`.
fn search(
    threads: usize,
    first_seed: u64,
    count: Option<u64>,
    try_seed: &(dyn Fn(u64) -> Tried + Sync),
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Totals, Box<Failure>> {
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (sender, receiver) = sync_channel(2 * threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if count.is_some_and(|count| number >= count) {
                        return;
                    }
                    let result = try_seed(first_seed.wrapping_add(number));
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    if sender.send(result).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        collect(&receiver, first_seed, count, &stop, progress)
    })
}

fn collect(
    results: &Receiver<Tried>,
    first_seed: u64,
    count: Option<u64>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Totals, Box<Failure>> {
    let (began, mut totals, mut worst) = (Instant::now(), Totals::default(), None::<Box<Failure>>);
    // Seeds go on with 0 after the largest.
    let number = |failure: &Failure| failure.seed.wrapping_sub(first_seed);
    loop {
        match results.recv_timeout(HEARTBEAT) {
            Ok(Ok(run)) => totals.add(&run),
            Ok(Err(failure)) => {
                if worst.as_ref().is_none_or(|worst| number(&failure) < number(worst)) {
                    worst = Some(failure);
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return worst.map_or(Ok(totals), Err),
        }
        if !progress(Progress { totals, count, elapsed: began.elapsed() }) {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::outcome::Violation;

    /// Runs made-up fabrics of which these seeds fail. Later seeds take less time than earlier ones, so that failures
    /// come out of order.
    fn search_with(threads: usize, first_seed: u64, count: u64, failing: &[u64]) -> Result<Totals, u64> {
        let try_seed = |seed: u64| {
            let number = seed.wrapping_sub(first_seed);
            std::thread::sleep(Duration::from_micros(200 * (7 - number % 8)));
            let violation = Violation { invariant: "idle", at_ps: 0, event: 0, what: String::new() };
            let (yaml, shrunk_yaml) = Default::default();
            let shrunk_violation = violation.clone();
            let failure = Failure { seed, yaml, violation, shrunk_yaml, shrunk_violation, runs: 0 };
            let run =
                RunSummary { events: 5, frames: 2, checks: 3, waived: seed.is_multiple_of(2), ending: Ending::Drained };
            if failing.contains(&seed) { Err(Box::new(failure)) } else { Ok(run) }
        };
        search(threads, first_seed, Some(count), &try_seed, &mut |_| true).map_err(|failure| failure.seed)
    }

    #[test]
    fn first_failing_seed_is_reported_with_any_number_of_threads_and_shards() {
        for threads in [1, 2, 5] {
            let whole = search_with(threads, 10, 100, &[61, 62, 63, 95]);
            assert_eq!(whole, Err(61), "{threads} threads");
            let shards = [(10, 40), (50, 30), (80, 30)];
            let failed = shards
                .into_iter()
                .find_map(|(first, count)| search_with(threads, first, count, &[61, 62, 63, 95]).err());
            assert_eq!(failed, whole.err(), "{threads} threads");
            assert_eq!(search_with(threads, u64::MAX - 2, 8, &[0, u64::MAX]), Err(u64::MAX), "seeds go on with 0");
        }
    }

    #[test]
    fn totals_of_shards_add_up_to_those_of_the_undivided_run() {
        let mut merged = Totals::default();
        for (first, count) in [(10, 3), (13, 0), (13, 7)] {
            merged.merge(&search_with(2, first, count, &[]).unwrap());
        }
        assert_eq!(search_with(2, 10, 10, &[]), Ok(merged));
        let all = Totals { fabrics: 10, promised: 5, undrained: 0, events: 50, frames: 20, checks: 30 };
        assert_eq!(merged, all);
    }
}
