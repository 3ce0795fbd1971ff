//! Differences for consumers, and the values that consumers know already.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::netlink::model::{Address, Link, Neighbour, Route};

/// A table of the kernel. Each has its own dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableName {
    /// Network interfaces.
    Links,
    /// Addresses of the interfaces.
    Addresses,
    /// Neighbours by ARP and neighbour discovery.
    Neighbours,
    /// Next-hop objects.
    NextHops,
    /// IPv4 routes of the main table.
    RoutesV4,
    /// IPv6 routes of the main table.
    RoutesV6,
}

impl TableName {
    /// All tables in the order in which they are dumped: objects come before those that name them.
    pub const ALL: [Self; 6] =
        [Self::Links, Self::Addresses, Self::Neighbours, Self::NextHops, Self::RoutesV4, Self::RoutesV6];
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Links => "links",
            Self::Addresses => "addresses",
            Self::Neighbours => "neighbours",
            Self::NextHops => "next-hop objects",
            Self::RoutesV4 => "IPv4 routes",
            Self::RoutesV6 => "IPv6 routes",
        })
    }
}

/// A difference between the kernel's tables and those that a consumer has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A link is new or has changed.
    Link(Link),
    /// A link was removed.
    LinkGone {
        /// Its index.
        index: u32,
    },
    /// A link has a new address.
    Address(Address),
    /// A link has lost an address.
    AddressGone(Address),
    /// The MAC address of a neighbour is new or has changed.
    Neighbour(Neighbour),
    /// The MAC address of a neighbour is no longer known.
    NeighbourGone {
        /// Index of its link.
        index: u32,
        /// IP address.
        address: IpAddr,
    },
    /// The best usable route of a prefix is new or has changed.
    Route(Arc<Route>),
    /// A prefix has no usable route.
    RouteGone {
        /// The prefix.
        prefix: IpNet,
    },
    /// The mirror refuses new entries of a table: it is incomplete.
    Full {
        /// The table.
        table: TableName,
        /// Its limit.
        limit: usize,
    },
    /// The mirror has all entries of a table again.
    NotFull {
        /// The table.
        table: TableName,
    },
    /// The kernel has entries of a table that cannot be decoded. The mirror keeps what it had of them.
    Undecoded {
        /// The table.
        table: TableName,
    },
    /// All entries of a table can be decoded again.
    Decoded {
        /// The table.
        table: TableName,
    },
}

/// Values that consumers know, and the keys whose value may differ from that.
#[derive(Debug)]
pub struct Published<K, V> {
    dirty: BTreeSet<K>,
    values: BTreeMap<K, V>,
}

impl<K, V> Default for Published<K, V> {
    fn default() -> Self {
        Self { dirty: BTreeSet::new(), values: BTreeMap::new() }
    }
}

impl<K: Ord + Copy, V: PartialEq + Clone> Published<K, V> {
    /// Marks a key whose value may have changed.
    pub fn mark(&mut self, key: K) {
        self.dirty.insert(key);
    }

    /// Bounds the marks, if consumers take nothing: forgets keys without a value, now and at the consumers. `limit` is
    /// the most values of the table.
    pub fn forget_passing(&mut self, limit: usize, is_current: impl Fn(&K) -> bool) {
        if self.dirty.len() > limit.saturating_mul(3) {
            let values = &self.values;
            self.dirty.retain(|key| values.contains_key(key) || is_current(key));
        }
    }

    /// Number of marked keys.
    #[cfg(test)]
    pub fn marked(&self) -> usize {
        self.dirty.len()
    }

    /// Publishes at most `limit` values that are new or have changed. Removed keys stay marked.
    pub fn take_new(&mut self, limit: usize, current: impl Fn(&K) -> Option<V>) -> Vec<V> {
        let (mut new, mut gone) = (Vec::new(), BTreeSet::new());
        while new.len() < limit
            && let Some(key) = self.dirty.pop_first()
        {
            match current(&key) {
                Some(value) if self.values.get(&key) == Some(&value) => {}
                Some(value) => {
                    self.values.insert(key, value.clone());
                    new.push(value);
                }
                None => {
                    if self.values.contains_key(&key) {
                        gone.insert(key);
                    }
                }
            }
        }
        self.dirty.append(&mut gone);
        new
    }

    /// Publishes the removal of at most `limit` marked keys. All others have been taken by [`Self::take_new`].
    pub fn take_gone(&mut self, limit: usize) -> Vec<K> {
        let mut gone = Vec::new();
        while gone.len() < limit
            && let Some(key) = self.dirty.pop_first()
        {
            if self.values.remove(&key).is_some() {
                gone.push(key);
            }
        }
        gone
    }
}
