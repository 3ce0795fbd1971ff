//! Events, and advice for the configuration.

use serde::{Deserialize, Serialize};

use super::Look;
use crate::stats::advice::advices;

/// One event that the switch reported.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Its number, counted from zero; a client can skip the events that it has already read.
    pub number: u64,
    /// Time since the start of the switch.
    pub at_ns: u64,
    /// The line as it was reported.
    pub text: String,
    /// Earlier events of its kind and place that gave way to later ones.
    pub left_out: u64,
}

/// One piece of advice for the configuration, derived from counters.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advice {
    /// `headroom_short`, `poll_gap`, `headroom_full`, `backlog`, `watchdog`, `stuck`, `fdb_limit`, `neighbours` or
    /// `linux_neighbours`.
    pub topic: String,
    /// The port, port and class, or lcore that it concerns.
    pub place: String,
    /// The sentence, including the place.
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
