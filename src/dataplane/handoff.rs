//! The hand-off ring: how one lcore gives frames to another.
//!
//! One producer, one consumer, bounded, no lock and no waiting. Both sides work in bursts: what is pushed is seen after
//! [`Producer::publish`], what is popped is room again after [`Consumer::release`], one store each. The indices lie on
//! cache lines of their own, and each side keeps what it last saw of the other's, so a line moves between the cores
//! once a burst and not once an item.
//!
//! Positions only grow (and wrap as `usize` does); slot `position & mask` holds the item. Always
//! `head <= tail <= head + capacity`, where items from `head` to `tail` are the consumer's and all others the
//! producer's. Sized for all that can be admitted, a ring never fills; one that is full hands the item back.

use std::mem::MaybeUninit;

use crossbeam_utils::CachePadded;

use crate::sync::{Arc, AtomicUsize, Ordering, UnsafeCell};

/// A ring for `capacity` items, rounded up to a power of two.
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

struct Shared<T> {
    /// A power of two of them.
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Position after the last item published. Only the producer stores it.
    tail: CachePadded<AtomicUsize>,
    /// Position of the first slot not given back. Only the consumer stores it.
    head: CachePadded<AtomicUsize>,
}

// SAFETY: a slot is touched by one side at a time: by the consumer from the producer's Release store of `tail` to the
// consumer's Release store of `head`, else by the producer; each side loads the other's index with Acquire before it
// touches a slot. So no two threads ever hold a reference to one item, and T: Send suffices to move it.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline]
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }

    /// Moves the item at `position` out.
    ///
    /// # Safety
    /// The slot holds an item that was published, the caller is the one that may touch it, and nobody reads it again.
    #[inline]
    unsafe fn read(&self, position: usize) -> T {
        // SAFETY: the caller's promise.
        self.slot(position).with(|slot| unsafe { (*slot).assume_init_read() })
    }
}

impl<T> Drop for Shared<T> {
    /// Both ends are gone, and each has stored its index: what lies between them was never popped.
    fn drop(&mut self) {
        let (mut head, tail) = (self.head.load(Ordering::Relaxed), self.tail.load(Ordering::Relaxed));
        while head != tail {
            // SAFETY: items from `head` to `tail` were published and not popped, `&mut self` says nobody else is there,
            // and the count in `Arc` orders this after all that both ends did. Each is read once.
            drop(unsafe { self.read(head) });
            head = head.wrapping_add(1);
        }
    }
}

/// The end that gives. What is pushed and not published when it is dropped is published then.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// Position of the next item.
    next: usize,
    /// What `tail` holds.
    published: usize,
    /// `head` as last seen: at most what it is.
    head_seen: usize,
}

impl<T> Producer<T> {
    /// Items the ring can hold.
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
        // SAFETY: `next - head_seen < capacity`, so the consumer gave this slot back, if it ever had it, before the
        // Release store that `look` saw; it comes back to it only after `tail` has passed `next`. An item that was in
        // the slot was moved out, so writing over it loses none.
        self.shared.slot(self.next).with_mut(|slot| unsafe {
            (*slot).write(item);
        });
        self.next = self.next.wrapping_add(1);
        Ok(())
    }

    /// Makes all that was pushed visible to the consumer: one store, none if nothing is new. Returns how many items are.
    #[inline]
    pub fn publish(&mut self) -> usize {
        let new = self.next.wrapping_sub(self.published);
        if new != 0 {
            self.shared.tail.store(self.next, Ordering::Release);
            self.published = self.next;
        }
        new
    }

    /// Items ever pushed, published or not; wraps as `usize` does.
    #[must_use]
    pub fn pushed(&self) -> usize {
        self.next
    }

    /// Items that can be pushed now: the exact number if it is less than half of the ring, else at least that half.
    /// Looks at the consumer's index only if less than half was free when last seen.
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

/// The end that takes. Items that are left when it is dropped are dropped with the ring, by whichever end goes last.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Position of the next item.
    next: usize,
    /// What `head` holds.
    released: usize,
    /// `tail` as last seen: at most what it is.
    tail_seen: usize,
}

impl<T> Consumer<T> {
    /// Looks what is published: one load. Returns how many items can be popped.
    #[inline]
    pub fn refresh(&mut self) -> usize {
        self.tail_seen = self.shared.tail.load(Ordering::Acquire);
        self.tail_seen.wrapping_sub(self.next)
    }

    /// The next item of those that [`refresh`](Self::refresh) saw; none if they have all been popped.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.tail_seen {
            return None;
        }
        let position = self.next;
        // First, so that not even a panic below could read an item twice.
        self.next = position.wrapping_add(1);
        // SAFETY: `head <= position < tail_seen`: the item was published before the Release store that `refresh` saw,
        // the producer stays away until `release`, and `next` has moved on.
        Some(unsafe { self.shared.read(position) })
    }

    /// Items ever popped; wraps as `usize` does.
    #[must_use]
    pub fn popped(&self) -> usize {
        self.next
    }

    /// Gives the slots of all popped items back to the producer: one store, none if nothing was popped.
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
