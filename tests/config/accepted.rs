//! Valid configurations and the switch that they describe.

use holdfast::config::{DeviceKind, settings};
use holdfast::hosts::{FlowPattern, FlowTarget};
use holdfast::mmu::Threshold;
use holdfast::qos::QueueDiscipline;
use holdfast::sets::ClassSet;
use holdfast::units::{Alpha, Bytes};
use holdfast::verify::replay::{Ecn, Frame, Replay};

use super::*;

#[test]
fn description_of_a_port_is_kept_as_written() {
    let text = "ports: [{name: a, device: net_null0, speed: 10G, description: \"rack 7, server 3 \u{2014} cable 12\"}]";
    let config = accept(text);
    assert_eq!(config.switch.ports[0].live.description, "rack 7, server 3 \u{2014} cable 12");
    assert_eq!(settings::all(&config).get(Some("a"), "description").map(|setting| setting.is_live), Some(true));
}

#[test]
fn the_embedded_default_is_the_incast() {
    let config = config::embedded();
    assert_eq!(config.source, "<embedded>");
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert!(config.devices.iter().all(|device| device.kind == DeviceKind::Ring));
    assert_eq!((config.switch.ports.len(), config.hosts.len()), (5, 5));
    assert_eq!(config.switch.lossless_groups(), ClassSet::only(3));
    let classes: Vec<u8> = config.hosts.iter().flat_map(|host| &host.flows).map(|flow| flow.class).collect();
    assert_eq!(classes, [3, 0, 3, 3, 3]);
    assert!(config.hosts.iter().flat_map(|host| &host.flows).all(|flow| flow.to == FlowTarget::Host(4)));
}

#[test]
fn every_example_configuration_is_accepted() {
    let mut files = 0;
    for entry in std::fs::read_dir(conf_dir()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let config = config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
            check_sums(&config);
            files += 1;
        }
    }
    assert!(files >= 3);
}

#[test]
fn without_a_preset_all_is_lossy_with_weight_one() {
    let config = accept(PORTS);
    assert_eq!(config.switch.lossless_groups(), ClassSet::EMPTY);
    assert_eq!(config.switch.buffer.headroom, Cells(0));
    for queue in &config.switch.queues {
        assert_eq!(queue.discipline, QueueDiscipline::Dwrr { weight: 1 });
        assert!(queue.limit.is_some() && queue.wred.is_none());
    }
}

#[test]
fn classes_override_the_preset_key_by_key() {
    let config = accept(&format!(
        "preset: roce\n{PORTS}classes: {{3: {{alpha: 1/8, reserve: 0}}, 4: {{lossless: true, limit: 416000}}}}\n"
    ));
    let groups = &config.switch.ports[0].buffer.groups;
    assert_eq!(groups[3].threshold, Threshold::Dynamic(Alpha::from_exponent(-3).unwrap()));
    assert_eq!(groups[3].reserve, Cells(0));
    assert!(config.switch.queues[3].wred.is_some(), "what is not named stays");
    assert_eq!(groups[4].threshold, Threshold::Static(Cells(2000)));
    assert_eq!(groups[4].headroom, groups[3].headroom);
    assert_eq!(config.switch.lossless_groups(), ClassSet::from_bits(0b1_1000));
}

#[test]
fn a_lossless_class_of_the_preset_can_be_made_lossy() {
    let config = accept(&format!("preset: roce\n{PORTS}classes: {{3: {{lossless: false}}}}\n"));
    assert_eq!(config.switch.lossless_groups(), ClassSet::EMPTY);
    assert!(config.switch.queues[3].limit.is_some());
}

#[test]
fn quoted_quantities_and_explicit_pool_sizes_are_accepted() {
    let config = accept(&format!("{PORTS}buffer: {{size: \"2080000\", cell: '208', lossy: 25%, shared: 208000}}\n"));
    let buffer = &config.switch.buffer;
    assert_eq!((buffer.total, buffer.cell), (Cells(10_000), Bytes(208)));
    assert_eq!((buffer.lossy_shared, buffer.lossless_shared), (Cells(2500), Cells(1000)));
}

#[test]
fn flow_class_follows_trust_and_maps_of_its_port() {
    let config = accept(
        "\
preset: roce
ports:
  - {name: p1, device: ring, speed: 10G, trust: pcp, class: 5, vlan: {tagged: [10-12], native: 2}}
  - {name: p2, device: ring, speed: 10G}
maps: {dscp: {0: 1}}
hosts:
  - name: h1
    port: p1
    flows:
      - {to: h2, dscp: 26, pcp: 3, vlan: 11}
      - {to: h2, dscp: 26, pcp: 3}
  - name: h2
    port: p2
    pfc: ignore
    flows:
      - {to: h1, kind: udp, pattern: {on: 1ms, off: 4ms}}
      - {to: {mac: 02:00:00:00:00:09, ip: 10.9.9.9}, rate: 1G}
",
    );
    let flows: Vec<_> = config.hosts.iter().flat_map(|host| &host.flows).collect();
    assert_eq!(flows.iter().map(|flow| flow.class).collect::<Vec<_>>(), [3, 5, 1, 3]);
    assert!(matches!(flows[2].pattern, FlowPattern::OnOff { .. }));
    assert!(matches!(flows[3].to, FlowTarget::Station { .. }));
    assert!(flows[0].ecn && !flows[2].ecn);
    assert!(!config.hosts[1].obeys_pfc);
}

#[test]
fn yaml_anchors_and_merge_keys_are_accepted() {
    let config = accept(
        "\
ports:
  - &port {name: p1, device: net_null0, speed: 10G, mtu: 9000}
  - {<<: *port, name: p2, device: net_null1}
",
    );
    assert_eq!(config.switch.ports[1].mtu, 9000);
    assert_eq!(config.switch.ports[1].name, "p2");
}

/// The policies leave different amounts of shared buffer for bursts. docs/headroom.md has these figures.
#[test]
fn the_incast_of_many_classes_is_accepted_under_each_policy() {
    let text = std::fs::read_to_string(conf_dir().join("incast-classes.yaml")).unwrap();
    let absorbed = |policy| {
        let overrides = config::Overrides { headroom: Some(policy), ..config::Overrides::default() };
        let config = overrides.parse("x.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        assert_eq!(config.switch.buffer.policy, policy);
        check_sums(&config);
        let buffer = &config.switch.buffer;
        (buffer.headroom.0, buffer.lossless_shared.0, frames_before_xoff(&config))
    };
    assert_eq!(absorbed(HeadroomPolicy::Independent), (17_150, 1_237, 234));
    assert_eq!(absorbed(HeadroomPolicy::SharedPool), (8_575, 8_740, 1_567));
    assert_eq!(absorbed(HeadroomPolicy::Dynamic), (3_430, 13_242, 2_246));
}

/// Counts the frames of a burst before the first XOFF. Four ports send in turn to a fifth, which transmits one frame
/// for every four that arrive.
fn frames_before_xoff(config: &Config) -> usize {
    let mut replay = Replay::new(&config.switch);
    for arrived in 0.. {
        let decision = replay.arrive(Frame { port: arrived % 4, class: 3, bytes: 1078, egress: 4, ecn: Ecn::Ect0 });
        if !decision.transitions.is_empty() {
            return arrived;
        }
        if arrived % 4 == 3 {
            replay.depart(4, Some(3));
        }
    }
    unreachable!("a buffer has an end")
}

#[test]
fn slow_peer_response_increases_headroom() {
    let eta = |keys: &str| {
        let text = format!("preset: roce\nports: [{{name: p1, device: net_tap0, speed: 10G{keys}}}]\n");
        accept(&text).switch.ports[0].buffer.groups[3].headroom.0
    };
    // 60 quanta are 3.072 us at 10G. A longer response adds shortest frames: one cell for each 84 B in 30 us less 3.072
    // us.
    assert_eq!(eta(", peer_response: 3072ns"), eta(""));
    assert!((eta("") + 400..eta("") + 402).contains(&eta(", peer_response: 30us")));
    assert_eq!(eta(", peer_response: 0ns"), eta(""), "never less than the seed has");
}
