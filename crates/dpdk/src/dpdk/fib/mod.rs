//! The forwarding table in DPDK: rte_fib (DIR24_8) for IPv4 and rte_fib6 (a trie) for IPv6, with next hops of 4 bytes.
//!
//! DPDK 22.11 keeps the prefixes of a family in a tree, the RIB, and derives from it the tables that look-ups read. A
//! first table has an entry for each value of the first 24 bits of an address. Tables of 256 entries, the tbl8s,
//! resolve the next bits, eight at a time.
//!
//! # Defects of DPDK 22.11
//!
//! `Writer` and `Table` avoid these; `tests/defects.rs` has a test for each.
//!
//! - **Adjacent prefixes at the end of the address space.** With 224.0.0.0/4 and 240.0.0.0/4 in the table, setting
//!   0.0.0.0/0 overwrites both. The end of the second wraps to zero, and DPDK then writes the whole address space.
//!   IPv6 has the same defect. `Writer::edit` removes the inner prefixes first and sets them again afterwards.
//! - **A default route over 0.0.0.0/25 and longer only.** Setting it writes nothing. `V4` has a guard prefix meanwhile.
//! - **Reservations of tbl8s.** A prefix of more than 24 bits with the next hop of its parent reserves no tbl8, but its
//!   removal releases one. Below zero, IPv4 refuses all further such prefixes. IPv6 never releases a reservation.
//!   `Table::set` puts the prefix into the RIB itself and then replaces its next hop, which reserves nothing. `Tbl8s`
//!   counts instead.
//! - **Lost errors.** Replacing a next hop returns success even if no tbl8 is left, with half of the table written.
//!   `Writer::set` refuses a prefix before DPDK sees it, and `Table::set` checks that DPDK wrote it.
//!
//! Creating a table writes both first tables, 128 MiB, even in ordinary pages. The tbl8s stay untouched until used.
//!
//! rte_fib of 22.11 has no RCU: it can reuse a tbl8 while an lcore reads it. A switch has two tables for that reason.
//! ffi/VERSIONS.md has what later versions changed.

mod prefix;
mod size;
mod table;
mod tbl8;
#[cfg(test)]
mod tests;
mod writer;

use std::ffi::c_int;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use dpdk_sys::{HF_MEMPOOL_NAME_MAX, rte_fib, rte_fib6};
use ipnet::IpNet;

use self::prefix::Prefix;
use self::size::Layout;
use self::table::{V4, V6};
use self::writer::Writer;
use super::eal::Shared;
use super::{Eal, Error};
use crate::route::{Fib, FibFull, FibMemory, FibSize, FibWriter, FoundGroup, GroupId};
use crate::sync::{AtomicBool, Ordering};

/// Longest name of a table: DPDK's names of its parts have five characters more.
const NAME_MAX: usize = HF_MEMPOOL_NAME_MAX as usize - 5;

/// A forwarding table in DPDK's memory.
///
/// Any number of lcores may look up at once. One thread writes, and no lcore may look up meanwhile; a build with debug
/// assertions checks that.
pub struct RteFib {
    v4: NonNull<rte_fib>,
    v6: NonNull<rte_fib6>,
    /// The writers own the tables.
    writers: Mutex<Writers>,
    is_writing: AtomicBool,
    bytes: u64,
    _eal: Arc<Shared>,
}

/// The writer of each family.
struct Writers {
    v4: Writer<V4>,
    v6: Writer<V6>,
}

// SAFETY: DPDK's tables belong to no thread. Writers are behind a lock. A look-up only reads; the contract of
// `FibWriter` is that none runs during a write. An IPv4 look-up that breaks it still reads inside the tables.
unsafe impl Send for RteFib {}
// SAFETY: as above.
unsafe impl Sync for RteFib {}

impl RteFib {
    /// Creates an empty table for `size` prefixes. `name` must differ from that of every other table.
    ///
    /// # Errors
    ///
    /// [`Error::NoMemory`], or [`Error::Invalid`] for a bad or repeated name or too large a size.
    pub fn create(eal: &Eal, name: &str, size: FibSize) -> Result<Self, Error> {
        let [v4, v6] = Layout::of(size);
        Self::with_layout(eal, name, v4, v6)
    }

    fn with_layout(eal: &Eal, name: &str, v4: Layout, v6: Layout) -> Result<Self, Error> {
        let invalid = |what: String, remedy: String| Error::Invalid { what, remedy };
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let remedy = format!("use 1 to {NAME_MAX} letters and digits");
            return Err(invalid(format!("a forwarding table called {name:?}"), remedy));
        }
        let what = format!("forwarding table `{name}` of {} IPv4 and {} IPv6 prefixes", v4.routes, v6.routes);
        if v4.routes.max(v6.routes) > size::MAX_ROUTES {
            return Err(invalid(what, format!("configure at most {} (`routing.fib`)", size::MAX_ROUTES)));
        }
        let bytes = v4.bytes() + v6.bytes();
        let failed = || {
            // SAFETY: reads a variable of the calling thread.
            if unsafe { dpdk_sys::hf_errno() } == dpdk_sys::libc::EEXIST {
                invalid(format!("a second {what}"), "give each table its own name".to_owned())
            } else {
                Error::NoMemory { what: what.clone(), mib: bytes.div_ceil(1 << 20) as usize }
            }
        };
        let (table4, table6) = (V4::create(name, v4).ok_or_else(failed)?, V6::create(name, v6).ok_or_else(failed)?);
        let (fib4, fib6) = (table4.fib(), table6.fib());
        let writers = Writers { v4: Writer::new(table4, v4), v6: Writer::new(table6, v6) };
        Ok(Self {
            v4: fib4,
            v6: fib6,
            writers: Mutex::new(writers),
            is_writing: AtomicBool::new(false),
            bytes,
            _eal: Arc::clone(eal.shared()),
        })
    }

    /// Returns an upper bound of the memory in MiB that a table of this size takes, to size the memory given to EAL.
    #[must_use]
    pub fn mib(size: FibSize) -> u32 {
        let bytes: u64 = Layout::of(size).map(Layout::bytes).iter().sum();
        u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX)
    }

    /// Calls `write` with the writers, and marks the table as being written.
    fn write<R>(&self, write: impl FnOnce(&mut Writers) -> R) -> R {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_writing.store(true, Ordering::Relaxed);
        let result = write(&mut writers);
        self.is_writing.store(false, Ordering::Relaxed);
        result
    }

    fn check_unwritten(&self) {
        debug_assert!(!self.is_writing.load(Ordering::Relaxed), "an lcore reads a table that is being written");
    }
}

impl Fib for RteFib {
    fn lookup_v4(&self, addresses: &[u32], groups: &mut [FoundGroup]) {
        self.check_unwritten();
        let groups = &mut groups[..addresses.len()];
        // SAFETY: the table exists while `self` does. There is a group for each address, and a group is the number that
        // DPDK writes. DPDK does not write the addresses.
        unsafe {
            let addresses = addresses.as_ptr().cast_mut();
            dpdk_sys::rte_fib_lookup_bulk(
                self.v4.as_ptr(),
                addresses,
                groups.as_mut_ptr().cast(),
                groups.len() as c_int,
            );
        }
    }

    fn lookup_v6(&self, addresses: &[[u8; 16]], groups: &mut [FoundGroup]) {
        self.check_unwritten();
        let groups = &mut groups[..addresses.len()];
        // SAFETY: as for IPv4. The table is not being written, so DPDK reads no more bytes than an address has.
        unsafe {
            let addresses = addresses.as_ptr().cast_mut().cast();
            dpdk_sys::rte_fib6_lookup_bulk(
                self.v6.as_ptr(),
                addresses,
                groups.as_mut_ptr().cast(),
                groups.len() as c_int,
            );
        }
    }
}

impl FibWriter for RteFib {
    fn set(&self, prefix: IpNet, group: GroupId) -> Result<(), FibFull> {
        let is_set = self.write(|writers| match prefix {
            IpNet::V4(prefix) => writers.v4.set(Prefix::from(prefix), group),
            IpNet::V6(prefix) => writers.v6.set(Prefix::from(prefix), group),
        });
        is_set.then_some(()).ok_or(FibFull(prefix))
    }

    fn remove(&self, prefix: IpNet) {
        self.write(|writers| match prefix {
            IpNet::V4(prefix) => writers.v4.remove(Prefix::from(prefix)),
            IpNet::V6(prefix) => writers.v6.remove(Prefix::from(prefix)),
        });
    }

    fn memory(&self) -> FibMemory {
        let writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        FibMemory { ipv4_routes: writers.v4.routes(), ipv6_routes: writers.v6.routes(), bytes: self.bytes }
    }
}

impl fmt::Debug for RteFib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RteFib").field(&self.memory()).finish()
    }
}
