//! The headroom of lossless groups: a pool that all groups share, or an insurance of each port.

use crate::bed::{Bed, Hold, SMALL};
use crate::frame::Frame;

/// Four groups have 24 cells of headroom each. The headroom pool has 70.
#[test]
fn shared_headroom_pool_drops_when_exhausted_and_watermark_is_the_sum() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("b", "speed: 1G, mtu: 256")];
    let slow = ["d1", "d2"].map(|name| (name, "speed: 10M, mtu: 256"));
    let settings = format!(
        "buffer: {{size: 416kB, headroom: {{policy: shared-pool, size: 14560B}}}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\n"
    );
    let Some(mut bed) = Bed::start(&[ports, slow].concat(), &settings) else { return };
    let [one, two] = ["d1", "d2"].map(|port| bed.hold(port, &[3, 4]));

    // The first 26 cells of each group are reserve and shared cells; none of them is headroom.
    for (from, to) in [("a", "d1"), ("b", "d2")] {
        for class in [3, 4] {
            let seen = bed.send(from, to, Frame::of(class), 26);
            assert_eq!((seen.headroom_pool(), seen.pfc_frames()), ((0, 0), 0), "headroom is 0 before it is used");
        }
    }
    // `used` is the cells of the pool in use after each step. A group may have 24 cells, the pool has 70.
    for (from, to, class, cells, used) in
        [("a", "d1", 3, 24, 24), ("a", "d1", 4, 24, 48), ("b", "d2", 3, 20, 68), ("b", "d2", 4, 2, 70)]
    {
        let seen = bed.send(from, to, Frame::of(class), cells);
        assert_eq!(seen.group(from, class), (26, cells as u64), "{from} {class}");
        assert_eq!((seen.headroom_pool(), seen.drops()), ((used, used), 0), "{from} {class}");
        assert!(seen.is_xoff(from, class), "{from} {class}");
    }
    // A group at its own limit drops with `headroom_full`. A group below its limit drops when the pool is empty.
    for (class, reason) in [(3, "headroom_full"), (4, "headroom_full")] {
        let seen = bed.send("a", "d1", Frame::of(class), 1);
        assert_eq!(seen.dropped("a", class, reason), 1);
    }
    for (class, frames) in [(3, 1), (4, 5)] {
        let seen = bed.send("b", "d2", Frame::of(class), frames);
        assert_eq!(seen.dropped("b", class, "headroom_pool_empty"), frames as u64);
    }
    let seen = bed.look();
    assert_eq!((seen.headroom_pool(), seen.drops()), ((70, 70), 2 + 6));
    assert_eq!((seen.group("b", 3), seen.group("b", 4)), ((26, 20), (26, 2)));

    // Cells that other groups release are available again: class 4 of `b` reaches its own limit.
    bed.release(one);
    for class in [3, 4] {
        bed.wait_sent("d1", class, 50);
        let seen = bed.wait("XON", |seen| seen.told("a", class).1, |&xon| xon > 0);
        assert_eq!((seen.is_xoff("a", class), seen.told("a", class).1), (false, 1));
    }
    assert_eq!(bed.look().headroom_pool(), (22, 70), "the watermark is the sum, and stays");
    let seen = bed.send("b", "d2", Frame::of(4), 22);
    assert_eq!((seen.group("b", 4), seen.headroom_pool(), seen.drops()), ((26, 24), (44, 70), 8));
    let seen = bed.send("b", "d2", Frame::of(4), 1);
    assert_eq!((seen.dropped("b", 4, "headroom_full"), seen.drops()), (1, 9));

    bed.release(two);
    bed.wait_sent("d2", 3, 46);
    bed.wait_sent("d2", 4, 50);
    let of_b = |seen: &crate::seen::Seen| [3, 4].map(|class| (seen.is_xoff("b", class), seen.told("b", class).1));
    bed.wait("XON", of_b, |&told| told == [(false, 1); 2]);
    assert_eq!((bed.look().headroom_pool(), bed.look().drops()), ((0, 70), 9));
    bed.finish();
}

/// Alpha is 1/2 for both lossless classes of each port, the pool has 120 cells, eta is 10. Each group has 2 cells of
/// reserve beside the pool.
#[test]
fn dynamic_headroom_pauses_group_one_eta_early_then_the_whole_port() {
    let fast = ["a", "b"].map(|name| (name, "speed: 1G, mtu: 256"));
    let slow = ["d1", "d2", "d3", "d4", "d5"].map(|name| (name, "speed: 10M, mtu: 256"));
    let ports = [&fast[..], &slow[..]].concat();
    let class = "{lossless: true, alpha: 1/2, reserve: 416B, xon_offset: 416B, xon_floor: 416B, headroom: 2080B}";
    let settings = format!(
        "buffer: {{size: 208kB, lossy: 20800B, shared: 24960B, headroom: dynamic}}\nclasses: {{3: {class}, 4: {class}}}\n"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let [one, two, three, four, five] = ["d1", "d2", "d3", "d4", "d5"].map(|port| bed.hold(port, &[3]));
    let off = |seen: &crate::seen::Seen| (seen.is_xoff("a", 3), seen.is_xoff("a", 4), seen.is_port_xoff("a"));

    // The group goes XOFF when its share with the frame exceeds T - eta = (120 - s)/2 - 10. At s = 32 the share is 33
    // of 34 with the next frame, and does not exceed it. At s = 33 it is 34 of 33. The frame stays in the pool.
    bed.send("a", "d1", Frame::of(3), 11);
    let seen = bed.send("a", "d2", Frame::of(3), 1);
    assert_eq!(seen.group("a", 3), (12, 0));
    let seen = bed.send("a", "d5", Frame::of(3), 2 + 33 - 12);
    assert_eq!((seen.group("a", 3), off(&seen), seen.pfc_frames()), ((35, 0), (false, false, false), 0));
    let seen = bed.send("a", "d5", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), off(&seen), seen.drops()), ((36, 0), (true, false, false), 0), "an eta early");

    // The port goes XOFF when its share with the frame exceeds the sum of both thresholds, 120 - s. That is at s = 60.
    // This frame is the first in the insurance.
    let seen = bed.send("a", "d3", Frame::of(3), 25);
    assert_eq!((seen.group("a", 3), off(&seen)), ((61, 0), (true, false, false)));
    let seen = bed.send("a", "d4", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), off(&seen)), ((62, 0), (true, false, false)), "the pool is not at its limit yet");
    let seen = bed.send("a", "d5", Frame::of(3), 1);
    assert_eq!((seen.group("a", 3), off(&seen)), ((62, 1), (true, true, true)), "all lossless classes of the port");
    assert_eq!((seen.told("a", 4).1, seen.drops()), (0, 0));
    let seen = bed.send("a", "d5", Frame::of(3), 9);
    assert_eq!((seen.group("a", 3), seen.drops()), ((62, 10), 0), "to the end of the insurance");
    let seen = bed.wait_refreshed("a", 4, 3);
    assert_eq!((off(&seen), seen.drops()), ((true, true, true), 0), "PFC for both goes on");
    let seen = bed.send("a", "d5", Frame::of(3), 1);
    assert_eq!((seen.dropped("a", 3, "headroom_full"), seen.drops()), (1, 1), "one more is lost");
    // The port is at XOFF, so the other class has only its reserve.
    bed.send("a", "b", Frame::of(4), 2);
    let seen = bed.wait_sent("b", 4, 2);
    assert_eq!((seen.drops(), seen.port_offs()), (1, ["a".to_owned()].to_vec()), "no other port is off");

    let told = |seen: &crate::seen::Seen| (seen.told("a", 3).1, seen.told("a", 4).1);
    check_resumption(&mut bed, [(one, "d1"), (two, "d2"), (three, "d3"), (four, "d4")]);
    bed.release(five);
    let seen = bed.wait_sent("d5", 3, 72 - 38);
    assert_eq!((told(&seen), off(&seen), seen.drops()), ((1, 1), (false, false, false), 1), "all goes on");

    // The sequence once more: no state of the first run remains.
    let five = bed.hold("d5", &[3]);
    let seen = bed.send("a", "d5", Frame::of(3), 2 + 60 + 10);
    assert_eq!((seen.group("a", 3), off(&seen), seen.drops()), ((62, 10), (true, true, true), 1));
    bed.release(five);
    bed.wait_sent("d5", 3, 34 + 72);
    bed.wait("XON", off, |&off| off == (false, false, false));
    bed.finish();
}

/// Releases the held queues one by one, and checks when the port and its group 3 resume.
fn check_resumption(bed: &mut Bed, held: [(Hold, &str); 4]) {
    let off = |seen: &crate::seen::Seen| (seen.is_xoff("a", 3), seen.is_xoff("a", 4), seen.is_port_xoff("a"));
    // The port resumes when the insurance is empty and its share is at most 120 - s - 2 * 2, as at 58. The group
    // resumes when its share is at most (120 - s)/2 - 10 - 2, as at 32.
    let told = |seen: &crate::seen::Seen| (seen.told("a", 3).1, seen.told("a", 4).1);
    let wanted = [(11, 61, (0, 0)), (1, 60, (0, 1)), (25, 35, (0, 1)), (1, 34, (1, 1))];
    for ((hold, port), (sent, held, wanted)) in held.into_iter().zip(wanted) {
        bed.release(hold);
        bed.wait_sent(port, 3, sent);
        let on = if wanted.1 == 0 { (true, true, true) } else { (wanted.0 == 0, false, false) };
        let seen = bed.wait(&format!("XON after {port}"), off, |&off| off == on);
        assert_eq!((seen.group("a", 3), told(&seen)), ((held, 0), wanted), "after {port}");
        if wanted.0 == 0 {
            let seen = bed.wait_refreshed("a", 3, 3);
            assert_eq!((off(&seen), told(&seen)), (on, wanted), "after {port}");
        }
    }
}
