//! The ports of next hops in bridged VLANs: cached answers of the forwarding database.

use crate::dataplane::ingress::forwarder::Forwarder;
use crate::route::{Adjacency, AdjacencyId, MAX_ADJACENCIES, ROUTER_PORT};
use crate::sets::PortSet;

/// The cached ports, by adjacency.
#[derive(Debug)]
pub(super) struct BridgedPorts {
    ports: Box<[CachedPort]>,
    /// Number of the tables, in the upper bits of a stamp.
    epoch: u64,
}

#[derive(Debug, Clone, Copy)]
struct CachedPort {
    /// Version of the database that gave the answer, and number of the tables that it was for.
    stamp: u64,
    port: u8,
}

/// Lowest bit of the number of the tables in a stamp. A database has fewer versions in its life.
const EPOCH: u32 = 48;

impl BridgedPorts {
    pub fn new() -> Self {
        Self { ports: vec![CachedPort { stamp: u64::MAX, port: 0 }; MAX_ADJACENCIES].into(), epoch: 0 }
    }

    /// Forgets all answers: an adjacency may have another station now.
    pub fn forget(&mut self) {
        self.epoch = self.epoch.wrapping_add(1 << EPOCH);
    }

    /// The port that leads to the station of `adjacency`; `None` if the database does not know it. The router never
    /// floods: a lossless packet would fill queues of unrelated ports.
    #[inline]
    pub fn port(&mut self, id: AdjacencyId, adjacency: &Adjacency, forwarder: &Forwarder) -> Option<usize> {
        let cached = &mut self.ports[usize::from(id.0) % MAX_ADJACENCIES];
        let stamp = self.epoch ^ forwarder.fdb.version();
        if cached.stamp == stamp {
            return Some(usize::from(cached.port));
        }
        // A static entry may name a port outside of the VLAN.
        let members = forwarder.vlans.members(adjacency.station.vlan()) - PortSet::only(ROUTER_PORT);
        let port = forwarder.fdb.lookup(adjacency.station).filter(|&port| members.contains(port))?;
        *cached = CachedPort { stamp, port: port as u8 };
        Some(port)
    }
}
