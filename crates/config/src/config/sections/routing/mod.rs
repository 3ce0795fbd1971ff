//! `routing:` of the configuration: interfaces, static routes and neighbours of the router.

mod addresses;
pub(in crate::config) mod interfaces;
pub(in crate::config) mod linux;
mod networks;
pub(in crate::config) mod routes;

use super::draft::Port;
use crate::config::keys::Key;
use crate::config::model::RouterDefaults;
use crate::config::yaml::names::Unique;
use crate::config::yaml::read::{Fields, Item};
use crate::forward::StaticEntry;
use crate::route::{Attachment, FibSize, ROUTER_PORT, RoutingSpec};
use crate::units::Nanos;

pub const KEYS: &[Key] = &[
    Key::new("interfaces", "required", "", ""),
    Key::new("routes", "none", "", ""),
    Key::new("neighbours", "none", "", ""),
    Key::new("hash", "", "", ""),
    Key::new("fib", "", "", ""),
    Key::new("linux", "none", "", ""),
];
pub const HASH_KEYS: &[Key] = &[
    Key::new("seed", "from the first port's MAC address", "0 to 2^64 - 1", "seed of the flow hash"),
    Key::new("symmetric", "`false`", "`true` `false`", "both directions of a flow hash alike"),
];
pub const FIB_KEYS: &[Key] = &[
    Key::new("ipv4", "65536", "1024 to 4194304", "room for IPv4 prefixes, in DPDK's memory"),
    Key::new("ipv6", "16384", "1024 to 1048576", "room for IPv6 prefixes"),
];

/// Fewest prefixes of a forwarding table.
const SMALLEST_FIB: u64 = 1 << 10;
/// Most IPv4 prefixes: four times the routing table of the Internet.
const LARGEST_FIB_V4: u64 = 4 << 20;
/// Most IPv6 prefixes.
const LARGEST_FIB_V6: u64 = 1 << 20;

/// The shortest ageing time with which stations stay known: the router refreshes a neighbour every 45 s.
pub const SHORTEST_AGEING: Nanos = Nanos(60_000_000_000);

/// The router as configured.
pub struct Routing<'a> {
    pub item: Item<'a>,
    pub spec: RoutingSpec,
    pub defaults: RouterDefaults,
}

impl Routing<'_> {
    /// The router's stations, as entries of the forwarding database.
    pub fn stations(&self) -> Vec<StaticEntry> {
        let interfaces = self.spec.interfaces.iter();
        interfaces.map(|spec| StaticEntry { vlan: spec.vlan, mac: spec.mac, port: ROUTER_PORT as u8 }).collect()
    }

    /// Whether some interface is a VLAN, in which the forwarding database knows the ports of neighbours.
    pub fn has_vlans(&self) -> bool {
        self.spec.interfaces.iter().any(|interface| interface.attachment == Attachment::Vlan)
    }
}

/// Reads `routing:`, and turns ports with an interface into routed ports.
pub fn read<'a>(item: Option<Item<'a>>, ports: &mut [Port<'a>], macs: &mut Unique) -> Option<Routing<'a>> {
    let item = item?;
    let fields = item.fields(KEYS)?;
    if ports.len() > ROUTER_PORT {
        item.fail(format!(
            "a switch that routes has at most {ROUTER_PORT} ports, and this one has {}; remove a port",
            ports.len()
        ));
        return None;
    }
    let linux_item = fields.get("linux");
    let interfaces = interfaces::read(&fields, ports, macs, linux_item.is_some());
    let linux = linux_item.and_then(|item| linux::read(&item, &interfaces));
    let routes = routes::read(fields.get("routes"), &interfaces, ports);
    let neighbours = routes::read_neighbours(fields.get("neighbours"), &interfaces, ports);
    let (seed, is_symmetric) = read_hash(fields.get("hash"));
    let fib = read_fib(fields.get("fib"));
    let first = ports.first()?.mac;
    let spec = RoutingSpec {
        routes,
        neighbours,
        hash_seed: seed.unwrap_or_else(|| RoutingSpec::default_seed(first)),
        is_symmetric,
        fib,
        linux,
        interfaces: interfaces.specs,
    };
    check_fib(&fields, &spec);
    let defaults = RouterDefaults { has_mac: interfaces.has_mac, has_seed: seed.is_some() };
    Some(Routing { item, spec, defaults })
}

fn read_hash(item: Option<Item<'_>>) -> (Option<u64>, bool) {
    let Some(fields) = item.and_then(|item| item.fields(HASH_KEYS)) else { return (None, false) };
    let seed = fields.get("seed").and_then(|item| item.number("a seed", 0..=u64::MAX));
    (seed, fields.get("symmetric").and_then(|item| item.flag()).unwrap_or(false))
}

fn read_fib(item: Option<Item<'_>>) -> FibSize {
    let fields = item.and_then(|item| item.fields(FIB_KEYS));
    let room = |key, most| {
        let item = fields.as_ref().and_then(|fields| fields.get(key));
        item.and_then(|item| item.number::<u32>("a count of prefixes", SMALLEST_FIB..=most))
    };
    let default = FibSize::default();
    FibSize {
        ipv4: room("ipv4", LARGEST_FIB_V4).unwrap_or(default.ipv4),
        ipv6: room("ipv6", LARGEST_FIB_V6).unwrap_or(default.ipv6),
    }
}

/// Checks that the forwarding table holds all configured prefixes: routes, neighbours, own addresses, their networks.
fn check_fib(fields: &Fields<'_>, spec: &RoutingSpec) {
    let own = || spec.interfaces.iter().flat_map(|interface| &interface.addresses).map(|own| own.addr().is_ipv4());
    let routes = spec.routes.iter().map(|route| route.prefix.addr().is_ipv4());
    let neighbours = spec.neighbours.iter().map(|neighbour| neighbour.address.is_ipv4());
    let all: Vec<bool> = own().chain(own()).chain(routes).chain(neighbours).collect();
    for (key, is_v4, room) in [("ipv4", true, spec.fib.ipv4), ("ipv6", false, spec.fib.ipv6)] {
        let needed = all.iter().filter(|is| **is == is_v4).count();
        if needed > room as usize {
            let place = fields.get("fib").unwrap_or_else(|| fields.owner().clone());
            place.fail(format!(
                "there is room for {room} prefixes of {key}, and the addresses, routes and neighbours here have \
                 {needed}; write `fib: {{{key}: {}}}` or more",
                (2 * needed).next_power_of_two()
            ));
        }
    }
}
