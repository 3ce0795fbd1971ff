//! PFC storms, and PFC that is late or ignored.

use super::*;

#[test]
fn storm_repeats_xoff_and_ends_with_xon() {
    let (three, gap) = (ClassSet::only(3), Nanos(838_848));
    let mut bed = Bed::new("[{storm: p1, for: 2ms}]");
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    assert_eq!(bed.poll().len(), 0);
    bed.pass(gap);
    assert_eq!(pauses(&bed.poll()), [(three, u16::MAX)]);
    bed.pass(Nanos(2_000_000));
    assert_eq!(pauses(&bed.poll()), [(three, 0)]);
    assert_eq!(bed.poll().len(), 0);
    assert_eq!(bed.counts(), [2], "XON is none of the storm");
    let id = bed.board.add(&[Fault::new(0, FaultKind::Storm { priorities: ClassSet::from_bits(0x18) })]).unwrap()[0];
    assert_eq!(pauses(&bed.poll()), [(ClassSet::from_bits(0x18), u16::MAX)]);
    assert_eq!(bed.board.remove(Some(id)), Ok(1));
    assert_eq!(pauses(&bed.poll()), [(ClassSet::from_bits(0x18), 0)]);
    bed.end();
}

#[test]
fn pfc_to_the_host_is_late_or_ignored_and_data_is_not() {
    let mut bed = Bed::new("[{late: p1, response: 10us}, {ignore: p1, at: 1ms}]");
    let data = bed.frames(1);
    assert_eq!(bed.send(&[pfc(), data[0].clone()]).0, data);
    bed.pass(Nanos(10_000));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.mem().sent_all(0), [pfc()]);
    assert_eq!(bed.receive(&[pfc()]).len(), 1, "PFC of the host is in time");
    bed.pass(Nanos(1_000_000));
    assert_eq!(bed.send(&[pfc(), data[0].clone()]).0, data);
    bed.pass(Nanos(10_000));
    bed.io.free(&mut Burst::new());
    assert_eq!(bed.mem().sent_all(0).len(), 0);
    bed.end();
}
