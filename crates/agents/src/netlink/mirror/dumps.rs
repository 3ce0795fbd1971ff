//! Dumps, and the gaps that they show or close.

use super::routes::Family;
use super::rules::{addresses_of, neighbours_of};
use super::{Change, Mirror, TableName};
use crate::netlink::decode::EntryKey;

/// Result of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpEnd {
    /// The table is as the kernel's.
    Complete,
    /// Events have disturbed the dump: it should be repeated.
    Repeat,
}

/// Reasons why a table lacks entries of the kernel.
#[derive(Debug, Default)]
pub struct Gaps {
    /// It has refused entries.
    pub full: Gap,
    /// Entries could not be decoded.
    pub undecoded: Gap,
}

/// Whether a table has a gap. A dump closes it, unless it shows the gap again.
#[derive(Debug, Default)]
pub struct Gap {
    /// Since the table was complete.
    pub holds: bool,
    /// Since the current dump began.
    holds_in_dump: bool,
}

impl Gap {
    /// Notes the gap. Returns whether it is new.
    fn raise(&mut self) -> bool {
        self.holds_in_dump = true;
        !std::mem::replace(&mut self.holds, true)
    }

    fn begin(&mut self) {
        self.holds_in_dump = false;
    }

    /// Ends a dump. Returns whether it has closed the gap.
    fn end(&mut self) -> bool {
        let is_closed = self.holds && !self.holds_in_dump;
        self.holds &= !is_closed;
        is_closed
    }
}

impl Mirror {
    /// Begins a dump of `table`. A dump of it that is under way begins anew.
    pub fn begin_dump(&mut self, table: TableName) {
        let gaps = &mut self.gaps[table as usize];
        gaps.full.begin();
        gaps.undecoded.begin();
        match table {
            TableName::Links => self.links.begin(),
            TableName::Addresses => self.addresses.begin(),
            TableName::Neighbours => self.neighbours.begin(),
            TableName::NextHops => self.objects.begin(),
            TableName::RoutesV4 => self.routes.begin(Family::V4),
            TableName::RoutesV6 => self.routes.begin(Family::V6),
        }
    }

    /// Notes an entry of the dump of `table` that cannot be decoded. What the mirror has of it stays: the entries of
    /// `key`, or all of the table if even the key is unknown.
    pub fn keep_undecoded(&mut self, table: TableName, key: Option<EntryKey>) {
        match (table, key) {
            (TableName::Links, Some(EntryKey::Link(index))) => self.links.confirm(index..=index),
            (TableName::Links, _) => self.links.confirm(..),
            (TableName::Addresses, Some(EntryKey::Link(index))) => self.addresses.confirm(addresses_of(index)),
            (TableName::Addresses, _) => self.addresses.confirm(..),
            (TableName::Neighbours, Some(EntryKey::Link(index))) => self.neighbours.confirm(neighbours_of(index)),
            (TableName::Neighbours, _) => self.neighbours.confirm(..),
            (TableName::NextHops, Some(EntryKey::NextHop(id))) => self.objects.confirm(id..=id),
            (TableName::NextHops, _) => self.objects.confirm(..),
            (TableName::RoutesV4 | TableName::RoutesV6, Some(EntryKey::Route(prefix))) => self.routes.confirm(prefix),
            (TableName::RoutesV4, _) => self.routes.confirm_all(Family::V4),
            (TableName::RoutesV6, _) => self.routes.confirm_all(Family::V6),
        }
        if self.gaps[table as usize].undecoded.raise() {
            self.notices.push(Change::Undecoded { table });
        }
    }

    /// Ends a dump of `table`: entries that it did not name are removed, with the effects of their removal.
    pub fn end_dump(&mut self, table: TableName) -> DumpEnd {
        let mut is_complete = true;
        match table {
            TableName::Links => self.links.end().into_iter().for_each(|index| self.remove_link(index)),
            TableName::Addresses => self.addresses.end().into_iter().for_each(|address| self.remove_address(address)),
            TableName::Neighbours => {
                for (index, address) in self.neighbours.end() {
                    self.remove_neighbour(index, address);
                }
            }
            TableName::NextHops => self.objects.end().into_iter().for_each(|id| self.remove_object(id)),
            TableName::RoutesV4 => is_complete = self.routes.end(Family::V4),
            TableName::RoutesV6 => is_complete = self.routes.end(Family::V6),
        }
        let gaps = &mut self.gaps[table as usize];
        if gaps.full.end() {
            self.notices.push(Change::NotFull { table });
        }
        if gaps.undecoded.end() {
            self.notices.push(Change::Decoded { table });
        }
        if is_complete { DumpEnd::Complete } else { DumpEnd::Repeat }
    }

    /// Gives up a dump of `table`: entries that it did not name stay.
    pub fn cancel_dump(&mut self, table: TableName) {
        match table {
            TableName::Links => self.links.cancel(),
            TableName::Addresses => self.addresses.cancel(),
            TableName::Neighbours => self.neighbours.cancel(),
            TableName::NextHops => self.objects.cancel(),
            TableName::RoutesV4 => self.routes.cancel(Family::V4),
            TableName::RoutesV6 => self.routes.cancel(Family::V6),
        }
    }

    /// Refuses an entry.
    pub(super) fn refuse(&mut self, table: TableName) {
        self.refused += 1;
        if self.gaps[table as usize].full.raise() {
            let limit = match table {
                TableName::Links => self.limits.links,
                TableName::Addresses => self.limits.addresses,
                TableName::Neighbours => self.limits.neighbours,
                TableName::NextHops => self.limits.next_hops,
                TableName::RoutesV4 | TableName::RoutesV6 => self.limits.routes,
            };
            self.notices.push(Change::Full { table, limit });
        }
    }

    /// Asks for a dump if the table has refused entries, since now one has room.
    pub(super) fn make_room(&mut self, table: TableName) {
        self.wants_dump |= self.gaps[table as usize].full.holds;
    }
}
