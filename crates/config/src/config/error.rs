//! Configuration errors, printed like a compiler's: file, line, column, key, value and remedy.

use std::collections::HashSet;
use std::fmt;

use super::model::EcnOrder;

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

/// A setting that works, but probably not as intended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// Place, key and sentence, like those of an error.
    pub note: ConfigError,
    /// The subject, for readers of formats with keys of their own.
    pub subject: Subject,
    /// The first variant of a scenario that has it; `None`: every variant has it.
    pub variant: Option<String>,
}

/// Subjects of warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// One that needs no other words in any format.
    Other,
    /// ECN of a class may mark only after XOFF: kmin of its queue, the number of ports, and the depth below which it is
    /// sure to mark before.
    LateEcn(EcnOrder, u64),
}

impl Warning {
    /// A warning about a place in a file without YAML, or about the whole file.
    pub fn of_text(source: &str, place: Option<Place>, message: String) -> Self {
        Self::from(ConfigError { source: source.to_owned(), place, path: String::new(), message })
    }

    /// Returns a key that warnings share if they differ only in places, numbers and variants.
    #[must_use]
    pub fn kind(&self) -> (String, String, String) {
        let of = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect();
        (of(&self.note.source), of(&self.note.path), of(&self.note.message))
    }
}

impl From<ConfigError> for Warning {
    fn from(note: ConfigError) -> Self {
        Self { note, subject: Subject::Other, variant: None }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            None => self.note.fmt(f),
            Some(variant) => write!(f, "{} (in variant `{variant}`)", self.note),
        }
    }
}

/// All errors of a configuration, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// The errors, in order of their places.
    pub fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| (&a.source, a.place).cmp(&(&b.source, b.place)));
        // The copies of a `count` share one position; their errors are one mistake.
        let mut seen = HashSet::new();
        errors.retain(|error| seen.insert(error.kind()));
        Self(errors)
    }

    /// One error in `source`.
    pub fn one(source: &str, place: Option<Place>, message: String) -> Self {
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
