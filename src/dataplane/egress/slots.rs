//! Memory of queued packets: chunks of slots, in and out of which packets move in runs.
//!
//! A check of each packet costs more than its move. So a chunk knows by one bit a slot which of its slots hold a
//! packet, and a run is checked as a whole. This makes the file an exception from the rule that the dataplane has no
//! unsafe code.

use std::mem::MaybeUninit;

use crate::io::Burst;
use crate::sets::FrameSet;

/// Slots of a chunk: with one pointer each, two cache lines.
pub(super) const CHUNK: usize = 16;

/// The slots of a chunk, from `from` up to `to`, by their bits.
#[inline]
fn bits(from: usize, to: usize) -> u32 {
    debug_assert!(from <= to && to <= CHUNK, "a range of slots");
    (1 << to) - (1 << from)
}

#[derive(Debug)]
#[repr(align(64))]
struct Chunk<P>([MaybeUninit<P>; CHUNK]);

/// Chunks of slots for packets.
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
        self.chunks.push(Chunk([const { MaybeUninit::uninit() }; CHUNK]));
        self.held.push(0);
    }

    /// The memory of `chunk`, to prefetch it; null if there is none.
    #[inline]
    pub fn address(&self, chunk: u32) -> *const u8 {
        self.chunks.get(chunk as usize).map_or(std::ptr::null(), |chunk| (&raw const *chunk).cast())
    }

    /// Whether a slot holds a packet.
    pub fn is_held(&self, chunk: u32, slot: usize) -> bool {
        self.held[chunk as usize] >> slot & 1 == 1
    }

    /// Puts `packet` into a vacant slot.
    ///
    /// # Panics
    /// If the slot holds a packet, or does not exist.
    #[inline]
    pub fn put(&mut self, chunk: u32, slot: usize, packet: P) {
        let held = &mut self.held[chunk as usize];
        assert!(*held >> slot & 1 == 0, "the slot holds a packet");
        self.chunks[chunk as usize].0[slot].write(packet);
        *held |= 1 << slot;
    }

    /// Takes the packet of a slot; `None` if it holds none.
    #[inline]
    pub fn take(&mut self, chunk: u32, slot: usize) -> Option<P> {
        let held = self.held.get_mut(chunk as usize)?;
        if *held >> slot & 1 == 0 {
            return None;
        }
        *held &= !(1 << slot);
        // SAFETY: the slot's bit was set, so it holds a packet. The bit is clear now, so nothing reads it again.
        Some(unsafe { self.chunks[chunk as usize].0[slot].assume_init_read() })
    }

    /// The packets of `chunk`.
    pub fn packets(&self, chunk: u32) -> impl Iterator<Item = &P> {
        let held = self.held.get(chunk as usize).copied().unwrap_or(0);
        FrameSet::from_bits(held).iter().map(move |slot| {
            // SAFETY: the slot's bit is set, so it holds a packet, and `self` is borrowed.
            unsafe { self.chunks[chunk as usize].0[slot].assume_init_ref() }
        })
    }

    /// Moves the packets of the slots `from` up to `to` to the end of `out`.
    ///
    /// # Panics
    /// If one of the slots holds no packet, or `out` has no room.
    #[inline]
    pub fn take_run(&mut self, chunk: u32, (from, to): (usize, usize), out: &mut Burst<P>) {
        let (held, run) = (&mut self.held[chunk as usize], bits(from, to));
        assert!(*held & run == run && to - from <= out.remaining_capacity(), "a run of packets, and room for it");
        *held &= !run;
        let slots = &self.chunks[chunk as usize].0[from..to];
        // SAFETY: each slot of the run held a packet, and its bit is clear now, so nothing reads it again. `out` has
        // room for the run behind its last packet, and both have the layout of `P`. They cannot overlap, because `out`
        // is borrowed for writing.
        unsafe {
            out.as_mut_ptr().add(out.len()).copy_from_nonoverlapping(slots.as_ptr().cast(), slots.len());
            out.set_len(out.len() + slots.len());
        }
    }

    /// Moves `members` of a burst into the vacant slots of `chunk` from `slot` on, the lowest first, as far as there
    /// are slots. Calls `note` with the index and the slot of each. Returns the slot after the last, and the members
    /// that are left.
    ///
    /// # Panics
    /// If a slot from `slot` on holds a packet, or a member has left the burst.
    #[inline(always)]
    pub fn put_run(
        &mut self,
        (chunk, slot): (u32, usize),
        burst: &mut Unpacked<'_, P>,
        members: FrameSet,
        mut note: impl FnMut(usize, usize),
    ) -> (usize, FrameSet) {
        let held = &mut self.held[chunk as usize];
        assert!(*held >> slot == 0 && (members - burst.left).is_empty(), "vacant slots, and packets that are there");
        let slots = &mut self.chunks[chunk as usize].0;
        let packets = burst.burst.as_ptr();
        let (mut left, mut next) = (members, slot);
        while next < CHUNK {
            let Some(index) = left.pop_lowest() else { break };
            // SAFETY: `index` is a member of `burst.left`, so the burst has a packet there, which is below its
            // capacity. It leaves `burst.left` below, before anything else may read it.
            slots[next].write(unsafe { packets.add(index).read() });
            note(index, next);
            next += 1;
        }
        burst.left -= members - left;
        *held |= bits(slot, next);
        (next, left)
    }
}

impl<P> Drop for Slots<P> {
    fn drop(&mut self) {
        for chunk in 0..self.held.len() {
            FrameSet::from_bits(self.held[chunk]).iter().for_each(|slot| drop(self.take(chunk as u32, slot)));
        }
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
