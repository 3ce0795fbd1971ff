//! Next-hop objects and their groups.

use std::collections::BTreeSet;

use super::alternatives::MAX_NEXT_HOPS;
use super::table::{Put, Table};
use crate::netlink::model::{KernelNextHop, NextHopObject, RouteKind};

/// The next-hop objects.
#[derive(Debug)]
pub struct ObjectTable {
    table: Table<u32, NextHopObject>,
    /// Pairs of a member and its group.
    members: BTreeSet<(u32, u32)>,
}

impl ObjectTable {
    /// Creates an empty table of at most `limit` objects.
    pub fn new(limit: usize) -> Self {
        Self { table: Table::new(limit), members: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn contains(&self, id: u32) -> bool {
        self.table.get(&id).is_some()
    }

    /// Sets an object by an event or, if `is_dumped`, by a dump.
    pub fn put(&mut self, id: u32, object: NextHopObject, is_dumped: bool) -> Put<NextHopObject> {
        if matches!(&object, NextHopObject::Group(members) if members.len() > MAX_NEXT_HOPS) {
            return Put::Refused;
        }
        let put = if is_dumped { self.table.put_dumped(id, object) } else { self.table.put(id, object) };
        if let Put::Changed(old) = &put {
            self.unindex(id, old);
        }
        if let (Put::New | Put::Changed(_), Some(NextHopObject::Group(members))) = (&put, self.table.get(&id)) {
            self.members.extend(members.iter().map(|member| (member.id, id)));
        }
        put
    }

    /// Removes an object. Its groups lose it, and groups without members are removed too, as in the kernel. Returns the
    /// numbers of all removed objects and of all groups that are left.
    pub fn remove(&mut self, id: u32) -> (Vec<u32>, Vec<u32>) {
        let groups: Vec<u32> = self.groups(id).collect();
        let Some(object) = self.table.remove(id) else { return (Vec::new(), groups) };
        self.unindex(id, &object);
        let (mut removed, mut left) = (vec![id], Vec::new());
        for group in groups {
            self.members.remove(&(id, group));
            let mut is_empty = false;
            self.table.edit(group, |object| {
                let NextHopObject::Group(members) = object else { return };
                members.retain(|member| member.id != id);
                is_empty = members.is_empty();
            });
            if is_empty {
                self.table.remove(group);
                removed.push(group);
            } else {
                left.push(group);
            }
        }
        (removed, left)
    }

    /// Groups that have `id` as a member.
    pub fn groups(&self, id: u32) -> impl Iterator<Item = u32> {
        self.members.range((id, 0)..=(id, u32::MAX)).map(|(_, group)| *group)
    }

    /// Objects with a next hop on link `index`, groups excluded.
    pub fn on_link(&self, index: u32) -> Vec<u32> {
        let is_there = |object: &NextHopObject| matches!(object, NextHopObject::Hop(hop) if hop.index == index);
        self.table.iter().filter(|(_, object)| is_there(object)).map(|(id, _)| *id).collect()
    }

    /// Treatment of packets by object `id`, and its next hops. None if the object is unknown.
    pub fn resolve(&self, id: u32) -> Option<(RouteKind, Vec<KernelNextHop>)> {
        let members = match self.table.get(&id)? {
            NextHopObject::Hop(hop) => return Some((RouteKind::Unicast, vec![*hop])),
            NextHopObject::Blackhole => return Some((RouteKind::Blackhole, Vec::new())),
            NextHopObject::Other => return Some((RouteKind::Other, Vec::new())),
            NextHopObject::Group(members) => members,
        };
        let mut hops = Vec::new();
        for member in members {
            match self.table.get(&member.id) {
                Some(NextHopObject::Hop(hop)) => hops.push(KernelNextHop { weight: member.weight, ..*hop }),
                // The kernel allows a blackhole as the only member.
                Some(NextHopObject::Blackhole) => return Some((RouteKind::Blackhole, Vec::new())),
                Some(NextHopObject::Other) => return Some((RouteKind::Other, Vec::new())),
                Some(NextHopObject::Group(_)) | None => {}
            }
        }
        Some((RouteKind::Unicast, hops))
    }

    /// Begins a dump.
    pub fn begin(&mut self) {
        self.table.begin();
    }

    /// Marks objects as named by the dump.
    pub fn confirm(&mut self, range: impl std::ops::RangeBounds<u32>) {
        self.table.confirm(range);
    }

    /// Ends a dump. Returns the objects that it did not name.
    pub fn end(&mut self) -> Vec<u32> {
        self.table.end()
    }

    /// Gives up a dump.
    pub fn cancel(&mut self) {
        self.table.cancel();
    }

    fn unindex(&mut self, id: u32, object: &NextHopObject) {
        if let NextHopObject::Group(members) = object {
            for member in members {
                self.members.remove(&(member.id, id));
            }
        }
    }
}
