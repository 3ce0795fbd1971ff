//! What another reading of the configuration would change, or has changed.

use serde::{Deserialize, Serialize};

use crate::config::settings;

/// What came of reading the configuration again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing differs.
    #[default]
    Unchanged,
    /// It can be applied; nobody asked for that.
    Applicable,
    /// The switch goes on by it.
    Applied,
    /// Something differs that only a start can change: nothing was applied.
    NeedsRestart,
    /// It is no configuration: nothing was applied.
    Invalid,
    /// An lcore has not taken the settings of the reload before: nothing was applied.
    Busy,
}

/// Another reading of the configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reload {
    /// What came of it.
    pub outcome: Outcome,
    /// The file.
    pub source: String,
    /// What is wrong with it, or what keeps it from being applied; empty if nothing does.
    pub errors: Vec<String>,
    /// What works, but hardly as it was meant.
    pub warnings: Vec<String>,
    /// Settings that differ.
    pub differences: Vec<Difference>,
}

/// One setting that differs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Difference {
    /// Ports that it is about; none: the whole switch.
    pub ports: Vec<String>,
    /// Its key in the configuration.
    pub key: String,
    /// What it was; null: there was none.
    pub before: Option<String>,
    /// What it is to be; null: there is none any more.
    pub after: Option<String>,
    /// Whether it can change while the switch runs.
    pub live: bool,
    /// All of it in a line.
    pub text: String,
}

impl Reload {
    /// Whether the switch is as the file says, or could be.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(self.outcome, Outcome::Unchanged | Outcome::Applicable | Outcome::Applied)
    }
}

impl From<&settings::Difference> for Difference {
    fn from(difference: &settings::Difference) -> Self {
        Self {
            ports: difference.ports.clone(),
            key: difference.key.clone(),
            before: difference.before.clone(),
            after: difference.after.clone(),
            live: difference.is_live,
            text: difference.to_string(),
        }
    }
}
