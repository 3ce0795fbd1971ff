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
    results: &Receiver<Result<RunSummary, Box<Failure>>>,
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
