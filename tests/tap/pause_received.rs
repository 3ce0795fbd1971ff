//! PFC frames from a host: each pauses the class that it names for the time that it names, and nothing else.
//!
//! A virtual host sends class 3 and class 0 to a real host, which sends the PFC frames.

use std::thread::sleep;
use std::time::Duration;

use crate::capture::{Capture, Trace};
use crate::frames::{pause, pfc, send};
use crate::program::{Config, sum};
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::Rig;

/// Address of the real host.
const HOST: &str = "02:48:46:00:01:00";

/// Two steady flows of about 480 frames a second each. Together they use a fifth of the port.
const TWO_FLOWS: &str = r#"
preset: roce
ports:
  - {name: virtual, device: ring, speed: 1G}
  - {name: real, device: "net_tap0,iface=hf0,mac=02:48:46:00:01:00", speed: 20M}
fdb:
  static: [{mac: "02:48:46:00:01:00", port: real}]
hosts:
  - name: sender
    port: virtual
    flows:
      - {to: {mac: "02:48:46:00:01:00", ip: 10.48.0.99}, kind: roce, rate: 2M, frame: 500}
      - {to: {mac: "02:48:46:00:01:00", ip: 10.48.0.99}, kind: udp, rate: 2M, frame: 500, dscp: 0}
"#;

/// The longest pause at 20M in seconds: 65535 quanta of 512 bit times.
const LONGEST: f64 = 65_535.0 * 512.0 / 20e6;

/// Tolerance in seconds: clocks differ, and the time of a frame is the time of its capture.
const CLOCK: f64 = 0.02;

/// Least time between control frames.
const APART: Duration = Duration::from_millis(300);

const LOSSLESS: &str = "udp.dstport == 4791";
const LOSSY: &str = "udp.dstport == 18502";

/// A gap in the frames of a class, in seconds since the control frame was sent.
#[derive(Debug)]
struct Silence {
    begin: f64,
    end: f64,
}

/// Returns the longest silence of the frames that pass `filter`.
#[track_caller]
fn longest_silence(trace: &Trace, filter: &str) -> Silence {
    let sent = trace.timed("macc")[0];
    let times = trace.timed(filter);
    let pairs = times.windows(2).map(|pair| Silence { begin: pair[0] - sent, end: pair[1] - sent });
    let longest = pairs.max_by(|a, b| (a.end - a.begin).total_cmp(&(b.end - b.begin)));
    longest.unwrap_or_else(|| panic!("{} frames of {filter}", times.len()))
}

/// Asserts that a class was not paused: it has no silence of half the longest pause. A busy machine does not cause one.
#[track_caller]
fn assert_undisturbed(trace: &Trace, filter: &str) {
    let silence = longest_silence(trace, filter);
    assert!(silence.end - silence.begin < LONGEST / 2.0, "{filter}: {silence:?}");
}

/// Sends control frames from the host at intervals. Captures the frames at the host from a little before until the
/// effects are over.
#[track_caller]
fn inject(rig: &Rig, frames: &[Vec<u8>]) -> Trace {
    let capture = Capture::start(&rig.hosts[0], "udp or ether proto 0x8808");
    for frame in frames {
        sleep(APART);
        send(&rig.hosts[0], std::slice::from_ref(frame), 1);
    }
    sleep(Duration::from_secs_f64(LONGEST + 0.5));
    capture.stop()
}

#[test]
fn a_pause_stops_its_class_only_and_for_the_time_it_names() {
    quiet::attempt(quiet::ALLOWED, pauses_by_class_and_time);
}

fn pauses_by_class_and_time() {
    if !machine_is_ready() {
        return;
    }
    let config = Config::new(TWO_FLOWS);
    let mut rig = Rig::start(&config.path(), 1);
    assert_eq!(rig.hosts[0].mac(), HOST);

    let trace = inject(&rig, &[pfc(HOST, &[(3, 0xffff)])]);
    let silence = longest_silence(&trace, LOSSLESS);
    assert!(silence.begin < LONGEST / 2.0, "{silence:?}");
    assert!(silence.end > LONGEST - CLOCK && silence.end < 2.0 * LONGEST, "{silence:?}");
    assert_undisturbed(&trace, LOSSY);
    let during = format!("{LOSSY} && frame.time_epoch > {}", trace.timed("macc")[0]);
    assert!(trace.timed(&during).len() as f64 > 200.0 * LONGEST, "class 0 keeps its rate");

    // XON ends a pause early.
    let trace = inject(&rig, &[pfc(HOST, &[(3, 0xffff)]), pfc(HOST, &[(3, 0)])]);
    let control = trace.timed("macc");
    let (xon, silence) = (control[1] - control[0], longest_silence(&trace, LOSSLESS));
    if xon >= LONGEST / 2.0 {
        quiet::too_busy(format!("XON came after {xon} s"));
    }
    assert!(silence.end > xon - CLOCK && silence.end < LONGEST - CLOCK, "XON at {xon}: {silence:?}");
    assert_undisturbed(&trace, LOSSY);

    // Frames without effect: a pause of a lossy class, a PAUSE of the whole link, and times of classes that are not
    // enabled.
    let mut not_enabled = pfc(HOST, &[(3, 0xffff), (0, 0xffff)]);
    not_enabled[17] = 0;
    let trace = inject(&rig, &[pfc(HOST, &[(0, 0xffff)]), pause(HOST, 0xffff), not_enabled]);
    assert_undisturbed(&trace, LOSSLESS);
    assert_undisturbed(&trace, LOSSY);

    let report = rig.stop();
    let port = &report["ports"][1];
    assert_eq!((&port["pfc_received_frames"], &port["pause_received_frames"]), (&5.into(), &1.into()), "{port}");
    assert_eq!(sum(&report, "dropped_frames", true), 0);
    for flow in report["flows"].as_array().expect("flows") {
        let classes = port["classes"].as_array().expect("classes");
        let class = classes.iter().find(|class| class["class"] == flow["class"]).expect("a class that was used");
        assert!(class["sent_frames"].as_u64() >= flow["sent_frames"].as_u64(), "nothing is left behind: {flow}");
    }
}
