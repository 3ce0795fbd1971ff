//! Egress queues: lists of chunks from one slab, so that any queue may hold the whole buffer and none allocates.

use arrayvec::ArrayVec;

use crate::near::prefetch;
use crate::packet::{BURST, Burst};
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
    /// Of no frame.
    pub const NONE: Self = Self { len: 0, cells: 0, ingress: 0, group: 0, queue: 0, ip: 0 };

    /// A frame of `len` bytes in `cells` cells of (`ingress`, `group`), leaving by `queue`; no IP as far as is known.
    #[inline]
    #[must_use]
    pub fn new(len: u16, cells: u16, ingress: u8, group: u8, queue: u8) -> Self {
        Self { len, cells, ingress, group, queue: queue & 7, ip: 0 }
    }

    /// The same frame of a class whose frames go to priority group `group`, then queue `queue`.
    #[inline]
    #[must_use]
    pub fn classified(self, class: u8, group: u8, queue: u8) -> Self {
        Self { group, queue: queue & 7 | (class & 7) << 3, ..self }
    }

    /// The same frame in another length.
    #[must_use]
    pub fn reshaped(self, len: u16, cells: u16) -> Self {
        Self { len, cells, ..self }
    }

    /// Offset of its network header.
    #[inline]
    #[must_use]
    pub fn l3_offset(self) -> u8 {
        self.ip >> 2
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

/// Frames in a chunk: 16 bytes each with an mbuf, so a chunk is a few cache lines one after the other.
const CHUNK: usize = 16;

/// Places for frames that wait in one queue, in order.
#[derive(Debug)]
struct Chunk<P> {
    /// `None` while vacant.
    packets: [Option<P>; CHUNK],
    tags: [Tag; CHUNK],
    next: u32,
}

impl<P> Chunk<P> {
    fn new() -> Self {
        Self { packets: [const { None }; CHUNK], tags: [Tag::NONE; CHUNK], next: NONE }
    }
}

/// All places of an lcore. A queue takes a chunk when it needs one and gives it back when it is through with it, but for its
/// last: vacant ones are reused last in, first out, so that few are hot when queues are short. In a list of single frames
/// each step waited for the load before it, which with standing queues is a miss a frame.
#[derive(Debug)]
pub struct Slab<P> {
    chunks: Vec<Chunk<P>>,
    vacant: Vec<u32>,
    /// Most frames, and how many there are.
    capacity: u32,
    held: u32,
}

impl<P> Slab<P> {
    /// Room for `capacity` frames in `queues` queues: the cells of the buffer, since a frame takes one at least.
    #[must_use]
    pub fn new(capacity: usize, queues: usize) -> Self {
        assert!(capacity < NONE as usize, "a buffer of fewer cells than an index can count");
        // The first and the last chunk of a queue may hold a frame each.
        let chunks = capacity.div_ceil(CHUNK) + 2 * queues;
        let (chunks, vacant) = (Vec::with_capacity(chunks), Vec::with_capacity(chunks));
        Self { chunks, vacant, capacity: capacity as u32, held: 0 }
    }

    /// Frames in all queues.
    #[inline]
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Whether `frames` more find room.
    #[inline]
    #[must_use]
    pub fn has_room(&self, frames: usize) -> bool {
        (self.capacity - self.held) as usize >= frames
    }

    /// A chunk with nothing in it.
    #[cold]
    fn chunk(&mut self) -> u32 {
        self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::new());
            self.chunks.len() as u32 - 1
        })
    }
}

/// Frames of a queue, one after the other from its first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many.
    pub frames: u32,
    /// Their cells.
    pub cells: u32,
    /// Their bytes.
    pub bytes: u64,
}

impl Run {
    /// And the next one.
    #[inline]
    #[must_use]
    pub fn and(self, tag: Tag) -> Self {
        Self {
            frames: self.frames + 1,
            cells: self.cells + u32::from(tag.cells),
            bytes: self.bytes + u64::from(tag.len),
        }
    }
}

/// One egress queue.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The chunks of its first and its last frame; of an empty queue the same, or none if it has never held any.
    head: u32,
    tail: u32,
    /// Where the first frame is in its chunk, and where the next one goes in the last.
    first: u32,
    end: u32,
    frames: u32,
    cells: u32,
    /// As of the last frame taken: until the next one they only become more.
    cells_highest: u32,
    bytes: u64,
}

impl Default for Queue {
    fn default() -> Self {
        let (head, tail, end) = (NONE, NONE, CHUNK as u32);
        Self { head, tail, first: 0, end, frames: 0, cells: 0, cells_highest: 0, bytes: 0 }
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
        self.cells_highest.max(self.cells)
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

    /// Length of the first frame; zero if there is none.
    #[inline]
    #[must_use]
    pub fn head_len<P>(&self, slab: &Slab<P>) -> u32 {
        self.first(slab).1.first().map_or(0, |tag| u32::from(tag.len))
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
    #[inline(always)]
    pub fn push<P>(&mut self, slab: &mut Slab<P>, packet: P, tag: Tag) -> Result<(), P> {
        if !slab.has_room(1) {
            return Err(packet);
        }
        self.append(slab, packet, tag);
        Ok(())
    }

    /// As [`Queue::push`], of a frame that is known to find room ([`Slab::has_room`]).
    #[inline(always)]
    pub fn append<P>(&mut self, slab: &mut Slab<P>, packet: P, tag: Tag) {
        debug_assert!(slab.has_room(1), "who appends has asked");
        if self.end as usize == CHUNK {
            self.extend(slab);
        }
        self.put(slab, (self.tail, self.end), packet, tag);
        self.end += 1;
    }

    #[inline(always)]
    fn put<P>(&mut self, slab: &mut Slab<P>, (chunk, place): (u32, u32), packet: P, tag: Tag) {
        let (chunk, place) = (&mut slab.chunks[chunk as usize], place as usize % CHUNK);
        chunk.packets[place] = Some(packet);
        chunk.tags[place] = tag;
        slab.held += 1;
        self.frames += 1;
        self.cells += u32::from(tag.cells);
        self.bytes += u64::from(tag.len);
    }

    /// Another chunk behind the last.
    #[cold]
    fn extend<P>(&mut self, slab: &mut Slab<P>) {
        let chunk = slab.chunk();
        slab.chunks[chunk as usize].next = NONE;
        match slab.chunks.get_mut(self.tail as usize) {
            Some(tail) => tail.next = chunk,
            None => self.head = chunk,
        }
        (self.tail, self.end) = (chunk, 0);
    }

    /// Puts a frame that was taken back before all others.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub fn push_front<P>(&mut self, slab: &mut Slab<P>, packet: P, tag: Tag) -> Result<(), P> {
        if self.frames == 0 {
            return self.push(slab, packet, tag);
        }
        if slab.held == slab.capacity {
            return Err(packet);
        }
        if self.first == 0 {
            let chunk = slab.chunk();
            slab.chunks[chunk as usize].next = self.head;
            (self.head, self.first) = (chunk, CHUNK as u32);
        }
        self.first -= 1;
        self.put(slab, (self.head, self.first), packet, tag);
        Ok(())
    }

    /// What is known of each frame, first to last, for who checks the queue: as far as the chunks go, whatever is counted.
    pub fn tags<'a, P>(&self, slab: &'a Slab<P>) -> impl Iterator<Item = Tag> + 'a {
        let (mut chunk, mut place) = if self.frames == 0 { (NONE, 0) } else { (self.head, self.first as usize) };
        let (last, end) = (self.tail, self.end as usize);
        let walk = std::iter::from_fn(move || {
            if place == CHUNK {
                (chunk, place) = (slab.chunks.get(chunk as usize)?.next, 0);
            }
            let here = slab.chunks.get(chunk as usize).filter(|_| chunk != last || place < end)?;
            here.packets[place].as_ref()?;
            place += 1;
            Some(here.tags[place - 1])
        });
        // A list that bites its own tail has no more frames than the slab.
        walk.take(slab.chunks.len() * CHUNK + 1)
    }

    /// Takes the first frame.
    #[inline(always)]
    pub fn pop<P>(&mut self, slab: &mut Slab<P>) -> Option<(P, Tag)> {
        if self.frames == 0 {
            return None;
        }
        let chunk = &mut slab.chunks[self.head as usize];
        let place = self.first as usize % CHUNK;
        let (packet, tag) = (chunk.packets[place].take()?, chunk.tags[place]);
        self.taken(slab, Run::default().and(tag));
        Some((packet, tag))
    }

    /// The first frames, as far as they are in one chunk.
    #[inline]
    #[must_use]
    pub fn first<'a, P>(&self, slab: &'a Slab<P>) -> (&'a [Option<P>], &'a [Tag]) {
        let from = (self.first as usize).min(CHUNK);
        let to = CHUNK.min(from + self.frames as usize);
        slab.chunks
            .get(self.head as usize)
            .map_or((&[], &[]), |chunk| (&chunk.packets[from..to], &chunk.tags[from..to]))
    }

    /// Moves frames behind `packets` and `tags` as long as those have room and `goes` says so, as far as they are in one chunk:
    /// it is asked for each frame what is known of it, and told of those that have gone before it. Returns all that went.
    #[inline]
    pub fn take_while<P>(
        &mut self,
        slab: &mut Slab<P>,
        packets: &mut Burst<P>,
        tags: &mut ArrayVec<Tag, BURST>,
        mut goes: impl FnMut(Tag, Run) -> bool,
    ) -> Run {
        let mut run = Run::default();
        let Some(chunk) = slab.chunks.get_mut(self.head as usize) else { return run };
        let from = (self.first as usize).min(CHUNK);
        let places = from..CHUNK.min(from + packets.remaining_capacity().min(self.frames as usize));
        for (packet, &tag) in chunk.packets[places.clone()].iter_mut().zip(&chunk.tags[places]) {
            if !goes(tag, run) {
                break;
            }
            let Some(packet) = packet.take() else {
                unreachable!("a queue's places hold frames from the first to the last");
            };
            packets.push(packet);
            tags.push(tag);
            run = run.and(tag);
        }
        self.taken(slab, run);
        run
    }

    /// Those of `run` are gone, the first frames of the first chunk.
    #[inline(always)]
    fn taken<P>(&mut self, slab: &mut Slab<P>, run: Run) {
        self.cells_highest = self.cells_highest.max(self.cells);
        slab.held -= run.frames;
        self.first += run.frames;
        self.frames -= run.frames;
        self.cells -= run.cells;
        self.bytes -= run.bytes;
        if self.first as usize == CHUNK || self.frames == 0 {
            self.turn(slab);
        }
    }

    /// The last frame of the first chunk was taken, or the last of all: then the chunk is used anew from its beginning.
    fn turn<P>(&mut self, slab: &mut Slab<P>) {
        self.first = 0;
        if self.frames == 0 {
            self.end = 0;
        } else {
            let next = slab.chunks[self.head as usize].next;
            slab.vacant.push(self.head);
            self.head = next;
            // The one behind it is needed a chunk from now.
            if let Some(after) = slab.chunks.get(slab.chunks[next as usize].next as usize) {
                prefetch(&after.packets[0]);
                prefetch(&after.tags[0]);
            }
        }
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
        fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, 0_u8..6), 0..500)) {
            let mut slab = Slab::new(50, 4);
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
                } else if operation == 3 {
                    // All that are in one chunk, or some of them.
                    let (mut packets, mut tags) = (ArrayVec::new(), ArrayVec::new());
                    let first = queues[queue].first(&slab).1.to_vec();
                    let most = first.len().min(number % (CHUNK + 1));
                    let run = queues[queue].take_while(&mut slab, &mut packets, &mut tags, |_, run| run.frames < most as u32);
                    prop_assert_eq!(run, first[..most].iter().fold(Run::default(), |run, tag| run.and(*tag)));
                    prop_assert_eq!(&tags[..], &first[..most]);
                    prop_assert!(packets.into_iter().eq(model[queue].drain(..most)));
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
                        prop_assert_eq!(queue.head_len(&slab) as usize, 64 + first);
                    }
                }
            }
        }
    }
}
