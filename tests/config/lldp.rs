//! `lldp` of the switch and of ports.

use holdfast::config::{self, Config};

const PORTS: &str = "ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G, lldp: off}
  - {name: c, device: net_null2, speed: 10G, lldp: on}
  - {name: d, device: ring, speed: 10G}
hosts: [{name: h, port: d}]
";

fn accept(text: &str) -> Config {
    config::parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Whether each port speaks LLDP.
fn ports(more: &str) -> Vec<bool> {
    accept(&format!("{PORTS}{more}")).devices.iter().map(|device| device.lldp).collect()
}

#[track_caller]
fn refuse(text: &str, words: &str) {
    let errors = config::parse("x.yaml", text).expect_err("it is wrong").to_string();
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn lldp_is_on_unless_the_port_or_the_switch_says_off_or_the_peer_is_a_virtual_host() {
    assert_eq!(ports(""), [true, false, true, false]);
    assert_eq!(ports("lldp: {name: tor1}"), [true, false, true, false]);
    assert_eq!(ports("lldp: off"), [false, false, true, false]);
}

#[test]
fn routed_port_whose_tap_may_have_a_daemon_is_off_until_it_says_on() {
    let routed = |port: &str, linux: &str| {
        let ports =
            format!("[{{name: a, device: net_null0, speed: 10G{port}}}, {{name: b, device: net_null1, speed: 10G}}]");
        let routing = format!("routing: {{{linux}interfaces: [{{port: a, addresses: [10.0.0.1/24]}}]}}");
        accept(&format!("ports: {ports}\n{routing}")).devices[0].lldp
    };
    assert!(routed("", ""));
    assert!(!routed("", "linux: {namespace: tor}, "));
    assert!(routed(", lldp: on", "linux: {namespace: tor}, "));
}

#[test]
fn name_and_interval_have_defaults_and_ranges() {
    let config = accept(PORTS).lldp;
    assert_eq!((config.name, config.interval_s), (None, 30));
    let config = accept(&format!("{PORTS}lldp: {{name: tor1, interval: 5min}}")).lldp;
    assert_eq!((config.name.as_deref(), config.interval_s), (Some("tor1"), 300));
    for interval in ["0s", "1500ms", "2h"] {
        refuse(&format!("{PORTS}lldp: {{interval: {interval}}}"), "write whole seconds from 1s to 3600s");
    }
    refuse(&format!("{PORTS}lldp: {{name: {}}}", "x".repeat(256)), "the name has 256 bytes; write 1 to 255");
    refuse(&format!("{PORTS}lldp: {{interfal: 5s}}"), "did you mean `interval`?");
}

#[test]
fn loop_guard_blocks_unless_it_is_told_otherwise() {
    use holdfast::config::LoopGuard;
    let guard = |more: &str| accept(&format!("{PORTS}{more}")).lldp.loop_guard;
    assert_eq!(guard(""), LoopGuard::Block);
    assert_eq!(guard("lldp: off\nloop_guard: alert"), LoopGuard::Alert);
    assert_eq!(guard("loop_guard: off"), LoopGuard::Off);
    refuse(&format!("{PORTS}loop_guard: kill"), "`kill` is not one of the choices");
}

#[test]
fn loop_probe_leaves_each_second_unless_the_switch_is_silent() {
    let probe = |more: &str| accept(&format!("{PORTS}{more}")).lldp.loop_probe.map(|interval| interval.0 / 1_000_000);
    assert_eq!(probe(""), Some(1000));
    assert_eq!(probe("loop_probe: 100ms"), Some(100));
    assert_eq!(probe("loop_probe: 1min"), Some(60_000));
    assert_eq!(probe("loop_probe: off"), None);
    assert_eq!(probe("loop_guard: alert"), Some(1000));
    assert_eq!(probe("loop_guard: off"), None);
    assert_eq!(probe("lldp: off"), None, "a silent switch sends none");
    assert_eq!(probe("lldp: off\nloop_probe: 2s"), Some(2000));
    for interval in ["99ms", "61s", "1us"] {
        refuse(&format!("{PORTS}loop_probe: {interval}"), "write from 100ms to 60s, or `off`");
    }
}

#[test]
fn guard_without_frames_to_look_for_is_warned_about() {
    let warnings = |more: &str| accept(&format!("{PORTS}{more}")).warnings.join(" ");
    for probe in ["", "\nloop_probe: off"] {
        let blind = warnings(&format!("lldp: off\nloop_guard: block{probe}"));
        assert!(blind.contains("add `loop_probe: 1s`, or remove this"), "{blind}");
    }
    assert_eq!(warnings("lldp: off\nloop_guard: block\nloop_probe: 1s"), warnings(""));
    let both = warnings("loop_guard: off\nloop_probe: 1s");
    assert!(both.contains("with `loop_guard: off` no port sends probes"), "{both}");
}

#[test]
fn port_with_a_virtual_host_and_other_words_are_refused() {
    refuse("ports: [{name: a, device: ring, speed: 10G, lldp: on}]", "a virtual host knows no LLDP; remove `lldp`");
    refuse("ports: [{name: a, device: net_null0, speed: 10G, lldp: yes}]", "`yes` is neither on nor off");
}

#[test]
fn switch_of_virtual_hosts_alone_has_no_control_plane() {
    assert!(accept(PORTS).has_control_plane());
    assert!(!accept("{ports: [{name: a, device: ring, speed: 10G}], hosts: [{name: h, port: a}]}").has_control_plane());
}
