//! The commands `check`, `headroom` and `run`, as a user runs them.
//!
//! The commands of docs/configuration.md are run here.

use assert_cmd::Command;

use super::*;

pub fn holdfast(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_holdfast")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn check_shows_the_plan() {
    let path = conf_dir().join("incast.yaml");
    let (code, stdout, stderr) = holdfast(&["check", path.to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let outlook = "\
lossless groups: 1; the buffer has room for 8 at these cables and rates, with independent headroom
headroom assumes small packets only: 267.1KiB of it would not be needed without small packets
ECN of class 3 marks from 97.65KiB, XOFF no earlier than 347KiB in each queue: before
";
    let watchdog = "drop after 200ms, until 200ms of quiet";
    for part in ["p5", "lossless pool", "weight 4", "to h5", "headroom", outlook, watchdog, "1 dataplane lcore\n"] {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
}

#[test]
fn check_omits_small_packet_cost_when_headroom_is_explicit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.yaml");
    let ports =
        "preset: roce\nports: [{name: p1, device: net_tap0, speed: 10G}, {name: p2, device: net_tap1, speed: 10G}]\n";
    let said = |settings: &str| {
        std::fs::write(&path, format!("{ports}{settings}")).unwrap();
        let (code, stdout, stderr) = holdfast(&["check", path.to_str().unwrap()]);
        assert_eq!((code, stderr.as_str()), (0, ""), "{settings}");
        let (_, json, _) = holdfast(&["check", path.to_str().unwrap(), "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let is_null = json["outlook"]["small_packets_cost_bytes"].is_null();
        assert_eq!(stdout.contains("small packets"), !is_null, "{settings}: {stdout}");
        stdout.contains("small packets")
    };
    let [given, none] = ["classes: {3: {headroom: 200kB}}\n", "buffer: {small_packets: 0%}\n"];
    for settings in [
        "buffer: {headroom: {policy: shared-pool, size: 1MiB}}\n",
        given,
        &given.replace("}}", "}}\nbuffer: {small_packets: 0%}"),
    ] {
        assert!(!said(settings), "{settings}");
    }
    for settings in ["buffer: {headroom: shared-pool}\n", none, ""] {
        assert!(said(settings), "{settings}");
    }
}

#[test]
fn check_shows_settings_of_each_port() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.yaml");
    let text = "\
preset: roce
ports:
  - {name: p1, device: net_tap0, speed: 10G, reserve: {lossless: 20kB}, vlan: {tagged: [7]}, rewrite: [dscp, pcp], storm_control: {unknown: off}}
  - {name: p2, device: net_tap1, speed: 10G, maps: {dscp: {46-47: 1}, roce: {ack: 6}}, max_rate: {5: 2G, 3: {rate: 1G, burst: 20kB}}, pfc: asymmetric, backlog_mark: off}
buffer: {headroom: dynamic, queue_policy: abm}
classes: {3: {qcn: on, telemetry: hpcc}}
storm_control: {broadcast: 20pps, unknown: 1kpps}
faults: {list: [{lose: p1}]}
maps: {tc_to_dscp: {3: 26}, tc_to_pcp: {3: 3}}
lcores: {dataplane: [1, 2]}
";
    std::fs::write(&path, text).unwrap();
    let file = path.to_str().unwrap();
    let (code, stdout, stderr) = holdfast(&["check", file]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let parts = [
        "2 dataplane lcores on CPUs 1, 2",
        "dscp, pcp",
        "asymmetric",
        "lossless 19.7KiB",
        "headroom, dynamic",
        "port p2, unlike port p1: DSCP 46-47 to class 1",
        "\nqueue policy {policy: abm, interval: 25us, congested: 20KiB} for queues 0-2,4-7\n",
        "\ntelemetry hpcc: notes in marked RoCE packets of queue 3\n",
        "\nQCN in queue 3: set point ",
        "\nRoCE of p2: ack 6\n",
        "\nmaximum rates of p2: classes.3 1G, burst 19.53KiB; classes.5 2G, burst ",
        "\nstorm control of p1: broadcast 20pps\nstorm control of p2: broadcast 20pps, unknown 1kpps\n",
        "\nfault injection is allowed: 1 from the start, others by the API\n",
    ];
    for part in parts {
        assert!(stdout.contains(part), "{part} is missing:\n{stdout}");
    }
    let (_, stdout, _) = holdfast(&["check", file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let outlook = &json["outlook"];
    assert_eq!((&outlook["headroom_policy"], &outlook["lossless_fit"]), (&"dynamic".into(), &8.into()));
    assert_eq!((&outlook["ecn"][0]["class"], &outlook["ecn"][0]["ecn_before_xoff"]), (&3.into(), &true.into()));
}

#[test]
fn headroom_prints_the_total_of_each_policy() {
    let args = ["headroom", "--speed", "100G", "--cable", "300m", "--ports", "32", "--classes", "7", "--ratio", "2.5"];
    let (code, stdout, _) = holdfast(&args);
    assert_eq!(code, 0);
    for row in ["independent  1233120", "shared-pool   493248", "dynamic       176160"] {
        assert!(stdout.contains(row), "{row} is missing:\n{stdout}");
    }
    let (_, stdout, _) = holdfast(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["policy_cells"]["dynamic"], 176_160);
    let (code, _, stderr) = holdfast(&["headroom", "--speed", "1G", "--cable", "3m", "--ratio", "0"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`0` is not a ratio; write a number from 1 to 64, e.g. 2 or 2.5"), "{stderr}");
}

#[test]
fn check_prints_every_error_and_ends_with_2() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.yaml");
    std::fs::write(&path, "preset: roce\nports: [{name: p1, device: net_tap0, speed: 25Q, mtu: 1}]\n").unwrap();
    let file = path.to_str().unwrap();
    let (code, stdout, stderr) = holdfast(&["check", file]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    let speed = "ports[0].speed: `25Q` is not a bit rate; write e.g. 100M, 10G, 25G, 100G or 400Gb/s";
    let mtu = "ports[0].mtu: `1` is not an MTU; write a whole number from 256 to 9600";
    assert_eq!(stderr, format!("error: {file}:2:45: {speed}\nerror: {file}:2:55: {mtu}\n"));

    let (code, stdout, _) = holdfast(&["check", file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &json["ok"], &json["errors"][0]["line"]), (2, &false.into(), &2.into()));
    assert_eq!(json["errors"][1]["key"], "ports[0].mtu");
}

#[test]
fn run_refuses_a_wrong_file_as_check_does() {
    let (code, _, stderr) = holdfast(&["run", "/nonexistent/x.yaml"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: /nonexistent/x.yaml: cannot be read: "), "{stderr}");
}

#[test]
fn headroom_prints_each_term_and_the_total() {
    let args = ["headroom", "--speed", "100G", "--cable", "300m", "--mtu", "1500"];
    let (code, stdout, stderr) = holdfast(&args);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let line = |name: &str| {
        let line = stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {stdout}"));
        line[name.len()..].split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(line("cable, both ways"), "37500");
    assert_eq!(line("slower response"), "21376");
    assert_eq!(line("total"), "1145040");
    assert_eq!(line("seed alone"), "44432");

    let (_, stdout, _) = holdfast(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["seed_bytes"], &json["total_bytes"]), (&44_432.into(), &1_145_040.into()));
}

/// Eta of a 40G port, by the command and by the configuration.
#[test]
fn headroom_follows_small_packets_share_as_the_configuration_does() {
    let total = |share: &str| {
        let args = ["headroom", "--speed", "40G", "--cable", "300m", "--json", "--small-packets", share];
        let (code, stdout, stderr) = holdfast(&args);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        (json["total_bytes"].as_u64().unwrap(), json["small_packets_percent"].clone())
    };
    let of_config = |share: &str| {
        let text =
            "preset: roce\nports: [{name: p1, device: net_tap0, speed: 40G, cable: 300m, rx_descriptors: 4096}]\n";
        let config = accept(&format!("{text}buffer: {{small_packets: {share}}}\n"));
        let bytes = config.switch.ports[0].buffer.groups[3].headroom.to_bytes(config.switch.buffer.cell).0;
        (bytes, config.summary.small_packets_cost.expect("headroom by the formula").0)
    };
    let totals = ["100%", "25%", "0%"].map(total);
    assert!(totals[0].0 > totals[1].0 && totals[1].0 > totals[2].0, "{totals:?}");
    assert_eq!((&totals[0].1, &totals[1].1), (&100.into(), &25.into()));
    for ((bytes, _), share) in totals.iter().zip(["100%", "25%", "0%"]) {
        assert_eq!(of_config(share), (*bytes, bytes - totals[2].0), "{share}");
    }
    let (code, _, stderr) = holdfast(&["headroom", "--speed", "40G", "--cable", "3m", "--small-packets", "101%"]);
    assert_eq!(code, 2);
    let expected = "`101%` is not a share of small packets; write a whole percentage from 0% to 100%, e.g. 25%";
    assert!(stderr.contains(expected), "{stderr}");
    refuse_beside_ports("buffer: {small_packets: 101%}\n", &format!("x.yaml:4:25: buffer.small_packets: {expected}"));
}

/// The command refuses the same values as the configuration, with the same messages.
#[test]
fn headroom_has_the_bounds_of_the_configuration() {
    let base = [("--speed", "100G"), ("--cable", "3m"), ("--mtu", "1500"), ("--cell", "208B"), ("--poll-gap", "20us")];
    for (option, wrong, expected) in [
        ("--speed", "801G", "`801G` is not a port speed; write from 10M to 800G"),
        ("--cable", "1000000km", "`1000000km` is too long for PFC; write at most 100km"),
        ("--mtu", "9601", "9601 is not in 256..=9600"),
        ("--cell", "63B", "`63B` is out of range; write a size from 64B to 16KiB"),
        ("--poll-gap", "0ns", "`0ns` is not a poll gap; write from 1ns to 10ms"),
        ("--poll-gap", "11ms", "`11ms` is not a poll gap; write from 1ns to 10ms"),
        (
            "--response",
            "12500001B",
            "a response of 12500001 B at 100G is longer than any peer may take to obey PFC; write at most 12500000 B",
        ),
    ] {
        let others = base.iter().filter(|(name, _)| *name != option).flat_map(|(name, value)| [*name, *value]);
        let args: Vec<&str> = ["headroom"].into_iter().chain(others).chain([option, wrong]).collect();
        let (code, stdout, stderr) = holdfast(&args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{option} {wrong}");
        assert!(stderr.contains(expected), "{option} {wrong}: {stderr}");
    }
    // At its bounds the command prints a total above its seed.
    let args = ["headroom", "--speed", "800G", "--cable", "100km", "--poll-gap", "10ms", "--json"];
    let (code, stdout, _) = holdfast(&args);
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 0);
    assert!(json["total_bytes"].as_u64() > json["seed_bytes"].as_u64(), "{stdout}");
}

#[test]
fn headroom_warns_of_a_pause_that_may_end_early() {
    let args = ["headroom", "--speed", "400G", "--cable", "3m", "--poll-gap", "60us"];
    let (code, stdout, _) = holdfast(&args);
    assert_eq!(code, 0);
    let warning = "warning: at 400G a pause lasts 83.88us and is refreshed after half of that, which may be too late: \
                   the peer may resume before the refresh arrives, and no headroom is enough; the longest poll gap \
                   without this is 30753 ns\n";
    assert!(stdout.ends_with(warning), "{stdout}");
    let (_, stdout, _) = holdfast(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["warnings"].as_array().map(Vec::len), Some(1));
    let (_, stdout, _) = holdfast(&["headroom", "--speed", "400G", "--cable", "3m"]);
    assert!(!stdout.contains("warning"), "{stdout}");
}

#[test]
fn wrong_usage_ends_with_2_and_names_the_remedy() {
    let (code, _, stderr) = holdfast(&["headroom", "--speed", "100", "--cable", "3m"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`100` is not a bit rate; write e.g. 100M"), "{stderr}");
    let (code, _, stderr) = holdfast(&[]);
    assert_eq!(code, 2);
    assert!(stderr.contains("Usage: holdfast"), "{stderr}");
}

/// Wrong arguments are refused before a switch is contacted: no switch runs here.
#[test]
fn wrong_client_arguments_are_refused_with_valid_choices() {
    for (args, expected) in [
        (
            &["show"][..],
            "error: `holdfast show` needs an argument; write one of ports, pfc, buffers, groups, queues, drops, ecn, \
             fdb, vlans, lags, lldp, faults, mirrors, interfaces, neighbours, routes, watchdog, ",
        ),
        (&["show", "--json"], "e.g. `holdfast show ports`\n"),
        (
            &["clear"],
            "error: `holdfast clear` needs an argument; write one of watermarks, fdb, counters, e.g. `holdfast clear watermarks`\n",
        ),
        (&["show", "ports", "--class", "9"], "`9` is not a traffic class; write a number from 0 to 7"),
        (&["show", "ports", "--class", "x"], "`x` is not a traffic class; write a number from 0 to 7"),
        (
            &["show", "lags", "--class", "3"],
            "`show lags` does not take --class: it has no rows of a class; remove --class",
        ),
        (&["version"], "there is no command `version`; write `holdfast --version`, or `holdfast show version` for"),
        (&["why-dropped", "--class", "8"], "`8` is not a traffic class; write a number from 0 to 7"),
        (&["show", "ports", "--watch", "0"], "`0` is not an interval; write seconds from 0.1 to 86400, e.g. 2"),
    ] {
        let (code, stdout, stderr) = holdfast(args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
    }
}

#[test]
fn headroom_exits_cleanly_when_reader_closes_pipe() {
    close_the_pipe(&["headroom", "--speed", "100G", "--cable", "3m"]);
}

/// Runs a command whose standard output is closed. It must succeed and print no error.
pub fn close_the_pipe(args: &[&str]) {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty() && output.status.success(), "{output:?}");
}
