//! Configuration errors, printed like a compiler's: file, line, column, key, value and remedy.

use std::collections::HashSet;
use std::fmt;

/// Most errors that are shown at once; a longer list usually has one cause.
const SHOWN: usize = 20;

/// A line and column, both counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line.
    pub line: u64,
    /// Column in characters.
    pub column: u64,
}

/// One error of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfigError {
    /// The file, or a name for a configuration that is not a file.
    pub source: String,
    /// The position in the file; `None` if the file could not be read at all.
    pub place: Option<Place>,
    /// The key, e.g. `ports[0].speed`; empty if the error concerns the whole file.
    pub path: String,
    /// The error and its remedy.
    pub message: String,
}

impl ConfigError {
    /// Returns a key that errors share if they differ only in numbers and in the remedy.
    fn kind(&self) -> (String, Option<Place>, String, String) {
        let without_numbers = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect();
        let what = self.message.split(';').next().unwrap_or_default();
        (self.source.clone(), self.place, without_numbers(&self.path), without_numbers(what))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.source)?;
        if let Some(Place { line, column }) = self.place {
            write!(f, "{line}:{column}:")?;
        }
        if !self.path.is_empty() {
            write!(f, " {}:", self.path)?;
        }
        write!(f, " {}", self.message)
    }
}

/// All errors of a configuration, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    pub(crate) fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| (&a.source, a.place).cmp(&(&b.source, b.place)));
        // The copies of a `count` share one position; their errors are one mistake.
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert(error.kind()));
        Self(errors)
    }

    pub(crate) fn one(source: &str, place: Option<Place>, message: String) -> Self {
        Self(vec![ConfigError { source: source.to_owned(), place, path: String::new(), message }])
    }

    /// The errors.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().take(SHOWN).enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{error}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigErrors {}
