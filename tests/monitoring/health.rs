//! `/healthz`, `/readyz` and cleared watermarks of a running switch.

use crate::switch::Switch;

/// Returns the value of the only series that begins with `line`.
#[track_caller]
fn value(metrics: &str, line: &str) -> f64 {
    let found = metrics.lines().find_map(|other| other.strip_prefix(line)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {line}")).parse().expect("a number")
}

#[test]
fn readyz_waits_until_ports_had_time_to_prove_pfc() {
    let mut switch = Switch::spawn();
    // On a slow machine the switch may be ready before the first request.
    let why = switch.wait_for("/readyz", |_, _| true);
    assert!(why == "ok\n" || why.ends_with("the PFC test of the ports is still running\n"), "{why}");
    assert_eq!(switch.wait_for("/healthz", |_, _| true), "ok\n", "it lives meanwhile");
    assert_eq!(switch.wait_for("/readyz", |status, _| status == 200), "ok\n");
    assert_eq!(value(&switch.metrics(), "holdfast_ready"), 1.0);
    switch.stop();
}

#[test]
fn watermark_since_start_survives_a_clear() {
    let mut switch = Switch::start();
    let [now, ever] = ["", "_since_start"]
        .map(|since| format!("holdfast_group_shared_highest{since}_bytes{{port=\"p1\",priority=\"3\"}}"));
    let filled = |metrics: &str| value(metrics, &now) > 0.0;
    let before = switch.wait_for("/metrics", |_, metrics| filled(metrics));
    assert!(value(&before, &ever) >= value(&before, &now), "one is not below the other");
    let cleared = "holdfast_watermarks_cleared_time_seconds";
    switch.clear();
    let after = switch.wait_for("/metrics", |_, metrics| value(metrics, cleared) > value(&before, cleared));
    assert!(value(&after, &ever) >= value(&before, &ever), "nothing is forgotten");
    switch.stop();
}
