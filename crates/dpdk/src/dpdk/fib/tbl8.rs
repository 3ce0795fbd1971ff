//! The count of the tbl8s that the prefixes of a family need.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::prefix::{Prefix, mask};

/// Bytes of an address that the first table resolves.
const FIRST: u8 = 3;

/// The tbl8s that prefixes need, each named by the bytes of the address that lead to it.
///
/// A prefix of more than 24 bits needs the tbl8s of its first three, four and further bytes, up to the one with its
/// last bits. DPDK frees a tbl8 whose entries are equal, so it may have fewer.
#[derive(Debug, Default)]
pub(super) struct Tbl8s {
    users: HashMap<(u8, u128), u32>,
    limit: usize,
}

impl Tbl8s {
    pub fn new(limit: u32) -> Self {
        Self { users: HashMap::new(), limit: limit as usize }
    }

    /// Reserves the tbl8s of `prefix`. Returns false, with no change, if there are too few.
    pub fn reserve(&mut self, prefix: Prefix) -> bool {
        let missing = names(prefix).filter(|name| !self.users.contains_key(name)).count();
        if self.users.len() + missing > self.limit {
            return false;
        }
        for name in names(prefix) {
            *self.users.entry(name).or_default() += 1;
        }
        true
    }

    /// Releases the tbl8s of `prefix`, which were reserved.
    pub fn release(&mut self, prefix: Prefix) {
        for name in names(prefix) {
            if let Entry::Occupied(mut users) = self.users.entry(name) {
                *users.get_mut() -= 1;
                if *users.get() == 0 {
                    users.remove();
                }
            }
        }
    }

    /// Returns the number of tbl8s.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.users.len()
    }
}

/// The names of the tbl8s that `prefix` needs: a number of bytes, and the address cut there.
fn names(prefix: Prefix) -> impl Iterator<Item = (u8, u128)> {
    (FIRST..prefix.len.div_ceil(8)).map(move |bytes| (bytes, prefix.address & mask(8 * bytes)))
}
