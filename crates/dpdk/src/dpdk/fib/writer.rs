//! The control thread's side of one family: it counts, refuses in time, and keeps DPDK from its defects.

use super::prefix::Prefix;
use super::size::Layout;
use super::table::{Table, UNWRITTEN};
use super::tbl8::Tbl8s;
use crate::route::GroupId;

/// The writer of a table.
pub(super) struct Writer<T> {
    table: T,
    tbl8s: Tbl8s,
    routes: u32,
    max_routes: u32,
    /// The prefixes in the table that end where the address space ends, shortest first.
    last: Vec<(u8, GroupId)>,
}

impl<T: Table> Writer<T> {
    pub fn new(table: T, layout: Layout) -> Self {
        Self { table, tbl8s: Tbl8s::new(layout.tbl8s), routes: 0, max_routes: layout.routes, last: Vec::new() }
    }

    /// Returns the number of prefixes.
    pub fn routes(&self) -> usize {
        self.routes as usize
    }

    /// Returns the number of tbl8s that the prefixes need.
    #[cfg(test)]
    pub fn tbl8s(&self) -> usize {
        self.tbl8s.len()
    }

    /// Sets the group of `prefix`. Returns false, with no change, if there is no room.
    pub fn set(&mut self, prefix: Prefix, group: GroupId) -> bool {
        if group.0 >= UNWRITTEN {
            return false;
        }
        if !self.table.contains(prefix) {
            if self.routes == self.max_routes || !self.tbl8s.reserve(prefix) {
                return false;
            }
            self.routes += 1;
        }
        self.edit(prefix, Some(group));
        true
    }

    /// Removes `prefix`, if the table has it.
    pub fn remove(&mut self, prefix: Prefix) {
        if self.table.contains(prefix) {
            self.edit(prefix, None);
            self.tbl8s.release(prefix);
            self.routes -= 1;
        }
    }

    /// Sets or deletes `prefix`.
    ///
    /// DPDK must not edit a prefix that ends where the address space ends while a longer one is in the table that ends
    /// there too. The longer ones are deleted first, and set again afterwards. There are hardly ever more than one or
    /// two, such as 240.0.0.0/4 or ff00::/8.
    fn edit(&mut self, prefix: Prefix, group: Option<GroupId>) {
        if !prefix.is_last() {
            return self.change(prefix, group);
        }
        let at = self.last.partition_point(|&(len, _)| len < prefix.len);
        let mut inner = self.last.split_off(at);
        inner.retain(|&(len, _)| len > prefix.len);
        for &(len, _) in inner.iter().rev() {
            self.table.delete(Prefix::last(len));
        }
        self.change(prefix, group);
        for &(len, group) in &inner {
            self.table.set(Prefix::last(len), group);
        }
        self.last.extend(group.map(|group| (prefix.len, group)));
        self.last.append(&mut inner);
    }

    fn change(&mut self, prefix: Prefix, group: Option<GroupId>) {
        match group {
            Some(group) => self.table.set(prefix, group),
            None => self.table.delete(prefix),
        }
    }
}
