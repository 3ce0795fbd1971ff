//! The whole pipeline over ports in memory, with the tests in control of the clock.

mod ahead;
mod blocked;
mod buffer;
mod flood_limits;
mod forwarding;
mod fuzz;
mod harness;
mod interrupted;
mod lag;
mod link;
mod live_config;
mod max_load;
mod mirror;
mod pfc;
mod pfc_queue;
mod probe;
mod qcn;
mod queues;
mod resting;
mod roce;
mod rounds;
mod routing;
mod shed;
mod stations;
mod stopping;
mod stuck;
mod tags;
mod telemetry;
mod why;
mod wire_clock;
mod wred;

/// Number of lcores of the switches in these tests. `tests/pipeline_two` runs the same tests with two.
const LCORES: u8 = 1;
/// Transmit queues of their ports. `tests/pipeline_joint` runs the tests with one for each of two lcores.
const TX_QUEUES: u8 = 1;
