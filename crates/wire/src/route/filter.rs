//! A fast first check of packets' sources: few sources need a closer look.

use std::net::IpAddr;

/// Entries for own addresses.
const OWN: usize = 1 << OWN_BITS;
const OWN_BITS: u32 = 11;

/// Odd IPv4 sources, own addresses of both families and broadcast addresses of own networks, by a few of their bits. It
/// may name other sources too, and never misses one of these.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceFilter {
    /// By first octet: whether IPv4 addresses that begin with it may be odd.
    odd_v4: [bool; 256],
    /// By hash: addresses of the switch, and broadcast addresses of its networks.
    own: [bool; OWN],
}

impl SourceFilter {
    /// The filter of a switch that must find `addresses`.
    #[must_use]
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a IpAddr>) -> Self {
        let mut filter = Self { odd_v4: ODD_V4, own: [false; OWN] };
        for address in addresses {
            filter.own[match address {
                IpAddr::V4(address) => Self::place_v4(u32::from_le_bytes(address.octets())),
                IpAddr::V6(address) => Self::place(Self::key_v6(address.octets())),
            }] = true;
        }
        filter
    }

    /// The place of an IPv4 address, whose first octet is the lowest byte of `address`.
    #[inline]
    fn place_v4(address: u32) -> usize {
        // The highest bits of a product, like `place`. A factor of 32 bits spares wide constants and products.
        (address.wrapping_mul(0x9e37_79b9) >> (u32::BITS - OWN_BITS)) as usize % OWN
    }

    #[inline]
    fn place(key: u64) -> usize {
        // The highest bits of a product by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4).
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - OWN_BITS)) as usize % OWN
    }

    #[inline]
    fn key_v6(address: [u8; 16]) -> u64 {
        let [high, low] = [0, 8].map(|at| u64::from_be_bytes(std::array::from_fn(|byte| address[at + byte])));
        high.rotate_left(29) ^ low
    }

    /// Whether an IPv4 address needs a closer look: it may be no host's, or one of the switch.
    #[inline]
    #[must_use]
    pub fn suspects_v4(&self, src: u32) -> bool {
        // Both are read, since a branch between them costs more.
        let src = src.swap_bytes();
        self.odd_v4[usize::from(src as u8)] | self.own[Self::place_v4(src)]
    }

    /// Whether an IPv6 address may be one of the switch.
    #[inline]
    #[must_use]
    pub fn may_be_own_v6(&self, src: [u8; 16]) -> bool {
        self.own[Self::place(Self::key_v6(src))]
    }
}

/// First octets of IPv4 addresses that need a closer look: "this network", loopback, that of 169.254.0.0/16, groups and
/// reserved addresses.
const ODD_V4: [bool; 256] = {
    let mut odd = [false; 256];
    (odd[0], odd[127], odd[169]) = (true, true, true);
    let mut octet = 224;
    while octet < odd.len() {
        odd[octet] = true;
        octet += 1;
    }
    odd
};

impl std::fmt::Debug for SourceFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SourceFilter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn filter_never_misses_an_own_address() {
        let v4: Vec<u32> = (0..40).map(|n| u32::from_be_bytes([10, 0, n, 1])).collect();
        let v6: Ipv6Addr = "fd00::1".parse().unwrap();
        let own: Vec<IpAddr> = v4.iter().map(|&bits| IpAddr::V4(bits.into())).chain([v6.into()]).collect();
        let filter = SourceFilter::new(&own);
        assert!(v4.iter().all(|&address| filter.suspects_v4(address)) && filter.may_be_own_v6(v6.octets()));
        let foreign = (0..10_000).filter(|n| filter.suspects_v4(0x0b00_0000 + n)).count();
        assert!(foreign < 500, "{foreign} of 10,000 other addresses need the exact check");
    }
}
