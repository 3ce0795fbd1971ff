//! Model of the history ring: one thread writes records while another reads the last ones.
//!
//! Neither thread waits. Each record has a number, and every word of the record is that number. A half-written record
//! therefore has two different words.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Arc;
use loom::thread;

use crate::history_ring::HistoryRing;

/// Asserts that each of three records read through two slots is whole, and never older than a record read before.
/// `seen` receives the most records read at once, so the caller can check that some were read.
pub fn history_ring_reader_sees_whole_records(starts: [fn(); 2], seen: &AtomicUsize) {
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
