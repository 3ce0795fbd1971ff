//! The last records of one writer, read meanwhile.
//!
//! Writer and reader are threads of their own and never wait. Records are numbered, and all their words are the number: one
//! that was read half written has two of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Arc;
use loom::thread;

use crate::history_ring::HistoryRing;

/// Whatever the reader sees of three records in two slots is whole, and never older than what it saw before. `seen` learns
/// how many records it saw at most, so that the caller knows that it saw any.
pub fn records_are_whole(starts: [fn(); 2], seen: &AtomicUsize) {
    let history = Arc::new(HistoryRing::<2, 2>::default());
    let written = history.clone();
    let writer = thread::spawn(move || {
        starts[0]();
        (1..=3).for_each(|number| written.note([number; 2]));
    });
    let reader = thread::spawn(move || {
        starts[1]();
        let (mut newest, mut count) = (0, 0);
        for _ in 0..2 {
            for record in history.last() {
                assert_eq!(record, [record[0]; 2], "a record is half another");
                assert!(record[0] >= newest, "a record is older than one before");
                (newest, count) = (record[0], count + 1);
            }
        }
        count
    });
    writer.join().unwrap();
    seen.fetch_max(reader.join().unwrap(), Ordering::Relaxed);
}
