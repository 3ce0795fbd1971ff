//! The sections of the configuration: a file for each key of the YAML, or for a key that several sections share.

pub(super) mod api;
pub(crate) mod buffer;
pub(super) mod classes;
pub(super) mod device;
pub(crate) mod faults;
pub(super) mod filter;
pub(crate) mod hosts;
pub(super) mod idle;
pub(super) mod lags;
pub(super) mod lcores;
pub(super) mod lldp;
pub(super) mod maps;
pub(super) mod max_rate;
pub(super) mod mirrors;
pub(crate) mod policy;
pub(crate) mod ports;
pub(super) mod preset;
pub(super) mod queue_policy;
pub(super) mod routing;
pub(super) mod sflow;
pub(super) mod storm;
pub(super) mod stuck;
pub(super) mod system;
pub mod vdev;
pub(super) mod vhost;
pub(super) mod watchdog;
