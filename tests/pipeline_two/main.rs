//! The tests of `tests/pipeline` on a switch of two lcores. Ports belong to the lcores in turn, so frames between
//! neighbouring ports cross.

#[path = "../pipeline/blocked.rs"]
mod blocked;
#[path = "../pipeline/buffer.rs"]
mod buffer;
#[path = "../pipeline/flood_limits.rs"]
mod flood_limits;
#[path = "../pipeline/forwarding.rs"]
mod forwarding;
#[path = "../pipeline/fuzz.rs"]
mod fuzz;
#[path = "../pipeline/harness.rs"]
mod harness;
#[path = "../pipeline/lag.rs"]
mod lag;
mod lcores;
#[path = "../pipeline/link.rs"]
mod link;
#[path = "../pipeline/live_config.rs"]
mod live_config;
#[path = "../pipeline/mirror.rs"]
mod mirror;
#[path = "../pipeline/pfc.rs"]
mod pfc;
#[path = "../pipeline/pfc_queue.rs"]
mod pfc_queue;
#[path = "../pipeline/probe.rs"]
mod probe;
#[path = "../pipeline/qcn.rs"]
mod qcn;
#[path = "../pipeline/queues.rs"]
mod queues;
#[path = "../pipeline/routing/mod.rs"]
mod routing;
#[path = "../pipeline/stations.rs"]
mod stations;
#[path = "../pipeline/stuck.rs"]
mod stuck;
#[path = "../pipeline/tags.rs"]
mod tags;
#[path = "../pipeline/telemetry.rs"]
mod telemetry;

/// Number of lcores of the switches in these tests.
const LCORES: u8 = 2;
/// Transmit queues of their ports: frames cross rings.
const TX_QUEUES: u8 = 1;
