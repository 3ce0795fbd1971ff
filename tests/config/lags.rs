//! `lags` and `lag_hash`: link aggregation groups.

use holdfast::config::{self, Config, LacpConfig, Overrides};
use holdfast::forward::VlanMode;
use holdfast::route::Attachment;
use holdfast::sets::PortSet;

const PORTS: &str = "ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G}
  - {name: c, device: net_null2, speed: 10G}
  - {name: d, device: ring, speed: 10G}
hosts: [{name: h, port: d}]
";

fn accept(text: &str) -> Config {
    config::parse("x.yaml", &format!("{PORTS}{text}")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn refuse(text: &str, words: &str) {
    let errors = config::parse("x.yaml", &format!("{PORTS}{text}")).expect_err("it is wrong").to_string();
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn group_has_its_ports_and_lacp() {
    let config = accept("lags: [{name: bond1, ports: [c], lacp: off}, {name: bond0, ports: [b, a], min_links: 2}]");
    let [first, second] = &config.switch.lags.groups[..] else { panic!("two groups") };
    assert_eq!((first.name.as_str(), first.ports.bits(), first.min_links, first.head()), ("bond0", 0b011, 2, 0));
    assert_eq!((second.name.as_str(), second.ports.bits(), second.min_links), ("bond1", 0b100, 1));
    assert_eq!((first.is_negotiated, second.is_negotiated), (true, false));
    assert_eq!(config.lacp, [Some(LacpConfig { is_active: true, is_fast: true }), None]);
    let config = accept("lags: [{name: bond0, ports: [a], lacp: passive, rate: slow}]");
    assert_eq!(config.lacp, [Some(LacpConfig { is_active: false, is_fast: false })]);
}

#[test]
fn hash_has_a_seed_of_the_first_port_or_the_written_one() {
    let mut config = accept("lags: [{name: bond0, ports: [a, b]}]");
    config.follow_ports();
    assert_ne!(config.switch.lags.hash_seed, 0);
    let mut config = accept("lags: [{name: bond0, ports: [a, b]}]\nlag_hash: {seed: 7, symmetric: true}");
    config.follow_ports();
    assert_eq!((config.switch.lags.hash_seed, config.switch.lags.is_symmetric), (7, true));
    let config = accept("lag_hash: {seed: 7}");
    assert!(config.warnings[0].contains("there are no groups"), "{:?}", config.warnings);
}

#[test]
fn lag_members_that_cannot_join_are_refused() {
    let one = |ports: &str| format!("lags: [{{name: bond0, ports: {ports}}}]");
    refuse(&one("[a, e]"), "there is no port `e`; write");
    refuse(&one("[a, a]"), "`a` stands twice in `bond0`");
    refuse(&one("[]"), "a group has 1 to 8 ports, not 0");
    refuse(&one("[a, d]"), "port `d` has a virtual host, which has one link");
    refuse("lags: [{name: a, ports: [a, b]}]", "`a` is the name of a port");
    refuse("lags: [{name: x, ports: [a, b]}, {name: x, ports: [c]}]", "`x` is already the name");
    refuse("lags: [{name: x, ports: [a, b]}, {name: y, ports: [b]}]", "port `b` is a member of `x` already");
    refuse("lags: [{name: x, ports: [a], lacp: off, rate: slow}]", "a group without LACP has no rate");
    refuse("lags: [{name: x, ports: [a], min_links: 2}]", "min_links");
    refuse("lags: [{name: x, ports: [a], lacp: on}]", "lacp");
}

#[test]
fn lag_members_with_different_settings_are_refused() {
    let with = |settings: &str| {
        let ports = format!("[{{name: a, device: net_null0, speed: 10G}}, {{name: b, device: net_null1, {settings}}}]");
        let text = format!("{{preset: roce, ports: {ports}, lags: [{{name: bond0, ports: [a, b]}}]}}");
        config::parse("x.yaml", &text).err().map(|errors| errors.to_string()).unwrap_or_default()
    };
    assert_eq!(with("speed: 10G, cable: 7m, lcore: 0"), "");
    for (settings, key) in [
        ("speed: 25G", "speed"),
        ("speed: 10G, mtu: 9000", "mtu"),
        ("speed: 10G, vlan: 7", "vlan"),
        ("speed: 10G, trust: pcp, vlan: {tagged: [1]}", "trust"),
        ("speed: 10G, maps: {dscp: {0: 1}}", "maps"),
        ("speed: 10G, pfc: off", "pfc"),
    ] {
        let errors = with(settings);
        assert!(errors.contains(&format!("port `b` differs in `{key}` from `a`")), "{settings}: {errors}");
    }
}

#[test]
fn group_is_named_where_a_port_is_and_its_members_are_not() {
    let text = "lags: [{name: bond0, ports: [a, b]}]
fdb: {static: [{mac: 02:00:00:00:00:07, port: bond0}]}
";
    assert_eq!(accept(text).switch.fdb.entries[0].port, 0);
    refuse(&text.replace("port: bond0", "port: b"), "port `b` is a member of `bond0`; write `bond0`");
    refuse(&text.replace("port: bond0", "port: bond"), "there is no port `bond`; write `bond0`");

    let text = "lags: [{name: bond0, ports: [a, b]}]
routing: {interfaces: [{port: bond0, addresses: [10.0.0.1/24]}, {port: c, addresses: [10.0.1.1/24]}]}
";
    let switch = accept(text).switch;
    let interfaces = &switch.routing.as_ref().expect("a router").interfaces;
    assert_eq!((interfaces[0].name.as_str(), interfaces[0].attachment), ("bond0", Attachment::Port(0)));
    assert_eq!(interfaces[0].ports, PortSet::only(0));
    assert!(matches!(switch.ports[1].vlan, VlanMode::Routed(_)) && switch.ports[0].vlan == switch.ports[1].vlan);
    assert_ne!(switch.ports[0].vlan, switch.ports[2].vlan);
    refuse(&text.replace("port: bond0", "port: a"), "port `a` is a member of `bond0`; write `bond0`");
}

#[test]
fn simulated_switch_has_groups_without_negotiation() {
    let text =
        "{preset: roce, ports: [{name: a, speed: 10G}, {name: b, speed: 10G}], lags: [{name: x, ports: [a, b]}]}";
    let overrides = Overrides { simulated: true, ..Overrides::default() };
    let config = overrides.parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(!config.switch.lags.groups[0].is_negotiated);
}
