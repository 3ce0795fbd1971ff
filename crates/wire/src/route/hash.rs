//! The hash of a flow, which selects the member of a next-hop group.
//!
//! All packets of a flow have one hash, so they keep their order. The fields are addresses, protocol and ports; RoCEv2
//! puts the entropy of a queue pair into its UDP source port. A fragment has no ports in general, so all fragments hash
//! by addresses and protocol. An IPv6 packet adds its flow label (RFC 6438).
//!
//! Each switch has its own seed. With equal seeds, the second tier of a fabric would see only flows of one hash range
//! and use one of its members (hash polarisation).

/// Hash settings of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowHash {
    seed: u64,
    /// Whether both directions of a flow have the same hash.
    pub is_symmetric: bool,
}

impl Default for FlowHash {
    fn default() -> Self {
        Self::new(0, false)
    }
}

impl FlowHash {
    /// Creates the hash of a switch with this seed.
    #[must_use]
    pub const fn new(seed: u64, is_symmetric: bool) -> Self {
        // Any two seeds differ in about half of the bits of this product.
        let seed = (seed ^ 0x6a09_e667_f3bc_c908).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { seed: seed ^ seed >> 32, is_symmetric }
    }

    /// Hash of an IPv4 flow. `ports` has source and destination port, the source above; it is zero for a fragment and
    /// for protocols without ports.
    #[inline]
    #[must_use]
    pub fn v4(self, src: u32, dst: u32, protocol: u8, ports: u32) -> u32 {
        let (mut addresses, mut ports) = (u64::from(src) << 32 | u64::from(dst), ports);
        if self.is_symmetric {
            // The order of the addresses decides, and that of the ports for equal addresses.
            if (src, ports >> 16) > (dst, ports & 0xffff) {
                (addresses, ports) = (addresses.rotate_left(32), ports.rotate_left(16));
            }
        }
        mix(addresses ^ self.seed, (u64::from(ports) << 8 | u64::from(protocol)) ^ self.seed.rotate_left(23))
    }

    /// Hash of the frames between two stations that are not IP: of their addresses, as numbers, and their VLAN.
    #[inline]
    #[must_use]
    pub fn stations(self, src: u64, dst: u64, vlan: u16) -> u32 {
        let (src, dst) = if self.is_symmetric && src > dst { (dst, src) } else { (src, dst) };
        mix((src << 16 | u64::from(vlan)) ^ self.seed, dst ^ self.seed.rotate_left(23))
    }

    /// Hash of an IPv6 flow; arguments as for [`FlowHash::v4`], with the flow label in its lower 20 bits.
    #[inline]
    #[must_use]
    pub fn v6(self, src: [u8; 16], dst: [u8; 16], protocol: u8, ports: u32, label: u32) -> u32 {
        let fold = |address: [u8; 16]| {
            let [high, low] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| address[at + byte])));
            folded_product(high ^ 0xa076_1d64_78bd_642f, low ^ self.seed)
        };
        let (mut src, mut dst, mut ports, mut label) = (fold(src), fold(dst), ports, label);
        if self.is_symmetric {
            // Each direction chooses its own label.
            label = 0;
            if (src, ports >> 16) > (dst, ports & 0xffff) {
                (src, dst, ports) = (dst, src, ports.rotate_left(16));
            }
        }
        let last = u64::from(label) << 40 ^ u64::from(ports) << 8 ^ u64::from(protocol);
        mix(src.rotate_left(17) ^ dst ^ self.seed, last ^ dst.rotate_left(41) ^ self.seed.rotate_left(23))
    }
}

/// The 128-bit product, folded to 64 bits: each bit depends on nearly all bits of both factors.
#[inline]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn mix(a: u64, b: u64) -> u32 {
    let once = folded_product(a ^ 0xe703_7ed1_a0b4_28db, b ^ 0x8ebc_6af0_9c88_c6e3);
    (folded_product(once, 0x5899_65cc_7537_4cc3) >> 13) as u32
}

#[cfg(test)]
#[path = "hash_tests.rs"]
mod tests;
