//! The tables that lcores route by: two forwarding tables that change places, and the change that both must get.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::route::{Adjacency, AdjacencyId, FibMemory, FibWriter, FlowHash, Group, GroupId, RouteTable, RoutingSpec};

/// The tables, and the changes that they do not have yet.
#[derive(Debug)]
pub struct Tables {
    fibs: [Arc<dyn FibWriter>; 2],
    /// The forwarding table that lcores read.
    active: usize,
    /// Changes that neither forwarding table has.
    pending: Vec<(IpNet, Option<GroupId>)>,
    /// Changes that only the active one has.
    replay: Vec<(IpNet, Option<GroupId>)>,
    /// Whether groups, neighbours or addresses have changed.
    is_touched: bool,
    /// Whether some lcore may still read the forwarding table that is not active.
    is_underway: bool,
    version: u64,
    hash: FlowHash,
    own: Vec<IpAddr>,
}

impl Tables {
    pub fn new(fibs: [Arc<dyn FibWriter>; 2], spec: &RoutingSpec) -> Self {
        Self {
            fibs,
            active: 0,
            pending: Vec::new(),
            replay: Vec::new(),
            is_touched: true,
            is_underway: false,
            version: 0,
            hash: FlowHash::new(spec.hash_seed, spec.is_symmetric),
            own: Vec::new(),
        }
    }

    /// Changes the entry of `prefix` in the forwarding table; `None` removes it.
    pub fn change(&mut self, prefix: IpNet, entry: Option<GroupId>) {
        self.pending.push((prefix, entry));
    }

    /// Notes that the tables behind the forwarding table have changed.
    pub fn touch(&mut self) {
        self.is_touched = true;
    }

    /// Sets the addresses of the router.
    pub fn set_own(&mut self, own: impl Iterator<Item = IpAddr>) {
        self.own = own.collect();
        self.own.sort_unstable();
        self.own.dedup();
        self.is_touched = true;
    }

    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.binary_search(&address).is_ok()
    }

    /// Whether new tables can and must be made.
    pub fn is_due(&self) -> bool {
        !self.is_underway && (self.is_touched || !self.pending.is_empty())
    }

    /// Makes new tables. Returns them, and the number of prefixes without room.
    pub fn make(
        &mut self,
        groups: Box<[Group]>,
        buckets: Box<[AdjacencyId]>,
        adjacencies: Box<[Adjacency]>,
    ) -> (Arc<RouteTable>, u64) {
        let mut refused = 0;
        // Groups change at each update, prefixes rarely: without a changed prefix the forwarding table stays.
        if !self.pending.is_empty() {
            self.active ^= 1;
            refused = write(&self.fibs[self.active], &self.pending);
            self.replay = std::mem::take(&mut self.pending);
        }
        self.version += 1;
        (self.is_touched, self.is_underway) = (false, true);
        let mut table = RouteTable::empty(self.fibs[self.active].clone());
        table.set_groups(groups, buckets, adjacencies);
        (table.hash, table.version) = (self.hash, self.version);
        table.set_own(self.own.iter().copied());
        (Arc::new(table), refused)
    }

    /// Brings the other forwarding table to the same state: no lcore reads it any more.
    pub fn settle(&mut self) {
        self.is_underway = false;
        write(&self.fibs[self.active ^ 1], &std::mem::take(&mut self.replay));
    }

    /// Memory and occupancy of one forwarding table; the other takes as much.
    pub fn memory(&self) -> FibMemory {
        self.fibs[self.active].memory()
    }

    /// Number of the last tables.
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// Writes changes into a forwarding table. Returns the number of those without room.
fn write(fib: &Arc<dyn FibWriter>, changes: &[(IpNet, Option<GroupId>)]) -> u64 {
    let mut refused = 0;
    for &(prefix, entry) in changes {
        match entry {
            Some(group) => refused += u64::from(fib.set(prefix, group).is_err()),
            None => fib.remove(prefix),
        }
    }
    refused
}
