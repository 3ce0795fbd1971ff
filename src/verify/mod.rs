//! Watches the dataplane: the auditor checks its invariants, and replay decides recorded frames again.

pub mod audit;
pub mod record;
pub mod replay;
