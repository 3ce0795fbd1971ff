//! The committed counts, and their comparison with a run.
//!
//! `tests/benches` includes this file to test that the guard detects changes.

use std::fmt;

/// Tolerance of a count, up or down: 2 %, or one instruction where that is more. A larger improvement must be committed
/// too; otherwise the same amount could be lost again undetected.
pub const SHARE: f64 = 0.02;
pub const LEAST: f64 = 1.0;

const HEAD: &str = "\
# Instructions of the packet path, counted by callgrind. A `pipeline` line is of a packet through the whole pipeline (an
# idle poll: of a poll), a `stage` line of a call, or of a burst of 64 where it says so. The
# `simulator` line is of an event.
#
# `make test` fails when a count differs from its line by more than 2 % and by more than 1, up or down. When the change
# is meant, and the commit's message says why:
#
#     UPDATE_INSTRUCTIONS=1 cargo bench --no-default-features --bench instructions
#
# Counts belong to the compiler below; with another one they are not compared.
";

/// A case name and its count.
pub type Count = (String, f64);

/// The content of perf/instructions.txt.
#[derive(Debug, PartialEq)]
pub struct GoldenCounts {
    /// The compiler to which the counts belong, as printed by `rustc --version`.
    pub rustc: String,
    pub counts: Vec<Count>,
}

impl GoldenCounts {
    /// Parses the content of perf/instructions.txt.
    ///
    /// # Errors
    /// The line that is neither a comment nor a name and a value.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut golden = Self { rustc: String::new(), counts: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(version) = line.strip_prefix("compiler: ") {
                golden.rustc = version.to_owned();
                continue;
            }
            let count = line.rsplit_once(char::is_whitespace);
            let count = count.and_then(|(name, value)| Some((name.trim().to_owned(), value.parse::<f64>().ok()?)));
            match count {
                Some(count) if count.1.is_finite() => golden.counts.push(count),
                _ => return Err(format!("line {}: `{line}` is no name and count", index + 1)),
            }
        }
        Ok(golden)
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let width = self.counts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = self.counts.iter().map(|(name, count)| format!("{name:<width$} {count:>9.1}\n"));
        format!("{HEAD}compiler: {}\n\n{}", self.rustc, lines.collect::<String>())
    }

    fn count(&self, name: &str) -> Option<f64> {
        self.counts.iter().find(|(other, _)| other == name).map(|&(_, count)| count)
    }

    /// Updates the counts with `measured`, in the order of `names`. Counts that are not in `names`, the list of all
    /// cases, are removed.
    pub fn update(&mut self, names: &[&str], measured: &[Count]) {
        let new = |name: &str| measured.iter().find(|(other, _)| other == name).map(|&(_, count)| count);
        let counts = names.iter().filter_map(|name| Some(((*name).to_owned(), new(name).or(self.count(name))?)));
        self.counts = counts.collect();
    }

    /// The findings of a run: `names` are all cases, `measured` the counts of this run.
    pub fn judge(&self, names: &[&str], measured: &[Count]) -> Vec<Finding> {
        let judge = |(name, now): &Count| match self.count(name) {
            None => Some(Finding::Unknown { name: name.clone(), now: *now }),
            Some(then) if !is_same(then, *now) => Some(Finding::Differs { name: name.clone(), then, now: *now }),
            Some(_) => None,
        };
        let gone = self.counts.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        let gone = gone.map(|(name, _)| Finding::Gone { name: name.clone() });
        measured.iter().filter_map(judge).chain(gone).collect()
    }
}

/// Whether `now` is within the tolerance of the committed count. It is rounded first, as in the file.
fn is_same(then: f64, now: f64) -> bool {
    let now = (now * 10.0).round() / 10.0;
    (now - then).abs() <= (then * SHARE).max(LEAST) + 1e-9
}

/// A count that fails the guard.
#[derive(Debug, PartialEq)]
pub enum Finding {
    Differs { name: String, then: f64, now: f64 },
    Unknown { name: String, now: f64 },
    Gone { name: String },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { name, then, now } => {
                let what = if now > then { "more" } else { "fewer: commit the improvement" };
                let share = (now / then - 1.0) * 100.0;
                write!(f, "{name}: from {then:.1} to {now:.1} instructions ({share:+.1} %), {what}")
            }
            Self::Unknown { name, now } => write!(f, "{name}: {now:.1} instructions, and no committed count"),
            Self::Gone { name } => write!(f, "{name}: a committed count of what is no longer counted"),
        }
    }
}
