//! ECN marking at dequeue: which frames are marked, and how many.

use crate::bed::{Bed, ROOMY};
use crate::capture::Capture;
use crate::frame::{CE, ECT, Frame};

/// 3000 short frames stand before a thousand long ones, so the depth is nearly the same for all short frames. It lies
/// between 1000 * 1514 bytes and 192000 bytes more: 1.61 MB in the middle. That is half of kmax, so 5 % at a pmax of 10
/// %.
#[test]
fn wred_marks_configured_share_of_ect_frames_and_no_not_ect_frame() {
    let ports = [("a", "speed: 1G"), ("out", "speed: 100M")];
    let settings =
        format!("buffer: {{size: 6MiB}}\nclasses: {{3: {{{ROOMY}, ecn: {{kmin: 0B, kmax: 3220kB, pmax: 10%}}}}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let hold = bed.hold("out", &[3]);
    let (from, to) = (bed.address("a"), bed.address("out"));
    let short = Frame::of(3).len(64);
    let [v4, v6] = [short.ect(), short.ect().ipv6()].map(|frame| frame.bytes(from, to));
    let data: Vec<_> = (0..1500).flat_map(|_| [v4.clone(), v6.clone()]).collect();
    bed.send_bytes("a", &data);
    let seen = bed.send("a", "out", Frame::of(3).len(1514), 1000);
    assert_eq!((seen.queue("out", 3).0, seen.drops()), (3000 + 1000 * 8, 0));

    let capture = Capture::start(bed.host("out"), "udp");
    bed.release(hold);
    let seen = bed.wait_sent("out", 3, 4000);
    let trace = capture.stop();
    let marked = seen.marked("out", 3);
    // The standard deviation is 12. These bounds are five of them away.
    assert!((90..=210).contains(&marked), "{marked} of 3000 marked, where 150 are expected");
    let ce_v4 = trace.timed(&format!("ip.dsfield.ecn == {CE}")).len() as u64;
    let ce_v6 = trace.timed(&format!("ipv6.tclass.ecn == {CE}")).len() as u64;
    assert_eq!(ce_v4 + ce_v6, marked, "as counted, so on the wire");
    assert!(ce_v4.min(ce_v6) >= 30, "{ce_v4} of 1500 IPv4 and {ce_v6} of 1500 IPv6 frames marked");
    assert_eq!(trace.timed("frame.len == 1514 && ip.dsfield.ecn == 0").len(), 1000, "Not-ECT stays so");
    assert_eq!(seen.drops(), 0, "in a lossless class none is dropped for it");
    bed.finish();
}

/// kmin = kmax = 10.5 frames of 208 bytes, and the queue holds 20. The depth at dequeue includes the leaving frame. It
/// exceeds 10 frames for the first 10 of them.
#[test]
fn released_queue_of_twice_kmax_is_marked_in_its_first_half_only() {
    let ports = [("a", "speed: 1G"), ("out", "speed: 10M")];
    // More than ten frames, even with the few bytes that a frame is posted ahead.
    let settings =
        format!("buffer: {{size: 6MiB}}\nclasses: {{3: {{{ROOMY}, ecn: {{kmin: 2180B, kmax: 2180B, pmax: 100%}}}}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let capture = Capture::start(bed.host("out"), "udp");
    let frames = [Frame::of(3).ect(), Frame::of(3).ect().ipv6(), Frame::of(3)];
    for (round, frame) in frames.into_iter().enumerate() {
        let hold = bed.hold("out", &[3]);
        let seen = bed.send("a", "out", frame, 20);
        assert_eq!(seen.queue("out", 3).0, 20);
        bed.release(hold);
        bed.wait_sent("out", 3, 20 * (round as u64 + 1));
    }
    let captured = capture.stop().bytes("udp");
    let captured: Vec<Vec<u8>> = captured.iter().map(|hex| decode(hex)).collect();
    assert_eq!(captured.len(), 60);
    let ecn_v4: Vec<u8> = captured.iter().map(|frame| frame[15] & 3).collect();
    let ecn_v6: Vec<u8> = captured.iter().map(|frame| frame[15] >> 4 & 3).collect();
    let half = [[CE; 10], [ECT; 10]].concat();
    assert_eq!(ecn_v4[..20], half, "IPv4");
    assert_eq!(ecn_v6[20..40], half, "IPv6");
    assert_eq!(ecn_v4[40..], [0; 20], "Not-ECT");
    for frame in &captured[..20] {
        let (header, _) = etherparse::Ipv4Header::from_slice(&frame[14..]).expect("an IPv4 header");
        assert_eq!(header.header_checksum, header.calc_header_checksum(), "{header:?}");
    }
    let seen = bed.look();
    assert_eq!((seen.marked("out", 3), seen.drops()), (20, 0));
    bed.finish();
}

fn decode(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}
