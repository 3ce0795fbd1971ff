//! The exact cell at which a group goes XOFF and at which it drops, without effect on other groups.

use crate::bed::{Bed, SMALL};
use crate::frame::Frame;

#[test]
fn xoff_at_reserve_plus_limit_and_loss_only_beyond_headroom_of_that_group() {
    let ports = ["a", "b", "other"].map(|name| (name, "speed: 1G, mtu: 256"));
    let ports = [&ports[..], &[("out", "speed: 10M, mtu: 256")]].concat();
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[3]);

    // 10 cells of reserve and 16 shared cells.
    let seen = bed.send("a", "out", Frame::of(3), 26);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((26, 0), false), "just below XOFF");
    assert_eq!((seen.pfc_frames(), seen.drops()), (0, 0), "no PFC, no drop");

    let seen = bed.send("a", "out", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((26, 1), true), "a frame more");
    assert!(seen.told("a", 3).0 > 0);
    assert_eq!(seen.drops(), 0);

    let seen = bed.send("a", "out", Frame::of(3), 23);
    assert_eq!((seen.group("a", 3), seen.drops()), ((26, 24), 0), "to the end of headroom");
    assert_eq!(bed.wait_refreshed("a", 3, 3).drops(), 0, "PFC goes on, and nothing is lost");

    let seen = bed.send("a", "out", Frame::of(3), 1);
    assert_eq!((seen.dropped("a", 3, "headroom_full"), seen.drops()), (1, 1), "one more is lost, at the ingress");
    let seen = bed.send("a", "out", Frame::of(3), 4);
    assert_eq!((seen.dropped("a", 3, "headroom_full"), seen.drops()), (5, 5), "and so is each one after it");
    assert_eq!((seen.group("a", 3), seen.queue("out", 3).0), ((26, 24), 50));

    // Another port has the full limit of that class. Frames of other classes and destinations pass.
    let seen = bed.send("b", "out", Frame::of(3), 26);
    assert_eq!((seen.group("b", 3), seen.is_xoff("b", 3)), ((26, 0), false));
    let seen = bed.send("b", "out", Frame::of(3), 24);
    assert_eq!((seen.group("b", 3), seen.is_xoff("b", 3)), ((26, 24), true), "also beside a group that loses");
    assert_eq!((seen.group("a", 3), seen.queue("out", 3).0), ((26, 24), 100));
    for (from, to, class) in [("a", "out", 4), ("a", "out", 0), ("a", "other", 4), ("other", "b", 3), ("b", "a", 0)] {
        let before = bed.look().sent(to, class);
        bed.send(from, to, Frame::of(class), 20);
        bed.wait_sent(to, class, before + 20);
    }
    let seen = bed.look();
    assert_eq!(seen.drops(), 5, "no other group or port, and never at an egress");
    for (port, class) in [("a", 4), ("b", 4), ("other", 3), ("other", 4), ("out", 3), ("out", 4)] {
        assert_eq!(seen.told(port, class), (0, 0), "{port} {class}");
    }

    bed.release(hold);
    let seen = bed.wait_sent("out", 3, 100);
    assert_eq!((seen.told("a", 3).1, seen.told("b", 3).1, seen.drops()), (1, 1, 5), "one XON each");
    bed.finish();
}

/// T = alpha * (B - Q), with alpha = 1/2, a pool of 100 cells, and 2 cells of reserve beside it.
#[test]
fn xoff_threshold_is_alpha_times_the_free_pool() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("b", "speed: 1G, mtu: 256"), ("out", "speed: 10M, mtu: 256")];
    let settings = "
buffer: {size: 208kB, lossy: 20800B, shared: 20800B}
classes: {3: {lossless: true, alpha: 1/2, reserve: 416B, xon_offset: 0B, headroom: 1040B}}
";
    let Some(mut bed) = Bed::start(&ports, settings) else { return };

    // One group alone: it accepts a frame at share s if s + 1 <= (100 - s) / 2. The last such s is 32.
    let hold = bed.hold("out", &[3]);
    let seen = bed.send("a", "out", Frame::of(3), 2 + 33);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.pool("lossless").0), ((35, 0), false, 33));
    let seen = bed.send("a", "out", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3), seen.pool("lossless").0), ((35, 1), true, 33));

    // Beside it, `b` receives as many cells as (67 - s) / 2 permits: 22.
    let seen = bed.send("b", "out", Frame::of(3), 2 + 22);
    assert_eq!((seen.group("b", 3), seen.is_xoff("b", 3), seen.pool("lossless").0), ((24, 0), false, 55));
    let seen = bed.send("b", "out", Frame::of(3), 1);
    assert_eq!((seen.group("b", 3), seen.is_xoff("b", 3), seen.pool("lossless").0), ((24, 1), true, 55));
    bed.release(hold);
    bed.wait_sent("out", 3, 36 + 25);
    bed.wait("XON", |seen| (seen.is_xoff("a", 3), seen.is_xoff("b", 3)), |&xoff| xoff == (false, false));

    // Choudhury & Hahne: two saturated groups get alpha * B / (1 + 2 * alpha) = 25 cells each. As many cells as both
    // together hold stay free.
    let hold = bed.hold("out", &[3]);
    bed.send("a", "out", Frame::of(3), 2 + 25);
    let seen = bed.send("b", "out", Frame::of(3), 2 + 25);
    assert_eq!((seen.group("a", 3), seen.group("b", 3), seen.pool("lossless").0), ((27, 0), (27, 0), 50));
    assert_eq!((seen.is_xoff("a", 3), seen.is_xoff("b", 3)), (false, false));
    bed.send("b", "out", Frame::of(3), 1);
    let seen = bed.send("a", "out", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), seen.group("b", 3), seen.pool("lossless").0), ((27, 1), (27, 1), 50));
    assert_eq!((seen.is_xoff("a", 3), seen.is_xoff("b", 3), seen.drops()), (true, true, 0));
    bed.release(hold);
    bed.wait_sent("out", 3, 36 + 25 + 56);
    bed.finish();
}
