//! PFC frames that leave a tap: checked byte by byte and by tshark, at the host that they pause.
//!
//! The sender does not obey PFC, as no Linux host does, so it sends no more than the headroom holds.

use crate::capture::Capture;
use crate::frames::{mac, pfc, roce, send};
use crate::process::wait_for;
use crate::program::{Config, PATIENCE, sum};
use crate::ready::machine_is_ready;
use crate::rig::Rig;

/// A fast sender, a slow receiver, and headroom for all frames of these tests.
const FAST_TO_SLOW: &str = r#"
preset: roce
ports:
  - {name: fast, device: "net_tap0,iface=hf0", speed: 1G, mac: "02:48:46:0a:0b:0c"}
  - {name: slow, device: "net_tap1,iface=hf1", speed: 10M}
buffer: {size: 12MiB}
classes:
  3: {limit: 100kB, headroom: 2MB}
"#;

/// Address of the fast port itself, which is not that of the host behind it.
const OWN_ADDRESS: &str = "02:48:46:0a:0b:0c";

/// Number of frames that causes refreshes: XOFF lasts 33.6 ms at 1G, and the slow port needs half a second for the
/// frames above the limit.
const BURST: u16 = 800;
const FRAME_LEN: usize = 1000;
const PER_SECOND: u32 = 10_000;

/// Capture filter for PFC frames. In these tests the fast host only receives them. `inbound` in the filter would lose
/// some: while a capture starts, libpcap filters in user space and cannot see directions.
const PFC: &str = "ether proto 0x8808";

fn rig() -> (Config, Rig) {
    let config = Config::new(FAST_TO_SLOW);
    let rig = Rig::start(&config.path(), 2);
    // Both hosts must send first: lossless frames to unknown stations are not flooded.
    rig.hosts[0].reach(&rig.hosts[1].ipv4(), 2);
    (config, rig)
}

/// Sends `frames` frames of class 3 from the fast host to the slow one.
fn burst(rig: &Rig, frames: u16) {
    let (from, to) = (rig.hosts[0].mac(), rig.hosts[1].mac());
    let frames: Vec<_> = (0..frames).map(|id| roce(&from, &to, id, FRAME_LEN)).collect();
    send(&rig.hosts[0], &frames, PER_SECOND);
}

/// Returns the whole frame that a port with address `source` must send, in hexadecimal.
fn expected(source: &str, quanta: &str) -> String {
    let source: String = mac(source).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0180c2000001{source}880801010008{:012}{quanta}{:016}{:052}", 0, 0, 0)
}

#[test]
fn congested_class_sends_valid_xoff_refreshes_and_a_final_xon() {
    if !machine_is_ready() {
        return;
    }
    let (_config, mut rig) = rig();
    let control = Capture::start(&rig.hosts[0], PFC);
    let data = Capture::start(&rig.hosts[1], "udp dst port 4791");
    burst(&rig, BURST);
    wait_for("end of the burst", PATIENCE, || {
        let sent = rig.metrics().sum("holdfast_port_sent_frames_total", &[("port", "slow"), ("queue", "3")]);
        (sent >= f64::from(BURST)).then_some(())
    });
    let (control, data) = (control.stop(), data.stop());

    // Byte by byte: destination, the port's own address as source, type, opcode, vector, eight times, padding.
    let frames = control.bytes("macc");
    let (xoff, xon) = (expected(OWN_ADDRESS, "ffff"), expected(OWN_ADDRESS, "0000"));
    for frame in &frames {
        assert!(*frame == xoff || *frame == xon, "{frame}\n{xoff}");
    }
    assert!(frames.iter().filter(|frame| **frame == xoff).count() >= 3, "XOFF is refreshed: {frames:?}");
    assert_eq!(frames.last(), Some(&xon), "XON is the last word");

    // The frame as tshark decodes it.
    let mut fields = vec!["frame.len", "eth.dst", "eth.src", "macc.opcode", "macc.cbfc.pause_time.c3"];
    let enabled: Vec<String> = (0..8).map(|class| format!("macc.cbfc.enbv.c{class}")).collect();
    fields.extend(enabled.iter().map(String::as_str));
    let row = &control.fields("macc", &fields)[0];
    assert_eq!(row[..4], ["60", "01:80:c2:00:00:01", OWN_ADDRESS, "0x0101"]);
    assert_eq!(row[4], "65535");
    let only_3 = (0..8).map(|class| if class == 3 { "1" } else { "0" });
    assert!(row[5..].iter().eq(only_3), "{row:?}");
    assert_eq!(control.fields("_ws.expert", &["frame.number", "_ws.expert.message"]), [[""; 0]; 0]);

    // The purpose of PFC: every frame arrived, in order.
    let ids = data.fields("udp.dstport == 4791", &["ip.id"]);
    let wanted: Vec<Vec<String>> = (0..BURST).map(|id| vec![format!("0x{id:04x}")]).collect();
    assert_eq!(ids, wanted);

    let report = rig.stop();
    assert_eq!(report["verdict"]["outcome"], "kept_as_seen", "{}", report["verdict"]);
    assert_eq!(sum(&report, "dropped_frames", true), 0);
    // The first frame is the XON that every port begins with, sent before the capture.
    assert_eq!(report["ports"][0]["pfc_sent_frames"], 1 + frames.len(), "all that it counts was seen");
    assert_eq!(report["ports"][1]["pfc_sent_frames"], 1, "the receiver is nobody's cause");
}

#[test]
fn shutdown_sends_xon_to_a_paused_sender() {
    if !machine_is_ready() {
        return;
    }
    let (_config, mut rig) = rig();
    let control = Capture::start_to_outlive(&rig.hosts[0], PFC);
    // The slow host pauses the switch for 3.4 s, so nothing drains.
    let slow = rig.hosts[1].mac();
    send(&rig.hosts[1], &[pfc(&slow, &[(3, 0xffff)])], PER_SECOND);
    burst(&rig, BURST / 2);
    let standing = [("port", "fast"), ("priority", "3")];
    wait_for("XOFF", PATIENCE, || (rig.metrics().sum("holdfast_pfc_xoff", &standing) == 1.0).then_some(()));
    let ended = rig.end("TERM");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let frames =
        control.stop().fields("macc", &["sll.src.eth", "macc.opcode", "macc.cbfc.enbv.c3", "macc.cbfc.pause_time.c3"]);
    let of_class_3 = |quanta: &str| [OWN_ADDRESS, "0x0101", "1", quanta].map(str::to_owned).to_vec();
    assert_eq!(frames.first(), Some(&of_class_3("65535")));
    assert_eq!(frames.last(), Some(&of_class_3("0")), "{frames:?}");
    let report = crate::program::report(&ended);
    assert_eq!(report["held"]["cells"], 0, "{}", report["verdict"]);
}
