//! Between lcores, and between an lcore and the control thread: rings, and the protocols over them.

pub(crate) mod accept;
pub mod exception;
pub mod fdb_view;
#[cfg(test)]
mod fdb_view_tests;
pub mod mailbox;
pub(crate) mod mesh;
pub mod own_probes;
// The ring's slots are uninitialized memory that two lcores share. Outside `dpdk`, only this file and `prefetch` have
// unsafe code.
#[allow(unsafe_code)]
pub mod ring;
#[cfg(test)]
mod ring_tests;
