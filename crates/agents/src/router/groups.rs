//! Next-hop groups: equal sets of next hops share one, so that a lost next hop changes one group and no prefix.

use std::collections::HashMap;

use super::buckets::{Buckets, MAX_MEMBERS};
use crate::route::{Action, AdjacencyId, Group, GroupId, NextHopSpec, RouteTable};

/// Maximum number of groups of a switch.
pub const MAX_GROUPS: usize = 1 << 16;

/// A set of next hops that routes have in common.
#[derive(Debug)]
pub struct HopSet {
    /// The next hops.
    pub hops: Box<[NextHopSpec]>,
    /// Adjacency of each next hop; `None`: not usable.
    pub adjacencies: Box<[Option<AdjacencyId>]>,
    weights: Box<[u16]>,
    buckets: Buckets,
    /// Routes that use the set, and those of them that are no neighbour's own.
    uses: usize,
    holds: usize,
}

#[derive(Debug)]
enum Slot {
    Free,
    /// The network of an interface: each destination is its own next hop.
    Glean(u16),
    Set(HopSet),
}

/// All groups of a switch.
#[derive(Debug, Default)]
pub struct Groups {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_hops: HashMap<Box<[NextHopSpec]>, GroupId>,
}

impl Groups {
    /// Creates the groups of the networks of `interfaces` interfaces.
    #[must_use]
    pub fn new(interfaces: usize) -> Self {
        Self { slots: (0..interfaces).map(|interface| Slot::Glean(interface as u16)).collect(), ..Self::default() }
    }

    /// The group of the networks of `interface`.
    #[must_use]
    pub fn glean(interface: u16) -> GroupId {
        GroupId(GroupId::FIRST + u32::from(interface))
    }

    fn slot(&self, id: GroupId) -> Option<&Slot> {
        self.slots.get((id.0.checked_sub(GroupId::FIRST)?) as usize)
    }

    /// The set of `id`, if it is one.
    #[must_use]
    pub fn set(&self, id: GroupId) -> Option<&HopSet> {
        match self.slot(id)? {
            Slot::Set(set) => Some(set),
            _ => None,
        }
    }

    /// The interface of `id`, if it is the group of an interface's networks.
    #[must_use]
    pub fn gleaned(&self, id: GroupId) -> Option<u16> {
        match self.slot(id)? {
            Slot::Glean(interface) => Some(*interface),
            _ => None,
        }
    }

    /// The group of `hops`, which one more route uses now. The order of the next hops does not matter. `None` if there
    /// are too many groups. The second value tells whether the group is new.
    ///
    /// A new group begins with the buckets of `before`, the group that the route had. So flows whose next hop both
    /// groups have keep it, as far as shares allow. A group that other routes already use keeps its own buckets.
    pub fn acquire(&mut self, hops: &[NextHopSpec], before: Option<GroupId>) -> Option<(GroupId, bool)> {
        let mut hops: Vec<NextHopSpec> = hops.iter().take(MAX_MEMBERS).copied().collect();
        hops.sort_unstable_by_key(|hop| (hop.interface, hop.address, hop.weight));
        hops.dedup_by_key(|hop| (hop.interface, hop.address));
        if let Some(&id) = self.by_hops.get(hops.as_slice()) {
            if let Some(set) = self.set_mut(id) {
                set.uses += 1;
            }
            return Some((id, false));
        }
        let id = self.allocate()?;
        let hops: Box<[NextHopSpec]> = hops.into();
        let weights: Box<[u16]> = hops.iter().map(|hop| hop.weight).collect();
        let mut buckets = Buckets::new(&weights);
        if let Some(before) = before.and_then(|before| self.set(before)) {
            let place = |member: usize| hops.iter().position(|hop| hop.is_same(before.hops.get(member)));
            buckets.inherit(&before.buckets, place);
        }
        let set = HopSet {
            adjacencies: vec![None; hops.len()].into(),
            buckets,
            weights,
            uses: 1,
            holds: 0,
            hops: hops.clone(),
        };
        self.slots[(id.0 - GroupId::FIRST) as usize] = Slot::Set(set);
        self.by_hops.insert(hops, id);
        Some((id, true))
    }

    fn allocate(&mut self) -> Option<GroupId> {
        if let Some(slot) = self.free.pop() {
            return Some(GroupId(GroupId::FIRST + slot));
        }
        if self.slots.len() + GroupId::FIRST as usize >= MAX_GROUPS {
            return None;
        }
        self.slots.push(Slot::Free);
        Some(GroupId(GroupId::FIRST + self.slots.len() as u32 - 1))
    }

    fn set_mut(&mut self, id: GroupId) -> Option<&mut HopSet> {
        match self.slots.get_mut((id.0.checked_sub(GroupId::FIRST)?) as usize)? {
            Slot::Set(set) => Some(set),
            _ => None,
        }
    }

    /// Notes that a route of those that use `id` needs its next hops as neighbours. Returns whether it is the first.
    pub fn hold(&mut self, id: GroupId) -> bool {
        self.set_mut(id).is_some_and(|set| {
            set.holds += 1;
            set.holds == 1
        })
    }

    /// Ends the need of a route. Returns the next hops if that was the last.
    pub fn unhold(&mut self, id: GroupId) -> Option<Box<[NextHopSpec]>> {
        let set = self.set_mut(id)?;
        set.holds -= 1;
        (set.holds == 0).then(|| set.hops.clone())
    }

    /// Ends one use of `id`. Returns whether that was the last; the number may be used again by the next update of the
    /// tables.
    pub fn release(&mut self, id: GroupId) -> bool {
        let Some(set) = self.set_mut(id) else { return false };
        set.uses -= 1;
        if set.uses > 0 {
            return false;
        }
        let slot = id.0 - GroupId::FIRST;
        if let Slot::Set(set) = std::mem::replace(&mut self.slots[slot as usize], Slot::Free) {
            self.by_hops.remove(&set.hops);
        }
        self.free.push(slot);
        true
    }

    /// Works out anew which next hops of each set are usable, by `adjacency`. Returns the number of buckets that moved.
    pub fn refresh(&mut self, mut adjacency: impl FnMut(&NextHopSpec) -> Option<AdjacencyId>) -> usize {
        let mut moved = 0;
        for slot in &mut self.slots {
            let Slot::Set(set) = slot else { continue };
            let found: Box<[_]> = set.hops.iter().map(&mut adjacency).collect();
            // Buckets name members, so a member with another adjacency keeps its buckets.
            let (before, alive) = (living(&set.adjacencies), living(&found));
            set.adjacencies = found;
            if before != alive {
                moved += set.buckets.assign(&set.weights, &alive);
            }
        }
        moved
    }

    /// The groups and buckets as lcores read them.
    #[must_use]
    pub fn tables(&self) -> (Box<[Group]>, Box<[AdjacencyId]>) {
        let (mut groups, mut buckets) = (RouteTable::fixed_groups().to_vec(), Vec::new());
        for slot in &self.slots {
            groups.push(match slot {
                Slot::Free => Group::without_buckets(Action::NoRoute),
                Slot::Glean(interface) => Group::without_buckets(Action::Glean(*interface)),
                Slot::Set(set) => set.write(&mut buckets),
            });
        }
        (groups.into(), buckets.into())
    }

    /// All sets with their groups.
    pub fn all(&self) -> impl Iterator<Item = (GroupId, &HopSet)> {
        self.slots.iter().enumerate().filter_map(|(slot, of)| match of {
            Slot::Set(set) => Some((GroupId(GroupId::FIRST + slot as u32), set)),
            _ => None,
        })
    }

    /// Number of sets without a usable next hop.
    #[must_use]
    pub fn unresolved(&self) -> usize {
        self.all().filter(|(_, set)| set.adjacencies.iter().all(Option::is_none)).count()
    }

    /// Number of sets.
    #[must_use]
    pub fn sets(&self) -> usize {
        self.by_hops.len()
    }
}

fn living(adjacencies: &[Option<AdjacencyId>]) -> Vec<bool> {
    adjacencies.iter().map(Option::is_some).collect()
}

impl HopSet {
    /// Number of routes that use the set.
    #[must_use]
    pub fn uses(&self) -> usize {
        self.uses
    }

    fn write(&self, buckets: &mut Vec<AdjacencyId>) -> Group {
        let found = self.buckets.members().map(|member| self.adjacencies.get(member?).copied().flatten());
        match found.collect::<Option<Vec<_>>>() {
            Some(found) => Group::of(&found, buckets),
            // Buckets are assigned all or none.
            None => Group::without_buckets(Action::Incomplete(self.hops.first().map_or(0, |hop| hop.interface))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(last: u8, weight: u16) -> NextHopSpec {
        NextHopSpec { address: [10, 0, 0, last].into(), interface: 0, weight }
    }

    #[test]
    fn equal_sets_share_a_group_until_the_last_use() {
        let mut groups = Groups::new(2);
        let (id, is_new) = groups.acquire(&[hop(1, 1), hop(2, 1)], None).unwrap();
        assert!(is_new && id.0 == GroupId::FIRST + 2);
        assert_eq!(groups.acquire(&[hop(2, 1), hop(1, 1)], None), Some((id, false)), "the order does not matter");
        assert!(groups.hold(id) && !groups.hold(id));
        assert_eq!((groups.unhold(id), groups.unhold(id).map(|hops| hops.len())), (None, Some(2)));
        assert!(!groups.release(id));
        assert!(groups.release(id));
        assert_eq!(groups.acquire(&[hop(3, 1)], None).unwrap().0, id, "the number is used again");
        assert_eq!(groups.gleaned(Groups::glean(1)), Some(1));
    }

    #[test]
    fn group_forwards_while_some_next_hop_is_usable() {
        let mut groups = Groups::new(0);
        let (id, _) = groups.acquire(&[hop(1, 1), hop(2, 1)], None).unwrap();
        let action = |groups: &Groups| groups.tables().0[id.0 as usize].action;
        assert_eq!(action(&groups), Action::Incomplete(0));
        groups.refresh(|hop| (hop.address == std::net::IpAddr::from([10, 0, 0, 2])).then_some(AdjacencyId(7)));
        assert_eq!(action(&groups), Action::Forward);
        assert!(groups.tables().1.iter().all(|&adjacency| adjacency == AdjacencyId(7)));
        groups.refresh(|_| None);
        assert_eq!(action(&groups), Action::Incomplete(0));
    }

    /// The next hop of each of 4,096 flows.
    fn paths(groups: &Groups, id: GroupId) -> Vec<u16> {
        let (table, buckets) = groups.tables();
        let group = table[id.0 as usize];
        let hop = |flow: u32| match group.mask {
            0 => group.only_adjacency().expect("a group of one next hop"),
            mask => buckets[(group.first + (flow & u32::from(mask))) as usize],
        };
        (0..4096).map(|flow| hop(flow).0).collect()
    }

    #[test]
    fn route_that_loses_a_next_hop_and_gets_it_back_moves_only_the_flows_of_that_hop() {
        let adjacency = |hop: &NextHopSpec| match hop.address {
            std::net::IpAddr::V4(address) => Some(AdjacencyId(address.octets()[3].into())),
            std::net::IpAddr::V6(_) => None,
        };
        for (count, lost) in (2..=9_u8).flat_map(|count| (1..=count).map(move |lost| (count, lost))) {
            let mut groups = Groups::new(0);
            let mut path = |hops: &[NextHopSpec], before| {
                let (id, is_new) = groups.acquire(hops, before).unwrap();
                groups.refresh(adjacency);
                before.map(|before| groups.release(before));
                assert!(is_new);
                (id, paths(&groups, id))
            };
            let all: Vec<_> = (1..=count).map(|last| hop(last, 1)).collect();
            let others: Vec<_> = (1..=count).filter(|&last| last != lost).map(|last| hop(last, 1)).collect();
            let (whole, before) = path(&all, None);
            let (cut, without) = path(&others, Some(whole));
            let moved = before.iter().zip(&without).filter(|(before, without)| before != without);
            assert!(moved.clone().all(|(&before, _)| before == u16::from(lost)), "{lost} of {count}");
            assert!(moved.count() > 0, "{lost} of {count}");
            let (_, after) = path(&all, Some(cut));
            assert_eq!(after, before, "{lost} of {count}");
        }
    }

    #[test]
    fn group_that_inherits_only_dead_next_hops_drops() {
        let mut groups = Groups::new(0);
        let (before, _) = groups.acquire(&[hop(1, 1), hop(2, 1)], None).unwrap();
        groups.refresh(|_| Some(AdjacencyId(0)));
        let (id, _) = groups.acquire(&[hop(2, 1)], Some(before)).unwrap();
        groups.refresh(|_| None);
        assert_eq!(groups.tables().0[id.0 as usize].action, Action::Incomplete(0));
    }
}
