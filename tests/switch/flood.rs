//! RoCE beside many lossy frames, with real rings. Hosts have their own lcore, and the lcore of the switch waits a
//! millisecond after each poll. Only a program without optimization on a slow CPU must shed.

use std::time::Duration;

use serde_json::Value;

use crate::launch::run;
use crate::overload::hosts_have_a_cpu;
use crate::process::Process;
use crate::program::{Config, report};
use crate::quiet;

/// Longest time that a CPU may be away: a receive ring holds the frames of 120 ms.
const ALLOWED: Duration = Duration::from_millis(90);

const PORTS: u64 = 4;
const LOSSLESS_MBPS: u64 = 5;
const LOSSY_MBPS: u64 = 90;

/// Percent of its CPU time for which the switch may wait for a CPU without any effect on the verdict.
const WAITED: f64 = 2.0;

/// Runs four hosts in a ring. Each sends 128 lossy frames a millisecond to the next, and 7 lossless ones. A poll has
/// half of 2 ms for them. A program without optimization on a slow CPU may have to shed some.
///
/// Returns the report, and the percentage of its CPU time for which it waited for a CPU.
fn flooded() -> Option<(Value, f64)> {
    if !hosts_have_a_cpu() {
        return None;
    }
    let mut yaml =
        "preset: roce\nbuffer: {size: 64MiB}\nlcores: {hosts: own, poll_delay: 1ms, poll_gap: 2ms}\nports:\n"
            .to_owned();
    (0..PORTS).for_each(|n| yaml += &format!("  - {{name: p{n}, device: ring, speed: 100M, rx_descriptors: 16384}}\n"));
    yaml += "hosts:\n";
    for n in 0..PORTS {
        let flow = |dscp: u8, rate: u64| {
            format!("{{to: h{}, kind: udp, dscp: {dscp}, ecn: true, frame: 64, rate: {rate}M}}", (n + 1) % PORTS)
        };
        yaml +=
            &format!("  - {{name: h{n}, port: p{n}, flows: [{}, {}]}}\n", flow(26, LOSSLESS_MBPS), flow(0, LOSSY_MBPS));
    }
    let config = Config::new(&yaml);
    let command = run(&[&config.path(), "--duration", "4s", "--json", "--metrics", "off"]);
    let (ended, waited) = quiet::finish_watched(Process::spawn(command));
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    quiet::saw_gap(report["polls"]["gap_highest_ns"].as_u64().expect("a gap"));
    Some((report, waited))
}

/// Returns a count of frames over all flows of `class`.
fn frames(report: &Value, class: u64, count: &str) -> u64 {
    let flows = report["flows"].as_array().expect("flows").iter().filter(|flow| flow["class"] == class);
    flows.map(|flow| flow[count].as_u64().expect("a count")).sum()
}

#[test]
fn a_lossy_flood_leaves_lossless_classes_their_rate() {
    quiet::attempt(ALLOWED, check_flood);
}

fn check_flood() {
    let Some((report, waited)) = flooded() else { return };
    let (lossless, lossy) = (frames(&report, 3, "received_frames"), frames(&report, 0, "received_frames"));
    // Lossy flows are never paused. So their hosts' count shows the frames that lossless flows would have sent without
    // the flood.
    let offered = frames(&report, 0, "sent_frames") * LOSSLESS_MBPS / LOSSY_MBPS;
    assert!(lossless * 10 > offered, "{lossless} of {offered} lossless frames arrived beside {lossy}");
    // Frames that arrive while the switch's CPU is away, or at once after the hosts' CPU was, form a backlog that
    // pauses hosts. A poll receives four times the lossless frames of a millisecond, so the pause lasts about as long
    // again.
    if lossless * 10 < offered * 9 && waited > WAITED {
        quiet::explained(format!("it waited {waited:.1} %: {lossless} of {offered} lossless frames arrived"));
    }
    assert!(lossless * 10 >= offered * 9, "{lossless} of {offered} lossless frames arrived beside {lossy}");
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    assert!(lossy > 0);
}
