//! `pfc: queue` on in-process ports: hosts with a transmit queue for each priority, and hosts with one queue.

use crate::launch::{finish, run};
use crate::program::{Config, report, sum};
use serde_json::Value;

/// Two senders of class 3 meet at one port. One of them also sends class 0 to a port of its own.
fn congested(pfc: &str) -> Value {
    let port = |name: &str| format!("- {{name: {name}, device: ring, speed: 1G, {pfc}}}\n");
    let ports: String = ["a", "b", "out", "other"].map(port).concat();
    let text = format!(
        "preset: roce\nports:\n{ports}hosts:\n\
         - {{name: ha, port: a, flows: [{{to: hout, kind: roce, rate: 1G}}, {{to: hother, kind: udp, rate: 200M, dscp: 0}}]}}\n\
         - {{name: hb, port: b, flows: [{{to: hout, kind: roce, rate: 1G}}]}}\n\
         - {{name: hout, port: out}}\n- {{name: hother, port: other}}\n"
    );
    let config = Config::new(&text);
    let ended = finish(run(&[&config.path(), "--duration", "2s", "--json", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    report(&ended)
}

/// Returns the flow of class 0: its loss, and its median latency beside that of class 3.
fn victim(report: &Value) -> (u64, f64) {
    let flows = report["flows"].as_array().expect("flows");
    let of = |class: u64| flows.iter().find(|flow| flow["class"] == class).expect("a flow of the class");
    let latency = |class| of(class)["latency_p50_ns"].as_f64().expect("a latency");
    (of(0)["lost_frames"].as_u64().expect("a count"), latency(0) / latency(3))
}

#[test]
fn incast_loses_nothing_without_pfc_frames_and_spares_the_other_class() {
    let report = congested("pfc: queue");
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    assert_eq!(report["verdict"]["not_lossless"], serde_json::json!([]));
    assert_eq!((sum(&report, "dropped_frames", true), sum(&report, "pfc_sent_xoff", false)), (0, 0));
    let flows = report["flows"].as_array().expect("flows");
    for flow in flows.iter().filter(|flow| flow["class"] == 3) {
        assert_eq!((&flow["lost_frames"], &flow["late_frames"]), (&0.into(), &0.into()), "{flow}");
        assert!(flow["received_frames"].as_u64() > Some(1000), "{flow}");
    }
    // Frames of class 3 wait in the congested queue; those of class 0 pass by.
    let (lost, latency) = victim(&report);
    assert!(lost == 0 && latency < 0.1, "class 0 takes {latency} of the time of class 3");
}

#[test]
fn host_with_one_queue_is_lossless_and_delays_its_other_class() {
    let report = congested("pfc: queue, queues: 1");
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    assert_eq!(sum(&report, "dropped_frames", true), 0);
    let (lost, latency) = victim(&report);
    assert!(lost == 0 && latency > 0.1, "class 0 takes {latency} of the time of class 3");
}
