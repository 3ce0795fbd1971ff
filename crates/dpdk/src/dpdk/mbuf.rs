//! Packet buffers: DPDK's mbufs with one segment and one owner.

use std::ptr::NonNull;

use dpdk_sys::{
    HF_MBUF_BUF_ADDR, HF_MBUF_BUF_LEN, HF_MBUF_DATA_LEN, HF_MBUF_DATA_OFF, HF_MBUF_PKT_LEN, HF_MBUF_REFCNT,
    HF_PKTMBUF_HEADROOM, rte_mbuf,
};

use crate::io::{Burst, Packet};
use crate::prefetch::prefetch;

/// Bytes kept free in front of each received frame.
pub const HEADROOM: usize = HF_PKTMBUF_HEADROOM as usize;

/// Offset from an mbuf to the place where drivers put the first byte of its frame, in pools created by
/// [`Mempool`](super::Mempool). It may differ for a buffer from elsewhere, or for a frame whose headers have grown.
/// Then only a prefetch is wasted.
const FIRST_BYTES: usize = size_of::<rte_mbuf>() + HEADROOM;

/// Reference count and number of segments as one word, when both are one.
const SOLE: u32 = 0x0001_0001;

/// A frame in a DPDK buffer with one owner and one segment.
///
/// It has no destructor. Buffers return with [`Ports::free`](crate::io::Ports::free) or [`Mbuf::free`], or are
/// sent. A forgotten buffer is lost to its pool, and prevents the pool's memory from being freed.
#[repr(transparent)]
#[derive(Debug)]
pub struct Mbuf(NonNull<rte_mbuf>);

// SAFETY: an Mbuf is the only access to its buffer, which is plain memory that any thread may use and return.
unsafe impl Send for Mbuf {}
// SAFETY: through a shared reference the buffer is only read.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// Takes ownership of a buffer.
    ///
    /// # Safety
    ///
    /// `raw` must be a valid mbuf of one segment and one reference, with no other owner.
    #[inline]
    pub(super) unsafe fn from_raw(raw: NonNull<rte_mbuf>) -> Self {
        Self(raw)
    }

    /// Whether the buffer has one segment and one owner, as an Mbuf requires. Drivers may deliver chains and shared
    /// buffers if configured so.
    #[inline]
    pub(super) fn is_sole(&self) -> bool {
        // SAFETY: the offset is that of the reference count, a word of 16 bits. The number of segments follows it
        // directly, as the shim asserts, so 32 bits may be read, aligned or not.
        unsafe { self.field::<u32>(HF_MBUF_REFCNT).read_unaligned() == SOLE }
    }

    /// Returns the buffer to its pool. For whole bursts use [`Ports::free`](crate::io::Ports::free).
    #[inline]
    pub fn free(self) {
        let mut raw = self.0.as_ptr();
        // SAFETY: the buffer has no other owner, and `self` ends here.
        unsafe { dpdk_sys::rte_pktmbuf_free_bulk(&mut raw, 1) };
    }

    /// Returns all buffers of a burst to their pools and empties it.
    #[inline]
    pub fn free_all(packets: &mut Burst<Mbuf>) {
        let count = packets.len();
        if count == 0 {
            return;
        }
        // SAFETY: an Mbuf is a pointer in memory, so the burst is an array of `count` pointers, each the only owner of
        // its buffer. Setting the length to zero first forgets them here; Mbuf has no destructor.
        unsafe {
            packets.set_len(0);
            dpdk_sys::rte_pktmbuf_free_bulk(packets.as_mut_ptr().cast(), count as u32);
        }
    }

    /// Replaces the frame, with the standard headroom in front. Returns false, and changes nothing, if the frame is too
    /// long.
    #[inline]
    pub fn set_frame(&mut self, frame: &[u8]) -> bool {
        let room = usize::from(self.buffer_len());
        let Some(length) = u16::try_from(frame.len()).ok().filter(|_| HEADROOM + frame.len() <= room) else {
            return false;
        };
        // SAFETY: headroom and frame lie inside the buffer, checked above, and `frame` cannot overlap a buffer that
        // is borrowed for writing.
        unsafe {
            self.field::<u16>(HF_MBUF_DATA_OFF).write(HF_PKTMBUF_HEADROOM as u16);
            self.data().copy_from_nonoverlapping(frame.as_ptr(), frame.len());
        }
        self.set_len(length);
        true
    }

    /// Returns the address of the field at `offset`.
    ///
    /// # Safety
    ///
    /// `offset` must be one of the shim's offsets, and `T` the type of the field there.
    #[inline]
    unsafe fn field<T>(&self, offset: u32) -> *mut T {
        // SAFETY: the caller ensures that the offset is inside the struct, to which the pointer is valid.
        unsafe { self.0.as_ptr().byte_add(offset as usize).cast() }
    }

    /// Returns the address of the first byte of the frame.
    #[inline]
    fn data(&self) -> *mut u8 {
        // SAFETY: the offsets are those of the buffer's address and of the start of data in it. The driver and the
        // functions here keep that start inside the buffer.
        unsafe {
            let buffer = self.field::<*mut u8>(HF_MBUF_BUF_ADDR).read();
            buffer.add(usize::from(self.field::<u16>(HF_MBUF_DATA_OFF).read()))
        }
    }

    /// Returns the size of the buffer in bytes, with the headroom.
    #[inline]
    fn buffer_len(&self) -> u16 {
        // SAFETY: the offset is that of the buffer's length.
        unsafe { self.field::<u16>(HF_MBUF_BUF_LEN).read() }
    }

    /// Returns the length of the frame in bytes.
    #[inline]
    fn data_len(&self) -> u16 {
        // SAFETY: the offset is that of the segment's length.
        unsafe { self.field::<u16>(HF_MBUF_DATA_LEN).read() }
    }

    /// Sets both lengths, which are equal in one segment.
    #[inline]
    fn set_len(&mut self, length: u16) {
        // SAFETY: the offsets are those of the segment's and the packet's length.
        unsafe {
            self.field::<u16>(HF_MBUF_DATA_LEN).write(length);
            self.field::<u32>(HF_MBUF_PKT_LEN).write(u32::from(length));
        }
    }
}

impl Packet for Mbuf {
    #[inline]
    fn prefetch(&self) {
        let header = self.0.as_ptr().cast::<u8>();
        prefetch(header);
        prefetch(header.wrapping_add(64));
    }

    #[inline]
    fn prefetch_ahead(&self) {
        self.prefetch();
        prefetch(self.0.as_ptr().cast::<u8>().wrapping_add(FIRST_BYTES));
    }

    #[inline]
    fn prefetch_bytes(&self) {
        prefetch(self.data());
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        // SAFETY: the driver, or the functions here, keep the frame inside the buffer and have written all of it. The
        // buffer has no other owner, and it is not written while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.data(), usize::from(self.data_len())) }
    }

    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.data(), usize::from(self.data_len())) }
    }

    #[inline]
    fn len(&self) -> usize {
        usize::from(self.data_len())
    }

    #[inline]
    fn push_front(&mut self, n: usize) -> bool {
        // SAFETY: the offset is that of the start of data.
        let start = unsafe { self.field::<u16>(HF_MBUF_DATA_OFF) };
        // SAFETY: as above; the buffer has no other owner.
        let offset = unsafe { start.read() };
        let grown = u16::try_from(n).ok().and_then(|n| Some((offset.checked_sub(n)?, self.data_len().checked_add(n)?)));
        let Some((offset, length)) = grown else { return false };
        // SAFETY: the new start is in the buffer, before the old one. Pool memory is zeroed when mapped, so the new
        // first bytes of the frame are initialized.
        unsafe { start.write(offset) };
        self.set_len(length);
        true
    }

    #[inline]
    fn pull_front(&mut self, n: usize) -> bool {
        let shrunk = u16::try_from(n).ok().and_then(|n| Some((n, self.data_len().checked_sub(n)?)));
        let Some((n, length)) = shrunk else { return false };
        // SAFETY: the offset is that of the start of data. The new start is inside the frame or at its end, so the sum
        // stays within the buffer's length, which has 16 bits.
        unsafe {
            let start = self.field::<u16>(HF_MBUF_DATA_OFF);
            start.write(start.read() + n);
        }
        self.set_len(length);
        true
    }
}

#[cfg(test)]
impl Mbuf {
    /// Whether the first byte of the frame is at the address that [`Packet::prefetch_ahead`] prefetches.
    pub(super) fn begins_where_expected(&self) -> bool {
        self.data().cast_const() == self.0.as_ptr().cast::<u8>().wrapping_add(FIRST_BYTES)
    }

    /// Chains `next` behind the frame, as drivers do with large frames.
    pub(super) fn chain_for_test(&mut self, next: Mbuf) {
        // SAFETY: the offset is that of the number of segments; the chain owns `next` from here on.
        unsafe {
            self.field::<u16>(dpdk_sys::HF_MBUF_NB_SEGS).write(2);
            (*self.0.as_ptr()).next = next.0.as_ptr();
        }
    }

    /// Sets the reference count to two.
    pub(super) fn share_for_test(&mut self) {
        // SAFETY: the offset is that of the reference count.
        unsafe { self.field::<u16>(HF_MBUF_REFCNT).write(2) };
    }

    /// Returns a second owner, which must exist after [`Mbuf::share_for_test`].
    pub(super) fn alias_for_test(&self) -> Mbuf {
        Mbuf(self.0)
    }
}
