//! The forwarding table: longest-prefix match from an address to a next-hop group.
//!
//! A switch has two equal tables. Lcores read one while the control thread writes the other; then they change places.
//! So no lcore reads a table that is being written, and all prefixes of an update take effect at one instant.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{PoisonError, RwLock};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use super::table::GroupId;

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

/// A forwarding table without DPDK, for the simulator and for ports in memory: a trie of prefixes.
///
/// Readers and the writer share it by a lock. The lock is free at every look-up, because nobody writes the table that
/// an lcore reads.
#[derive(Default)]
pub struct SoftFib(RwLock<Prefixes>);

#[derive(Default)]
struct Prefixes {
    v4: PrefixMap<Ipv4Net, GroupId>,
    v6: PrefixMap<Ipv6Net, GroupId>,
}

impl fmt::Debug for SoftFib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoftFib").field(&self.memory()).finish()
    }
}

impl Fib for SoftFib {
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
        let prefixes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (&address, group) in addresses.iter().zip(groups) {
            let host = Ipv4Net::from(Ipv4Addr::from_bits(address));
            *group = prefixes.v4.get_lpm(&host).map_or(GroupId::NO_ROUTE, |(_, &group)| group).into();
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
        match prefix {
            IpNet::V4(prefix) => _ = prefixes.v4.insert(prefix.trunc(), group),
            IpNet::V6(prefix) => _ = prefixes.v6.insert(prefix.trunc(), group),
        }
        Ok(())
    }

    fn remove(&self, prefix: IpNet) {
        let mut prefixes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match prefix {
            IpNet::V4(prefix) => _ = prefixes.v4.remove(&prefix.trunc()),
            IpNet::V6(prefix) => _ = prefixes.v6.remove(&prefix.trunc()),
        }
    }

    fn memory(&self) -> FibMemory {
        let prefixes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (ipv4_routes, ipv6_routes) = (prefixes.v4.len(), prefixes.v6.len());
        // A trie has at most two nodes for each prefix.
        let bytes = 2 * (ipv4_routes * size_of::<(Ipv4Net, GroupId)>() + ipv6_routes * size_of::<(Ipv6Net, GroupId)>());
        FibMemory { ipv4_routes, ipv6_routes, bytes: bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
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
