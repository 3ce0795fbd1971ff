//! Linux hosts at XOFF. No kernel obeys PFC at a tap: one that floods a congested class is found, and one that congests
//! nothing is not judged.

use serde_json::Value;

use crate::faults::{FAST_TO_SLOW, Lab};
use crate::frames::{roce, send};
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::ready::machine_is_ready;

/// Frames of a burst. Sent in 80 ms, they go on for longer than any XOFF is judged, which lasts 33.6 ms at 1G.
const BURST: u16 = 800;
const PER_SECOND: u32 = 10_000;
/// Frames that cause no XOFF.
const FEW: u16 = 50;

/// Sends `frames` frames of class 3 from one host to the other, and waits until the switch has sent them.
#[track_caller]
fn burst(lab: &Lab, from: usize, frames: u16) {
    let (hosts, to) = (&lab.rig.hosts, 1 - from);
    let port = format!("hf{to}");
    let sent = || lab.rig.metrics().sum("holdfast_port_sent_frames_total", &[("port", &port), ("queue", "3")]);
    let before = sent();
    let data: Vec<_> = (0..frames).map(|id| roce(&hosts[from].mac(), &hosts[to].mac(), id, 1000)).collect();
    send(&hosts[from], &data, PER_SECOND);
    wait_for("end of the burst", PATIENCE, || (sent() >= before + f64::from(frames)).then_some(()));
}

/// The answers of the peer of `port` in class 3, as `/v1/pfc` has them.
#[track_caller]
fn answers(lab: &Lab, port: &str) -> Value {
    let shown: Value = serde_json::from_str(&lab.holdfast(&["show", "pfc", "--json"])).expect("JSON");
    let rows = shown["pfc"].as_array().expect("ports");
    rows.iter().find(|row| row["port"] == port).expect("the port")["priorities"][3].clone()
}

#[test]
fn host_that_ignores_pfc_is_found_and_host_that_congests_nothing_is_not_judged() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start(&format!("{FAST_TO_SLOW}watchdog: off\n"));
    let disobeys = |lab: &Lab, port: &str| {
        lab.rig.metrics().sum("holdfast_pfc_peer_disobeys", &[("port", port), ("priority", "3")]) as u64
    };
    burst(&lab, 1, FEW);
    assert_eq!(["hf0", "hf1"].map(|port| answers(&lab, port)["observed"].clone()), ["unseen"; 2]);
    // A switch that is often without a CPU cannot judge each burst.
    wait_for("finding", 4 * PATIENCE, || {
        burst(&lab, 0, BURST);
        (disobeys(&lab, "hf0") == 1).then_some(())
    });
    let (fast, slow) = (answers(&lab, "hf0"), answers(&lab, "hf1"));
    assert!(fast["observed"] == "disobeys" && fast["late_frames"].as_u64() > Some(0), "{fast}");
    assert_eq!(["stops", "late_pauses", "late_frames"].map(|key| slow[key].as_u64()), [Some(0); 3], "{slow}");
    assert_eq!(slow["observed"], "unseen");
    assert_eq!(disobeys(&lab, "hf1"), 0);
    let shown = lab.holdfast(&["show", "pfc"]);
    assert!(shown.contains("DISOBEYS") && shown.contains("hf0 class 3: the peer does not stop at XOFF: "), "{shown}");
    let event = "peer: hf0 class 3: the peer does not stop at XOFF";
    wait_for("event", PATIENCE, || lab.rig.switch().stderr().contains(event).then_some(()));
    assert!(lab.holdfast(&["show", "events"]).contains("hf0 class 3: the peer does not stop at XOFF"));
    let (code, findings) = lab.try_holdfast(&["doctor"]);
    let bad =
        findings.lines().position(|line| line.starts_with("bad ") && line.contains("port hf0")).expect("a finding");
    let remedy = findings.lines().nth(bad + 1).expect("a remedy");
    assert!(remedy.contains("> enable PFC for priority 3 at the peer"), "{findings}");
    assert!(code == Some(1) && !findings.contains("port hf1"), "{findings}");
    let report = lab.rig.stop();
    let exposed = report["verdict"]["not_lossless"].as_array().expect("ports").clone();
    let late = |port: &str| exposed.iter().find(|row| row["port"] == port).map(|row| row["late_frames"].as_u64());
    assert!(late("hf0").flatten() > Some(0) && late("hf1").flatten().unwrap_or(0) == 0, "{exposed:?}");
}
