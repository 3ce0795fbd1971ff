//! The routes of one prefix, in the order in which the kernel tries them.
//!
//! A list is sorted by metric. Routes of the same metric keep the order of the kernel's list. The kernel tells its
//! changes in the terms of `fib_table_insert` (IPv4) and `fib6_add_rt2node` (IPv6); the functions here repeat them.

use std::ops::Range;

use crate::netlink::model::{KernelNextHop, KernelRoute, RouteHops, RouteKind, RouteMode};

/// Most next hops of a route, and most members of a next-hop group.
pub const MAX_NEXT_HOPS: usize = 512;

/// Routes from router advertisements and redirects: they stay single routes where others would join a multipath route.
const SINGLE_PROTOCOLS: [u8; 2] = [1, 9];

/// A route, and the dump that last named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// The route.
    pub route: KernelRoute,
    /// Number of the dump.
    pub seen: u32,
}

/// Effect of a removal.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    /// The route, or its listed next hops, are removed.
    Removed,
    /// The list has no such metric.
    Absent,
    /// The list has other routes of this metric: an earlier message may have been lost.
    Doubtful,
}

impl RouteHops {
    fn direct(&self) -> &[KernelNextHop] {
        match self {
            RouteHops::Direct(hops) => hops,
            RouteHops::Object(_) => &[],
        }
    }
}

/// Whether both are the same route of the kernel. The state of next hops may differ.
fn is_same(a: &KernelRoute, b: &KernelRoute) -> bool {
    match (&a.hops, &b.hops) {
        (RouteHops::Object(a), RouteHops::Object(b)) => a == b,
        (RouteHops::Direct(hops), RouteHops::Direct(others)) => {
            let is_same_hop = |(a, b): (&KernelNextHop, &KernelNextHop)| a.is_same_path(b) && a.weight == b.weight;
            (a.kind, a.protocol, hops.len()) == (b.kind, b.protocol, others.len())
                && hops.iter().zip(others).all(is_same_hop)
        }
        _ => false,
    }
}

/// Whether an IPv6 route joins others of its metric to one multipath route: all its next hops have gateways.
fn is_joinable(route: &KernelRoute) -> bool {
    let hops = route.hops.direct();
    let is_routed = route.kind == RouteKind::Unicast && !hops.is_empty();
    is_routed
        && hops.iter().all(|hop| hop.gateway.is_some())
        && (hops.len() > 1 || !SINGLE_PROTOCOLS.contains(&route.protocol))
}

fn is_ipv6(route: &KernelRoute) -> bool {
    route.prefix.addr().is_ipv6()
}

/// Places of the routes of `metric`.
fn places(list: &[Alternative], metric: u32) -> Range<usize> {
    let start = list.partition_point(|other| other.route.metric < metric);
    start..list.partition_point(|other| other.route.metric <= metric)
}

/// The first place of `range` that satisfies `is_wanted`.
fn find(list: &[Alternative], range: &Range<usize>, is_wanted: impl Fn(&KernelRoute) -> bool) -> Option<usize> {
    range.clone().find(|place| is_wanted(&list[*place].route))
}

/// Sets the route of a place. Returns whether that is a change.
fn set(list: &mut [Alternative], place: usize, new: Alternative) -> bool {
    let has_changed = list[place].route != new.route;
    list[place] = new;
    has_changed
}

/// Enters the route of an event. Returns whether the list has changed.
pub fn insert(list: &mut Vec<Alternative>, new: Alternative, mode: RouteMode) -> bool {
    let range = places(list, new.route.metric);
    let twin = find(list, &range, |other| is_same(other, &new.route));
    if mode == RouteMode::Exclusive {
        if let (Some(twin), 1) = (twin, range.len()) {
            return set(list, twin, new);
        }
        // Others were flushed silently.
        list.splice(range, [new]);
        return true;
    }
    if is_ipv6(&new.route) {
        return insert_ipv6(list, new, mode, twin);
    }
    // The kernel replaces a route by itself only to tell that its next-hop object has changed.
    if let Some(twin) = twin {
        return set(list, twin, new);
    }
    match mode {
        RouteMode::Replace if !range.is_empty() => return set(list, range.start, new),
        RouteMode::Append => list.insert(range.end, new),
        _ => list.insert(range.start, new),
    }
    true
}

/// A message about a multipath route lists all its next hops. Kernels before 4.11 send one message for each next hop,
/// so a single one that is appended joins the others.
fn insert_ipv6(list: &mut Vec<Alternative>, new: Alternative, mode: RouteMode, twin: Option<usize>) -> bool {
    let range = places(list, new.route.metric);
    if let Some(twin) = twin {
        return set(list, twin, new);
    }
    let joins = is_joinable(&new.route);
    let joined = find(list, &range, |other| is_joinable(other) == joins);
    match mode {
        RouteMode::Replace if !range.is_empty() => set(list, joined.unwrap_or(range.start), new),
        _ if !joins => {
            list.insert(range.end, new);
            true
        }
        RouteMode::Append if new.route.hops.direct().len() == 1 => join(list, &range, new),
        _ => set_whole(list, &range, new),
    }
}

/// Adds a single next hop to the multipath route of its metric, or a route if there is none.
fn join(list: &mut Vec<Alternative>, range: &Range<usize>, new: Alternative) -> bool {
    let Some(place) = find(list, range, is_joinable) else {
        list.insert(range.end, new);
        return true;
    };
    let RouteHops::Direct(hops) = &mut list[place].route.hops else { return false };
    for hop in new.route.hops.direct() {
        match hops.iter().position(|other| other.is_same_path(hop)) {
            Some(place) if hops[place] == *hop => return false,
            Some(place) => hops[place] = *hop,
            None if hops.len() < MAX_NEXT_HOPS => hops.push(*hop),
            None => return false,
        }
    }
    list[place].seen = new.seen;
    true
}

/// Sets all next hops of the multipath route. Single routes that have become part of it are removed. Next hops that it
/// had keep their order, as in the kernel: a message may begin with any of them.
fn set_whole(list: &mut Vec<Alternative>, range: &Range<usize>, mut new: Alternative) -> bool {
    let hops = new.route.hops.direct().to_vec();
    let is_part = |other: &KernelRoute| {
        let others = other.hops.direct();
        !others.is_empty() && others.iter().all(|other| hops.iter().any(|hop| hop.is_same_path(other)))
    };
    let place = find(list, range, is_joinable).or_else(|| find(list, range, is_part));
    let Some(place) = place else {
        list.insert(range.end, new);
        return true;
    };
    let known = list[place].route.hops.direct();
    if let RouteHops::Direct(new) = &mut new.route.hops {
        new.sort_by_key(|hop| known.iter().position(|known| known.is_same_path(hop)).unwrap_or(known.len()));
    }
    let mut has_changed = set(list, place, new);
    for other in range.clone().rev().filter(|other| *other != place) {
        if is_part(&list[other].route) {
            list.remove(other);
            has_changed = true;
        }
    }
    has_changed
}

/// Enters a route that dump number `new.seen` has named. Routes follow each other as the dump names them, before those
/// that it has not named yet. Returns whether the list has changed.
pub fn insert_dumped(list: &mut Vec<Alternative>, new: Alternative) -> bool {
    let range = places(list, new.route.metric);
    let target = range.start + list[range.clone()].iter().filter(|other| other.seen == new.seen).count();
    let joins = is_ipv6(&new.route) && is_joinable(&new.route);
    let twin = find(list, &range, |other| is_same(other, &new.route) || (joins && is_joinable(other)));
    let Some(twin) = twin else {
        list.insert(target, new);
        return true;
    };
    if list[twin].seen == new.seen && joins && new.route.hops.direct().len() == 1 {
        return join(list, &range, new);
    }
    if twin <= target {
        return set(list, twin, new);
    }
    list.remove(twin);
    list.insert(target, new);
    true
}

/// Marks the route `new.route` as named by dump number `new.seen`. Returns whether the list has it, with the same state
/// of its next hops.
pub fn confirm(list: &mut [Alternative], new: &Alternative) -> bool {
    let twin = find(list, &places(list, new.route.metric), |other| is_same(other, &new.route));
    twin.is_some_and(|twin| {
        list[twin].seen = new.seen;
        list[twin].route == new.route
    })
}

/// Removes a route, or the next hops that an IPv6 route lists.
pub fn remove(list: &mut Vec<Alternative>, gone: &KernelRoute) -> Removal {
    let range = places(list, gone.metric);
    if range.is_empty() {
        return Removal::Absent;
    }
    if let Some(twin) = find(list, &range, |other| is_same(other, gone)) {
        list.remove(twin);
        return Removal::Removed;
    }
    if is_ipv6(gone) && !gone.hops.direct().is_empty() {
        return remove_paths(list, range, gone.hops.direct());
    }
    // A rule has removed the route already, or a message was lost. The others may well be right.
    Removal::Doubtful
}

fn remove_paths(list: &mut Vec<Alternative>, range: Range<usize>, gone: &[KernelNextHop]) -> Removal {
    let mut removed = 0;
    for place in range.rev() {
        let RouteHops::Direct(hops) = &mut list[place].route.hops else { continue };
        let before = hops.len();
        hops.retain(|hop| !gone.iter().any(|gone| gone.is_same_path(hop)));
        removed += before - hops.len();
        if before > 0 && hops.is_empty() {
            list.remove(place);
        }
    }
    if removed >= gone.len() { Removal::Removed } else { Removal::Doubtful }
}
