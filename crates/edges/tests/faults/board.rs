//! Unit tests of the list of faults and of the held frames.

use super::*;

#[test]
fn refused_reload_changes_nothing_and_a_new_fault_has_a_slot_of_its_own() {
    let mut bed = Bed::new("[{lose: p1}]");
    let table = bed.board.table();
    let mut other = config::parse("test", SWITCH).unwrap();
    other.switch.ports[1].live.trust = holdfast_lossless::qos::Trust::Port;
    let many = [Fault::new(0, FaultKind::Mark); MOST_FAULTS + 1];
    assert_eq!(bed.board.reconfigure(&other.switch, Some(&many)), Err(Refused::TooMany { present: 0 }));
    assert_eq!(bed.board.table(), table);
    bed.board.reconfigure(&other.switch, Some(&many[..1])).unwrap();
    assert_ne!(bed.board.table().classes, table.classes);
    // The lcore counts for the old fault until it polls.
    let slots = [table, bed.board.table()].map(|table| table.entries[0].slot);
    assert_ne!(slots[0], slots[1]);
    bed.poll();
    bed.end();
}

#[test]
fn board_bounds_its_list_and_numbers_are_new() {
    let mut bed = Bed::new("[{lose: p1, for: 1us}]");
    bed.pass(Nanos(1_000));
    let mark = Fault::new(0, FaultKind::Mark);
    let ids = bed.board.add(&[mark; MOST_FAULTS]).unwrap();
    assert_eq!(ids, (2..66).collect::<Vec<u64>>(), "the fault that is over made room");
    assert_eq!(bed.board.add(&[mark]), Err(Refused::Busy), "the lcore has not polled");
    bed.poll();
    assert_eq!(bed.board.add(&[mark]), Err(Refused::TooMany { present: MOST_FAULTS }));
    assert_eq!(bed.board.remove(Some(1)), Err(Refused::Unknown(1)));
    assert_eq!(bed.board.remove(None), Ok(MOST_FAULTS));
    bed.poll();
    assert_eq!(bed.board.add(&[mark]), Ok(vec![66]));
    bed.poll();
    assert_eq!(bed.receive(&[udp(0, 1, 9, 0)]).len(), 1);
    assert_eq!(bed.counts(), [1], "counts of the slot before are not its own");
    let events = bed.board.take_events();
    let is_told = |begins, text| events.iter().any(|event| event.begins == begins && event.text.starts_with(text));
    assert!(is_told(false, "fault 1 ends: {lose: p1, for: 1us}; "), "{events:?}");
    assert!(is_told(true, "fault 66 begins: {mark: p1}"), "{events:?}");
    bed.end();
}

#[test]
fn reload_replaces_the_faults_of_the_configuration_alone() {
    let mut bed = Bed::new("[{lose: p1}]");
    let id = bed.board.add(&[Fault::new(1, FaultKind::Mark)]).unwrap()[0];
    bed.poll();
    let config = config::parse("test", SWITCH).unwrap();
    bed.board.reconfigure(&config.switch, Some(&[Fault::new(0, FaultKind::Duplicate)])).unwrap();
    let faults = bed.board.faults();
    let kinds: Vec<(u64, FaultKind)> = faults.iter().map(|fault| (fault.id, fault.fault.kind)).collect();
    assert_eq!(kinds, [(id, FaultKind::Mark), (id + 1, FaultKind::Duplicate)]);
    assert_eq!(bed.receive(&[udp(0, 0, 9, 0)]).len(), 2);
    bed.end();
}

#[test]
fn hold_gives_back_every_frame_once() {
    let mut hold = Hold::new(1, 2);
    let early = hold.delay(1, 0, 0, Ticks(10)).unwrap();
    hold.delay(2, 1, PFC_ROW, Ticks(5)).unwrap();
    hold.delay(3, 0, 0, Ticks(7)).unwrap();
    hold.append(4, 0, 0).unwrap();
    hold.hasten(early, 0);
    hold.hasten(early, 0);
    assert_eq!((hold.pop(0), hold.pop(0), hold.pop(0), hold.len()), (Some((4, 0)), Some((1, 0)), None, 2));
    hold.put_back(5, 1, 2).unwrap();
    hold.step(Ticks(6));
    assert_eq!((hold.ready(1), hold.ready(0)), (2, 0));
    let mut left: Vec<(i32, usize)> = Vec::new();
    while let Some(ended) = hold.take_any() {
        left.push((ended.frame, ended.lane));
    }
    assert_eq!(left, [(5, 1), (2, 1), (3, 0)]);
    assert!(hold.is_empty());
}
