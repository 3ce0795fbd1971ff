//! The whole pipeline over ports in memory, at instants that the tests choose.

mod buffer;
mod forwarding;
mod fuzz;
mod harness;
mod pfc;
mod queues;
mod stopping;
