//! Tests of the ring of decisions; `tests/loom` has its model.

use super::history_ring::HistoryRing;

#[test]
fn history_ring_keeps_the_newest_records() {
    let history = HistoryRing::<2, 5>::default();
    assert_eq!(history.last(), [[0; 2]; 0]);
    for number in 0..10 {
        history.note([number; 2]);
    }
    assert_eq!(history.last(), [9, 8, 7, 6].map(|number| [number; 2]));
}

#[test]
fn concurrent_reader_sees_no_half_written_record() {
    const RECORDS: u64 = 300_000;
    let history = HistoryRing::<8, 5>::default();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..RECORDS).for_each(|number| history.note([number; 8])));
        let mut newest = 0;
        while newest + 1 < RECORDS {
            for record in history.last() {
                assert_eq!(record, [record[0]; 8]);
                newest = newest.max(record[0]);
            }
        }
    });
}
