//! Tests of `handoff.rs`. They are in a file of their own because `tests/loom` includes that file and does not need
//! them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;

use super::ring::{Consumer, ring};

fn pop_all<T>(consumer: &mut Consumer<T>) -> Vec<T> {
    consumer.refresh();
    std::iter::from_fn(|| consumer.pop()).collect()
}

#[test]
fn a_burst_is_seen_once_published_and_refreshed() {
    let (mut producer, mut consumer) = ring(8);
    producer.push(1).unwrap();
    producer.push(2).unwrap();
    assert_eq!((consumer.refresh(), consumer.pop()), (0, None), "nothing is published");
    producer.publish();
    assert_eq!(consumer.pop(), None, "nothing was refreshed");
    assert_eq!(consumer.refresh(), 2);
    producer.push(3).unwrap();
    producer.publish();
    assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [Some(1), Some(2), None]);
    assert_eq!((consumer.refresh(), consumer.pop()), (1, Some(3)));
}

#[test]
fn ring_has_room_for_released_slots() {
    let (mut producer, mut consumer) = ring(2);
    producer.push('a').unwrap();
    producer.push('b').unwrap();
    producer.publish();
    assert_eq!((producer.room(), producer.push('c')), (0, Err('c')));
    assert_eq!(pop_all(&mut consumer), ['a', 'b']);
    assert_eq!((producer.room(), producer.push('c')), (0, Err('c')), "popped, not released");
    consumer.release();
    assert_eq!(producer.room(), 2);
    producer.push('c').unwrap();
    producer.publish();
    assert_eq!(pop_all(&mut consumer), ['c']);
}

#[test]
fn capacity_is_a_power_of_two() {
    for (asked, got) in [(0, 1), (1, 1), (2, 2), (3, 4), (1000, 1024)] {
        let (mut producer, _consumer) = ring::<u8>(asked);
        assert_eq!((producer.capacity(), producer.room()), (got, got));
        for _ in 0..got {
            producer.push(0).unwrap();
        }
        assert_eq!(producer.push(0), Err(0));
    }
}

#[test]
fn room_is_exact_below_half_and_at_least_half_above() {
    let (mut producer, mut consumer) = ring(8);
    for item in 0..4 {
        producer.push(item).unwrap();
    }
    producer.publish();
    pop_all(&mut consumer);
    consumer.release();
    assert_eq!(producer.room(), 4, "half is free as last seen: no look");
    producer.push(4).unwrap();
    assert_eq!(producer.room(), 7);
}

/// Five items: two are popped, one of these is released, and one item is not published. Strong references count the
/// live ones.
#[test]
fn remaining_items_are_dropped_with_the_last_end_of_the_ring() {
    for producer_first in [true, false] {
        let item = Arc::new(());
        let (mut producer, mut consumer) = ring(8);
        for _ in 0..4 {
            producer.push(item.clone()).unwrap();
        }
        producer.publish();
        producer.push(item.clone()).unwrap();
        consumer.refresh();
        drop(consumer.pop());
        consumer.release();
        drop(consumer.pop());
        assert_eq!(Arc::strong_count(&item), 1 + 3);
        if producer_first {
            drop(producer);
            assert_eq!(Arc::strong_count(&item), 1 + 3);
            assert_eq!(consumer.refresh(), 3, "a producer that goes publishes what it pushed");
            drop(consumer);
        } else {
            drop(consumer);
            assert_eq!(Arc::strong_count(&item), 1 + 3);
            drop(producer);
        }
        assert_eq!(Arc::strong_count(&item), 1);
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Push(usize),
    Publish,
    Room,
    Refresh,
    Pop(usize),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1..6_usize).prop_map(Step::Push),
        Just(Step::Publish),
        Just(Step::Room),
        Just(Step::Refresh),
        (1..6_usize).prop_map(Step::Pop),
        Just(Step::Release),
    ]
}

/// The model of the ring: all items in it, how many of them are published and seen, and the popped slots not yet
/// released.
#[derive(Default)]
struct Reference {
    items: VecDeque<u64>,
    published: usize,
    seen: usize,
    popped: usize,
    pushed: u64,
}

proptest! {
    #[test]
    fn ring_agrees_with_a_deque(capacity in 1..9_usize, steps in prop::collection::vec(step(), 0..200)) {
        let (mut producer, mut consumer) = ring(capacity);
        let capacity = producer.capacity();
        let mut reference = Reference::default();
        for step in steps {
            let free = capacity - reference.items.len() - reference.popped;
            match step {
                Step::Push(count) => for nth in 0..count {
                    let fits = nth < free;
                    prop_assert_eq!(producer.push(reference.pushed).is_ok(), fits);
                    if fits {
                        reference.items.push_back(reference.pushed);
                        reference.pushed += 1;
                    }
                },
                Step::Publish => {
                    producer.publish();
                    reference.published = reference.items.len();
                }
                Step::Room => {
                    let room = producer.room();
                    prop_assert!(room == free || room < free && 2 * room >= capacity, "{} of {}", room, free);
                }
                Step::Refresh => {
                    prop_assert_eq!(consumer.refresh(), reference.published);
                    reference.seen = reference.published;
                }
                Step::Pop(count) => for _ in 0..count {
                    let expected = if reference.seen > 0 { reference.items.pop_front() } else { None };
                    prop_assert_eq!(consumer.pop(), expected);
                    if expected.is_some() {
                        reference.seen -= 1;
                        reference.published -= 1;
                        reference.popped += 1;
                    }
                },
                Step::Release => {
                    consumer.release();
                    reference.popped = 0;
                }
            }
        }
    }
}

/// A million items with their own heap memory pass eight slots in bursts of changing length: all arrive, in order.
#[test]
fn ring_passes_a_million_items_in_order() {
    const ITEMS: u64 = 1_000_000;
    let (mut producer, mut consumer) = ring(8);
    let sender = thread::spawn(move || {
        let mut next = 0;
        while next < ITEMS {
            let burst = (next % 5 + 1).min(ITEMS - next);
            for _ in 0..burst {
                match producer.push(Box::new(next)) {
                    Ok(()) => next += 1,
                    Err(item) => {
                        assert_eq!(*item, next);
                        thread::yield_now();
                        break;
                    }
                }
            }
            producer.publish();
        }
    });
    let mut expected = 0;
    while expected < ITEMS {
        if consumer.refresh() == 0 {
            thread::yield_now();
        }
        while let Some(item) = consumer.pop() {
            assert_eq!(*item, expected);
            expected += 1;
            if expected % 3 == 0 {
                consumer.release();
            }
        }
        consumer.release();
    }
    sender.join().unwrap();
    assert_eq!(consumer.refresh(), 0);
}
