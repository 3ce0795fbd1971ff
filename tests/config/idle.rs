//! Idle lcores: their settings, their effect on headroom and receive rings, and refused settings.

use holdfast::config::{IdleConfig, IdleWait};
use holdfast::units::Nanos;

use super::*;

/// A configuration with a lossless class, two ports, and these `lcores`.
fn lossless(lcores: &str) -> String {
    format!("preset: roce\n{PORTS}lcores: {lcores}\n")
}

fn idle(text: &str) -> IdleConfig {
    accept(&format!("{PORTS}lcores: {{idle: {text}}}\n")).lcores.idle.expect("it rests")
}

fn idle_config(wait: IdleWait, longest_us: u64, wake_us: u64) -> IdleConfig {
    let us = |count| Nanos(count * 1000);
    IdleConfig { wait, after: us(50), longest: us(longest_us), wake: us(wake_us), lossless: false }
}

#[test]
fn lcores_poll_continuously_unless_idle_is_configured() {
    for text in ["{count: 1}", "{idle: poll}", "{idle: {wait: poll, after: 1ms}}"] {
        assert_eq!(accept(&format!("{PORTS}lcores: {text}\n")).lcores.idle, None, "{text}");
    }
    assert_eq!(idle("pause"), idle_config(IdleWait::Pause, 5, 1));
    assert_eq!(idle("umwait"), idle_config(IdleWait::Umwait, 10, 5));
    assert_eq!(idle("sleep"), idle_config(IdleWait::Sleep, 100, 50));
    let written = IdleConfig { after: Nanos(0), lossless: true, ..idle_config(IdleWait::Sleep, 60, 20) };
    assert_eq!(idle("{wait: sleep, after: 0us, longest: 60us, wake: 20us, lossless: true}"), written);
}

#[test]
fn invalid_idle_settings_are_refused() {
    refuse_beside_ports(
        "lcores: {idle: interrupt}\n",
        "x.yaml:4:16: lcores.idle: `interrupt` is not one of the choices; write `poll`, `pause`, `umwait` or `sleep`",
    );
    refuse_beside_ports(
        "lcores: {idle: {longest: 1ms}}\n",
        "x.yaml:4:16: lcores.idle: `wait` is missing; write e.g. `wait: sleep`",
    );
    refuse_beside_ports(
        "lcores: {idle: {wait: sleep, after: 2s, longest: 20ms, wake: 11ms, lossless: yes}}\n",
        "\
x.yaml:4:37: lcores.idle.after: `2s` is not a valid idle time; write from 0ns to 1s
x.yaml:4:50: lcores.idle.longest: `20ms` is not a valid rest; write from 1us to 10ms
x.yaml:4:62: lcores.idle.wake: `11ms` is not a valid wake-up time; write from 0ns to 10ms
x.yaml:4:78: lcores.idle.lossless: `yes` is not one of the choices; write `true` or `false`; did you mean `true`?",
    );
}

#[test]
fn idle_rest_beyond_the_poll_gap_is_refused_for_lossless_ports() {
    refuse(
        &lossless("{idle: {wait: sleep, longest: 100us, lossless: true}}"),
        "x.yaml:5:39: lcores.idle.longest: a rest of 100us and a wake-up time of 50us leave lossless port p1 without a poll for 150us, but its headroom covers a poll gap of 20us; write `poll_gap: 150us` or more, which takes more headroom, or a shorter `longest`",
    );
    refuse(
        &lossless("{poll_gap: 10ms, idle: {wait: sleep, longest: 10ms, lossless: true}}\nbuffer: {size: 1GiB}"),
        "x.yaml:5:55: lcores.idle.longest: a rest of 10ms and a wake-up time of 50us leave lossless port p1 without a poll for 10.05ms, but its headroom covers a poll gap of 10ms; write a shorter `longest`",
    );
    let config = accept(&lossless("{poll_gap: 150us, idle: {wait: sleep, lossless: true}}"));
    assert_eq!(config.idle_of(0).map(|idle| idle.gap()), Some(Nanos(150_000)));
    let brief = accept(&lossless("{idle: {wait: pause, lossless: true}}"));
    assert!(brief.idle_of(0).is_some() && brief.warnings.is_empty(), "{:?}", brief.warnings);
}

#[test]
fn lossless_ports_keep_their_lcore_awake() {
    let config = accept(&lossless("{idle: pause}"));
    assert_eq!(config.idle_of(0), None);
    assert_eq!(
        config.warnings,
        [
            "x.yaml:5:16: lcores.idle: every lcore polls a lossless port, and such lcores do not rest: `idle` has no effect; write `lossless: true` and a `poll_gap` that covers the rests, or remove it"
        ]
    );
    let text = lossless("{count: 2, idle: pause}").replace("net_tap1, speed: 10G", "net_tap1, speed: 10G, pfc: off");
    let config = accept(&text);
    assert_eq!([0, 1].map(|lcore| config.idle_of(lcore).is_some()), [false, true], "the second has none");
    assert!(config.warnings.iter().all(|warning| !warning.contains("idle")), "{:?}", config.warnings);
}

#[test]
fn receive_ring_too_short_for_an_idle_rest_is_warned_of() {
    let warning = |speed: &str, ring: u32, arrivals: u32, remedy: &str| {
        format!(
            "x.yaml:1:9: ports[0].rx_descriptors: while its lcore rests (100us, and 50us to wake up), up to {arrivals} frames of 64 B arrive at port p1 ({speed}): a receive ring of {ring} can overflow; {remedy}"
        )
    };
    let one = |keys: &str| format!("ports: [{{name: p1, device: net_tap0, {keys}}}]\nlcores: {{idle: sleep}}\n");
    warn(
        &one("speed: 10G"),
        &warning("10G", 1024, 2233, "write `rx_descriptors: 4096`, or a shorter `lcores.idle.longest`"),
    );
    warn(&one("speed: 100G"), &warning("100G", 1024, 22_322, "write a shorter `lcores.idle.longest`"));
    for enough in ["speed: 1G", "speed: 10G, rx_descriptors: 4096"] {
        assert_eq!(accept(&one(enough)).warnings, [""; 0], "{enough}");
    }
}

#[test]
fn check_shows_the_lcores_that_rest() {
    let line = |lcores: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.yaml");
        let text = lossless(lcores).replace("net_tap1, speed: 10G", "net_tap1, speed: 10G, pfc: off");
        std::fs::write(&path, text).unwrap();
        let program = env!("CARGO_BIN_EXE_holdfast");
        let output = std::process::Command::new(program).arg("check").arg(&path).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        stdout.lines().find_map(|line| line.strip_prefix("when idle")).map(str::to_owned)
    };
    assert_eq!(line("{count: 2}"), None);
    let rests = |lcores: &str| format!(" for 50us: sleep up to 100us, and 50us to wake up; {lcores}");
    assert_eq!(line("{count: 2, idle: sleep}"), Some(rests("lcore 1")));
    let both = "{count: 2, poll_gap: 150us, idle: {wait: sleep, lossless: true}}";
    assert_eq!(line(both), Some(rests("lcores 0, 1")));
    assert_eq!(line("{idle: sleep}").as_deref(), Some(": every lcore keeps polling, because each has a lossless port"));
}
