//! Ports of different speeds on one switch.

use std::time::{Duration, Instant};

use crate::bed::{Bed, ROOMY};
use crate::frame::Frame;
use crate::frames::{pfc, send};
use crate::program::sum;
use crate::quiet;

/// The longest pause at 100M: 65535 quanta of 512 bit times. At 10M it lasts ten times as long.
const LONGEST: Duration = Duration::from_micros(65_535 * 512 / 100);

#[test]
fn pause_duration_follows_the_port_speed() {
    quiet::attempt(quiet::ALLOWED, pause_of_its_speed);
}

fn pause_of_its_speed() {
    let ports = [("a", "speed: 1G"), ("fast", "speed: 100M"), ("slow", "speed: 10M")];
    let settings = format!("buffer: {{size: 4MiB}}\nclasses: {{3: {{{ROOMY}}}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let slow = Instant::now();
    bed.control("slow", &[pfc(&bed.text_address("slow"), &[(3, 0xffff)])]);
    let fast = Instant::now();
    send(bed.host("fast"), &[pfc(&bed.text_address("fast"), &[(3, 0xffff)])], 1);
    bed.wait("pause", |seen| seen.count("pfc_received_frames_total", &[("port", "fast")]), |&frames| frames == 1);
    for port in ["fast", "slow"] {
        bed.send("a", port, Frame::of(3), 20);
    }
    let seen = bed.wait_sent("fast", 3, 20);
    assert!(fast.elapsed() >= LONGEST, "100M went on after {:?}", fast.elapsed());
    if slow.elapsed() >= 10 * LONGEST {
        quiet::too_busy(format!("after {:?} the pause at 10M is over too", slow.elapsed()));
    }
    assert_eq!((seen.is_paused("slow", 3), seen.sent("slow", 3)), (true, 0), "10M waits still");
    bed.control("slow", &[pfc(&bed.text_address("slow"), &[(3, 0)])]);
    let seen = bed.wait_sent("slow", 3, 20);
    assert_eq!((seen.drops(), seen.pfc_frames()), (0, 0));
    bed.finish();
}

/// Two virtual hosts that obey PFC send to a port of 10M: one at 100 times its speed, one at ten times.
#[test]
fn fast_and_slow_senders_overrun_a_slower_receiver_and_nothing_is_lost() {
    quiet::attempt(quiet::ALLOWED, overrun_of_a_slower_receiver);
}

fn overrun_of_a_slower_receiver() {
    let ring = ["device: ring, speed: 1G", "device: ring, speed: 100M"];
    let ports = [("out", "speed: 10M"), ("p1", ring[0]), ("p2", ring[1])];
    let host = |port, rate| {
        let to = r#"{mac: "02:00:00:00:00:00", ip: 10.48.0.99}"#;
        format!("  - {{name: {port}, port: {port}, flows: [{{to: {to}, kind: roce, rate: {rate}, frame: 1000}}]}}\n")
    };
    let settings = format!(
        "preset: roce\nbuffer: {{size: 6MiB}}\nclasses: {{3: {{limit: 100kB}}}}\nhosts:\n{}{}",
        host("p1", "1G"),
        host("p2", "100M")
    );
    let Some(bed) = Bed::start(&ports, &settings) else { return };
    let seen = bed.wait("400 frames", |seen| seen.sent("out", 3), |&sent| sent >= 400);
    if seen.count("port_link_ups_total", &[("port", "out")]) > 1 {
        quiet::too_busy("the switch saw the tap down while it moved to its host, and dropped frames".to_owned());
    }
    for port in ["p1", "p2"] {
        assert!(seen.told(port, 3).0 > 0, "{port} has to be stopped");
    }
    assert_eq!((seen.told("out", 3), seen.drops()), ((0, 0), 0));
    let (sent, got) = (seen.sent("out", 3), bed.got("out"));
    assert!(got >= sent, "{got} of {sent} frames");
    let report = bed.stop();
    assert_eq!(report["verdict"]["outcome"], "kept_as_seen", "{}", report["verdict"]);
    assert_eq!(sum(&report, "dropped_frames", true), 0);
}
