//! The shelf for decisions; `tests/loom` has its model.

use super::ledge::Ledge;

#[test]
fn the_last_ones_are_kept() {
    let ledge = Ledge::<2, 5>::default();
    assert_eq!(ledge.last(), [[0; 2]; 0]);
    for number in 0..10 {
        ledge.note([number; 2]);
    }
    assert_eq!(ledge.last(), [9, 8, 7, 6].map(|number| [number; 2]));
}

#[test]
fn whoever_reads_meanwhile_sees_none_that_is_half_written() {
    const RECORDS: u64 = 300_000;
    let ledge = Ledge::<8, 5>::default();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..RECORDS).for_each(|number| ledge.note([number; 8])));
        let mut newest = 0;
        while newest + 1 < RECORDS {
            for record in ledge.last() {
                assert_eq!(record, [record[0]; 8]);
                newest = newest.max(record[0]);
            }
        }
    });
}
