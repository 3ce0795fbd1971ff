//! The first switch as the peer of the second: it obeys XOFF in its time, or late by an injected fault.

use serde_json::Value;

use crate::metrics::Exposition;
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::{MIDDLE, Rig};

/// Late pauses that accuse a peer, and stops that prove its port.
const FINDING: f64 = 3.0;

/// The peer has 10 ms and some microseconds at a port of af_packet, and frames count up to 50 ms after XOFF.
const LATE: &str = "\nfaults: {list: [{late: up, response: 30ms, toward: switch}]}\n";

/// XOFFs after which the first switch stopped in time, and after which it did not.
fn judged(second: &Exposition) -> [f64; 2] {
    ["holdfast_pfc_peer_stops_total", "holdfast_pfc_peer_late_xoffs_total"].map(|name| second.sum(name, &MIDDLE))
}

/// Runs both switches until the second has judged enough XOFFs. Returns its metrics, and the report of the first.
#[track_caller]
fn run(faults: &str, is_enough: impl Fn([f64; 2]) -> bool) -> (Exposition, Value) {
    let mut rig = Rig::new(|config| config + faults);
    rig.start();
    let metrics = wait_for("answers to XOFF", PATIENCE, || {
        let metrics = rig.second.metrics();
        is_enough(judged(&metrics)).then_some(metrics)
    });
    for port in ["slow", "free"] {
        let names = ["holdfast_pfc_peer_stops_total", "holdfast_pfc_peer_late_frames_total"];
        let congested = names.map(|name| metrics.sum(name, &[("port", port)]));
        assert_eq!(congested, [0.0; 2], "{port} congests nothing");
    }
    let first = rig.first.end();
    rig.second.wait_until_idle();
    let second = rig.second.end();
    assert_eq!(second["verdict"]["causes"], serde_json::json!([]), "headroom holds the late frames");
    (metrics, first)
}

#[test]
fn switch_that_obeys_is_not_accused() {
    quiet::attempt(quiet::ALLOWED, || {
        if !machine_is_ready() {
            return;
        }
        let (second, _) = run("", |[stops, _]| stops >= FINDING);
        let [stops, late] = judged(&second);
        assert!(stops > late, "{stops} in time, {late} late");
        assert_eq!(second.sum("holdfast_pfc_peer_disobeys", &[]), 0.0);
        let standing = |name| second.sum("holdfast_pfc_standing", &[("port", "up"), ("standing", name)]);
        assert_eq!(standing("proven"), 1.0, "without `pfc_proven`");
    });
}

#[test]
fn switch_that_obeys_late_is_found() {
    quiet::attempt(quiet::ALLOWED, || {
        if !machine_is_ready() {
            return;
        }
        let (second, first) = run(LATE, |[_, late]| late >= FINDING);
        assert_eq!(second.sum("holdfast_pfc_peer_disobeys", &MIDDLE), 1.0, "{:?}", judged(&second));
        assert_eq!(second.sum("holdfast_pfc_peer_disobeys", &[]), 1.0, "only that port");
        assert_eq!(first["verdict"]["by_order"][0]["fault"], "late", "{}", first["verdict"]);
    });
}
