//! Settings of the router.

use super::row::Settings;
use crate::config::model::RouterDefaults;
use crate::route::{Attachment, InterfaceSpec, NextHopSpec, RoutingSpec};

/// Adds all settings of `routing`. Interfaces, hash and room need a restart; addresses, routes and neighbours do not.
/// Values that follow the ports are not settings.
pub(super) fn add(routing: &RoutingSpec, defaults: &RouterDefaults, settings: &mut Settings) {
    let seed = if defaults.has_seed { routing.hash_seed.to_string() } else { "from the first port".to_owned() };
    let mut put = |key: String, is_live: bool, value: String| settings.put(None, key, is_live, |_| value.clone());
    put("routing.hash".to_owned(), false, format!("{{seed: {seed}, symmetric: {}}}", routing.is_symmetric));
    put("routing.fib".to_owned(), false, format!("{{ipv4: {}, ipv6: {}}}", routing.fib.ipv4, routing.fib.ipv6));
    if let Some(linux) = &routing.linux {
        put("routing.linux.namespace".to_owned(), false, linux.namespace.clone());
    }
    let name = |index: u16| routing.interfaces.get(usize::from(index)).map_or("none", |interface| &interface.name);
    let has_macs = defaults.has_mac.iter().copied().chain(std::iter::repeat(false));
    for (interface, has_mac) in routing.interfaces.iter().zip(has_macs) {
        let key = format!("routing.interfaces.{}", interface.name);
        put(format!("{key}.addresses"), true, joined(&interface.addresses));
        put(key, false, of_interface(interface, has_mac));
    }
    for route in &routing.routes {
        let hop = |hop: &NextHopSpec| {
            format!("{{gateway: {}, interface: {}, weight: {}}}", hop.address, name(hop.interface), hop.weight)
        };
        let hops: Vec<String> = route.next_hops.iter().map(hop).collect();
        let value = if hops.is_empty() { "drop".to_owned() } else { format!("[{}]", hops.join(", ")) };
        put(format!("routing.routes.{}", route.prefix), true, value);
    }
    for neighbour in &routing.neighbours {
        let key = format!("routing.neighbours.{}.{}", name(neighbour.interface), neighbour.address);
        put(key, true, neighbour.mac.to_string());
    }
}

fn of_interface(interface: &InterfaceSpec, has_mac: bool) -> String {
    let place = match interface.attachment {
        Attachment::Port(_) => "port".to_owned(),
        Attachment::Vlan => format!("vlan: {}", interface.vlan),
    };
    let mac = if has_mac { interface.mac.to_string() } else { "of the port".to_owned() };
    format!("{{{place}, mac: {mac}}}")
}

fn joined(addresses: &[impl ToString]) -> String {
    format!("[{}]", addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::fixture;

    #[test]
    fn routes_and_addresses_are_live_and_interfaces_are_not() {
        let mut routing = fixture::two_ports();
        let hop = NextHopSpec { address: [10, 0, 1, 2].into(), interface: 1, weight: 2 };
        routing.routes = vec![
            crate::route::RouteSpec { prefix: "10.9.0.0/16".parse().unwrap(), next_hops: vec![hop] },
            crate::route::RouteSpec { prefix: "10.8.0.0/16".parse().unwrap(), next_hops: vec![] },
        ];
        let defaults = RouterDefaults { has_mac: vec![false, true], has_seed: false };
        let mut found = Settings::default();
        add(&routing, &defaults, &mut found);
        let get = |key: &str| found.get(None, key).map(|found| (found.is_live, found.text.as_str()));
        assert_eq!(get("routing.routes.10.9.0.0/16"), Some((true, "[{gateway: 10.0.1.2, interface: p2, weight: 2}]")));
        assert_eq!(get("routing.routes.10.8.0.0/16"), Some((true, "drop")));
        assert_eq!(get("routing.interfaces.p1.addresses"), Some((true, "[10.0.0.1/24, 2001:db8::1/64]")));
        assert_eq!(get("routing.interfaces.p1"), Some((false, "{port, mac: of the port}")));
        assert_eq!(get("routing.interfaces.p2"), Some((false, "{port, mac: 02:48:46:00:00:01}")));
        assert_eq!(get("routing.hash"), Some((false, "{seed: from the first port, symmetric: false}")));
    }
}
