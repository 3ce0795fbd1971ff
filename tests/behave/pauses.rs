//! Pauses: the queues that they stop, and control frames that have no effect.

use crate::bed::{Bed, ROOMY};
use crate::frame::Frame;
use crate::frames::{pause, pfc};
use crate::seen::Seen;

#[test]
fn a_paused_lossless_priority_sends_nothing_while_all_others_run() {
    let ports = [("a", "speed: 1G"), ("out", "speed: 100M")];
    let settings = format!("buffer: {{size: 4MiB}}\nclasses: {{3: {{{ROOMY}}}, 4: {{{ROOMY}}}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let of_all = |bed: &Bed| -> Vec<_> {
        let frame = |class| Frame::of(class).bytes(bed.address("a"), bed.address("out"));
        (0..100).flat_map(|_| (0..8).map(frame)).collect()
    };

    let hold = bed.hold("out", &[3]);
    let data = of_all(&bed);
    bed.send_bytes("a", &data);
    for class in [0, 1, 2, 4, 5, 6, 7] {
        bed.wait_sent("out", class, 100);
    }
    let seen = bed.look();
    assert_eq!((seen.sent("out", 3), seen.queue("out", 3).0, bed.got("out")), (0, 100, 700), "none of class 3");

    // Both lossless priorities are paused, then one of the two.
    let second = bed.hold("out", &[4]);
    bed.send_bytes("a", &data);
    for class in [0, 1, 2, 5, 6, 7] {
        bed.wait_sent("out", class, 200);
    }
    let seen = bed.look();
    assert_eq!((seen.sent("out", 3), seen.sent("out", 4), bed.got("out")), (0, 100, 1300));
    bed.release(hold);
    let seen = bed.wait_sent("out", 3, 200);
    assert_eq!((seen.sent("out", 4), seen.queue("out", 4).0), (100, 100), "XON of 3 is none of 4");
    bed.release(second);
    let seen = bed.wait_sent("out", 4, 200);
    assert_eq!((seen.drops(), seen.pfc_frames()), (0, 0));
    bed.finish();
}

#[test]
fn lossy_pfc_empty_vector_and_classic_pause_do_not_stop_transmission() {
    let ports = [("a", "speed: 1G"), ("out", "speed: 10M")];
    let settings = format!("buffer: {{size: 4MiB}}\nclasses: {{3: {{{ROOMY}}}, 1: {{queue_alpha: 8}}}}\n");
    let Some(mut bed) = Bed::start(&ports, &settings) else { return };
    let peer = bed.text_address("out");
    let mut empty = pfc(&peer, &[(0, 0xffff), (1, 0xffff), (3, 0xffff)]);
    empty[17] = 0;
    let lossy: Vec<_> = [0, 1, 2, 4, 5, 6, 7].map(|class| (class, 0xffff)).to_vec();
    let no_pauses = [empty, pause(&peer, 0xffff), pfc(&peer, &lossy)];

    // Each pause lasts 3.4 s and is refreshed 20 times a second. A port that obeyed them would never send.
    let saying = bed.keep_sending("out", &no_pauses, 60);
    bed.wait("control frames", |seen| seen.count("pause_received_frames_total", &[]), |&frames| frames > 0);
    // 400 frames of 1538 bytes on the wire take half a second at 10M.
    let data = [3, 1].map(|class| Frame::of(class).len(1514).bytes(bed.address("a"), bed.address("out")));
    let seen = bed.send_bytes("a", &vec![data; 200].concat());
    // A priority that the port does not obey would also show as paused.
    assert!(!seen.is_paused("out", 3), "neither an empty vector nor classic PAUSE is a pause");
    bed.wait_sent("out", 1, 200);
    bed.wait_sent("out", 3, 200);
    drop(saying);

    let gave = bed.gave("out");
    let all = ["pfc_received_frames_total", "pause_received_frames_total"];
    let counts = |seen: &Seen| all.map(|name| seen.count(name, &[("port", "out")]));
    let before = bed.wait("its last control frame", |seen| counts(seen).iter().sum::<u64>(), |&frames| frames == gave);
    let after = bed.control("out", &no_pauses);
    assert_eq!(counts(&after), [counts(&before)[0] + 2, counts(&before)[1] + 1], "each is counted");
    for priority in 0..8 {
        let labels = [("port", "out"), ("priority", &*priority.to_string())];
        let xoff = [&before, &after].map(|seen| seen.count("pfc_received_xoff_total", &labels));
        assert_eq!(xoff[1] - xoff[0], u64::from(priority != 3), "XOFF of {priority}, and none of the empty vector");
    }
    assert_eq!((after.drops(), after.pfc_frames()), (0, 0));
    bed.finish();
}

#[test]
fn asymmetric_port_obeys_all_priorities_and_pauses_only_lossless_ones() {
    let ports = [("a", "speed: 1G"), ("asym", "speed: 100M, pfc: asymmetric"), ("sym", "speed: 100M")];
    let settings = "
buffer: {size: 4MiB}
classes: {3: {lossless: true, limit: 4160B, xon_offset: 0B, headroom: 4992B, reserve: 0B}}
";
    let Some(mut bed) = Bed::start(&ports, settings) else { return };
    let of_all = |bed: &Bed, to| -> Vec<_> {
        let frame = |class| Frame::of(class).bytes(bed.address("a"), bed.address(to));
        (0..10).flat_map(|_| (0..8).map(frame)).collect()
    };
    let sent = |seen: &Seen, port| (0..8).map(|queue| seen.sent(port, queue)).collect::<Vec<_>>();

    let all: Vec<u8> = (0..8).collect();
    let holds = ["asym", "sym"].map(|port| bed.hold(port, &all));
    for port in ["asym", "sym"] {
        let data = of_all(&bed, port);
        bed.send_bytes("a", &data);
    }
    let seen = bed.wait("lossy frames", |seen| sent(seen, "sym"), |sent| sent.iter().sum::<u64>() == 70);
    assert_eq!(sent(&seen, "sym"), [10, 10, 10, 0, 10, 10, 10, 10], "only the lossless one is stopped");
    assert_eq!((sent(&seen, "asym"), bed.got("asym")), (vec![0; 8], 0), "all eight are");

    let [asym, sym] = holds;
    bed.release(asym);
    bed.release(sym);
    for port in ["asym", "sym"] {
        for queue in 0..8 {
            bed.wait_sent(port, queue, 10);
        }
    }
    assert_eq!((bed.look().drops(), bed.look().pfc_frames()), (0, 0));

    // The reverse direction: when frames that `asym` receives cannot leave, only the lossless class pauses its sender.
    let hold = bed.hold("sym", &[3]);
    let seen = bed.send("asym", "sym", Frame::of(3), 30);
    assert!(seen.is_xoff("asym", 3));
    for class in [0, 1, 2, 4, 5, 6, 7] {
        bed.send("asym", "sym", Frame::of(class), 50);
        bed.wait_sent("sym", class, 60);
    }
    let seen = bed.wait_refreshed("asym", 3, 2);
    let told: Vec<_> = (0..8).filter(|&priority| seen.told("asym", priority) != (0, 0)).collect();
    assert_eq!((told, seen.told("sym", 3)), (vec![3], (0, 0)), "XOFF is told for class 3 and no other");
    bed.release(hold);
    bed.wait_sent("sym", 3, 40);
    bed.wait("XON", |seen| seen.told("asym", 3).1, |&xon| xon == 1);
    bed.finish();
}
