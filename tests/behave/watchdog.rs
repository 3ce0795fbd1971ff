//! Peers whose pauses never end: detection by the watchdog, its action, and the end of the storm.
//!
//! At 100M a pause lasts 335 ms at most. It is refreshed 20 times a second, so it does not expire on a busy machine.
//! For that reason times are longer than in SONiC's suite (200 ms).

use std::time::Duration;

use crate::bed::{Bed, ROOMY};
use crate::frame::Frame;
use crate::quiet;
use crate::seen::Seen;

const DETECTION: Duration = Duration::from_secs(2);
const RESTORATION: Duration = Duration::from_millis(400);
/// Interval of the watchdog: a twentieth of the detection time, at most 100 ms.
const INTERVAL: Duration = Duration::from_millis(100);
/// Intervals from the first waiting frame to the detection of the storm. Each may be late by a poll gap.
const LOOKS: u32 = 21;

/// Seconds that are certainly a pause and certainly no storm.
const SHORT: f64 = 0.2;

/// Starts a switch whose port `out` has a watchdog with this action, and the further settings `out`.
#[track_caller]
fn start(action: &str, out: &str) -> Option<Bed> {
    let watchdog = format!("watchdog: {{detection: 2s, restoration: 400ms, action: {action}}}");
    let out = format!("speed: 100M, {watchdog}{out}");
    let settings = format!("buffer: {{size: 6MiB}}\nclasses: {{3: {{{ROOMY}}}, 4: {{{ROOMY}}}}}\n");
    Bed::start(&[("a", "speed: 1G"), ("b", "speed: 1G"), ("out", &out)], &settings)
}

/// Waits until the watchdog finds a storm in `queue`. Asserts that it took between the least and the most time that the
/// settings permit. The frames that wait for the queue arrived between `begin` and `end`.
#[track_caller]
fn wait_storm(bed: &Bed, queue: u8, storms: u64, begin: std::time::Instant, end: std::time::Instant) {
    let (not_yet, found) = bed.time("storm", |seen| seen.storms("out", queue).0, |&found| found == storms);
    let seen = bed.look();
    let late = Duration::from_secs_f64(seen.longest_gap()) * LOOKS;
    assert!(found - begin >= DETECTION, "found after {:?}", found - begin);
    let most = DETECTION + INTERVAL + late;
    assert!(not_yet <= end + most, "not found after {:?}, and {most:?} is the most", not_yet - end);
}

#[test]
fn watchdog_drop_discards_a_storming_queue_until_the_storm_ends() {
    quiet::attempt(quiet::ALLOWED, storm_from_begin_to_end);
}

fn storm_from_begin_to_end() {
    let Some(mut bed) = start("drop", "") else { return };
    let by_watchdog = |seen: &Seen| (seen.dropped("out", 3, "watchdog"), seen.drops());

    // A pause shorter than the detection time has no consequence.
    let hold = bed.hold("out", &[3]);
    bed.send("a", "out", Frame::of(3), 20);
    bed.wait("pause", |seen| seen.paused_seconds("out", 3).0, |&seconds| seconds > SHORT);
    bed.release(hold);
    let seen = bed.wait_sent("out", 3, 20);
    let paused = seen.paused_seconds("out", 3).0;
    if paused >= DETECTION.as_secs_f64() {
        quiet::too_busy(format!("paused for {paused} s, as long as a storm"));
    }
    assert_eq!((seen.storms("out", 3), seen.drops(), seen.ignored("out", 3)), ((0, 0), 0, 0));

    // A pause without waiting frames is no storm, however long it lasts.
    let hold = bed.hold("out", &[3]);
    let so_far = bed.look().paused_seconds("out", 3).0;
    let longer = so_far + (DETECTION + 2 * INTERVAL).as_secs_f64();
    let seen = bed.wait("pause", |seen| seen.paused_seconds("out", 3).0, |&seconds| seconds > longer);
    assert_eq!(seen.storms("out", 3), (0, 0), "nothing waits");

    let begin = std::time::Instant::now();
    bed.send("a", "out", Frame::of(3), 20);
    let end = std::time::Instant::now();
    wait_storm(&bed, 3, 1, begin, end);
    let seen = bed.wait("empty queue", |seen| seen.queue("out", 3).0, |&cells| cells == 0);
    assert_eq!((by_watchdog(&seen), seen.sent("out", 3)), ((20, 20), 20), "what waited is discarded, not sent");
    assert_eq!((seen.group("a", 3), seen.count("watchdog_storming", &[])), ((0, 0), 1));

    // The watchdog discards frames for the queue, and frames of that priority from the peer. Other queues and ports are
    // not affected.
    bed.send("b", "out", Frame::of(3), 10);
    let seen = bed.wait("drops", by_watchdog, |&(drops, _)| drops >= 30);
    assert_eq!(by_watchdog(&seen), (30, 30), "later egress frames");
    bed.send("out", "a", Frame::of(3), 5);
    let seen = bed.wait("drops", by_watchdog, |&(drops, _)| drops >= 35);
    assert_eq!((by_watchdog(&seen), seen.sent("a", 3)), ((35, 35), 0), "later ingress frames");
    for (from, to, class) in [("a", "out", 4), ("b", "out", 0), ("out", "b", 4), ("a", "b", 3)] {
        let before = bed.look().sent(to, class);
        bed.send(from, to, Frame::of(class), 20);
        bed.wait_sent(to, class, before + 20);
    }
    let ignored = bed.look().ignored("out", 3);
    let seen = bed.wait("ignored PFC", |seen| seen.ignored("out", 3), |&frames| frames >= ignored + 3);
    assert_eq!((seen.storms("out", 3), seen.ignored("out", 4), seen.drops()), ((1, 0), 0, 35));

    // The storm ends once the peer has sent no pause for the restoration time, and no sooner.
    let quiet = std::time::Instant::now();
    bed.release(hold);
    let (_, restored) = bed.time("restoration", |seen| seen.storms("out", 3), |&storms| storms == (1, 1));
    assert!(restored - quiet >= RESTORATION, "restored after {:?}", restored - quiet);
    let sent = bed.look().sent("out", 3);
    bed.send("a", "out", Frame::of(3), 50);
    bed.send("out", "a", Frame::of(3), 50);
    bed.wait_sent("a", 3, 50);
    let seen = bed.wait_sent("out", 3, sent + 50);
    assert_eq!((seen.drops(), seen.storms("out", 3), seen.count("watchdog_storming", &[])), (35, (1, 1), 0));

    // After the storm a pause is obeyed again.
    let hold = bed.hold("out", &[3]);
    let seen = bed.send("a", "out", Frame::of(3), 20);
    assert_eq!((seen.queue("out", 3).0, seen.storms("out", 3)), (20, (1, 1)));
    bed.release(hold);
    let seen = bed.wait_sent("out", 3, sent + 70);
    assert_eq!((seen.drops(), seen.pfc_frames()), (35, 0));
    bed.finish();
}

#[test]
fn with_forward_a_storm_is_sent_through_and_with_alert_it_is_only_counted() {
    let Some(mut bed) = start("forward", "") else { return };
    let hold = bed.hold("out", &[3]);
    let seen = bed.send("a", "out", Frame::of(3), 20);
    assert_eq!(seen.queue("out", 3).0, 20);
    bed.wait("storm", |seen| seen.storms("out", 3), |&storms| storms == (1, 0));
    let seen = bed.wait_sent("out", 3, 20);
    assert!(seen.is_paused("out", 3), "its peer says XOFF still");
    bed.send("a", "out", Frame::of(3), 30);
    bed.wait_sent("out", 3, 50);
    bed.send("out", "a", Frame::of(3), 10);
    bed.wait_sent("a", 3, 10);
    let ignored = bed.look().ignored("out", 3);
    bed.wait("ignored PFC", |seen| seen.ignored("out", 3), |&frames| frames > ignored);
    bed.release(hold);
    bed.wait("restoration", |seen| seen.storms("out", 3), |&storms| storms == (1, 1));
    let hold = bed.hold("out", &[3]);
    let seen = bed.send("a", "out", Frame::of(3), 5);
    assert_eq!((seen.queue("out", 3).0, seen.drops()), (5, 0), "obeyed again");
    bed.release(hold);
    bed.wait_sent("out", 3, 55);
    bed.finish();

    let Some(mut bed) = start("alert", "") else { return };
    let hold = bed.hold("out", &[3]);
    bed.send("a", "out", Frame::of(3), 20);
    bed.wait("storm", |seen| seen.storms("out", 3), |&storms| storms == (1, 0));
    bed.send("a", "out", Frame::of(3), 10);
    bed.send("out", "a", Frame::of(3), 10);
    let seen = bed.wait_sent("a", 3, 10);
    assert_eq!((seen.queue("out", 3).0, seen.sent("out", 3)), (30, 0), "all wait");
    bed.release(hold);
    bed.wait_sent("out", 3, 30);
    let seen = bed.wait("restoration", |seen| seen.storms("out", 3), |&storms| storms == (1, 1));
    assert_eq!((seen.drops(), seen.ignored("out", 3)), (0, 0));
    bed.finish();
}

#[test]
fn storms_of_all_priorities_at_once_are_detected_once_each() {
    let Some(mut bed) = start("drop", ", pfc: asymmetric") else { return };
    let all: Vec<u8> = (0..8).collect();
    let of_all = |bed: &Bed| -> Vec<_> {
        let frame = |class| Frame::of(class).bytes(bed.address("a"), bed.address("out"));
        (0..10).flat_map(|_| (0..8).map(frame)).collect()
    };
    let storms = |seen: &Seen| (0..8).map(|queue| seen.storms("out", queue)).collect::<Vec<_>>();
    let hold = bed.hold("out", &all);
    let data = of_all(&bed);
    let seen = bed.send_bytes("a", &data);
    assert_eq!((seen.count("port_sent_frames_total", &[]), seen.drops()), (0, 0));
    bed.wait("storms", storms, |storms| *storms == [(1, 0); 8]);
    bed.wait("drops", |seen| seen.dropped_for("watchdog"), |&drops| drops == 80);

    // Frames wait for all queues, and PFC lasts for twice the restoration time and an interval. Each queue still has
    // one storm.
    let paused = bed.look().paused_seconds("out", 7).0;
    let longer = paused + (2 * RESTORATION + INTERVAL).as_secs_f64();
    bed.send_bytes("a", &data);
    let seen = bed.wait("pause", |seen| seen.paused_seconds("out", 7).0, |&seconds| seconds > longer);
    assert_eq!(storms(&seen), [(1, 0); 8]);
    assert_eq!((seen.dropped_for("watchdog"), seen.count("port_sent_frames_total", &[])), (160, 0));

    bed.release(hold);
    bed.wait("restoration", storms, |storms| *storms == [(1, 1); 8]);
    bed.send_bytes("a", &data);
    for class in 0..8 {
        bed.wait_sent("out", class, 10);
    }
    let seen = bed.look();
    assert_eq!((storms(&seen), seen.drops()), ([(1, 1); 8].to_vec(), 160));
    bed.finish();
}
