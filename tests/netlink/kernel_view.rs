//! The tables of a namespace as `ip` shows them, in the form in which the mirror publishes them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use holdfast::netlink::{Address, Change, Link, Neighbour, NextHop, Route, RouteKind};
use ipnet::IpNet;
use serde_json::Value;

use crate::namespace::Namespace;

/// Tables of a namespace. The state of an interface is in `links`; MAC addresses of neighbours are in `neighbours`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    pub links: BTreeMap<u32, Link>,
    pub addresses: BTreeSet<Address>,
    pub neighbours: BTreeMap<(u32, IpAddr), String>,
    /// Kind and next hops. Metrics and protocols are compared by the choice that they cause.
    pub routes: BTreeMap<IpNet, (RouteKind, Vec<NextHop>)>,
}

impl View {
    /// Applies changes of the mirror.
    pub fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Link(link) => drop(self.links.insert(link.index, link)),
                Change::LinkGone { index } => drop(self.links.remove(&index)),
                Change::Address(address) => drop(self.addresses.insert(address)),
                Change::AddressGone(address) => drop(self.addresses.remove(&address)),
                Change::Neighbour(Neighbour { index, address, mac, .. }) => {
                    self.neighbours.insert((index, address), mac.to_string());
                }
                Change::NeighbourGone { index, address } => drop(self.neighbours.remove(&(index, address))),
                Change::Route(route) => {
                    let Route { prefix, kind, next_hops, .. } = (*route).clone();
                    self.routes.insert(prefix, (kind, plain(next_hops)));
                }
                Change::RouteGone { prefix } => drop(self.routes.remove(&prefix)),
                Change::Full { .. } | Change::NotFull { .. } | Change::Undecoded { .. } | Change::Decoded { .. } => {
                    panic!("{change:?}")
                }
            }
        }
    }

    /// Entries that only one of two views has, as lines.
    pub fn difference(&self, other: &Self) -> String {
        let lines = |view: &Self| -> BTreeSet<String> {
            let links = view.links.values().map(|link| format!("{link:?}"));
            let addresses = view.addresses.iter().map(|address| format!("{address:?}"));
            let neighbours = view.neighbours.iter().map(|neighbour| format!("{neighbour:?}"));
            let routes = view.routes.iter().map(|route| format!("{route:?}"));
            links.chain(addresses).chain(neighbours).chain(routes).collect()
        };
        let (own, others) = (lines(self), lines(other));
        let own_only = own.difference(&others).map(|line| format!("- {line}\n"));
        own_only.chain(others.difference(&own).map(|line| format!("+ {line}\n"))).collect()
    }

    /// Reads the tables of `namespace`.
    pub fn read(namespace: &Namespace) -> Self {
        let mut view = Self::default();
        for link in json(namespace, &["link", "show"]) {
            let link = self::link(&link);
            view.links.insert(link.index, link);
        }
        let by_name = |view: &Self, name: &str| {
            let link = view.links.values().find(|link| link.name == name);
            link.map_or(0, |link| link.index)
        };
        for link in json(namespace, &["addr", "show"]) {
            let index = number(&link["ifindex"]);
            for own in link["addr_info"].as_array().into_iter().flatten() {
                let network = |address| format!("{}/{}", text(address), own["prefixlen"]).parse().expect("an address");
                let peer = own.get("address").map(network);
                view.addresses.insert(Address { index, address: network(&own["local"]), peer });
            }
        }
        for neighbour in json(namespace, &["neigh", "show", "nud", "all"]) {
            let address: IpAddr = text(&neighbour["dst"]).parse().expect("an address");
            let has_mac = !["INCOMPLETE", "FAILED", "NONE"].contains(&text(&neighbour["state"][0]));
            if has_mac && !address.is_multicast() && !address.is_loopback() && !address.is_unspecified() {
                let index = by_name(&view, text(&neighbour["dev"]));
                view.neighbours.insert((index, address), text(&neighbour["lladdr"]).to_owned());
            }
        }
        for family in ["-4", "-6"] {
            for route in json(namespace, &[family, "route", "show", "table", "main"]) {
                view.add_route(&route, family, |view, name| by_name(view, name));
            }
        }
        view
    }

    /// Adds a route, unless an earlier one of its prefix is usable. `ip` shows routes in the kernel's order.
    fn add_route(&mut self, route: &Value, family: &str, index: impl Fn(&Self, &str) -> u32) {
        let prefix = destination(text(&route["dst"]), family);
        let is_link_local = prefix.to_string().starts_with("fe80:");
        if is_link_local || prefix.addr().is_multicast() || self.routes.contains_key(&prefix) {
            return;
        }
        let kind = match route["type"].as_str() {
            None | Some("unicast") => RouteKind::Unicast,
            Some("blackhole") => RouteKind::Blackhole,
            Some("unreachable") => RouteKind::Unreachable,
            Some("prohibit") => RouteKind::Prohibit,
            Some(other) => panic!("{other}"),
        };
        if kind != RouteKind::Unicast {
            self.routes.insert(prefix, (kind, Vec::new()));
            return;
        }
        let hops = match route["nexthops"].as_array() {
            Some(hops) => hops.clone(),
            None => vec![route.clone()],
        };
        let mut next_hops = Vec::new();
        for hop in hops {
            let index = index(self, text(&hop["dev"]));
            let has = |flag: &str| hop["flags"].as_array().into_iter().flatten().any(|value| value == flag);
            if has("dead") || has("linkdown") || !self.links.get(&index).is_some_and(|link| link.is_up) {
                continue;
            }
            let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str());
            let gateway = gateway.map(|text| text.parse().expect("a gateway"));
            let weight = hop["weight"].as_u64().map_or(1, |weight| u16::try_from(weight).expect("a weight"));
            next_hops.push(NextHop { gateway, index, weight });
        }
        if !next_hops.is_empty() {
            self.routes.insert(prefix, (kind, plain(next_hops)));
        }
    }
}

/// `ip` shows no weight of a single next hop.
fn plain(mut next_hops: Vec<NextHop>) -> Vec<NextHop> {
    if let [only] = next_hops.as_mut_slice() {
        only.weight = 1;
    }
    next_hops
}

fn link(value: &Value) -> Link {
    let flags: Vec<&str> = value["flags"].as_array().expect("flags").iter().map(text).collect();
    let is_admin_up = flags.contains(&"UP");
    Link {
        index: number(&value["ifindex"]),
        name: text(&value["ifname"]).to_owned(),
        is_admin_up,
        // `ip` hides IFF_RUNNING, and shows that it is missing.
        is_up: is_admin_up && flags.contains(&"LOWER_UP") && !flags.contains(&"NO-CARRIER"),
        mac: value["address"].as_str().and_then(|mac| mac.parse().ok()),
        mtu: number(&value["mtu"]),
    }
}

/// A prefix from `default`, an address or a prefix.
fn destination(text: &str, family: &str) -> IpNet {
    let text = match text {
        "default" if family == "-4" => "0.0.0.0/0",
        "default" => "::/0",
        text => text,
    };
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).expect("a prefix")
}

fn json(namespace: &Namespace, words: &[&str]) -> Vec<Value> {
    let output = namespace.run(&[&["ip", "-j"], words].concat());
    let text = if output.trim().is_empty() { "[]" } else { &output };
    let entries: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {output}"));
    // `ip -j` shows an entry that it leaves out as an empty object.
    entries.into_iter().filter(|entry| entry.as_object().is_some_and(|entry| !entry.is_empty())).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|number| u32::try_from(number).ok()).expect("a number")
}
