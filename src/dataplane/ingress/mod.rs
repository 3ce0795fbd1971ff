//! Ingress: the stages of a received burst, from its headers to its admission.

pub(crate) mod backlog;
mod control;
mod dispatch;
pub(crate) mod forwarder;
pub(crate) mod parse;
pub(crate) mod port_classifier;
pub(crate) mod rewrite;
pub(crate) mod rounds;
pub(crate) mod scratch;
pub(crate) mod shed;
