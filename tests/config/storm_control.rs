//! `storm_control` of the switch and of ports.

use holdfast::config;
use holdfast::units::PacketRate;

const PORTS: &str = "ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G, storm_control: {broadcast: off, unknown: 2kpps}}
  - {name: c, device: net_null2, speed: 10G, storm_control: off}
";

#[test]
fn port_overrides_the_flood_limits_of_the_switch_key_by_key() {
    let limits = |more: &str| {
        let config = config::parse("x.yaml", &format!("{PORTS}{more}")).unwrap_or_else(|errors| panic!("{errors}"));
        config
            .switch
            .ports
            .iter()
            .map(|port| port.live.flood_limits.map(|rate| rate.map(|rate| rate.0)))
            .collect::<Vec<_>>()
    };
    assert_eq!(limits(""), [[None; 3], [None, None, Some(2_000)], [None; 3]]);
    assert_eq!(limits("storm_control: off"), limits(""));
    let all = limits("storm_control: {broadcast: 500pps, multicast: 1Mpps}");
    assert_eq!(all, [[Some(500), Some(1_000_000), None], [None, Some(1_000_000), Some(2_000)], [None; 3]]);
}

#[test]
fn wrong_flood_limits_are_refused_with_a_remedy() {
    for (value, words) in [
        ("{broadcast: 500}", "`500` is not a rate of packets; write e.g. 500pps, 10kpps or 1Mpps"),
        ("{broadcast: 0pps}", "`0pps` is not a rate of packets"),
        ("{unknown: 5Gpps}", "`5Gpps` is not a rate of packets"),
        ("{unkown: 5pps}", "did you mean `unknown`?"),
    ] {
        let errors = config::parse("x.yaml", &format!("{PORTS}storm_control: {value}")).expect_err(value).to_string();
        assert!(errors.contains(words), "{value}: {errors}");
    }
}

#[test]
fn rate_of_packets_is_shown_as_it_is_written() {
    for text in ["1pps", "999pps", "1kpps", "1500pps", "12Mpps"] {
        assert_eq!(text.parse::<PacketRate>().expect("a rate").to_string(), text);
    }
}
