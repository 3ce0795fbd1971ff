//! The tables of DPDK, one for each family, with the RIB behind them.

use std::ffi::CString;
use std::ptr::NonNull;

use dpdk_sys::{
    HF_SOCKET_ANY, RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_4B, RTE_FIB6_TRIE, RTE_FIB6_TRIE_4B, rte_fib, rte_fib_conf,
    rte_fib6, rte_fib6_conf, rte_rib, rte_rib_node, rte_rib6, rte_rib6_node,
};

use super::prefix::Prefix;
use super::size::Layout;
use crate::route::GroupId;

/// The next hop of a prefix that is in the RIB and not yet in the tables: the largest that fits 31 bits. No group has
/// it.
pub(super) const UNWRITTEN: u32 = i32::MAX as u32;

/// A table of one family. `Writer` ensures that it has room for each prefix that is set.
pub(super) trait Table {
    /// Whether the table has `prefix`.
    fn contains(&mut self, prefix: Prefix) -> bool;
    /// Sets the group of `prefix`, in place of an earlier one.
    ///
    /// # Panics
    ///
    /// If DPDK has no room.
    fn set(&mut self, prefix: Prefix, group: GroupId);
    /// Removes `prefix`, which the table has.
    fn delete(&mut self, prefix: Prefix);
}

/// Fails if DPDK did not write the tables. `status` is its answer, and `next_hop` that of the RIB afterwards: DPDK
/// returns success without room, and then leaves the RIB unchanged.
fn check_written(prefix: Prefix, group: GroupId, status: i32, next_hop: u64) {
    let is_written = status == 0 && next_hop == u64::from(group.0);
    assert!(is_written, "DPDK has no room for {prefix:x?} (status {status}), although it was reserved");
}

/// The table of IPv4, DIR24_8.
pub(super) struct V4 {
    fib: NonNull<rte_fib>,
    rib: NonNull<rte_rib>,
}

/// A prefix below 0.0.0.0/0 that is not in 0.0.0.0/24. DPDK writes 0.0.0.0/0 only if the table has one.
const GUARD: Prefix = Prefix { address: 1 << (96 + 8), len: 24 };

impl V4 {
    /// Creates an empty table; `None` and an `rte_errno` if that fails.
    pub fn create(name: &str, layout: Layout) -> Option<Self> {
        let name = CString::new(format!("{name}_4")).ok()?;
        let mut conf = rte_fib_conf {
            type_: RTE_FIB_DIR24_8,
            default_nh: GroupId::NO_ROUTE.0.into(),
            max_routes: layout.dpdk_routes(),
            ..Default::default()
        };
        conf.__bindgen_anon_1.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
        conf.__bindgen_anon_1.dir24_8.num_tbl8 = layout.dpdk_tbl8s();
        // SAFETY: EAL runs. The name has a zero at its end, and DPDK copies both arguments.
        let fib = NonNull::new(unsafe { dpdk_sys::rte_fib_create(name.as_ptr(), HF_SOCKET_ANY, &mut conf) })?;
        // SAFETY: the table was just created.
        let rib = NonNull::new(unsafe { dpdk_sys::rte_fib_get_rib(fib.as_ptr()) })?;
        Some(Self { fib, rib })
    }

    /// Returns DPDK's handle, valid while `self` exists.
    pub fn fib(&self) -> NonNull<rte_fib> {
        self.fib
    }

    fn find(&mut self, prefix: Prefix) -> *mut rte_rib_node {
        // SAFETY: the RIB exists while `self` does.
        unsafe { dpdk_sys::rte_rib_lookup_exact(self.rib.as_ptr(), address4(prefix), prefix.len) }
    }

    fn set_one(&mut self, prefix: Prefix, group: GroupId) {
        let mut node = self.find(prefix);
        // SAFETY: the table and its RIB exist while `self` does, and only this thread writes them. The node is null
        // only if the RIB has no room, and then it is not used.
        unsafe {
            if node.is_null() {
                node = dpdk_sys::rte_rib_insert(self.rib.as_ptr(), address4(prefix), prefix.len);
                assert!(!node.is_null(), "DPDK's RIB has no node for {prefix:x?}, although it has two for each prefix");
                dpdk_sys::rte_rib_set_nh(node, UNWRITTEN.into());
            }
            let status = dpdk_sys::rte_fib_add(self.fib.as_ptr(), address4(prefix), prefix.len, group.0.into());
            let mut next_hop = 0;
            dpdk_sys::rte_rib_get_nh(node, &mut next_hop);
            check_written(prefix, group, status, next_hop);
        }
    }

    fn delete_one(&mut self, prefix: Prefix) {
        // SAFETY: the table exists while `self` does, and only this thread writes it.
        let status = unsafe { dpdk_sys::rte_fib_delete(self.fib.as_ptr(), address4(prefix), prefix.len) };
        assert_eq!(status, 0, "DPDK did not remove {prefix:x?}");
    }

    /// Calls `edit`. If `prefix` is the default route, the guard is in the table meanwhile.
    fn guarded(&mut self, prefix: Prefix, edit: impl FnOnce(&mut Self)) {
        let is_guarded = prefix.len == 0 && !self.contains(GUARD);
        if is_guarded {
            self.set_one(GUARD, GroupId::NO_ROUTE);
        }
        edit(self);
        if is_guarded {
            self.delete_one(GUARD);
        }
    }
}

impl Table for V4 {
    fn contains(&mut self, prefix: Prefix) -> bool {
        !self.find(prefix).is_null()
    }

    fn set(&mut self, prefix: Prefix, group: GroupId) {
        self.guarded(prefix, |table| table.set_one(prefix, group));
    }

    fn delete(&mut self, prefix: Prefix) {
        self.guarded(prefix, |table| table.delete_one(prefix));
    }
}

impl Drop for V4 {
    fn drop(&mut self) {
        // SAFETY: created in `create` and freed nowhere else. Its owner, `RteFib`, is gone, so no lcore reads it.
        unsafe { dpdk_sys::rte_fib_free(self.fib.as_ptr()) };
    }
}

fn address4(prefix: Prefix) -> u32 {
    (prefix.address >> 96) as u32
}

/// The table of IPv6, a trie.
///
/// Addresses are arrays of bytes in DPDK 22.11, and `struct rte_ipv6_addr` of the same bytes since 24.11. `cast` gives
/// DPDK the pointer that its headers declare.
pub(super) struct V6 {
    fib: NonNull<rte_fib6>,
    rib: NonNull<rte_rib6>,
}

impl V6 {
    /// Creates an empty table; `None` and an `rte_errno` if that fails.
    pub fn create(name: &str, layout: Layout) -> Option<Self> {
        let name = CString::new(format!("{name}_6")).ok()?;
        let mut conf = rte_fib6_conf {
            type_: RTE_FIB6_TRIE,
            default_nh: GroupId::NO_ROUTE.0.into(),
            max_routes: layout.dpdk_routes(),
            ..Default::default()
        };
        conf.__bindgen_anon_1.trie.nh_sz = RTE_FIB6_TRIE_4B;
        conf.__bindgen_anon_1.trie.num_tbl8 = layout.dpdk_tbl8s();
        // SAFETY: EAL runs. The name has a zero at its end, and DPDK copies both arguments.
        let fib = NonNull::new(unsafe { dpdk_sys::rte_fib6_create(name.as_ptr(), HF_SOCKET_ANY, &mut conf) })?;
        // SAFETY: the table was just created.
        let rib = NonNull::new(unsafe { dpdk_sys::rte_fib6_get_rib(fib.as_ptr()) })?;
        Some(Self { fib, rib })
    }

    /// Returns DPDK's handle, valid while `self` exists.
    pub fn fib(&self) -> NonNull<rte_fib6> {
        self.fib
    }

    fn find(&mut self, prefix: Prefix) -> *mut rte_rib6_node {
        let address = prefix.address.to_be_bytes();
        // SAFETY: the RIB exists while `self` does. DPDK reads the address only during the call.
        unsafe { dpdk_sys::rte_rib6_lookup_exact(self.rib.as_ptr(), address.as_ptr().cast(), prefix.len) }
    }
}

impl Table for V6 {
    fn contains(&mut self, prefix: Prefix) -> bool {
        !self.find(prefix).is_null()
    }

    fn set(&mut self, prefix: Prefix, group: GroupId) {
        let address = prefix.address.to_be_bytes();
        let mut node = self.find(prefix);
        // SAFETY: the table and its RIB exist while `self` does, and only this thread writes them. The node is null
        // only if the RIB has no room, and then it is not used. DPDK reads the address only during the calls.
        unsafe {
            if node.is_null() {
                node = dpdk_sys::rte_rib6_insert(self.rib.as_ptr(), address.as_ptr().cast(), prefix.len);
                assert!(!node.is_null(), "DPDK's RIB has no node for {prefix:x?}, although it has two for each prefix");
                dpdk_sys::rte_rib6_set_nh(node, UNWRITTEN.into());
            }
            let address = address.as_ptr().cast();
            let status = dpdk_sys::rte_fib6_add(self.fib.as_ptr(), address, prefix.len, group.0.into());
            let mut next_hop = 0;
            dpdk_sys::rte_rib6_get_nh(node, &mut next_hop);
            check_written(prefix, group, status, next_hop);
        }
    }

    fn delete(&mut self, prefix: Prefix) {
        let address = prefix.address.to_be_bytes();
        // SAFETY: the table exists while `self` does, and only this thread writes it. DPDK reads the address only
        // during the call.
        let status = unsafe { dpdk_sys::rte_fib6_delete(self.fib.as_ptr(), address.as_ptr().cast(), prefix.len) };
        assert_eq!(status, 0, "DPDK did not remove {prefix:x?}");
    }
}

impl Drop for V6 {
    fn drop(&mut self) {
        // SAFETY: created in `create` and freed nowhere else. Its owner, `RteFib`, is gone, so no lcore reads it.
        unsafe { dpdk_sys::rte_fib6_free(self.fib.as_ptr()) };
    }
}
