use super::super::{embedded, parse};
use super::*;
use crate::dataplane::LiveConfig;
use crate::qos::WredProfile;

const SWITCH: &str = "
preset: roce
ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G}
";

fn found_between(running: &Config, wanted: &Config) -> Vec<Difference> {
    differences(&all(running), &all(wanted))
}

fn hash(config: &Config) -> u64 {
    all(config).fingerprint()
}

fn config(more: &str) -> Config {
    parse("test", &format!("{SWITCH}{more}")).unwrap_or_else(|errors| panic!("{errors}"))
}

fn lines(running: &Config, wanted: &Config) -> Vec<String> {
    let mark = |difference: &Difference| if difference.is_live { "live" } else { "restart" };
    found_between(running, wanted).iter().map(|difference| format!("{} {difference}", mark(difference))).collect()
}

#[test]
fn equal_configurations_have_no_differences() {
    assert_eq!(lines(&embedded(), &embedded()), [""; 0]);
    assert_eq!(lines(&config(""), &config("classes: {3: {lossless: true}}")), [""; 0], "the preset says so too");
}

#[test]
fn difference_common_to_all_ports_is_listed_once() {
    let lines = lines(&config(""), &config("classes: {3: {alpha: 1/32, scheduler: strict}}"));
    assert_eq!(lines, ["live classes.3.scheduler: weight 4 -> strict", "live a, b: classes.3.alpha: 1/4 -> 1/32"]);
}

#[test]
fn change_of_limit_kind_is_two_differences() {
    let lines = lines(&config(""), &config("classes: {3: {limit: 100KiB}}"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.contains(&"live a, b: classes.3.alpha: 1/4 -> none".to_owned()), "{lines:?}");
}

const HOSTS: &str = "
preset: roce
ports:
  - {name: a, device: ring, speed: 10G}
  - {name: b, device: ring, speed: 10G}
";

/// People search their file for the key and the value, so no internal word of the program may appear.
#[test]
fn differences_use_keys_and_values_of_the_yaml_file() {
    let parse = |more: &str| parse("test", &format!("{HOSTS}{more}")).unwrap_or_else(|errors| panic!("{errors}"));
    let base = parse(
        "
hosts:
  - {name: ha, port: a, flows: [{to: hb, rate: 1G}, {to: {mac: '02:00:00:00:00:09', ip: 10.0.0.9}, kind: udp}]}
  - {name: hb, port: b}
fdb: {static: [{mac: '02:00:00:00:00:01', port: a}, {mac: '02:00:00:00:00:02', port: a}]}
api: {socket: /run/s}
",
    );
    let wanted = parse(
        "
hosts:
  - {name: ha, port: a, pfc: ignore, flows: [{to: hc, rate: 2G, pattern: {on: 1ms, off: 4ms}}]}
  - {name: hc, port: b}
fdb: {static: [{mac: '02:00:00:00:00:02', port: b}, {mac: '02:00:00:00:00:03', port: a, vlan: 1}]}
lcores: {idle: {wait: sleep, lossless: false}, dataplane: [1, 2], hosts: own}
api: {socket: off}
",
    );
    let lines = lines(&base, &wanted);
    let expected = [
        "restart api.socket: /run/s -> off",
        "live fdb.static.02:00:00:00:00:01 in VLAN 1: port a -> none",
        "live fdb.static.02:00:00:00:00:02 in VLAN 1: port a -> port b",
        "live fdb.static.02:00:00:00:00:03 in VLAN 1: none -> port a",
        "restart hosts.ha.flows[0]: {to: hb, kind: roce, rate: 1G, frame: 1078, dscp: 26, ecn: true, pattern: steady} -> \
         {to: hc, kind: roce, rate: 2G, frame: 1078, dscp: 26, ecn: true, pattern: {on: 1ms, off: 4ms}}",
        "restart hosts.ha.flows[1]: {to: {mac: 02:00:00:00:00:09, ip: 10.0.0.9}, kind: udp, rate: 10G, frame: 1078, \
         dscp: 0, ecn: false, pattern: steady} -> none",
        "restart hosts.ha: {port: a, mac: 02:48:46:01:00:00, ip: 10.0.0.1, pfc: obey} -> {port: a, mac: \
         02:48:46:01:00:00, ip: 10.0.0.1, pfc: ignore}",
        "restart hosts.hb: {port: b, mac: 02:48:46:01:00:01, ip: 10.0.0.2, pfc: obey} -> none",
        "restart lcores.count: 1 -> 2",
        "restart lcores.dataplane: chosen -> [1, 2]",
        "restart lcores.hosts: with-switch -> own",
        "restart lcores.idle: poll -> {wait: sleep, after: 50us, longest: 100us, wake: 50us, lossless: false}",
    ];
    for line in expected {
        assert!(lines.iter().any(|lines| lines == line), "{line}\nis not in\n{}", lines.join("\n"));
    }
    // The debug output of Rust types contains parentheses or quotes.
    assert_eq!(lines.iter().find(|line| line.contains(['(', '"'])), None);
    // A host uses the priority that the maps had at its start.
    let mapped = parse(
        "
hosts: [{name: ha, port: a, flows: [{to: hb}]}, {name: hb, port: b}]
maps: {dscp: {26: 0}}
",
    );
    let hosts = parse("hosts: [{name: ha, port: a, flows: [{to: hb}]}, {name: hb, port: b}]");
    let lines = found_between(&hosts, &mapped);
    let flow = lines.iter().find(|found| !found.is_live).expect("a restart").to_string();
    assert!(flow.starts_with("hosts.ha.flows[0]: {to: hb") && flow.contains("(class 3, priority 3, "), "{flow}");
}

#[test]
fn vlans_of_a_port_that_bridges_are_live_and_those_of_a_routed_one_are_not() {
    let with = |vlan: &str, more: &str| {
        let ports = SWITCH.replace("net_null1, speed: 10G", &format!("net_null1, speed: 10G{vlan}"));
        parse("test", &format!("{ports}{more}")).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let (plain, trunk) = (with("", ""), with(", vlan: {tagged: [7, 8], native: 3}", ""));
    let found = lines(&plain, &trunk);
    assert!(found.len() == 1 && found[0].starts_with("live b: vlan: 1 -> "), "{found:?}");
    let change = LiveConfig::between(&plain.switch, &trunk.switch, 1_000_000_000);
    assert!(change.is_some(), "a trunk instead of an access port");
    let routed = with("", "routing: {interfaces: [{port: b, addresses: [10.0.1.1/31]}]}");
    let found = lines(&plain, &routed);
    assert!(found.iter().any(|line| line.starts_with("restart b: vlan: ")), "{found:?}");
}

#[test]
fn static_entries_have_no_order() {
    let entries = ["{mac: '02:00:00:00:00:01', port: a}", "{mac: '02:00:00:00:00:02', port: b}"];
    let of =
        |first: usize, second: usize| config(&format!("fdb: {{static: [{}, {}]}}", entries[first], entries[second]));
    assert_eq!(lines(&of(0, 1), &of(1, 0)), [""; 0]);
    assert_eq!(of(0, 1).switch, of(1, 0).switch);
}

/// Each case: the change, the key of the difference, and whether it is live.
#[test]
fn each_change_is_named_and_only_live_ones_can_be_made() {
    let base = config("");
    let cases = [
        ("classes: {1: {ecn: {kmin: 10KiB, kmax: 20KiB, pmax: 5%}}}", "classes.1.ecn", true),
        ("classes: {1: {queue_alpha: 1/2}}", "classes.1.queue_alpha", true),
        ("classes: {3: {xon_offset: 50KiB}}", "classes.3.xon_offset", true),
        ("maps: {dscp: {46: 5, 40: 1}}", "maps.dscp.40", true),
        ("watchdog: {detection: 300ms, restoration: 300ms, action: forward}", "watchdog", true),
        ("stuck_after: 1s", "stuck_after", true),
        ("maps: {roce: {ack: 6}}", "maps.roce.ack", true),
        ("maps: {roce: {cnp: 5}}", "maps.roce.cnp", true),
        ("classes: {1: {max_rate: 1G}}", "classes.1.max_rate", true),
        ("classes: {1: {max_rate: {rate: 1G, burst: 9kB}}}", "classes.1.max_rate", true),
        ("lldp: off", "lldp", true),
        ("loop_guard: alert", "loop_guard", true),
        ("loop_probe: 5s", "loop_probe", true),
        ("loop_probe: off", "loop_probe", true),
        ("storm_control: {unknown: 10kpps}", "storm_control.unknown", true),
        ("lldp: {name: tor1}", "lldp.name", true),
        ("lldp: {interval: 5s}", "lldp.interval", true),
        ("classes: {3: {headroom: 400KiB}}", "classes.3.headroom", true),
        ("classes: {3: {reserve: 20KiB}}", "classes.3.reserve", true),
        ("classes: {2: {lossless: true}}", "classes.2.lossless", true),
        ("classes: {3: {lossless: false}}", "classes.3.lossless", true),
        ("buffer: {size: 20MiB}", "buffer.size", false),
        ("buffer: {queue_policy: abm}", "buffer.queue_policy", false),
        ("fdb: {ageing: 20s}", "fdb.ageing", false),
        ("fdb: {static: [{mac: 02:00:00:00:00:01, port: a}]}", "fdb.static.02:00:00:00:00:01 in VLAN 1", true),
        ("filter: {l4_length: true}", "filter.l4_length", true),
        ("lcores: {poll_gap: 30us}", "lcores.poll_gap", false),
        ("metrics: 127.0.0.1:9999", "metrics", false),
        ("maps: {tc_to_queue: {1: 0}}", "maps.tc_to_queue.1", false),
    ];
    for (change, key, is_live) in cases {
        let wanted = config(change);
        let found = found_between(&base, &wanted);
        assert!(found.iter().any(|found| found.key == key && found.is_live == is_live), "{change}: {found:?}");
        assert_eq!(found.iter().all(|found| found.is_live), is_live, "{change}: {found:?}");
        let in_switch = base.switch != wanted.switch;
        let live_config = LiveConfig::between(&base.switch, &wanted.switch, 1_000_000_000);
        assert_eq!(live_config.is_some(), is_live || !in_switch, "{change}");
    }
}

/// A port is out while it takes these. A `ring` has a virtual host, which stays.
#[test]
fn device_and_rate_of_a_port_change_while_it_is_out() {
    let with = |first: &str, more: &str| {
        let ports = format!("ports: [{{name: a, {first}}}, {{name: b, device: net_null1, speed: 10G}}]");
        parse("test", &format!("{ports}\n{more}")).unwrap_or_else(|errors| panic!("{errors}"))
    };
    let found = |first: &str, second: &str, more: &str| {
        let found = found_between(&with(first, more), &with(second, more));
        let changes = found.iter().filter(|found| found.is_out);
        changes.map(|found| (found.key.clone(), found.is_live)).collect::<Vec<_>>()
    };
    let (null, nic) = ("device: net_null0, speed: 10G", "device: '0000:3b:00.0', speed: 10G");
    let keys = |keys: &[(&str, bool)]| keys.iter().map(|(key, is)| ((*key).to_owned(), *is)).collect::<Vec<_>>();
    assert_eq!(found(null, "device: none, speed: 10G", ""), keys(&[("device", true)]));
    assert_eq!(
        found(null, "device: net_null0, speed: 25G, mtu: 9000, pfc: off, tx_descriptors: 256", ""),
        keys(&[("descriptors", true), ("mtu", true), ("pfc", true), ("speed", true)])
    );
    assert_eq!(found(null, nic, ""), keys(&[("device", true)]));
    assert_eq!(
        found(nic, "device: '0000:3b:00.0', speed: 25G, mtu: 9000", ""),
        keys(&[("mtu", true), ("speed", true)])
    );
    let lag = "lags: [{name: l1, ports: [a, b], lacp: off}]";
    assert_eq!(found(null, "device: net_null7, speed: 10G", lag), keys(&[("device", true)]));
}

/// A port without a device has no part of the buffer.
#[test]
fn port_without_a_device_leaves_the_buffer_to_the_others() {
    let at = |device: &str| {
        let text = format!(
            "preset: roce\nports: [{{name: a, device: {device}, speed: 10G}}, {{name: b, device: net_null1, speed: 10G}}]"
        );
        parse("test", &text).unwrap_or_else(|errors| panic!("{errors}")).switch
    };
    let (absent, present) = (at("none"), at("net_null0"));
    let [without, with] = [&absent, &present].map(|switch| switch.buffer.headroom.0);
    assert!(without > 0 && with == 2 * without, "{without} {with}");
    assert_eq!(absent.ports[0].buffer.groups[3].headroom.0, 0);
    assert_eq!(absent.shut_ports(), crate::sets::PortSet::only(0));
    assert_eq!(absent.ports[0].lossless_groups(), present.ports[0].lossless_groups());
}

/// A joint port gets one owner with its first maximum rate.
#[test]
fn maximum_rates_of_joint_ports_need_a_restart() {
    for (lcores, is_live) in [(1, true), (2, false)] {
        let at = |keys: &str| {
            let ports = "[{name: a, device: ring, speed: 10G}, {name: b, device: ring, speed: 10G}]";
            let hosts = "[{name: h1, port: a}, {name: h2, port: b}]";
            let text = format!("lcores: {{count: {lcores}}}\nports: {ports}\nhosts: {hosts}\n{keys}");
            parse("x.yaml", &text).expect("a configuration")
        };
        let (base, wanted) = (at(""), at("classes: {1: {max_rate: 1G}}\n"));
        let found = found_between(&base, &wanted);
        assert_eq!((found.len(), found[0].is_live), (1, is_live));
        assert_eq!(found[0].to_string(), "a, b: classes.1.max_rate: off -> 1G, burst 5.19KiB");
        assert_eq!(LiveConfig::between(&base.switch, &wanted.switch, 1_000_000_000).is_some(), is_live);
    }
}

/// The burst of a maximum rate follows the weight of its class. The port has one owner before and after.
#[test]
fn scheduler_of_a_limited_queue_is_live_at_a_port_that_stays_owned() {
    let at = |class: &str, more: &str| {
        let ports = "[{name: a, device: ring, speed: 10G}, {name: b, device: ring, speed: 10G}]";
        let hosts = "[{name: h1, port: a}, {name: h2, port: b}]";
        let text = format!("lcores: {{count: 2}}\nports: {ports}\nhosts: {hosts}\nclasses: {{{class}}}\n{more}");
        parse("x.yaml", &text).expect("a configuration")
    };
    let is_live = |base: &Config, wanted: &Config| {
        let found = found_between(base, wanted);
        assert!(!found.is_empty());
        let is_live = found.iter().all(|found| found.is_live);
        assert_eq!(LiveConfig::between(&base.switch, &wanted.switch, 1_000_000_000).is_some(), is_live, "{found:?}");
        is_live
    };
    let base = at("1: {max_rate: 1G, scheduler: {weight: 2}}", "");
    assert!(base.switch.joint_ports().is_empty());
    let faster = at("1: {max_rate: 1G, scheduler: {weight: 50}}", "");
    assert_ne!(base.switch.ports[0].live.max_rates, faster.switch.ports[0].live.max_rates, "the burst is another one");
    assert!(is_live(&base, &faster));
    assert!(is_live(&base, &at("1: {max_rate: 1G, scheduler: {weight: 2}}, 2: {max_rate: 2G}", "")));
    assert!(!is_live(&base, &at("1: {scheduler: {weight: 2}}", "")), "the ports become joint");
}

/// Class 1 waits in queue 0, so that queue 1 and its maximum do not exist.
#[test]
fn maximum_rate_of_a_class_without_a_queue_of_its_own_leaves_ports_joint() {
    let ports = "[{name: a, device: ring, speed: 10G, max_rate: {1: 1G}}, {name: b, device: ring, speed: 10G}]";
    let hosts = "[{name: h1, port: a}, {name: h2, port: b}]";
    let of = |maps: &str| {
        let text = format!("lcores: {{count: 2}}\nports: {ports}\nhosts: {hosts}\n{maps}\n");
        parse("x.yaml", &text).expect("a configuration")
    };
    let config = of("maps: {tc_to_queue: {1: 0}}");
    assert!(config.warnings.iter().any(|warning| warning.to_string().contains("this has no effect")));
    assert_eq!((config.switch.joint_ports().len(), of("").switch.joint_ports().len()), (2, 1));
}

#[test]
fn marks_of_a_nic_with_flow_rules_need_a_restart() {
    let at = |queues: u8, keys: &str| {
        let port = format!("ports: [{{name: a, device: '0000:3b:00.0', speed: 10G, queues: {queues}{keys}}}]");
        parse("x.yaml", &format!("preset: roce\n{port}\n")).expect("a configuration")
    };
    for (keys, key) in [(", trust: pcp", "trust"), (", class: 1", "class"), (", maps: {dscp: {46: 3}}", "maps.dscp.46")]
    {
        for queues in [1, 2] {
            let found = found_between(&at(queues, ""), &at(queues, keys));
            let found = found.iter().find(|found| found.key.ends_with(key)).expect("a difference");
            assert_eq!(found.is_live, queues == 1, "{keys}");
        }
    }
}

/// Every difference in the plan is a difference in a setting: nothing changes, or is refused, without a name.
#[test]
fn every_change_of_the_plan_has_a_named_difference() {
    let base = config("");
    let changes: [fn(&mut Config); 15] = [
        |config| config.switch.ports[0].rate.0 += 1_000_000_000,
        |config| config.switch.ports[0].mtu += 1,
        |config| config.switch.ports[0].mac = crate::wire::MacAddr::local(9, 9),
        |config| config.switch.ports[1].live.port_class = 2,
        |config| config.switch.ports[1].live.rewrite.pcp[3] = Some(4),
        |config| config.switch.ports[1].buffer.insurance.0 += 1,
        |config| config.switch.ports[1].buffer.reserve[1].0 += 1,
        |config| config.switch.ports[1].backlog_mark = Some(9),
        |config| config.switch.ports[1].live.stuck_after = None,
        |config| config.switch.queues[2].reserve.0 += 1,
        |config| config.switch.classes.pfc_to_queue[0] = 1,
        |config| config.switch.buffer.reserves.0 += 1,
        |config| config.devices[0].tx_descriptors *= 2,
        |config| config.devices[0].pfc_proven = true,
        |config| config.eal.args.push("--no-pci".to_owned()),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut wanted = base.clone();
        change(&mut wanted);
        assert_eq!(found_between(&base, &wanted).len(), 1, "change {index}: {:?}", found_between(&base, &wanted));
    }
    let mut fewer = base.clone();
    fewer.switch.ports.pop();
    fewer.devices.pop();
    assert!(lines(&base, &fewer).contains(&"restart ports: a, b -> a".to_owned()));
}

#[test]
fn fingerprint_changes_with_settings_only() {
    let base = hash(&config(""));
    assert_eq!(hash(&config("classes: {3: {lossless: true}}")), base, "the preset says so too");
    let changes = [
        "classes: {3: {alpha: 1/32}}",
        "buffer: {size: 20MiB}",
        "lcores: {poll_gap: 30us}",
        "metrics: 127.0.0.1:9999",
        "eal: {args: [--log-level=8]}",
        "api: off",
    ];
    let mut all: Vec<u64> = changes.iter().map(|change| hash(&config(change))).chain([base]).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), changes.len() + 1);
    // A device's own address is not a setting; a written one is.
    let mut other = config("");
    other.switch.ports[0].mac = crate::wire::MacAddr::local(9, 9);
    assert_eq!(hash(&other), base);
    other.devices[0].has_mac = true;
    assert_ne!(hash(&other), base);
}

/// The text for people is rounded; the compared value is exact.
#[test]
fn the_least_change_is_a_difference() {
    let base = config("classes: {1: {ecn: {kmin: 10KiB, kmax: 20KiB, pmax: 20%}}}");
    let changes: [fn(&mut Config); 9] = [
        |config| {
            let wred = config.switch.queues[1].wred.expect("ECN");
            config.switch.queues[1].wred =
                WredProfile::new(wred.kmin, wred.kmax, crate::units::Probability(wred.pmax.0 + 1));
        },
        |config| config.switch.fdb.ageing.0 += 1,
        |config| config.switch.ports[0].rate.0 += 1,
        |config| config.switch.buffer.total.0 += 1,
        |config| config.switch.buffer.lossy_shared.0 += 1,
        |config| config.switch.ports[0].buffer.groups[3].headroom.0 += 1,
        |config| config.switch.ports[0].buffer.groups[3].xon_offset.0 += 1,
        |config| config.lcores.poll_gap.0 += 1,
        |config| config.devices[0].cable.mm += 1,
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut wanted = base.clone();
        change(&mut wanted);
        let found = found_between(&base, &wanted);
        assert_eq!(found.len(), 1, "change {index}: {found:?}");
        assert_ne!(found[0].before, found[0].after, "change {index}");
        // The values are exact and have units.
        let text = found[0].to_string();
        assert!(!text.contains('('), "change {index}: {text}");
    }
}

const ROUTING: &str = "
routing:
  interfaces: [{port: a, addresses: [10.0.1.1/31]}, {vlan: 1, addresses: [10.0.2.1/24]}]
  routes: [{to: 0.0.0.0/0, via: [10.0.1.0]}]
";

/// Each case: the text that is replaced, the new text, and the differences.
#[test]
fn each_change_of_routing_is_named_and_only_live_ones_can_be_made() {
    let base = config(ROUTING);
    let cases: [(&str, &str, &[&str]); 8] = [
        (
            "[10.0.1.0]",
            "[10.0.1.0, {gateway: 10.0.2.9, weight: 2}]",
            &["live routing.routes.0.0.0.0/0: [{gateway: 10.0.1.0, interface: a, weight: 1}] -> [{gateway: 10.0.1.0, \
               interface: a, weight: 1}, {gateway: 10.0.2.9, interface: vlan1, weight: 2}]"],
        ),
        (
            "[{to: 0.0.0.0/0, via: [10.0.1.0]}]",
            "[{to: 10.9.0.0/16, drop: true}]",
            &[
                "live routing.routes.0.0.0.0/0: [{gateway: 10.0.1.0, interface: a, weight: 1}] -> none",
                "live routing.routes.10.9.0.0/16: none -> drop",
            ],
        ),
        (
            "  routes",
            "  neighbours: [{address: 10.0.1.0, mac: '02:00:00:00:00:01'}]\n  routes",
            &["live routing.neighbours.a.10.0.1.0: none -> 02:00:00:00:00:01"],
        ),
        (
            "[10.0.2.1/24]",
            "[10.0.2.2/24]",
            &["live routing.interfaces.vlan1.addresses: [10.0.2.1/24] -> [10.0.2.2/24]"],
        ),
        (
            "{vlan: 1, ",
            "{vlan: 1, mac: '02:00:00:00:00:01', ",
            &["restart routing.interfaces.vlan1: {vlan: 1, mac: of the port} -> {vlan: 1, mac: 02:00:00:00:00:01}"],
        ),
        (
            "  routes",
            "  hash: {seed: 7}\n  routes",
            &["restart routing.hash: {seed: from the first port, symmetric: false} -> {seed: 7, symmetric: false}"],
        ),
        (
            "  routes",
            "  fib: {ipv4: 2048}\n  routes",
            &["restart routing.fib: {ipv4: 65536, ipv6: 16384} -> {ipv4: 2048, ipv6: 16384}"],
        ),
        (
            ", {vlan: 1, addresses: [10.0.2.1/24]}",
            "",
            &[
                "restart routing.interfaces.vlan1: {vlan: 1, mac: of the port} -> none",
                "live routing.interfaces.vlan1.addresses: [10.0.2.1/24] -> none",
            ],
        ),
    ];
    for (from, to, expected) in cases {
        let wanted = config(&ROUTING.replacen(from, to, 1));
        let found = lines(&base, &wanted);
        assert_eq!(found, expected, "{to}");
        let is_live = found.iter().all(|line| line.starts_with("live"));
        assert_eq!(LiveConfig::between(&base.switch, &wanted.switch, 1_000_000_000).is_some(), is_live, "{to}");
    }
    let bridge = lines(&base, &config(""));
    assert!(bridge.contains(&"restart a: vlan: routed, internal 4094 -> 1".to_owned()), "{bridge:?}");
}

/// A NIC's own address is known only at start.
#[test]
fn fingerprint_of_a_router_does_not_depend_on_the_address_of_a_nic() {
    let mut config = config(ROUTING);
    let base = hash(&config);
    config.switch.ports[0].mac = crate::wire::MacAddr::local(9, 9);
    config.follow_ports();
    assert_eq!(hash(&config), base);
}

const MONITORED: &str = "
  - {name: mon, device: net_null2, speed: 10G}
  - {name: mon2, device: net_null3, speed: 10G}
mirrors:
  - {name: losses, copy: dropped, to: {file: /d, size: 64MiB}}
  - {name: taps, sample: 1000, ports: a, to: {port: mon}}
sflow: {collectors: [10.0.0.9], agent: 10.0.0.1}
";

#[test]
fn mirrors_and_sflow_change_live_and_their_ports_by_a_restart() {
    let base = config(MONITORED);
    let cases: [(&str, &str, &[&str]); 7] = [
        (
            "copy: dropped",
            "copy: [marked, dropped], reasons: wred, classes: [3, 4]",
            &[
                "live mirrors.losses: {copy: [dropped], bytes: 128, rate: 1000, to: {file: /d, size: 64MiB, files: 2}} -> \
               {copy: [dropped, marked], reasons: [wred], classes: [3, 4], bytes: 128, rate: 1000, to: {file: /d, size: \
               64MiB, files: 2}}",
            ],
        ),
        (
            "64MiB",
            "67108865B",
            &[
                "live mirrors.losses: {copy: [dropped], bytes: 128, rate: 1000, to: {file: /d, size: 67108864B, files: 2}} \
               -> {copy: [dropped], bytes: 128, rate: 1000, to: {file: /d, size: 67108865B, files: 2}}",
            ],
        ),
        (
            "ports: a",
            "ports: b, bytes: 64",
            &[
                "live mirrors.taps: {sample: 1000, ports: [a], bytes: 1518, rate: 1000, to: {port: mon, trailer: true}} -> \
               {sample: 1000, ports: [b], bytes: 64, rate: 1000, to: {port: mon, trailer: true}}",
            ],
        ),
        (
            "  - {name: losses, copy: dropped, to: {file: /d, size: 64MiB}}\n",
            "",
            &[
                "live mirrors.losses: {copy: [dropped], bytes: 128, rate: 1000, to: {file: /d, size: 64MiB, files: 2}} -> \
               none",
            ],
        ),
        (
            "agent: 10.0.0.1",
            "agent: 10.0.0.1, marks: 5, poll: off",
            &[
                "live sflow: {collectors: [10.0.0.9:6343], agent: 10.0.0.1, sample: 10000, poll: 20s, drops: 100, marks: \
               off, bytes: 128} -> {collectors: [10.0.0.9:6343], agent: 10.0.0.1, sample: 10000, poll: off, drops: \
               100, marks: 5, bytes: 128}",
            ],
        ),
        (
            "{collectors: [10.0.0.9], agent: 10.0.0.1}",
            "off",
            &[
                "live sflow: {collectors: [10.0.0.9:6343], agent: 10.0.0.1, sample: 10000, poll: 20s, drops: 100, marks: \
               off, bytes: 128} -> off",
            ],
        ),
        ("port: mon}", "port: mon2}", &["restart ports of mirrors: mon -> mon2"]),
    ];
    for (from, to, expected) in cases {
        let found = lines(&base, &config(&MONITORED.replacen(from, to, 1)));
        if to == "port: mon2}" {
            assert!(found.contains(&expected[0].to_owned()), "{found:?}");
        } else {
            assert_eq!(found, expected, "{to}");
        }
    }
    assert_eq!(lines(&base, &base), [""; 0]);
}
