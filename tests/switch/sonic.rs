//! Cases of SONiC's public RoCEv2 test plan on the running program, with virtual hosts as generator:
//! conf/sonic/README.md.
//! `tests/sonic` has all cases in simulated time, with messages, ACKs and DCQCN.

use std::time::Duration;

use serde_json::Value;

use crate::launch::{finish, run};
use crate::program::{Config, report, sum};
use crate::quiet;

/// Longest absence of a CPU in which no queue grows beyond the lowest mark: 100 kB at 1G take 800 us.
const ALLOWED: Duration = Duration::from_micros(500);

/// A switch of four ports of 1G with lossless classes 3 and 4, and hosts h0 to h3 with these flows.
fn config(flows: [&str; 4]) -> Config {
    let mut text = "\
preset: roce
ports: [{name: p*, count: 4, first: 0, device: ring, speed: 1G, cable: 5m}]
maps: {roce: {ack: 6, cnp: 5}}
classes:
  3: {alpha: 1}
  4: {lossless: true, scheduler: {weight: 4}, alpha: 1}
buffer: {size: 12MiB}
lcores: {backlog_xoff: off}
hosts:
"
    .to_owned();
    for (number, flows) in flows.into_iter().enumerate() {
        text += &format!("  - {{name: h{number}, port: p{number}, flows: [{flows}]}}\n");
    }
    Config::new(&text)
}

/// Runs the switch for a second and returns its report.
#[track_caller]
fn run_for_a_second(config: &Config) -> Value {
    let ended = finish(run(&[&config.path(), "--duration", "1s", "--json", "--metrics", "off"]));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    quiet::saw_gap(report["polls"]["gap_highest_ns"].as_u64().expect("a gap"));
    report
}

/// Asserts that every frame of the lossless flows arrived.
#[track_caller]
fn assert_no_loss(report: &Value, classes: &[u64]) {
    let flows = report["flows"].as_array().expect("flows");
    let flows = flows.iter().filter(|flow| flow["class"].as_u64().is_some_and(|class| classes.contains(&class)));
    let mut seen = 0;
    for flow in flows {
        assert!(flow["sent_frames"].as_u64() > Some(1000), "{flow}");
        assert_eq!(flow["sent_frames"], flow["received_frames"], "{flow}");
        seen += 1;
    }
    assert!(seen >= classes.len(), "{seen} flows");
    assert_eq!(sum(report, "dropped_frames", true), 0);
}

/// Ends this attempt as explained if CE marks follow from a gap between polls: frames of a gap wait in their queue.
/// Such marks are few. A switch that marks without congestion marks all frames of a class.
fn explain_marks(report: &Value) {
    let (marked, gap) = (sum(report, "ecn_marked_frames", false), quiet::longest_gap());
    let flows = report["flows"].as_array().expect("flows").iter();
    let sent: u64 = flows.map(|flow| flow["sent_frames"].as_u64().expect("a count")).sum();
    if marked > 0 && marked < sent / 100 && gap > ALLOWED {
        quiet::explained(format!("{marked} of {sent} frames marked, with a gap of {gap:?}"));
    }
}

/// Case 1: each port sends to another, below its rate.
#[test]
fn sonic_case_1_uncongested_roce_has_no_loss_no_ce_and_no_pfc() {
    let config = config([
        "{to: h2, kind: roce, rate: 400M, dscp: 26}, {to: h2, kind: roce, rate: 400M, dscp: 34}",
        "{to: h3, kind: roce, rate: 250M, dscp: 0}, {to: h3, kind: roce, rate: 250M, dscp: 8}",
        "",
        "",
    ]);
    quiet::attempt(ALLOWED, || {
        let report = run_for_a_second(&config);
        assert_no_loss(&report, &[0, 1, 3, 4]);
        assert_eq!(sum(&report, "pfc_sent_xoff", false), 0);
        explain_marks(&report);
        assert_eq!(sum(&report, "ecn_marked_frames", false), 0);
    });
}

/// Case 2: three ports send to a fourth at line rate. Packets are Not-ECT, so that PFC alone holds the senders.
#[test]
fn sonic_case_2_incast_of_not_ect_roce_is_held_by_pfc_without_ce() {
    let data = |dscp: u8| format!("{{to: h3, kind: roce, rate: 1G, dscp: {dscp}, ecn: false}}");
    let lossy = "{to: h3, kind: udp, rate: 500M, dscp: 0}";
    let config = config([&data(26), &data(34), lossy, ""]);
    quiet::attempt(ALLOWED, || {
        let report = run_for_a_second(&config);
        assert_no_loss(&report, &[3, 4]);
        assert_eq!(sum(&report, "ecn_marked_frames", false), 0);
        let xoffs = |port: &str, class: u64| {
            let ports = report["ports"].as_array().expect("ports");
            let port = ports.iter().find(|of| of["name"] == port).expect("a port");
            let class = port["classes"].as_array().expect("classes").iter().find(|of| of["class"] == class);
            class.and_then(|class| class["pfc_sent_xoff"].as_u64()).expect("a count")
        };
        assert!(xoffs("p0", 3) > 0 && xoffs("p1", 4) > 0, "each sender is paused in its class");
        assert_eq!((xoffs("p0", 4), xoffs("p1", 3), xoffs("p2", 0)), (0, 0, 0));
    });
}
