//! What runs, by which configuration.

use serde::{Deserialize, Serialize};

use super::Look;
use crate::sets::CLASSES;

/// What runs.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    /// Of the program.
    pub version: String,
    /// Of this interface: `v1`.
    pub api: String,
    /// Its process.
    pub pid: u32,
    /// When the switch began, in nanoseconds since 1970 (UTC).
    pub began_unix_ns: u64,
    /// File of its configuration, or `<embedded>`.
    pub config_source: String,
    /// A number that changes with any setting, as in the metric `holdfast_config_info`.
    pub config_hash: String,
    /// Whether requests may change anything.
    pub writes: bool,
}

/// The configuration that runs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunningConfig {
    /// File, or `<embedded>`.
    pub source: String,
    /// A number that changes with any setting, as in the metric `holdfast_config_info`.
    pub hash: String,
    /// What the command line says over the text, as it was typed.
    pub overrides: Vec<String>,
    /// The text as it was read.
    pub text: String,
}

/// One traffic class.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Class {
    /// Its number.
    pub class: u8,
    /// Whether it is meant to be lossless.
    pub lossless: bool,
    /// Priority group at ingress, and the priority that PFC stops for it.
    pub group: u8,
    /// Queue at egress.
    pub queue: u8,
}

impl Class {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let maps = &look.subject.spec.classes;
        let class = |class: usize| Self {
            class: class as u8,
            lossless: look.subject.is_lossless(class),
            group: maps.tc_to_group[class],
            queue: maps.tc_to_queue[class],
        };
        (0..CLASSES).map(class).collect()
    }
}
