//! Egress queues: lists of chunks from one slab, so that any queue may hold the whole buffer without allocating.

use super::slots::{CHUNK, Descs, LeavingFrames, Slots, Unpacked};
use crate::dataplane::frame::desc::{FrameDesc, SUM_BYTES};
use crate::dataplane::frame::meta::Meta;
use crate::dataplane::frame::run::{Run, RunKind};
use crate::io::Burst;
use crate::plan::spec::MAX_CELLS;
use crate::sets::{BURST, FrameSet};
use crate::units::{Bytes, Cells};

const NONE: u32 = u32::MAX;

/// The memory of all queued frames of an lcore. A queue takes a chunk when it needs one, and returns it when it is used
/// up, except its last. Vacant chunks are reused last in, first out, so that few are hot when queues are short. In a
/// list of single frames each step waited for the load before it, which in standing queues is a miss per frame.
#[derive(Debug)]
pub struct Slab<P> {
    slots: Slots<P>,
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
        Self { slots: Slots::with_capacity(chunks), links, vacant, capacity: capacity as u32, held: 0 }
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

    /// Counts `frames` that were appended with [`Queue::append`] or as a run.
    #[inline]
    pub fn appended(&mut self, frames: usize) {
        debug_assert!(self.has_room(frames), "more frames appended than there is room for");
        self.held += frames as u32;
    }

    /// Takes an empty chunk, and links it before `next`.
    #[cold]
    fn chunk(&mut self, next: u32) -> u32 {
        let chunk = self.vacant.pop().unwrap_or_else(|| {
            self.slots.add_chunk();
            self.links.push(NONE);
            self.slots.len() as u32 - 1
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
    /// Properties of the frames appended since the queue was last empty.
    kind: RunKind,
}

/// A place in a queue, between two frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueuePlace {
    chunk: u32,
    slot: u32,
    /// Bytes in front of the place.
    bytes: u64,
}

impl QueuePlace {
    /// The place in a queue that never held a frame.
    pub const START: Self = Self { chunk: NONE, slot: 0, bytes: 0 };

    /// Bytes in front of the place.
    pub fn bytes(self) -> Bytes {
        Bytes(self.bytes)
    }
}

impl Default for Queue {
    fn default() -> Self {
        let (nowhere, full) = (NONE, CHUNK as u32);
        let (cells_highest, kind) = (Cells(0), RunKind::of(FrameDesc::NONE));
        Self { head: nowhere, tail: nowhere, first: full, end: full, behind: 0, cells_highest, sums: 0, kind }
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
        self.note(RunKind::of(desc));
        self.put(slab, self.tail, self.end, packet, desc);
        self.end += 1;
    }

    /// Adds the properties of frames that are about to be put into the queue.
    #[inline]
    fn note(&mut self, kind: RunKind) {
        self.kind = if self.is_empty() { kind } else { self.kind.and(kind) };
    }

    /// All frames as one run, with the descriptor of one of them. `None` if there is no frame, if they are charged to
    /// several groups, or if the wire pads one.
    #[inline]
    #[must_use]
    pub(crate) fn as_one_run(&self) -> Option<(Run, FrameDesc)> {
        let charge = self.kind.one_charge().filter(|_| !self.is_empty())?;
        Some((Run { frames: self.frames(), sum: self.sums }, charge))
    }

    #[inline(always)]
    fn put<P>(&mut self, slab: &mut Slab<P>, chunk: u32, place: u32, packet: P, desc: FrameDesc) {
        slab.slots.put(chunk, place as usize % CHUNK, packet, desc);
        self.sums += desc.sum();
    }

    /// Appends the frames `members` of a burst, in their order; all are of `kind`. The caller has checked that they
    /// fit, as for [`Queue::append`].
    ///
    /// Not inlined: the loop needs the registers that its caller would keep.
    #[inline(never)]
    pub(crate) fn append_run<P>(
        &mut self,
        slab: &mut Slab<P>,
        burst: &mut Unpacked<'_, P>,
        members: FrameSet,
        kind: RunKind,
        metas: &[Meta; BURST],
    ) {
        self.note(kind);
        let (mut members, mut sums) = (LeavingFrames::new(members), 0);
        while members.len() > 0 {
            if self.end as usize == CHUNK {
                self.extend(slab);
            }
            let (from, end) = (self.end as usize, CHUNK.min(self.end as usize + members.len()));
            sums += slab.slots.put_run(self.tail, from..end, burst, &mut members, metas);
            self.end = end as u32;
        }
        self.sums += sums;
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
        self.note(RunKind::of(desc));
        self.put(slab, self.head, self.first, packet, desc);
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
            let desc = *slab.slots.descs(chunk).get(place).filter(|_| chunk != last || place < end)?;
            place += 1;
            slab.slots.is_held(chunk, place - 1).then_some(desc)
        });
        // A list with a cycle ends after as many frames as the slab has slots.
        walk.take(slab.slots.len() * CHUNK + 1)
    }

    /// The place behind the last frame. It is valid until a frame is taken out.
    pub(crate) fn end_place(&self) -> QueuePlace {
        QueuePlace { chunk: self.tail, slot: self.end, bytes: self.bytes().0 }
    }

    /// The frame behind `place`, which then moves behind that frame; `None` at the end of the queue. If the place is
    /// no longer valid, it may be another frame of the slab.
    pub(crate) fn frame_behind<'a, P>(&self, slab: &'a Slab<P>, place: &mut QueuePlace) -> Option<(&'a P, FrameDesc)> {
        if place.chunk == NONE {
            (place.chunk, place.slot) = (self.head, self.first);
        }
        if place.chunk == self.tail && place.slot >= self.end {
            return None;
        }
        if place.slot as usize >= CHUNK {
            (place.chunk, place.slot) = (slab.behind(place.chunk), 0);
        }
        let packet = slab.slots.packet(place.chunk, place.slot as usize)?;
        let desc = slab.slots.descs(place.chunk)[place.slot as usize];
        place.slot += 1;
        place.bytes += u64::from(desc.frame_len());
        Some((packet, desc))
    }

    /// Takes the first frame.
    #[inline(always)]
    pub fn pop<P>(&mut self, slab: &mut Slab<P>) -> Option<(P, FrameDesc)> {
        if self.is_empty() {
            return None;
        }
        let (packet, desc) = slab.slots.take(self.head, self.first as usize % CHUNK)?;
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
        slab.slots.descs(self.head).get(self.places()).unwrap_or_default()
    }

    /// Moves all frames to the end of `packets` and `descs`, which have room for them.
    #[inline]
    pub(crate) fn take_all<P>(&mut self, slab: &mut Slab<P>, packets: &mut Burst<P>, descs: &mut Descs) {
        self.cells_highest = self.cells_highest.max(self.cells());
        slab.held -= self.frames();
        loop {
            let (chunk, places) = (self.head, self.places());
            slab.slots.take_run(chunk, places.start, places.end, packets, descs);
            if self.behind == 0 {
                break;
            }
            self.leave_chunk(slab);
        }
        (self.first, self.end, self.sums) = (0, 0, 0);
    }

    /// Moves the first frames, which are `run` and in one chunk, to the end of `packets` and `descs`, which have room
    /// for them.
    #[inline]
    pub fn take<P>(&mut self, slab: &mut Slab<P>, run: Run, packets: &mut Burst<P>, descs: &mut Descs) {
        if run.frames == 0 {
            return;
        }
        let (from, to) = (self.first as usize, (self.first + run.frames) as usize);
        slab.slots.take_run(self.head, from, to, packets, descs);
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
            self.leave_chunk(slab);
        }
    }

    /// Goes on to the next chunk, and makes the first one vacant.
    #[inline]
    fn leave_chunk<P>(&mut self, slab: &mut Slab<P>) {
        let next = slab.behind(self.head);
        slab.vacant.push(self.head);
        (self.head, self.first) = (next, 0);
        self.behind -= 1;
    }

    /// Prefetches at the begin of a chunk the memory needed after it. `ask` prefetches the packets of the next chunk.
    /// The chunk two further is prefetched too, so that its packet pointers are in the cache when they are needed.
    #[inline]
    pub fn look_ahead<P>(&self, slab: &Slab<P>, ask: impl FnMut(&P)) {
        if self.first != 0 || self.behind == 0 {
            return;
        }
        let next = slab.behind(self.head);
        slab.slots.packets(next).for_each(ask);
        slab.slots.prefetch(slab.behind(slab.behind(next)));
    }
}
