//! All routes of the main table, with an index of the links and next-hop objects that they use.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;

use super::alternatives::{self, Alternative, MAX_NEXT_HOPS, Removal};
use crate::netlink::model::{KernelNextHop, KernelRoute, RouteHops, RouteMode};

/// Something that routes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The link with this index, by next hops in the routes themselves.
    Link(u32),
    /// The next-hop object with this number.
    Object(u32),
}

/// An address family, each of which has its own dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of `prefix`.
    pub fn of(prefix: IpNet) -> Self {
        if prefix.addr().is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// Progress of the dump of a family.
#[derive(Debug, Default)]
struct Dump {
    /// Number of the current or last dump.
    number: u32,
    /// Prefixes and metrics that events have changed since the dump began; none if no dump is under way.
    changed: Option<BTreeSet<(IpNet, u32)>>,
    /// Whether the dump has named a route that an event may have removed since, or whose next hops had another state.
    is_disturbed: bool,
}

/// The routes.
#[derive(Debug)]
pub struct RouteTable {
    prefixes: BTreeMap<IpNet, Vec<Alternative>>,
    len: usize,
    limit: usize,
    users: BTreeSet<(Target, IpNet)>,
    /// Prefixes whose best route may have changed.
    dirty: BTreeSet<IpNet>,
    dumps: [Dump; 2],
}

impl RouteTable {
    /// Creates an empty table of at most `limit` routes.
    pub fn new(limit: usize) -> Self {
        Self {
            prefixes: BTreeMap::new(),
            len: 0,
            limit,
            users: BTreeSet::new(),
            dirty: BTreeSet::new(),
            dumps: [Dump::default(), Dump::default()],
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Routes of `prefix` in the order in which the kernel tries them.
    pub fn routes(&self, prefix: IpNet) -> impl Iterator<Item = &KernelRoute> {
        self.prefixes.get(&prefix).into_iter().flatten().map(|alternative| &alternative.route)
    }

    /// Takes a prefix whose best route may have changed.
    pub fn pop_dirty(&mut self) -> Option<IpNet> {
        self.dirty.pop_first()
    }

    /// Number of prefixes whose best route may have changed.
    pub fn dirty(&self) -> usize {
        self.dirty.len()
    }

    /// Enters a route by an event. Returns false if the table has no room.
    #[must_use]
    pub fn put(&mut self, route: KernelRoute, mode: RouteMode) -> bool {
        let (prefix, metric) = (route.prefix, route.metric);
        self.outrank(prefix, metric);
        let seen = self.dump(prefix).number;
        self.insert(prefix, Alternative { route, seen }, |list, new| alternatives::insert(list, new, mode))
    }

    /// Enters a route by a dump. Returns false if the table has no room.
    #[must_use]
    pub fn put_dumped(&mut self, route: KernelRoute) -> bool {
        let prefix = route.prefix;
        let dump = self.dump(prefix);
        let is_outranked = dump.changed.as_ref().is_some_and(|changed| changed.contains(&(prefix, route.metric)));
        let new = Alternative { route, seen: dump.number };
        if is_outranked {
            let is_known = self.prefixes.get_mut(&prefix).is_some_and(|list| alternatives::confirm(list, &new));
            self.dump_mut(prefix).is_disturbed |= !is_known;
            return true;
        }
        self.insert(prefix, new, alternatives::insert_dumped)
    }

    /// Removes a route by an event. Returns whether the table must be dumped to be sure.
    pub fn remove(&mut self, gone: &KernelRoute) -> bool {
        self.outrank(gone.prefix, gone.metric);
        let mut removal = Removal::Absent;
        self.edit(gone.prefix, |list| {
            removal = alternatives::remove(list, gone);
            removal != Removal::Absent
        });
        removal == Removal::Doubtful
    }

    /// Removes all routes that use the next-hop object `id`. The kernel flushes them without a message.
    pub fn flush_object(&mut self, id: u32) {
        self.flush(Target::Object(id), |_, route| route.hops == RouteHops::Object(id));
    }

    /// Removes the routes that the kernel flushes when link `index` is disabled: those whose next hops are all dead.
    pub fn disable_link(&mut self, index: u32, is_concerned: impl Fn(Family) -> bool) {
        self.flush(Target::Link(index), |family, route| {
            let RouteHops::Direct(hops) = &mut route.hops else { return false };
            if !is_concerned(family) || !hops.iter().any(|hop| hop.index == index) {
                return false;
            }
            hops.iter_mut().filter(|hop| hop.index == index).for_each(|hop| hop.is_dead = true);
            hops.iter().all(|hop| hop.is_dead)
        });
    }

    /// Removes the routes that the kernel flushes when link `index` is removed: IPv4 routes with any next hop there,
    /// and IPv6 next hops there.
    pub fn remove_link(&mut self, index: u32) {
        self.flush(Target::Link(index), |family, route| {
            let RouteHops::Direct(hops) = &mut route.hops else { return false };
            let is_concerned = hops.iter().any(|hop| hop.index == index);
            hops.retain(|hop| hop.index != index);
            is_concerned && (family == Family::V4 || hops.is_empty())
        });
    }

    /// Clears marks of next hops on link `index`, as the kernel does when the link is enabled or has a carrier again.
    pub fn revive_link(&mut self, index: u32, clear: impl Fn(Family, &mut KernelNextHop)) {
        self.flush(Target::Link(index), |family, route| {
            if let RouteHops::Direct(hops) = &mut route.hops {
                hops.iter_mut().filter(|hop| hop.index == index).for_each(|hop| clear(family, hop));
            }
            false
        });
    }

    /// Marks the routes that use `target` as changed.
    pub fn touch(&mut self, target: Target) {
        let users: Vec<IpNet> = self.users(target).collect();
        self.dirty.extend(users);
    }

    /// Begins the dump of a family. A dump that is under way begins anew.
    pub fn begin(&mut self, family: Family) {
        let dump = &mut self.dumps[family as usize];
        dump.number = dump.number.wrapping_add(1);
        dump.changed = Some(BTreeSet::new());
        dump.is_disturbed = false;
    }

    /// Marks the routes to `prefix` as named by the dump.
    pub fn confirm(&mut self, prefix: IpNet) {
        let number = self.dump(prefix).number;
        let known = self.prefixes.get_mut(&prefix).into_iter().flatten();
        known.for_each(|alternative| alternative.seen = number);
    }

    /// Marks all routes of a family as named by its dump.
    pub fn confirm_all(&mut self, family: Family) {
        let number = self.dumps[family as usize].number;
        let known = self.prefixes.iter_mut().filter(|(prefix, _)| Family::of(**prefix) == family);
        known.flat_map(|(_, list)| list).for_each(|alternative| alternative.seen = number);
    }

    /// Ends the dump of a family and removes the routes that it did not name. Returns false if events have disturbed
    /// the dump, so that it must be repeated.
    pub fn end(&mut self, family: Family) -> bool {
        let dump = &mut self.dumps[family as usize];
        dump.changed = None;
        let (number, is_disturbed) = (dump.number, dump.is_disturbed);
        let is_unseen = |alternative: &Alternative| alternative.seen != number;
        let stale: Vec<IpNet> = self
            .prefixes
            .iter()
            .filter(|(prefix, list)| Family::of(**prefix) == family && list.iter().any(is_unseen))
            .map(|(prefix, _)| *prefix)
            .collect();
        for prefix in stale {
            self.edit(prefix, |list| {
                list.retain(|alternative| !is_unseen(alternative));
                true
            });
        }
        !is_disturbed
    }

    /// Gives up the dump of a family: routes that it did not name stay.
    pub fn cancel(&mut self, family: Family) {
        self.dumps[family as usize].changed = None;
    }

    fn dump(&self, prefix: IpNet) -> &Dump {
        &self.dumps[Family::of(prefix) as usize]
    }

    fn dump_mut(&mut self, prefix: IpNet) -> &mut Dump {
        &mut self.dumps[Family::of(prefix) as usize]
    }

    fn outrank(&mut self, prefix: IpNet, metric: u32) {
        if let Some(changed) = &mut self.dump_mut(prefix).changed {
            changed.insert((prefix, metric));
        }
    }

    fn users(&self, target: Target) -> impl Iterator<Item = IpNet> {
        let least = IpNet::default();
        self.users.range((target, least)..).take_while(move |(user, _)| *user == target).map(|(_, prefix)| *prefix)
    }

    /// Changes the routes that use `target`; those for which `is_flushed` returns true are removed.
    fn flush(&mut self, target: Target, mut is_flushed: impl FnMut(Family, &mut KernelRoute) -> bool) {
        let users: Vec<IpNet> = self.users(target).collect();
        for prefix in users {
            let mut changed = Vec::new();
            self.edit(prefix, |list| {
                list.retain_mut(|alternative| {
                    let before = alternative.route.clone();
                    let is_kept = !is_flushed(Family::of(prefix), &mut alternative.route);
                    if !is_kept || alternative.route != before {
                        changed.push(before.metric);
                    }
                    is_kept
                });
                !changed.is_empty()
            });
            changed.into_iter().for_each(|metric| self.outrank(prefix, metric));
        }
    }

    fn insert(
        &mut self,
        prefix: IpNet,
        new: Alternative,
        insert: impl FnOnce(&mut Vec<Alternative>, Alternative) -> bool,
    ) -> bool {
        if matches!(&new.route.hops, RouteHops::Direct(hops) if hops.len() > MAX_NEXT_HOPS) {
            return false;
        }
        let is_full = self.len >= self.limit;
        let mut is_stored = true;
        self.edit(prefix, |list| {
            let before = is_full.then(|| list.clone());
            let has_changed = insert(list, new);
            if let Some(before) = before.filter(|before| before.len() < list.len()) {
                *list = before;
                is_stored = false;
                return false;
            }
            has_changed
        });
        is_stored
    }

    /// Changes the routes of `prefix`. `edit` returns whether it has changed any. The index follows.
    fn edit(&mut self, prefix: IpNet, edit: impl FnOnce(&mut Vec<Alternative>) -> bool) {
        let mut list = self.prefixes.remove(&prefix).unwrap_or_default();
        let (before, len) = (targets(&list), list.len());
        let has_changed = edit(&mut list);
        self.len = self.len - len + list.len();
        if has_changed {
            self.dirty.insert(prefix);
            let after = targets(&list);
            if before != after {
                for target in before {
                    self.users.remove(&(target, prefix));
                }
                self.users.extend(after.into_iter().map(|target| (target, prefix)));
            }
        }
        if !list.is_empty() {
            self.prefixes.insert(prefix, list);
        }
    }
}

/// Everything that the routes of one prefix use.
fn targets(list: &[Alternative]) -> Vec<Target> {
    let mut targets = Vec::new();
    for alternative in list {
        match &alternative.route.hops {
            RouteHops::Direct(hops) => targets.extend(hops.iter().map(|hop| Target::Link(hop.index))),
            RouteHops::Object(id) => targets.push(Target::Object(*id)),
        }
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}
