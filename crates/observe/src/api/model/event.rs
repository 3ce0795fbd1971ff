//! Events, and advice for the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::stats::Notice;
use crate::stats::advice::advices;

/// One event that the switch reported.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Event {
    /// From 0, to find new ones.
    pub number: u64,
    /// Time since the start of the switch.
    pub at_ns: u64,
    /// Time of the wall clock, since 1970.
    pub at_unix_ns: u64,
    /// Its kind, a stable name such as `link_down`.
    pub kind: String,
    /// `error`, `warning`, `notice` or `info`.
    pub severity: String,
    /// The port that it concerns, or null.
    pub port: Option<String>,
    /// The class that it concerns, or null.
    pub class: Option<u8>,
    /// The line as it was reported.
    pub text: String,
    /// Events of its kind since the one before that have no line of their own.
    pub more: u64,
    /// Earlier events of its kind and place that gave way to later ones.
    pub left_out: u64,
}

impl Event {
    /// The event number `number`, which the switch reported as `notice`.
    pub(in crate::api) fn new(number: u64, at_ns: u64, at_unix_ns: u64, notice: &Notice) -> Self {
        Self {
            number,
            at_ns,
            at_unix_ns,
            kind: notice.kind.name().to_owned(),
            severity: notice.kind.severity().label().to_owned(),
            port: notice.port.clone(),
            class: notice.class,
            text: notice.text.clone(),
            more: notice.more,
            left_out: 0,
        }
    }

    /// The event as one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // No field can fail to serialize.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One piece of advice for the configuration, derived from counters.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Advice {
    /// Its [kind](metrics.md#events-and-warnings).
    pub topic: String,
    /// Port, port and class, or lcore.
    pub place: String,
    /// Sentence with the place.
    pub text: String,
}

impl Advice {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let advices = advices(look.switch_view, look.snapshot).into_iter();
        advices
            .map(|advice| Self { topic: advice.topic.label().to_owned(), place: advice.place, text: advice.text })
            .collect()
    }
}
