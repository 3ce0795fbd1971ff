//! The router in the output of `holdfast check`: interfaces as a table, routes and neighbours as counts.

use holdfast::config::Config;
use holdfast::route::{Attachment, InterfaceSpec, RoutingSpec};
use holdfast::text::table::Table;
use serde_json::{Value, json};

/// The table of interfaces and a line of counts; `None` if the switch only bridges.
pub fn describe(config: &Config) -> Option<String> {
    let routing = config.switch.routing.as_ref()?;
    let Counts { next_hops, drops } = Counts::of(routing);
    let (routes, neighbours, fib) = (routing.routes.len(), routing.neighbours.len(), routing.fib);
    let hash = if routing.is_symmetric { "; symmetric flow hash" } else { "" };
    Some(format!(
        "{}\nrouting: {routes} routes ({next_hops} next hops, {drops} drop), {neighbours} static neighbours; room for \
         {} IPv4 and {} IPv6 prefixes{hash}",
        interfaces(config, routing),
        fib.ipv4,
        fib.ipv6
    ))
}

/// Interfaces and counts as JSON; null if the switch only bridges.
pub fn to_json(config: &Config) -> Value {
    let Some(routing) = &config.switch.routing else { return Value::Null };
    let interface = |interface: &InterfaceSpec| {
        json!({
            "name": interface.name,
            "vlan": interface.vlan,
            "is_internal": interface.attachment != Attachment::Vlan,
            "addresses": interface.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "mtu": interface.mtu,
        })
    };
    let Counts { next_hops, drops } = Counts::of(routing);
    json!({
        "interfaces": routing.interfaces.iter().map(interface).collect::<Vec<_>>(),
        "routes": routing.routes.len(),
        "next_hops": next_hops,
        "dropping_routes": drops,
        "neighbours": routing.neighbours.len(),
    })
}

struct Counts {
    next_hops: usize,
    drops: usize,
}

impl Counts {
    fn of(routing: &RoutingSpec) -> Self {
        Self {
            next_hops: routing.routes.iter().map(|route| route.next_hops.len()).sum(),
            drops: routing.routes.iter().filter(|route| route.next_hops.is_empty()).count(),
        }
    }
}

fn interfaces(config: &Config, routing: &RoutingSpec) -> Table {
    let mut table = Table::new("interface | ports | >vlan | >mtu | mac | addresses");
    let name = |port: usize| config.switch.ports.get(port).map_or("none", |port| port.name.as_str());
    for (index, interface) in routing.interfaces.iter().enumerate() {
        let ports: Vec<&str> = interface.ports.iter().map(name).collect();
        let (vlan, owner) = match interface.attachment {
            Attachment::Port(port) => (format!("internal {}", interface.vlan), usize::from(port)),
            Attachment::Vlan => (interface.vlan.to_string(), 0),
        };
        // A NIC's own address is known only at start.
        let has_mac = config.router_defaults.has_mac.get(index).copied().unwrap_or(false);
        let mac = if has_mac { interface.mac.to_string() } else { format!("of port {}", name(owner)) };
        let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
        table.row([
            interface.name.clone(),
            ports.join(", "),
            vlan,
            interface.mtu.to_string(),
            mac,
            addresses.join(", "),
        ]);
    }
    table
}
