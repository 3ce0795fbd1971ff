//! Memory of queued frames: chunks of slots, in and out of which packets and their descriptors move in runs.
//!
//! A check of each packet costs more than its move. So a chunk knows by one bit a slot which of its slots hold a
//! packet, and a run is checked as a whole. This makes the file an exception from the rule that the dataplane has no
//! unsafe code.

use std::mem::MaybeUninit;
use std::ops::Range;

use arrayvec::ArrayVec;

use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::meta::Meta;
use crate::io::Burst;
use crate::prefetch::prefetch;
use crate::sets::{BURST, FrameSet};

/// Slots of a chunk: with a pointer for a packet, a chunk is eight consecutive cache lines.
pub(super) const CHUNK: usize = 32;
const CACHE_LINE: usize = 64;

/// A run of at most this many frames is copied by a loop, because a call costs more.
const FEW: usize = 8;

/// Descriptors of a burst.
pub(crate) type Descs = ArrayVec<FrameDesc, BURST>;

/// The slots of a chunk, from `from` up to `to`, by their bits.
#[inline]
fn bits(from: usize, to: usize) -> u32 {
    debug_assert!(from <= to && to <= CHUNK, "a range of slots");
    ((1_u64 << to) - (1 << from)) as u32
}

#[derive(Debug)]
#[repr(align(64))]
struct Chunk<P> {
    packets: [MaybeUninit<P>; CHUNK],
    descs: [FrameDesc; CHUNK],
}

const _: () = assert!(size_of::<Chunk<std::ptr::NonNull<u8>>>() == 8 * CACHE_LINE, "a chunk is eight cache lines");

/// Chunks of slots for frames.
#[derive(Debug)]
pub(super) struct Slots<P> {
    chunks: Vec<Chunk<P>>,
    /// The slots that hold a packet, by chunk: bit n for slot n. Exactly these are initialized.
    held: Vec<u32>,
}

impl<P> Slots<P> {
    /// Creates room for `chunks` chunks, of which none exists yet.
    pub fn with_capacity(chunks: usize) -> Self {
        Self { chunks: Vec::with_capacity(chunks), held: Vec::with_capacity(chunks) }
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Adds an empty chunk.
    pub fn add_chunk(&mut self) {
        let packets = [const { MaybeUninit::uninit() }; CHUNK];
        self.chunks.push(Chunk { packets, descs: [FrameDesc::NONE; CHUNK] });
        self.held.push(0);
    }

    /// Prefetches all of `chunk`.
    #[inline]
    pub fn prefetch(&self, chunk: u32) {
        let Some(chunk) = self.chunks.get(chunk as usize) else { return };
        let start = (&raw const *chunk).cast::<u8>();
        (0..size_of::<Chunk<P>>()).step_by(CACHE_LINE).for_each(|line| prefetch(start.wrapping_add(line)));
    }

    /// Whether a slot holds a packet.
    pub fn is_held(&self, chunk: u32, slot: usize) -> bool {
        self.held[chunk as usize] >> slot & 1 == 1
    }

    /// Descriptors of all slots of `chunk`, also of vacant ones; none if there is no such chunk.
    #[inline]
    pub fn descs(&self, chunk: u32) -> &[FrameDesc] {
        self.chunks.get(chunk as usize).map_or(&[], |chunk| &chunk.descs)
    }

    /// Puts a frame into a vacant slot.
    ///
    /// # Panics
    /// If the slot holds a packet, or does not exist.
    #[inline]
    pub fn put(&mut self, chunk: u32, slot: usize, packet: P, desc: FrameDesc) {
        let (held, chunk) = (&mut self.held[chunk as usize], &mut self.chunks[chunk as usize]);
        assert!(*held >> slot & 1 == 0, "the slot holds a packet");
        chunk.packets[slot].write(packet);
        chunk.descs[slot] = desc;
        *held |= 1 << slot;
    }

    /// Takes the frame of a slot; `None` if it holds none.
    #[inline]
    pub fn take(&mut self, chunk: u32, slot: usize) -> Option<(P, FrameDesc)> {
        let held = self.held.get_mut(chunk as usize)?;
        if *held >> slot & 1 == 0 {
            return None;
        }
        *held &= !(1 << slot);
        let chunk = &self.chunks[chunk as usize];
        // SAFETY: the slot's bit was set, so it holds a packet. The bit is clear now, so nothing reads it again.
        Some((unsafe { chunk.packets[slot].assume_init_read() }, chunk.descs[slot]))
    }

    /// The packet of a slot; `None` if it holds none.
    pub fn packet(&self, chunk: u32, slot: usize) -> Option<&P> {
        let held = self.held.get(chunk as usize).copied().unwrap_or(0);
        let is_held = slot < CHUNK && held >> slot & 1 == 1;
        // SAFETY: the slot's bit is set, so it holds a packet, and `self` is borrowed.
        is_held.then(|| unsafe { self.chunks[chunk as usize].packets[slot].assume_init_ref() })
    }

    /// The packets of `chunk`.
    pub fn packets(&self, chunk: u32) -> impl Iterator<Item = &P> {
        let held = self.held.get(chunk as usize).copied().unwrap_or(0);
        FrameSet::from_bits(held.into()).iter().map(move |slot| {
            // SAFETY: the slot's bit is set, so it holds a packet, and `self` is borrowed.
            unsafe { self.chunks[chunk as usize].packets[slot].assume_init_ref() }
        })
    }

    /// Moves the frames of the slots `from` up to `to` to the ends of `packets` and `descs`.
    ///
    /// # Panics
    /// If one of the slots holds no packet, or there is no room.
    #[inline]
    pub fn take_run(&mut self, chunk: u32, from: usize, to: usize, packets: &mut Burst<P>, descs: &mut Descs) {
        let (held, run) = (&mut self.held[chunk as usize], bits(from, to));
        let room = packets.remaining_capacity().min(descs.remaining_capacity());
        assert!(*held & run == run && to - from <= room, "a run of packets, and room for it");
        *held &= !run;
        let chunk = &self.chunks[chunk as usize];
        let (from_packets, from_descs) = (&chunk.packets[from..to], &chunk.descs[from..to]);
        let frames = from_packets.len();
        // SAFETY: each slot of the run held a packet, and its bit is clear now, so nothing reads it again. `packets`
        // and `descs` have room for the run behind their last element. Neither overlaps the chunk, because they are
        // borrowed for writing.
        unsafe {
            let to_packets = packets.as_mut_ptr().add(packets.len());
            let to_descs = descs.as_mut_ptr().add(descs.len());
            if frames <= FEW {
                for index in 0..frames {
                    to_packets.add(index).write(from_packets.get_unchecked(index).assume_init_read());
                    to_descs.add(index).write(*from_descs.get_unchecked(index));
                }
            } else {
                to_packets.copy_from_nonoverlapping(from_packets.as_ptr().cast(), frames);
                to_descs.copy_from_nonoverlapping(from_descs.as_ptr(), frames);
            }
            packets.set_len(packets.len() + frames);
            descs.set_len(descs.len() + frames);
        }
    }

    /// Moves the lowest of the `members` of a burst into the vacant `slots` of `chunk`. `metas` has their descriptors.
    /// Returns the sum of the descriptors moved.
    ///
    /// # Panics
    /// If a slot holds a packet or does not exist, a member has left the burst, or there are more slots than members.
    #[inline(always)]
    pub fn put_run(
        &mut self,
        chunk: u32,
        slots: Range<usize>,
        burst: &mut Unpacked<'_, P>,
        members: &mut LeavingFrames,
        metas: &[Meta; BURST],
    ) -> u64 {
        let (held, chunk) = (&mut self.held[chunk as usize], &mut self.chunks[chunk as usize]);
        let (run, count) = (bits(slots.start, slots.end), slots.end - slots.start);
        assert!(*held & run == 0 && (members.left - burst.left).is_empty(), "vacant slots, and packets that are there");
        debug_assert_eq!(members.frames, members.left.len(), "the count is exact");
        assert!(count <= members.frames, "at most as many slots as members");
        members.frames -= count;
        let packets = burst.burst.as_ptr();
        let (mut left, mut sum) = (members.left, 0);
        for (to, to_desc) in chunk.packets[slots.clone()].iter_mut().zip(&mut chunk.descs[slots]) {
            // SAFETY: [`LeavingFrames`] counts `left` exactly, the count is at least the number of slots, as asserted,
            // and each turn takes one frame.
            let Some(index) = left.pop_lowest() else { unsafe { std::hint::unreachable_unchecked() } };
            // SAFETY: `index` is a member of `burst.left`, so the burst has a packet there, which is below its
            // capacity. It leaves `burst.left` below, before anything else may read it.
            to.write(unsafe { packets.add(index).read() });
            let desc = metas[index % BURST].desc;
            *to_desc = desc;
            sum += desc.sum();
        }
        burst.left -= members.left - left;
        *held |= run;
        members.left = left;
        sum
    }
}

impl<P> Drop for Slots<P> {
    fn drop(&mut self) {
        for chunk in 0..self.held.len() {
            FrameSet::from_bits(self.held[chunk].into()).iter().for_each(|slot| drop(self.take(chunk as u32, slot)));
        }
    }
}

/// Frames of a burst that are to leave it. Their count is exact.
#[derive(Debug)]
pub(super) struct LeavingFrames {
    left: FrameSet,
    /// Number of frames in `left`. They are counted once, since a count takes longer than a step.
    frames: usize,
}

impl LeavingFrames {
    /// The frames `members`.
    #[inline]
    pub fn new(members: FrameSet) -> Self {
        Self { left: members, frames: members.len() }
    }

    /// Number of frames that are left.
    #[inline]
    pub fn len(&self) -> usize {
        self.frames
    }
}

/// A burst that its packets leave in any order. Packets that are still in it at its end are forgotten, as dropped ones
/// are.
#[derive(Debug)]
pub(crate) struct Unpacked<'a, P> {
    /// Its length is zero, so it does not own the packets, which are still in its memory.
    burst: &'a mut Burst<P>,
    /// The packets that have not left.
    left: FrameSet,
}

impl<'a, P> Unpacked<'a, P> {
    /// Takes all packets of `burst`.
    #[inline]
    pub fn new(burst: &'a mut Burst<P>) -> Self {
        let left = FrameSet::first(burst.len());
        // SAFETY: a shorter length only forgets packets.
        unsafe { burst.set_len(0) };
        Self { burst, left }
    }

    /// The packets that have not left.
    #[inline]
    pub fn left(&self) -> FrameSet {
        self.left
    }
}
