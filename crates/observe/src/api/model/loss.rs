//! Dropped frames and ECN marks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::plan::DropReason;
use crate::sets::CLASSES;
use crate::units::Probability;

/// Frames dropped at one port in one class for one reason; combinations without drops are left out.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Dropped {
    /// Receiving or egress port ([metrics.md](metrics.md#drops)).
    pub port: String,
    /// Traffic class; null: before classification.
    pub class: Option<u8>,
    /// Whether the class was lossless at the time.
    pub lossless: bool,
    /// Label of the reason.
    pub reason: String,
    /// Meaning of the reason.
    pub meaning: String,
    /// Number of frames.
    pub frames: u64,
}

/// ECN of one queue that marks frames.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Ecn {
    /// The port.
    pub port: String,
    /// The queue.
    pub queue: u8,
    /// Whether it marks only, never drops early.
    pub lossless: bool,
    /// Depth up to which nothing is marked.
    pub kmin_bytes: u64,
    /// Depth from which all is marked.
    pub kmax_bytes: u64,
    /// Probability just below `kmax`.
    pub pmax: f64,
    /// Bytes waiting.
    pub depth_bytes: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames marked CE.
    pub marked_frames: u64,
}

impl Dropped {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let mut drops = Vec::new();
        for (port, counters) in look.snapshot.ports.iter().enumerate() {
            for row in 0..counters.drops.len() {
                let counted = DropReason::TABLE.iter().flat_map(|line| {
                    let [lost, others] = counters.dropped_by_kind(row, line.0);
                    [(line, true, lost), (line, false, others)]
                });
                let counted = counted.filter(|(_, _, frames)| *frames > 0);
                drops.extend(counted.map(|((_, label, meaning), lossless, frames)| Self {
                    port: look.switch_view.port_name(port).to_owned(),
                    class: (row < CLASSES).then_some(row as u8),
                    lossless,
                    reason: (*label).to_owned(),
                    meaning: (*meaning).to_owned(),
                    frames,
                }));
            }
        }
        drops
    }
}

impl Ecn {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let mut rows = Vec::new();
        for (port, counters) in look.switch_view.spec.ports.iter().zip(&look.snapshot.ports) {
            for (queue, spec) in look.switch_view.spec.queues.iter().enumerate() {
                let Some(wred) = &spec.wred else { continue };
                rows.push(Self {
                    port: port.name.clone(),
                    queue: queue as u8,
                    lossless: spec.limit.is_none(),
                    kmin_bytes: wred.kmin.0,
                    kmax_bytes: wred.kmax.0,
                    pmax: f64::from(wred.pmax.0) / f64::from(Probability::ONE.0),
                    depth_bytes: look.bytes(counters.queue_cells[queue]),
                    sent_frames: counters.tx_frames[queue],
                    marked_frames: counters.ecn_marked[queue],
                });
            }
        }
        rows
    }
}
