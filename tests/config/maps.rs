//! Maps and rewriting under the rules of PFC: accepted, warned of, and refused word for word.

use holdfast::qos::{ClassMap, MarkMap};
use holdfast::sets::ClassSet;

use super::*;

/// Two ports with the preset, each with further keys.
fn two(first: &str, second: &str) -> String {
    let port = |number: u8, keys: &str| {
        let comma = if keys.is_empty() { "" } else { ", " };
        format!("  - {{name: p{number}, device: net_tap{}, speed: 10G{comma}{keys}}}\n", number - 1)
    };
    format!("preset: roce\nports:\n{}{}", port(1, first), port(2, second))
}

#[track_caller]
fn silent(text: &str) -> Config {
    let config = accept(text);
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    check_sums(&config);
    config
}

const SECOND_LOSSLESS: &str = "classes: {4: {lossless: true}}\n";

#[test]
fn configured_maps_are_applied_to_the_switch() {
    let config = silent(&format!(
        "{PORTS}maps: {{dscp: {{46-47: 5, 0: 1}}, tc_to_group: {{5: 1, 6-7: 2}}, tc_to_queue: {{5: 0}}, pfc_to_queue: {{7: 0}}}}\n"
    ));
    let expected = ClassMap {
        tc_to_group: [0, 1, 2, 3, 4, 1, 2, 2],
        tc_to_queue: [0, 1, 2, 3, 4, 0, 6, 7],
        pfc_to_queue: [0, 1, 2, 3, 4, 5, 6, 0],
    };
    assert_eq!(config.switch.classes, expected);
    let marks = &config.switch.ports[1].live.marks;
    assert_eq!((marks.dscp_to_tc[0], marks.dscp_to_tc[46], marks.dscp_to_tc[45]), (1, 5, 5));
    assert_eq!(marks.pcp_to_tc, MarkMap::identity().pcp_to_tc);
}

#[test]
fn a_port_overrides_the_maps_of_the_switch_entry_by_entry() {
    let config = silent(
        "\
ports:
  - {name: p1, device: net_tap0, speed: 10G, maps: {dscp: {8: 2}, pcp: {1: 0}}}
  - {name: p2, device: net_tap1, speed: 10G}
maps: {dscp: {8: 7, 9: 7}}
",
    );
    let [own, other] = [0, 1].map(|port: usize| &config.switch.ports[port].live.marks);
    assert_eq!((own.dscp_to_tc[8], own.dscp_to_tc[9], own.pcp_to_tc[1]), (2, 7, 0));
    assert_eq!((other.dscp_to_tc[8], other.dscp_to_tc[9], other.pcp_to_tc[1]), (7, 7, 1));
}

#[test]
fn host_flow_class_follows_the_maps_of_its_port() {
    let config = accept(
        "\
ports: [{name: p1, device: ring, speed: 10G, maps: {dscp: {26: 5}}}, {name: p2, device: ring, speed: 10G}]
hosts: [{name: h1, port: p1, flows: [{to: h2}]}, {name: h2, port: p2, flows: [{to: h1}]}]
",
    );
    let classes: Vec<u8> = config.hosts.iter().flat_map(|host| &host.flows).map(|flow| flow.class).collect();
    assert_eq!(classes, [5, 3]);
}

#[test]
fn several_lossless_classes_may_share_group_and_queue() {
    let config = silent(&two("", "").replace(
        "ports:",
        &format!("{SECOND_LOSSLESS}maps: {{tc_to_group: {{4: 3}}, tc_to_queue: {{4: 3}}}}\nports:"),
    ));
    assert_eq!(config.switch.lossless_groups(), ClassSet::only(3), "group 4 has no class, and so no headroom");
    assert_eq!(config.switch.ports[0].buffer.groups[4].headroom, Cells(0));
}

#[test]
fn settings_of_class_mapped_to_other_group_or_queue_are_warned_of() {
    let text = format!(
        "preset: roce\n{PORTS}classes: {{4: {{lossless: true, alpha: 1/8, scheduler: strict}}}}\nmaps: {{tc_to_group: {{4: 3}}, tc_to_queue: {{4: 3}}}}\n"
    );
    assert_eq!(
        accept(&text).warnings,
        [
            "x.yaml:5:14: classes.4: class 4 is in group 3, which has the settings of class 3, and no class is in group 4: `alpha` has no effect; write it under class 3",
            "x.yaml:5:14: classes.4: class 4 is in queue 3, which has the settings of class 3, and no class is in queue 4: `scheduler` has no effect; write it under class 3",
        ]
    );
}

#[test]
fn unknown_maps_and_out_of_range_numbers_are_refused() {
    refuse_beside_ports(
        "maps: {tc_to_grup: {4: 3}}\n",
        "x.yaml:4:8: maps: unknown key `tc_to_grup`; did you mean `tc_to_group`?",
    );
    refuse_beside_ports(
        "maps: {tc_to_group: {8: 3}, tc_to_queue: {1: 8}, pfc_to_queue: {9: 1}, tc_to_dscp: {3: 64}, tc_to_pcp: {3: 8}}\n",
        "\
x.yaml:4:22: maps.tc_to_group: `8` is not a class; write a number from 0 to 7 or a range such as 0-7
x.yaml:4:46: maps.tc_to_queue.1: `8` is not a queue; write a whole number from 0 to 7
x.yaml:4:65: maps.pfc_to_queue: `9` is not a priority; write a number from 0 to 7 or a range such as 0-7
x.yaml:4:88: maps.tc_to_dscp.3: `64` is not a DSCP; write a whole number from 0 to 63
x.yaml:4:108: maps.tc_to_pcp.3: `8` is not a PCP; write a whole number from 0 to 7",
    );
}

#[test]
fn group_or_queue_shared_by_lossless_and_lossy_class_is_refused() {
    let maps = |maps: &str| format!("preset: roce\n{PORTS}maps: {{{maps}}}\n");
    refuse(
        &maps("tc_to_group: {4: 3}"),
        "x.yaml:5:25: maps.tc_to_group.4: class 4 is lossy and would share group 3 with class 3, which is lossless: PFC pauses a whole group, so its classes must be all lossless or all lossy; map class 4 to the group of a lossy class, or make both classes lossless",
    );
    refuse(
        &maps("tc_to_group: {3: 4}"),
        "x.yaml:5:25: maps.tc_to_group.3: class 3 is lossless and would share group 4 with class 4, which is lossy: PFC pauses a whole group, so its classes must be all lossless or all lossy; map class 3 to the group of a lossless class, or make both classes lossy",
    );
    refuse(
        &maps("tc_to_queue: {4: 3}"),
        "x.yaml:5:25: maps.tc_to_queue.4: class 4 is lossy and would share queue 3 with class 3, which is lossless: the classes of a queue must be all lossless or all lossy; map class 4 to the queue of a lossy class, or make both classes lossless",
    );
}

#[test]
fn class_in_group_with_settings_of_other_kind_is_refused() {
    refuse(
        &format!("preset: roce\n{PORTS}maps: {{tc_to_group: {{3: 4, 4: 5}}}}\n"),
        "x.yaml:5:25: maps.tc_to_group.3: class 3 is lossless, but group 4 has the settings of class 4, which is lossy; map class 3 to the group of a lossless class, or make both classes lossy",
    );
    refuse(
        &format!(
            "preset: roce\n{PORTS}{SECOND_LOSSLESS}maps: {{tc_to_group: {{3: 4, 4: 3, 5: 3}}, tc_to_queue: {{3: 4, 4: 3}}}}\n"
        ),
        "x.yaml:6:37: maps.tc_to_group.5: class 5 is lossy, but group 3 has the settings of class 3, which is lossless; map class 5 to the group of a lossy class, or make both classes lossless",
    );
}

#[test]
fn pfc_priority_mapped_to_another_queue_is_refused() {
    refuse(
        &format!("preset: roce\n{PORTS}maps: {{pfc_to_queue: {{3: 4}}}}\n"),
        "x.yaml:5:26: maps.pfc_to_queue.3: PFC for priority 3 pauses queue 4, but lossless class 3 of group 3 is in queue 3, which would not pause; write `tc_to_queue: {3: 4}` or `pfc_to_queue: {3: 3}`",
    );
    refuse(
        &format!("preset: roce\n{PORTS}{SECOND_LOSSLESS}maps: {{tc_to_group: {{4: 3}}}}\n"),
        "x.yaml:6:25: maps.tc_to_group.4: PFC for priority 3 pauses queue 3, but lossless class 4 of group 3 is in queue 4, which would not pause; write `tc_to_queue: {4: 3}` or `pfc_to_queue: {3: 4}`",
    );
}

#[test]
fn trust_port_with_pfc_is_refused() {
    refuse(
        &two("trust: port", ""),
        "x.yaml:3:5: ports[0]: PFC is on, but `trust: port` puts every frame in class 0, which is lossy; write `trust: dscp` or `pcp`, or `pfc: off`",
    );
    warn(&two("trust: port, pfc: off", ""), "x.yaml:3:5: ports[0]: PFC is off, so class 3 is not lossless here");
}

#[test]
fn pcp_trust_on_untagged_port_is_warned_of_or_refused() {
    warn(
        &two("trust: pcp", "vlan: 2"),
        "x.yaml:3:5: ports[0]: this port trusts PCP, but frames leave it untagged and so without a PCP: its peer puts them in class 0, and PFC for class 3 does not stop them; write `trust: dscp`, which needs no tag, or `vlan: {tagged: [...]}`",
    );
    refuse(
        &two("", "trust: pcp"),
        "x.yaml:4:5: ports[1]: frames of class 3 from port p1 leave port p2 untagged in VLAN 1: port p2 trusts PCP, so its peer puts them in class 0, and PFC does not stop them; tag VLAN 1 at port p2, or write `trust: dscp` there",
    );
}

#[test]
fn ports_with_conflicting_lossless_maps_in_a_vlan_are_refused() {
    refuse(
        &two("", "maps: {dscp: {26-27: 1}}"),
        "x.yaml:4:5: ports[1]: DSCP 26 is class 3 at port p1 and class 1 at port p2, and both have PFC in VLAN 1: PFC for one class does not stop the other; write the same `dscp` map for both, or `rewrite: dscp` at port p2",
    );
    let tagged = "trust: pcp, vlan: {tagged: [5]}";
    refuse(
        &two(tagged, &format!("{tagged}, maps: {{pcp: {{3: 1}}}}")),
        "x.yaml:4:5: ports[1]: PCP 3 is class 3 at port p1 and class 1 at port p2, and both have PFC in VLAN 5: PFC for one class does not stop the other; write the same `pcp` map for both, or `rewrite: pcp` at port p2",
    );
    // No conflict: in different VLANs, without a lossless class, between lossy classes, and in a map that is not
    // trusted.
    silent(&two("", "vlan: 2, maps: {dscp: {26: 1}}"));
    silent(&two("", "maps: {dscp: {26: 1}}").replace("preset: roce\n", ""));
    silent(&two("", "maps: {dscp: {0: 1}}"));
    silent(&two("", "maps: {pcp: {3: 1}}"));
    warn(
        &two("", "pfc: off, maps: {dscp: {26: 1}}"),
        "x.yaml:4:5: ports[1]: PFC is off, so class 3 is not lossless here",
    );
}

#[test]
fn rewrite_at_both_ports_allows_different_maps() {
    let ports = two("rewrite: dscp", "rewrite: dscp, maps: {dscp: {10: 3}}");
    let config = silent(&format!("{ports}maps: {{tc_to_dscp: {{1: 8, 3: 26}}}}\n"));
    let rewrite = config.switch.ports[0].live.rewrite;
    assert_eq!(rewrite.dscp, [None, Some(8), None, Some(26), None, None, None, None]);
    assert_eq!(rewrite.pcp, [None; 8]);
    refuse(
        &format!("{ports}maps: {{tc_to_dscp: {{3: 26}}}}\n"),
        "x.yaml:4:5: ports[1]: DSCP 10 is class 1 at port p1 and class 3 at port p2, and both have PFC in VLAN 1: PFC for one class does not stop the other; write the same `dscp` map for both, or `rewrite: dscp` at port p2",
    );
}

const ALL_TABLES: &str = "maps: {tc_to_dscp: {0: 0, 1: 8, 2: 16, 3: 24, 4: 32, 5: 40, 6: 48, 7: 56}, tc_to_pcp: {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}}\n";

#[test]
fn ports_that_trust_different_marks_in_a_vlan_are_warned_of() {
    let depends = "they can put one frame in different classes, so PFC may not stop it; write the same `trust` at \
                   both, or `rewrite: pcp` at the first and `rewrite: dscp` at the second with tables for all classes";
    let (dscp, pcp) = ("vlan: {tagged: [5-9]}", "trust: pcp, vlan: {tagged: [7]}");
    warn(
        &two(dscp, pcp),
        &format!("x.yaml:4:5: ports[1]: port p2 trusts PCP, port p1 trusts DSCP, and both carry VLAN 7: {depends}"),
    );
    let third = "  - {name: p3, device: net_tap2, speed: 10G, vlan: {tagged: [7]}}\n";
    warn(
        &format!("{}{third}", two(dscp, pcp)),
        &format!(
            "x.yaml:4:5: ports[1]: port p2 trusts PCP, port p1 trusts DSCP, and both carry VLAN 7 (and one more pair of ports): {depends}"
        ),
    );
    let rewriting = two(&format!("{dscp}, rewrite: dscp"), &format!("{pcp}, rewrite: pcp"));
    let config = silent(&format!("{rewriting}{ALL_TABLES}"));
    assert_eq!(config.switch.ports[1].live.rewrite.pcp, [0, 1, 2, 3, 4, 5, 6, 7].map(Some));
    refuse(
        &two("vlan: 7", &format!("{pcp}, maps: {{pcp: {{3: 0, 5: 3}}}}")),
        "x.yaml:4:5: ports[1]: frames of class 3 from port p1 leave port p2 in VLAN 7 with a new tag of PCP 3, which means class 0 to port p2 and its peer: PFC does not stop them; write `rewrite: pcp` at port p2, and in `tc_to_pcp` a PCP that its maps put in that class",
    );
}

#[test]
fn rewrite_without_table_or_with_unknown_mark_is_refused() {
    refuse(
        &two("rewrite: dscp", "rewrite: [pcp]"),
        "\
x.yaml:3:55: ports[0].rewrite: there is no table for `rewrite: dscp`; write e.g. `maps: {tc_to_dscp: {3: 26}}`
x.yaml:4:56: ports[1].rewrite[0]: there is no table for `rewrite: pcp`; write e.g. `maps: {tc_to_pcp: {3: 3}}`",
    );
    refuse(
        &format!("{}{ALL_TABLES}", two("rewrite: both", "rewrite: [dscp, off]")),
        "\
x.yaml:3:55: ports[0].rewrite: `both` is not one of the choices; write `dscp`, `pcp` or `off`
x.yaml:4:62: ports[1].rewrite[1]: `off` is not one of the choices; write `dscp` or `pcp`",
    );
}

#[test]
fn rewrite_that_changes_lossless_class_at_the_peer_is_refused() {
    refuse(
        &format!("{}maps: {{tc_to_dscp: {{3: 10}}}}\n", two("rewrite: dscp", "")),
        "x.yaml:3:55: ports[0].rewrite: class 3, which is lossless, leaves with DSCP 10: that means class 1 to this port and its peer, whose PFC would pause priority 1, not 3; write `tc_to_dscp: {3: 24}`",
    );
    refuse(
        &format!("{}maps: {{tc_to_dscp: {{1: 26}}}}\n", two("rewrite: dscp", "")),
        "x.yaml:3:55: ports[0].rewrite: class 1, which is lossy, leaves with DSCP 26: that means class 3 to this port and its peer, whose PFC would pause priority 3, not 1; write `tc_to_dscp: {1: 8}`",
    );
    refuse(
        &format!("{}maps: {{tc_to_pcp: {{3: 5}}}}\n", two("trust: pcp, vlan: {tagged: [2]}, rewrite: pcp", "")),
        "x.yaml:3:88: ports[0].rewrite: class 3, which is lossless, leaves with PCP 5: that means class 5 to this port and its peer, whose PFC would pause priority 5, not 3; write `tc_to_pcp: {3: 3}`",
    );
    // A different mark is harmless between lossy classes, and where the peer does not trust it.
    silent(&format!("{}maps: {{tc_to_dscp: {{1: 16}}}}\n", two("rewrite: dscp", "")));
    silent(&format!("{}maps: {{tc_to_pcp: {{3: 5}}}}\n", two("vlan: {tagged: [2]}, rewrite: pcp", "")));
}

#[test]
fn rewrite_without_effect_is_warned_of() {
    warn(
        &format!("{}maps: {{tc_to_pcp: {{3: 3}}}}\n", two("rewrite: pcp", "")),
        "x.yaml:3:55: ports[0].rewrite: all frames leave this port untagged, so there is no PCP to rewrite; remove `pcp`",
    );
    warn(
        &format!("{}maps: {{tc_to_dscp: {{3: 26}}}}\n", two("rewrite: off", "")),
        "x.yaml:5:20: maps.tc_to_dscp: no port uses this table; write `rewrite: dscp` at a port, or remove it",
    );
}

#[test]
fn port_pcp_mapped_to_lossless_class_of_other_priority_is_warned_of() {
    let ports =
        "ports: [{name: p1, device: net_tap0, speed: 10G, trust: pcp, vlan: {tagged: [2]}, maps: {pcp: {4: 3}}}]\n";
    warn(
        &format!("preset: roce\n{ports}"),
        "x.yaml:2:89: ports[0].maps: PCP 4 is in lossless class 3, but PFC for that class pauses priority 3, not 4; map only PCP 3 to it",
    );
}

/// A host pauses a flow for the priority group of its class, because PFC frames of the switch name the group.
#[test]
fn a_flow_obeys_the_group_of_its_class() {
    let yaml = "
preset: roce
maps: {tc_to_group: {4: 3}, tc_to_queue: {4: 3}}
classes: {4: {lossless: true}}
ports: [{name: p1, device: ring, speed: 10G}, {name: p2, device: ring, speed: 10G}]
hosts: [{name: h1, port: p1, flows: [{to: h2, dscp: 34}]}, {name: h2, port: p2}]
";
    let config = holdfast::config::parse("t.yaml", yaml).unwrap();
    let flow = &config.hosts[0].flows[0];
    assert_eq!((flow.class, flow.priority), (4, 3));
}

#[test]
fn roce_acknowledgements_and_notifications_have_their_classes() {
    let port = |number: u8, keys: &str| format!("  - {{name: p{number}, device: net_tap{number}, speed: 10G{keys}}}\n");
    let ports = port(1, "") + &port(2, ", maps: {roce: {ack: off, cnp: 5}}");
    let config = accept(&format!("preset: roce\nports:\n{ports}maps: {{roce: {{ack: 6}}}}\n"));
    let roce = |port: usize| config.switch.ports[port].live.marks.roce.entries().map(|(_, class)| class);
    assert_eq!([roce(0), roce(1)], [[Some(6), None], [None, Some(5)]]);
    assert!(
        accept(&format!("preset: roce\n{PORTS}")).switch.ports[0]
            .live
            .marks
            .roce
            .entries()
            .iter()
            .all(|of| of.1.is_none())
    );
    let lossless = "class 3 is lossless, but its PFC does not stop packets that their sender marks for another class; \
                    write a lossy class, e.g. a strict one";
    refuse(
        &format!("preset: roce\n{PORTS}maps: {{roce: {{ack: 3, cnp: 6}}}}\n"),
        &format!("x.yaml:5:20: maps.roce.ack: {lossless}"),
    );
    let own = port(1, ", maps: {roce: {cnp: 3}}");
    refuse(&format!("preset: roce\nports:\n{own}"), &format!("x.yaml:3:65: ports[0].maps.roce.cnp: {lossless}"));
    refuse_beside_ports("maps: {roce: {acks: 6}}\n", "x.yaml:4:15: maps.roce: unknown key `acks`; did you mean `ack`?");
    refuse_beside_ports(
        "maps: {roce: {ack: 8}}\n",
        "x.yaml:4:20: maps.roce.ack: `8` is not a class; write a whole number from 0 to 7",
    );
}

#[test]
fn a_number_that_two_keys_name_is_refused() {
    refuse_beside_ports(
        "maps: {dscp: {10-20: 1, 15: 2}}\n",
        "x.yaml:4:25: maps.dscp: `15` and `10-20` both contain 15; write each number once, e.g. by splitting the range",
    );
    refuse_beside_ports(
        "maps: {pcp: {4-6: 1, 6-7: 2}}\n",
        "x.yaml:4:22: maps.pcp: `6-7` and `4-6` both contain 6; write each number once, e.g. by splitting the range",
    );
    refuse_beside_ports(
        "maps: {tc_to_group: {1: 1, 0-1: 1}}\n",
        "x.yaml:4:28: maps.tc_to_group: `0-1` and `1` both contain 1; write each number once, e.g. by splitting the \
         range",
    );
    refuse(
        "ports: [{name: p1, device: net_tap0, speed: 10G, maps: {dscp: {0-9: 1, 9: 2}}}]\n",
        "x.yaml:1:72: ports[0].maps.dscp: `9` and `0-9` both contain 9; write each number once, e.g. by splitting the range",
    );
    silent(&format!("{PORTS}maps: {{dscp: {{10-14: 1, 15: 2, 16-20: 1}}}}\n"));
}

#[test]
fn roce_map_that_is_off_leaves_all_packets_in_the_class_of_their_mark() {
    let port = |number: u8, keys: &str| format!("  - {{name: p{number}, device: net_tap{number}, speed: 10G{keys}}}\n");
    let ports = port(1, "") + &port(2, ", maps: {roce: off}");
    let config = accept(&format!("preset: roce\nports:\n{ports}maps: {{roce: {{ack: 6, cnp: 6}}}}\n"));
    let roce = |port: usize| config.switch.ports[port].live.marks.roce.entries().map(|(_, class)| class);
    assert_eq!([roce(0), roce(1)], [[Some(6), Some(6)], [None, None]]);
    accept(&format!("preset: roce\n{PORTS}maps: {{roce: off}}\n"));
    refuse(
        &format!("preset: roce\n{PORTS}maps: {{roce: 6}}\n"),
        "x.yaml:5:14: maps.roce: `6` has no classes of RoCE packets; write e.g. `{ack: 6, cnp: 6}`, or `off` for both",
    );
}
