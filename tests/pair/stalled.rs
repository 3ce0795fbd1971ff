//! A switch without CPU for longer than the kernel's ring lasts: the loss is reported.

use crate::ready::machine_is_ready;
use crate::rig::{MIDDLE_OUT, Rig, SENT, count, flows_sent, port};

/// Twice the capacity of the kernel's ring in frames.
const TOO_MANY: f64 = 8192.0;

#[test]
fn frames_lost_in_the_kernel_ring_give_a_broken_verdict() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(|config| config);
    rig.start();
    let before = rig.wait_for_hold();
    // Its last pause expires, and then nothing pauses the first switch.
    rig.second.signal("STOP");
    rig.first.wait_for_more_than(before as f64 + TOO_MANY, SENT, &MIDDLE_OUT);
    rig.second.signal("CONT");
    let first = rig.first.end();
    rig.second.wait_until_idle();
    let second = rig.second.end();

    let lost = flows_sent(&first, 3) - count(&second, "up", 3, "received_frames");
    let missed = port(&second, "up")["receive_missed_frames"].as_u64().expect("a count");
    assert!(lost > 0 && missed >= lost, "{missed} counted of {lost} and lossy ones");
    assert_eq!(port(&second, "up")["receive_loss_seen"], true);
    let verdict = &second["verdict"];
    assert_eq!(verdict["outcome"], "broken");
    let causes = verdict["causes"].as_array().expect("causes");
    let ring = causes.iter().find(|cause| cause["cause"] == "receive_ring").unwrap_or_else(|| panic!("{verdict}"));
    assert_eq!((&ring["port"], &ring["missed_frames"]), (&"up".into(), &missed.into()));
}
