//! Exit codes of all commands: 2 for a wrong command line or input, 1 for a refusal or a failure.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use super::commands::holdfast;

/// A command line, and its exit code.
type Case = (&'static [&'static str], i32);

/// No switch runs here: `--socket` names no socket.
const NO_SWITCH: &str = "/nonexistent/s";

const CASES: &[Case] = &[
    (&["run", "--nothing"], 2),
    (&["run", "/nonexistent.yaml"], 2),
    (&["run", "--status", "soon"], 2),
    (&["show"], 2),
    (&["show", "nothing"], 2),
    (&["show", "lags", "--class", "3"], 2),
    (&["show", "routes", "10.0.0.0/8&x=1"], 2),
    (&["show", "ports", "--socket", "off"], 2),
    (&["show", "ports", "--socket", NO_SWITCH], 1),
    (&["top", "--socket", NO_SWITCH], 2),
    (&["why-dropped", "--class", "9"], 2),
    (&["why-dropped", "--socket", NO_SWITCH], 1),
    (&["clear"], 2),
    (&["clear", "watermarks", "--port", "p1"], 2),
    (&["clear", "fdb", "--vlan", "4095"], 2),
    (&["clear", "fdb", "--socket", NO_SWITCH], 1),
    (&["clear", "fdb", "--undo"], 2),
    (&["clear", "counters", "--vlan", "1"], 2),
    (&["clear", "counters", "--socket", NO_SWITCH], 1),
    (&["reload", "--nothing"], 2),
    (&["reload", "/nonexistent.yaml"], 2),
    (&["reload", "--confirm", "0s"], 2),
    (&["confirm", "now"], 2),
    (&["confirm", "--socket", NO_SWITCH], 1),
    (&["history", "first"], 2),
    (&["history", "--socket", NO_SWITCH], 1),
    (&["rollback", "-1"], 2),
    (&["rollback", "1", "--socket", NO_SWITCH], 1),
    (&["reload", "--socket", NO_SWITCH], 1),
    (&["fault"], 2),
    (&["fault", "add", "{lose: p1"], 2),
    (&["fault", "add", "{lose: p1}", "--socket", NO_SWITCH], 1),
    (&["fault", "remove", "x"], 2),
    (&["fault", "remove", "1", "--socket", NO_SWITCH], 1),
    (&["fault", "clear", "--socket", NO_SWITCH], 1),
    (&["check", "/nonexistent.yaml"], 2),
    (&["headroom", "--speed", "100", "--cable", "3m"], 2),
    (&["replay", "/nonexistent.csv"], 2),
    (&["sim", "/nonexistent.yaml"], 2),
    (&["sim", "merge", "/nonexistent"], 2),
    (&["doctor", "/nonexistent.yaml"], 2),
    (&["nic-check", "p1", "p1"], 2),
    (&["completions", "none"], 2),
    (&["man"], 2),
    (&["man", "/proc/nonexistent"], 1),
    (&["nothing"], 2),
];

/// Commands whose output cannot be written: a failure, whatever the input.
const TO_A_FULL_DISK: &[&[&str]] = &[
    &["check"],
    &["headroom", "--speed", "100G", "--cable", "3m"],
    &["completions", "bash"],
    &["doctor"],
    &["sim", "conf/sim/incast.yaml"],
    &["replay", "--config", "conf/replay-xoff.yaml", "conf/replay-xoff.csv"],
];

#[test]
fn each_command_ends_with_2_for_wrong_input_and_with_1_for_a_failure() {
    let (_, help, _) = holdfast(&["--help"]);
    let list = help.split("Commands:\n").nth(1).and_then(|text| text.split("\n\n").next()).expect("a list of commands");
    let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = list.lines().filter(is_name);
    let commands: BTreeSet<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    let tested: BTreeSet<&str> = CASES.iter().filter(|(_, code)| *code == 2).map(|(args, _)| args[0]).collect();
    let missing: Vec<_> = commands.iter().filter(|name| **name != "help" && !tested.contains(**name)).collect();
    assert!(commands.len() > 10 && missing.is_empty(), "no case for {missing:?}");
    for (args, code) in CASES {
        let (found, stdout, stderr) = holdfast(args);
        assert_eq!((found, stdout.as_str()), (*code, ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with("error: ") || stderr.contains("Usage: "), "{args:?}: {stderr}");
    }
}

#[test]
fn output_that_cannot_be_written_ends_each_command_with_1() {
    for args in TO_A_FULL_DISK {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
        let output = command.args(*args).stdout(full).output().expect("it can be started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("standard output cannot be written"), "{args:?}: {stderr}");
    }
}
