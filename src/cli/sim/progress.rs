//! Progress and speed of a run, written to standard error only: standard output is the same on every run.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Minimum time between two updates.
const PERIOD: Duration = Duration::from_millis(200);
const BAR: u64 = 30;

/// The progress of a command's runs, as a line on the terminal.
pub struct Progress {
    count: usize,
    done: usize,
    quiet: bool,
    is_terminal: bool,
    variant: String,
    began: Instant,
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
            shown: now,
            events: 0,
            line: Line::default(),
        }
    }

    /// Begins the next run.
    pub fn begin(&mut self, variant: &str) {
        variant.clone_into(&mut self.variant);
    }

    /// Shows that `thousandths` of the current run are done.
    pub fn show(&mut self, thousandths: u64) {
        if !self.is_due() {
            return;
        }
        let of =
            if self.count > 1 { format!("{}/{} {} ", self.done + 1, self.count, self.variant) } else { String::new() };
        self.line.show(&format!("{of}{} {}.{} %", bar(thousandths), thousandths / 10, thousandths % 10));
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

/// A progress bar such as `[#####.....]`.
pub fn bar(thousandths: u64) -> String {
    let full = (thousandths * BAR / 1000).min(BAR) as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR as usize - full))
}
