//! Random prefixes as they occur in routing tables; `perf/fib.rs` uses them too.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Lengths of IPv4 prefixes and their shares in a thousand: those of the internet's table, and a router's own subnets
/// and hosts.
const LENGTHS_V4: [(u8, u64); 15] = [
    (24, 589),
    (23, 95),
    (22, 105),
    (21, 50),
    (20, 45),
    (19, 27),
    (18, 14),
    (17, 8),
    (16, 14),
    (15, 2),
    (14, 1),
    (25, 10),
    (28, 10),
    (30, 10),
    (32, 20),
];

/// Lengths of IPv6 prefixes and their shares in a thousand, likewise.
const LENGTHS_V6: [(u8, u64); 12] = [
    (48, 450),
    (32, 120),
    (44, 90),
    (40, 90),
    (36, 40),
    (29, 40),
    (46, 30),
    (34, 20),
    (28, 10),
    (24, 10),
    (64, 70),
    (128, 30),
];

/// The first 12 bits of the blocks from which IPv6 addresses are allocated.
const BLOCKS_V6: [u128; 6] = [0x200, 0x240, 0x260, 0x280, 0x2a0, 0x2c0];

fn length(lengths: &[(u8, u64)], below: &mut impl FnMut(u64) -> u64) -> u8 {
    let mut draw = below(1000);
    for &(length, share) in lengths {
        if draw < share {
            return length;
        }
        draw -= share;
    }
    unreachable!("the shares are a thousand")
}

/// Returns an IPv4 prefix. `below` draws a number below its argument.
pub fn v4(below: &mut impl FnMut(u64) -> u64) -> Ipv4Net {
    let address = Ipv4Addr::from_bits(0x0100_0000 + below(0xdf00_0000 - 0x0100_0000) as u32);
    Ipv4Net::new_assert(address, length(&LENGTHS_V4, below)).trunc()
}

/// Returns an IPv6 prefix of one of `providers` providers, which have a /32 each. Low numbers of sites and subnets are
/// more frequent, and hosts have random interface identifiers.
pub fn v6(providers: u64, below: &mut impl FnMut(u64) -> u64) -> Ipv6Net {
    let provider = below(providers) as u128;
    let block = BLOCKS_V6[(provider % 6) as usize] << 116;
    // Registries leave gaps between providers. The factor is odd, so no two of them are equal.
    let provider = ((provider / 6 * 0x9e37) & 0xf_ffff) << 96;
    let mut low = |bits: u32| below(1 << bits).min(below(1 << bits)) as u128;
    let (site, subnet) = (low(16) << 80, low(16) << 64);
    let host = below(1 << 32) as u128 | (below(1 << 32) as u128) << 32;
    Ipv6Net::new_assert(Ipv6Addr::from_bits(block | provider | site | subnet | host), length(&LENGTHS_V6, below))
        .trunc()
}
