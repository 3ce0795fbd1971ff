//! Configurations by which the switch ran.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A configuration by which the switch ran, without its text.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Past {
    /// Its number, which grows by one; `holdfast rollback` takes it.
    pub number: u64,
    /// When the switch began to run by it, since 1970 (UTC).
    pub began_unix_ns: u64,
    /// The user who asked for it; empty: the start of the switch, or a signal.
    pub user: String,
    /// The order that led to it: `start`, `reload`, `confirm` or `rollback`.
    pub cause: String,
    /// The file, or the words of the user for it.
    pub source: String,
    /// Settings that differ from the configuration before, a line each.
    pub differences: Vec<String>,
}

/// The text of a configuration by which the switch ran.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PastText {
    /// Its number.
    pub number: u64,
    /// The text, as it was read.
    pub text: String,
}
