//! A port on a kernel interface by AF_XDP: PFC frames pass both ways, and are obeyed.
//!
//! The interface is one end of a veth pair. The test sends and captures at the other end.

use serde_json::Value;

use crate::capture::{Capture, Trace};
use crate::frames::{mac, pfc, roce, send_at};
use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, run_arguments, sum};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

/// Station at the other end of the veth pair.
const PEER: &str = "02:48:46:00:01:00";
/// Station behind the slow port.
const SLOW: &str = "02:48:46:00:02:00";
/// Address of the AF_XDP port.
const OWN: &str = "02:48:46:0a:0b:0c";

/// A virtual host sends to the peer by the AF_XDP port, and the peer sends to a slow one.
const SWITCH: &str = r#"
preset: roce
ports:
  - {name: xdp, device: "net_af_xdp0,iface=va", speed: 1G, mac: "02:48:46:0a:0b:0c", watchdog: off}
  - {name: slow, device: ring, speed: 10M, mac: "02:48:46:0a:0b:0d"}
fdb: {static: [{mac: "02:48:46:00:01:00", port: xdp}, {mac: "02:48:46:00:02:00", port: slow}]}
classes:
  3: {limit: 100kB, headroom: 2MB}
hosts:
  - name: host
    port: slow
    mac: "02:48:46:00:02:00"
    flows: [{to: {mac: "02:48:46:00:01:00", ip: 10.48.0.99}, kind: roce, rate: 2M, frame: 500}]
"#;

/// Frames that the peer sends: a second of the slow port.
const BURST: u16 = 1200;

/// A switch in a namespace with the veth pair.
struct Bed {
    inside: Namespace,
    switch: Process,
    _config: Config,
}

impl Bed {
    #[track_caller]
    fn start() -> Self {
        let inside = Namespace::new(format!("{}-xdp", unique_prefix()));
        inside.run(&["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"]);
        for interface in ["va", "vb"] {
            // Without addresses the kernel sends nothing.
            inside.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
        }
        let config = Config::new(SWITCH);
        let mut command = inside.command(HOLDFAST);
        command.args(["run", &config.path(), "--json"]).args(run_arguments());
        let mut bed = Self { switch: Process::spawn(command), inside, _config: config };
        wait_for("running switch", PATIENCE, || {
            assert!(bed.switch.is_running(), "it ended: {}{}", bed.switch.stdout(), bed.switch.stderr());
            bed.inside.get(METRICS, "/metrics")
        });
        bed
    }

    fn capture(&self) -> Capture {
        Capture::on(&self.inside, "vb", "ether proto 0x8808 or udp dst port 4791")
    }

    #[track_caller]
    fn send(&self, frames: &[Vec<u8>], per_second: u32) {
        send_at(&self.inside, "vb", frames, per_second);
    }

    #[track_caller]
    fn look(&self) -> Exposition {
        Exposition::parse(&self.inside.get(METRICS, "/metrics").expect("the switch answers"))
    }

    #[track_caller]
    fn wait_for_frames(&self, port: &str, frames: f64) {
        let sent = || self.look().sum("holdfast_port_sent_frames_total", &[("port", port), ("queue", "3")]);
        let wanted = sent() + frames;
        wait_for("frames", PATIENCE, || (sent() >= wanted).then_some(()));
    }

    #[track_caller]
    fn stop(self) -> Value {
        self.switch.signal("TERM");
        crate::program::report(&self.switch.wait(PATIENCE))
    }
}

/// Returns the PFC frames of the switch, in hexadecimal.
fn of_switch(trace: &Trace) -> Vec<String> {
    trace.bytes(&format!("macc && eth.src == {OWN}"))
}

#[test]
fn pfc_passes_af_xdp_both_ways() {
    if !machine_is_ready() {
        return;
    }
    let bed = Bed::start();
    bed.wait_for_frames("xdp", 50.0);

    // Received: a pause stops class 3 until XON.
    let standing = [("port", "xdp"), ("priority", "3")];
    let paused = |bed: &Bed| bed.look().sum("holdfast_pfc_paused", &standing);
    // 65,535 quanta last 33.6 ms at 1G, so the peer repeats its pause.
    bed.send(&vec![pfc(PEER, &[(3, 0xffff)]); 200], 100);
    let received = || bed.look().sum("holdfast_pfc_received_xoff_total", &standing);
    wait_for("all pauses", PATIENCE, || (received() == 200.0).then_some(()));
    wait_for("end of the pause", PATIENCE, || (paused(&bed) == 0.0).then_some(()));
    let held = bed.look().sum("holdfast_pfc_received_paused_seconds_total", &standing);
    assert!(held > 1.0, "paused for {held} s of two");
    bed.wait_for_frames("xdp", 50.0);

    // Sent: the slow port's congestion pauses the peer. The peer obeys no PFC, and headroom holds all its frames.
    let capture = bed.capture();
    let frames: Vec<_> = (0..BURST).map(|id| roce(PEER, SLOW, id, 1000)).collect();
    bed.send(&frames, 2000);
    wait_for("last frame", PATIENCE, || {
        let sent = bed.look().sum("holdfast_port_sent_frames_total", &[("port", "slow"), ("queue", "3")]);
        (sent >= f64::from(BURST)).then_some(())
    });
    let trace = capture.stop();
    let source: String = mac(OWN).iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = |quanta: &str| format!("0180c2000001{source}880801010008{:012}{quanta}{:016}{:052}", 0, 0, 0);
    let pfcs = of_switch(&trace);
    assert!(pfcs.len() >= 3, "XOFF, refresh, XON: {pfcs:?}");
    assert!(pfcs.iter().all(|frame| [expected("ffff"), expected("0000")].contains(frame)), "{pfcs:?}");
    assert_eq!(pfcs.last(), Some(&expected("0000")));

    let report = bed.stop();
    assert_eq!(sum(&report, "dropped_frames", true), 0, "{}", report["verdict"]);
    // The first frame is the XON that every port begins with, sent before the capture.
    assert_eq!(report["ports"][0]["pfc_sent_frames"], 1 + pfcs.len());
    assert_eq!(report["ports"][0]["receive_missed_frames"], 0);
}
