//! Configurations that must be confirmed, and those by which the switch ran.
//!
//! The commands of docs/reload.md are run here.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::process::{mortal, wait_for};
use crate::rig::{HOLDFAST, PATIENCE, Switch, run};

/// The embedded incast, with API writes permitted.
fn incast() -> String {
    format!("api: {{writes: true}}\n{}", include_str!("../../conf/incast.yaml"))
}

/// The incast with another alpha of class 3.
fn changed(alpha: &str) -> String {
    format!("{}\nclasses: {{3: {{alpha: {alpha}}}}}\n", incast())
}

fn alpha(switch: &Switch) -> f64 {
    let groups = &switch.get("groups")["groups"];
    let rows = groups.as_array().expect("groups");
    rows.iter().find(|group| group["group"] == 3).and_then(|group| group["alpha"].as_f64()).expect("an alpha")
}

/// Lets the switch run by `text`, with further arguments of `holdfast reload`.
fn reload(switch: &Switch, text: &str, args: &[&str]) -> Output {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, text).expect("it is written");
    let path = file.path().to_str().expect("a path");
    switch.holdfast(&[&["reload", path], args].concat())
}

fn causes(switch: &Switch) -> Vec<(u64, String)> {
    let all = switch.get("history");
    let cause =
        |past: &Value| (past["number"].as_u64().expect("a number"), past["cause"].as_str().unwrap_or("").to_owned());
    all["history"].as_array().expect("a list").iter().map(cause).collect()
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn unconfirmed_configuration_gives_way_to_the_one_before() {
    let switch = Switch::configured(&incast());
    let before = alpha(&switch);
    let told = reload(&switch, &changed("1/16"), &["--confirm", "2s"]);
    assert!(told.status.success() && shown(&told).contains("`holdfast confirm` within 2s"), "{told:?}");
    // Its client has ended.
    wait_for("the configuration before", PATIENCE, || (alpha(&switch) == before).then_some(()));
    let stderr = switch.process.stderr();
    assert!(stderr.contains("reload: nobody has confirmed it: back to the configuration before"), "{stderr}");
    wait_for("the settings that came back", PATIENCE, || {
        switch.process.stderr().contains("classes.3.alpha: 1/16 -> 1/4").then_some(())
    });
    assert_eq!(causes(&switch), [(1, "start".to_owned())]);
    let late = switch.holdfast(&["confirm"]);
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert!(shown(&late).contains("no configuration waits"), "{late:?}");
    switch.end();
}

#[test]
fn confirmed_configuration_stays_and_an_earlier_one_comes_back() {
    let switch = Switch::configured(&incast());
    let before = alpha(&switch);
    assert!(reload(&switch, &changed("1/16"), &["--confirm", "60s"]).status.success());
    assert_eq!(alpha(&switch), 1.0 / 16.0);
    let second = reload(&switch, &changed("1/8"), &[]);
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    assert!(shown(&second).contains("holdfast confirm"), "{second:?}");
    assert!(switch.printed(&["confirm"]).ends_with(": confirmed\n"));
    assert_eq!(causes(&switch), [(1, "start".to_owned()), (2, "confirm".to_owned())]);
    assert_eq!(switch.printed(&["history", "2"]), changed("1/16"));
    let listed = switch.printed(&["history"]);
    assert!(listed.contains("p1, p2, p3, p4, p5: classes.3.alpha: 1/4 -> 1/16"), "{listed}");
    // Without a number back to the one before; the switch's file is not changed by it.
    let dry = switch.printed(&["rollback", "--dry-run"]);
    assert!(dry.starts_with("history 1: 1 setting differs and can be applied"), "{dry}");
    assert!(switch.holdfast(&["rollback"]).status.success());
    assert_eq!((alpha(&switch), causes(&switch).len()), (before, 3));
    assert!(switch.holdfast(&["rollback", "2", "--confirm", "1h"]).status.success());
    assert_eq!(alpha(&switch), 1.0 / 16.0);
    // A configuration that waits gives way to it too.
    assert!(switch.holdfast(&["rollback"]).status.success());
    assert_eq!((alpha(&switch), causes(&switch).len()), (before, 3));
    let unknown = switch.holdfast(&["rollback", "99"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    assert_eq!(switch.ask("GET /v1/history/99").0, 404);
    assert_eq!(reload(&switch, "ports: 7\n", &[]).status.code(), Some(2));
    switch.end();
}

#[test]
fn reader_may_compare_but_not_change() {
    let switch = Switch::configured(include_str!("../../conf/incast.yaml"));
    let text = format!("{}\nclasses: {{3: {{alpha: 1/16}}}}\n", include_str!("../../conf/incast.yaml"));
    assert!(reload(&switch, &text, &["--dry-run"]).status.success());
    for refused in [reload(&switch, &text, &[]), switch.holdfast(&["confirm"]), switch.holdfast(&["rollback"])] {
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(shown(&refused).contains("api: {writes: true}"), "{refused:?}");
    }
    switch.end();
}

/// A switch that keeps its history in `state`.
fn kept(state: &Path) -> Switch {
    Switch::with(run(&["--state", state.to_str().expect("a path")]), Some(&incast()))
}

#[test]
fn history_outlives_a_kill_and_the_next_start_tells_what_differs() {
    let state = tempfile::tempdir().expect("a directory");
    let switch = kept(state.path());
    assert!(reload(&switch, &changed("1/16"), &[]).status.success());
    switch.process.signal("KILL");
    switch.process.wait(PATIENCE);
    let switch = kept(state.path());
    let told = "the configuration that ran last (number 2, ";
    wait_for("a warning", PATIENCE, || switch.process.stderr().contains(told).then_some(()));
    assert!(switch.process.stderr().contains("`holdfast rollback 2` applies it"), "{}", switch.process.stderr());
    assert_eq!(causes(&switch), [(1, "start".to_owned()), (2, "reload".to_owned()), (3, "start".to_owned())]);
    assert!(switch.holdfast(&["rollback", "2"]).status.success());
    assert_eq!(alpha(&switch), 1.0 / 16.0);
    switch.end();
}

#[test]
fn reload_with_a_full_disk_is_applied_with_a_warning_and_earlier_files_stay() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let state = tempfile::tempdir().expect("a directory");
    let script = "mount -t tmpfs -o size=64k none \"$0\" && exec \"$@\"";
    let mut command = mortal("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(state.path()).args([HOLDFAST, "run", "--duration", "0"]);
    command.args(["--metrics", "off", "--state"]).arg(state.path());
    let switch = Switch::with(command, Some(&incast()));
    let inside = format!("/proc/{}/root{}", switch.process.pid(), state.path().display());
    // Fails when nothing is left.
    let _ = std::fs::write(format!("{inside}/other"), vec![0; 1 << 20]);
    let told = reload(&switch, &changed("1/16"), &[]);
    assert!(told.status.success() && shown(&told).contains("is not kept on the disk: No space left"), "{told:?}");
    assert_eq!((alpha(&switch), causes(&switch).len()), (1.0 / 16.0, 2));
    let names = std::fs::read_dir(format!("{inside}/history"))
        .expect("a directory")
        .map(|entry| entry.expect("a name").file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["000001.yaml", "lock"]);
    switch.end();
}
