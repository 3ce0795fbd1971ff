//! The tables that lcores route by: two forwarding tables that change places, and the change that both must get.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::retry::Refused;
use crate::route::{Adjacency, AdjacencyId, FibMemory, FibWriter, FlowHash, Group, GroupId, RouteTable, RoutingSpec};

/// The tables, and the changes that they do not have yet.
#[derive(Debug)]
pub struct Tables {
    fibs: [Arc<dyn FibWriter>; 2],
    /// The forwarding table that lcores read.
    active: usize,
    /// Changes that neither forwarding table has.
    pending: Vec<(IpNet, Option<GroupId>)>,
    /// Entries that the forwarding tables had no room for.
    refused: Refused<IpNet, GroupId>,
    /// Changes that only the active one has.
    replay: Vec<(IpNet, Option<GroupId>)>,
    /// Whether groups, neighbours or addresses have changed.
    is_touched: bool,
    /// Whether some lcore may still read the forwarding table that is not active.
    is_underway: bool,
    version: u64,
    hash: FlowHash,
    own: Vec<IpAddr>,
    broadcasts: Vec<IpAddr>,
    shut: Vec<u16>,
}

impl Tables {
    pub fn new(fibs: [Arc<dyn FibWriter>; 2], spec: &RoutingSpec) -> Self {
        Self {
            fibs,
            active: 0,
            pending: Vec::new(),
            refused: Refused::default(),
            replay: Vec::new(),
            is_touched: true,
            is_underway: false,
            version: 0,
            hash: FlowHash::new(spec.hash_seed, spec.is_symmetric),
            own: Vec::new(),
            broadcasts: Vec::new(),
            shut: Vec::new(),
        }
    }

    /// Changes the entry of `prefix` in the forwarding table; `None` removes it.
    pub fn change(&mut self, prefix: IpNet, entry: Option<GroupId>) {
        self.refused.remove(&prefix);
        if entry.is_none() {
            self.refused.note_room();
        }
        self.pending.push((prefix, entry));
    }

    /// Notes that the tables behind the forwarding table have changed.
    pub fn touch(&mut self) {
        self.is_touched = true;
    }

    /// Sets the addresses of the router, and the network and broadcast addresses of its networks.
    pub fn set_own(&mut self, own: impl Iterator<Item = IpAddr>, broadcasts: impl Iterator<Item = IpAddr>) {
        self.broadcasts = broadcasts.collect();
        self.own = own.collect();
        self.own.sort_unstable();
        self.own.dedup();
        self.is_touched = true;
    }

    /// Sets the VLANs of the interfaces that are shut.
    pub fn set_shut(&mut self, vlans: Vec<u16>) {
        self.shut = vlans;
        self.is_touched = true;
    }

    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.binary_search(&address).is_ok()
    }

    /// Whether new tables can and must be made.
    pub fn is_due(&self) -> bool {
        !self.is_underway && (self.is_touched || !self.pending.is_empty() || self.refused.is_due())
    }

    /// Makes new tables. Returns them, and the number of prefixes that newly have no room.
    pub fn make(
        &mut self,
        groups: Box<[Group]>,
        buckets: Box<[AdjacencyId]>,
        adjacencies: Box<[Adjacency]>,
    ) -> (Arc<RouteTable>, u64) {
        let mut refused = 0;
        let retried = self.refused.due();
        self.pending.extend(retried.iter().map(|&(prefix, group)| (prefix, Some(group))));
        // Groups change at each update, prefixes rarely: without a changed prefix the forwarding table stays.
        if !self.pending.is_empty() {
            self.active ^= 1;
            let failed = write(&self.fibs[self.active], &self.pending);
            refused = failed.keys().filter(|prefix| self.refused.get(prefix).is_none()).count() as u64;
            retried.iter().for_each(|(prefix, _)| self.refused.remove(prefix));
            // A prefix may have left after one had no room.
            if !failed.is_empty() && self.pending.iter().any(|(_, entry)| entry.is_none()) {
                self.refused.note_room();
            }
            failed.into_iter().for_each(|(prefix, group)| self.refused.insert(prefix, group));
            self.replay = std::mem::take(&mut self.pending);
        }
        self.version += 1;
        (self.is_touched, self.is_underway) = (false, true);
        let mut table = RouteTable::empty(self.fibs[self.active].clone());
        table.set_groups(groups, buckets, adjacencies);
        (table.hash, table.version) = (self.hash, self.version);
        table.set_own(self.own.iter().copied());
        table.set_broadcasts(self.broadcasts.iter().copied());
        table.shut = self.shut.as_slice().into();
        (Arc::new(table), refused)
    }

    /// Brings the other forwarding table to the same state: no lcore reads it any more.
    pub fn settle(&mut self) {
        self.is_underway = false;
        // It refuses the same entries as the first.
        let _ = write(&self.fibs[self.active ^ 1], &std::mem::take(&mut self.replay));
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

/// Writes changes into a forwarding table. Returns the last entries of the prefixes without room.
fn write(fib: &Arc<dyn FibWriter>, changes: &[(IpNet, Option<GroupId>)]) -> BTreeMap<IpNet, GroupId> {
    let mut failed = BTreeMap::new();
    for &(prefix, entry) in changes {
        failed.remove(&prefix);
        match entry {
            Some(group) if fib.set(prefix, group).is_err() => _ = failed.insert(prefix, group),
            Some(_) => {}
            None => fib.remove(prefix),
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Fib, FibFull, FoundGroup, SoftFib};
    use crate::router::fixture;

    /// A forwarding table for two prefixes.
    #[derive(Debug, Default)]
    struct Small(SoftFib);

    impl Fib for Small {
        fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
            self.0.lookup_v4(addresses, groups);
        }

        fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]) {
            self.0.lookup_v6(addresses, groups);
        }
    }

    impl FibWriter for Small {
        fn set(&self, prefix: IpNet, group: GroupId) -> Result<(), FibFull> {
            if self.memory().ipv4_routes >= 2 { Err(FibFull(prefix)) } else { self.0.set(prefix, group) }
        }

        fn remove(&self, prefix: IpNet) {
            self.0.remove(prefix);
        }

        fn memory(&self) -> FibMemory {
            self.0.memory()
        }
    }

    /// Returns the number of prefixes that newly have no room.
    fn update(tables: &mut Tables) -> u64 {
        let (_, refused) = tables.make(Box::default(), Box::default(), Box::default());
        tables.settle();
        refused
    }

    #[test]
    fn prefix_without_room_enters_when_another_leaves_in_the_same_update() {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(Small::default()), Arc::new(Small::default())];
        let mut tables = Tables::new(fibs.clone(), &fixture::two_ports());
        let prefix =
            |second: u32| IpNet::new(std::net::Ipv4Addr::from_bits(10 << 24 | second << 16).into(), 16).unwrap();
        (1..=2).for_each(|second| tables.change(prefix(second), Some(GroupId(10 + second))));
        assert_eq!(update(&mut tables), 0);
        tables.change(prefix(3), Some(GroupId(13)));
        tables.change(prefix(1), None);
        assert_eq!(update(&mut tables), 1, "it came before the other left");
        assert!(tables.is_due());
        assert_eq!(update(&mut tables), 0);
        assert!(!tables.is_due());
        for fib in &fibs {
            let mut found = [FoundGroup::default()];
            fib.lookup_v4(&[10 << 24 | 3 << 16 | 1], &mut found);
            assert_eq!(found[0].id(), GroupId(13));
        }
    }

    #[test]
    fn prefix_without_room_enters_when_another_leaves() {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(Small::default()), Arc::new(Small::default())];
        let mut tables = Tables::new(fibs.clone(), &fixture::two_ports());
        let [first, second, third] =
            ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"].map(|text| text.parse::<IpNet>().unwrap());
        for (prefix, group) in [(first, 10), (second, 11), (third, 12)] {
            tables.change(prefix, Some(GroupId(group)));
        }
        assert_eq!(update(&mut tables), 1);
        assert!(!tables.is_due(), "no prefix has left");
        tables.change(first, None);
        assert_eq!(update(&mut tables), 0);
        assert!(!tables.is_due());
        for fib in &fibs {
            let mut found = [FoundGroup::default(); 3];
            fib.lookup_v4(&[1, 2, 3].map(|second| u32::from_be_bytes([10, second, 0, 1])), &mut found);
            assert_eq!(found.map(FoundGroup::id), [GroupId::NO_ROUTE, GroupId(11), GroupId(12)]);
        }
    }
}
