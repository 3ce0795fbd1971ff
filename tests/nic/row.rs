//! One row of the table: a model of NIC, by a way to reach it.

use std::time::Instant;

use serde_json::Value;

use crate::bench::{Bench, PORTS};
use crate::incast;
use crate::nic::{Access, Nic};
use crate::talk;

/// Runs every check of a row.
#[track_caller]
pub fn run(nic: Nic, access: Access) {
    let began = Instant::now();
    let mut bench = Bench::start(nic, access);
    bench.start_switch();
    flow_control_is_settled(&mut bench, nic);
    missing_flow_rules_are_named(&mut bench, nic);
    talk::arp_and_ping(&mut bench);
    incast::incast(&mut bench);
    link_goes_and_comes(&mut bench, nic);
    incast::short_incast(&mut bench);
    bench.kill_switch();
    bench.start_switch();
    incast::short_incast(&mut bench);
    nothing_is_lost(&bench.stop_switch());
    bench.rebind();
    bench.start_switch();
    flow_control_is_settled(&mut bench, nic);
    incast::short_incast(&mut bench);
    nothing_is_lost(&bench.stop_switch());
    eprintln!("{nic:?} by {}: {:.0} s", access.driver(), began.elapsed().as_secs_f32());
}

/// The device does not pause by itself, and passes MAC control frames as far as the driver says. `off` is what the
/// switch reports after it has read the settings back.
#[track_caller]
fn flow_control_is_settled(bench: &mut Bench, nic: Nic) {
    bench.wait_for_ports(&format!("flow control `{}`", nic.flow_control()), |port| {
        port["flow_control"] == nic.flow_control()
    });
}

/// No NIC of QEMU has flow rules. At one with several receive queues the switch says so and goes on.
#[track_caller]
fn missing_flow_rules_are_named(bench: &mut Bench, nic: Nic) {
    let (log, is_named) = (bench.log(), |log: &str| log.contains("is not known to steer frames by DSCP"));
    assert_eq!(is_named(&log), nic.queues() > 1, "{log}");
}

/// A link that goes down is seen, so is its return.
#[track_caller]
fn link_goes_and_comes(bench: &mut Bench, nic: Nic) {
    let last = PORTS - 1;
    let name = format!("p{last}");
    bench.guest.set_link(last, false);
    bench.wait_for_ports("link down", |port| port["port"] != name || port["link_up"] == false);
    bench.guest.set_link(last, true);
    bench.wait_for_ports("link up again", |port| port["link_up"] == true);
    flow_control_is_settled(bench, nic);
}

/// The switch's own counters agree with the hosts: nothing is lost before, in or behind it.
#[track_caller]
pub fn nothing_is_lost(report: &Value) {
    for port in report["ports"].as_array().expect("ports") {
        for count in ["receive_missed_frames", "receive_no_buffer_frames", "send_errors", "pause_received_frames"] {
            assert_eq!(port[count], 0, "{count}: {port}");
        }
        let lossless = port["classes"].as_array().expect("classes").iter().filter(|class| class["lossless"] == true);
        lossless.for_each(|class| assert_eq!(class["dropped_frames"], 0, "{port}"));
    }
    let held = (&report["held"]["cells"], &report["held"]["frames"]);
    assert_eq!(held, (&0.into(), &0.into()), "frames are left: {}", report["verdict"]);
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
}
