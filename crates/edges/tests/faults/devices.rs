//! Order, held frames and room at devices that refuse frames, and the end of faults.

use super::*;

#[test]
fn frames_that_a_device_refuses_keep_their_order_and_stop_the_switch() {
    let mut bed = Bed::new("[{duplicate: p1, one_in: 50}]");
    bed.mem().set_room(0, Some(5));
    let frames = bed.frames(10);
    let (first, refused) = bed.send(&frames);
    assert_eq!((numbers(&first), refused), (vec![0, 1, 2, 3, 4], 0));
    let more = bed.frames(3);
    assert_eq!(bed.send(&more), (Vec::new(), 3), "the device must take the others first");
    bed.mem().set_room(0, Some(2));
    bed.io.free(&mut Burst::new());
    assert_eq!(numbers(&bed.mem().sent_all(0)), [5, 6]);
    bed.mem().set_room(0, None);
    let (later, refused) = bed.send(&more);
    assert_eq!((numbers(&later), refused), (vec![7, 8, 9, 10, 11, 12], 0));
    bed.end();
}

#[test]
fn copies_keep_their_order_at_a_device_that_refuses_frames() {
    let mut bed = Bed::new("[{duplicate: p1, toward: host}]");
    for room in [0, 3, 60, 63, 64, 100] {
        bed.mem().set_room(0, Some(room));
        let frames = bed.frames(64);
        let (mut sent, refused) = bed.send(&frames);
        assert_eq!(refused, 0);
        bed.mem().set_room(0, None);
        bed.io.free(&mut Burst::new());
        sent.extend(bed.mem().sent_all(0));
        let expected: Vec<u16> = numbers(&frames).into_iter().flat_map(|number| [number; 2]).collect();
        assert_eq!(numbers(&sent), expected, "room for {room}");
    }
    bed.end();
}

#[test]
fn burst_is_full_while_the_ring_has_more() {
    let lists = [
        "[{lose: p1, one_in: 3}]",
        "[{lose: p1, chance: 99%}]",
        "[{delay: p1, by: 1ms, one_in: 2}]",
        "[{duplicate: p1, one_in: 5}]",
        "[{reorder: p1, one_in: 7}]",
        "[{storm: p1}]",
    ];
    for list in lists {
        let mut bed = Bed::new(list);
        bed.mem().receive_multiple = 8;
        bed.frames(4000).iter().for_each(|frame| bed.mem().inject(0, frame));
        loop {
            let mut burst = Burst::new();
            bed.io.rx(0, 32, &mut burst);
            let is_full = burst.len() == 32;
            bed.io.free(&mut burst);
            if !is_full {
                break;
            }
        }
        assert_eq!(bed.mem().backlog(0, ClassSet::ALL), Some(0), "{list}");
        bed.end();
    }
}

#[test]
fn faults_end_with_the_switch_and_held_frames_arrive() {
    let mut bed = Bed::new("[{delay: p1, by: 1s}, {storm: p1}]");
    let frames = bed.frames(3);
    assert_eq!(pauses(&bed.receive(&frames)), [(ClassSet::only(3), u16::MAX)]);
    assert_eq!(bed.send(&frames).0.len(), 0);
    assert!(!bed.io.settle());
    let received = bed.poll();
    assert_eq!(pauses(&received[..1]), [(ClassSet::only(3), 0)]);
    assert_eq!(&received[1..], frames);
    assert_eq!(bed.mem().sent_all(0), frames);
    bed.board.add(&[Fault::new(0, FaultKind::Lose)]).unwrap();
    assert_eq!(bed.receive(&frames), frames, "no fault begins any more");
    assert!(bed.io.settle());
    assert_eq!(bed.board.counters().ended_of_port(0), [0; ROWS]);
    bed.end();
}

#[test]
fn storms_with_a_common_priority_end_with_one_xon() {
    let (both, three) = (ClassSet::from_bits(0x18), ClassSet::only(3));
    let mut bed = Bed::new("[{storm: p1, priorities: 3, for: 2ms}, {storm: p1, priorities: [3, 4], for: 4ms}]");
    assert_eq!(pauses(&bed.poll()), [(both, u16::MAX)]);
    bed.pass(Nanos(2_000_000));
    assert_eq!(pauses(&bed.poll()), [(both, u16::MAX)], "no XON of the first one");
    bed.pass(Nanos(2_000_000));
    bed.mem().spare_buffers = 0;
    assert_eq!(bed.poll().len(), 0);
    bed.mem().spare_buffers = usize::MAX;
    assert_eq!(pauses(&bed.poll()), [(both, 0)], "XON waits for a buffer");
    assert_eq!(bed.poll().len(), 0);
    bed.mem().spare_buffers = 0;
    let id = bed.board.add(&[Fault::new(0, FaultKind::Storm { priorities: three })]).unwrap()[0];
    assert_eq!(bed.poll().len(), 0);
    assert_eq!(bed.board.faults().last().map(|fault| (fault.id, fault.hits[PFC_ROW])), Some((id, 0)));
    bed.mem().spare_buffers = usize::MAX;
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    bed.end();
}

#[test]
fn only_held_frames_and_storms_keep_an_lcore_busy() {
    let mut bed = Bed::new("[{lose: p1}, {storm: p1, at: 1ms, for: 1ms}, {delay: p2, by: 1ms}]");
    let after = |bed: &Bed, nanos| Ticks(bed.time.load(Ordering::Relaxed) + nanos);
    bed.poll();
    assert!(!bed.io.is_busy(after(&bed, 900_000)));
    assert!(bed.io.is_busy(after(&bed, 1_100_000)), "the storm begins before the end of the rest");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.poll().len(), 1);
    bed.pass(Nanos(1_000_000));
    assert!(bed.io.is_busy(after(&bed, 1)), "XON is due");
    assert_eq!(bed.poll().len(), 1);
    assert!(!bed.io.is_busy(after(&bed, 1_000_000)), "it is over");
    let frames = bed.frames(1);
    bed.mem().inject(1, &frames[0]);
    bed.io.rx(1, 32, &mut Burst::new());
    assert!(bed.io.is_busy(after(&bed, 1)), "a frame is held");
    bed.end();
}

#[test]
fn reordered_frames_that_left_by_their_time_make_room() {
    let mut bed = Bed::new("[{reorder: p1, behind: 64, toward: switch}]");
    for _ in 0..3 {
        let frames = bed.frames(8);
        assert_eq!(bed.receive(&frames).len(), 0);
        bed.pass(REORDER_WAIT);
        assert_eq!(bed.poll(), frames);
    }
    assert_eq!((bed.counts(), bed.board.faults()[0].passed), (vec![24], 0));
    bed.end();
}

#[test]
fn frames_that_leave_early_keep_room_for_pfc() {
    let mut hold = Hold::new(1, 2);
    for _ in 0..3 * HELD_FRAMES {
        if let Ok(ticket) = hold.delay(1, 0, 0, Ticks(10)) {
            hold.hasten(ticket, 0);
            hold.pop(0);
        }
    }
    for _ in 0..HELD_PFC_FRAMES {
        hold.delay(1, 0, PFC_ROW, Ticks(10)).unwrap();
    }
    assert_eq!(hold.delay(1, 0, PFC_ROW, Ticks(10)), Err(1));
}

#[test]
fn corruption_spares_the_padding() {
    let mut bed = Bed::new("[{corrupt: p1, toward: switch}]");
    let mut frame = udp(0, 0, 9, 0);
    let end = frame.len();
    frame.resize(1000, 0);
    for _ in 0..50 {
        let received = bed.receive(std::slice::from_ref(&frame));
        assert_eq!(received[0][end..], frame[end..]);
        assert_ne!(received[0][..end], frame[..end]);
    }
    bed.end();
}
