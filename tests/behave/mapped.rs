//! Classes that share a group or a queue, priorities mapped to another queue, and rewritten marks.

use crate::bed::{Bed, ROOMY, SMALL};
use crate::capture::Capture;
use crate::frame::Frame;

/// A class that shares the group and the queue of class 3, without settings of its own.
const LIKE_3: &str = "{lossless: true}";

/// A port whose peer can pause lossy queues too.
const ASYMMETRIC: (&str, &str) = ("out", "speed: 100M, mtu: 256, pfc: asymmetric");

#[test]
fn classes_of_one_group_pause_together_and_of_one_queue_share_its_depth() {
    let ports = [("a", "speed: 1G, mtu: 256"), ASYMMETRIC];
    let settings = format!(
        "
buffer: {{size: 416kB}}
classes: {{3: {SMALL}, 4: {LIKE_3}, 1: {{queue_limit: 4160B}}}}
maps: {{tc_to_group: {{4: 3}}, tc_to_queue: {{4: 3, 2: 1}}}}
"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[3, 1]);

    // Both classes together fill 26 cells.
    bed.send("a", "out", Frame::of(3), 12);
    let seen = bed.send("a", "out", Frame::of(4), 14);
    assert_eq!((seen.group("a", 3), seen.group("a", 4), seen.is_xoff("a", 3)), ((26, 0), (0, 0), false));
    assert_eq!((seen.received("a", 3), seen.received("a", 4)), (12, 14), "classes are counted as such");
    let seen = bed.send("a", "out", Frame::of(4), 1);
    assert_eq!((seen.group("a", 3), seen.is_xoff("a", 3)), ((26, 1), true), "the 27th, whichever class it is of");
    for (class, frames) in [(3, 12), (4, 11)] {
        bed.send("a", "out", Frame::of(class), frames);
    }
    assert_eq!((bed.look().group("a", 3), bed.look().drops()), ((26, 24), 0));
    for class in [3, 4] {
        let seen = bed.send("a", "out", Frame::of(class), 2);
        assert_eq!(seen.dropped("a", class, "headroom_full"), 2, "each as its own class");
    }
    let seen = bed.wait_refreshed("a", 3, 2);
    assert_eq!((seen.told("a", 4), seen.drops()), ((0, 0), 4), "the priority that stops both is 3");

    // Classes 1 and 2 share a queue of 20 cells, but each has its own group.
    bed.send("a", "out", Frame::of(1), 8);
    let seen = bed.send("a", "out", Frame::of(2), 12);
    assert_eq!((seen.queue("out", 1).0, seen.queue("out", 2).0), (20, 0));
    assert_eq!((seen.group("a", 1).0, seen.group("a", 2).0, seen.drops()), (8, 12, 4));
    for (class, frames) in [(1, 3), (2, 5)] {
        let seen = bed.send("a", "out", Frame::of(class), frames);
        assert_eq!(seen.dropped("out", class, "queue_threshold"), frames as u64);
    }
    assert_eq!((bed.look().queue("out", 1).0, bed.look().sent("out", 3)), (20, 0));

    // Both classes of a queue pause and resume together.
    bed.release(hold);
    bed.wait_sent("out", 3, 50);
    let seen = bed.wait_sent("out", 1, 20);
    assert_eq!((seen.sent("out", 2), seen.sent("out", 4), seen.told("a", 3).1), (0, 0, 1));
    bed.finish();
}

/// Class 3 uses queue 4 and class 4 uses queue 3. Priorities 3 and 6 pause queue 4, priority 4 pauses queue 3.
#[test]
fn pfc_priority_pauses_its_mapped_queue_and_priorities_may_share_one() {
    let ports = [("a", "speed: 1G"), ("out", "speed: 100M")];
    let settings = format!(
        "
buffer: {{size: 4MiB}}
classes: {{3: {{{ROOMY}}}, 4: {{{ROOMY}}}}}
maps: {{tc_to_queue: {{3: 4, 4: 3}}, pfc_to_queue: {{3: 4, 4: 3, 6: 4}}}}
"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let send_both = |bed: &mut Bed| {
        bed.send("a", "out", Frame::of(3), 20);
        bed.send("a", "out", Frame::of(4), 20);
    };
    let three = bed.hold("out", &[3]);
    send_both(&mut bed);
    let seen = bed.wait_sent("out", 3, 20);
    assert_eq!((seen.sent("out", 4), seen.queue("out", 4).0), (0, 20), "priority 3 stops queue 4, and class 3 in it");

    let six = bed.hold("out", &[6]);
    bed.release(three);
    send_both(&mut bed);
    let seen = bed.wait_sent("out", 3, 40);
    assert_eq!((seen.sent("out", 4), seen.queue("out", 4).0), (0, 40), "priority 6 holds it still");
    let four = bed.hold("out", &[4]);
    bed.release(six);
    let seen = bed.wait_sent("out", 4, 40);
    assert!(seen.is_paused("out", 4));
    send_both(&mut bed);
    let seen = bed.wait_sent("out", 4, 60);
    assert_eq!((seen.sent("out", 3), seen.queue("out", 3).0), (40, 20), "priority 4 stops queue 3");
    bed.release(four);
    let seen = bed.wait_sent("out", 3, 60);
    assert_eq!((seen.drops(), seen.pfc_frames()), (0, 0));
    bed.finish();
}

/// Each frame that leaves is compared with a newly built one: all bytes, including the IPv4 checksum and everything
/// that is not a mark.
#[test]
fn rewritten_frame_has_marks_of_its_class_and_is_otherwise_unchanged() {
    let trunk = "speed: 1G, mtu: 256, vlan: {tagged: [10], native: 1}";
    let tagged = "speed: 1G, mtu: 256, vlan: {tagged: [1, 10]}";
    let rewriting = format!("{tagged}, rewrite: [dscp, pcp]");
    let settings = format!(
        "
buffer: {{size: 416kB}}
classes: {{3: {SMALL}}}
maps: {{dscp: {{10: 3, 20: 3, 50: 1}}, tc_to_dscp: {{3: 26, 1: 14, 0: 0}}, tc_to_pcp: {{3: 3, 1: 6}}}}
"
    );
    let ports = [("a", trunk), ("marks", rewriting.as_str()), ("plain", tagged)];
    let Some(mut bed) = Bed::start_in(&[1, 10], &ports, &settings) else { return };
    // DSCP, its class, and the DSCP and PCP with which the frame leaves. `None`: the frame keeps its own.
    let marks = [
        (10, 3, Some(26), Some(3)),
        (20, 3, Some(26), Some(3)),
        (26, 3, Some(26), Some(3)),
        (50, 1, Some(14), Some(6)),
        (7, 0, Some(0), None),
        (46, 5, None, None),
    ];
    for to in ["marks", "plain"] {
        let capture = Capture::start(bed.host(to), "vlan");
        let (from, address) = (bed.address("a"), bed.address(to));
        let (mut data, mut wanted, mut frames) = (Vec::new(), Vec::new(), 0);
        for (dscp, class, new_dscp, new_pcp) in marks {
            let (new_dscp, new_pcp) = if to == "marks" { (new_dscp, new_pcp) } else { (None, None) };
            for frame in [Frame::with_dscp(dscp).ect(), Frame::with_dscp(dscp).ect().ipv6(), Frame::with_dscp(dscp)] {
                let left = Frame { dscp: new_dscp.unwrap_or(dscp), ..frame };
                // Without a tag on arrival: the new tag has the class as its PCP, unless the map gives one.
                data.push(frame.len(200).bytes(from, address));
                wanted.push(left.len(204).tagged(new_pcp.unwrap_or(class), 1).bytes(from, address));
                // With a tag on arrival.
                data.push(frame.len(204).tagged(7, 10).bytes(from, address));
                wanted.push(left.len(204).tagged(new_pcp.unwrap_or(7), 10).bytes(from, address));
                frames += 2;
            }
        }
        bed.send_bytes("a", &data);
        bed.wait(to, |seen| seen.count("port_sent_frames_total", &[("port", to)]), |&sent| sent == frames);
        let mut found = capture.stop().bytes("udp");
        let mut wanted: Vec<String> =
            wanted.iter().map(|frame| frame.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{to}");
    }
    assert_eq!(bed.look().drops(), 0);
    bed.finish();
}

/// DSCP 10 is class 3 on arrival at `own`, and class 1 at other ports. The rewritten DSCP gives the next switch the
/// class.
#[test]
fn a_port_may_have_maps_of_its_own() {
    let plain = "speed: 1G, mtu: 256, rewrite: dscp";
    let out = "speed: 100M, mtu: 256, rewrite: dscp";
    let own = format!("{plain}, maps: {{dscp: {{10: 3, 12: 5}}}}");
    let settings =
        format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}}}\nmaps: {{tc_to_dscp: {{1: 8, 3: 26, 5: 46}}}}\n");
    let Some(mut bed) = Bed::start(&[("own", &own), ("plain", plain), ("out", out)], &settings) else { return };
    let capture = Capture::start(bed.host("out"), "udp");
    let hold = bed.hold("out", &[3]);
    for (from, dscp, class, frames) in
        [("own", 10, 3, 20), ("plain", 10, 1, 10), ("own", 12, 5, 7), ("plain", 12, 1, 5), ("plain", 26, 3, 4)]
    {
        let before = bed.look().received(from, class);
        let seen = bed.send(from, "out", Frame::with_dscp(dscp), frames);
        assert_eq!(seen.received(from, class), before + frames as u64, "DSCP {dscp} from {from}");
    }
    for (class, frames) in [(1, 15), (5, 7)] {
        bed.wait_sent("out", class, frames);
    }
    let seen = bed.look();
    assert_eq!((seen.group("own", 3), seen.group("plain", 3), seen.queue("out", 3).0), ((20, 0), (4, 0), 24));
    bed.release(hold);
    bed.wait_sent("out", 3, 24);
    let rows = capture.stop().fields("udp", &["ip.dsfield.dscp"]);
    let left = ["8", "26", "46"].map(|dscp| rows.iter().filter(|row| row[0] == dscp).count());
    assert_eq!((left, rows.len()), ([15, 24, 7], 46), "each leaves with the mark of its class");
    assert_eq!(bed.look().drops(), 0);
    bed.finish();
}
