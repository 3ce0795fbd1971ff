//! Scheduling order and shares of the egress queues, and the limits of lossy queues.

use crate::bed::{Bed, ROOMY, lcores};
use crate::capture::{Capture, Trace};
use crate::frame::Frame;
use crate::quiet;
use crate::seen::Seen;

/// Returns the classes of the captured frames in order. DSCPs are class selectors here.
#[track_caller]
fn classes(trace: &Trace) -> Vec<u8> {
    let rows = trace.fields("udp", &["ip.dsfield.dscp"]);
    rows.iter().map(|row| row[0].parse::<u8>().unwrap_or_else(|error| panic!("{error}: {row:?}")) >> 3).collect()
}

/// Counts the frames of each class that left before one of `backlogs` (a class and its frames) was exhausted.
fn while_all_wait<const N: usize>(order: &[u8], backlogs: [(u8, usize); N]) -> [usize; N] {
    let mut counts = [0; N];
    for sent in order {
        if let Some(index) = backlogs.iter().position(|(class, _)| class == sent) {
            counts[index] += 1;
            if counts[index] == backlogs[index].1 {
                break;
            }
        }
    }
    counts
}

#[test]
fn backlogged_queues_share_bandwidth_by_weight() {
    for weights in [[1, 2, 4], [5, 5, 1]] {
        let class = |weight| format!("{{{ROOMY}, scheduler: {{weight: {weight}}}}}");
        let [three, four, five] = weights.map(class);
        let settings = format!("buffer: {{size: 6MiB}}\nclasses: {{3: {three}, 4: {four}, 5: {five}}}\n");
        let Some(mut bed) = Bed::start(&[("a", "speed: 1G"), ("out", "speed: 100M")], &settings) else { return };
        let hold = bed.hold("out", &[3, 4, 5]);
        for class in [3, 4, 5] {
            bed.send("a", "out", Frame::of(class).len(1000), 200);
        }
        let capture = Capture::start(bed.host("out"), "udp");
        bed.release(hold);
        for class in [3, 4, 5] {
            bed.wait_sent("out", class, 200);
        }
        let order = classes(&capture.stop());
        assert_eq!(order.len(), 600);
        let counts = while_all_wait(&order, [(3, 200), (4, 200), (5, 200)]);
        let most = *weights.iter().max().expect("weights");
        for (count, weight) in counts.iter().zip(weights) {
            // A round gives 512 bytes per unit of weight, so a queue is at most one turn ahead: three frames here.
            let wanted = 200 * weight / most;
            assert!(count.abs_diff(wanted) <= 3, "{counts:?} of {weights:?}, and not {wanted}");
        }
        assert_eq!(bed.look().drops(), 0);
        bed.finish();
    }
}

/// Without its maximum rate, the strict class would send all of its frames first.
#[test]
fn strict_queue_with_a_maximum_rate_leaves_the_rest_to_others() {
    let settings = format!(
        "buffer: {{size: 6MiB}}\nclasses: {{3: {{{ROOMY}}}, 4: {{{ROOMY}, scheduler: strict, max_rate: {{rate: 20M, \
         burst: 1kB}}}}}}\n"
    );
    let Some(mut bed) = Bed::start(&[("a", "speed: 1G"), ("out", "speed: 100M")], &settings) else { return };
    let hold = bed.hold("out", &[3, 4]);
    for class in [3, 4] {
        bed.send("a", "out", Frame::of(class).len(1000), 200);
    }
    let capture = Capture::start(bed.host("out"), "udp");
    bed.release(hold);
    for class in [3, 4] {
        bed.wait_sent("out", class, 200);
    }
    let order = classes(&capture.stop());
    let [other, strict] = while_all_wait(&order, [(3, 200), (4, 200)]);
    // A fifth of the frames, or more if polls are late, since the port makes up less of a late poll than the queue.
    assert!(other == 200 && (40..=150).contains(&strict), "{strict} strict frames beside {other}");
    // 200 frames at 20 Mbit/s take 80 ms; without its maximum rate the queue would never be held.
    let seen = bed.look();
    assert!(seen.held_seconds("out", 4) > 0.02, "held for {} s", seen.held_seconds("out", 4));
    assert_eq!(seen.drops(), 0);
    bed.finish();
}

/// Fills class 7 up to 1200 frames, which take 1.48 s of the port's time.
fn keep_busy(bed: &mut Bed) {
    let waiting = bed.look().queue("out", 7).0 / 8;
    bed.send("strict", "out", Frame::of(7).len(1514), 1200 - waiting as usize);
}

/// Class 7 is strict and always has frames waiting, so no frame of the lossy classes leaves.
#[test]
fn lossy_queues_drop_at_exact_threshold_without_pfc_and_share_by_weight() {
    quiet::attempt(quiet::ALLOWED, lossy_queues_behind_a_strict_one);
}

fn lossy_queues_behind_a_strict_one() {
    let ports = [("a", "speed: 1G"), ("b", "speed: 1G"), ("strict", "speed: 1G"), ("out", "speed: 10M")];
    let settings = format!(
        "
buffer: {{size: 6MiB, lossy: 41600B}}
classes:
  1: {{queue_alpha: 1, scheduler: {{weight: 2}}}}
  2: {{queue_alpha: 1/2, scheduler: {{weight: 1}}}}
  5: {{limit: 2080B, queue_alpha: 8}}
  7: {{{ROOMY}, scheduler: strict}}
"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let capture = Capture::start(bed.host("out"), "udp");
    let send = |bed: &mut Bed, from, class, frames| {
        keep_busy(bed);
        bed.send(from, "out", Frame::of(class), frames)
    };

    // The limit of a queue is alpha times the free cells of 200. For class 1, d <= 200 - d, so d is 100. For class 2,
    // 2d <= 100 - d, so d is 33. Class 5 has a limit of 10 cells at each ingress port; its queue would accept more.
    for (class, frames) in [(1, 100), (2, 33), (5, 10)] {
        send(&mut bed, "a", class, frames);
    }
    let seen = send(&mut bed, "b", 5, 10);
    // With several lcores, cells that others have leased from the pool are not free. So limits may apply early, but
    // never late.
    let slack = bed.slack(200);
    let waiting = |seen: &Seen| [1, 2, 5].map(|class| seen.queue("out", class).0);
    let full = waiting(&seen);
    for (index, (class, exact)) in [(1, 100), (2, 33), (5, 20)].into_iter().enumerate() {
        seen.assert_in(full[index], exact - slack.min(exact)..=exact, &format!("class {class} is full"));
    }
    let held = full.iter().sum();
    assert_eq!((seen.drops(), seen.pool("lossy").0), (153 - held, held));
    seen.assert_in(seen.pool("lossy").1, held..=153 + slack, "most of the pool that was in use");

    // At full rate: the cells of a frame that a queue refuses are free before the next frame is judged.
    for (class, frames) in [(1, 100), (2, 67), (5, 5)] {
        send(&mut bed, "a", class, frames);
    }
    let seen = send(&mut bed, "b", 5, 5);
    if seen.queue("out", 7).0 == 0 {
        quiet::too_busy("nothing is in the way of lossy frames any more".to_owned());
    }
    assert_eq!((waiting(&seen), seen.pool("lossy").0), (full, held));
    let lost = [(1, 200), (2, 100), (5, 30)].map(|(class, sent)| (sent, seen.dropped_anywhere(class)));
    assert_eq!(lost.map(|(sent, lost)| sent - lost), full, "each is lost or waits");
    if lcores() == 1 {
        assert_eq!(seen.dropped("out", 1, "queue_threshold"), 100);
        assert_eq!(seen.dropped("out", 2, "queue_threshold"), 67);
        assert_eq!((seen.dropped("a", 5, "threshold"), seen.dropped("b", 5, "threshold")), (5, 5));
        // Frames that never waited raise no watermark.
        assert_eq!(seen.pool("lossy").1, 153);
        let highest = [("a", 1), ("a", 2), ("a", 5), ("b", 5)].map(|(port, class)| seen.group_highest(port, class).0);
        assert_eq!(highest, [100, 33, 10, 10]);
        assert_eq!([1, 2, 5].map(|class| seen.queue("out", class).1), [100, 33, 20]);
    }
    // With several lcores, frames on their way to the queue count too, up to the whole pool.
    seen.assert_in(seen.pool("lossy").1, held..=200, "most of the pool that was in use");

    check_order(bed, capture, full);
}

/// Lets the waiting frames leave, and checks their order: `full` lossy ones of the classes 1, 2 and 5 behind the strict
/// class, shared by weight.
fn check_order(bed: Bed, capture: Capture, full: [u64; 3]) {
    let (strict, held) = (bed.gave("strict"), full.iter().sum::<u64>());
    for (class, frames) in [(7, strict), (1, full[0]), (2, full[1]), (5, full[2])] {
        bed.wait_sent("out", class, frames);
    }
    let seen = bed.look();
    assert_eq!((seen.drops(), seen.pfc_frames()), (330 - held, 0), "lossy classes never cause PFC");
    let order = classes(&capture.stop());
    assert_eq!(order.len() as u64, strict + held);
    assert!(!order[order.len() - held as usize..].contains(&7), "strict goes first: {order:?}");
    // Weight 2 gives five frames a turn.
    let [one, two] = [full[0] as usize, full[1] as usize];
    let counts = while_all_wait(&order, [(1, one), (2, two)]);
    let fair = counts[0].abs_diff(2 * counts[1]) <= 6 && (counts[0] == one || counts[1] == two);
    assert!(fair, "{counts:?} of {full:?}, weights 2 and 1");
    bed.finish();
}
