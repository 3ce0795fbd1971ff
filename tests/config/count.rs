//! The key `count`: one item for several ports, hosts or flows.

use super::*;

#[test]
fn count_expands_one_item_into_numbered_copies() {
    let config = accept(
        "preset: roce\nports:\n  - {name: p*, count: 3, device: ring, speed: 10G}\n  \
         - {name: q*, first: 7, count: 2, device: net_tap*, speed: 10G, vlan: {tagged: ['*']}}\n\
         hosts:\n  - {name: h*, count: 2, port: p*, flows: [{to: h3, rate: '*G'}]}\n  \
         - {name: h3, port: p3, flows: [{to: h*, count: 2, dscp: '*'}]}\n",
    );
    let names: Vec<&str> = config.switch.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["p1", "p2", "p3", "q7", "q8"]);
    assert_eq!(config.devices[4].kind.to_string(), "net_tap8");
    assert_eq!(config.hosts[1].flows[0].rate.to_string(), "2G");
    let dscps: Vec<u8> = config.hosts[2].flows.iter().map(|flow| flow.dscp).collect();
    assert_eq!(dscps, [1, 2]);
}

#[test]
fn nested_count_uses_the_innermost_number() {
    let config = accept(
        "ports: [{name: p*, count: 3, device: ring, speed: 10G}]\nhosts:\n  - {name: h3, port: p3}\n  \
         - {name: h*, count: 2, port: p*, flows: [{to: h3, dscp: '*', count: 2, first: 40}]}\n",
    );
    let dscps: Vec<u8> = config.hosts.iter().flat_map(|host| &host.flows).map(|flow| flow.dscp).collect();
    assert_eq!(dscps, [40, 41, 40, 41]);
}

#[test]
fn error_in_counted_item_is_reported_once_at_its_source() {
    refuse(
        "ports: [{name: p*, count: 2, device: net_tap*, speed: 10G, mtu: 1}]\n",
        "x.yaml:1:65: ports[0].mtu: `1` is not an MTU; write a whole number from 256 to 9600",
    );
    // A mistake is reported once even if its message contains the number of the first item.
    refuse(
        "ports: [{name: p1, device: ring, speed: 10G}]\n\
         hosts: [{name: h1, port: p1, flows: [{to: x*, count: 9}]}]\n",
        "x.yaml:2:43: hosts[0].flows[0].to: there is no host `x1`; write `h1` if that was meant, or `{mac: ..., ip: \
         ...}` for a station outside the switch",
    );
    // Different mistakes of an item are reported separately.
    refuse(
        "ports: [{name: p*, count: 9, device: net_tap*}]\n",
        "x.yaml:1:9: ports[0]: `speed` is missing; write e.g. `speed: 10G`",
    );
    refuse(
        "ports: [{name: p*, count: 9}]\n",
        "x.yaml:1:9: ports[0]: `device` is missing; write e.g. `device: ring`\n\
         x.yaml:1:9: ports[0]: `speed` is missing; write e.g. `speed: 10G`",
    );
}

#[test]
fn count_without_asterisk_is_refused() {
    let expected = "there is no `*` in its `name` for the number; write e.g. `name: p*`";
    refuse(
        "ports: [{name: p, count: 2, device: net_tap*, speed: 10G}]\n",
        &format!("x.yaml:1:26: ports[0].count: {expected}"),
    );
    let expected = "there is no `*` in its values for the number; write e.g. `to: h*`";
    refuse(
        "ports: [{name: p1, device: ring, speed: 10G}]\nhosts: [{name: h1, port: p1, flows: [{to: h2, count: 2}]}]\n",
        &format!("x.yaml:2:54: hosts[0].flows[0].count: {expected}"),
    );
}

#[test]
fn invalid_count_or_first_number_is_refused() {
    for count in ["0", "1025", "-1", "many", "1.5", "[2]"] {
        let (shown, hint) = if count == "[2]" { ("[...]", "; did you mean `2`?") } else { (count, "") };
        refuse(
            &format!("ports: [{{name: p*, count: {count}, device: net_tap*, speed: 10G}}]\n"),
            &format!(
                "x.yaml:1:27: ports[0].count: `{shown}` is not a count of items; write a whole number from 1 to 1024{hint}"
            ),
        );
    }
    refuse(
        "ports: [{name: p*, count: 2, first: x, device: net_tap*, speed: 10G}]\n",
        "x.yaml:1:37: ports[0].first: `x` is not a first number; write a whole number from 0 to 65535",
    );
}

#[test]
fn nested_counts_beyond_the_limit_are_refused() {
    let text = "ports: [{name: p*, count: 1024, a: [{name: a*, count: 1024, b: [{name: b*, count: 1024}]}]}]\n";
    let errors = config::parse("x.yaml", text).unwrap_err().to_string();
    assert!(errors.contains("ports[0].a[0].count: 1024 copies of this item are too many; write fewer"), "{errors}");
}

#[test]
fn first_number_without_count_is_refused() {
    refuse_beside_ports(
        "hosts: [{name: h1, port: p1, first: 2}]\n",
        "x.yaml:4:37: hosts[0].first: `first` needs a `count`; write e.g. `count: 2`",
    );
}

#[test]
fn a_simulated_switch_needs_neither_devices_nor_hosts() {
    let simulated = config::Overrides { simulated: true, ..config::Overrides::default() };
    let text = "preset: roce\nports: [{name: p*, count: 4, speed: 10G}]\n";
    let config = simulated.parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(config.devices.iter().all(|device| device.kind.to_string() == "ring"));
    assert!(config.hosts.is_empty() && config.warnings.is_empty(), "{:?}", config.warnings);
    assert!(config::parse("x.yaml", text).is_err());
}
