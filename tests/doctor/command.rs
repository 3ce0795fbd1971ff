//! The command `holdfast doctor`: its output, its exit codes and its JSON.
//!
//! The commands of docs/deploy.md are run here.

use assert_cmd::Command;
use serde_json::Value;

use crate::server::{NICS, NONE, Server};

fn holdfast(args: &[&str]) -> (i32, String, String) {
    // Other tests may run a switch.
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    let output = command.arg("doctor").args(args).env("HOLDFAST_SOCKET", "off").output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn exit_code_is_1_only_with_a_bad_finding() {
    let server = Server::new();
    server.file("switch.yaml", NICS);
    let (file, root) = (server.path("switch.yaml"), server.root().display().to_string());
    let args = [file.to_str().expect("a plain path"), "--root", &root];
    let (code, text, _) = holdfast(&args);
    assert!(code == 0 && text.contains("\n0 bad, "), "{text}");

    server.process(65_534, NONE, "65536");
    let (code, text, _) = holdfast(&args);
    assert_eq!(code, 1, "{text}");
    // Each finding has columns, and its remedy is on the next line.
    let line = text.lines().position(|line| line.starts_with("bad    locked memory  ")).expect("a line");
    assert!(text.lines().nth(line + 1).is_some_and(|line| line.trim_start().starts_with("> `ulimit -l")), "{text}");
    assert!(!text.contains("\n0 bad, "), "{text}");

    let (code, text, _) = holdfast(&[&args[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, &json["format"]), (1, &1.into()));
    let findings = json["findings"].as_array().expect("a list");
    let bad: Vec<&Value> = findings.iter().filter(|finding| finding["level"] == "bad").collect();
    assert_eq!(json["bad"], bad.len());
    assert!(bad.iter().any(|finding| finding["where"] == "locked memory"), "{text}");
    assert!(bad.iter().all(|finding| finding["remedy"].is_string()), "{text}");
}

/// On any machine a missing facility is not bad unless a configuration needs it.
#[test]
fn this_machine_without_configuration_has_no_bad_finding() {
    let (code, text, stderr) = holdfast(&[]);
    assert!(text.contains("\nok     dpdk") || text.contains("\nwarn   dpdk"), "{text}");
    assert!(text.lines().any(|line| line.contains(" may be used")), "{text}");
    assert_eq!(stderr, "");
    assert_eq!(code, 0, "{text}");
}

#[test]
fn fix_prints_a_script_and_changes_nothing() {
    let server = Server::new();
    server.pages(0, 0, 0);
    server.pages(1, 0, 0);
    server.file("switch.yaml", NICS);
    let (file, root) = (server.path("switch.yaml"), server.root().display().to_string());
    let args = [file.to_str().expect("a plain path"), "--root", &root];
    let (_, text, _) = holdfast(&args);
    assert!(text.ends_with("\n`--fix --dry-run` prints commands that last beyond a reboot\n"), "{text}");
    let (code, text, _) = holdfast(&[&args[..], &["--fix", "--dry-run"]].concat());
    assert!(
        code == 0 && text.starts_with("#!/bin/sh\n") && text.contains("/etc/tmpfiles.d/holdfast-hugepages"),
        "{text}"
    );
    assert_eq!(server.look().iter().filter(|finding| finding.place.starts_with("hugepages, node")).count(), 0);
    let (code, text, stderr) = holdfast(&[&args[..], &["--fix"]].concat());
    assert!(code == 2 && text.is_empty() && stderr.contains("--dry-run"), "{stderr}");
}

#[test]
fn doctor_names_the_socket_at_which_no_switch_answers() {
    let server = Server::new();
    let (root, socket) = (server.root().display().to_string(), server.path("none.sock").display().to_string());
    let (code, text, _) = holdfast(&["--root", &root, "--socket", &socket]);
    let lines: Vec<&str> = text.lines().collect();
    let line = lines.iter().position(|line| line.starts_with("ok     running switch  ")).expect("a line");
    assert!(lines[line + 1].contains(&format!("> no switch listens at {socket}: start one")), "{text}");
    assert_eq!(code, 0, "{text}");
    server.file("none.sock", "a file");
    let (_, text, _) = holdfast(&["--root", &root, "--socket", &socket]);
    assert!(text.contains("\nwarn   running switch  ") && text.contains("is not a socket"), "{text}");
}

#[test]
fn a_configuration_that_is_wrong_is_refused_first() {
    let (code, text, stderr) = holdfast(&["/nowhere/switch.yaml"]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(stderr.starts_with("error: /nowhere/switch.yaml"), "{stderr}");
}
