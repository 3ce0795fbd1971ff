//! Progress and speed of a run, written to standard error only: standard output is the same on every run.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Minimum time between two updates.
const PERIOD: Duration = Duration::from_millis(200);
const BAR: u64 = 30;
/// Time after which the speed of a run says when it will end.
const SETTLED: Duration = Duration::from_secs(1);

/// The progress of a command's runs, as a line on the terminal.
pub struct Progress {
    count: usize,
    done: usize,
    quiet: bool,
    is_terminal: bool,
    variant: String,
    began: Instant,
    /// Beginning of the current run.
    run_began: Instant,
    shown: Instant,
    events: u64,
    line: Line,
}

/// The last line of the terminal, which is overwritten again and again.
#[derive(Default)]
pub struct Line {
    is_dirty: bool,
}

impl Line {
    /// Replaces the line with `text`.
    pub fn show(&mut self, text: &str) {
        // A failed write cannot be reported.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
        let _ = io::stderr().flush();
        self.is_dirty = true;
    }

    /// Clears the last line of a terminal, even if another part of the program wrote it.
    pub fn over(&mut self) {
        self.is_dirty = io::stderr().is_terminal();
        self.clear();
    }

    /// Clears the line if it shows a text.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Progress {
    /// Starts the progress of `count` runs.
    pub fn new(count: usize, quiet: bool) -> Self {
        let now = Instant::now();
        Self {
            count,
            done: 0,
            quiet,
            is_terminal: io::stderr().is_terminal(),
            variant: String::new(),
            began: now,
            run_began: now,
            shown: now,
            events: 0,
            line: Line::default(),
        }
    }

    /// Begins the next run.
    pub fn begin(&mut self, variant: &str) {
        variant.clone_into(&mut self.variant);
        self.run_began = Instant::now();
    }

    /// Shows that `thousandths` of the current run are done.
    pub fn show(&mut self, thousandths: u64) {
        if !self.is_due() {
            return;
        }
        let of =
            if self.count > 1 { format!("{}/{} {} ", self.done + 1, self.count, self.variant) } else { String::new() };
        let left = time_left(self.run_began.elapsed(), thousandths);
        let left = left.map_or(String::new(), |left| format!(", {} left", minutes(left)));
        self.line.show(&format!("{of}{} {}.{} %{left}", bar(thousandths), thousandths / 10, thousandths % 10));
    }

    /// Shows that shrinking has reached run number `runs`.
    pub fn shrinking(&mut self, runs: u32) {
        if self.is_due() {
            self.line.show(&format!("an invariant is violated; searching for a smaller scenario: run {runs}"));
        }
    }

    /// Whether an update is due. If so, the time of the next one is set.
    fn is_due(&mut self) -> bool {
        let is_due = !self.quiet && self.is_terminal && self.shown.elapsed() >= PERIOD;
        if is_due {
            self.shown = Instant::now();
        }
        is_due
    }

    /// Clears the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }

    /// Ends the current run, which had this many events.
    pub fn end(&mut self, events: u64) {
        self.done += 1;
        self.events += events;
    }

    /// Ends the last run: clears the line and reports the speed.
    pub fn finish(&mut self) {
        self.line.clear();
        if !self.quiet {
            let seconds = self.began.elapsed().as_secs_f64();
            let rate = self.events as f64 / seconds.max(1e-9) / 1e6;
            let _ = writeln!(io::stderr(), "{} events in {seconds:.2} s: {rate:.1} million per second", self.events);
        }
    }
}

/// Estimates the time until a run ends of which `thousandths` are done, at its speed so far. `None`: it is too early to
/// say, or only frames under way are left.
fn time_left(elapsed: Duration, thousandths: u64) -> Option<Duration> {
    let is_known = (10..1000).contains(&thousandths) && elapsed >= SETTLED;
    is_known.then(|| elapsed.mul_f64((1000 - thousandths) as f64 / thousandths as f64))
}

/// A time such as `7 s`, `12 min 5 s` or `3 h 4 min`.
fn minutes(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A progress bar such as `[#####.....]`.
pub fn bar(thousandths: u64) -> String {
    let full = (thousandths * BAR / 1000).min(BAR) as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR as usize - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_speed_so_far() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(30), 250), Some(seconds(90)));
        assert_eq!(time_left(seconds(30), 9), None, "too little is done");
        assert_eq!(time_left(Duration::from_millis(900), 500), None, "it has just begun");
        assert_eq!(time_left(seconds(30), 1000), None, "frames under way are left");
    }

    #[test]
    fn long_times_have_two_units() {
        let texts = [7, 59, 60, 725, 3_599, 11_099].map(|seconds| minutes(Duration::from_secs(seconds)));
        assert_eq!(texts, ["7 s", "59 s", "1 min 0 s", "12 min 5 s", "59 min 59 s", "3 h 4 min"]);
    }
}
