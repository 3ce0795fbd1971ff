//! Ports whose peer disappears: an obedient host sends to it and to a healthy one, and must not wait for the dead one.

use std::os::unix::net::UnixListener;

use serde_json::Value;

use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, run_arguments};
use crate::ready::machine_is_ready;
use crate::rig::{METRICS, Rig};

/// A virtual host, which obeys PFC, sends lossless frames to two stations. The rate is about 5,000 frames a second to
/// each, so frames for a dead one fill the group in less than a second.
const FABRIC: &str = r#"
preset: roce
ports:
  - {name: a, device: ring, speed: 1G}
  - {name: b, device: "net_tap0,iface=hf0,mac=02:48:46:00:01:00", speed: 1G}
  - {name: c, device: "net_tap1,iface=hf1,mac=02:48:46:00:01:01", speed: 1G}
fdb:
  static: [{mac: "02:48:46:00:01:00", port: b}, {mac: "02:48:46:00:01:01", port: c}]
hosts:
  - name: sender
    port: a
    flows:
      - {to: {mac: "02:48:46:00:01:00", ip: 10.48.0.98}, kind: roce, rate: 40M, frame: 1000}
      - {to: {mac: "02:48:46:00:01:01", ip: 10.48.0.99}, kind: roce, rate: 40M, frame: 1000}
"#;

const SENT: &str = "holdfast_port_sent_frames_total";
const STUCK: &str = "holdfast_port_egress_stuck";
const STUCKS: &str = "holdfast_port_egress_stucks_total";
const LINK: &str = "holdfast_port_link_up";
const DROPPED: &str = "holdfast_port_dropped_frames_total";
/// Number of frames that proves a flow of traffic: more than the 1,487 that fill the group.
const FLOWS: f64 = 2000.0;

fn of(seen: &Exposition, name: &str, port: &str) -> f64 {
    seen.sum(name, &[("port", port)])
}

/// Waits until `port` has sent [`FLOWS`] more frames.
#[track_caller]
fn wait_for_flow(look: impl Fn() -> Exposition, port: &str) {
    let before = of(&look(), SENT, port);
    wait_for(&format!("traffic to {port}"), PATIENCE, || (of(&look(), SENT, port) > before + FLOWS).then_some(()));
}

/// Returns the causes of a broken verdict, by kind and port. The kind of dropped frames is their reason.
fn causes(report: &Value) -> Vec<(&str, &str)> {
    let causes = report["verdict"]["causes"].as_array().expect("causes").iter();
    let mut causes: Vec<_> = causes
        .filter_map(|cause| {
            let kind = cause.get("reason").unwrap_or(&cause["cause"]);
            Some((kind.as_str()?, cause["port"].as_str().unwrap_or_default()))
        })
        .collect();
    causes.dedup();
    causes
}

/// Asserts that `cause` broke a run. Frames were also dropped while b had no link.
#[track_caller]
fn assert_broken_without_link(outcome: (Option<i32>, Value), cause: Option<(&str, &str)>) {
    let (code, report) = outcome;
    let seen = causes(&report);
    let verdict = &report["verdict"];
    assert!(code == Some(1) && seen.iter().any(|(kind, _)| *kind == "egress_down"), "{code:?} {verdict}");
    assert!(cause.is_none_or(|cause| seen.contains(&cause)), "{verdict}");
    let is_known = |seen: &(&str, &str)| seen.0 == "egress_down" || cause == Some(*seen);
    assert!(seen.iter().all(is_known), "{verdict}");
}

/// Starts a switch with `config`; `fault` makes b's device accept no frames. Asserts the consequences and returns the
/// rig.
#[track_caller]
fn stuck(config: &str, fault: impl Fn(&Rig)) -> Rig {
    let config = Config::new(config);
    let rig = Rig::start(&config.path(), 2);
    for port in ["b", "c"] {
        wait_for_flow(|| rig.metrics(), port);
    }
    // A tap accepts no frame until it is configured in its namespace, which may take long on a busy machine.
    let before = of(&rig.metrics(), STUCKS, "c");
    fault(&rig);
    wait_for("stuck port", PATIENCE, || (of(&rig.metrics(), STUCK, "b") == 1.0).then_some(()));
    // The healthy port continues to send, for much longer than the contents of a buffer last.
    for _ in 0..2 {
        wait_for_flow(|| rig.metrics(), "c");
    }
    let seen = rig.metrics();
    assert!(seen.sum(DROPPED, &[("port", "b"), ("reason", "egress_stuck"), ("tc", "3")]) > 0.0);
    assert_eq!(of(&seen, LINK, "b"), 1.0, "no link state tells of it");
    // A waiting frame is offered repeatedly, but is not counted as lost by the device.
    assert_eq!(of(&seen, "holdfast_device_transmit_errors_total", "b"), 0.0);
    assert_eq!(of(&seen, STUCKS, "c"), before);
    rig
}

#[track_caller]
fn assert_broken_by_b(mut rig: Rig) {
    let said = rig.switch().stderr();
    assert!(said.contains(" stuck: b accepted no frame for 500ms: frames for this port are dropped"), "{said}");
    let report = rig.stop();
    let causes = causes(&report);
    assert!(causes.contains(&("stuck", "b")), "{}", report["verdict"]);
    assert!(causes.iter().all(|(cause, _)| *cause == "stuck"), "{}", report["verdict"]);
    assert!(report["ports"][1]["egress_stucks"].as_u64() >= Some(1), "{}", report["ports"][1]);
}

#[test]
fn deleted_tap_does_not_block_other_ports() {
    if !machine_is_ready() {
        return;
    }
    assert_broken_by_b(stuck(FABRIC, |rig| {
        rig.hosts[0].inside.run(&["ip", "link", "delete", "dev", "hf0"]);
    }));
}

#[test]
fn removed_namespace_does_not_block_other_ports_on_two_lcores() {
    if !machine_is_ready() {
        return;
    }
    let two = format!("{FABRIC}lcores: {{count: 2}}\n");
    assert_broken_by_b(stuck(&two, |rig| rig.hosts[0].inside.remove()));
}

#[test]
fn tap_set_down_does_not_block_other_ports_and_recovers_when_up() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = stuck(FABRIC, |rig| {
        rig.hosts[0].inside.run(&["ip", "link", "set", "dev", "hf0", "down"]);
    });
    rig.hosts[0].inside.run(&["ip", "link", "set", "dev", "hf0", "up"]);
    wait_for_flow(|| rig.metrics(), "b");
    assert_eq!(of(&rig.metrics(), STUCK, "b"), 0.0);
    let said = rig.switch();
    wait_for("event", PATIENCE, || said.stderr().contains(" stuck: b accepts frames again").then_some(()));
    assert_broken_by_b(rig);
}

/// A switch in its own namespace, with port b at a kernel interface there.
struct Alone {
    inside: Namespace,
    switch: Option<Process>,
    _config: Config,
}

impl Alone {
    /// Starts the switch. `device` is b's device, and `setup` creates its interfaces.
    #[track_caller]
    fn start(device: &str, setup: &[&[&str]]) -> Self {
        let inside = Namespace::new(format!("{}-alone", unique_prefix()));
        setup.iter().for_each(|words| drop(inside.run(words)));
        let trust = if device.starts_with("net_memif") { ", trust_peer: true" } else { "" };
        let text = FABRIC.replace("\"net_tap0,iface=hf0,mac=02:48:46:00:01:00\"", &format!("\"{device}\"{trust}"));
        let text = text.replace("net_tap1", "net_null1");
        let config = Config::new(&text.replace(",iface=hf1,mac=02:48:46:00:01:01", ",no-rx=1"));
        let mut command = inside.command(HOLDFAST);
        command.args(["run", &config.path(), "--json", "--fail-on-loss"]).args(run_arguments());
        let mut alone = Self { switch: Some(Process::spawn(command)), inside, _config: config };
        wait_for("running switch", PATIENCE, || {
            let switch = alone.switch.as_mut().expect("it was started");
            assert!(switch.is_running(), "it ended: {}{}", switch.stdout(), switch.stderr());
            alone.inside.get(METRICS, "/metrics")
        });
        alone
    }

    #[track_caller]
    fn look(&self) -> Exposition {
        Exposition::parse(&self.inside.get(METRICS, "/metrics").expect("the switch answers"))
    }

    #[track_caller]
    fn set(&self, interface: &str, how: &str) {
        self.inside.run(&["ip", "link", "set", "dev", interface, how]);
    }

    /// Waits until b's link state is `up`, and until c sends frames.
    #[track_caller]
    fn wait_for_link(&self, up: bool) {
        wait_for("link state", PATIENCE, || (of(&self.look(), LINK, "b") == f64::from(u8::from(up))).then_some(()));
        wait_for_flow(|| self.look(), "c");
    }

    /// Ends the switch and returns its exit code and its report.
    #[track_caller]
    fn end(mut self) -> (Option<i32>, Value) {
        let switch = self.switch.take().expect("it was started");
        switch.signal("TERM");
        let ended = switch.wait(PATIENCE);
        (ended.status.code(), crate::program::report(&ended))
    }
}

const VETH: &[&[&str]] =
    &[&["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"], &["ip", "link", "set", "dev", "vb", "up"]];

#[test]
fn an_af_packet_port_on_a_veth_that_is_down_has_no_link() {
    if !machine_is_ready() {
        return;
    }
    let alone = Alone::start("net_af_packet0,iface=va", VETH);
    alone.wait_for_link(false);
    let seen = alone.look();
    assert!(seen.sum(DROPPED, &[("port", "b"), ("reason", "egress_down")]) + seen.sum(DROPPED, &[("port", "a")]) > 0.0);
    alone.set("va", "up");
    alone.wait_for_link(true);
    wait_for_flow(|| alone.look(), "b");
    // The interface has no carrier, because the other end is down.
    alone.set("vb", "down");
    alone.wait_for_link(false);
    // The device may have accepted frames before the switch saw the link down.
    let ended = alone.end();
    let lost = causes(&ended.1).contains(&("transmit", "b"));
    assert_broken_without_link(ended, lost.then_some(("transmit", "b")));
}

#[test]
fn frames_lost_by_af_packet_port_give_a_broken_verdict() {
    if !machine_is_ready() {
        return;
    }
    let alone = Alone::start("net_af_packet0,iface=va", VETH);
    // The switch sees the link down after a while. The device accepts and loses the frames sent before that. This time
    // may be shorter than the interval between two frames.
    let lost = |seen: &Exposition| of(seen, "holdfast_device_transmit_errors_total", "b");
    wait_for("lost frames", PATIENCE, || {
        alone.set("va", "up");
        alone.wait_for_link(true);
        wait_for_flow(|| alone.look(), "b");
        alone.set("va", "down");
        alone.wait_for_link(false);
        (lost(&alone.look()) > 0.0).then_some(())
    });
    assert_broken_without_link(alone.end(), Some(("transmit", "b")));
}

#[test]
fn a_tap_that_is_set_down_in_the_switchs_own_namespace_has_no_link() {
    if !machine_is_ready() {
        return;
    }
    let alone = Alone::start("net_tap0,iface=hf0", &[]);
    alone.wait_for_link(true);
    alone.set("hf0", "down");
    alone.wait_for_link(false);
    alone.set("hf0", "up");
    alone.wait_for_link(true);
    wait_for_flow(|| alone.look(), "b");
}

/// Configuration of the switch at the other end of b's cable.
const PEER: &str = r#"
metrics: off
ports:
  - {name: x, device: "DEVICE", trust_peer: true, speed: 1G}
  - {name: y, device: "net_null1,no-rx=1", speed: 1G}
"#;

/// Starts a switch whose b is `device`. A peer with the device `peer` is stopped, continued, killed and started again.
#[track_caller]
fn stop_kill_and_restart_the_peer(device: &str, peer: &str) {
    let alone = Alone::start(device, &[]);
    alone.wait_for_link(false);
    let config = Config::new(&PEER.replace("DEVICE", peer));
    let start = || {
        let mut command = alone.inside.command(HOLDFAST);
        command.args(["run", &config.path(), "--json"]);
        Process::spawn(command)
    };
    let peer = start();
    alone.wait_for_link(true);
    wait_for_flow(|| alone.look(), "b");

    peer.signal("STOP");
    wait_for("stuck port", PATIENCE, || (of(&alone.look(), STUCK, "b") == 1.0).then_some(()));
    wait_for_flow(|| alone.look(), "c");
    assert_eq!(of(&alone.look(), LINK, "b"), 1.0);
    peer.signal("CONT");
    wait_for("end of it", PATIENCE, || (of(&alone.look(), STUCK, "b") == 0.0).then_some(()));
    wait_for_flow(|| alone.look(), "b");

    peer.signal("KILL");
    alone.wait_for_link(false);
    let _again = start();
    alone.wait_for_link(true);
    wait_for_flow(|| alone.look(), "b");
    assert_eq!(of(&alone.look(), "holdfast_device_transmit_errors_total", "b"), 0.0);
    assert_broken_without_link(alone.end(), Some(("stuck", "b")));
}

#[test]
fn stopped_memif_peer_is_stuck_and_killed_memif_peer_has_no_link() {
    if !machine_is_ready() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cable = format!("socket={},socket-abstract=no", directory.path().join("memif.sock").display());
    stop_kill_and_restart_the_peer(
        &format!("net_memif0,role=server,{cable}"),
        &format!("net_memif0,role=client,{cable}"),
    );
}

/// The guest is a process with virtio-user, which uses vhost-user as a virtual machine does. Its memory is ordinary
/// pages of a memfd, which the switch maps: DPDK shares them without hugepages too.
#[test]
fn stopped_vhost_guest_is_stuck_and_killed_vhost_guest_has_no_link() {
    if !machine_is_ready() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("guest.sock");
    // A killed switch leaves such a socket without a listener.
    drop(UnixListener::bind(&socket).expect("a socket"));
    let socket = socket.display();
    stop_kill_and_restart_the_peer(&format!("vhost:{socket}"), &format!("net_virtio_user0,path={socket}"));
}

/// A guest that listens survives its switch. The vhost port of the next switch connects to it.
#[test]
fn listening_vhost_guest_receives_frames_from_a_restarted_switch() {
    if !machine_is_ready() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("guest.sock").display().to_string();
    let config = Config::new(&PEER.replace("DEVICE", &format!("net_virtio_user0,path={socket},server=1")));
    let mut command = crate::process::mortal(HOLDFAST);
    command.args(["run", &config.path(), "--json"]);
    let mut guest = Process::spawn(command);
    for _ in 0..2 {
        let alone = Alone::start(&format!("net_vhost0,iface={socket},client=1"), &[]);
        alone.wait_for_link(true);
        wait_for_flow(|| alone.look(), "b");
        alone.switch.as_ref().expect("it was started").signal("KILL");
        assert!(guest.is_running(), "{}", guest.stderr());
    }
}
