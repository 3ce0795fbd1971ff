//! `mirrors` and `sflow`: the sessions of a switch, and refusals with place and remedy.

use holdfast::config::Overrides;
use holdfast::mirror::{Destination, FileConfig, SflowConfig};
use holdfast::pfc::PfcMode;
use holdfast::plan::drops::DropReason;
use holdfast::plan::mirror::{MirrorSession, ReasonSet};
use holdfast::sets::{ClassSet, PortSet};
use holdfast::units::{Bytes, Nanos};

use super::*;

const RACK: &str = "\
preset: roce
ports:
  - {name: p1, device: net_null0, speed: 25G, mtu: 9000, rx_descriptors: 2048}
  - {name: p2, device: net_null1, speed: 10G}
  - {name: mon, device: net_null2, speed: 10G, mtu: 9200}
";

fn rack(text: &str) -> Config {
    accept(&format!("{RACK}{text}"))
}

/// Asserts that one mirror is refused with `expected` in the first error.
#[track_caller]
fn refuse_mirror(mirror: &str, expected: &str) {
    refuse_part(&format!("mirrors: [{mirror}]\n"), expected);
}

#[track_caller]
fn refuse_part(part: &str, expected: &str) {
    let errors = config::parse("x.yaml", &format!("{RACK}{part}")).expect_err("it is wrong").to_string();
    assert!(errors.starts_with("x.yaml:") && errors.contains(expected), "{part}: {errors}");
}

#[test]
fn mirror_has_its_defaults_by_destination() {
    let config = rack("mirrors: [{name: losses, copy: dropped, to: {file: /var/log/holdfast/drops.pcapng}}]");
    let mirror = &config.switch.mirror;
    assert_eq!(mirror.sessions[..], [MirrorSession { dropped: true, ..MirrorSession::default() }]);
    assert_ne!(mirror.id, 0);
    let file = FileConfig { path: "/var/log/holdfast/drops.pcapng".into(), size: Bytes(64 << 20), files: 2 };
    assert_eq!(
        (config.mirror.targets[0].name.as_str(), &config.mirror.targets[0].to),
        ("losses", &Destination::File(file))
    );

    let config = rack("mirrors: [{name: taps, sample: 1000, to: {port: mon}}]");
    let mirror = &config.switch.mirror;
    let session = MirrorSession { sample: 1000, bytes: 9018, ports: !PortSet::only(2), ..MirrorSession::default() };
    assert_eq!((&mirror.sessions[..], mirror.outputs), (&[session][..], PortSet::only(2)));
    assert_eq!(config.mirror.targets[0].to, Destination::Port { port: 2, has_trailer: true });
    assert_eq!(config.warnings, [""; 0]);
}

#[test]
fn mirror_with_every_key_is_accepted() {
    let config = rack(
        "mirrors:
  - {name: a, copy: [dropped, marked], sample: 7, reasons: [threshold, pool_empty], ports: [p1], classes: [3, 4],
     bytes: 9216, rate: 5, to: {port: mon, trailer: false}}
  - {name: b, copy: marked, classes: 3, ports: p2, to: {file: /a, size: 64KiB, files: 100}}\n",
    );
    let mut reasons = ReasonSet::EMPTY;
    [DropReason::Threshold, DropReason::PoolEmpty].into_iter().for_each(|reason| reasons.insert(reason));
    let first = MirrorSession {
        dropped: true,
        marked: true,
        sample: 7,
        reasons,
        ports: PortSet::only(0),
        classes: [3, 4].into_iter().collect(),
        bytes: 9216,
        rate: 5,
    };
    let classes = ClassSet::only(3);
    let second = MirrorSession { marked: true, ports: PortSet::only(1), classes, ..MirrorSession::default() };
    assert_eq!(config.switch.mirror.sessions[..], [first, second]);
    let [one, two] = &config.mirror.targets[..] else { panic!("two targets") };
    assert_eq!(one.to, Destination::Port { port: 2, has_trailer: false });
    assert_eq!(two.to, Destination::File(FileConfig { path: "/a".into(), size: Bytes(64 << 10), files: 100 }));
}

#[test]
fn group_as_source_stands_for_its_members() {
    let config = rack(
        "lags: [{name: bond0, ports: [p1]}]\nmirrors: [{name: a, copy: dropped, ports: bond0, to: {port: mon}}]\n",
    );
    assert_eq!(config.switch.mirror.sessions[0].ports, PortSet::only(0));
}

#[test]
fn output_carries_no_vlan_and_sends_no_pfc_unless_it_is_written() {
    let mirrors = "mirrors: [{name: a, copy: dropped, to: {port: mon}}, {name: b, copy: marked, to: {port: mon}}]\n";
    let config = rack(mirrors);
    assert_eq!((config.switch.ports[2].pfc, config.switch.ports[0].pfc), (PfcMode::Off, PfcMode::Symmetric));
    assert_eq!(config.warnings, [""; 0]);
    let text = format!("{RACK}{mirrors}").replace("mtu: 9200", "mtu: 9200, pfc: software");
    assert_eq!(accept(&text).switch.ports[2].pfc, PfcMode::Symmetric);
    let text = format!("{RACK}{mirrors}").replace("mtu: 9200", "mtu: 9200, vlan: 7");
    refuse(&text, "x.yaml:5:65: ports[2].vlan: port `mon` sends copies only (`mirrors`); remove `vlan`");
    // An interface of VLAN 1 has the other ports alone.
    let config = rack(&format!("{mirrors}routing: {{interfaces: [{{vlan: 1, addresses: [10.0.0.1/24]}}]}}\n"));
    let routing = config.switch.routing.expect("a router");
    assert_eq!(routing.interfaces[0].ports, PortSet::first(2));
}

#[test]
fn output_is_no_destination_of_other_frames() {
    let mirrors = "mirrors: [{name: a, copy: dropped, to: {port: mon}}]\n";
    let expected = "port `mon` sends copies only (`mirrors`); write another port";
    refuse_part(&format!("{mirrors}routing: {{interfaces: [{{port: mon, addresses: [10.0.0.1/24]}}]}}\n"), expected);
    refuse_part(&format!("{mirrors}fdb: {{static: [{{mac: 02:00:00:00:00:01, port: mon}}]}}\n"), expected);
    let text = format!("{RACK}{mirrors}lags: [{{name: bond0, ports: [mon]}}]\n");
    let errors = config::parse("x.yaml", &text).expect_err("a member").to_string();
    assert!(errors.contains("port `mon` is a member of `bond0`; write another port, or remove it there"), "{errors}");
    let rings = "\
ports: [{name: p1, device: ring, speed: 10G}, {name: mon, device: ring, speed: 10G}]
mirrors: [{name: a, copy: dropped, to: {port: mon}}]
hosts: [{name: h1, port: p1}, {name: h2, port: mon}]
";
    assert_eq!(accept(rings).warnings, [""; 0], "a host may receive copies");
    warn(
        &rings.replace("port: mon}]\n", "port: mon, flows: [{to: h1}]}]\n"),
        "x.yaml:3:61: hosts[1].flows[0]: port mon sends copies only (`mirrors`), and drops all frames of its host; \
         remove the flow",
    );
}

#[test]
fn wrong_mirrors_are_refused_with_place_and_remedy() {
    let file = "to: {file: /a}";
    for (mirror, expected) in [
        (format!("{{copy: dropped, {file}}}"), "mirrors[0]: `name` is missing; write e.g. `name: losses`"),
        (format!("{{name: 'a b', copy: dropped, {file}}}"), "mirrors[0].name: `a b` is not a name; write up to 32"),
        (
            format!("{{name: sflow-drops, copy: dropped, {file}}}"),
            "mirrors[0].name: `sflow-drops` stands for a part of",
        ),
        (format!("{{name: sflow, copy: dropped, {file}}}"), "mirrors[0].name: `sflow` stands for a part of `sflow`;"),
        (
            format!("{{name: a, {file}}}"),
            "mirrors[0]: the mirror copies nothing; write e.g. `copy: dropped`, or `sample: 1000`",
        ),
        (
            format!("{{name: a, copy: all, {file}}}"),
            "mirrors[0].copy: `all` is not one of the choices; write `dropped` or `marked`",
        ),
        (
            format!("{{name: a, copy: [sampled], {file}}}"),
            "mirrors[0].copy[0]: `sampled` is no event to copy; write `sample: 1000` for one of so many frames",
        ),
        (
            format!("{{name: a, copy: [], {file}}}"),
            "mirrors[0].copy: the list is empty; write e.g. `[dropped, marked]`",
        ),
        (
            format!("{{name: a, sample: 0, {file}}}"),
            "mirrors[0].sample: `0` is not a number of frames; write a whole number from 1 to 1000000000",
        ),
        (
            format!("{{name: a, copy: marked, reasons: [wred], {file}}}"),
            "mirrors[0].reasons: without `dropped` in `copy` no frame has a reason; remove it, or write `copy: \
             dropped`",
        ),
        (
            format!("{{name: a, copy: dropped, reasons: [treshold], {file}}}"),
            "mirrors[0].reasons[0]: `treshold` is not a drop reason; write `threshold` if that was meant",
        ),
        (
            format!("{{name: a, copy: dropped, reasons: full, {file}}}"),
            "mirrors[0].reasons: `full` is not a drop reason; write ",
        ),
        (
            format!("{{name: a, copy: dropped, ports: [p9], {file}}}"),
            "mirrors[0].ports[0]: there is no port `p9`; write `p1`, `p2` or `mon`",
        ),
        (
            "{name: a, copy: dropped, ports: [mon], to: {port: mon}}".to_owned(),
            "mirrors[0].ports[0]: port `mon` sends copies only, and receives no frame to copy; remove it",
        ),
        (
            format!("{{name: a, copy: dropped, classes: [8], {file}}}"),
            "mirrors[0].classes[0]: `8` is not a class; write a whole number from 0 to 7",
        ),
        (
            format!("{{name: a, copy: dropped, bytes: 63, {file}}}"),
            "mirrors[0].bytes: `63` is not a number of bytes; write a whole number from 64 to 9216",
        ),
        (
            format!("{{name: a, copy: dropped, rate: 0, {file}}}"),
            "mirrors[0].rate: `0` is not a rate of copies; write a whole number from 1 to 100000",
        ),
        (format!("{{name: a, copy: dropped, t: 1, {file}}}"), "unknown key `t`"),
    ] {
        refuse_mirror(&mirror, expected);
    }
}

#[test]
fn wrong_destinations_are_refused_with_place_and_remedy() {
    for (to, expected) in [
        ("", "mirrors[0]: `to` is missing; write e.g. `to: {file: /var/log/holdfast/drops.pcapng}`"),
        (", to: mon", "to: `mon` is not a destination; write {port: mon} or {file: /var/log/holdfast/drops.pcapng}"),
        (
            ", to: {}",
            "to: `to` names neither port nor file; write {port: mon} or {file: /var/log/holdfast/drops.pcapng}",
        ),
        (", to: {port: mon, file: /a}", "to.file: `port` is given too; write a mirror for each of the two"),
        (", to: {port: mon, size: 1MiB}", "to.size: a port has no `size`; remove it"),
        (", to: {file: /a, trailer: true}", "to.trailer: a file has no `trailer`; remove it"),
        (", to: {port: mon, trailer: 1}", "to.trailer: `1` is not one of the choices; write `true` or `false`"),
        (", to: {port: m}", "to.port: there is no port `m`; write `p1`, `p2` or `mon`"),
        (
            ", to: {file: a.pcapng}",
            "to.file: `a.pcapng` is not an absolute path; write e.g. /var/log/holdfast/drops.pcapng",
        ),
        (", to: {file: [/a]}", "to.file: `[...]` is not a path; write e.g. /var/log/holdfast/drops.pcapng"),
        (", to: {file: /a/}", "to.file: `/a/` is not the path of a file; write e.g. /var/log/holdfast/drops.pcapng"),
        (", to: {file: /a/../b}", "to.file: `/a/../b` has a part `.` or `..`; write the path without it"),
        (", to: {file: /a/./b}", "to.file: `/a/./b` has a part `.` or `..`; write the path without it"),
        (", to: {file: /a, size: 1kB}", "to.size: `1kB` is out of range; write from 64KiB to 1024GiB"),
        (", to: {file: /a, files: 0}", "to.files: `0` is not a number of files; write a whole number from 1 to 100"),
    ] {
        refuse_mirror(&format!("{{name: a, copy: dropped{to}}}"), expected);
    }
    let long = "x".repeat(4000);
    refuse_mirror(
        &format!("{{name: a, copy: dropped, to: {{file: /{long}}}}}"),
        "the path has 4001 bytes; write at most 4000",
    );
    refuse_part(
        "lags: [{name: bond0, ports: [p1]}]\nmirrors: [{name: a, copy: dropped, to: {port: bond0}}]\n",
        "to.port: `bond0` is a link aggregation group; write a port that is in no group",
    );
}

#[test]
fn mirrors_share_no_name_and_no_file() {
    let two = |first: &str, second: &str| format!("{{copy: dropped, {first}}}, {{copy: dropped, {second}}}");
    refuse_mirror(
        &two("name: a, to: {file: /a}", "name: a, to: {file: /b}"),
        "mirrors[1].name: `a` is already the name of mirrors[0]; write another",
    );
    refuse_mirror(
        &two("name: a, to: {file: /x}", "name: b, to: {file: //x}"),
        "mirrors[1].to.file: `//x` is a file of mirrors[0] already; write another path",
    );
    refuse_mirror(
        &two("name: a, to: {file: /x, files: 3}", "name: b, to: {file: /x.2}"),
        "mirrors[1].to.file: `/x.2` is a file of mirrors[0] already; write another path",
    );
    refuse_mirror(
        &two("name: a, to: {file: /x, files: 1}", "name: b, to: {file: /x.99}"),
        "mirrors[1].to.file: `/x.99` is a file of mirrors[0] already; write another path",
    );
    refuse_mirror(
        &two("name: a, to: {file: /x}", "name: b, to: {file: /x.new}"),
        "mirrors[1].to.file: `/x.new` is a file of mirrors[0] already; write another path",
    );
    refuse_mirror(
        &two("name: a, to: {file: /x.new}", "name: b, to: {file: /x}"),
        "mirrors[1].to.file: `/x.new` is a file of mirrors[0] already; write another path",
    );
    let nine: Vec<String> = (0..9).map(|at| format!("{{name: m{at}, copy: dropped, to: {{port: mon}}}}")).collect();
    refuse_mirror(&nine.join(", "), "mirrors: 9 mirrors are too many; write at most 8");
    refuse_part("mirrors: on\n", "mirrors: `on` is not a list; write `- {name: losses, copy: dropped");
}

#[test]
fn copies_longer_than_frames_of_the_output_are_warned_of() {
    let text = format!("{RACK}mirrors: [{{name: a, copy: dropped, to: {{port: mon}}}}]\n");
    warn(
        &text.replace("mtu: 9200", "mtu: 1500"),
        "x.yaml:6:11: mirrors[0]: port `mon` has an MTU of 1500, so copies of longer frames do not fit; write `mtu: \
         9000` there, or `bytes: 1518` here",
    );
}

#[test]
fn sflow_has_three_sessions_behind_the_mirrors() {
    let config = rack(
        "mirrors: [{name: a, copy: dropped, to: {file: /a}}]\n\
         sflow: {collectors: [10.0.0.9, \"10.0.0.10:6344\", \"[::1]:7\", \"fd00::1\"], agent: 10.0.0.1, \
         marks: 9, bytes: 64}\n",
    );
    let names: Vec<&str> = config.mirror.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["a", "sflow-drops", "sflow-marks", "sflow-samples"]);
    assert!(config.mirror.targets[1..].iter().all(|target| target.to == Destination::Sflow));
    let of = MirrorSession { bytes: 64, ..MirrorSession::default() };
    let [_, drops, marks, samples] = config.switch.mirror.sessions[..] else { panic!("four sessions") };
    assert_eq!(drops, MirrorSession { dropped: true, rate: 100, ..of });
    assert_eq!(marks, MirrorSession { marked: true, rate: 9, ..of });
    assert_eq!(samples, MirrorSession { sample: 25_000, rate: 10_000, ..of }, "the speed of the fastest port in Mb/s");
    let address = |text: &str| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let expected = SflowConfig {
        collectors: ["10.0.0.9:6343", "10.0.0.10:6344", "[::1]:7", "[fd00::1]:6343"].map(address).to_vec(),
        agent: "10.0.0.1".parse().expect("an address"),
        poll: Nanos(20_000_000_000),
        sample: 25_000,
        drops: 100,
        marks: 9,
    };
    assert_eq!(config.mirror.sflow, Some(expected));
}

#[test]
fn parts_of_sflow_are_turned_off() {
    let sflow = |keys: &str| rack(&format!("sflow: {{collectors: 10.0.0.9, agent: \"::1\"{keys}}}\n"));
    let config = sflow(", sample: off, drops: 0");
    assert_eq!((config.switch.mirror.sessions.len(), config.switch.mirror.id), (0, 0), "counters need no session");
    assert_eq!(config.warnings, [""; 0]);
    assert_eq!(sflow(", poll: off").mirror.sflow.map(|sflow| sflow.poll), Some(Nanos(0)));
    let config = sflow(", sample: 0, drops: off, marks: off, poll: off");
    assert!(config.warnings[0].ends_with("this agent reports nothing; write e.g. `sample: 4096`, or `sflow: off`"));
    assert_eq!(rack("sflow: off").mirror.sflow, None);
    let slow = RACK.replace("25G", "100M").replace("10G", "100M");
    let config = accept(&format!("{slow}sflow: {{collectors: [10.0.0.9], agent: 10.0.0.1}}\n"));
    assert_eq!(config.mirror.sflow.map(|sflow| sflow.sample), Some(256));
}

#[test]
fn wrong_sflow_is_refused_with_place_and_remedy() {
    for (keys, expected) in [
        ("agent: 10.0.0.1", "sflow: `collectors` is missing; write e.g. `collectors: [10.0.0.9]`"),
        ("collectors: [10.0.0.9]", "sflow: `agent` is missing; write e.g. `agent: 10.0.0.1`"),
        ("collectors: [], agent: 10.0.0.1", "sflow.collectors: an agent has 1 to 4 collectors, not 0"),
        ("collectors: [x], agent: 10.0.0.1", "sflow.collectors[0]: `x` is not the address of a collector; write e.g."),
        ("collectors: [0.0.0.0], agent: 10.0.0.1", "`0.0.0.0` is not the address of a collector; write e.g."),
        ("collectors: [\"10.0.0.9:0\"], agent: 10.0.0.1", "`10.0.0.9:0` is not the address of a collector"),
        ("collectors: [1.1.1.1, \"1.1.1.1:6343\"], agent: 10.0.0.1", "1.1.1.1:6343 is a collector already; remove one"),
        (
            "collectors: 1.1.1.1, agent: tor1",
            "sflow.agent: `tor1` is not an address of the switch; write e.g. 10.0.0.1",
        ),
        (
            "collectors: 1.1.1.1, agent: 1.1.1.2, sample: x",
            "sflow.sample: `x` is not a number of frames; write a whole",
        ),
        ("collectors: 1.1.1.1, agent: 1.1.1.2, drops: 100001", "sflow.drops: `100001` is not a rate of frames; write"),
        ("collectors: 1.1.1.1, agent: 1.1.1.2, marks: x", "sflow.marks: `x` is not a rate of frames; write a whole"),
        (
            "collectors: 1.1.1.1, agent: 1.1.1.2, poll: 10ms",
            "sflow.poll: `10ms` is out of range; write from 1s to 3600s",
        ),
        (
            "collectors: 1.1.1.1, agent: 1.1.1.2, bytes: 513",
            "sflow.bytes: `513` is not a number of bytes; write a whole",
        ),
        ("collector: 1.1.1.1", "unknown key `collector`; did you mean `collectors`?"),
    ] {
        refuse_part(&format!("sflow: {{{keys}}}\n"), expected);
    }
}

#[test]
fn number_of_sessions_follows_sessions_and_destinations() {
    let id = |text: &str| rack(text).switch.mirror.id;
    let mirror = "mirrors: [{name: a, copy: dropped, to: {file: /a}}]\n";
    assert_eq!((id(""), id(mirror)), (0, id(mirror)));
    for (from, to) in [("/a", "/b"), ("dropped", "marked"), ("name: a", "name: b"), ("to:", "rate: 1, to:")] {
        assert_ne!(id(mirror), id(&mirror.replacen(from, to, 1)), "{from} -> {to}");
    }
}

#[test]
fn simulated_switch_has_outputs_and_makes_no_copies() {
    let overrides = Overrides { simulated: true, ..Overrides::default() };
    let text = format!(
        "{RACK}mirrors: [{{name: a, copy: dropped, to: {{port: mon}}}}]\n\
         sflow: {{collectors: 1.1.1.1, agent: 1.1.1.2}}\n"
    );
    let config = overrides.parse("x.yaml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((config.switch.mirror.sessions.len(), config.switch.mirror.outputs), (0, PortSet::only(2)));
    assert_eq!(config.mirror, holdfast::mirror::MirrorConfig::default());
}

#[test]
fn output_of_a_switch_without_lossy_class_is_refused() {
    let classes: String = (0..8).map(|class| format!("  {class}: {{lossless: true}}\n")).collect();
    let text = format!(
        "buffer: {{size: 64MiB}}\nclasses:\n{classes}ports: [{{name: p1, device: ring, speed: 10G}}, \
         {{name: mon, device: ring, speed: 10G}}]\nmirrors: [{{name: a, copy: dropped, to: {{port: mon}}}}]\n"
    );
    let errors = config::parse("rack.yaml", &text).expect_err("no class can carry copies").to_string();
    assert!(errors.contains("mirrors: all classes are lossless, and copies need a lossy one at a port"), "{errors}");
}

#[test]
fn plan_has_a_line_for_each_mirror_and_for_sflow() {
    let config = rack(
        "mirrors:
  - {name: a, copy: dropped, reasons: [threshold, wred], ports: [p1], classes: [3, 4], to: {file: /a}}
  - {name: b, copy: marked, sample: 100, to: {port: mon}}
  - {name: c, sample: 1, to: {port: mon}}
sflow: {collectors: [10.0.0.9], agent: 10.0.0.1, poll: off}\n",
    );
    assert_eq!(
        config::mirror_words::lines(&config),
        [
            "mirror a: dropped for threshold, wred, from p1, classes 3, 4; 128 bytes, at most 1000 a second of each \
             event and class on each lcore; to /a, 2 files of 64MiB",
            "mirror b: marked, one of 100 frames; 9018 bytes, at most 1000 a second of each event and class on each \
             lcore; to port mon with trailer",
            "mirror c: each frame; 9018 bytes, at most 1000 a second of each event and class on each lcore; to port \
             mon with trailer",
            "sFlow: collectors: [10.0.0.9:6343], agent: 10.0.0.1, sample: 25000, poll: off, drops: 100, marks: off, \
             bytes: 128",
        ]
    );
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &config.text).expect("room");
    let (code, stdout, stderr) = commands::holdfast(&["check", file.path().to_str().expect("a path")]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(
        stdout.contains("\nmirror a: dropped for threshold, wred, from p1") && stdout.contains("\nsFlow: "),
        "{stdout}"
    );
}
