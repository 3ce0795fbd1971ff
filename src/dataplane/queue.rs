//! Egress queues: lists through one slab of descriptors, so that any queue may hold the whole buffer and none allocates.

use crate::wire::parse::L3;

const NONE: u32 = u32::MAX;

/// A frame that waits, and what must be known of it when it leaves.
#[derive(Debug)]
pub struct Descriptor<P> {
    /// The frame; `None` in a vacant slot.
    pub packet: Option<P>,
    pub(super) next: u32,
    /// Bytes of the frame.
    pub len: u16,
    /// Cells charged for it.
    pub cells: u16,
    /// Port it came in by.
    pub ingress: u8,
    /// Priority group it was charged to.
    pub group: u8,
    /// Offset of its network header.
    pub l3_offset: u8,
    /// Network layer.
    pub l3: L3,
    /// Whether it is ECT, and so may be marked.
    pub ecn_capable: bool,
}

impl<P> Descriptor<P> {
    /// A frame not in any queue yet.
    #[inline]
    pub fn new(packet: P, len: u16, cells: u16) -> Self {
        Self {
            packet: Some(packet),
            next: NONE,
            len,
            cells,
            ingress: 0,
            group: 0,
            l3_offset: 0,
            l3: L3::Other,
            ecn_capable: false,
        }
    }
}

/// All descriptors of an lcore. Vacant ones are reused last in, first out, so that few are hot when queues are short.
#[derive(Debug)]
pub struct Slab<P> {
    slots: Vec<Descriptor<P>>,
    capacity: usize,
    vacant: u32,
    held: u32,
}

impl<P> Slab<P> {
    /// Room for `capacity` frames: the cells of the buffer, since a frame takes one at least.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity < NONE as usize, "a buffer of fewer cells than an index can count");
        Self { slots: Vec::with_capacity(capacity), capacity, vacant: NONE, held: 0 }
    }

    /// Frames in all queues.
    #[inline]
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    #[inline]
    fn insert(&mut self, descriptor: Descriptor<P>) -> Result<u32, Descriptor<P>> {
        let index = self.vacant;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.vacant = slot.next;
            *slot = descriptor;
            self.held += 1;
            return Ok(index);
        }
        if self.slots.len() == self.capacity {
            return Err(descriptor);
        }
        self.slots.push(descriptor);
        self.held += 1;
        Ok(self.slots.len() as u32 - 1)
    }
}

/// One egress queue.
#[derive(Debug, Clone)]
pub struct Queue {
    head: u32,
    tail: u32,
    frames: u32,
    cells: u32,
    cells_highest: u32,
    bytes: u64,
    head_len: u32,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, frames: 0, cells: 0, cells_highest: 0, bytes: 0, head_len: 0 }
    }
}

impl Queue {
    /// Bytes that wait.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Cells that wait.
    #[inline]
    #[must_use]
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Most cells that ever waited.
    #[must_use]
    pub fn cells_highest(&self) -> u32 {
        self.cells_highest
    }

    /// Frames that wait.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Length of the first frame; of the last one sent if there is none.
    #[inline]
    #[must_use]
    pub fn head_len(&self) -> u32 {
        self.head_len
    }

    /// Whether nothing waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Gives it back if the slab is full, which admission makes impossible.
    #[inline]
    pub fn push<P>(&mut self, slab: &mut Slab<P>, descriptor: Descriptor<P>) -> Result<(), Descriptor<P>> {
        let (len, cells) = (u32::from(descriptor.len), u32::from(descriptor.cells));
        let index = slab.insert(descriptor)?;
        if self.frames == 0 {
            self.head = index;
            self.head_len = len;
        } else {
            slab.slots[self.tail as usize].next = index;
        }
        self.tail = index;
        self.frames += 1;
        self.cells += cells;
        self.cells_highest = self.cells_highest.max(self.cells);
        self.bytes += u64::from(len);
        Ok(())
    }

    /// Takes the first frame; the descriptor that comes back holds it.
    #[inline]
    pub fn pop<P>(&mut self, slab: &mut Slab<P>) -> Option<Descriptor<P>> {
        if self.frames == 0 {
            return None;
        }
        let index = self.head;
        let slot = &mut slab.slots[index as usize];
        let taken = Descriptor { packet: slot.packet.take(), ..*slot };
        slot.next = slab.vacant;
        slab.vacant = index;
        slab.held -= 1;
        self.frames -= 1;
        self.cells -= u32::from(taken.cells);
        self.bytes -= u64::from(taken.len);
        if self.frames > 0 {
            self.head = taken.next;
            self.head_len = u32::from(slab.slots[self.head as usize].len);
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, any::<bool>()), 0..500)) {
            let mut slab = Slab::new(50);
            let mut queues = vec![Queue::default(); 4];
            let mut model = vec![VecDeque::new(); 4];
            for (number, (queue, push)) in operations.into_iter().enumerate() {
                if push {
                    let descriptor = Descriptor::new(number, 64 + number as u16, 1 + (number % 7) as u16);
                    let full = slab.held() == 50;
                    prop_assert_eq!(queues[queue].push(&mut slab, descriptor).is_err(), full);
                    if !full {
                        model[queue].push_back(number);
                    }
                } else {
                    let popped = queues[queue].pop(&mut slab).and_then(|descriptor| descriptor.packet);
                    prop_assert_eq!(popped, model[queue].pop_front());
                }
                for (queue, model) in queues.iter().zip(&model) {
                    prop_assert_eq!(queue.frames() as usize, model.len());
                    prop_assert_eq!(queue.bytes(), model.iter().map(|n| 64 + *n as u64).sum::<u64>());
                    prop_assert_eq!(queue.cells() as usize, model.iter().map(|n| 1 + n % 7).sum::<usize>());
                    if let Some(first) = model.front() {
                        prop_assert_eq!(queue.head_len() as usize, 64 + first);
                    }
                }
            }
        }
    }
}
