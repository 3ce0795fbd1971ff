//! Model of the hand-off ring between two lcores.
//!
//! Each end is a thread that runs a bounded number of bursts and never waits. Items left over are taken after both have
//! ended. Model checking with loom detects a slot that both ends access without order, and an item read before it was
//! written.

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use crate::ring::{Consumer, ring};

/// Pops all visible items. Each must be the next in order.
fn take(consumer: &mut Consumer<Box<usize>>, next: &mut usize) {
    consumer.refresh();
    while let Some(item) = consumer.pop() {
        assert_eq!(*item, *next, "an item is lost, doubled or out of order");
        *next += 1;
    }
    consumer.release();
}

/// Asserts that items pass in order and once each, through a ring of two slots in up to four bursts of two. `farthest`
/// receives the most items that passed, so the caller can check that slots were reused.
pub fn ring_passes_items_in_order(starts: [fn(); 2], farthest: &AtomicUsize) {
    let (mut producer, mut consumer) = ring(2);
    let giver = thread::spawn(move || {
        starts[0]();
        let mut sent = 0;
        for _ in 0..4 {
            for _ in 0..producer.room().min(2) {
                producer.push(Box::new(sent)).expect("there was room");
                sent += 1;
            }
            producer.publish();
        }
        (producer, sent)
    });
    let taker = thread::spawn(move || {
        starts[1]();
        let mut received = 0;
        for _ in 0..4 {
            take(&mut consumer, &mut received);
        }
        (consumer, received)
    });
    let (producer, sent) = giver.join().unwrap();
    let (mut consumer, mut received) = taker.join().unwrap();
    farthest.fetch_max(received, Ordering::Relaxed);
    drop(producer);
    take(&mut consumer, &mut received);
    assert_eq!(sent, received);
}

/// Drops either end first, with items popped, published, and only pushed. Each item is dropped once.
pub fn items_left_in_a_ring_are_dropped_once(starts: [fn(); 2]) {
    // std's `Arc`, not loom's: it only counts, and creates no memory ordering.
    let item = std::sync::Arc::new(());
    let (mut producer, mut consumer) = ring(4);
    let mine = item.clone();
    let giver = thread::spawn(move || {
        starts[0]();
        producer.push(mine.clone()).unwrap();
        producer.push(mine.clone()).unwrap();
        producer.publish();
        producer.push(mine).unwrap();
    });
    let taker = thread::spawn(move || {
        starts[1]();
        consumer.refresh();
        drop(consumer.pop());
    });
    giver.join().unwrap();
    taker.join().unwrap();
    assert_eq!(std::sync::Arc::strong_count(&item), 1, "an item is lost or dropped twice");
}
