//! Each kind of fault hits the frames that it should.

use super::*;

#[test]
fn chance_hits_its_share_by_its_seed() {
    let hits = |seed, fault, lcore| {
        let mut rule = Rule::new(Draws::new(seed, fault, lcore));
        (0..100_000).map(|_| rule.hits(Share::Chance(10_000), 1)).collect::<Vec<bool>>()
    };
    let count = |hits: &[bool]| hits.iter().filter(|hit| **hit).count();
    let one = hits(1, 1, 0);
    assert_eq!(one, hits(1, 1, 0));
    assert!((800..1200).contains(&count(&one)), "{} of 100,000", count(&one));
    for other in [hits(2, 1, 0), hits(1, 2, 0), hits(1, 1, 1)] {
        assert_ne!(one, other);
    }
    let mut rule = Rule::new(Draws::new(1, 1, 0));
    let bursts: Vec<bool> = (0..100_000).map(|_| rule.hits(Share::Chance(1_000), 5)).collect();
    let lengths = bursts.split(|hit| !hit).map(<[bool]>::len).filter(|len| *len > 0);
    assert!(lengths.clone().count() > 50 && lengths.clone().all(|len| len % 5 == 0));
}

#[test]
fn loss_has_a_direction_a_class_and_a_time() {
    let mut bed = Bed::new("[{lose: p1, toward: switch, class: 3, at: 1ms, for: 1ms}]");
    let frames = bed.frames(4);
    assert_eq!(bed.receive(&frames).len(), 4, "it has not begun");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.receive(&frames).len(), 0);
    assert_eq!(bed.receive(&[udp(0, 2, 9, 0), pfc()]).len(), 2, "another class");
    assert_eq!(bed.send(&frames).0.len(), 4, "the other direction");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.receive(&frames).len(), 4, "it is over");
    let fault = bed.board.faults()[0];
    assert_eq!((fault.hits[3], fault.state), (4, FaultState::Over));
    assert_eq!(bed.board.counters().of_port(0, FaultVerb::Lose, Toward::Switch)[3], 4);
    bed.end();
}

#[test]
fn fault_selects_frames_by_flow_and_kind() {
    let flows = [
        ("source: 10.0.0.1", true),
        ("source: 10.0.0.0/24, destination: 10.0.0.2", true),
        ("destination: 10.0.0.1", false),
        ("source: \"::/0\"", false),
        ("protocol: udp, destination_port: 4791, queue_pair: 17", true),
        ("queue_pair: 18", false),
        ("protocol: tcp", false),
        ("source_port: 1000, dscp: 26", true),
        ("source_port: 1001", false),
        ("dscp: 25", false),
    ];
    for (flow, is_hit) in flows {
        let mut bed = Bed::new(&format!("[{{lose: p1, flow: {{{flow}}}}}]"));
        let left = bed.receive(&[udp(26, 2, 4791, 0), pfc()]).len();
        assert_eq!(left, 2 - usize::from(is_hit), "{flow}");
        bed.end();
    }
    for (what, data, control) in [("data", 0, 1), ("pfc", 1, 0), ("any", 0, 0)] {
        let mut bed = Bed::new(&format!("[{{lose: p1, what: {what}}}]"));
        assert_eq!((bed.receive(&[udp(0, 0, 9, 0)]).len(), bed.receive(&[pfc()]).len()), (data, control), "{what}");
        bed.end();
    }
}

#[test]
fn delayed_frames_arrive_in_order_after_their_time() {
    let mut bed = Bed::new("[{delay: p1, by: 1ms}]");
    let frames = bed.frames(3);
    assert_eq!(bed.receive(&frames), [[0; 0]; 0]);
    assert_eq!(bed.send(&frames), (Vec::new(), 0));
    assert_eq!(bed.board.counters().held(), 6);
    assert_eq!(bed.io.backlog(0, ClassSet::ALL), Some(0), "they have not arrived");
    bed.pass(Nanos(999_999));
    assert_eq!(bed.poll().len(), 0);
    bed.pass(Nanos(1));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.io.backlog(0, ClassSet::ALL), Some(3));
    assert_eq!(bed.mem().sent_all(0), frames);
    assert_eq!(bed.poll(), frames);
    assert_eq!(bed.counts(), [6]);
    bed.end();
}

#[test]
fn delay_holds_a_bounded_number_and_lets_the_rest_pass() {
    let mut bed = Bed::new("[{delay: p1, by: 1s, toward: switch}, {late: p1, response: 1s, toward: switch}]");
    let frames = bed.frames(1000);
    let passed: usize = (0..5).map(|_| bed.receive(&frames).len()).sum();
    assert_eq!(passed, 5000 - HELD_FRAMES);
    let control = vec![pfc(); HELD_PFC_FRAMES + 10];
    assert_eq!(bed.receive(&control).len(), 10);
    let faults = bed.board.faults();
    assert_eq!((faults[0].hits[3], faults[0].passed), (HELD_FRAMES as u64, passed as u64));
    assert_eq!((faults[1].hits[PFC_ROW], faults[1].passed), (HELD_PFC_FRAMES as u64, 10));
    let counters = bed.board.counters().clone();
    bed.end();
    assert_eq!(
        counters.ended_of_port(0),
        std::array::from_fn::<u64, ROWS, _>(|row| match row {
            3 => HELD_FRAMES as u64,
            PFC_ROW => HELD_PFC_FRAMES as u64,
            _ => 0,
        })
    );
}

#[test]
fn duplicates_follow_their_originals_in_both_directions() {
    let mut bed = Bed::new("[{duplicate: p1, one_in: 2}]");
    let frames = bed.frames(64);
    let expected: Vec<u16> =
        frames.iter().map(|frame| number(frame)).flat_map(|n| vec![n; if n % 2 == 1 { 2 } else { 1 }]).collect();
    assert_eq!(numbers(&bed.receive(&frames)), expected);
    assert_eq!(numbers(&bed.send(&frames).0), expected);
    assert_eq!(bed.counts(), [64]);
    bed.mem().spare_buffers = 0;
    assert_eq!(bed.receive(&frames).len(), 64, "without buffers there are no copies");
    assert_eq!(bed.board.faults()[0].passed, 32);
    bed.end();
}

#[test]
fn reordered_frames_arrive_behind_later_ones_or_after_a_time() {
    let mut bed = Bed::new(
        "[{reorder: p1, one_in: 4, behind: 2, toward: switch}, {reorder: p1, one_in: 4, behind: 2, toward: host}]",
    );
    let frames = bed.frames(10);
    let expected = [0, 1, 2, 4, 5, 3, 6, 8, 9, 7];
    assert_eq!(numbers(&bed.receive(&frames)), expected);
    assert_eq!(numbers(&bed.send(&frames).0), expected);
    let mut all = Bed::new("[{reorder: p1, behind: 3, one_in: 2}]");
    let twelve = all.frames(12);
    // The frames 1, 3, 5 and so on wait; each passing one counts for all that wait.
    assert_eq!(numbers(&all.receive(&twelve)), [0, 2, 4, 6, 1, 8, 3, 10, 5]);
    all.end();
    let more = bed.frames(2);
    assert_eq!(numbers(&bed.receive(&more)), [10], "the second one waits");
    bed.pass(REORDER_WAIT);
    assert_eq!(numbers(&bed.poll()), [11]);
    bed.end();
}

#[test]
fn corrupted_frames_have_one_wrong_bit_behind_their_headers() {
    let mut bed = Bed::new("[{corrupt: p1, toward: switch}]");
    let frames = bed.frames(200);
    let received = bed.receive(&frames);
    for (before, after) in frames.iter().zip(&received) {
        let wrong: Vec<(usize, u32)> = before
            .iter()
            .zip(after)
            .enumerate()
            .map(|(at, (a, b))| (at, (a ^ b).count_ones()))
            .filter(|(_, bits)| *bits > 0)
            .collect();
        assert!(wrong.len() == 1 && wrong[0].1 == 1 && wrong[0].0 >= 42, "{wrong:?}");
    }
    let runts = [vec![], vec![1; 3], vec![2; 14]];
    assert_eq!(bed.receive(&runts).len(), 3);
    bed.end();
}

#[test]
fn marks_are_for_capable_packets_and_keep_the_checksum() {
    let mut bed = Bed::new("[{mark: p1}]");
    let ecn = |frame: &[u8]| frame[15] & 3;
    let frames: Vec<Vec<u8>> = (0..4).map(|ecn| udp(26, ecn, 9, 0)).collect();
    let received = bed.receive(&frames);
    assert_eq!(received.iter().map(|frame| ecn(frame)).collect::<Vec<u8>>(), [0, 3, 3, 3]);
    for frame in &received {
        let (header, _) = etherparse::Ipv4Header::from_slice(&frame[14..]).unwrap();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
    }
    assert_eq!(bed.counts(), [2], "one was marked before, and one is not capable");
    bed.end();
}
