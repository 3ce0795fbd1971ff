//! Differences between the configuration file and the running configuration, and the result of a reload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::settings;

/// Result of reading the configuration again.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReloadOutcome {
    /// No setting differs.
    #[default]
    Unchanged,
    /// The differences can be applied; the request was only to list them.
    Applicable,
    /// The differences were applied.
    Applied,
    /// A difference needs a restart: nothing was applied.
    NeedsRestart,
    /// The configuration is invalid: nothing was applied.
    Invalid,
    /// An lcore has not yet taken the settings of the previous reload, or one waits for its confirmation: nothing was
    /// applied.
    Busy,
    /// The configuration that waited for it is confirmed.
    Confirmed,
    /// No configuration waits for a confirmation.
    Unconfirmed,
}

/// One reading of the configuration file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Reload {
    /// `unchanged`, `applicable`, `applied` (after POST), `needs_restart`, `invalid` or `busy`.
    pub outcome: ReloadOutcome,
    /// The file.
    pub source: String,
    /// Mistakes, or reasons against applying.
    pub errors: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Settings that differ.
    pub differences: Vec<Difference>,
    /// Time in which a confirmation must come; null: none is needed.
    pub confirm_within_ns: Option<u64>,
}

/// One setting that differs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Difference {
    /// Ports; empty: whole switch.
    pub ports: Vec<String>,
    /// Configuration key.
    pub key: String,
    /// Running value.
    pub before: Option<String>,
    /// Value in the file.
    pub after: Option<String>,
    /// Whether it can change without restart.
    pub live: bool,
    /// Summary line.
    pub text: String,
}

impl Reload {
    /// Whether the running settings equal those in the file, or could be changed to them.
    #[must_use]
    pub fn is_right(&self) -> bool {
        matches!(
            self.outcome,
            ReloadOutcome::Unchanged | ReloadOutcome::Applicable | ReloadOutcome::Applied | ReloadOutcome::Confirmed
        )
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
