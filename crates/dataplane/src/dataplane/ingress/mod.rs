//! Ingress: the stages of a received burst, from its headers to its admission.

pub(crate) mod backlog;
pub(crate) mod burst_size;
mod control;
mod dispatch;
mod flood_control;
pub(crate) mod forwarder;
mod inject;
mod known;
pub(crate) mod lags;
mod lossless;
pub(crate) mod parse;
mod patience;
mod peers;
mod police;
pub(crate) mod poll_budget;
pub(crate) mod port_classifier;
mod port_policers;
pub(crate) mod punt;
pub(crate) mod rewrite;
mod roce;
pub(crate) mod round_start;
pub(crate) mod rounds;
pub(crate) mod route;
pub(crate) mod rx_queues;
pub(crate) mod scratch;
pub(crate) mod shed;
pub(crate) mod shed_frames;
