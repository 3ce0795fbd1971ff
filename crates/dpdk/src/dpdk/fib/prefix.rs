//! Prefixes of both families in one form.

use ipnet::{Ipv4Net, Ipv6Net};

/// A prefix of either family. The address begins at the highest bit; bits behind the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Prefix {
    pub address: u128,
    pub len: u8,
}

impl Prefix {
    /// The prefix of `len` ones, which ends where the address space ends.
    pub const fn last(len: u8) -> Self {
        Self { address: mask(len), len }
    }

    /// Whether the prefix ends where the address space ends.
    pub fn is_last(self) -> bool {
        self == Self::last(self.len)
    }
}

/// `len` ones, then zeros.
pub(super) const fn mask(len: u8) -> u128 {
    match len {
        0 => 0,
        len => u128::MAX << (128 - len),
    }
}

impl From<Ipv4Net> for Prefix {
    fn from(net: Ipv4Net) -> Self {
        Self { address: u128::from(net.network().to_bits()) << 96, len: net.prefix_len() }
    }
}

impl From<Ipv6Net> for Prefix {
    fn from(net: Ipv6Net) -> Self {
        Self { address: net.network().to_bits(), len: net.prefix_len() }
    }
}
