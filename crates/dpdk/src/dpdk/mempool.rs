//! Pools of packet buffers.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::{HF_MEMPOOL_CACHE_MAX, HF_MEMPOOL_NAME_MAX, HF_SOCKET_ANY, rte_mempool};

use super::eal::Shared;
use super::{Eal, Error, HEADROOM, Mbuf};

/// A pool of packet buffers of one size, for use from any thread.
///
/// Clones refer to the same pool. Dropping the last one frees its memory. While buffers are out, it leaves that to the
/// [`Eal`].
#[derive(Clone)]
pub struct Mempool(Arc<Pool>);

/// The pool itself.
struct Pool {
    raw: NonNull<rte_mempool>,
    name: String,
    count: u32,
    data_room: u16,
    eal: Arc<Shared>,
}

// SAFETY: DPDK's pools are made for many threads. Each lcore has its own cache, and other threads bypass the caches.
// The ring behind them takes several producers and consumers. The rest of the struct is not written.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

/// Whether all `count` buffers of `pool` are in it.
///
/// # Safety
///
/// `pool` must be valid.
pub(super) unsafe fn all_back(pool: NonNull<rte_mempool>, count: u32) -> bool {
    // SAFETY: the caller ensures that the pool is valid; the count is only read.
    unsafe { dpdk_sys::rte_mempool_avail_count(pool.as_ptr()) >= count }
}

/// Bytes of an ordinary page.
const PAGE: usize = 4096;

impl Mempool {
    /// Creates a pool of `count` buffers with `data_room` bytes each, of which [`HEADROOM`] stay free in front.
    ///
    /// Each lcore caches up to `cache` buffers (at most 512, and two thirds of the pool). `socket` is the NUMA node of
    /// the memory; `None` allows any. `name` must differ from that of every other pool of the process.
    ///
    /// # Errors
    ///
    /// [`Error::NoMemory`], or [`Error::Invalid`] for a bad or repeated name or a size that cannot hold a frame.
    pub fn create(
        eal: &Eal,
        name: &str,
        count: u32,
        data_room: u16,
        cache: u32,
        socket: Option<u32>,
    ) -> Result<Self, Error> {
        let invalid = |what: String, remedy: &str| Error::Invalid { what, remedy: remedy.to_owned() };
        let c_name = match CString::new(name) {
            Ok(c_name) if !name.is_empty() && name.len() <= HF_MEMPOOL_NAME_MAX as usize => c_name,
            _ => return Err(invalid(format!("a pool called {name:?}"), "use 1 to 22 plain characters")),
        };
        if count == 0 || usize::from(data_room) < HEADROOM + 64 {
            return Err(invalid(
                format!("a pool of {count} buffers of {data_room} bytes"),
                "use at least one buffer, each of at least 192 bytes (128 of headroom and a frame)",
            ));
        }
        let cache = cache.min(HF_MEMPOOL_CACHE_MAX).min(count / 3 * 2);
        let socket = socket.and_then(|socket| i32::try_from(socket).ok()).unwrap_or(HF_SOCKET_ANY);
        // SAFETY: EAL runs, the name is a string with a zero at its end, which DPDK copies.
        let raw = unsafe { dpdk_sys::rte_pktmbuf_pool_create(c_name.as_ptr(), count, cache, 0, data_room, socket) };
        let Some(raw) = NonNull::new(raw) else {
            // SAFETY: reads a variable of the calling thread.
            let errno = unsafe { dpdk_sys::hf_errno() };
            return Err(if errno == dpdk_sys::libc::EEXIST {
                invalid(format!("a second pool called `{name}`"), "give each pool its own name")
            } else {
                let mib = Self::footprint(count, data_room, false).div_ceil(1 << 20);
                Error::NoMemory { what: format!("pool `{name}` of {count} buffers"), mib }
            });
        };
        let eal = Arc::clone(eal.shared());
        Ok(Self(Arc::new(Pool { raw, name: name.to_owned(), count, data_room, eal })))
    }

    /// Returns the bytes that a pool takes, to size the memory given to EAL. `huge` is whether that memory is made of
    /// hugepages. In ordinary pages no buffer crosses a page boundary, unless it is larger than a page.
    #[must_use]
    pub fn footprint(count: u32, data_room: u16, huge: bool) -> usize {
        let element = size_of::<dpdk_sys::rte_mbuf>() + usize::from(data_room);
        let element = u32::try_from(element).unwrap_or(u32::MAX);
        // SAFETY: only calculates; a null pointer requests the sum alone.
        let object = unsafe { dpdk_sys::rte_mempool_calc_obj_size(element, 0, std::ptr::null_mut()) };
        // Beside the objects: one pointer each in a ring of the next power of two, and the caches of every lcore.
        let object = object as usize;
        let room = match PAGE / object {
            _ if huge => object,
            0 => object.next_multiple_of(PAGE),
            in_page => PAGE / in_page,
        };
        count as usize * room + (count as usize + 1).next_power_of_two() * 8 + (2 << 20)
    }

    /// Returns the name of the pool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the number of all buffers.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.count
    }

    /// Returns the bytes of each buffer, with the headroom.
    #[must_use]
    pub fn data_room(&self) -> u16 {
        self.0.data_room
    }

    /// Returns the number of free buffers. It walks all caches, so it is not for the packet path. It is exact only
    /// while no other thread takes or returns buffers.
    #[must_use]
    pub fn available(&self) -> u32 {
        // SAFETY: the pool is valid while `self` lives; the count is only read.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.0.raw.as_ptr()) }
    }

    /// Returns the number of buffers that are out, as exact as [`Mempool::available`].
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.0.count.saturating_sub(self.available())
    }

    /// Allocates a buffer with an empty frame and the standard headroom; `None` when the pool is empty.
    #[inline]
    #[must_use]
    pub fn alloc(&self) -> Option<Mbuf> {
        // SAFETY: the pool is valid while `self` lives.
        let raw = unsafe { dpdk_sys::hf_mbuf_alloc(self.0.raw.as_ptr()) };
        // SAFETY: an mbuf fresh from its pool has one segment, one reference and no other owner.
        NonNull::new(raw).map(|raw| unsafe { Mbuf::from_raw(raw) })
    }

    /// Allocates a buffer with `frame`; `None` when the pool is empty or the frame is too long for its buffers.
    #[inline]
    #[must_use]
    pub fn alloc_with(&self, frame: &[u8]) -> Option<Mbuf> {
        let mut mbuf = self.alloc()?;
        if mbuf.set_frame(frame) {
            return Some(mbuf);
        }
        mbuf.free();
        None
    }

    /// Returns DPDK's handle, valid while `self` exists.
    pub(super) fn as_ptr(&self) -> *mut rte_mempool {
        self.0.raw.as_ptr()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the pool is valid; it was made in `create` and is freed nowhere else.
        if unsafe { all_back(self.raw, self.count) } {
            // SAFETY: this was its last owner, and no buffer is out, so nothing refers to its memory.
            unsafe { dpdk_sys::rte_mempool_free(self.raw.as_ptr()) };
        } else {
            self.eal.adopt(self.raw, self.count);
        }
    }
}
