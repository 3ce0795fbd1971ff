//! A forwarding table like rte_fib's, so that routed rows count its work.
//!
//! These benchmarks run without libdpdk, and the trie of `SoftFib` takes many times the instructions. The layout and
//! the look-ups are those of DPDK 22.11, `dir24_8.h` and `trie.h`, in their scalar form with next hops of four bytes.
//! The first level has an entry for each value of the upper 24 bits. Longer prefixes have an entry in a table of 256
//! for each further byte. Bulk look-ups prefetch 15 entries ahead, and store next hops of eight bytes. Calls through
//! DPDK's function pointer are not counted.

use std::net::{Ipv4Addr, Ipv6Addr};

use holdfast::route::{Fib, FoundGroup, GroupId};

#[path = "../../crates/base/src/prefetch.rs"]
mod prefetch;

use prefetch::prefetch;

/// Entries ahead of the present one that a bulk look-up prefetches.
const AHEAD: usize = 15;
/// Whether an entry names a table instead of a next hop: its lowest bit.
const EXTENDED: u32 = 1;

/// Entries of the first level. An array: DPDK checks no index either.
const FIRST: usize = 1 << 24;

/// One family: the first level, and all tables of the others in a row.
#[derive(Debug)]
struct Levels {
    first: Box<[u32; FIRST]>,
    tables: Vec<u32>,
}

impl Levels {
    fn new() -> Self {
        let Ok(first) = vec![0; FIRST].into_boxed_slice().try_into() else { unreachable!("the lengths are equal") };
        Self { first, tables: Vec::new() }
    }

    /// Sets the group of the prefix of `len` bits of `address`. Prefixes are set from the shortest to the longest.
    fn set(&mut self, address: &[u8], len: usize, group: GroupId) {
        let index = usize::from(address[0]) << 16 | usize::from(address[1]) << 8 | usize::from(address[2]);
        if len <= 24 {
            let count = 1 << (24 - len);
            return self.first[index..index + count].fill(group.0 << 1);
        }
        let mut table = extend(&mut self.first[index], &mut self.tables);
        let mut depth = 3;
        while len > (depth + 1) * 8 {
            let mut entry = self.tables[table + usize::from(address[depth])];
            let next = extend(&mut entry, &mut self.tables);
            self.tables[table + usize::from(address[depth])] = entry;
            (table, depth) = (next, depth + 1);
        }
        let (start, count) = (table + usize::from(address[depth]), 1 << ((depth + 1) * 8 - len));
        self.tables[start..start + count].fill(group.0 << 1);
    }
}

/// The first index of the table that `entry` names. Makes one if it names none; its entries repeat the next hop.
fn extend(entry: &mut u32, tables: &mut Vec<u32>) -> usize {
    if *entry & EXTENDED == 0 {
        tables.resize(tables.len() + 256, *entry);
        *entry = ((tables.len() / 256 - 1) as u32) << 1 | EXTENDED;
    }
    (*entry >> 1) as usize * 256
}

/// Tables of both families.
#[derive(Debug)]
pub struct Dir24 {
    v4: Levels,
    v6: Levels,
}

impl Dir24 {
    pub fn new() -> Self {
        Self { v4: Levels::new(), v6: Levels::new() }
    }

    /// Sets the group of an IPv4 prefix.
    pub fn set_v4(&mut self, address: Ipv4Addr, len: usize, group: GroupId) {
        self.v4.set(&address.octets(), len, group);
    }

    /// Sets the group of an IPv6 prefix.
    pub fn set_v6(&mut self, address: Ipv6Addr, len: usize, group: GroupId) {
        self.v6.set(&address.octets(), len, group);
    }

    /// The look-ups of `dir24_8_lookup_bulk_4b`.
    #[inline(never)]
    fn bulk_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
        let Levels { first, tables } = &self.v4;
        let ahead = AHEAD.min(addresses.len());
        for &address in &addresses[..ahead] {
            prefetch(&first[(address >> 8) as usize]);
        }
        let find = |address: u32| {
            let mut entry = first[(address >> 8) as usize];
            if entry & EXTENDED != 0 {
                entry = tables[(entry >> 1) as usize * 256 + (address & 0xff) as usize];
            }
            FoundGroup::from(GroupId(entry >> 1))
        };
        let far = addresses.len() - ahead;
        for ((&address, &later), group) in addresses.iter().zip(&addresses[ahead..]).zip(&mut *groups) {
            prefetch(&first[(later >> 8) as usize]);
            *group = find(address);
        }
        for (&address, group) in addresses[far..].iter().zip(&mut groups[far..]) {
            *group = find(address);
        }
    }

    /// The look-ups of `rte_trie_lookup_bulk_4b`.
    #[inline(never)]
    fn bulk_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]) {
        let Levels { first, tables } = &self.v6;
        for (address, group) in addresses.iter().zip(groups) {
            let index = u32::from(address[0]) << 16 | u32::from(address[1]) << 8 | u32::from(address[2]);
            let (mut entry, mut depth) = (first[index as usize], 3);
            while entry & EXTENDED != 0 {
                entry = tables[(entry >> 1) as usize * 256 + usize::from(address[depth])];
                depth += 1;
            }
            *group = GroupId(entry >> 1).into();
        }
    }
}

impl Fib for Dir24 {
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
        self.bulk_v4(addresses, groups);
    }

    fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]) {
        self.bulk_v6(addresses, groups);
    }
}
