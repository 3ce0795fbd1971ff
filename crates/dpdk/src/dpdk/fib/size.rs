//! Sizes of a table's parts, and the memory that they take.

use crate::route::FibSize;

/// Most prefixes of a family. DPDK's offsets into the tbl8s have 32 bits.
pub(super) const MAX_ROUTES: u32 = 1 << 22;

/// Prefixes beyond the size: the guard of `V4`.
const SPARE_ROUTES: u32 = 2;

/// Tbl8s beyond the reserved ones. IPv4 wants two free ones to take one. IPv6 takes one in passing for a prefix of
/// whole bytes, and one for each end of a range.
const SPARE_TBL8S: u32 = 64;

/// Bytes of a tbl8: 256 next hops.
const TBL8: u64 = 256 * 4;

/// Bytes of the first table, with an entry for each value of 24 bits.
const TBL24: u64 = (1 << 24) * 4;

/// Bytes of an ordinary page.
const PAGE: u64 = 4096;

/// Bytes for what DPDK's heap and pools add: headers, alignment, and unused ends.
const OVERHEAD: u64 = 1 << 20;

/// The room of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Prefixes.
    pub routes: u32,
    /// Tbl8s that the prefixes may need.
    pub tbl8s: u32,
}

impl Layout {
    /// Returns the room for IPv4 and for IPv6.
    pub fn of(size: FibSize) -> [Self; 2] {
        let [ipv4, ipv6] = size.tbl8s();
        [Self { routes: size.ipv4.max(1), tbl8s: ipv4 }, Self { routes: size.ipv6.max(1), tbl8s: ipv6 }]
    }

    /// Prefixes that DPDK makes room for.
    pub fn dpdk_routes(self) -> i32 {
        i32::try_from(self.routes + SPARE_ROUTES).unwrap_or(i32::MAX)
    }

    /// Tbl8s that DPDK makes.
    pub fn dpdk_tbl8s(self) -> u32 {
        self.tbl8s + SPARE_TBL8S
    }

    /// Upper bound of the bytes that the table takes.
    pub fn bytes(self) -> u64 {
        // The RIB has two nodes for each prefix. Nodes have up to 56 bytes and come from a pool.
        let nodes = 2 * (u64::from(self.routes) + u64::from(SPARE_ROUTES));
        // SAFETY: only calculates; a null pointer requests the sum alone.
        let node = u64::from(unsafe { dpdk_sys::rte_mempool_calc_obj_size(56, 0, std::ptr::null_mut()) });
        // In ordinary pages no node crosses the end of one.
        let rib = nodes.div_ceil(PAGE / node) * PAGE + (nodes + 1).next_power_of_two() * 8;
        // A table of free tbl8s has up to 4 bytes for each.
        let tbl8s = u64::from(self.tbl8s) + u64::from(SPARE_TBL8S) + 1;
        TBL24 + tbl8s * (TBL8 + 4) + rib + OVERHEAD
    }
}
