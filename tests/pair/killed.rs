//! One of two switches is killed while the second pauses the first, and is started again.

use serde_json::Value;

use crate::capture::{Capture, Trace};
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::{MIDDLE, MIDDLE_IN, MIDDLE_OUT, PAUSED, RECEIVED, Rig, SENT, SLOW_OUT, count, flows_sent, host, port};

/// Frames that show that traffic flows again: most of a cycle of filling up to XOFF and draining to XON.
const FLOWS: f64 = 1000.0;

/// The longest pause at 100M in seconds: 65535 quanta of 512 bit times.
const LONGEST: f64 = 65_535.0 * 512.0 / 100e6;

/// Tolerance in seconds: the time of a frame is the time of its capture.
const CLOCK: f64 = 0.02;

/// Capture filter for the congested class and for PFC frames.
const CLASS_AND_CONTROL: &str = "udp dst port 4791 or ether proto 0x8808";

/// Returns a PFC counter of a switch at the link.
#[track_caller]
fn pfc(report: &Value, field: &str) -> u64 {
    port(report, "up")[field].as_u64().expect("a count")
}

#[test]
fn first_switch_resumes_when_pause_of_killed_second_expires() {
    quiet::attempt(quiet::ALLOWED, second_killed);
}

fn second_killed() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(|config| config);
    let capture = Capture::start(&rig.first.host, CLASS_AND_CONTROL);
    rig.start();
    let before = rig.wait_for_hold();
    rig.second.kill();

    // No switch sends XON: the last pause expires by itself, and not early.
    rig.first.wait_for_more_than(before as f64 + FLOWS, SENT, &MIDDLE_OUT);
    let alone = rig.first.metrics();
    assert_eq!(alone.sum(PAUSED, &[]), 0.0);
    let heard_before = alone.sum("holdfast_pfc_received_frames_total", &[]) as u64;
    the_last_pause_lasted(&capture.stop());

    rig.second.start();
    let at_start = rig.first.metrics().sum(SENT, &MIDDLE_OUT) as u64;
    rig.second.wait_for_more_than(FLOWS, SENT, &SLOW_OUT);
    // The new switch pauses the first one too, and resumes it.
    wait_for("pause by the new switch", PATIENCE, || (rig.first.metrics().sum(PAUSED, &MIDDLE) == 1.0).then_some(()));
    rig.second.wait_for_more_than(1.0, "holdfast_pfc_sent_xon_total", &MIDDLE);

    let first = rig.first.stop();
    rig.second.wait_until_idle();
    let second = rig.second.stop();
    let heard = pfc(&first, "pfc_received_frames") - heard_before;
    rig.assert_lost_only_pfc(pfc(&second, "pfc_sent_frames") - heard);
    let sent = flows_sent(&first, 3);
    assert_eq!(count(&first, "up", 3, "sent_frames"), sent, "the first one lost none of them");
    let received = count(&second, "up", 3, "received_frames");
    assert_eq!(count(&second, "slow", 3, "sent_frames"), received);
    assert_eq!(host(&second, "r1")["foreign_frames"], received);
    // Frames that passed the link before went to the killed switch. Of the rest, only frames that the first switch sent
    // while there was no second one may be lost.
    let (after, in_between) = (sent - before, at_start - before);
    assert!(received <= after, "{received} of {after}");
    assert!(after - received <= in_between, "{received} of {after} received, {in_between} sent meanwhile");
}

/// Asserts that the congested class was silent after the last XOFF for its whole duration. No XON followed this XOFF.
#[track_caller]
fn the_last_pause_lasted(trace: &Trace) {
    let control = trace.fields("macc", &["frame.time_epoch", "macc.cbfc.pause_time.c3"]);
    let [time, quanta] = &control.last().unwrap_or_else(|| panic!("no PFC: {control:?}"))[..] else {
        panic!("{control:?}")
    };
    assert_eq!(quanta, "65535", "it died before it could say XON: {control:?}");
    let xoff: f64 = time.parse().expect("a time");
    let times = trace.timed("udp.dstport == 4791");
    let later = times.windows(2).filter(|pair| pair[1] > xoff);
    let silence = later.max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
    let end = silence.unwrap_or_else(|| panic!("{} frames, none after XOFF", times.len()))[1] - xoff;
    assert!(end > LONGEST - CLOCK, "it ended after {end} s");
}

#[test]
fn a_killed_first_switch_lets_the_second_drain() {
    quiet::attempt(quiet::ALLOWED, first_killed);
}

fn first_killed() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(|config| config);
    rig.start();
    let before = rig.wait_for_hold();
    let heard_before = rig.first.metrics().sum("holdfast_pfc_received_frames_total", &MIDDLE[..1]);
    rig.first.kill();

    // All frames of the killed switch arrive, including those sent after the last reading of its counters. No peer
    // stays at XOFF.
    rig.wait_until_all_arrived();
    let idle = rig.second.wait_until_idle();
    let drained = idle.sum(SENT, &SLOW_OUT);
    assert_eq!(idle.sum(RECEIVED, &MIDDLE_IN), drained);
    assert!(drained >= before as f64, "{drained} of {before}");
    assert_eq!(idle.sum("holdfast_port_dropped_frames_total", &[]), 0.0);

    rig.first.start();
    rig.second.wait_for_more_than(drained + FLOWS, SENT, &SLOW_OUT);
    wait_for("pause of the new switch", PATIENCE, || (rig.first.metrics().sum(PAUSED, &MIDDLE) == 1.0).then_some(()));
    let first = rig.first.stop();
    rig.second.wait_until_idle();
    let second = rig.second.stop();
    let heard = heard_before as u64 + pfc(&first, "pfc_received_frames");
    rig.assert_lost_only_pfc(pfc(&second, "pfc_sent_frames") - heard);
    let (sent, drained) = (flows_sent(&first, 3), drained as u64);
    assert_eq!(count(&first, "up", 3, "sent_frames"), sent);
    let places =
        [count(&second, "up", 3, "received_frames"), count(&second, "slow", 3, "sent_frames")].map(|n| n - drained);
    assert_eq!(places, [sent; 2], "all of the new one's frames arrive");
    assert_eq!(host(&second, "r1")["foreign_frames"], drained + sent);
}
