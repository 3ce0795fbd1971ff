//! `holdfast sim --random`: random fabrics, until one violates an invariant.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast::sim::random::{Failure as Failed, Progress, Totals, soak};
use holdfast::text::format::grouped as number;
use holdfast::units::Nanos;
use serde::{Deserialize, Serialize};

use super::found::{self, Found};
use super::interrupt;
use super::progress::{Line, bar};
use crate::cli::{Failure, print};

/// Minimum time between two updates of the terminal.
const PERIOD: Duration = Duration::from_millis(200);

/// The options of the command line.
pub struct Random {
    /// The first seed.
    pub seed: u64,
    /// Number of fabrics.
    pub count: Option<u64>,
    /// Time limit.
    pub time: Option<Nanos>,
    /// Output file for a scenario that violates an invariant.
    pub out: Option<PathBuf>,
    pub quiet: bool,
}

/// Number of fabrics without `--count` and without `--for`.
pub const DEFAULT_COUNT: u64 = 10_000;

pub fn random(asked: &Random) -> Result<(), Failure> {
    let limit = asked.time.map(|time| Duration::from_nanos(time.0));
    let count = asked.count.or_else(|| limit.is_none().then_some(DEFAULT_COUNT));
    let (result, elapsed) = run(asked.seed, count, limit, asked.quiet);
    let totals = result.map_err(|failed| failed.keep(asked.out.as_deref()))?;
    print(&summary(asked.seed, &totals))?;
    let left = left(count, limit, totals.fabrics, elapsed);
    match interrupt::code().zip(left) {
        None => Ok(()),
        Some((code, left)) => {
            print(&go_on(asked.seed.wrapping_add(totals.fabrics), &left))?;
            Err(Failure::Reported(code))
        }
    }
}

/// Runs `count` fabrics from `seed` on, within `limit` or until a signal, and shows the progress on a terminal. Returns
/// their totals or the first failure, and the elapsed time.
pub fn run(
    seed: u64,
    count: Option<u64>,
    limit: Option<Duration>,
    quiet: bool,
) -> (Result<Totals, RandomFailure>, Duration) {
    let is_shown = !quiet && io::stderr().is_terminal();
    let (mut line, mut shown, mut elapsed) = (Line::default(), None::<Instant>, Duration::ZERO);
    let result = soak(seed, count, &mut |progress| {
        elapsed = progress.elapsed;
        if is_shown && shown.is_none_or(|shown| shown.elapsed() >= PERIOD) {
            shown = Some(Instant::now());
            line.show(&describe(&progress, limit));
        }
        interrupt::code().is_none() && limit.is_none_or(|limit| progress.elapsed < limit)
    });
    line.clear();
    (result.map_err(|failed| RandomFailure::new(*failed)), elapsed)
}

/// A random fabric that violates an invariant, and the smallest scenario found that does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomFailure {
    seed: u64,
    /// The violation in the whole fabric: invariant, time, event and sentence.
    violation: String,
    smaller: Found,
}

impl RandomFailure {
    fn new(failed: Failed) -> Self {
        let smaller = Found::new(failed.shrunk_yaml, &failed.shrunk_violation, failed.runs);
        Self { seed: failed.seed, violation: found::describe(&failed.violation), smaller }
    }

    /// Returns a sentence with the seed and the violation.
    pub fn sentence(&self) -> String {
        format!("random fabric with seed {}: {}", self.seed, self.violation)
    }

    /// Writes the smallest scenario to a file, and returns the failure with its path.
    pub fn keep(&self, out: Option<&Path>) -> Failure {
        let path = out.map_or_else(|| found::default_path(self.seed), Path::to_owned);
        Failure::Run(format!("{}\n{}", self.sentence(), found::keep(&path, &self.smaller)))
    }
}

/// Describes the progress: by count or by time, whichever is closer to its end.
fn describe(progress: &Progress, limit: Option<Duration>) -> String {
    let fabrics = progress.totals.fabrics;
    let by_count = progress.count.map_or(0, |count| (fabrics * 1000).checked_div(count).unwrap_or(1000));
    let by_time = limit.map_or(0, |limit| progress.elapsed.as_millis() * 1000 / limit.as_millis().max(1));
    let done = by_count.max(u64::try_from(by_time).unwrap_or(1000)).min(1000);
    let minutes = progress.elapsed.as_secs_f64() / 60.0;
    let rate = (fabrics as f64 / minutes.max(1e-9)) as u64;
    format!(
        "{} {}.{} %, {}, {}, {} per minute",
        bar(done),
        done / 10,
        done % 10,
        counted(fabrics, "fabric"),
        counted(progress.totals.frames, "frame"),
        number(rate)
    )
}

/// Describes the fabrics that were run, all of which held.
pub fn summary(seed: u64, totals: &Totals) -> String {
    format!(
        "{} from seed {seed} on: {}, {}, {}, all held\n{} promised no loss; {} did not drain, for a known reason\n",
        counted(totals.fabrics, "random fabric"),
        counted(totals.frames, "frame"),
        counted(totals.events, "event"),
        counted(totals.checks, "invariant check"),
        number(totals.promised),
        number(totals.undrained)
    )
}

/// The rest of `count` fabrics and of the time `limit`, as options; `None` if no work is left. A fraction of a
/// millisecond counts as a whole one.
fn left(count: Option<u64>, limit: Option<Duration>, done: u64, elapsed: Duration) -> Option<String> {
    let count = count.map(|count| count.saturating_sub(done));
    let limit = limit.map(|limit| limit.saturating_sub(elapsed));
    let is_over = count == Some(0) || limit.is_some_and(|limit| limit.is_zero());
    let count = count.map_or(String::new(), |count| format!(" --count {count}"));
    let limit = limit.map_or(String::new(), |limit| format!(" --for {}ms", limit.as_nanos().div_ceil(1_000_000)));
    (!is_over).then(|| count + &limit)
}

/// The command that continues an interrupted run: all seeds before `next` are done.
fn go_on(next: u64, left: &str) -> String {
    format!("interrupted; continue with: holdfast sim --random --seed {next}{left}\n")
}

/// Returns a number and its noun, in the plural unless the number is one.
pub fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", number(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Totals = Totals { fabrics: 1, promised: 1, undrained: 0, events: 1, frames: 1, checks: 1 };

    #[test]
    fn summary_uses_singular_and_plural_by_count() {
        let (head, _) = summary(7, &ONE).split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(head, "1 random fabric from seed 7 on: 1 frame, 1 event, 1 invariant check, all held");
        let two = summary(7, &Totals { fabrics: 2, events: 2000, ..ONE });
        assert!(two.starts_with("2 random fabrics from seed 7 on: 1 frame, 2,000 events, "), "{two}");
    }

    #[test]
    fn interrupted_search_prints_command_with_remaining_bounds() {
        assert_eq!(go_on(10, " --count 7"), "interrupted; continue with: holdfast sim --random --seed 10 --count 7\n");
        let after =
            |count, limit: Option<u64>| left(count, limit.map(Duration::from_secs), 3, Duration::from_micros(1500));
        assert_eq!(after(Some(10), None).unwrap(), " --count 7");
        assert_eq!(after(None, Some(600)).unwrap(), " --for 599999ms");
        assert_eq!(after(Some(4), Some(1)).unwrap(), " --count 1 --for 999ms");
        assert_eq!(after(Some(3), Some(600)), None, "all fabrics were run");
        assert_eq!(after(Some(10), Some(0)), None, "the time limit was reached");
    }
}
