//! Routing: interfaces, neighbours, routes.

use holdfast::api::model::{Interface, Interfaces, Neighbours, Route, Routes};
use holdfast::text::table::Table;

use super::Looks;
use super::cells::{NONE, count, duration};

/// The answer for a switch without interfaces.
const BRIDGES: &str = "this switch does not route: write `routing` in its configuration\n";

pub fn interfaces(looks: &Looks<'_>) -> String {
    let interfaces: Interfaces = looks.part("interfaces").unwrap_or_default();
    if !interfaces.routing {
        return BRIDGES.to_owned();
    }
    let mut table = Table::new("interface | state | >vlan | >mtu | mac | ports | address");
    for entry in &interfaces.entries {
        let mut addresses = entry.addresses.iter().cloned();
        table.row([
            entry.interface.clone(),
            state(entry).to_owned(),
            entry.vlan.map_or_else(|| NONE.to_owned(), |vlan| vlan.to_string()),
            entry.mtu_bytes.to_string(),
            entry.mac.clone(),
            ports(&entry.ports),
            addresses.next().unwrap_or_else(|| NONE.to_owned()),
        ]);
        for address in addresses {
            table.row(std::iter::repeat_n(String::new(), 6).chain([address]));
        }
    }
    format!("{table}(vlan {NONE}: a routed port)\n")
}

fn state(entry: &Interface) -> &'static str {
    match entry {
        Interface { shut: true, .. } => "shut by Linux",
        Interface { up: true, .. } => "up",
        _ => "DOWN",
    }
}

/// The first ports of a VLAN, and the number of the others.
fn ports(ports: &[String]) -> String {
    const SHOWN: usize = 4;
    let more = ports.len().saturating_sub(SHOWN);
    let names = ports[..ports.len() - more].join(",");
    if more == 0 { names } else { format!("{names} +{more}") }
}

pub fn neighbours(looks: &Looks<'_>) -> String {
    let neighbours: Neighbours = looks.part("neighbours").unwrap_or_default();
    if !neighbours.routing {
        return BRIDGES.to_owned();
    }
    let mut table = Table::new("interface | address | mac | state | >confirmed | >groups | >frames");
    for entry in &neighbours.entries {
        table.row([
            entry.interface.clone(),
            entry.address.clone(),
            entry.mac.clone().unwrap_or_else(|| NONE.to_owned()),
            entry.state.clone(),
            entry.age_ns.map_or_else(|| NONE.to_owned(), |ns| format!("{} ago", duration(ns))),
            count(entry.groups.into()),
            count(entry.routed_frames),
        ]);
    }
    if table.is_empty() {
        return "no neighbours are known\n".to_owned();
    }
    format!("{table}(groups: sets of next hops with it; frames: routed to it)\n")
}

pub fn routes(looks: &Looks<'_>) -> String {
    let routes: Routes = looks.part("routes").unwrap_or_default();
    if !routes.routing {
        return BRIDGES.to_owned();
    }
    if routes.entries.is_empty() {
        return "no such route\n".to_owned();
    }
    let mut table = Table::new("prefix | source | next hop | interface | >weight | state");
    for route in &routes.entries {
        add(&mut table, route);
    }
    let more = routes.next.map_or("", |_| "; more may follow: name a prefix, or raise --limit");
    let shown = routes.entries.len() as u64;
    format!("{table}({} {}{more})\n", count(shown), if shown == 1 { "route" } else { "routes" })
}

/// Adds the rows of a route: one for each next hop, or one in all.
fn add(table: &mut Table, route: &Route) {
    let mut head = [route.prefix.clone(), route.source.clone()];
    if route.next_hops.is_empty() {
        let interface = route.interface.clone().unwrap_or_else(|| NONE.to_owned());
        let state = if route.action == "forward" { "UNUSABLE" } else { route.action.as_str() };
        table.row(head.into_iter().chain([NONE.to_owned(), interface, NONE.to_owned(), state.to_owned()]));
        return;
    }
    for hop in &route.next_hops {
        let state = if hop.usable { "usable" } else { "UNUSABLE" };
        let cells = [hop.address.clone(), hop.interface.clone(), hop.weight.to_string(), state.to_owned()];
        table.row(std::mem::take(&mut head).into_iter().chain(cells));
    }
}

#[cfg(test)]
mod tests {
    use holdfast::api::model::{Neighbour, NextHop, State};
    use serde_json::json;

    use super::super::Seen;
    use super::*;

    fn shown(table: fn(&Looks<'_>) -> String, json: serde_json::Value) -> String {
        table(&Looks { before: None, now: &Seen { json, state: State::default() } })
    }

    #[test]
    fn route_has_a_row_for_each_next_hop() {
        let hop = |last: u8, usable| NextHop {
            address: format!("10.0.0.{last}"),
            interface: format!("p{last}"),
            weight: 1,
            usable,
        };
        let route = |prefix: &str, source: &str, action: &str, next_hops| Route {
            prefix: prefix.to_owned(),
            source: source.to_owned(),
            action: action.to_owned(),
            interface: (action == "connected").then(|| "vlan10".to_owned()),
            usable: action != "drop",
            next_hops,
        };
        let entries = vec![
            route("0.0.0.0/8", "local", "drop", Vec::new()),
            route("10.0.0.0/24", "connected", "connected", Vec::new()),
            route("10.9.0.0/16", "static", "forward", vec![hop(1, true), hop(2, false)]),
        ];
        let text =
            shown(routes, json!({"routes": Routes { routing: true, next: Some("10.9.0.0/16".to_owned()), entries }}));
        insta::assert_snapshot!(text, @r"
        prefix       source     next hop  interface  weight  state
        0.0.0.0/8    local      -         -               -  drop
        10.0.0.0/24  connected  -         vlan10          -  connected
        10.9.0.0/16  static     10.0.0.1  p1              1  usable
                                10.0.0.2  p2              1  UNUSABLE
        (3 routes; more may follow: name a prefix, or raise --limit)
        ");
        assert_eq!(shown(routes, json!({"routes": {"routing": true}})), "no such route\n");
    }

    #[test]
    fn neighbour_without_an_answer_has_no_address() {
        let row = |address: &str, mac: Option<&str>, state: &str| Neighbour {
            interface: "p1".to_owned(),
            address: address.to_owned(),
            mac: mac.map(str::to_owned),
            state: state.to_owned(),
            age_ns: mac.map(|_| 2_500_000_000),
            groups: 1,
            routed_frames: mac.map_or(0, |_| 1_234),
        };
        let entries =
            vec![row("10.0.0.2", Some("02:00:00:00:00:09"), "reachable"), row("10.0.0.3", None, "incomplete")];
        let text = shown(neighbours, json!({"neighbours": Neighbours { routing: true, entries }}));
        insta::assert_snapshot!(text, @r"
        interface  address   mac                state       confirmed  groups  frames
        p1         10.0.0.2  02:00:00:00:00:09  reachable    2.5s ago       1   1,234
        p1         10.0.0.3  -                  incomplete          -       1       -
        (groups: sets of next hops with it; frames: routed to it)
        ");
    }

    #[test]
    fn interface_has_a_row_for_each_address() {
        let entries = vec![Interface {
            interface: "vlan10".to_owned(),
            kind: "vlan".to_owned(),
            vlan: Some(10),
            ports: (1..=6).map(|port| format!("p{port}")).collect(),
            up: true,
            shut: false,
            mac: "02:00:00:00:00:01".to_owned(),
            mtu_bytes: 9000,
            addresses: vec!["10.0.0.1/24".to_owned(), "fe80::1/64".to_owned()],
        }];
        let text = shown(interfaces, json!({"interfaces": Interfaces { routing: true, entries }}));
        insta::assert_snapshot!(text, @r"
        interface  state  vlan   mtu  mac                ports           address
        vlan10     up       10  9000  02:00:00:00:00:01  p1,p2,p3,p4 +2  10.0.0.1/24
                                                                         fe80::1/64
        (vlan -: a routed port)
        ");
    }

    #[test]
    fn state_of_an_interface_names_linux_first() {
        let of = |up, shut| state(&Interface { up, shut, ..Interface::default() });
        assert_eq!([of(true, false), of(false, false), of(false, true)], ["up", "DOWN", "shut by Linux"]);
    }

    #[test]
    fn switch_that_bridges_is_told_how_to_route() {
        for table in [interfaces, neighbours, routes] {
            assert_eq!(shown(table, json!({})), BRIDGES);
        }
    }
}
