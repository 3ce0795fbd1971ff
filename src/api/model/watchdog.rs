//! Peers that pause a class and never let go: what the watchdog is set to, and what it found.

use serde::{Deserialize, Serialize};

use super::{Look, has};
use crate::pfc::WatchdogAction;
use crate::sets::CLASSES;

/// The watchdog of one port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watchdog {
    /// The port.
    pub port: String,
    /// What it does in a storm: `drop`, `forward` or `alert`.
    pub action: String,
    /// How long a queue must be stuck for a storm.
    pub detection_ns: u64,
    /// How long its priority must be quiet for the end of one.
    pub restoration_ns: u64,
    /// By queue.
    pub queues: Vec<WatchdogQueue>,
}

/// What it found at one queue.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchdogQueue {
    /// The queue.
    pub queue: u8,
    /// Whether it is in a storm.
    pub storming: bool,
    /// Storms found.
    pub storms: u64,
    /// Storms that have ended.
    pub restores: u64,
}

impl Watchdog {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = look.subject.spec.ports.iter().zip(&look.snapshot.ports);
        ports
            .filter_map(|(port, counters)| {
                let spec = port.watchdog?;
                let queue = |queue| WatchdogQueue {
                    queue: queue as u8,
                    storming: has(counters.watchdog_mask, queue),
                    storms: counters.watchdog_storms[queue],
                    restores: counters.watchdog_restores[queue],
                };
                Some(Self {
                    port: port.name.clone(),
                    action: action(spec.action).to_owned(),
                    detection_ns: spec.detection.0,
                    restoration_ns: spec.restoration.0,
                    queues: (0..CLASSES).map(queue).collect(),
                })
            })
            .collect()
    }
}

fn action(action: WatchdogAction) -> &'static str {
    match action {
        WatchdogAction::Drop => "drop",
        WatchdogAction::Forward => "forward",
        WatchdogAction::Alert => "alert",
    }
}
