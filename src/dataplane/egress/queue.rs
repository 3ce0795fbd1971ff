//! Egress queues: lists of chunks from one slab, so that any queue may hold the whole buffer without allocating.

use arrayvec::ArrayVec;

use crate::dataplane::frame::desc::{FrameDesc, MAX_CELLS, Run, SUM_BYTES};
use crate::io::Burst;
use crate::prefetch::prefetch;
use crate::sets::BURST;
use crate::units::{Bytes, Cells};

const NONE: u32 = u32::MAX;

/// Frames per chunk: 16 bytes each with an mbuf pointer, so a chunk is four consecutive cache lines.
const CHUNK: usize = 16;
const CACHE_LINE: usize = 64;

/// Slots for consecutive frames of one queue.
#[derive(Debug)]
#[repr(align(64))]
struct Chunk<P> {
    /// `None` in vacant slots.
    packets: [Option<P>; CHUNK],
    descs: [FrameDesc; CHUNK],
}

const _: () = assert!(size_of::<Chunk<std::ptr::NonNull<u8>>>() == 4 * CACHE_LINE, "a chunk is four cache lines");

impl<P> Chunk<P> {
    fn new() -> Self {
        Self { packets: [const { None }; CHUNK], descs: [FrameDesc::NONE; CHUNK] }
    }

    /// Prefetches the whole chunk.
    #[inline]
    fn prefetch(&self) {
        let start = (&raw const *self).cast::<u8>();
        (0..size_of::<Self>()).step_by(CACHE_LINE).for_each(|line| prefetch(start.wrapping_add(line)));
    }
}

/// The memory of all queued frames of an lcore. A queue takes a chunk when it needs one, and returns it when it is used
/// up, except its last. Vacant chunks are reused last in, first out, so that few are hot when queues are short. In a
/// list of single frames each step waited for the load before it, which in standing queues is a miss per frame.
#[derive(Debug)]
pub struct Slab<P> {
    chunks: Vec<Chunk<P>>,
    /// The next chunk behind each chunk. The links are outside of the chunks, so that following them ahead stays in the
    /// cache.
    links: Vec<u32>,
    vacant: Vec<u32>,
    /// The most frames that fit, and the frames held now.
    capacity: u32,
    held: u32,
}

impl<P> Slab<P> {
    /// Creates room for `capacity` frames in `queues` queues. The capacity is the number of buffer cells, because a
    /// frame takes at least one.
    #[must_use]
    pub fn new(capacity: usize, queues: usize) -> Self {
        assert!(capacity < MAX_CELLS as usize, "a buffer of more cells than a queue can count");
        // The first and the last chunk of a queue may hold only one frame each.
        let chunks = capacity.div_ceil(CHUNK) + 2 * queues;
        let (links, vacant) = (Vec::with_capacity(chunks), Vec::with_capacity(chunks));
        Self { chunks: Vec::with_capacity(chunks), links, vacant, capacity: capacity as u32, held: 0 }
    }

    /// Frames in all queues.
    #[inline]
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// Whether `frames` more frames fit.
    #[inline]
    #[must_use]
    pub fn has_room(&self, frames: usize) -> bool {
        (self.capacity - self.held) as usize >= frames
    }

    /// Counts `frames` that were appended with [`Queue::append`].
    #[inline]
    pub fn appended(&mut self, frames: usize) {
        debug_assert!(self.has_room(frames), "more frames appended than there is room for");
        self.held += frames as u32;
    }

    /// Takes an empty chunk, and links it before `next`.
    #[cold]
    fn chunk(&mut self, next: u32) -> u32 {
        let chunk = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::new());
            self.links.push(NONE);
            self.chunks.len() as u32 - 1
        });
        self.links[chunk as usize] = next;
        chunk
    }

    /// The chunk behind `chunk`; `NONE` if `chunk` does not exist or is the last.
    #[inline]
    fn behind(&self, chunk: u32) -> u32 {
        self.links.get(chunk as usize).copied().unwrap_or(NONE)
    }
}

/// One egress queue.
#[derive(Debug, Clone)]
pub struct Queue {
    /// The chunks of the first and the last frame. In an empty queue both are the same, or none if it never held a
    /// frame.
    head: u32,
    tail: u32,
    /// Slot of the first frame in its chunk, and slot of the next frame in the last chunk.
    first: u32,
    end: u32,
    /// Number of chunks behind the first.
    behind: u32,
    /// Watermark of the cells as of the last frame taken: in between, the cells only increase.
    cells_highest: Cells,
    /// Cells and bytes in one word, so that a frame costs one addition.
    sums: u64,
}

impl Default for Queue {
    fn default() -> Self {
        let (nowhere, full) = (NONE, CHUNK as u32);
        Self { head: nowhere, tail: nowhere, first: full, end: full, behind: 0, cells_highest: Cells(0), sums: 0 }
    }
}

impl Queue {
    /// Bytes in the queue.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sums >> SUM_BYTES)
    }

    /// Cells in the queue.
    #[inline]
    #[must_use]
    pub fn cells(&self) -> Cells {
        Cells(self.sums as u32 & (MAX_CELLS - 1))
    }

    /// Watermark of the cells in the queue.
    #[must_use]
    pub fn cells_highest(&self) -> Cells {
        self.cells_highest.max(self.cells())
    }

    /// Sets the watermark to the cells in the queue now.
    pub fn clear_watermark(&mut self) {
        self.cells_highest = self.cells();
    }

    /// Frames in the queue.
    #[inline]
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.behind * CHUNK as u32 + self.end - self.first
    }

    /// Length of the first frame; zero if there is none.
    #[inline]
    #[must_use]
    pub fn head_len<P>(&self, slab: &Slab<P>) -> Bytes {
        self.first(slab).first().map_or(Bytes(0), |desc| Bytes(desc.frame_len().into()))
    }

    /// Whether the queue has no frames; each frame has at least one cell.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sums == 0
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// Returns the packet if the slab is full, which admission makes impossible.
    #[inline(always)]
    pub fn push<P>(&mut self, slab: &mut Slab<P>, packet: P, desc: FrameDesc) -> Result<(), P> {
        if !slab.has_room(1) {
            return Err(packet);
        }
        self.append(slab, packet, desc);
        slab.appended(1);
        Ok(())
    }

    /// Appends a frame like [`Queue::push`], without a check: the caller has checked that it fits ([`Slab::has_room`]),
    /// and calls [`Slab::appended`] after the last frame of the burst.
    #[inline(always)]
    pub fn append<P>(&mut self, slab: &mut Slab<P>, packet: P, desc: FrameDesc) {
        debug_assert!(desc.cells() > Cells(0), "a frame takes at least one cell");
        if self.end as usize == CHUNK {
            self.extend(slab);
        }
        self.put(slab, (self.tail, self.end), packet, desc);
        self.end += 1;
    }

    #[inline(always)]
    fn put<P>(&mut self, slab: &mut Slab<P>, (chunk, place): (u32, u32), packet: P, desc: FrameDesc) {
        let (chunk, place) = (&mut slab.chunks[chunk as usize], place as usize % CHUNK);
        chunk.packets[place] = Some(packet);
        chunk.descs[place] = desc;
        self.sums += desc.sum();
    }

    /// Adds a chunk behind the last.
    #[cold]
    fn extend<P>(&mut self, slab: &mut Slab<P>) {
        let chunk = slab.chunk(NONE);
        match slab.links.get_mut(self.tail as usize) {
            Some(link) => {
                *link = chunk;
                self.behind += 1;
            }
            None => (self.head, self.first) = (chunk, 0),
        }
        (self.tail, self.end) = (chunk, 0);
    }

    /// Puts a frame that was taken out back to the head of the queue.
    ///
    /// # Errors
    /// The packet if the slab is full, like [`Queue::push`].
    pub fn push_front<P>(&mut self, slab: &mut Slab<P>, packet: P, desc: FrameDesc) -> Result<(), P> {
        if self.is_empty() {
            return self.push(slab, packet, desc);
        }
        if !slab.has_room(1) {
            return Err(packet);
        }
        if self.first == 0 {
            let chunk = slab.chunk(self.head);
            (self.head, self.first) = (chunk, CHUNK as u32);
            self.behind += 1;
        }
        self.first -= 1;
        self.put(slab, (self.head, self.first), packet, desc);
        slab.appended(1);
        Ok(())
    }

    /// Descriptors of all frames, first to last, for checks of the queue. It follows the chunks and not the counts.
    pub fn descs<'a, P>(&self, slab: &'a Slab<P>) -> impl Iterator<Item = FrameDesc> + 'a {
        let (mut chunk, mut place) = if self.is_empty() { (NONE, 0) } else { (self.head, self.first as usize) };
        let (last, end) = (self.tail, self.end as usize);
        let walk = std::iter::from_fn(move || {
            if place == CHUNK {
                (chunk, place) = (slab.behind(chunk), 0);
            }
            let here = slab.chunks.get(chunk as usize).filter(|_| chunk != last || place < end)?;
            here.packets[place].as_ref()?;
            place += 1;
            Some(here.descs[place - 1])
        });
        // A list with a cycle ends after as many frames as the slab has slots.
        walk.take(slab.chunks.len() * CHUNK + 1)
    }

    /// Takes the first frame.
    #[inline(always)]
    pub fn pop<P>(&mut self, slab: &mut Slab<P>) -> Option<(P, FrameDesc)> {
        if self.is_empty() {
            return None;
        }
        let chunk = &mut slab.chunks[self.head as usize];
        let place = self.first as usize % CHUNK;
        let (packet, desc) = (chunk.packets[place].take()?, chunk.descs[place]);
        self.taken(slab, Run::default().and(desc));
        Some((packet, desc))
    }

    /// Slots of the frames in the first chunk.
    #[inline]
    fn places(&self) -> std::ops::Range<usize> {
        let to = if self.behind == 0 { self.end as usize } else { CHUNK };
        self.first as usize..to
    }

    /// Descriptors of the first frames, as far as they are in one chunk.
    #[inline]
    #[must_use]
    pub fn first<'a, P>(&self, slab: &'a Slab<P>) -> &'a [FrameDesc] {
        slab.chunks.get(self.head as usize).map_or(&[], |chunk| &chunk.descs[self.places()])
    }

    /// Moves the first frames, which are `run` and in one chunk, to the end of `packets` and `descs`, which have room
    /// for them.
    #[inline]
    pub fn take<P>(
        &mut self,
        slab: &mut Slab<P>,
        run: Run,
        packets: &mut Burst<P>,
        descs: &mut ArrayVec<FrameDesc, BURST>,
    ) {
        let Some(chunk) = slab.chunks.get_mut(self.head as usize) else { return };
        let places = self.first as usize..self.first as usize + run.frames as usize;
        packets.extend(chunk.packets[places.clone()].iter_mut().map(|packet| {
            let Some(packet) = packet.take() else {
                unreachable!("every place from the first to the last holds a frame");
            };
            packet
        }));
        if descs.try_extend_from_slice(&chunk.descs[places]).is_err() {
            unreachable!("the caller has checked for room");
        }
        self.taken(slab, run);
    }

    /// Removes `run`, the first frames of the first chunk, from the counts.
    #[inline(always)]
    fn taken<P>(&mut self, slab: &mut Slab<P>, run: Run) {
        self.cells_highest = self.cells_highest.max(self.cells());
        slab.held -= run.frames;
        self.first += run.frames;
        self.sums -= run.sum;
        if self.first as usize == CHUNK || self.is_empty() {
            self.turn(slab);
        }
    }

    /// Runs when the last frame of the first chunk, or of the queue, was taken. An empty queue reuses its chunk from
    /// the beginning; otherwise the chunk becomes vacant.
    fn turn<P>(&mut self, slab: &mut Slab<P>) {
        self.first = 0;
        if self.is_empty() {
            self.end = 0;
        } else {
            let next = slab.behind(self.head);
            slab.vacant.push(self.head);
            self.head = next;
            self.behind -= 1;
        }
    }

    /// Prefetches at the begin of a chunk the memory needed after it. `ask` prefetches the packets of the next chunk.
    /// The chunk two further is prefetched too, so that its packet pointers are in the cache when they are needed.
    #[inline]
    pub fn look_ahead<P>(&self, slab: &Slab<P>, ask: impl FnMut(&P)) {
        if self.first != 0 || self.behind == 0 {
            return;
        }
        let next = slab.behind(self.head);
        if let Some(chunk) = slab.chunks.get(next as usize) {
            chunk.packets.iter().flatten().for_each(ask);
        }
        if let Some(chunk) = slab.chunks.get(slab.behind(slab.behind(next)) as usize) {
            chunk.prefetch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn look_ahead_at_the_start_of_a_chunk_prefetches_the_next_chunk() {
        let (mut slab, mut queue) = (Slab::new(5 * CHUNK, 1), Queue::default());
        (0..2 * CHUNK + 3)
            .for_each(|number| queue.push(&mut slab, number, FrameDesc::new(64, Cells(1), 0, 0, 0)).unwrap());
        let mut asked = Vec::new();
        while !queue.is_empty() {
            let mut ahead = Vec::new();
            queue.look_ahead(&slab, |number| ahead.push(*number));
            asked.push(ahead);
            queue.pop(&mut slab);
        }
        let expected = |taken: usize| match taken {
            0 => (CHUNK..2 * CHUNK).collect(),
            CHUNK => (2 * CHUNK..2 * CHUNK + 3).collect(),
            _ => Vec::new(),
        };
        assert_eq!(asked, (0..2 * CHUNK + 3).map(expected).collect::<Vec<_>>());
    }

    proptest! {
        #[test]
        fn queues_over_one_slab_are_fifos(operations in prop::collection::vec((0_usize..4, 0_u8..7), 0..500)) {
            let mut slab = Slab::new(50, 4);
            let mut queues = vec![Queue::default(); 4];
            let mut model = vec![VecDeque::new(); 4];
            for (number, (queue, operation)) in operations.into_iter().enumerate() {
                if operation < 2 {
                    let desc = FrameDesc::new(64 + number as u16, Cells(1 + (number % 7) as u32), 0, 0, queue as u8);
                    let full = slab.held() == 50;
                    prop_assert_eq!(queues[queue].push(&mut slab, number, desc).is_err(), full);
                    if !full {
                        model[queue].push_back(number);
                    }
                } else if operation == 2 {
                    // A frame that is taken and put back changes nothing.
                    if let Some((number, desc)) = queues[queue].pop(&mut slab) {
                        prop_assert!(queues[queue].push_front(&mut slab, number, desc).is_ok());
                    }
                } else if operation == 4 {
                    // Takes as many frames as a burst has room for, from chunk to chunk, and puts them back, the last
                    // one first.
                    let (mut packets, mut descs) = (Burst::new(), ArrayVec::<FrameDesc, BURST>::new());
                    loop {
                        let first = queues[queue].first(&slab);
                        let most = first.len().min(packets.remaining_capacity());
                        let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
                        if run.frames == 0 {
                            break;
                        }
                        queues[queue].take(&mut slab, run, &mut packets, &mut descs);
                    }
                    prop_assert!(packets.iter().eq(model[queue].iter().take(BURST)));
                    for (number, desc) in packets.into_iter().zip(descs).rev() {
                        prop_assert!(queues[queue].push_front(&mut slab, number, desc).is_ok());
                    }
                } else if operation == 5 {
                    // Appends a burst at once, as far as there is room.
                    let room = (1..=number % 20).rev().find(|&frames| slab.has_room(frames)).unwrap_or(0);
                    for _ in 0..room {
                        let desc = FrameDesc::new(64 + number as u16, Cells(1 + (number % 7) as u32), 0, 0, queue as u8);
                        queues[queue].append(&mut slab, number, desc);
                        model[queue].push_back(number);
                    }
                    slab.appended(room);
                } else if operation == 3 {
                    // Takes all frames that are in one chunk, or some of them.
                    let (mut packets, mut descs) = (ArrayVec::new(), ArrayVec::new());
                    let first = queues[queue].first(&slab).to_vec();
                    let most = first.len().min(number % (CHUNK + 1));
                    let run = first[..most].iter().fold(Run::default(), |run, desc| run.and(*desc));
                    prop_assert_eq!(run.bytes(), first[..most].iter().map(|desc| Bytes(desc.frame_len().into())).sum());
                    queues[queue].take(&mut slab, run, &mut packets, &mut descs);
                    prop_assert_eq!(&descs[..], &first[..most]);
                    prop_assert!(packets.into_iter().eq(model[queue].drain(..most)));
                } else {
                    let popped = queues[queue].pop(&mut slab).map(|(number, _)| number);
                    prop_assert_eq!(popped, model[queue].pop_front());
                }
                for (queue, model) in queues.iter().zip(&model) {
                    prop_assert_eq!(queue.frames() as usize, model.len());
                    let lengths = queue.descs(&slab).map(|desc| usize::from(desc.frame_len()) - 64);
                    prop_assert!(lengths.eq(model.iter().copied()));
                    prop_assert_eq!(queue.bytes(), model.iter().map(|n| Bytes(64 + *n as u64)).sum());
                    prop_assert_eq!(queue.cells(), model.iter().map(|n| Cells(1 + (n % 7) as u32)).sum());
                    if let Some(first) = model.front() {
                        prop_assert_eq!(queue.head_len(&slab), Bytes(64 + *first as u64));
                    }
                }
            }
        }
    }
}
