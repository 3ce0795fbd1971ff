//! Reserves remain available when other classes have taken all shared memory.
//!
//! `out` obeys pauses of all priorities, so a test can pause its lossy queues too.

use crate::bed::{Bed, SMALL};
use crate::frame::Frame;

const OUT: (&str, &str) = ("out", "speed: 100M, mtu: 256, pfc: asymmetric");

/// The lossy pool has 100 cells, of which 5 are reserved for class 2 at each of four ports.
#[test]
fn queue_reserve_is_available_when_other_classes_fill_the_pool() {
    let ports = ["a", "b", "other"].map(|name| (name, "speed: 1G, mtu: 256"));
    let ports = [&ports[..], &[OUT]].concat();
    let settings = format!(
        "
buffer: {{size: 416kB, lossy: 20800B}}
classes:
  1: {{queue_alpha: 8}}
  2: {{queue_alpha: 1/128, queue_reserve: 1040B}}
  3: {SMALL}
"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[1, 2]);

    // The limit of d cells is d <= 8 * (100 - 20 - d), so d is 71.
    let slack = bed.slack(100);
    let seen = bed.send("a", "out", Frame::of(1), 71);
    seen.assert_in(seen.queue("out", 1).0, 71 - slack..=71, "class 1");
    let full = seen.queue("out", 1).0;
    let seen = bed.send("a", "out", Frame::of(1), 9);
    assert_eq!(seen.queue("out", 1).0, full, "class 1 is at its end");
    assert_eq!(seen.dropped_anywhere(1), 80 - full);

    // Class 2 gets 5 cells, from any port, and not one more.
    bed.send("a", "out", Frame::of(2), 3);
    let seen = bed.send("b", "out", Frame::of(2), 2);
    assert_eq!((seen.queue("out", 2).0, seen.dropped_anywhere(2)), (5, 0));
    let seen = bed.send("a", "out", Frame::of(2), 4);
    assert_eq!((seen.queue("out", 2).0, seen.dropped("out", 2, "queue_threshold")), (5, 4));
    let seen = bed.send("b", "out", Frame::of(1), 3);
    assert_eq!((seen.queue("out", 1).0, seen.dropped_anywhere(1)), (full, 83 - full), "nor is any of it class 1's");
    assert_eq!(seen.pool("lossy").0, full + 5);

    bed.release(hold);
    bed.wait_sent("out", 1, full);
    bed.wait_sent("out", 2, 5);
    // The reserve is available again, because its cells were released.
    let hold = bed.hold("out", &[2]);
    let seen = bed.send("b", "out", Frame::of(2), 6);
    assert_eq!((seen.queue("out", 2).0, seen.dropped("out", 2, "queue_threshold")), (5, 5));
    bed.release(hold);
    bed.wait_sent("out", 2, 10);
    assert_eq!(bed.look().pfc_frames(), 0);
    bed.finish();
}

/// Port `a` has 5 cells of reserve for each kind. The lossless pool has 12 cells and the lossy one 20; `b` takes all of
/// both.
#[test]
fn port_reserve_is_available_to_its_classes_when_pools_are_exhausted() {
    let ports = [("a", "speed: 1G, mtu: 256, reserve: {lossless: 1040B, lossy: 1040B}"), ("b", "speed: 1G, mtu: 256")];
    let ports = [&ports[..], &[OUT]].concat();
    let lossless = "{lossless: true, reserve: 416B, limit: 2080B, xon_offset: 0B, xon_floor: 208B, headroom: 1040B}";
    let lossy = "{limit: 4160B, queue_limit: 8320B}";
    let settings = format!(
        "
buffer: {{size: 208kB, lossy: 4160B, shared: 2496B}}
classes: {{3: {lossless}, 4: {lossless}, 0: {lossy}, 1: {lossy}}}
"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[0, 1, 3, 4]);

    // Port `b` takes 10 and 2 cells of the lossless pool beyond its own reserves of 2, then all of the lossy pool.
    bed.send("b", "out", Frame::of(3), 2 + 10);
    bed.send("b", "out", Frame::of(4), 2 + 2);
    let seen = bed.send("b", "out", Frame::of(0), 20);
    assert_eq!((seen.pool("lossless").0, seen.pool("lossy").0), (12, 20), "both are empty");
    assert_eq!((seen.pfc_frames(), seen.drops()), (0, 0));
    let seen = bed.send("b", "out", Frame::of(1), 2);
    assert_eq!((seen.dropped("b", 1, "pool_empty"), seen.drops()), (2, 2), "there is nothing left for b");
    let seen = bed.send("b", "out", Frame::of(4), 1);
    assert_eq!((seen.group("b", 4), seen.is_xoff("b", 4)), ((4, 1), true));

    // Port `a` has its groups' reserves of 2 cells each, and 5 cells for both groups together.
    bed.send("a", "out", Frame::of(3), 2 + 3);
    let seen = bed.send("a", "out", Frame::of(4), 2 + 2);
    assert_eq!((seen.group("a", 3), seen.group("a", 4), seen.port_reserve("a", "lossless")), ((5, 0), (4, 0), 5));
    assert_eq!((seen.told("a", 3), seen.told("a", 4), seen.drops()), ((0, 0), (0, 0), 2));
    let seen = bed.send("a", "out", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.is_xoff("a", 4)), ((5, 1), true, false));
    let seen = bed.send("a", "out", Frame::of(4), 1);
    assert_eq!((seen.group("a", 4), seen.is_xoff("a", 4)), ((4, 1), true), "the reserve was for both");

    bed.send("a", "out", Frame::of(0), 3);
    let seen = bed.send("a", "out", Frame::of(1), 2);
    assert_eq!((seen.port_reserve("a", "lossy"), seen.drops()), (5, 2));
    assert_eq!((seen.pool("lossless").0, seen.pool("lossy").0), (12, 20), "it is no pool's");
    let seen = bed.send("a", "out", Frame::of(1), 3);
    assert_eq!((seen.dropped("a", 1, "pool_empty"), seen.drops()), (3, 5));
    let waiting = [0, 1, 3, 4].map(|class| seen.queue("out", class).0);
    assert_eq!(waiting, [23, 2, 12 + 5 + 1, 5 + 4 + 1]);

    bed.release(hold);
    for (class, frames) in [(0, 23), (1, 2), (3, 18), (4, 10)] {
        bed.wait_sent("out", class, frames);
    }
    let reserves = |seen: &crate::seen::Seen| ["lossless", "lossy"].map(|pool| seen.port_reserve("a", pool));
    bed.wait("empty reserves", reserves, |&used| used == [0, 0]);
    let seen = bed.look();
    assert_eq!([("a", 3), ("a", 4), ("b", 4)].map(|(port, class)| seen.told(port, class).1), [1; 3], "one XON each");
    assert_eq!(seen.drops(), 5);
    bed.finish();
}
