//! The tests of `tests/pipeline` on a switch of two lcores whose ports are joint: each lcore has a transmit queue at
//! every port, so no frame crosses.

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
mod joint;
#[path = "../pipeline/lag.rs"]
mod lag;
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
#[path = "../pipeline/queues.rs"]
mod queues;
#[path = "../pipeline/routing/mod.rs"]
mod routing;
#[path = "../pipeline/stuck.rs"]
mod stuck;
#[path = "../pipeline/tags.rs"]
mod tags;

/// Number of lcores of the switches in these tests.
const LCORES: u8 = 2;
/// Transmit queues of their ports: one for each lcore.
const TX_QUEUES: u8 = 2;
