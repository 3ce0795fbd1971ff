//! How far a run is, for who looks at a terminal; and how fast it was. Standard error only: output stays the same bytes.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two lines.
const PERIOD: Duration = Duration::from_millis(200);
const BAR: u64 = 30;

/// A line on the terminal.
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

/// The last line of the terminal, written again and again.
#[derive(Default)]
pub struct Line {
    is_dirty: bool,
}

impl Line {
    /// In place of what stood there.
    pub fn show(&mut self, text: &str) {
        // Nobody is left to tell if this fails.
        let _ = write!(io::stderr(), "\r\x1b[K{text}");
        let _ = io::stderr().flush();
        self.is_dirty = true;
    }

    /// As if nothing had stood there, whoever wrote it.
    pub fn over(&mut self) {
        self.is_dirty = io::stderr().is_terminal();
        self.clear();
    }

    /// As if nothing had stood there.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Progress {
    /// Of `count` runs.
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

    /// The next run begins.
    pub fn begin(&mut self, variant: &str) {
        variant.clone_into(&mut self.variant);
    }

    /// So much of it is done.
    pub fn show(&mut self, thousandths: u64) {
        if !self.is_due() {
            return;
        }
        let of =
            if self.count > 1 { format!("{}/{} {} ", self.done + 1, self.count, self.variant) } else { String::new() };
        self.line.show(&format!("{of}{} {}.{} %", bar(thousandths), thousandths / 10, thousandths % 10));
    }

    /// What was found is made smaller: the run number `runs` of that.
    pub fn shrinking(&mut self, runs: u32) {
        if self.is_due() {
            self.line.show(&format!("a rule is broken; looking for a smaller scenario: run {runs}"));
        }
    }

    /// Whether it is time for another line, which then is shown.
    fn is_due(&mut self) -> bool {
        let is_due = !self.quiet && self.is_terminal && self.shown.elapsed() >= PERIOD;
        if is_due {
            self.shown = Instant::now();
        }
        is_due
    }

    /// Nothing is under way.
    pub fn clear(&mut self) {
        self.line.clear();
    }

    /// The run is over.
    pub fn end(&mut self, events: u64) {
        self.done += 1;
        self.events += events;
    }

    /// All are over.
    pub fn finish(&mut self) {
        self.line.clear();
        if !self.quiet {
            let seconds = self.began.elapsed().as_secs_f64();
            let rate = self.events as f64 / seconds.max(1e-9) / 1e6;
            let _ = writeln!(io::stderr(), "{} events in {seconds:.2} s: {rate:.1} million a second", self.events);
        }
    }
}

/// `[#####.....]`.
pub fn bar(thousandths: u64) -> String {
    let full = (thousandths * BAR / 1000).min(BAR) as usize;
    format!("[{}{}]", "#".repeat(full), ".".repeat(BAR as usize - full))
}
