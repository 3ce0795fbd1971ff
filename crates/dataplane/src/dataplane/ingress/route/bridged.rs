//! The ports of next hops in bridged VLANs: cached answers of the forwarding database.

use crate::dataplane::ingress::forwarder::Forwarder;
use crate::route::{Adjacency, MAX_ADJACENCIES, ROUTER_PORT};
use crate::sets::{MAX_PORTS, PortSet};

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

impl CachedPort {
    const EMPTY: Self = Self { stamp: u64::MAX, port: 0 };
}

/// Lowest bit of the number of the tables in a stamp. A database has fewer versions in its life.
const EPOCH: u32 = 48;

impl BridgedPorts {
    pub fn new() -> Self {
        Self { ports: vec![CachedPort::EMPTY; MAX_ADJACENCIES].into(), epoch: 0 }
    }

    /// Forgets all answers: an adjacency may have another station now.
    pub fn forget(&mut self) {
        self.epoch = self.epoch.wrapping_add(1 << EPOCH);
        // The numbers begin again, and an old answer must not look like a new one.
        if self.epoch == 0 {
            self.ports.fill(CachedPort::EMPTY);
        }
    }

    /// The port that leads to the station of `adjacency`, or else the port by which it has answered: an answer may have
    /// another source address than its sender. `None` if both are unknown. The router never floods: a lossless packet
    /// would fill queues of unrelated ports.
    #[inline]
    pub fn port(&mut self, adjacency: &Adjacency, forwarder: &Forwarder) -> Option<usize> {
        let cached = &mut self.ports[usize::from(adjacency.id.0) % MAX_ADJACENCIES];
        let stamp = self.epoch ^ forwarder.fdb.version();
        if cached.stamp == stamp {
            return Some(usize::from(cached.port));
        }
        // A static entry may name a port outside of the VLAN.
        let members = forwarder.vlans.members(adjacency.vlan) - PortSet::only(ROUTER_PORT);
        if let Some(port) = forwarder.fdb.lookup(adjacency.station()).filter(|&port| members.contains(port)) {
            *cached = CachedPort { stamp, port: port as u8 };
            return Some(port);
        }
        // Not cached, since a new station does not change the version. Tables without the port follow when its link
        // goes down.
        Some(usize::from(adjacency.answered_by)).filter(|&port| port < MAX_PORTS && members.contains(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_empty_when_the_numbers_of_tables_begin_again() {
        let mut bridged = BridgedPorts::new();
        bridged.ports[3] = CachedPort { stamp: 7, port: 2 };
        (0..0xffff).for_each(|_| bridged.forget());
        assert_eq!(bridged.ports[3].stamp, 7);
        bridged.forget();
        assert_eq!((bridged.epoch, bridged.ports[3].stamp), (0, u64::MAX));
    }
}
