//! What has happened, and what should be changed.

use serde::{Deserialize, Serialize};

use super::Look;
use crate::stats::advice::advices;

/// Something that the switch told.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Its number, from zero: a client that has seen some asks no further back.
    pub number: u64,
    /// When, since the switch began.
    pub at_ns: u64,
    /// The line as it was told.
    pub text: String,
}

/// What should be changed, by what was seen.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advice {
    /// `headroom_short`, `poll_gap`, `headroom_full`, `backlog` or `watchdog`.
    pub topic: String,
    /// Port, port and class, or lcore.
    pub place: String,
    /// The sentence, with its place.
    pub text: String,
}

impl Advice {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let advices = advices(look.subject, look.snapshot).into_iter();
        advices
            .map(|advice| Self { topic: advice.topic.label().to_owned(), place: advice.place, text: advice.text })
            .collect()
    }
}
