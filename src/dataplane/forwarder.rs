//! The forwarder: finds the egress port of each frame by VLAN and forwarding database, and learns where stations are.

use super::spec::SwitchSpec;
use crate::forward::{Fdb, FlowCache, VlanTable};

/// The forwarding state of one lcore.
#[derive(Debug)]
pub(super) struct Forwarder {
    pub vlans: VlanTable,
    pub fdb: Fdb,
    /// Its answers, by pair of stations.
    pub cache: FlowCache,
    /// Lossless frames may be flooded; for simulation only.
    pub floods_lossless: bool,
}

impl Forwarder {
    /// A forwarder by `spec` on a clock of `hz` ticks a second, with an empty database.
    pub fn new(spec: &SwitchSpec, hz: u64) -> Self {
        Self {
            vlans: VlanTable::new(spec.ports.iter().map(|port| &port.vlan)),
            fdb: Fdb::new(&spec.fdb, hz),
            cache: FlowCache::default(),
            floods_lossless: spec.floods_lossless,
        }
    }
}
