//! Watermarks of everything that has a limit, exact in cells.

use crate::bed::{Bed, SMALL};
use crate::frame::{CELL, Frame};

#[test]
fn watermarks_are_exact_to_the_cell_and_stay_after_frames_have_left() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("b", "speed: 1G, mtu: 256"), ("out", "speed: 10M, mtu: 256")];
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[3]);
    // A frame takes whole cells: 64 bytes take one, and a cell's length plus one byte takes two.
    let (one, two, short) = (Frame::of(3), Frame::of(3).len(CELL + 1), Frame::of(3).len(64));

    let seen = bed.send("a", "out", two, 5);
    assert_eq!((seen.group_highest("a", 3), seen.pool("lossless").1), ((10, 0), 0), "the reserve is no pool's");
    let seen = bed.send("a", "out", one, 8);
    assert_eq!((seen.group_highest("a", 3), seen.pool("lossless").1), ((18, 0), 8));
    let seen = bed.send("b", "out", short, 12);
    assert_eq!((seen.group_highest("b", 3), seen.pool("lossless").1), ((12, 0), 8 + 2));
    assert_eq!(seen.queue("out", 3), (30, 30));

    // 15 of 16 shared cells are in use. Two more do not fit, so both go into the headroom.
    let seen = bed.send("a", "out", one, 7);
    assert_eq!(seen.group_highest("a", 3), (25, 0), "headroom is 0 before it is used");
    let seen = bed.send("a", "out", two, 1);
    assert_eq!((seen.group_highest("a", 3), seen.group_highest("b", 3)), ((25, 2), (12, 0)));
    let seen = bed.send("a", "out", one, 3);
    assert_eq!((seen.group_highest("a", 3), seen.pool("lossless")), ((25, 5), (17, 17)));
    assert_eq!(seen.queue("out", 3), (42, 42));

    bed.release(hold);
    let seen = bed.wait_sent("out", 3, 5 + 8 + 12 + 7 + 1 + 3);
    assert_eq!((seen.group("a", 3), seen.group("b", 3), seen.pool("lossless").0), ((0, 0), (0, 0), 0), "all has left");
    assert_eq!((seen.group_highest("a", 3), seen.group_highest("b", 3)), ((25, 5), (12, 0)));
    assert_eq!((seen.queue("out", 3), seen.pool("lossless").1), ((0, 42), 17));

    // A depth below a watermark does not move it.
    bed.send("a", "out", one, 5);
    let seen = bed.wait_sent("out", 3, 41);
    assert_eq!((seen.group_highest("a", 3), seen.queue("out", 3).1, seen.pool("lossless").1), ((25, 5), 42, 17));
    for (port, class) in [("a", 0), ("b", 0), ("out", 3), ("out", 0)] {
        assert_eq!(seen.group_highest(port, class), (0, 0), "{port} {class} had nothing");
    }
    assert_eq!((seen.pool("lossy"), seen.drops()), ((0, 0), 0));
    bed.finish();
}
