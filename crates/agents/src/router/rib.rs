//! The routing information base: every known route by prefix, of which the best goes into the forwarding table.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use crate::route::GroupId;

/// The origin of a route. Of several routes to one prefix, that of the first origin in this order is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Source {
    /// Addresses of the switch itself, and addresses that no packet may have.
    Local,
    /// A neighbour whose MAC address is known.
    Neighbour,
    /// The network of an interface.
    Connected,
    /// The configuration.
    Static,
    /// The Linux kernel, where routing daemons write theirs.
    Kernel,
}

impl Source {
    /// Every origin with its label in metrics and tables.
    pub const TABLE: [(Self, &'static str); 5] = [
        (Self::Local, "local"),
        (Self::Neighbour, "neighbour"),
        (Self::Connected, "connected"),
        (Self::Static, "static"),
        (Self::Kernel, "kernel"),
    ];

    /// Label in metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

/// A route as one origin has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    source: Source,
    group: GroupId,
}

/// The routes to one prefix. Most prefixes have one.
#[derive(Debug, Clone)]
struct Candidates {
    best: Candidate,
    others: Vec<Candidate>,
}

impl Candidates {
    fn iter(&self) -> impl Iterator<Item = Candidate> {
        std::iter::once(self.best).chain(self.others.iter().copied())
    }

    fn from_vec(mut all: Vec<Candidate>) -> Option<Self> {
        all.sort_unstable_by_key(|candidate| candidate.source);
        let best = *all.first()?;
        all.remove(0);
        Some(Self { best, others: all })
    }
}

/// The effect of a change on the forwarding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RibChange {
    /// The group that the origin had before.
    pub replaced: Option<GroupId>,
    /// The entry of the forwarding table after the change, if it differs; `Some(None)`: no entry.
    pub entry: Option<Option<GroupId>>,
}

/// All routes.
#[derive(Debug, Default)]
pub struct Rib {
    v4: PrefixMap<Ipv4Net, Candidates>,
    v6: PrefixMap<Ipv6Net, Candidates>,
    /// Routes by source and family.
    counts: [[usize; 2]; Source::TABLE.len()],
}

/// A route that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedRoute {
    /// Destinations.
    pub prefix: IpNet,
    /// Origin of the route.
    pub source: Source,
    /// Next hops.
    pub group: GroupId,
}

/// A place in the order of prefixes; the default is the first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// The prefix, without host bits. The table need not have it.
    pub prefix: IpNet,
    /// Whether the place is behind the prefix, with more specific ones.
    pub is_after: bool,
}

impl Rib {
    /// Sets the route of `source` to `prefix`.
    pub fn set(&mut self, prefix: IpNet, source: Source, group: GroupId) -> RibChange {
        self.change(prefix, source, Some(group))
    }

    /// Removes the route of `source` to `prefix`.
    pub fn remove(&mut self, prefix: IpNet, source: Source) -> RibChange {
        self.change(prefix, source, None)
    }

    fn change(&mut self, prefix: IpNet, source: Source, group: Option<GroupId>) -> RibChange {
        let change = match prefix {
            IpNet::V4(prefix) => change_in(&mut self.v4, prefix.trunc(), source, group),
            IpNet::V6(prefix) => change_in(&mut self.v6, prefix.trunc(), source, group),
        };
        let count = &mut self.counts[source as usize][family(prefix)];
        *count = *count + usize::from(group.is_some()) - usize::from(change.replaced.is_some());
        change
    }

    /// The group of `source` for `prefix`.
    #[must_use]
    pub fn get(&self, prefix: IpNet, source: Source) -> Option<GroupId> {
        let candidates = match prefix {
            IpNet::V4(prefix) => self.v4.get(&prefix.trunc()),
            IpNet::V6(prefix) => self.v6.get(&prefix.trunc()),
        };
        candidates?.iter().find(|candidate| candidate.source == source).map(|candidate| candidate.group)
    }

    /// The group by which packets to `address` would go without the route of the neighbour `address` itself.
    #[must_use]
    pub fn lookup_beside_neighbour(&self, address: IpAddr) -> Option<GroupId> {
        match address {
            IpAddr::V4(address) => {
                let parent = Ipv4Net::new(address, 31).ok()?.trunc();
                beside_neighbour(&self.v4, &address.into(), &parent)
            }
            IpAddr::V6(address) => {
                let parent = Ipv6Net::new(address, 127).ok()?.trunc();
                beside_neighbour(&self.v6, &address.into(), &parent)
            }
        }
    }

    /// The route that covers `address`, by longest prefix.
    #[must_use]
    pub fn lookup(&self, address: IpAddr) -> Option<UsedRoute> {
        let used = |prefix, candidates: &Candidates| UsedRoute {
            prefix,
            source: candidates.best.source,
            group: candidates.best.group,
        };
        match address {
            IpAddr::V4(address) => {
                self.v4.get_lpm(&Ipv4Net::from(address)).map(|(prefix, found)| used(prefix.into(), found))
            }
            IpAddr::V6(address) => {
                self.v6.get_lpm(&Ipv6Net::from(address)).map(|(prefix, found)| used(prefix.into(), found))
            }
        }
    }

    /// The routes in use from `start` on, IPv4 first, in the order of their prefixes.
    pub fn used_from(&self, start: Start) -> impl Iterator<Item = UsedRoute> + '_ {
        let of = |prefix: IpNet, candidates: &Candidates| UsedRoute {
            prefix,
            source: candidates.best.source,
            group: candidates.best.group,
        };
        let (v4, v6) = match start.prefix {
            IpNet::V4(prefix) => (Some(self.v4.iter_from(&prefix, !start.is_after)), self.v6.iter()),
            IpNet::V6(prefix) => (None, self.v6.iter_from(&prefix, !start.is_after)),
        };
        let v4 = v4.into_iter().flatten().map(move |(prefix, found)| of(prefix.into(), found));
        v4.chain(v6.map(move |(prefix, found)| of(prefix.into(), found)))
    }

    /// Number of routes of `source`, IPv4 and IPv6.
    #[must_use]
    pub fn count(&self, source: Source) -> [usize; 2] {
        self.counts[source as usize]
    }

    /// All prefixes that `source` has.
    #[must_use]
    pub fn prefixes(&self, source: Source) -> Vec<IpNet> {
        let has = |candidates: &Candidates| candidates.iter().any(|candidate| candidate.source == source);
        let v4 = self.v4.iter().filter(|(_, found)| has(found)).map(|(prefix, _)| prefix.into());
        v4.chain(self.v6.iter().filter(|(_, found)| has(found)).map(|(prefix, _)| prefix.into())).collect()
    }
}

/// 0 for IPv4, 1 for IPv6.
#[must_use]
pub fn family(prefix: IpNet) -> usize {
    usize::from(matches!(prefix, IpNet::V6(_)))
}

/// The group of the best other route to `host`, or else of the route that covers `parent`, the prefix above it.
fn beside_neighbour<P: prefix_trie::Prefix>(
    routes: &PrefixMap<P, Candidates>,
    host: &P,
    parent: &P,
) -> Option<GroupId> {
    let to_host = routes.get(host).and_then(|found| found.iter().find(|one| one.source != Source::Neighbour));
    to_host.map(|one| one.group).or_else(|| routes.get_lpm(parent).map(|(_, found)| found.best.group))
}

fn change_in<P: prefix_trie::Prefix + Copy>(
    routes: &mut PrefixMap<P, Candidates>,
    prefix: P,
    source: Source,
    group: Option<GroupId>,
) -> RibChange {
    let new = group.map(|group| Candidate { source, group });
    let Some(present) = routes.get_mut(&prefix) else {
        if let Some(best) = new {
            routes.insert(prefix, Candidates { best, others: Vec::new() });
        }
        return RibChange { replaced: None, entry: group.map(Some) };
    };
    let before = present.best.group;
    let replaced = present.iter().find(|candidate| candidate.source == source).map(|candidate| candidate.group);
    let all = present.iter().filter(|candidate| candidate.source != source).chain(new).collect();
    let after = match Candidates::from_vec(all) {
        Some(candidates) => {
            *present = candidates;
            Some(present.best.group)
        }
        None => {
            routes.remove(&prefix);
            None
        }
    };
    RibChange { replaced, entry: (after != Some(before)).then_some(after) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn route_of_the_better_source_is_used_and_uncovered_again() {
        let mut rib = Rib::default();
        let net = prefix("10.1.0.0/16");
        let [kernel, fixed] = [GroupId(10), GroupId(20)];
        assert_eq!(rib.set(net, Source::Kernel, kernel), RibChange { replaced: None, entry: Some(Some(kernel)) });
        assert_eq!(rib.set(net, Source::Static, fixed), RibChange { replaced: None, entry: Some(Some(fixed)) });
        let other = GroupId(11);
        assert_eq!(rib.set(net, Source::Kernel, other), RibChange { replaced: Some(kernel), entry: None });
        assert_eq!(rib.lookup("10.1.2.3".parse().unwrap()).unwrap().source, Source::Static);
        assert_eq!(rib.remove(net, Source::Static), RibChange { replaced: Some(fixed), entry: Some(Some(other)) });
        assert_eq!(rib.count(Source::Kernel), [1, 0]);
        assert_eq!(rib.remove(net, Source::Kernel), RibChange { replaced: Some(other), entry: Some(None) });
        assert_eq!(rib.remove(net, Source::Kernel), RibChange { replaced: None, entry: None });
        assert_eq!(rib.lookup("10.1.2.3".parse().unwrap()), None);
        assert_eq!((rib.count(Source::Kernel), rib.count(Source::Static)), ([0, 0], [0, 0]));
    }

    #[test]
    fn look_up_beside_a_neighbour_finds_other_routes_to_it_and_shorter_prefixes() {
        let mut rib = Rib::default();
        for host in ["10.1.0.1", "10.1.0.2", "fd00::1"] {
            let host: IpAddr = host.parse().unwrap();
            rib.set(IpNet::from(host), Source::Neighbour, GroupId(9));
        }
        for (text, group) in [("10.1.0.0/31", 10), ("10.1.0.0/24", 11), ("10.1.0.2/32", 12), ("fd00::/127", 13)] {
            rib.set(prefix(text), Source::Kernel, GroupId(group));
        }
        let found = |text: &str| rib.lookup_beside_neighbour(text.parse().unwrap()).map(|group| group.0);
        let addresses = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "fd00::1", "fd00::2"];
        assert_eq!(addresses.map(found), [Some(10), Some(12), Some(11), Some(13), None]);
    }

    #[test]
    fn used_routes_are_listed_by_prefix() {
        let mut rib = Rib::default();
        for text in ["fd00::/8", "10.2.0.0/16", "10.0.0.0/8", "10.1.0.0/16"] {
            rib.set(prefix(text), Source::Static, GroupId(9));
        }
        let listed = |prefix, is_after| -> Vec<String> {
            rib.used_from(Start { prefix, is_after }).map(|route| route.prefix.to_string()).collect()
        };
        let all = ["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16", "fd00::/8"];
        assert_eq!(listed(IpNet::default(), false), all);
        assert_eq!(listed(prefix("10.0.0.0/8"), false), all);
        assert_eq!(listed(prefix("10.0.0.0/8"), true), all[1..]);
        assert_eq!(listed(prefix("10.1.7.0/24"), true), all[2..], "a prefix that is not there");
        assert_eq!(listed(prefix("::/0"), false), all[3..]);
        assert_eq!(listed(prefix("fd00::/8"), true), all[4..]);
        assert_eq!((rib.count(Source::Static), rib.prefixes(Source::Static).len()), ([3, 1], 4));
    }
}
