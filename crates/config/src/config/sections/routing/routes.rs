//! `routing.routes` and `routing.neighbours`.

use crate::config::sections::draft::Port;
use std::collections::HashSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::addresses;
use super::interfaces::Interfaces;
use crate::config::keys::Key;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::route::{NextHopSpec, RouteSpec, StaticNeighbour};

pub const ROUTE_KEYS: &[Key] = &[
    Key::new("to", "", "a prefix without host bits", "destinations"),
    Key::new("via", "", "1 to 64", "next hops: an address, or `gateway` with `port` or `vlan` and `weight`"),
    Key::new("drop", "`false`", "`true` `false`", "the route drops; instead of `via`"),
];
pub const HOP_KEYS: &[Key] = &[
    Key::new("gateway", "required in a mapping", "a host on a network of an interface, or link-local", "next router"),
    Key::new("port", "by `gateway`", "an interface", "place of the gateway"),
    Key::new("vlan", "by `gateway`", "an interface", "place of the gateway"),
    Key::new("weight", "1", "1 to 256", "share of the flows"),
];
pub const NEIGHBOUR_KEYS: &[Key] = &[
    Key::new("port", "by `address`", "an interface", "place of a neighbour"),
    Key::new("vlan", "by `address`", "an interface", "place of a neighbour"),
    Key::new("address", "required", "a host on a network of the interface, or link-local", "its IP address"),
    Key::new("mac", "required", "unicast, not the interface's", "its MAC address"),
];

/// Most next hops of one route.
const MOST_NEXT_HOPS: usize = 64;
/// Largest weight of a next hop.
const LARGEST_WEIGHT: u64 = 256;

/// Destinations that no packet may have, except prefixes that contain one of them.
const NOT_ROUTED: [(&str, &str); 8] = [
    ("0.0.0.0/8", "no destination"),
    ("127.0.0.0/8", "the loopback network"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "no destination"),
    ("::1/128", "the loopback address"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
];

/// Reads all routes, in the order of their prefixes.
pub fn read(item: Option<Item<'_>>, interfaces: &Interfaces, ports: &[Port<'_>]) -> Vec<RouteSpec> {
    let items = item.and_then(|item| item.list("`- {to: 0.0.0.0/0, via: [10.0.1.0]}` for each route"));
    let mut unique = Unique::new("destination");
    let read = |item: Item<'_>| {
        let fields = item.fields(ROUTE_KEYS)?;
        let next_hops = read_via(&fields, interfaces, ports);
        let to = fields.required("to", "to: 0.0.0.0/0")?;
        let prefix = read_prefix(&to)?;
        unique.claim(&to, &prefix.to_string());
        if let Some(owner) = interfaces.owner(prefix) {
            to.fail(format!("`{prefix}` is the network of interface `{owner}`, which needs no route; remove it"));
        }
        let next_hops = next_hops?;
        check_families(&fields, prefix, &next_hops);
        Some(RouteSpec { prefix, next_hops })
    };
    let mut routes: Vec<RouteSpec> = items.unwrap_or_default().into_iter().filter_map(read).collect();
    routes.sort_by_key(|route| route.prefix);
    routes
}

fn read_prefix(item: &Item<'_>) -> Option<IpNet> {
    let text = item.shown();
    let Ok(prefix) = text.parse::<IpNet>() else {
        return match text.parse::<IpAddr>() {
            Ok(address) => item.refuse(format!("`{text}` has no prefix length; write e.g. {}", IpNet::from(address))),
            Err(_) => item.refuse(format!("`{text}` is not a prefix; write e.g. 10.9.0.0/16 or \"2001:db8:9::/48\"")),
        };
    };
    if prefix.trunc() != prefix {
        return item.refuse(format!("`{text}` has bits beyond its prefix; write {}", prefix.trunc()));
    }
    let inside = |block: &&(&str, &str)| block.0.parse::<IpNet>().is_ok_and(|block| block.contains(&prefix));
    match NOT_ROUTED.iter().find(inside) {
        Some((block, kind)) => {
            item.refuse(format!("packets to {block} ({kind}) are never routed; write another prefix than `{text}`"))
        }
        None => Some(prefix),
    }
}

/// Reads `via` and `drop`. No next hop means that packets are dropped.
fn read_via(fields: &Fields<'_>, interfaces: &Interfaces, ports: &[Port<'_>]) -> Option<Vec<NextHopSpec>> {
    let drop = fields.get("drop");
    let drops = drop.as_ref().map_or(Some(false), Item::flag);
    let Some(via) = fields.get("via") else {
        return match drops? {
            true => Some(Vec::new()),
            false => fields.owner().refuse("`via` is missing; write e.g. `via: [10.0.1.0]`, or `drop: true`"),
        };
    };
    let items = via.list("e.g. [10.0.1.0] or [{gateway: 10.0.1.0, weight: 2}]")?;
    if items.is_empty() {
        return via.refuse("there is no next hop; write e.g. [10.0.1.0], or `drop: true` instead of `via`");
    }
    if items.len() > MOST_NEXT_HOPS {
        let (hops, most) = (items.len(), MOST_NEXT_HOPS);
        return via.refuse(format!("{hops} next hops are more than the {most} that a route can have; remove some"));
    }
    let mut hops: Vec<NextHopSpec> = items.iter().filter_map(|item| read_hop(item, interfaces, ports)).collect();
    if let Some(item) = drop.filter(|_| drops == Some(true)) {
        return item.refuse("`via` and `drop` exclude each other; keep one of the two");
    }
    let mut seen = HashSet::new();
    for (hop, item) in hops.iter().zip(&items).filter(|_| hops.len() == items.len()) {
        if !seen.insert((hop.address, hop.interface)) {
            item.fail(format!("`{}` is a next hop of this route already; remove it, or write a `weight`", hop.address));
        }
    }
    hops.sort_by_key(|hop| (hop.address, hop.interface));
    Some(hops).filter(|hops| hops.len() == items.len())
}

fn read_hop(item: &Item<'_>, interfaces: &Interfaces, ports: &[Port<'_>]) -> Option<NextHopSpec> {
    if !item.is_map() {
        let address = addresses::read_host(item)?;
        return Some(NextHopSpec { address, interface: interfaces.lead_to(item, address, None)?, weight: 1 });
    }
    let fields = item.fields(HOP_KEYS)?;
    let weight = fields.get("weight").map_or(Some(1), |item| item.number("a weight", 1..=LARGEST_WEIGHT));
    let named = interfaces.named(&fields, ports);
    let gateway = fields.required("gateway", "gateway: 10.0.1.0")?;
    let address = addresses::read_host(&gateway)?;
    Some(NextHopSpec { address, interface: interfaces.lead_to(&gateway, address, named?)?, weight: weight? })
}

/// Refuses IPv4 next hops of IPv6 prefixes. RFC 8950 allows the reverse.
fn check_families(fields: &Fields<'_>, prefix: IpNet, next_hops: &[NextHopSpec]) {
    let IpNet::V6(_) = prefix else { return };
    if let (Some(hop), Some(via)) = (next_hops.iter().find(|hop| hop.address.is_ipv4()), fields.get("via")) {
        via.fail(format!("`{}` is an IPv4 next hop of the IPv6 prefix {prefix}; write an IPv6 one", hop.address));
    }
}

/// Reads all neighbours, in the order of their interfaces and addresses.
pub fn read_neighbours(item: Option<Item<'_>>, interfaces: &Interfaces, ports: &[Port<'_>]) -> Vec<StaticNeighbour> {
    let example = "e.g. `- {port: p1, address: 10.0.1.0, mac: \"02:00:00:00:00:01\"}`";
    let items = item.and_then(|item| item.list(example)).unwrap_or_default();
    let mut unique = Unique::new("address");
    let read = |item: Item<'_>| {
        let fields = item.fields(NEIGHBOUR_KEYS)?;
        let named = interfaces.named(&fields, ports);
        let mac_item = fields.required("mac", "mac: 02:00:00:00:00:01");
        let mac = mac_item.as_ref().and_then(names::station);
        let item = fields.required("address", "address: 10.0.1.0")?;
        let address = addresses::read_host(&item)?;
        let interface = interfaces.lead_to(&item, address, named?)?;
        let place = if addresses::is_link_local(address) {
            format!(" at {}", interfaces.name(interface))
        } else {
            String::new()
        };
        unique.claim(&item, &format!("{address}{place}"));
        let (mac, mac_item) = (mac?, mac_item?);
        if interfaces.specs[usize::from(interface)].mac == mac {
            mac_item.fail(format!(
                "`{mac}` is the address of this switch at interface `{}`; write that of the neighbour",
                interfaces.name(interface)
            ));
        }
        Some(StaticNeighbour { interface, address, mac })
    };
    let mut neighbours: Vec<StaticNeighbour> = items.into_iter().filter_map(read).collect();
    neighbours.sort_by_key(|neighbour| (neighbour.interface, neighbour.address));
    neighbours
}
