//! Quantities with their units as types, parsed from their usual notation (`25G`, `3m`, `12MiB`, `1/8`).
//!
//! Module interfaces use these types instead of bare integers wherever one unit could be mistaken for another.
//!
//! # Example
//!
//! ```
//! use holdfast_base::units::{BitRate, Bytes, Cells};
//!
//! let rate: BitRate = "25G".parse()?;
//! assert_eq!((rate.0, rate.to_string()), (25_000_000_000, "25G".to_owned()));
//! assert_eq!(Bytes(1000).to_cells_ceil(Bytes(208)), Cells(5));
//! assert_eq!("25Q".parse::<BitRate>().unwrap_err().to_string().split(';').next(), Some("`25Q` is not a bit rate"));
//! # Ok::<(), holdfast_base::units::UnitError>(())
//! ```

mod notation;

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Bytes that a frame occupies on the wire beyond its own: preamble, start delimiter, frame check sequence and
/// inter-frame gap.
pub const WIRE_OVERHEAD: u32 = 8 + 4 + 12;

/// The error for a text that is not the expected quantity. It names valid spellings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {what}; write {remedy}")]
pub struct UnitError {
    /// The text as it was written.
    pub value: String,
    /// The expected quantity, with its article.
    pub what: &'static str,
    /// Valid spellings.
    pub remedy: &'static str,
}

/// A count of buffer cells; a packet takes whole cells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells(pub u32);

/// A count of bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

/// A rate in packets per second.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketRate(pub u32);

/// A length in millimetres.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length {
    /// Millimetres.
    pub mm: u64,
}

/// A time span in nanoseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

/// A pause time in quanta of 512 bit times (IEEE 802.3 annex 31B).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quanta(pub u16);

/// A point in time, in ticks of the clock that drives the switch: the TSC on an lcore, picoseconds in simulation.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub u64);

/// The Dynamic Threshold factor as a power of two, 2^-7 to 2^3 (SONiC `dynamic_th`, devlink-sb).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alpha(i8);

/// A probability in parts of 2^16.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(pub u32);

impl Bytes {
    /// Returns the number of whole cells of `cell` bytes that hold this many bytes; saturates.
    #[must_use]
    pub fn to_cells_ceil(self, cell: Bytes) -> Cells {
        Cells(u32::try_from(self.0.div_ceil(cell.0.max(1))).unwrap_or(u32::MAX))
    }

    /// Returns the number of whole cells of `cell` bytes that fit into this many bytes; saturates.
    #[must_use]
    pub fn to_cells_floor(self, cell: Bytes) -> Cells {
        Cells(u32::try_from(self.0 / cell.0.max(1)).unwrap_or(u32::MAX))
    }
}

/// Implements sums and differences of counts. Like those of integers, debug builds check them for overflow.
macro_rules! count {
    ($($unit:ident),+ $(,)?) => {$(
        impl Add for $unit {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $unit {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl AddAssign for $unit {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl SubAssign for $unit {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Sum for $unit {
            #[inline]
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                Self(counts.map(|count| count.0).sum())
            }
        }

        impl $unit {
            /// The sum; saturates.
            #[inline]
            #[must_use]
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference; zero if `other` is more.
            #[inline]
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// The difference; `None` if `other` is more.
            #[inline]
            #[must_use]
            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }
        }
    )+};
}

count!(Cells, Bytes);

/// The size of a cell, prepared to count the cells of a frame without a division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSize {
    bytes: u32,
    /// 2^40 / bytes, rounded up. The result is exact for every frame length (Granlund & Montgomery 1994). The sum in
    /// `cells_of` has 17 bits and the size 16, and 33 is less than 40.
    reciprocal: u64,
}

impl CellSize {
    /// Creates a size of `cell` bytes, clamped to 1 to 65535.
    #[must_use]
    pub fn new(cell: Bytes) -> Self {
        let bytes = u32::try_from(cell.0).unwrap_or(u32::MAX).clamp(1, u32::from(u16::MAX));
        Self { bytes, reciprocal: (1_u64 << 40).div_ceil(u64::from(bytes)) }
    }

    /// Returns the number of whole cells that hold a frame of `len` bytes.
    #[inline]
    #[must_use]
    pub fn cells_of(self, len: u16) -> Cells {
        Cells((((u64::from(len) + u64::from(self.bytes) - 1) * self.reciprocal) >> 40) as u32)
    }
}

impl Cells {
    /// Returns the bytes of this many cells of `cell` bytes.
    #[must_use]
    pub fn to_bytes(self, cell: Bytes) -> Bytes {
        Bytes(u64::from(self.0) * cell.0)
    }
}

impl BitRate {
    /// Returns the bytes that pass in `time` at this rate, rounded up.
    #[must_use]
    pub fn bytes_in(self, time: Nanos) -> Bytes {
        let bits = u128::from(self.0) * u128::from(time.0);
        Bytes(u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX))
    }
}

impl Length {
    /// Creates a length of whole metres.
    #[must_use]
    pub const fn metres(metres: u64) -> Self {
        Self { mm: metres * 1000 }
    }
}

impl Ticks {
    /// Returns the ticks since `earlier`; zero if `earlier` is later, because the TSCs of two cores can differ
    /// slightly.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Ticks) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Alpha {
    /// Creates 2^`exponent`; `None` outside -7..=3.
    #[must_use]
    pub const fn from_exponent(exponent: i8) -> Option<Self> {
        if exponent >= -7 && exponent <= 3 { Some(Self(exponent)) } else { None }
    }

    /// Returns the exponent of the power of two.
    #[must_use]
    pub const fn exponent(self) -> i8 {
        self.0
    }

    /// Returns alpha * `free`, rounded down to whole cells. One shift, so constant time.
    #[must_use]
    #[inline]
    pub fn of(self, free: Cells) -> Cells {
        if self.0 >= 0 {
            Cells(u32::try_from(u64::from(free.0) << self.0).unwrap_or(u32::MAX))
        } else {
            Cells(free.0 >> self.0.unsigned_abs())
        }
    }
}

impl Probability {
    /// The probability one.
    pub const ONE: Probability = Probability(1 << 16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_subtracted_like_integers() {
        let (mut cells, all) = (Cells(7), [Cells(3), Cells(4)]);
        assert_eq!((all.into_iter().sum::<Cells>(), all[0] + all[1], cells - all[0]), (cells, cells, all[1]));
        cells += Cells(1);
        cells -= Cells(3);
        assert_eq!(cells, Cells(5));
        assert_eq!(
            (cells.saturating_sub(Cells(6)), cells.saturating_add(Cells(u32::MAX))),
            (Cells(0), Cells(u32::MAX))
        );
        assert_eq!((cells.checked_sub(Cells(5)), cells.checked_sub(Cells(6))), (Some(Cells(0)), None));
    }

    #[test]
    fn alpha_shifts_and_saturates() {
        assert_eq!(Alpha(-3).of(Cells(1000)), Cells(125));
        assert_eq!(Alpha(3).of(Cells(u32::MAX)), Cells(u32::MAX));
        assert_eq!(Alpha(0).of(Cells(7)), Cells(7));
    }

    #[test]
    fn cells_of_a_frame_are_those_of_a_division() {
        for cell in [1, 2, 3, 64, 80, 144, 208, 254, 256, 1024, 9216, 65_535] {
            let size = CellSize::new(Bytes(cell));
            for len in 0..=u16::MAX {
                assert_eq!(size.cells_of(len), Bytes(len.into()).to_cells_ceil(Bytes(cell)), "{len} in {cell}");
            }
        }
    }

    #[test]
    fn cells_round_up_for_packets_and_down_for_pools() {
        let cell = Bytes(208);
        assert_eq!(Bytes(64).to_cells_ceil(cell), Cells(1));
        assert_eq!(Bytes(209).to_cells_ceil(cell), Cells(2));
        assert_eq!(Bytes(415).to_cells_floor(cell), Cells(1));
        assert_eq!(BitRate(10_000_000_000).bytes_in(Nanos(20_000)), Bytes(25_000));
    }
}
