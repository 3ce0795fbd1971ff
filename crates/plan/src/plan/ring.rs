//! The hand-off ring: one lcore passes frames to another.
//!
//! It has one producer and one consumer, a bounded size, no lock and no waiting. Both sides work in bursts. Pushed
//! items are visible after [`Producer::publish`]; slots of popped items are free again after [`Consumer::release`].
//! Each is one store. The indices are on separate cache lines, and each side caches the last value of the other's
//! index. So a cache line moves between the cores once per burst instead of once per item.
//!
//! Positions only grow (and wrap as `usize` does); slot `position & mask` holds the item. The invariant is
//! `head <= tail <= head + capacity`: items from `head` to `tail` belong to the consumer, all other slots to the
//! producer. A ring with a slot for every frame that can be admitted never fills. A full ring returns the item to the
//! caller.

use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

/// Creates a ring for `capacity` items, rounded up to a power of two.
#[must_use]
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.next_power_of_two();
    let shared = Arc::new(Shared {
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        tail: CachePadded::new(AtomicUsize::new(0)),
        head: CachePadded::new(AtomicUsize::new(0)),
    });
    let producer = Producer { shared: shared.clone(), next: 0, published: 0, head_seen: 0 };
    (producer, Consumer { shared, next: 0, released: 0, tail_seen: 0 })
}

/// Each pair of `lcores` lcores once, for the rings between them.
pub fn lcore_pairs(lcores: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..lcores).flat_map(move |one| (one + 1..lcores).map(move |other| (one, other)))
}

struct Shared<T> {
    /// The slots; their number is a power of two.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Position after the last published item. Only the producer stores it.
    tail: CachePadded<AtomicUsize>,
    /// Position of the first slot that is not released. Only the consumer stores it.
    head: CachePadded<AtomicUsize>,
}

// SAFETY: a slot is accessed by one side at a time: by the consumer from the producer's Release store of `tail` to the
// consumer's Release store of `head`, otherwise by the producer. Each side loads the other's index with Acquire before
// it accesses a slot. So no two threads ever hold a reference to one item, and T: Send suffices to move it.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Moves the item at `position` out.
    ///
    /// # Safety
    /// The slot holds a published item, the caller is the side that may access the slot, and no code reads the item
    /// again.
    #[inline]
    unsafe fn read(&self, position: usize) -> T {
        // SAFETY: guaranteed by the caller.
        self.slot(position).with(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for Shared<T> {
    /// Drops the items that were never popped: those from `head` to `tail`. Both ends are gone, and each has stored its
    /// index.
    fn drop(&mut self) {
        let (mut head, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        while head != tail {
            // SAFETY: items from `head` to `tail` were published and not popped. `&mut self` excludes all other access,
            // and the count in `Arc` orders this after everything that both ends did. Each item is read once.
            drop(unsafe { self.read(head) });
            head = head.wrapping_add(1);
        }
    }
}

/// The sending end. Its drop publishes items that were pushed and not published.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// Position of the next item.
    next: usize,
    /// Value of `tail`.
    published: usize,
    /// Last seen value of `head`: at most its present value.
    head_seen: usize,
}

impl<T> Producer<T> {
    /// Number of items that the ring can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }

    /// Writes `item` into the next slot; the consumer sees it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// The item, if the ring is full.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.room_seen() == 0 && self.look() == 0 {
            return Err(item);
        }
        // SAFETY: `next - head_seen < capacity`, so the consumer released this slot, if it ever owned it, before the
        // Release store that `look` saw. The consumer gets it again only after `tail` has passed `next`. An item that
        // was in the slot was moved out, so the write loses none.
        self.shared.slot(self.next).with_mut(|slot| unsafe {
            (*slot).write(item);
        });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Makes all pushed items visible to the consumer: one store, or none if there are no new items. Returns their
    /// number.
    #[inline]
    pub fn publish(&mut self) -> usize {
        let new = self.next.wrapping_sub(self.published);
        if new != 0 {
            self.shared.tail.store(self.next, Ordering::Release);
            self.published = self.next;
        }
        new
    }

    /// Number of items ever pushed, published or not; wraps as `usize` does.
    #[must_use]
    pub fn pushed(&self) -> usize {
        self.next
    }

    /// Number of items that can be pushed now: exact if it is less than half of the ring, else a lower bound of at
    /// least half. Loads the consumer's index only if less than half was free at the last look.
    #[inline]
    pub fn room(&mut self) -> usize {
        let seen = self.room_seen();
        if seen < self.capacity().div_ceil(2) { self.look() } else { seen }
    }

    #[inline]
    fn room_seen(&self) -> usize {
        self.capacity() - self.next.wrapping_sub(self.head_seen)
    }

    fn look(&mut self) -> usize {
        self.head_seen = self.shared.head.load(Ordering::Acquire);
        self.room_seen()
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.publish();
    }
}

/// The receiving end. Items that are left when it is dropped are dropped with the ring, by the end that goes last.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Position of the next item.
    next: usize,
    /// Value of `head`.
    released: usize,
    /// Last seen value of `tail`: at most its present value.
    tail_seen: usize,
}

impl<T> Consumer<T> {
    /// Loads the producer's index. Returns the number of items that can be popped.
    #[inline]
    pub fn refresh(&mut self) -> usize {
        self.tail_seen = self.shared.tail.load(Ordering::Acquire);
        self.tail_seen.wrapping_sub(self.next)
    }

    /// Pops the next item among those that [`refresh`](Self::refresh) saw; `None` if all of these have been popped.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.tail_seen {
            return None;
        }
        let position = self.next;
        // Advanced first, so that not even a panic below could read an item twice.
        self.next = position.wrapping_add(1);
        // SAFETY: `head <= position < tail_seen`: the item was published before the Release store that `refresh` saw.
        // The producer does not access the slot until `release`, and `next` has moved on.
        Some(unsafe { self.shared.read(position) })
    }

    /// Number of items ever popped; wraps as `usize` does.
    #[must_use]
    pub fn popped(&self) -> usize {
        self.next
    }

    /// Returns the slots of all popped items to the producer: one store, or none if no item was popped.
    #[inline]
    pub fn release(&mut self) {
        if self.released != self.next {
            self.shared.head.store(self.next, Ordering::Release);
            self.released = self.next;
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.release();
    }
}
