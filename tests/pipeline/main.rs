//! The whole pipeline over ports in memory, at instants that the tests choose.

mod ahead;
mod buffer;
mod forwarding;
mod fuzz;
mod harness;
mod pfc;
mod queues;
mod resting;
mod rounds;
mod shed;
mod stopping;
mod stuck;
mod tags;
mod tuning;
mod why;
mod wred;

/// Lcores of the switches in these tests: the same tests run with two in `tests/pipeline_two`.
const LCORES: u8 = 1;
