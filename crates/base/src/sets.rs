//! Limits on ports, classes and frames, and sets of their indices, each in one word.
//!
//! # Example
//!
//! ```
//! use holdfast_base::sets::PortSet;
//!
//! let mut up = PortSet::first(4);
//! up.remove(2);
//! assert!(up.contains(3) && !up.contains(2));
//! assert_eq!((up - PortSet::only(0)).iter().collect::<Vec<_>>(), [1, 3]);
//! ```

use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Sub, SubAssign};

/// Maximum number of packets in a burst of a poll-mode driver.
pub const BURST: usize = 64;

/// Packets of a full burst of an lcore that is not known to be quick, and of a port with several receive queues.
pub const LEAST_BURST: usize = 32;

/// Maximum number of ports of a switch. DPDK as Debian builds it has 32. A set of 64 fits one word.
pub const MAX_PORTS: usize = 64;

/// Number of traffic classes, priority groups, queues and PFC priorities of a port (IEEE 802.1Q).
pub const CLASSES: usize = 8;

/// The number of each class, group, queue or priority as text.
pub const NUMBERS: [&str; CLASSES] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Defines a set of indices that fits one word.
macro_rules! set {
    ($(#[$doc:meta])* $name:ident, $word:ty, $most:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name($word);

        const _: () = assert!($most == <$word>::BITS as usize);

        impl $name {
            /// The set without members.
            pub const EMPTY: Self = Self(0);
            /// The set of all indices.
            pub const ALL: Self = Self(<$word>::MAX);

            /// Returns the set whose members are the positions of the bits set in `bits`.
            #[inline]
            #[must_use]
            pub const fn from_bits(bits: $word) -> Self {
                Self(bits)
            }

            /// Returns a word with one bit set for each member.
            #[inline]
            #[must_use]
            pub const fn bits(self) -> $word {
                self.0
            }

            /// Returns the set with the single member `index`.
            #[inline]
            #[must_use]
            pub const fn only(index: usize) -> Self {
                Self(1 << index)
            }

            /// Returns the set with the single member `index` if `is_member`, else the empty set.
            #[inline]
            #[must_use]
            pub const fn only_if(is_member: bool, index: usize) -> Self {
                Self((is_member as $word) << index)
            }

            /// Returns the set of all indices below `count`.
            #[inline]
            #[must_use]
            pub const fn first(count: usize) -> Self {
                if count >= $most { Self::ALL } else { Self((1 << count) - 1) }
            }

            /// Whether `index` is a member.
            #[inline]
            #[must_use]
            pub const fn contains(self, index: usize) -> bool {
                self.0 >> index & 1 == 1
            }

            /// Whether the set has no member.
            #[inline]
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Returns the number of members.
            #[inline]
            #[must_use]
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }

            /// Returns the lowest member.
            #[inline]
            #[must_use]
            pub const fn lowest(self) -> Option<usize> {
                if self.0 == 0 { None } else { Some(self.0.trailing_zeros() as usize) }
            }

            /// Returns the highest member.
            #[inline]
            #[must_use]
            pub const fn highest(self) -> Option<usize> {
                if self.0 == 0 { None } else { Some(self.0.ilog2() as usize) }
            }

            /// Adds `index`.
            #[inline]
            pub const fn insert(&mut self, index: usize) {
                self.0 |= 1 << index;
            }

            /// Removes `index`.
            #[inline]
            pub const fn remove(&mut self, index: usize) {
                self.0 &= !(1 << index);
            }

            /// Adds `index` if `is_member`, else removes it.
            #[inline]
            pub const fn set(&mut self, index: usize, is_member: bool) {
                self.0 = self.0 & !(1 << index) | (is_member as $word) << index;
            }

            /// Removes the lowest member and returns it.
            #[inline]
            pub const fn pop_lowest(&mut self) -> Option<usize> {
                if self.0 == 0 {
                    return None;
                }
                let index = self.0.trailing_zeros() as usize;
                self.0 &= self.0 - 1;
                Some(index)
            }

            /// Iterates over the members, lowest first.
            #[inline]
            pub fn iter(mut self) -> impl Iterator<Item = usize> + Clone {
                std::iter::from_fn(move || self.pop_lowest())
            }
        }

        impl BitOr for $name {
            type Output = Self;
            #[inline]
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $name {
            #[inline]
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl BitAnd for $name {
            type Output = Self;
            #[inline]
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl BitAndAssign for $name {
            #[inline]
            fn bitand_assign(&mut self, other: Self) {
                self.0 &= other.0;
            }
        }

        impl BitXor for $name {
            type Output = Self;
            /// Returns the members of exactly one of the two sets.
            #[inline]
            fn bitxor(self, other: Self) -> Self {
                Self(self.0 ^ other.0)
            }
        }

        impl BitXorAssign for $name {
            #[inline]
            fn bitxor_assign(&mut self, other: Self) {
                self.0 ^= other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            /// Returns the members that are not members of `other`.
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 &= !other.0;
            }
        }

        impl Not for $name {
            type Output = Self;
            #[inline]
            fn not(self) -> Self {
                Self(!self.0)
            }
        }

        impl FromIterator<usize> for $name {
            fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
                let mut set = Self::EMPTY;
                indices.into_iter().for_each(|index| set.insert(index));
                set
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_set().entries(self.iter()).finish()
            }
        }
    };
}

set! {
    /// A set of ports of a switch, by index.
    PortSet, u64, MAX_PORTS
}

set! {
    /// A set of traffic classes, priority groups, queues or PFC priorities of a port.
    ClassSet, u8, CLASSES
}

set! {
    /// A set of frames of a burst, by position.
    FrameSet, u64, BURST
}
