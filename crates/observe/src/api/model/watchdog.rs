//! PFC watchdogs, which detect peers that pause a class for too long: settings and counters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::sets::CLASSES;

/// The watchdog of one port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Watchdog {
    /// The port.
    pub port: String,
    /// `drop`, `forward` or `alert`.
    pub action: String,
    /// Time until a storm.
    pub detection_ns: u64,
    /// Quiet time until its end.
    pub restoration_ns: u64,
    /// Queues.
    pub queues: Vec<WatchdogQueue>,
}

/// Counters of the watchdog at one queue.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WatchdogQueue {
    /// The queue.
    pub queue: u8,
    /// Whether it is in a storm.
    pub storming: bool,
    /// Storms found.
    pub storms: u64,
    /// Storms ended.
    pub restores: u64,
}

impl Watchdog {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = look.switch_view.spec.ports.iter().zip(&look.snapshot.ports);
        ports
            .filter_map(|(port, counters)| {
                let spec = port.live.watchdog?;
                let queue = |queue| WatchdogQueue {
                    queue: queue as u8,
                    storming: counters.watchdog_mask.contains(queue),
                    storms: counters.watchdog_storms[queue],
                    restores: counters.watchdog_restores[queue],
                };
                Some(Self {
                    port: port.name.clone(),
                    action: spec.action.label().to_owned(),
                    detection_ns: spec.detection.0,
                    restoration_ns: spec.restoration.0,
                    queues: (0..CLASSES).map(queue).collect(),
                })
            })
            .collect()
    }
}
