//! Lossless frames, which are never flooded, and MAC control frames, which are no data.

use crate::bed::{Bed, SMALL};
use crate::frame::Frame;
use crate::frames::{pause, pfc};

const UNKNOWN: [u8; 6] = [2, 0, 0, 0, 9, 9];
const MULTICAST: [u8; 6] = [1, 0, 0x5e, 1, 2, 3];
const BROADCAST: [u8; 6] = [0xff; 6];

#[test]
fn lossless_frame_to_unknown_or_group_address_is_dropped_not_flooded() {
    let ports = ["a", "b", "c"].map(|name| (name, "speed: 1G, mtu: 256"));
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let source = bed.address("a");
    let to_all = |class, frames: usize| {
        let one = |to| vec![Frame::of(class).bytes(source, to); frames];
        [UNKNOWN, MULTICAST, BROADCAST].map(one)
    };

    let [unknown, multicast, broadcast] = to_all(3, 7);
    bed.send_bytes("a", &unknown);
    bed.send_bytes("a", &multicast);
    let seen = bed.send_bytes("a", &broadcast);
    let reason = |reason| seen.count("port_dropped_frames_total", &[("port", "a"), ("reason", reason)]);
    assert_eq!((reason("lossless_unknown"), reason("lossless_group"), seen.drops()), (7, 14, 21));
    assert_eq!((seen.received("a", 3), seen.count("port_sent_frames_total", &[])), (21, 0));
    assert_eq!(["a", "b", "c"].map(|port| bed.got(port)), [0; 3], "as the hosts' kernels count");
    assert_eq!((seen.group_highest("a", 3), seen.pfc_frames()), ((0, 0), 0), "it takes no cell and pauses nobody");

    // Frames of a lossy class to these addresses are flooded to all other ports.
    bed.send_bytes("a", &to_all(0, 5).concat());
    for port in ["b", "c"] {
        bed.wait_sent(port, 0, 15);
    }
    assert_eq!(["a", "b", "c"].map(|port| bed.got(port)), [0, 15, 15]);
    assert_eq!(bed.look().drops(), 21);
    bed.finish();
}

#[test]
fn pfc_frame_with_zero_source_is_obeyed_and_not_counted_as_data() {
    let ports = ["a", "b"].map(|name| (name, "speed: 1G, mtu: 256"));
    let settings = format!("buffer: {{size: 416kB}}\nclasses: {{3: {SMALL}}}\n");
    let Some(bed) = Bed::start(&ports, &settings) else { return };
    let (own, zero) = (bed.text_address("a"), "00:00:00:00:00:00");
    bed.control("a", &vec![pfc(&own, &[(3, 0xffff)]); 10]);
    bed.control("a", &vec![pfc(zero, &[(3, 0xffff)]); 5]);
    bed.control("a", &vec![pause(&own, 0xffff); 3]);
    let seen = bed.look();
    assert!(seen.is_paused("a", 3) || seen.count("pfc_received_xoff_total", &[("port", "a")]) == 15);
    let seen = bed.control("a", &vec![pfc(zero, &[(3, 0)]); 2]);
    let port = [("port", "a")];
    let counts = ["pfc_received_frames_total", "pfc_received_xoff_total", "pfc_received_xon_total"];
    assert_eq!(counts.map(|name| seen.count(name, &port)), [17, 15, 2]);
    assert_eq!(seen.count("pause_received_frames_total", &port), 3);
    assert!(!seen.is_paused("a", 3), "XON without a source is XON");
    let data = ["port_received_frames_total", "port_received_bytes_total", "port_sent_frames_total"];
    assert_eq!(data.map(|name| seen.count(name, &[])), [0; 3], "not data");
    assert_eq!((seen.drops(), seen.count("fdb_learned_total", &[])), (0, 0), "nor dropped, nor a station");
    assert_eq!((bed.got("a"), bed.got("b")), (0, 0), "nor relayed");
    bed.finish();
}
