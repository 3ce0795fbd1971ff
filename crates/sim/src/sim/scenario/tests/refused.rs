//! Refused scenarios, with their exact error messages.

use super::*;

/// Two switches without a link, three hosts at one and one at the other.
const NET: &str = "\
duration: 1ms
switches:
  - {name: a, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}, {name: up, speed: 40G}]}}
  - {name: b, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}, {name: up, speed: 40G}]}}
hosts: [{name: h*, count: 3, at: a.p*}, {name: g1, at: b.p1}]
";

/// Text to replace in [`NET`] (empty: append to it), the new text, and the errors.
const CASES: &[(&str, &str, &str)] = &[
    ("duration: 1ms\n", "", "x.yaml:1:1: `duration` is missing; write e.g. `duration: 5ms`"),
    ("1ms", "1", "x.yaml:1:11: duration: `1` is not a time; write e.g. 20us, 200ms, 10s or 5min"),
    ("1ms", "20s", "x.yaml:1:11: duration: `20s` is out of range; write from 1us to 10s"),
    (
        "{name: a, ",
        "{name: a, reloads: [{at: 1us, set: {ports: [{name: up, speed: 25G}]}}], ",
        "x.yaml:3:40: switches[0].reloads[0].set: up: speed: 40G -> 25G: a simulated switch does not take it while it \
         runs; remove it",
    ),
    (
        "{name: a, ",
        "{name: a, reloads: [{at: 1us, set: {ports: [{name: down, cable: 5m}]}}], ",
        "x.yaml:3:56: switches[0].reloads[0].set.ports[0].name: the scenario has no `down` here to override; write `p1`, \
         `p2`, `p3`, `p4` or `up`",
    ),
    (
        "{name: a, ",
        "{name: a, reloads: [{at: 1us}], ",
        "x.yaml:3:25: switches[0].reloads[0]: `set` is missing; write e.g. `- {at: 1ms, set: {ports: [{name: p1, cable: \
         300m}]}}`",
    ),
    ("", "drain: 11s", "x.yaml:6:8: drain: `11s` is out of range; write from 0ns to 10s"),
    (
        "",
        "sample: 100ns",
        "x.yaml:6:9: sample: `100ns` gives more than 20000 samples over duration and drain; write at least 150ns",
    ),
    ("", "sample: 10ns", "x.yaml:6:9: sample: `10ns` is out of range; write from 100ns to 10s"),
    ("", "events: 0", "x.yaml:6:9: events: `0` is not a count of events; write a whole number from 1 to 100000000000"),
    ("", "seed: -1", "x.yaml:6:7: seed: `-1` is not a seed; write a whole number from 0 to 18446744073709551615"),
    ("", "learning: both", "x.yaml:6:11: learning: `both` is not one of the choices; write `routes` or `frames`"),
    ("", "forwarding: both", "x.yaml:6:13: forwarding: `both` is not one of the choices; write `bridged` or `routed`"),
    (
        "",
        "forwarding: routed\nlearning: frames",
        "x.yaml:6:13: forwarding: routers do not learn routes from frames; remove `learning: frames`",
    ),
    ("", "reroute: 2s", "x.yaml:6:10: reroute: `2s` is out of range; write from 0ns to 1s"),
    (
        "duration: 1ms",
        "forwarding: routed\nflows: [{from: h1, to: h2, vlan: 5}]\nduration: 1ms",
        "x.yaml:1:13: forwarding: flow h1-h2 has tags, and hosts send untagged frames to a router; remove `vlan`",
    ),
    (
        "duration: 1ms",
        "forwarding: routed\nflows: [{from: h1, to: h2, cc: qcn}]\nduration: 1ms",
        "x.yaml:1:13: forwarding: flow h1-h2 has `cc: qcn`, and messages of QCN do not cross routers; write another `cc`",
    ),
    (
        "at: b.p1",
        "at: b.p1, ip: 10.9.9.9}]\nforwarding: routed #",
        "x.yaml:5:66: hosts[3].ip: a host of a routed network gets its address from its port; remove it",
    ),
    ("", "name: \"\"", "x.yaml:6:7: name: `` is not a name; write from 1 to 64 characters on one line"),
    ("", "sede: 1", "x.yaml:6:1: unknown key `sede`; did you mean `seed`?"),
    (
        "",
        "watch: [a.p9]",
        "x.yaml:6:9: watch[0]: there is no port `a.p9`; write `a.p1`, `a.p2`, `a.p3`, `a.p4` or `a.up`",
    ),
    ("", "watch: [a.p1, a.p1]", "x.yaml:6:15: watch[1]: `a.p1` is listed twice; remove one"),
    (
        "",
        "columns: [held, pausen]",
        "x.yaml:6:17: columns[1]: there is no column `pausen`; write `pauses` if that was meant",
    ),
    ("", "columns: [held, pauses, held]", "x.yaml:6:25: columns[2]: `held` is listed twice; remove one"),
    ("", "columns: pauses", "x.yaml:6:10: columns: `pauses` is not a list; write e.g. `[pauses, held, h1-h2]`"),
    ("", "watch: [p1]", "x.yaml:6:9: watch[0]: `p1` is not a port; write switch and port, e.g. `tor.p1`"),
    ("", "watch: [c.p1]", "x.yaml:6:9: watch[0]: there is no switch `c`; write `a` or `b`"),
    (
        "name: b,",
        "name: a,",
        "x.yaml:4:12: switches[1].name: `a` is already the name of switches[0]; write another\nx.yaml:5:56: hosts[3].at: there is no switch `b`; write `a` or `a`",
    ),
    (
        "name: b,",
        "name: b.c,",
        "x.yaml:4:12: switches[1].name: `b.c` is not a name; write up to 32 letters, digits, `_`, `-` or `/`",
    ),
    (
        "name: b, ",
        "name: b, file: b.yaml, ",
        "x.yaml:4:21: switches[1].file: `config` is given too; keep one of the two",
    ),
    (
        "{name: b, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}, {name: up, speed: 40G}]}}",
        "{name: b}",
        "x.yaml:4:5: switches[1]: `config` or `file` is missing; write e.g. `file: tor.yaml`, or `config: {preset: roce, ports: [...]}`",
    ),
    (
        "{name: b, config: {preset: roce, ports: [{name: p*, count: 4, speed: 10G}, {name: up, speed: 40G}]}}",
        "{name: b, file: b.yaml}",
        "x.yaml:4:21: switches[1].file: a scenario that is not in a file cannot refer to files; write `config:` \
         instead",
    ),
    (
        "speed: 40G",
        "speed: 40Q",
        "x.yaml:3:98: switches[0].config.ports[4].speed: `40Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s",
    ),
    (
        "{name: b, ",
        "{name: b, poll: {every: 1ns}, ",
        "x.yaml:4:29: switches[1].poll.every: `1ns` is out of range; write from 10ns to 10ms",
    ),
    ("at: a.p*", "at: a.q*", "x.yaml:5:34: hosts[0].at: there is no port `a.q1`; write `a.p1` if that was meant"),
    ("name: g1", "name: h1", "x.yaml:5:48: hosts[3].name: `h1` is already the name of hosts[0]; write another"),
    (
        "name: g1",
        "name: all",
        "x.yaml:5:48: hosts[3].name: `all` means every host in `from` and `to` of flows; write another name",
    ),
    ("at: b.p1", "at: a.p1", "x.yaml:5:56: hosts[3].at: port a.p1 has a cable already (a.p1-h1); write another port"),
    ("at: b.p1", "length: 3m", "x.yaml:5:41: hosts[3]: `at` is missing; write e.g. `at: tor.p1`"),
    (
        "at: b.p1",
        "at: b.p1, receiver: {rate: 1G}",
        "x.yaml:5:72: hosts[3].receiver: `buffer` is missing; write e.g. `buffer: 200kB`, or `xoff` and `xon`",
    ),
    (
        "at: b.p1",
        "at: b.p1, receiver: {rate: 1G, xoff: 1kB, xon: 2kB}",
        "x.yaml:5:99: hosts[3].receiver.xon: `2kB` is above XOFF; write at most 1000B",
    ),
    (
        "at: b.p1",
        "at: b.p1, receiver: {rate: 1G, xoff: 1kB, buffer: 2kB}",
        "x.yaml:5:89: hosts[3].receiver.xoff: `buffer` sets the same limit; keep one of the two",
    ),
    (
        "at: b.p1",
        "at: b.p1, mac: 02:48:46:01:00:00",
        "x.yaml:5:67: hosts[3].mac: `02:48:46:01:00:00` is already the MAC address of hosts[0]; write another",
    ),
    (
        "at: b.p1",
        "at: b.p1, response: 2",
        "x.yaml:5:72: hosts[3].response: `2` is not a time; write e.g. 20us, 200ms, 10s or 5min",
    ),
    (
        "at: b.p1",
        "at: b.p1, flows: [{from: h1, to: h2}]",
        "x.yaml:5:70: hosts[3].flows[0]: no cable leads from g1 to h2; write one under `links`\nx.yaml:5:71: hosts[3].flows[0]: unknown key `from`; did you mean `frame`?",
    ),
    (
        "",
        "flows: [{from: h1, to: h9}]",
        "x.yaml:6:24: flows[0].to: there is no host `h9`; write `h1`, `h2`, `h3` or `g1`",
    ),
    ("", "flows: [{from: h1, to: h1}]", "x.yaml:6:24: flows[0].to: a host cannot send to itself; write another host"),
    ("", "flows: [{from: h1}]", "x.yaml:6:9: flows[0]: `to` is missing; write e.g. `to: h2`"),
    ("", "flows: [{from: [h1, h1], to: h2}]", "x.yaml:6:21: flows[0].from[1]: `h1` is listed twice; remove one"),
    (
        "",
        "flows: [{from: h1, to: h2, rate: 11G}]",
        "x.yaml:6:34: flows[0].rate: `11G` is out of range for a link of 10G; write from 1k to its speed",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, frame: 1600}]",
        "x.yaml:6:35: flows[0].frame: `1600` is more than port a.p1 takes (mtu 1500); write from 60 to 1514",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, frame: {from: 600, to: 500}}]",
        "x.yaml:6:35: flows[0].frame: from 600 to 500 is not a range; write the shorter length as `from`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, dscp: 64}]",
        "x.yaml:6:34: flows[0].dscp: `64` is not a DSCP; write a whole number from 0 to 63",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, start: 2us, stop: 1us}]",
        "x.yaml:6:46: flows[0].stop: `1us` is not after the start, 2us; write a later time",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, load: heavy}]",
        "x.yaml:6:34: flows[0].load: `heavy` is not a load; write `steady`, `{on: 1ms, off: 4ms}` or `{message: 1MB, every: 1ms}`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, load: {on: 1ms}}]",
        "x.yaml:6:34: flows[0].load: `off` is missing; write e.g. `off: 4ms`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, load: {message: 1MB}}]",
        "x.yaml:6:34: flows[0].load: `every` is missing; write e.g. `every: 1ms`, or `count: 1` for a single message",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, load: {message: 1MB, on: 1ms}}]",
        "x.yaml:6:34: flows[0].load: phases and messages cannot be combined; keep one of the two",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, load: {message: {from: 2MB, to: 1MB}, every: 1ms}}]",
        "x.yaml:6:44: flows[0].load.message: from 2MB to 1MB is not a range; write the smaller size as `from`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, dcqcn: maybe}]",
        "x.yaml:6:35: flows[0].dcqcn: `maybe` is not a DCQCN setting; write `true`, `off` or e.g. `{g: 1/256, \
         additive: 40M}`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, dcqcn: {g: 1/100}}]",
        "x.yaml:6:39: flows[0].dcqcn.g: `1/100` is not a gain; write 1 over a power of two, from 1/2 to 1/65536, e.g. \
         1/256",
    ),
    ("", "flows: [{from: h1, to: g1}]", "x.yaml:6:9: flows[0]: no cable leads from h1 to g1; write one under `links`"),
    (
        "",
        "flows: [{from: h*, to: g1, count: many}]",
        "x.yaml:6:35: flows[0].count: `many` is not a count of items; write a whole number from 1 to 1024",
    ),
    (
        "",
        "flows: [{from: h1, to: g1, count: 3}]",
        "x.yaml:6:35: flows[0].count: there is no `*` in its values for the number; write e.g. `to: h*`",
    ),
    (
        "",
        "links: [{a: a.up, b: b.p4}]",
        "x.yaml:6:9: links[0]: a.up has 40G and b.p4 has 10G; write the same `speed` for both",
    ),
    (
        "",
        "links: [{a: a.up, b: a.p4}]",
        "x.yaml:6:22: links[0].b: both ends are at the same switch; write a port of another switch",
    ),
    (
        "",
        "links: [{a: a.p1, b: b.p1}]",
        "x.yaml:6:13: links[0].a: port a.p1 has a cable already (a.p1-h1); write another port\nx.yaml:6:22: links[0].b: port b.p1 has a cable already (b.p1-g1); write another port",
    ),
    ("", "links: [{a: a.up}]", "x.yaml:6:9: links[0]: `b` is missing; write e.g. `b: s2.p9`"),
    (
        "",
        "links: [{a: a.up, b: b.up}, {a: a.p4, b: b.p4}]\nlearning: frames",
        "x.yaml:7:11: learning: frames circulate for ever in a loop of switches; write `routes`, or remove a link",
    ),
    (
        "",
        "faults: [{at: 1ms}]",
        "x.yaml:6:10: faults[0]: the fault has no kind; write `down`, `shut`, `lose`, `storm`, `dead`, `late`, `slow`, \
         `stall` or `garbage`",
    ),
    (
        "",
        "flows: [{from: h1, to: h2, queue_pairs: 0}]",
        "x.yaml:6:41: flows[0].queue_pairs: `0` is not a number of queue pairs; write a whole number from 1 to 1024",
    ),
    ("", "faults: [{down: h1}]", "x.yaml:6:10: faults[0]: `at` is missing; write e.g. `at: 1ms`"),
    (
        "",
        "faults: [{at: 1ms, down: h1, dead: h2}]",
        "x.yaml:6:36: faults[0].dead: `down` is given too; write one fault for each",
    ),
    (
        "",
        "faults: [{at: 1ms, down: h1, chance: 1%}]",
        "x.yaml:6:38: faults[0].chance: `chance` belongs to `lose`, and this is `down`; remove it",
    ),
    (
        "",
        "faults: [{at: 1ms, down: a.p4}]",
        "x.yaml:6:26: faults[0].down: there is no cable at `a.p4`; write a port with a host or a link",
    ),
    (
        "",
        "faults: [{at: 1ms, lose: h1, chance: 0.00001%}]",
        "x.yaml:6:38: faults[0].chance: `0.00001%` is not a probability; write a percentage from 0.0001% to 100%, e.g. \
         1% or 0.01%",
    ),
    (
        "",
        "faults: [{at: 1ms, lose: h1, toward: h2}]",
        "x.yaml:6:38: faults[0].toward: `h2` is not an end of the cable a.p1-h1; write one of the two ends",
    ),
    (
        "",
        "faults: [{at: 1ms, lose: h1, what: some}]",
        "x.yaml:6:36: faults[0].what: `some` is not one of the choices; write `data`, `pfc` or `any`",
    ),
    (
        "",
        "faults: [{at: 1ms, storm: h1, priorities: [8]}]",
        "x.yaml:6:44: faults[0].priorities[0]: `8` is not a priority; write a whole number from 0 to 7",
    ),
    (
        "",
        "faults: [{at: 1ms, storm: h1, priorities: []}]",
        "x.yaml:6:43: faults[0].priorities: the list is empty; write e.g. `[3]`",
    ),
    ("", "faults: [{at: 1ms, late: h1}]", "x.yaml:6:10: faults[0]: `response` is missing; write e.g. `response: 10us`"),
    (
        "",
        "faults: [{at: 1ms, slow: h1}]",
        "x.yaml:6:10: faults[0]: `receiver` is missing; write e.g. `receiver: {rate: 1G, buffer: 100kB}`",
    ),
    (
        "",
        "faults: [{at: 1ms, stall: a, lcore: 1}]",
        "x.yaml:6:37: faults[0].lcore: `1` is not an lcore of the switch; write a whole number from 0 to 0",
    ),
    ("", "faults: [{at: 1ms, shut: h1}]", "x.yaml:6:26: faults[0].shut: `h1` is a host; write a port of a switch"),
    ("", "faults: [{at: 1ms, garbage: h1}]", "x.yaml:6:10: faults[0]: `rate` is missing; write e.g. `rate: 1G`"),
    (
        "",
        "faults: [{at: 1ms, garbage: h1, rate: 200G}]",
        "x.yaml:6:39: faults[0].rate: `200G` is out of range for a link of 10G; write from 1k to its speed",
    ),
    (
        "",
        "faults: [{at: 1ms, dead: h1, rate: 1G}]",
        "x.yaml:6:36: faults[0].rate: `rate` belongs to `garbage`, and this is `dead`; remove it",
    ),
    (
        "",
        "faults: [{at: 1ms, garbage: a, rate: 1G}]",
        "x.yaml:6:29: faults[0].garbage: there is no host `a`; write `h1`, `h2`, `h3` or `g1`",
    ),
    ("", "faults: [{at: 1ms, stall: h1}]", "x.yaml:6:27: faults[0].stall: there is no switch `h1`; write `a` or `b`"),
    (
        "",
        "variants: []",
        "x.yaml:6:11: variants: the list has no variant; write `- {name: ..., seed: 2}` for each variant, or a list of \
         such lists",
    ),
    ("", "variants: [one]", "x.yaml:6:12: variants[0]: `one` is not a variant; write e.g. `{name: slow, seed: 2}`"),
    ("", "variants: [{seed: 2}]", "x.yaml:6:12: variants[0]: `name` is missing; write e.g. `name: no pfc`"),
    (
        "",
        "variants: [{name: x}, {name: x}]",
        "x.yaml:6:30: variants[1].name: `x` is already the name of variants[0]; write another",
    ),
    (
        "",
        "variants: [{name: x, hosts: [{name: h9, pfc: ignore}]}]",
        "x.yaml:6:37: variants[0].hosts[0].name: the scenario has no `h9` here to override; write `h1`, `h2`, `h3` or \
         `g1`",
    ),
    (
        "",
        "variants: [[{name: x*, count: 100}], [{name: y*, count: 100}]]",
        "x.yaml:6:11: variants: 10000 variants are too many; write at most 256",
    ),
];

#[test]
fn each_wrong_value_is_refused_with_its_message() {
    let mut wrong = Vec::new();
    for (from, to, expected) in CASES {
        let text = if from.is_empty() { format!("{NET}{to}\n") } else { NET.replacen(from, to, 1) };
        let errors = errors_of(&text);
        if errors != *expected {
            wrong.push(format!("`{to}` instead of `{from}`: {errors}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_errors_of_a_scenario_are_reported_at_once() {
    let text =
        NET.replace("1ms", "1").replace("at: b.p1", "at: b.p9, pfc: no") + "flows: [{from: h1, to: h2, rate: 1}]\n";
    insta::assert_snapshot!(errors_of(&text), @r"
    x.yaml:1:11: duration: `1` is not a time; write e.g. 20us, 200ms, 10s or 5min
    x.yaml:5:56: hosts[3].at: there is no port `b.p9`; write `b.p1`, `b.p2`, `b.p3`, `b.p4` or `b.up`
    x.yaml:5:67: hosts[3].pfc: `no` is not one of the choices; write `obey` or `ignore`
    x.yaml:6:34: flows[0].rate: `1` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s
    ");
}

#[test]
fn switch_hosts_unfit_for_a_simulation_are_refused() {
    let text = "duration: 1ms\nswitches:\n  - name: a\n    config:\n      ports: [{name: p*, count: 2, speed: 10G}]\n      hosts:\n        \
                - {name: i.j, port: p1}\n        - {name: k, port: p2, flows: [{to: {mac: 02:00:00:00:00:07, ip: 10.0.0.7}}]}\n";
    insta::assert_snapshot!(errors_of(text), @r"
    x.yaml:7:18: switches[0].config.hosts[0].name: `i.j` is ambiguous among the names of a simulation; write e.g. `h1`
    x.yaml:8:44: switches[0].config.hosts[1].flows[0].to: a simulation has no stations outside it; write the name of a host
    ");
}

#[test]
fn switches_that_cannot_route_are_refused() {
    let refused = |from: &str, to: &str| errors_of(&format!("forwarding: routed\n{}", NET.replacen(from, to, 1)));
    assert_eq!(
        refused("count: 4, speed: 10G", "count: 63, speed: 10G"),
        "x.yaml:1:13: forwarding: switch a has 64 ports, and a router at most 63; remove some"
    );
    assert_eq!(
        refused("count: 4, speed: 10G", "count: 4, speed: 10G, vlan: {tagged: [7]}"),
        "x.yaml:1:13: forwarding: the ports of switch a to hosts need one common untagged VLAN up to 4031; set their \
         `vlan`"
    );
    let own = refused("40G}]}}", "40G}], routing: {interfaces: [{port: up, addresses: [10.0.0.1/24]}]}}}");
    let expected =
        "x.yaml:1:13: forwarding: switch a has `routing`, which the simulator plans itself; remove one of the two";
    assert_eq!(own.lines().next(), Some(expected));
}

#[test]
fn empty_scenario_is_refused() {
    assert_eq!(
        errors_of(""),
        "x.yaml:1:1: the scenario is empty; write at least `duration: 1ms` and `switches: [{name: tor, file: \
         tor.yaml}]`"
    );
    assert!(errors_of("[1, 2]").starts_with("x.yaml:1:1: `[...]` is not a mapping; write keys such as `name:`"));
}

#[test]
fn too_many_flows_switches_or_hosts_are_refused() {
    let flows = format!(
        "{NET}links: [{{a: a.up, b: b.up}}]\nflows:\n{}",
        "  - {from: all, to: all, queue_pairs: 1024}\n".repeat(86)
    );
    assert_eq!(errors_of(&flows), "x.yaml:93:5: flows[85]: there are more than 1048576 flows; remove some");
    let switches = NET.replace("name: a, ", "name: a*, count: 1024, ");
    assert_eq!(
        errors_of(&switches).lines().next(),
        Some("x.yaml:3:3: switches: 1025 switches are out of range; write from 1 to 1024")
    );
    let hosts = NET.replace("count: 3, at: a.p*", "count: 1024, at: a.p1");
    let seventeen = (0..16).map(|n| format!(", {{name: x{n}-*, count: 1024, at: a.p1}}")).collect::<String>();
    let hosts = hosts.replace(", {name: g1, at: b.p1}", &seventeen);
    assert_eq!(errors_of(&hosts), "x.yaml:5:8: hosts: 17408 hosts are too many; write at most 16384");
}

#[test]
fn unknown_host_in_a_list_is_one_error() {
    for keys in [
        "workloads: [{all_to_all: 10kB, hosts: [h1, zz]}]",
        "workloads: [{incast: {senders: 2, size: 10kB, times: 1}, from: [h1, zz], to: h3}]",
        "flows: [{from: [h1, zz], to: h3}]",
    ] {
        let errors = errors_of(&format!("{STAR}{keys}\n"));
        assert!(errors.lines().count() == 1 && errors.contains("there is no host `zz`"), "{errors}");
    }
}

#[test]
fn key_of_transport_at_a_flow_is_refused_with_its_place() {
    insta::assert_snapshot!(errors_of(&format!("{STAR}flows: [{{from: h1, to: h2, ack_dscp: 48}}]\n")), @"x.yaml:7:28: flows[0]: `ack_dscp` is a key of `transport`; write `transport: {ack_dscp: 48}`");
    insta::assert_snapshot!(errors_of(&format!("{STAR}workloads: [{{all_to_all: 10kB, window: 9kB}}]\n")), @"x.yaml:7:32: workloads[0]: `window` is a key of `transport`; write `transport: {window: 9kB}`");
}
