//! Lcores that rest when no frame comes: the CPU time that they save, and that no frame is lost.
//!
//! The commands of docs/idle.md are run here.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::launch::{finish, run, start};
use crate::process::wait_for;
use crate::program::{Config, PATIENCE, report};
use crate::quiet::cpu_seconds;

/// Returns a configuration with four hosts. Three send to the fourth in class 3, all at once for 10 ms and then not for
/// 90 ms, or never.
fn switch(idle: &str, sends: bool) -> Config {
    let mut yaml = format!("preset: roce\nlcores: {{poll_gap: 400us, idle: {idle}}}\nports:\n");
    (1..=4).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G}}\n"));
    yaml += "hosts:\n  - {name: h4, port: p4}\n";
    let flows = if sends { "[{to: h4, pattern: {on: 10ms, off: 90ms}}]" } else { "[]" };
    (1..=3).for_each(|n| yaml += &format!("  - {{name: h{n}, port: p{n}, flows: {flows}}}\n"));
    Config::new(&yaml)
}

/// Settings of a rest whose wake-up allowance covers this machine, even when it runs other work.
const SLEEP: &str = "{wait: sleep, longest: 100us, wake: 300us, lossless: true}";

/// Runs an idle switch. Returns its CPU seconds and its seconds of waiting for a CPU, within 1.5 s once it runs, and
/// its report.
fn cost(idle: &str) -> ([f64; 2], Value) {
    let (process, _) = start(&[&switch(idle, false).path(), "--duration", "0", "--json"]);
    std::thread::sleep(Duration::from_millis(500));
    let before = cpu_seconds(process.pid());
    std::thread::sleep(Duration::from_millis(1500));
    let after = cpu_seconds(process.pid());
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    ([after[0] - before[0], after[1] - before[1]], report(&ended))
}

#[test]
fn an_idle_switch_that_sleeps_leaves_the_cpu_to_others() {
    let ([had, waited], report) = cost("poll");
    assert_eq!((&report["polls"]["rests"], &report["polls"]["rest_overshoot_p99_ns"]), (&0.into(), &Value::Null));
    let ([asleep, _], report) = cost(SLEEP);
    assert!(report["polls"]["rests"].as_u64() > Some(100), "{}", report["polls"]);
    // On a machine that runs other work, a polling switch gets less CPU than it would use.
    assert!(
        asleep < (had + waited) / 2.0,
        "{asleep} s of a CPU asleep; without {had} s, and {waited} s in a queue for it"
    );
}

#[test]
fn frames_after_a_rest_are_all_forwarded() {
    let ended = finish(run(&[&switch(SLEEP, true).path(), "--duration", "2s", "--json", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    assert!(report["polls"]["rests"].as_u64() > Some(100), "{}", report["polls"]);
    for flow in report["flows"].as_array().expect("flows") {
        assert!(flow["received_frames"].as_u64() > Some(1000) && flow["lost_frames"] == 0, "{flow}");
    }
    let paused: u64 =
        report["ports"].as_array().expect("ports").iter().filter_map(|p| p["pfc_sent_frames"].as_u64()).sum();
    assert!(paused > 100, "an incast: {paused} PFC frames");
}

#[test]
fn sleeping_switch_stops_promptly_on_sigterm() {
    // So long a rest is impossible with lossless ports.
    let ports = "[{name: p1, device: ring, speed: 10G}, {name: p2, device: ring, speed: 10G}]";
    let hosts = "[{name: h1, port: p1}, {name: h2, port: p2}]";
    let config =
        Config::new(&format!("ports: {ports}\nhosts: {hosts}\nlcores: {{idle: {{wait: sleep, longest: 10ms}}}}\n"));
    let (mut process, address) = start(&[&config.path(), "--duration", "0"]);
    wait_for("a rest of its full length", PATIENCE, || {
        assert!(process.is_running());
        let metrics = crate::scraping::get(address, "/metrics")?;
        let rested = metrics.lines().find_map(|line| line.strip_prefix("holdfast_rested_seconds_total{lcore=\"0\"} "));
        rested?.parse::<f64>().ok().filter(|seconds| *seconds > 0.1)
    });
    let start = Instant::now();
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    // Draining takes hundredths of a second. A switch that missed the signal would never end.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(ended.stdout.contains(" rests, "), "{}", ended.stdout);
}
