//! The running program and its configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::sets::CLASSES;

/// The running program.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Version {
    /// Version of the program.
    pub version: String,
    /// Version of this interface: `v1`.
    pub api: String,
    /// Process ID.
    pub pid: u32,
    /// Start of the switch, since 1970 (UTC).
    pub began_unix_ns: u64,
    /// File of its configuration, or `<embedded>`.
    pub config_source: String,
    /// Changes with any setting, as in `holdfast_config_info`.
    pub config_hash: String,
    /// Whether POST is allowed: `api.writes`, or to administrators by `api.readers` and `api.admins`.
    pub writes: bool,
}

/// The configuration that runs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunningConfig {
    /// File, or `<embedded>`.
    pub source: String,
    /// Changes with any setting, as in `holdfast_config_info`.
    pub hash: String,
    /// Options of the command line that override the text.
    pub overrides: Vec<String>,
    /// The text as it was read.
    pub text: String,
}

/// One setting that runs, written or by default.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setting {
    /// The port that has it; null: the switch.
    pub port: Option<String>,
    /// Its name in differences of a reload.
    pub key: String,
    /// Its value for people, rounded.
    pub value: String,
    /// Whether a reload can change it.
    pub live: bool,
}

impl Setting {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        // A router may have any number of these. Pages of routes and neighbours, and the configuration, have them.
        let is_listed = |key: &str| !key.starts_with("routing.routes.") && !key.starts_with("routing.neighbours.");
        let settings = look.switch_view.settings.iter().filter(|(_, key, _)| is_listed(key));
        let settings = settings.map(|(port, key, setting)| Self {
            port: port.map(str::to_owned),
            key: key.to_owned(),
            value: setting.text.clone(),
            live: setting.is_live,
        });
        settings.collect()
    }
}

/// One traffic class.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Class {
    /// Its number.
    pub class: u8,
    /// Whether it is configured as lossless.
    pub lossless: bool,
    /// Ingress priority group, also PFC priority.
    pub group: u8,
    /// Egress queue.
    pub queue: u8,
}

impl Class {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let maps = &look.switch_view.spec.classes;
        let class = |class: usize| Self {
            class: class as u8,
            lossless: look.switch_view.is_lossless(class),
            group: maps.tc_to_group[class],
            queue: maps.tc_to_queue[class],
        };
        (0..CLASSES).map(class).collect()
    }
}
