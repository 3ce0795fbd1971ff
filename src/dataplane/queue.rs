//! Egress queues: lists through one slab of descriptors, so that any queue may hold the whole buffer and none allocates.

use crate::units::Cells;
use crate::wire::parse::L3;

const NONE: u32 = u32::MAX;

/// What must be known of a frame when it leaves: one word, so that it moves in a register. Moved field by field it was
/// read back wider than it had been written, and the loads waited for the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Bytes of the frame.
    pub len: u16,
    /// Cells charged for it.
    pub cells: u16,
    /// Port it came in by.
    pub ingress: u8,
    /// Priority group it was charged to.
    pub group: u8,
    /// Queue it leaves by, in the lowest three bits, and its traffic class in the next.
    queue: u8,
    /// Where and what its network header is, and whether it may be marked.
    ip: u8,
}

const _: () = assert!(std::mem::size_of::<Tag>() == 8);

impl Tag {
    /// A frame of `len` bytes in `cells` cells of (`ingress`, `group`), leaving by `queue`; no IP as far as is known.
    #[inline]
    #[must_use]
    pub fn new(len: u16, cells: u16, ingress: u8, group: u8, queue: u8) -> Self {
        Self { len, cells, ingress, group, queue: queue & 7, ip: 0 }
    }

    /// The same frame of traffic class `class`; without it, it is of class 0.
    #[inline]
    #[must_use]
    pub fn with_class(self, class: u8) -> Self {
        Self { queue: self.queue | (class & 7) << 3, ..self }
    }

    /// What it is charged to: the port it came in by, its priority group, its cells.
    #[inline]
    #[must_use]
    pub fn charge(self) -> (usize, usize, Cells) {
        (usize::from(self.ingress), usize::from(self.group & 7), Cells(u32::from(self.cells)))
    }

    /// Queue it leaves by.
    #[inline]
    #[must_use]
    pub fn queue(self) -> usize {
        usize::from(self.queue & 7)
    }

    /// Its traffic class.
    #[inline]
    #[must_use]
    pub fn class(self) -> u8 {
        self.queue >> 3 & 7
    }

    /// The same frame with a network header `l3` at `offset`, which is below 64.
    #[inline]
    #[must_use]
    pub fn with_ip(self, l3: L3, offset: u8, ecn_capable: bool) -> Self {
        debug_assert!(offset < 64, "two tags end at 22");
        // ECN-capable is IP: the two bits of L3 stand for all three.
        let kind = if ecn_capable { l3 as u8 } else { 0 };
        Self { ip: offset << 2 | kind, ..self }
    }

    /// The same frame, marked: not to be marked, or counted, again.
    #[inline]
    #[must_use]
    pub fn marked(self) -> Self {
        Self { ip: 0, ..self }
    }

    /// Network layer and offset of its header, if the frame is ECN-capable.
    #[inline]
    #[must_use]
    pub fn markable(self) -> Option<(L3, usize)> {
        let l3 = match self.ip & 3 {
            1 => L3::V4,
            2 => L3::V6,
            _ => return None,
        };
        Some((l3, usize::from(self.ip >> 2)))
    }
}

/// A place for a frame that waits.
#[derive(Debug)]
struct Slot<P> {
    /// `None` while vacant.
    packet: Option<P>,
    tag: Tag,
    next: u32,
}

/// All descriptors of an lcore. Vacant ones are reused last in, first out, so that few are hot when queues are short.
#[derive(Debug)]
pub struct Slab<P> {
    slots: Vec<Slot<P>>,
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
    fn insert(&mut self, packet: P, tag: Tag) -> Result<u32, P> {
        let index = self.vacant;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.vacant = slot.next;
            slot.packet = Some(packet);
            slot.tag = tag;
            self.held += 1;
            return Ok(index);
        }
        if self.slots.len() == self.capacity {
            return Err(packet);
        }
        self.slots.push(Slot { packet: Some(packet), tag, next: NONE });
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

    /// Forgets more cells than wait now.
    pub fn clear_watermark(&mut self) {
        self.cells_highest = self.cells;
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
    pub fn push<P>(&mut self, slab: &mut Slab<P>, packet: P, tag: Tag) -> Result<(), P> {
        let index = slab.insert(packet, tag)?;
        if self.frames == 0 {
            self.head = index;
            self.head_len = u32::from(tag.len);
        } else {
            slab.slots[self.tail as usize].next = index;
        }
        self.tail = index;
        self.frames += 1;
        self.cells += u32::from(tag.cells);
        self.cells_highest = self.cells_highest.max(self.cells);
        self.bytes += u64::from(tag.len);
        Ok(())
    }

    /// Puts a frame that was taken back before all others.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_front<P>(&mut self, slab: &mut Slab<P>, packet: P, tag: Tag) -> Result<(), P> {
        let index = slab.insert(packet, tag)?;
        if self.frames == 0 {
            self.tail = index;
        } else {
            slab.slots[index as usize].next = self.head;
        }
        self.head = index;
        self.head_len = u32::from(tag.len);
        self.frames += 1;
        self.cells += u32::from(tag.cells);
        self.bytes += u64::from(tag.len);
        Ok(())
    }

    /// What is known of each frame, first to last, for who checks the queue: as far as the list goes, whatever is counted.
    pub fn tags<'a, P>(&self, slab: &'a Slab<P>) -> impl Iterator<Item = Tag> + 'a {
        let (first, last) = if self.frames == 0 { (NONE, NONE) } else { (self.head, self.tail) };
        let mut next = first;
        let walk = std::iter::from_fn(move || {
            let slot = slab.slots.get(next as usize).filter(|slot| slot.packet.is_some())?;
            next = if next == last { NONE } else { slot.next };
            Some(slot.tag)
        });
        // A list that bites its own tail has no more frames than the slab.
        walk.take(slab.slots.len() + 1)
    }

    /// Takes the first frame.
    #[inline]
    pub fn pop<P>(&mut self, slab: &mut Slab<P>) -> Option<(P, Tag)> {
        if self.frames == 0 {
            return None;
        }
        let index = self.head;
        let slot = &mut slab.slots[index as usize];
        let (packet, tag, next) = (slot.packet.take()?, slot.tag, slot.next);
        slot.next = slab.vacant;
        slab.vacant = index;
        slab.held -= 1;
        self.frames -= 1;
        self.cells -= u32::from(tag.cells);
        self.bytes -= u64::from(tag.len);
        if self.frames > 0 {
            self.head = next;
            self.head_len = u32::from(slab.slots[next as usize].tag.len);
        }
        Some((packet, tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_tag_tells_what_may_be_marked() {
        let tag = Tag::new(1, 1, 0, 0, 0);
        assert_eq!(tag.markable(), None);
        assert_eq!(tag.with_ip(L3::V4, 14, true).markable(), Some((L3::V4, 14)));
        assert_eq!(tag.with_ip(L3::V6, 22, true).markable(), Some((L3::V6, 22)));
        assert_eq!(tag.with_ip(L3::V4, 14, false).markable(), None);
        assert_eq!(tag.with_ip(L3::Other, 14, true).markable(), None);
    }

    proptest! {
        #[test]
        fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, 0_u8..5), 0..500)) {
            let mut slab = Slab::new(50);
            let mut queues = vec![Queue::default(); 4];
            let mut model = vec![VecDeque::new(); 4];
            for (number, (queue, operation)) in operations.into_iter().enumerate() {
                if operation < 2 {
                    let tag = Tag::new(64 + number as u16, 1 + (number % 7) as u16, 0, 0, queue as u8);
                    let full = slab.held() == 50;
                    prop_assert_eq!(queues[queue].push(&mut slab, number, tag).is_err(), full);
                    if !full {
                        model[queue].push_back(number);
                    }
                } else if operation == 2 {
                    // Taken, and put back: nothing has changed.
                    if let Some((number, tag)) = queues[queue].pop(&mut slab) {
                        prop_assert!(queues[queue].push_front(&mut slab, number, tag).is_ok());
                    }
                } else {
                    let popped = queues[queue].pop(&mut slab).map(|(number, _)| number);
                    prop_assert_eq!(popped, model[queue].pop_front());
                }
                for (queue, model) in queues.iter().zip(&model) {
                    prop_assert_eq!(queue.frames() as usize, model.len());
                    let lengths = queue.tags(&slab).map(|tag| usize::from(tag.len) - 64);
                    prop_assert!(lengths.eq(model.iter().copied()));
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
