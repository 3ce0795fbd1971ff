//! Maps from DSCP and PCP to a class, and from a class to the group that pauses the sender.

use crate::bed::{Bed, SMALL};
use crate::capture::Capture;
use crate::frame::Frame;

/// SONiC's map: DSCPs 3 and 4 are the lossless classes of the same number, and most others are class 1.
const SONIC: &str = "{0-2: 1, 3: 3, 4: 4, 5: 2, 6-7: 1, 8: 0, 9-45: 1, 46: 5, 47: 1, 48: 6, 49-63: 1}";

fn sonic(dscp: u8) -> u8 {
    match dscp {
        3 => 3,
        4 => 4,
        5 => 2,
        8 => 0,
        46 => 5,
        48 => 6,
        _ => 1,
    }
}

/// A frame that leaves by a trunk shows its class, because the switch writes the class into the tag.
#[test]
fn each_dscp_has_the_class_that_its_map_gives_it() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("out", "speed: 1G, mtu: 256, vlan: {tagged: [1]}")];
    // The lossy pool has room for all frames twice: with several lcores, the queue limit sees frames in transit as
    // charged.
    let settings = format!("buffer: {{size: 2MB}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\nmaps: {{dscp: {SONIC}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let capture = Capture::start(bed.host("out"), "vlan");
    let (from, to) = (bed.address("a"), bed.address("out"));
    let of_dscp = |dscp| [Frame::with_dscp(dscp), Frame::with_dscp(dscp).ipv6()].map(|frame| frame.bytes(from, to));
    let seen = bed.send_bytes("a", &(0..64).flat_map(of_dscp).collect::<Vec<_>>());
    for class in 0..8 {
        let frames = 2 * (0..64).filter(|&dscp| sonic(dscp) == class).count() as u64;
        assert_eq!(seen.received("a", class), frames, "class {class}");
        bed.wait_sent("out", class, frames);
    }
    let trace = capture.stop();
    for field in ["ip.dsfield.dscp", "ipv6.tclass.dscp"] {
        let mut rows = trace.fields(field, &[field, "vlan.priority"]);
        rows.sort_by_key(|row| row[0].parse::<u8>().ok());
        let wanted: Vec<_> = (0..64).map(|dscp| vec![dscp.to_string(), sonic(dscp).to_string()]).collect();
        assert_eq!(rows, wanted, "{field} and class");
    }
    assert_eq!(bed.look().drops(), 0);
    bed.finish();
}

/// A frame that leaves by a trunk shows its class. ACKs and CNPs have the DSCP of data here.
#[test]
fn acks_and_cnps_of_roce_have_their_class_and_data_keeps_its_own() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("out", "speed: 1G, mtu: 256, vlan: {tagged: [1]}")];
    let settings = "buffer: {size: 2MB}\nmaps: {roce: {ack: 6, cnp: 5}}\n";
    let Some(mut bed) = Bed::start(&ports, settings) else { return };
    let capture = Capture::start(bed.host("out"), "vlan");
    let (from, to) = (bed.address("a"), bed.address("out"));
    // The opcode is the first byte behind UDP. 7: the middle of an RDMA WRITE.
    let of_opcode = |opcode: u8| {
        [(Frame::of(3), 42), (Frame::of(3).ipv6(), 62)].map(|(frame, at)| {
            let mut bytes = frame.bytes(from, to);
            bytes[at] = opcode;
            bytes
        })
    };
    let seen = bed.send_bytes("a", &[0x11, 0x12, 0x81, 0x07].into_iter().flat_map(of_opcode).collect::<Vec<_>>());
    for (class, frames) in [(6, 4), (5, 2), (3, 2)] {
        assert_eq!(seen.received("a", class), frames, "class {class}");
        bed.wait_sent("out", class, frames);
    }
    let trace = capture.stop();
    let rows = trace.fields("vlan", &["vlan.priority", "ip.dsfield.dscp", "ipv6.tclass.dscp"]);
    for row in &rows {
        assert!(row[1..].iter().any(|dscp| dscp == "24"), "no DSCP is rewritten: {row:?}");
    }
    let of_class = |class: &str| rows.iter().filter(|row| row[0] == class).count();
    assert_eq!(["6", "5", "3"].map(of_class), [4, 2, 2]);
    assert_eq!(bed.look().drops(), 0);
    bed.finish();
}

#[test]
fn port_that_trusts_pcp_classifies_by_tag_and_ignores_dscp() {
    let trunk = "speed: 1G, mtu: 256, vlan: {tagged: [10], native: 1}";
    let trusting = format!("{trunk}, trust: pcp, class: 5");
    // All classes are lossy. A lossless one would require tagged frames on each port that trusts PCP.
    let settings = "buffer: {size: 416kB}\nmaps: {pcp: {0: 1, 1: 0, 6: 2}}\n";
    let Some(mut bed) = Bed::start_in(&[1, 10], &[("t", &trusting), ("d", trunk), ("out", trunk)], settings) else {
        return;
    };
    // Each PCP has a different number of frames, all with the DSCP of class 4. Frames without a tag follow.
    let classes = [1, 0, 2, 3, 4, 5, 2, 7];
    let mut wanted = [0; 8];
    for (pcp, &class) in classes.iter().enumerate() {
        let frames = pcp + 1;
        bed.send("t", "out", Frame::of(4).tagged(pcp as u16, 10), frames);
        wanted[class] += frames as u64;
    }
    bed.send("t", "out", Frame::of(4), 20);
    wanted[5] += 20;
    // A port that trusts DSCP ignores the tag.
    bed.send("d", "out", Frame::of(4).tagged(3, 10), 30);
    for class in 0..8 {
        let seen = bed.wait_sent("out", class, wanted[usize::from(class)] + if class == 4 { 30 } else { 0 });
        assert_eq!(seen.received("t", class), wanted[usize::from(class)], "class {class}");
    }
    assert_eq!((bed.look().received("d", 4), bed.look().drops()), (30, 0));
    bed.finish();
}

#[test]
fn dscps_of_one_class_fill_only_the_group_of_that_class() {
    let ports = [("a", "speed: 1G, mtu: 256"), ("out", "speed: 10M, mtu: 256")];
    let settings = format!(
        "buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}, 4: {SMALL}}}\nmaps: {{dscp: {{10: 3, 20: 3, 40: 4, 24: 1, 50: 1}}}}\n"
    );
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[3, 4]);
    // Class 3 has 26 cells before XOFF. DSCP 24 would select class 3 by default, but is class 1 in this map.
    for (dscp, frames) in [(10, 9), (20, 9), (26, 8), (24, 50), (50, 50), (40, 13), (32, 13)] {
        let seen = bed.send("a", "out", Frame::with_dscp(dscp), frames);
        assert_eq!((seen.pfc_frames(), seen.drops()), (0, 0), "DSCP {dscp}");
    }
    bed.wait_sent("out", 1, 100);
    let seen = bed.look();
    assert_eq!((seen.group("a", 3), seen.group("a", 4)), ((26, 0), (26, 0)));
    let seen = bed.send("a", "out", Frame::with_dscp(20), 1);
    assert_eq!((seen.is_xoff("a", 3), seen.is_xoff("a", 4)), (true, false), "the 27th of class 3");
    let seen = bed.send("a", "out", Frame::with_dscp(40), 1);
    assert_eq!((seen.is_xoff("a", 3), seen.is_xoff("a", 4)), (true, true), "the 27th of class 4");
    // Headroom accepts 23 more frames of each class, with any DSCP of that class.
    for (dscp, frames) in [(10, 11), (20, 12), (40, 23)] {
        bed.send("a", "out", Frame::with_dscp(dscp), frames);
    }
    assert_eq!(bed.look().drops(), 0);
    for dscp in [10, 20, 26] {
        bed.send("a", "out", Frame::with_dscp(dscp), 1);
    }
    let seen = bed.look();
    assert_eq!((seen.dropped("a", 3, "headroom_full"), seen.drops()), (3, 3));
    bed.release(hold);
    bed.wait_sent("out", 3, 50);
    bed.wait_sent("out", 4, 50);
    bed.finish();
}
