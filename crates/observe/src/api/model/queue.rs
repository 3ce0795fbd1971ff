//! Egress queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pfc::obeyed;
use super::{Look, classes_of, threshold};
use crate::qos::QueueDiscipline;
use crate::sets::CLASSES;

/// One egress queue of a port.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Queue {
    /// The port.
    pub port: String,
    /// 0 to 7.
    pub queue: u8,
    /// Traffic classes in it.
    pub classes: Vec<u8>,
    /// Whether it never refuses frames.
    pub lossless: bool,
    /// Its share (DWRR); null: strict.
    pub weight: Option<u8>,
    /// Maximum rate on the wire; null: none.
    pub max_rate_bps: Option<u64>,
    /// Burst of the maximum rate; null: none.
    pub max_burst_bytes: Option<u64>,
    /// Time with frames, held by the maximum rate.
    pub max_rate_held_ns: u64,
    /// Whether its peer holds it, and it obeys.
    pub paused: bool,
    /// Reserve in the lossy pool.
    pub reserve_bytes: u64,
    /// Factor of the Dynamic Threshold; null: fixed or none.
    pub alpha: Option<f64>,
    /// Fixed limit; null: dynamic or none.
    pub static_limit_bytes: Option<u64>,
    /// Current limit; null: none. With [ABM](buffer.md#active-buffer-management) a queue may use a part of it.
    pub limit_bytes: Option<u64>,
    /// Whether ABM lowers its limit with its drain rate.
    pub abm: bool,
    /// Whether the switch notes its depth in marked RoCE packets.
    pub telemetry: bool,
    /// Depth at which QCN holds it; null: no congestion point.
    pub qcn_set_point_bytes: Option<u64>,
    /// Bytes waiting.
    pub depth_bytes: u64,
    /// Most bytes that waited.
    pub depth_highest_bytes: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Frames marked Congestion Experienced (CE).
    pub ecn_marked_frames: u64,
    /// Messages of QCN that its congestion point made; null: it is none.
    pub qcn_made_messages: Option<u64>,
}

impl Queue {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let ports = 0..look.switch_view.spec.ports.len().min(look.snapshot.ports.len());
        ports.flat_map(|port| (0..CLASSES).map(move |queue| Self::of(look, port, queue))).collect()
    }

    fn of(look: &Look<'_>, port: usize, queue: usize) -> Self {
        let (switch, counters) = (&look.switch_view.spec, &look.snapshot.ports[port]);
        let (spec, maximum) = (&switch.queues[queue], switch.ports[port].live.max_rates[queue]);
        let limit = spec.limit.map(|limit| limit.threshold);
        let (alpha, fixed) = limit.map_or((None, None), threshold);
        let stopped = counters.paused_mask & obeyed(look.switch_view, port);
        let stops = |priority: usize| usize::from(switch.classes.pfc_to_queue[priority]) == queue;
        Self {
            port: switch.ports[port].name.clone(),
            queue: queue as u8,
            classes: classes_of(&switch.classes.tc_to_queue, queue),
            lossless: spec.limit.is_none(),
            weight: match spec.discipline {
                QueueDiscipline::Strict => None,
                QueueDiscipline::Dwrr { weight } => Some(weight),
            },
            max_rate_bps: maximum.map(|maximum| maximum.rate.0),
            max_burst_bytes: maximum.map(|maximum| maximum.burst.0),
            max_rate_held_ns: counters.max_rate_held_ns[queue],
            paused: (0..CLASSES).any(|priority| stopped.contains(priority) && stops(priority)),
            reserve_bytes: look.size(spec.reserve),
            alpha,
            static_limit_bytes: fixed.map(|cells| look.size(cells)),
            limit_bytes: limit.map(|limit| look.size(look.limit(limit, false))),
            abm: spec.limit.is_some_and(|limit| limit.abm),
            telemetry: switch.telemetry_queues.contains(queue),
            qcn_set_point_bytes: switch.congestion_points[queue].map(|point| point.set_point.0),
            depth_bytes: look.bytes(counters.queue_cells[queue]),
            depth_highest_bytes: look.bytes(counters.queue_highest_cells[queue]),
            sent_frames: counters.tx_frames[queue],
            sent_bytes: counters.tx_bytes[queue],
            ecn_marked_frames: counters.ecn_marked[queue],
            qcn_made_messages: switch.congestion_points[queue].map(|_| counters.cnms_made[queue]),
        }
    }
}
