//! The end of a pause: when XON is sent, and that no further PFC frame follows.

use std::thread::sleep;
use std::time::Duration;

use crate::bed::{Bed, SMALL};
use crate::frame::Frame;

/// Six times the life of an XOFF at 1G. A refresh or a flapping XOFF would appear several times within it.
const LONG: Duration = Duration::from_millis(200);

#[test]
fn xon_is_sent_once_at_its_offset_below_the_limit() {
    let slow = ["d1", "d2", "d3"].map(|name| (name, "speed: 10M, mtu: 256"));
    let ports = [&[("a", "speed: 1G, mtu: 256")], &slow[..]].concat();
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let [one, two, three] = ["d1", "d2", "d3"].map(|port| bed.hold(port, &[3]));

    // 30 cells are 10 of reserve, 16 shared and 4 of headroom. XON follows when at most 10 + 16 - 8 = 18 are left.
    bed.send("a", "d1", Frame::of(3), 11);
    bed.send("a", "d2", Frame::of(3), 1);
    let seen = bed.send("a", "d3", Frame::of(3), 18);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((26, 4), true));

    bed.release(one);
    bed.wait_sent("d1", 3, 11);
    let seen = bed.wait_refreshed("a", 3, 3);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.told("a", 3).1), ((19, 0), true, 0), "19 are too many");

    bed.release(two);
    bed.wait_sent("d2", 3, 1);
    let seen = bed.wait("XON", |seen| seen.told("a", 3).1, |&xon| xon > 0);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.told("a", 3).1), ((18, 0), false, 1), "18 are not");
    sleep(LONG);
    assert_eq!(bed.look().told("a", 3), seen.told("a", 3), "after XON nothing is said any more");

    // Hysteresis: the group was paused at 19 cells before, but is not now. XOFF returns only with the 27th cell.
    let again = bed.send("a", "d3", Frame::of(3), 1);
    assert_eq!((again.group("a", 3), again.is_xoff("a", 3)), ((19, 0), false));
    let again = bed.send("a", "d3", Frame::of(3), 7);
    assert_eq!((again.group("a", 3), again.told("a", 3)), ((26, 0), seen.told("a", 3)));
    let again = bed.send("a", "d3", Frame::of(3), 1);
    assert_eq!((again.group("a", 3), again.is_xoff("a", 3)), ((26, 1), true));

    bed.release(three);
    bed.wait_sent("d3", 3, 27);
    let seen = bed.wait("XON", |seen| seen.told("a", 3).1, |&xon| xon > 1);
    sleep(LONG);
    let last = bed.look();
    assert_eq!((last.told("a", 3), last.told("a", 3).1, last.drops()), (seen.told("a", 3), 2, 0));
    bed.finish();
}

/// The threshold depends on other groups: alpha is 1, the pool has 30 cells, the XON offset is 4, its floor 1.
#[test]
fn xon_is_sent_when_other_groups_free_pool_cells() {
    let slow = ["d1", "d2", "d3"].map(|name| (name, "speed: 10M, mtu: 256"));
    let ports = [&[("a", "speed: 1G, mtu: 256"), ("b", "speed: 1G, mtu: 256")], &slow[..]].concat();
    let settings = "
buffer: {size: 208kB, lossy: 20800B, shared: 6240B}
classes: {3: {lossless: true, alpha: 1, reserve: 0B, xon_offset: 832B, xon_floor: 208B, headroom: 1040B}}
";
    let Some(mut bed) = Bed::start(&ports, settings) else { return };
    let [one, two, three] = ["d1", "d2", "d3"].map(|port| bed.hold(port, &[3]));

    // 10 and 10 of 30 cells are in use, so T is 10. The next frame goes into the headroom.
    bed.send("a", "d1", Frame::of(3), 10);
    let seen = bed.send("b", "d2", Frame::of(3), 10);
    assert_eq!((seen.group("a", 3), seen.group("b", 3), seen.pfc_frames()), ((10, 0), (10, 0), 0));
    let seen = bed.send("a", "d3", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((10, 1), true));

    // Without that frame the share is 10, which exceeds T - 4 = 6.
    bed.release(three);
    bed.wait_sent("d3", 3, 1);
    let seen = bed.wait_refreshed("a", 3, 3);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((10, 0), true));

    // Without the 10 cells of `b`, T is 20. The share of 10 is at most T - 4 = 16.
    bed.release(two);
    bed.wait_sent("d2", 3, 10);
    let seen = bed.wait("XON", |seen| seen.told("a", 3).1, |&xon| xon > 0);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.told("a", 3).1), ((10, 0), false, 1));
    assert_eq!((seen.sent("d1", 3), seen.drops()), (0, 0));
    bed.release(one);
    bed.wait_sent("d1", 3, 10);
    bed.finish();
}
