//! The buffer: its division and its use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::mmu::HeadroomPolicy;
use crate::units::Cells;

/// The whole buffer.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Buffers {
    /// Size of a cell; a frame takes whole cells.
    pub cell_bytes: u64,
    /// Size of the whole buffer.
    pub size_bytes: u64,
    /// Reserves of groups, ports and queues.
    pub reserves_bytes: u64,
    /// Bytes that frames hold.
    pub held_bytes: u64,
    /// Frames in egress queues.
    pub held_frames: u64,
    /// `independent`, `shared-pool` or `dynamic`.
    pub headroom_policy: String,
    /// Pools.
    pub pools: Vec<Pool>,
    /// Parts of ports.
    pub ports: Vec<PortBuffer>,
}

/// One pool.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pool {
    /// `lossless`, `lossy` or `headroom`.
    pub pool: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// Most bytes in use; null: headroom without a pool.
    pub used_highest_bytes: Option<u64>,
    /// Bytes that it gives up when frames have left them, after a reload.
    pub pending_bytes: u64,
}

/// The part of the buffer that belongs to a port and is shared by its groups.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PortBuffer {
    /// The port.
    pub port: String,
    /// Bytes that frames received here hold.
    pub held_bytes: u64,
    /// Reserve for lossy groups.
    pub lossy_reserve_bytes: u64,
    /// Use of it.
    pub lossy_reserve_used_bytes: u64,
    /// Reserve for lossless groups.
    pub lossless_reserve_bytes: u64,
    /// Use of it.
    pub lossless_reserve_used_bytes: u64,
    /// Insurance with dynamic headroom, else 0.
    pub insurance_bytes: u64,
    /// Use of it.
    pub insurance_used_bytes: u64,
    /// Most of it that was in use.
    pub insurance_highest_bytes: u64,
    /// Whether frames are in reserves or headroom that a reload makes smaller.
    pub pending: bool,
}

impl Buffers {
    pub(in crate::api) fn of(look: &Look<'_>) -> Self {
        let plan = &look.switch_view.spec.buffer;
        Self {
            cell_bytes: plan.cell.0,
            size_bytes: look.size(plan.total),
            reserves_bytes: look.size(plan.reserves),
            held_bytes: look.bytes(look.snapshot.held_cells()),
            held_frames: look.snapshot.lcore.held_frames,
            headroom_policy: plan.policy.label().to_owned(),
            pools: pools(look),
            ports: ports(look),
        }
    }
}

fn pools(look: &Look<'_>) -> Vec<Pool> {
    let (plan, lcore) = (&look.switch_view.spec.buffer, &look.snapshot.lcore);
    let pending = look.switch_view.pending.get().unwrap_or_default().pools;
    let pool = |pool: &str, size: Cells, used, highest: Option<u64>, pending: Cells| Pool {
        pool: pool.to_owned(),
        size_bytes: look.size(size),
        used_bytes: look.bytes(used),
        used_highest_bytes: highest.map(|highest| look.bytes(highest)),
        pending_bytes: look.size(pending),
    };
    let headroom = look.snapshot.sum(|port| port.group_headroom_cells.iter().sum());
    let is_pool = plan.policy == HeadroomPolicy::SharedPool;
    vec![
        pool(
            "lossless",
            plan.lossless_shared,
            lcore.lossless_used_cells,
            Some(lcore.lossless_used_highest_cells),
            pending[1],
        ),
        pool("lossy", plan.lossy_shared, lcore.lossy_used_cells, Some(lcore.lossy_used_highest_cells), pending[0]),
        pool("headroom", plan.headroom, headroom, is_pool.then_some(lcore.headroom_pool_highest_cells), pending[2]),
    ]
}

fn ports(look: &Look<'_>) -> Vec<PortBuffer> {
    let pending = look.switch_view.pending.get().unwrap_or_default().ports;
    let ports = look.switch_view.spec.ports.iter().zip(&look.snapshot.ports).enumerate();
    ports
        .map(|(port, (spec, counters))| PortBuffer {
            pending: pending.contains(port),
            port: spec.name.clone(),
            held_bytes: look.bytes(counters.held_cells()),
            lossy_reserve_bytes: look.size(spec.buffer.reserve[0]),
            lossy_reserve_used_bytes: look.bytes(counters.reserve_used_cells[0]),
            lossless_reserve_bytes: look.size(spec.buffer.reserve[1]),
            lossless_reserve_used_bytes: look.bytes(counters.reserve_used_cells[1]),
            insurance_bytes: look.size(spec.buffer.insurance),
            insurance_used_bytes: look.bytes(counters.insurance_cells),
            insurance_highest_bytes: look.bytes(counters.insurance_highest_cells),
        })
        .collect()
}
