//! Congestion at the far receiver: its effect on the middle link and on the senders behind the first switch, and full
//! recovery afterwards.
//!
//! The commands of tests/README.md are run here.

use serde_json::Value;

use crate::capture::{Capture, Trace};
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::{MIDDLE, MIDDLE_OUT, PAUSED, Rig, SENT, XOFF, count, flows_sent, host, port};

/// Address of the second switch's port at the link.
const SECOND_ADDRESS: &str = "02:48:46:0b:00:0b";

/// Capture filter for the PFC frames of both switches on the link.
const PFC: &str = "ether proto 0x8808";

/// Frames of the lossy flow that must arrive while the congested class is paused: 17 ms of traffic.
const MEANWHILE: f64 = 20.0;

/// Limits the senders of `config` to five seconds. That is enough for several cycles of XOFF and XON. It is enough for
/// one cycle on a busy machine where they send at a quarter of their rate.
fn for_a_while(config: String) -> String {
    let config = config.replace("kind: roce,", "kind: roce, pattern: {on: 5s, off: 1h},");
    let config = config.replace("kind: udp,", "kind: udp, pattern: {on: 5s, off: 1h},");
    assert_eq!(config.matches("pattern: ").count(), 3, "{config}");
    config
}

#[test]
fn congestion_travels_to_the_senders_and_nothing_is_lost() {
    quiet::attempt(quiet::ALLOWED, congestion);
}

fn congestion() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(for_a_while);
    let control = Capture::start(&rig.first.host, PFC);
    rig.start();

    // Hop by hop: the second switch pauses the first, which pauses its senders.
    rig.wait_for_hold();
    for sender in ["s1", "s2"] {
        let group = [("port", sender), ("priority", "3")];
        wait_for("XOFF to a sender", PATIENCE, || (rig.first.metrics().sum(XOFF, &group) == 1.0).then_some(()));
    }
    the_lossy_class_goes_on(&rig);

    let delivered = wait_for("end of the traffic", PATIENCE, || {
        let (first, second) = (rig.first.wait_until_idle(), rig.second.wait_until_idle());
        let sent = first.sum("holdfast_flow_sent_frames_total", &[("tc", "3")]);
        let delivered = second.sum(SENT, &[("port", "slow"), ("queue", "3")]);
        (sent == delivered && first.sum(SENT, &MIDDLE_OUT) == delivered).then_some(delivered as u64)
    });
    assert_eq!(rig.link_losses(), []);
    let control = control.stop();
    let (first, second) = (rig.first.stop(), rig.second.stop());
    check_frame_counts(&first, &second, delivered);
    assert_eq!(count(&first, "up", 3, "received_frames"), 0, "a port does not hear itself");
    check_pfc_counts(&first, &second, &control);
    for (report, bystanders) in [(&first, &["up"][..]), (&second, &["slow", "free"])] {
        for name in bystanders {
            let said = [count(report, name, 3, "pfc_sent_xoff"), count(report, name, 3, "pfc_sent_xon")];
            assert_eq!(said, [0, 1], "{name} is nobody's cause");
        }
    }

    // PFC frames as tshark decodes them.
    let enabled: Vec<String> = (0..8).map(|class| format!("macc.cbfc.enbv.c{class}")).collect();
    let enabled: Vec<&str> = enabled.iter().map(String::as_str).collect();
    for row in control.fields("macc", &enabled) {
        let only_3 = (0..8).map(|class| if class == 3 { "1" } else { "0" });
        assert!(row.iter().eq(only_3), "{row:?}");
    }
    assert_eq!(control.fields("_ws.expert", &["frame.number", "_ws.expert.message"]), [[""; 0]; 0]);
}

/// Checks that every frame is counted at each place that it passed, of which the reports tell; `delivered` is the last.
#[track_caller]
fn check_frame_counts(first: &Value, second: &Value, delivered: u64) {
    // Counts every frame at each place that it passed. A receiver does not know flows of another process, so it counts
    // them as foreign.
    for (class, exit, receiver) in [(3, "slow", "r1"), (0, "free", "r2")] {
        let sent = flows_sent(first, class);
        assert!(sent > 100, "class {class}: only {sent}");
        assert_eq!(host(second, receiver)["foreign_frames"], sent, "{receiver}");
        if class == 3 {
            // The other class also carries the announcements of the hosts.
            let places = [
                count(first, "up", class, "sent_frames"),
                count(second, "up", class, "received_frames"),
                count(second, exit, class, "sent_frames"),
                delivered,
            ];
            assert_eq!(places, [sent; 4]);
        }
    }
}

/// Checks the PFC counters of both switches and their hosts against the frames of the capture on the link.
#[track_caller]
fn check_pfc_counts(first: &Value, second: &Value, control: &Trace) {
    // The PFC counters of each switch match the frames on the link and the frames that the senders received.
    let frames = control.fields("macc", &["eth.src", "macc.opcode", "macc.cbfc.pause_time.c3"]);
    let (frames, of_first): (Vec<_>, Vec<_>) = frames.into_iter().partition(|row| row[0] == SECOND_ADDRESS);
    let greeting = of_first.iter().map(|row| [&row[1], &row[2]]).collect::<Vec<_>>();
    assert_eq!(greeting, [["0x0101", "0"]], "all that the first one says is that it stops nobody");
    let with = |quanta: &str| frames.iter().filter(|row| row[2] == quanta).count() as u64;
    let (xoff, xon) = (with("65535"), with("0"));
    assert_eq!(xoff + xon, frames.len() as u64, "{frames:?}");
    assert!(frames.iter().all(|row| row[1] == "0x0101"), "{frames:?}");
    assert_eq!(frames[0][2], "0", "XON is the first word");
    assert_eq!(frames.last().map(|row| row[2].as_str()), Some("0"), "XON is the last word");
    assert!(xoff > xon && xon > 1, "{xoff} XOFF with refreshes, {xon} XON");
    let sent = ["pfc_sent_xoff", "pfc_sent_xon"].map(|field| count(second, "up", 3, field));
    let received = ["pfc_received_xoff", "pfc_received_xon"].map(|field| count(first, "up", 3, field));
    // The first PFC frame left before the first switch ran.
    assert_eq!((sent, received), ([xoff, xon], [xoff, xon - 1]));
    for (sender, name) in [("s1", "h1"), ("s2", "h2")] {
        let (switch, heard) = (port(first, sender), host(first, name));
        assert!(count(first, sender, 3, "pfc_sent_xoff") > 0, "{switch}");
        assert_eq!(switch["pfc_sent_frames"], heard["pfc_received_frames"]);
        let paused = heard["paused_ns"].as_object().expect("times by class");
        assert!(paused["3"].as_u64() > Some(0) && paused.len() == 1, "only class 3 was stopped: {heard}");
    }
}

/// Waits until lossy frames arrive between two readings during which the link stays paused and no frame of the
/// congested class leaves.
#[track_caller]
fn the_lossy_class_goes_on(rig: &Rig) {
    let mut before = None;
    wait_for("lossy frames while the other class is paused", PATIENCE, || {
        let (first, second) = (rig.first.metrics(), rig.second.metrics());
        let paused = first.sum(PAUSED, &MIDDLE) == 1.0;
        let (stands, goes_on) = (first.sum(SENT, &MIDDLE_OUT), second.sum(SENT, &[("port", "free"), ("queue", "0")]));
        match before {
            Some((stood, went_on)) if paused && stands == stood => (goes_on > went_on + MEANWHILE).then_some(()),
            _ => {
                before = paused.then_some((stands, goes_on));
                None
            }
        }
    });
}
