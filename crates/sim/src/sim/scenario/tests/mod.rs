//! Tests of the scenario reader: results, and refused texts.

mod garbage;
mod mmu;
mod refused;
mod variants;
mod workloads;

use std::net::Ipv4Addr;

use super::*;
use crate::hosts::FlowKind;
use crate::mmu::HeadroomPolicy;
use crate::sets::ClassSet;
use crate::sim::control::ControlSpec;
use crate::sim::control::dcqcn::DcqcnSpec;
use crate::sim::spec::{
    End, FaultKind, FrameSizes, HostNode, Load, Lost, MessageSize, PollSpec, PortRef, ReceiverSpec, Way,
};
use crate::sim::workload::Distribution;
use crate::units::{BitRate, Bytes, Cells, Length, Nanos};
use crate::wire::MacAddr;

/// A scenario with every key.
const EVERYTHING: &str = include_str!("everything.yaml");

/// A switch with three hosts.
const STAR: &str = "\
duration: 1ms
switches:
  - name: tor
    config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}]}
hosts:
  - {name: h*, count: 3, at: tor.p*}
";

#[track_caller]
fn variants_of(text: &str) -> Vec<(String, Scenario)> {
    parse("x.yaml", text, None, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn accept(text: &str) -> Scenario {
    let mut variants = variants_of(text);
    assert_eq!(variants.len(), 1);
    let (name, scenario) = variants.remove(0);
    assert_eq!(name, "");
    scenario
}

#[track_caller]
fn errors_of(text: &str) -> String {
    parse("x.yaml", text, None, &Options::default()).expect_err("this scenario is wrong").to_string()
}

fn warnings_of(scenario: &Scenario) -> String {
    scenario.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn port(switch: usize, port: usize) -> PortRef {
    PortRef { switch, port }
}

#[test]
fn minimal_scenario_has_the_default_values() {
    let scenario = accept(STAR);
    assert_eq!((scenario.name.as_str(), scenario.source.as_str(), scenario.seed), ("x", "x.yaml", 1));
    assert_eq!((scenario.duration, scenario.drain), (Nanos(1_000_000), Nanos(2_000_000)));
    assert_eq!((scenario.sample, scenario.most_events), (Nanos(1_000), 1_000_000_000));
    assert_eq!(scenario.learning, Learning::Routes);
    assert_eq!(
        scenario.switches[0].poll,
        PollSpec { every: Nanos(1_000), frame: Nanos(0), shed: Nanos(0), jitter: Nanos(0) }
    );
    assert!(!scenario.switches[0].floods_lossless);
    assert_eq!(scenario.switches[0].config.switch.ports.len(), 4);
    assert_eq!(
        scenario.hosts[1],
        HostNode {
            name: "h2".to_owned(),
            mac: MacAddr::local(1, 1),
            ip: Ipv4Addr::new(10, 0, 0, 2),
            obeys_pfc: true,
            response: None,
            receiver: None,
            known: true,
        }
    );
    let link = &scenario.links[1];
    assert_eq!((link.name.as_str(), link.a, link.b), ("tor.p2-h2", End::Port(port(0, 1)), End::Host(1)));
    assert_eq!((link.rate, link.length), (BitRate(10_000_000_000), Length::metres(3)));
    assert!(scenario.flows.is_empty() && scenario.faults.is_empty() && scenario.watch.is_empty());
    assert_eq!(scenario.warnings, []);
}

#[test]
fn flow_with_two_keys_has_the_default_values() {
    let scenario = accept(&format!("{STAR}flows: [{{from: h1, to: h2}}, {{from: h1, to: h2, kind: udp}}]\n"));
    let [flow, other] = &scenario.flows[..] else { panic!("two flows") };
    assert_eq!((flow.name.as_str(), other.name.as_str()), ("h1-h2", "h1-h2/2"));
    assert_eq!((flow.from, flow.to, flow.kind), (0, 1, FlowKind::Roce));
    assert_eq!((flow.class, flow.priority, flow.lossless, flow.dscp, flow.ecn), (3, 3, true, 26, true));
    assert_eq!((flow.rate, flow.frames, flow.tag), (BitRate(10_000_000_000), FrameSizes::Fixed(1078), None));
    assert_eq!((flow.start, flow.stop, flow.load, flow.control), (Nanos(10_000), None, Load::Steady, None));
    assert_eq!((other.class, other.lossless, other.ecn, other.kind), (0, false, false, FlowKind::Udp));
}

#[test]
fn every_key_is_read() {
    let scenario = accept(EVERYTHING);
    assert_eq!((scenario.name.as_str(), scenario.seed, scenario.most_events), ("all of it", 7, 500_000_000));
    assert_eq!((scenario.drain, scenario.sample), (Nanos(3_000_000), Nanos(5_000)));
    assert_eq!(scenario.learning, Learning::Frames);
    assert_eq!(scenario.watch, [port(0, 4), port(1, 0)]);
    assert_eq!(scenario.columns, ["pauses", "h1-h2", "fairness"]);
    let poll = PollSpec { every: Nanos(2_000), frame: Nanos(50), shed: Nanos(17), jitter: Nanos(500) };
    assert_eq!((scenario.switches[0].poll, scenario.switches[1].floods_lossless), (poll, true));

    let names: Vec<&str> = scenario.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["s1", "s2", "h1", "h2", "h3", "h4", "slow"], "those of switches first");
    let slow = &scenario.hosts[6];
    assert_eq!((slow.obeys_pfc, slow.known, slow.response), (false, false, Some(Nanos(2_000))));
    let receiver = ReceiverSpec { rate: BitRate(2_000_000_000), xoff: Bytes(200_000), xon: Bytes(100_000) };
    assert_eq!((slow.receiver, slow.ip), (Some(receiver), Ipv4Addr::new(10, 9, 9, 9)));
    assert_eq!(slow.mac.to_string(), "02:00:00:00:00:99");
    let macs: std::collections::HashSet<MacAddr> = scenario.hosts.iter().map(|host| host.mac).collect();
    assert_eq!(macs.len(), 7);
    assert!(scenario.switches.iter().all(|switch| switch.config.hosts.is_empty()));
}

#[test]
fn every_cable_becomes_a_link() {
    let links = accept(EVERYTHING).links;
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let expected = "a.p1-s1 a.p2-s2 b.p1-h1 b.p2-h2 b.p3-h3 b.p4-h4 a.p5-slow a.up-b.up";
    assert_eq!(names.join(" "), expected);
    assert_eq!((links[6].length, links[7].length), (Length::metres(2), Length::metres(100)));
    assert_eq!((links[7].a, links[7].b), (End::Port(port(0, 5)), End::Port(port(1, 4))));
    assert_eq!(links[7].rate, BitRate(100_000_000_000));
}

#[test]
fn every_key_of_a_flow_is_read() {
    let flows = accept(EVERYTHING).flows;
    let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    let expected = "s1-s2 h1-h2 h4-h1 slow-s1 h1-slow h2-slow s1-h1 s1-h2 s2-h1 s2-h2 h1-h2/2 s1-s2/2";
    assert_eq!(names.join(" "), expected);
    assert_eq!(flows[0].load, Load::OnOff { on: Nanos(100_000), off: Nanos(50_000) }, "of the switch's host");
    assert_eq!(
        (flows[0].start, flows[0].kind, flows[0].frames),
        (Nanos(10_000), FlowKind::Udp, FrameSizes::Fixed(500))
    );
    let flow = &flows[3];
    assert_eq!((flow.rate, flow.frames), (BitRate(1_000_000_000), FrameSizes::Uniform(64, 1500)));
    assert_eq!((flow.dscp, flow.tag, flow.class, flow.lossless), (30, Some((1, 5)), 3, true));
    assert_eq!((flow.start, flow.stop), (Nanos(100_000), Some(Nanos(2_000_000))));
    assert_eq!(flows[4].frames, FrameSizes::Imix);
    let messages = |size, every, poisson, count| Load::Messages { size, every: Nanos(every), poisson, count };
    assert_eq!(flows[4].load, messages(MessageSize::Known(Distribution::WebSearch), 1_000_000, true, None));
    assert_eq!(flows[6].load, messages(MessageSize::Uniform(Bytes(1_000), Bytes(1_000_000)), 50_000, false, Some(9)));
    assert_eq!(flows[4].control, Some(ControlSpec::Dcqcn(DcqcnSpec::default())));
    assert_eq!(
        (flows[6].control, flows[10].load),
        (None, messages(MessageSize::Fixed(Bytes(1_000_000)), 10_000_000_000, false, Some(1)))
    );
    let Some(ControlSpec::Dcqcn(dcqcn)) = flows[11].control else { panic!("{:?}", flows[11].control) };
    assert_eq!((dcqcn.g_shift, dcqcn.fast_recovery, dcqcn.additive), (4, 3, BitRate(80_000_000)));
    assert_eq!(
        (dcqcn.cnp_interval, dcqcn.alpha_timer, dcqcn.increase_timer),
        (Nanos(4_000), Nanos(5_000), Nanos(6_000))
    );
    assert_eq!(
        (dcqcn.byte_counter, dcqcn.hyper, dcqcn.least),
        (Bytes(1 << 20), BitRate(1_000_000_000), BitRate(10_000_000))
    );
}

#[test]
fn every_kind_of_fault_is_read() {
    let faults = accept(EVERYTHING).faults;
    let kinds: Vec<FaultKind> = faults.iter().map(|fault| fault.kind).collect();
    let lose = |link, toward, what, per_million| FaultKind::Lose { link, toward, what, per_million };
    let receiver = ReceiverSpec { rate: BitRate(1_000_000_000), xoff: Bytes(9_000), xon: Bytes(8_000) };
    let expected = [
        FaultKind::LinkDown { link: 2 },
        FaultKind::LinkDown { link: 7 },
        lose(2, Some(Way::A), Lost::Data, 12_345),
        lose(2, Some(Way::B), Lost::Pfc, 1),
        lose(7, None, Lost::Any, 1_000_000),
        FaultKind::Storm { host: 2, priorities: ClassSet::only(3) },
        FaultKind::Storm { host: 2, priorities: ClassSet::from_bits(0b1001) },
        FaultKind::Dead { host: 3 },
        FaultKind::Late { host: 4, response: Nanos(10_000) },
        FaultKind::Slow { host: 5, receiver },
        FaultKind::Stall { switch: 0, lcore: Some(1) },
        FaultKind::Stall { switch: 1, lcore: None },
        FaultKind::Garbage { host: 2, rate: BitRate(1_000_000_000) },
        FaultKind::Shut { port: PortRef { switch: 1, port: 1 } },
    ];
    assert_eq!(kinds, expected);
    assert_eq!((faults[0].at, faults[0].until), (Nanos(1_000_000), Some(Nanos(1_200_000))));
    assert_eq!(faults[1].until, None);
}

#[test]
fn each_queue_pair_is_a_flow() {
    let flows = accept(&format!("{STAR}flows: [{{from: h1, to: [h2, h3], rate: 1G, queue_pairs: 2}}]\n")).flows;
    let names: Vec<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["h1-h2", "h1-h2/2", "h1-h3", "h1-h3/2"]);
    assert!(flows.iter().all(|flow| flow.rate == BitRate(1_000_000_000)));
}

#[test]
fn routed_scenario_has_addresses_routes_and_neighbours_of_its_topology() {
    let two = "\
duration: 1ms
forwarding: routed
hash_seed: 9
switches:
  - {name: a, config: {preset: roce, ports: [{name: p*, count: 2, speed: 10G}, {name: u*, count: 2, speed: 10G}]}}
  - {name: b, config: {preset: roce, ports: [{name: p*, count: 2, speed: 10G}, {name: u*, count: 2, speed: 10G}]}}
hosts: [{name: h, at: a.p2}, {name: g, at: b.p1}]
links: [{a: a.u*, b: b.u*, count: 2}]
";
    let scenario = accept(two);
    let settings = scenario.routed.map(|routed| (routed.hash_seed, routed.reroute));
    assert_eq!(settings, Some((9, Nanos(1_000_000))));
    assert_eq!(scenario.hosts[0].ip, Ipv4Addr::new(10, 1, 0, 3));
    let plan = scenario.switches[0].config.switch.routing.as_ref().expect("it routes");
    let addresses = plan.interfaces.iter().map(|of| format!("{} {}", of.name, of.addresses[0])).collect::<Vec<_>>();
    assert_eq!(addresses, ["u1 172.16.0.4/31", "u2 172.16.0.6/31", "vlan1 10.1.0.1/24"]);
    let hops = plan.routes[0].next_hops.iter().map(|hop| hop.address.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (plan.routes[0].prefix.to_string().as_str(), hops.join(" ").as_str()),
        ("10.2.0.0/24", "172.16.0.5 172.16.0.7")
    );
    let neighbours = plan.neighbours.iter().map(|of| format!("{} {}", of.address, of.mac)).collect::<Vec<_>>();
    assert_eq!(
        neighbours,
        ["172.16.0.5 02:48:46:02:00:01", "172.16.0.7 02:48:46:02:00:01", "10.1.0.3 02:48:46:01:00:00"]
    );
    let bridged = accept(&two.replace("forwarding: routed", "forwarding: bridged"));
    assert_eq!(bridged.routed, None);
    let expected =
        "x.yaml:3:12: hash_seed: has no effect on switches that bridge; write `forwarding: routed`, or remove it";
    assert_eq!(warnings_of(&bridged), expected);
}

#[test]
fn warning_that_not_every_variant_has_names_its_variant() {
    let warnings = |keys: &str| {
        let scenarios = variants_of(&format!("{STAR}{keys}\n"));
        scenarios.iter().map(|(_, scenario)| warnings_of(scenario)).collect::<Vec<_>>()
    };
    let some = warnings("variants: [{name: plain}, {name: seeded, hash_seed: 7}]");
    assert!(some[0].is_empty() && some[1].ends_with("or remove it (in variant `seeded`)"), "{some:?}");
    let all = warnings("hash_seed: 7\nvariants: [{name: a}, {name: b}]");
    assert!(all.iter().all(|warning| !warning.is_empty() && !warning.contains("in variant")), "{all:?}");
}

#[test]
fn questionable_settings_produce_warnings() {
    let text = format!(
        "{STAR}  - {{name: far, at: tor.p4, length: 300m}}\nflows:\n  - {{from: h1, to: h2, ecn: false, dcqcn: true, vlan: 7, start: 1s}}\n"
    );
    let text =
        text.replace("    config:", "    floods_lossless: true\n    poll: {every: 15us, jitter: 6us}\n    config:");
    insta::assert_snapshot!(warnings_of(&accept(&text)), @r"
    x.yaml:4:22: switches[0].floods_lossless: lossless frames to unknown stations are flooded, which can end in a deadlock; remove it unless the scenario tests that
    x.yaml:5:11: switches[0].poll: polls come up to 21us apart, and headroom is computed for 20us; write `lcores: {poll_gap: 21us}` in the switch's configuration, or poll more often
    x.yaml:9:37: hosts[3].length: headroom of tor.p4 is computed for 3m, and the cable has 300m; write `cable: 300m` there
    x.yaml:11:5: flows[0]: port tor.p1 drops frames of VLAN 7: it does not carry them
    x.yaml:11:43: flows[0].dcqcn: no switch marks the packets of this flow, which are not ECN-capable, so DCQCN never slows it down; write `ecn: true`
    x.yaml:11:65: flows[0].start: the flow starts at 1s, after hosts stop sending: the duration is 1ms; write an earlier time
    ");
}

#[test]
fn switch_keys_override_buffer_headroom_and_lcores_of_its_file() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("conf");
    let text = "\
duration: 1ms
switches: [{name: tor, file: incast.yaml}]
variants:
  - {name: as written}
  - {name: other, switches: [{name: tor, buffer: 20MiB, headroom: dynamic, lcores: 2}]}
";
    let read = |text: &str| parse("x.yaml", text, Some(&dir), &Options::default());
    let variants = read(text).unwrap_or_else(|errors| panic!("{errors}"));
    let plans = variants.iter().map(|(_, scenario)| {
        let config = &scenario.switches[0].config;
        (config.switch.buffer.total, config.switch.buffer.policy, config.switch.lcores)
    });
    let cells = |bytes: u32| Cells(bytes / 208);
    let expected = [(cells(12 << 20), HeadroomPolicy::Independent, 1), (cells(20 << 20), HeadroomPolicy::Dynamic, 2)];
    assert_eq!(plans.collect::<Vec<_>>(), expected);
    let wrong = text.replace("20MiB", "1kB").replace("dynamic", "none").replace("lcores: 2", "lcores: 17");
    let errors = read(&wrong).unwrap_err().to_string();
    for part in [
        "switches[0].buffer: `1kB` is out of range; write from 64KiB to 32GiB",
        "switches[0].headroom: `none`",
        "switches[0].lcores: `17` is not a count of lcores; write a whole number from 1 to 16",
    ] {
        assert!(errors.contains(part), "{part} is missing:\n{errors}");
    }
}

#[test]
fn example_configurations_can_be_simulated() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("conf");
    for (file, hosts, flows) in [("incast", 5, 5), ("incast-classes", 5, 4), ("tap-tor", 0, 0), ("nic-tor", 0, 0)] {
        let text = format!("duration: 1ms\nswitches: [{{name: tor, file: {file}.yaml}}]\n");
        let variants =
            parse("x.yaml", &text, Some(&dir), &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
        let scenario = &variants[0].1;
        assert_eq!((scenario.hosts.len(), scenario.links.len(), scenario.flows.len()), (hosts, hosts, flows), "{file}");
    }
}

#[test]
fn files_are_read_beside_the_scenario() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let path = dir.path().join("sub/two.yaml");
    std::fs::write(
        dir.path().join("tor.yaml"),
        "ports: [{name: p*, count: 2, speed: 1G}]\nhosts: [{name: a, port: p1}]\n",
    )
    .unwrap();
    std::fs::write(
        &path,
        "duration: 1ms\nswitches: [{name: tor, file: ../tor.yaml}]\nhosts: [{name: b, at: tor.p2}]\n",
    )
    .unwrap();
    let variants = load(&path, &Options { seed: Some(9) }).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((variants[0].1.name.as_str(), variants[0].1.seed, variants[0].1.hosts.len()), ("two", 9, 2));

    std::fs::write(dir.path().join("tor.yaml"), "ports: [{name: p1, speed: 1Q}]\n").unwrap();
    let errors = load(&path, &Options::default()).unwrap_err().to_string();
    let tor = dir.path().join("sub/../tor.yaml");
    assert_eq!(
        errors.lines().next().unwrap(),
        format!(
            "{}:1:27: ports[0].speed: `1Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s",
            tor.display()
        )
    );
    std::fs::remove_file(&tor).unwrap();
    let errors = load(&path, &Options::default()).unwrap_err().to_string();
    assert_eq!(
        errors,
        format!(
            "{}:2:30: switches[0].file: `../tor.yaml` cannot be read: No such file or directory; check the path and its permissions",
            path.display()
        )
    );
}
