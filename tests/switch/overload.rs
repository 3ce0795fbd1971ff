//! More traffic than one core can switch, for real: hosts on an lcore of their own send four times what the switch's lcore,
//! which waits after each poll, gets done.

use serde_json::Value;

use crate::launch::run;
use crate::process::Process;
use crate::program::{Config, PATIENCE, report, run_arguments};

/// Four hosts in a ring, each sending frames of 64 B in class 3 to the next: 128 a millisecond, of which a poll takes 32.
///
/// A receive ring holds what comes in 128 ms, so that a CPU that the machine takes away for that long changes nothing,
/// though pauses end meanwhile.
fn overload(backlog_xoff: &str) -> Option<Value> {
    // An lcore that waits for its CPU refreshes no pause, and 3.4 ms later its peers send again.
    let arguments = run_arguments();
    let switch: usize =
        arguments.iter().skip_while(|word| *word != "--lcores").nth(1).map_or(1, |n| n.parse().unwrap());
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < switch + 1) {
        eprintln!("skipped: the hosts and each of {switch} lcores need a CPU of their own");
        return None;
    }
    let lcores = format!("{{hosts: own, poll_delay: 1ms, backlog_xoff: {backlog_xoff}}}");
    let mut yaml = format!("preset: roce\nbuffer: {{size: 64MiB}}\nlcores: {lcores}\nports:\n");
    (0..4).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 10G, rx_descriptors: 16384}}\n"));
    yaml += "hosts:\n";
    for n in 0..4 {
        let flow = format!("{{to: h{}, kind: udp, dscp: 26, ecn: true, frame: 64, rate: 90M}}", (n + 1) % 4);
        yaml += &format!("  - {{name: h{n}, port: p{n}, flows: [{flow}]}}\n");
    }
    let config = Config::new(&yaml);
    let ended = Process::spawn(run(&[&config.path(), "--duration", "4s", "--json", "--metrics", "off"])).wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    Some(report(&ended))
}

fn sum(report: &Value, field: &str) -> u64 {
    let ports = report["ports"].as_array().expect("ports").iter();
    ports.map(|port| port[field].as_u64().expect("a count")).sum()
}

#[test]
fn a_core_with_more_than_it_can_switch_keeps_every_frame() {
    let Some(report) = overload("on") else { return };
    let seen = (sum(&report, "receive_missed_frames"), &report["verdict"]["outcome"]);
    assert_eq!(seen, (0, &"kept".into()), "{}", report["verdict"]);
    assert!(sum(&report, "backlog_xoffs") > 0);
}

#[test]
fn without_the_backlog_rule_it_loses_and_says_so() {
    let Some(report) = overload("off") else { return };
    assert!(sum(&report, "receive_missed_frames") > 0);
    assert_eq!(report["verdict"]["outcome"], "broken");
    let causes = report["verdict"]["causes"].as_array().expect("causes");
    assert!(causes.iter().any(|cause| cause["cause"] == "receive_ring"), "{causes:?}");
}
