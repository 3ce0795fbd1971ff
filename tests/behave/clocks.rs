//! Watermarks that a signal clears, and counters of time.

use std::time::{Duration, Instant};

use crate::bed::{Bed, SMALL};
use crate::frame::Frame;
use crate::frames::pfc;

/// Largest difference between the clocks of the switch and of this test, as a fraction of a duration.
const CLOCKS: f64 = 0.02;

#[test]
fn sigusr1_resets_watermarks_to_current_use_and_keeps_counters() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("b", "speed: 1G, mtu: 256")];
    let slow = ["d1", "d2"].map(|name| (name, "speed: 10M, mtu: 256"));
    let settings = format!(
        "buffer: {{size: 416kB, headroom: {{policy: shared-pool, size: 14560B}}}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\n"
    );
    let Some(mut bed) = Bed::start(&[ports, slow].concat(), &settings) else { return };
    let [one, two] = ["d1", "d2"].map(|port| bed.hold(port, &[3]));
    // Port `a` holds 26 cells and 14 of headroom, port `b` 12. Without the frames for d1, each holds 12.
    bed.send("a", "d1", Frame::of(3), 28);
    bed.send("a", "d2", Frame::of(3), 12);
    let seen = bed.send("b", "d2", Frame::of(3), 12);
    assert_eq!((seen.group_highest("a", 3), seen.group_highest("b", 3)), ((26, 14), (12, 0)));
    bed.release(one);
    let seen = bed.wait_sent("d1", 3, 28);
    let highest = |seen: &crate::seen::Seen| {
        let queues = (seen.queue("d1", 3).1, seen.queue("d2", 3).1);
        (seen.group_highest("a", 3), seen.group_highest("b", 3), queues, seen.headroom_pool().1)
    };
    assert_eq!(highest(&seen), ((26, 14), (12, 0), (28, 24), 14), "as it was");
    // The pool has 1388 cells. The two ports used 16 and 2 cells of it beyond their reserves of 10. Other lcores may
    // hold leases.
    let slack = bed.slack(1388);
    seen.assert_in(seen.pool("lossless").1, 18..=18 + slack, "the pool as it was");

    bed.signal("USR1");
    let cleared = ((12, 0), (12, 0), (0, 24), 0);
    let after = bed.wait("cleared watermarks", highest, |highest| *highest == cleared);
    after.assert_in(after.pool("lossless").1, 4..=4 + slack, "the pool");
    let counts = |seen: &crate::seen::Seen| (seen.received("a", 3), seen.sent("d1", 3), seen.told("a", 3).1);
    assert_eq!(counts(&after), counts(&seen), "counters go on");
    assert_eq!((after.group("a", 3), after.group("b", 3)), ((12, 0), (12, 0)), "nothing else has changed");

    // From here the watermarks rise again.
    let seen = bed.send("a", "d2", Frame::of(3), 3);
    assert_eq!(highest(&seen), ((15, 0), (12, 0), (0, 27), 0));
    bed.release(two);
    let seen = bed.wait_sent("d2", 3, 27);
    assert_eq!(highest(&seen), ((15, 0), (12, 0), (0, 27), 0), "and outlast what they measured");
    bed.signal("USR1");
    bed.wait("cleared watermarks", highest, |highest| *highest == ((0, 0), (0, 0), (0, 0), 0));
    bed.finish();
}

/// Asserts that the counted `seconds` of a pause are between `least` and `most`, within the error of the clocks.
#[track_caller]
fn assert_lasted(seconds: f64, least: Duration, most: Duration) {
    let (least, most) = (least.as_secs_f64() * (1.0 - CLOCKS), most.as_secs_f64() * (1.0 + CLOCKS));
    assert!((least..=most).contains(&seconds), "{seconds} s, and not {least} to {most}");
}

#[test]
fn paused_time_is_counted_both_ways_and_by_priority() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("out", "speed: 100M, mtu: 256")];
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let received = |seen: &crate::seen::Seen| seen.paused_seconds("out", 3).0;
    let sent = |seen: &crate::seen::Seen| seen.paused_seconds("a", 3).1;

    // A pause that expires by itself: 65535 quanta at 100M. The time of a lossy priority is counted too, though the
    // port does not obey it.
    let longest = Duration::from_nanos(65_535 * 5_120);
    bed.control("out", &[pfc(&bed.text_address("out"), &[(0, 0xffff), (4, 0xffff)])]);
    let seen = bed.wait("its end", |seen| seen.is_paused("out", 4), |&paused| !paused);
    for priority in [0, 4] {
        let late = Duration::from_secs_f64(seen.longest_gap());
        assert_lasted(seen.paused_seconds("out", priority).0, longest, longest + late);
    }

    // Both directions at once: the peer pauses `out`, and `a` therefore pauses its own peer.
    let begin = Instant::now();
    let hold = bed.hold("out", &[3]);
    let held = Instant::now();
    let filled = Instant::now();
    bed.send("a", "out", Frame::of(3), 30);
    let stopped = Instant::now();
    bed.wait("half a second of both", |seen| received(seen).min(sent(seen)), |&seconds| seconds > 0.5);
    let release = Instant::now();
    bed.release(hold);
    let seen = bed.wait("XON", |seen| seen.told("a", 3).1, |&xon| xon == 1);
    let end = Instant::now();
    assert_lasted(received(&seen), release - held, end - begin);
    assert_lasted(sent(&seen), release - stopped, end - filled);
    for (port, priority) in [("a", 4), ("out", 3), ("out", 4), ("a", 0)] {
        assert_eq!(seen.paused_seconds(port, priority).1, 0.0, "{port} has not stopped its peer's {priority}");
    }
    assert_eq!(seen.paused_seconds("a", 3).0, 0.0, "nor that one's peer it");
    let later = bed.wait_sent("out", 3, 30);
    assert_eq!((received(&later), sent(&later)), (received(&seen), sent(&seen)), "they stand still");
    bed.finish();
}
