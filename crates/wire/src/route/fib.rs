//! The forwarding table: longest-prefix match from an address to a next-hop group.
//!
//! A switch has two equal tables. Lcores read one while the control thread writes the other; then they change places.
//! So no lcore reads a table that is being written, and all prefixes of an update take effect at one instant.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{OnceLock, PoisonError, RwLock};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use super::table::GroupId;
use crate::sync::{AtomicUsize, Ordering};

/// The group that a look-up finds, in the eight bytes that DPDK's look-ups write.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct FoundGroup(u64);

impl FoundGroup {
    /// The index of the group in tables by [`GroupId`].
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The group.
    #[inline]
    #[must_use]
    pub fn id(self) -> GroupId {
        GroupId(self.0 as u32)
    }
}

impl From<GroupId> for FoundGroup {
    #[inline]
    fn from(group: GroupId) -> Self {
        Self(group.0.into())
    }
}

/// Look-ups of the packet path.
pub trait Fib: fmt::Debug + Send + Sync {
    /// Finds the group of each IPv4 address, in host byte order. `groups` is at least as long as `addresses`.
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]);
    /// Finds the group of each IPv6 address, in network byte order. `groups` is at least as long as `addresses`.
    fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]);
}

/// The control thread's side of a forwarding table. Only one thread writes, and no lcore reads meanwhile.
pub trait FibWriter: Fib {
    /// Sets the group of `prefix`, which replaces an earlier one.
    ///
    /// # Errors
    /// If the table has no room. It is unchanged then.
    fn set(&self, prefix: IpNet, group: GroupId) -> Result<(), FibFull>;
    /// Removes `prefix`, if the table has it.
    fn remove(&self, prefix: IpNet);
    /// Memory and occupancy of the table.
    fn memory(&self) -> FibMemory;
}

/// The table has no room for another prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forwarding table has no room for {0}; raise `routing.fib`")]
pub struct FibFull(pub IpNet);

/// Memory and occupancy of one forwarding table.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct FibMemory {
    /// IPv4 prefixes.
    pub ipv4_routes: usize,
    /// IPv6 prefixes.
    pub ipv6_routes: usize,
    /// Bytes reserved for the table.
    pub bytes: u64,
}

/// A forwarding table without DPDK, for the simulator and tests: a trie of prefixes. IPv4 addresses are
/// looked up in its ranges, which takes a quarter of the time.
///
/// Readers and the writer share it by a lock. The lock is free at every look-up, because nobody writes the table that
/// an lcore reads.
#[derive(Default)]
pub struct SoftFib(RwLock<Prefixes>);

#[derive(Default)]
struct Prefixes {
    v4: PrefixMap<Ipv4Net, GroupId>,
    v6: PrefixMap<Ipv6Net, GroupId>,
    /// Made once a table that did not change has had as many look-ups as prefixes: a change costs no more than these.
    ranges: OnceLock<Ranges>,
    /// Look-ups of IPv4 addresses since the last change, without ranges.
    looked_up: AtomicUsize,
}

impl Prefixes {
    /// Takes note of a change of the IPv4 prefixes.
    fn change(&mut self) {
        self.ranges.take();
        *self.looked_up.get_mut() = 0;
    }

    /// Returns the ranges for `count` more look-ups; `None` if the table has changed not long ago.
    fn ranges(&self, count: usize) -> Option<&Ranges> {
        // Relaxed: a number only, which guards no other memory.
        if self.ranges.get().is_none() && self.looked_up.fetch_add(count, Ordering::Relaxed) < self.v4.len() {
            return None;
        }
        Some(self.ranges.get_or_init(|| Ranges::of(self.v4.iter().map(|(prefix, &group)| (prefix, group)))))
    }

    /// Finds the group of `address` in the trie.
    fn in_trie(&self, address: u32) -> GroupId {
        let host = Ipv4Net::from(Ipv4Addr::from_bits(address));
        self.v4.get_lpm(&host).map_or(GroupId::NO_ROUTE, |(_, &group)| group)
    }
}

/// Ranges of IPv4 addresses with one longest prefix: the first address of each, in order, and its group.
#[derive(Debug)]
struct Ranges {
    first: Vec<u32>,
    groups: Vec<GroupId>,
}

impl Ranges {
    /// Returns the ranges of `prefixes`, which are in lexicographic order: each comes after those that contain it.
    fn of(prefixes: impl Iterator<Item = (Ipv4Net, GroupId)>) -> Self {
        let mut ranges = Self { first: vec![0], groups: vec![GroupId::NO_ROUTE] };
        // Prefixes that contain the present address: last address and group.
        let mut open: Vec<(u32, GroupId)> = Vec::new();
        for (prefix, group) in prefixes {
            let (first, last) = (prefix.network().to_bits(), prefix.broadcast().to_bits());
            ranges.close(&mut open, first);
            ranges.begin(first, group);
            open.push((last, group));
        }
        ranges.close(&mut open, u32::MAX);
        ranges
    }

    /// Ends the `open` prefixes that end before the address `until`.
    fn close(&mut self, open: &mut Vec<(u32, GroupId)>, until: u32) {
        while let Some((last, _)) = open.pop_if(|(last, _)| *last < until) {
            self.begin(last + 1, open.last().map_or(GroupId::NO_ROUTE, |&(_, group)| group));
        }
    }

    /// Begins a range at the address `first`, in place of one that begins there.
    fn begin(&mut self, first: u32, group: GroupId) {
        if self.first.last() == Some(&first) {
            self.groups.pop();
        } else {
            self.first.push(first);
        }
        self.groups.push(group);
    }

    #[inline]
    fn group(&self, address: u32) -> GroupId {
        self.groups[self.first.partition_point(|&first| first <= address) - 1]
    }
}

impl fmt::Debug for SoftFib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoftFib").field(&self.memory()).finish()
    }
}

impl Fib for SoftFib {
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
        let prefixes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let ranges = prefixes.ranges(addresses.len());
        for (&address, group) in addresses.iter().zip(groups) {
            *group = ranges.map_or_else(|| prefixes.in_trie(address), |ranges| ranges.group(address)).into();
        }
    }

    fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]) {
        let prefixes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (&address, group) in addresses.iter().zip(groups) {
            let host = Ipv6Net::from(Ipv6Addr::from(address));
            *group = prefixes.v6.get_lpm(&host).map_or(GroupId::NO_ROUTE, |(_, &group)| group).into();
        }
    }
}

impl FibWriter for SoftFib {
    fn set(&self, prefix: IpNet, group: GroupId) -> Result<(), FibFull> {
        let mut prefixes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        prefixes.change();
        match prefix {
            IpNet::V4(prefix) => _ = prefixes.v4.insert(prefix.trunc(), group),
            IpNet::V6(prefix) => _ = prefixes.v6.insert(prefix.trunc(), group),
        }
        Ok(())
    }

    fn remove(&self, prefix: IpNet) {
        let mut prefixes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        prefixes.change();
        match prefix {
            IpNet::V4(prefix) => _ = prefixes.v4.remove(&prefix.trunc()),
            IpNet::V6(prefix) => _ = prefixes.v6.remove(&prefix.trunc()),
        }
    }

    fn memory(&self) -> FibMemory {
        let prefixes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (ipv4_routes, ipv6_routes) = (prefixes.v4.len(), prefixes.v6.len());
        // A trie has at most two nodes for each prefix, and a prefix begins at most two ranges.
        let ipv4_size = size_of::<(Ipv4Net, GroupId)>() + size_of::<(u32, GroupId)>();
        let bytes = 2 * (ipv4_routes * ipv4_size + ipv6_routes * size_of::<(Ipv6Net, GroupId)>());
        FibMemory { ipv4_routes, ipv6_routes, bytes: bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v4(fib: &SoftFib, address: [u8; 4]) -> GroupId {
        let mut group = [GroupId(99).into()];
        fib.lookup_v4(&[u32::from_be_bytes(address)], &mut group);
        group[0].id()
    }

    #[test]
    fn longest_prefix_wins_and_removal_uncovers_the_shorter() {
        let fib = SoftFib::default();
        let [wide, narrow, host] = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32"].map(|text| text.parse().unwrap());
        for (prefix, group) in [(wide, 5), (narrow, 6), (host, 7)] {
            fib.set(prefix, GroupId(group)).unwrap();
        }
        assert_eq!(
            [[10, 9, 9, 9], [10, 1, 9, 9], [10, 1, 2, 3], [11, 0, 0, 1]].map(|address| v4(&fib, address).0),
            [5, 6, 7, 0]
        );
        fib.remove(narrow);
        assert_eq!(v4(&fib, [10, 1, 9, 9]), GroupId(5));
        assert_eq!(fib.memory().ipv4_routes, 2);
    }

    proptest! {
        /// Prefixes of few bits, so that many contain others, or begin or end where others do.
        #[test]
        fn ranges_find_what_the_trie_finds(
            prefixes in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..20),
            removed in 0_usize..20,
            others in prop::collection::vec(any::<u32>(), 10),
        ) {
            let few_bits = |bits: u32| bits & 0xe000_0003 | (bits & 4) << 26;
            let fib = SoftFib::default();
            let nets = prefixes.iter().map(|&(bits, len)| Ipv4Net::new(few_bits(bits).into(), len).unwrap());
            let nets: Vec<Ipv4Net> = nets.collect();
            for (group, &net) in nets.iter().enumerate() {
                fib.set(net.into(), GroupId(group as u32 + 1)).unwrap();
            }
            let ends = nets.iter().flat_map(|net| [net.network(), net.broadcast()]).map(Ipv4Addr::to_bits);
            let near = ends.flat_map(|end| [end.wrapping_sub(1), end, end.wrapping_add(1)]);
            let addresses: Vec<u32> = near.chain(others).collect();
            for round in 0..4 {
                let mut groups = vec![FoundGroup::default(); addresses.len()];
                fib.lookup_v4(&addresses, &mut groups);
                let prefixes = fib.0.read().unwrap();
                for (&address, group) in addresses.iter().zip(groups) {
                    prop_assert_eq!(group.id(), prefixes.in_trie(address));
                }
                prop_assert!(prefixes.ranges.get().is_some() || round % 2 == 0);
                drop(prefixes);
                if round == 1 && let Some(&net) = nets.get(removed) {
                    fib.remove(net.into());
                }
            }
        }
    }

    #[test]
    fn ipv6_prefixes_are_matched_by_all_their_bits() {
        let fib = SoftFib::default();
        fib.set("2001:db8::/32".parse().unwrap(), GroupId(5)).unwrap();
        fib.set("2001:db8::1/128".parse().unwrap(), GroupId(6)).unwrap();
        let addresses = ["2001:db8::1", "2001:db8::2", "2001:db9::1"];
        let addresses = addresses.map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
        let mut groups = [GroupId(9).into(); 3];
        fib.lookup_v6(&addresses, &mut groups);
        assert_eq!(groups.map(FoundGroup::id), [GroupId(6), GroupId(5), GroupId::NO_ROUTE]);
    }
}
