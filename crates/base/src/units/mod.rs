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

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};

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

/// Splits a text such as `12.5MiB` into its number, as thousandths, and its unit.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 3 || fraction.contains('.') {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let thousandths: u64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<3}").parse().ok()? };
    Some((whole.checked_mul(1000)?.checked_add(thousandths)?, unit.trim()))
}

/// Parses `number unit`, where `factor(unit)` is the number of base units in one unit. Returns `None` if the result is
/// not an integer that fits.
fn parse_scaled(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (thousandths, unit) = split_number(text)?;
    let product = u128::from(thousandths) * u128::from(factor(unit)?);
    // A fraction of a base unit (1.0001B) is a mistake and must not be rounded away.
    if product % 1000 != 0 {
        return None;
    }
    u64::try_from(product / 1000).ok()
}

fn unit_error(value: &str, what: &'static str, remedy: &'static str) -> UnitError {
    UnitError { value: value.to_owned(), what, remedy }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "" | "B" => 1,
                "KiB" => 1 << 10,
                "MiB" => 1 << 20,
                "GiB" => 1 << 30,
                "kB" | "KB" => 1_000,
                "MB" => 1_000_000,
                "GB" => 1_000_000_000,
                _ => return None,
            })
        })
        .map(Bytes)
        .ok_or_else(|| unit_error(text, "a size in bytes", "e.g. 12MiB, 96KiB, 9216B or 4096"))
    }
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            let unit = ["bit/s", "b/s", "bps"].iter().find_map(|s| unit.strip_suffix(s)).unwrap_or(unit);
            Some(match unit {
                "k" | "K" => 1_000,
                "M" => 1_000_000,
                "G" => 1_000_000_000,
                "T" => 1_000_000_000_000,
                _ => return None,
            })
        })
        .filter(|&rate| rate > 0)
        .map(BitRate)
        .ok_or_else(|| unit_error(text, "a bit rate", "e.g. 100M, 10G, 25G, 100G or 400Gb/s"))
    }
}

impl FromStr for PacketRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit.strip_suffix("pps")? {
                "" => 1,
                "k" => 1_000,
                "M" => 1_000_000,
                _ => return None,
            })
        })
        .and_then(|rate| u32::try_from(rate).ok())
        .filter(|&rate| rate > 0)
        .map(PacketRate)
        .ok_or_else(|| unit_error(text, "a rate of packets", "e.g. 500pps, 10kpps or 1Mpps"))
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate > 0 && rate.is_multiple_of(1_000_000) => write!(f, "{}Mpps", rate / 1_000_000),
            rate if rate > 0 && rate.is_multiple_of(1_000) => write!(f, "{}kpps", rate / 1_000),
            rate => write!(f, "{rate}pps"),
        }
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "mm" => 1,
                "cm" => 10,
                "m" => 1_000,
                "km" => 1_000_000,
                _ => return None,
            })
        })
        .map(|mm| Length { mm })
        .ok_or_else(|| unit_error(text, "a length", "e.g. 3m, 0.5m, 300m or 10km"))
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_scaled(text, |unit| {
            Some(match unit {
                "ns" => 1,
                "us" | "µs" => 1_000,
                "ms" => 1_000_000,
                "s" => 1_000_000_000,
                "min" => 60_000_000_000,
                "h" => 3_600_000_000_000,
                _ => return None,
            })
        })
        .map(Nanos)
        .ok_or_else(|| unit_error(text, "a time", "e.g. 20us, 200ms, 10s or 5min"))
    }
}

impl FromStr for Alpha {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let exponent = match text.trim() {
            "1/128" => -7,
            "1/64" => -6,
            "1/32" => -5,
            "1/16" => -4,
            "1/8" => -3,
            "1/4" => -2,
            "1/2" => -1,
            "1" => 0,
            "2" => 1,
            "4" => 2,
            "8" => 3,
            _ => {
                return Err(unit_error(text, "an alpha", "a power of two from 1/128 to 8, e.g. 1/8, 1/2, 1 or 4"));
            }
        };
        Ok(Alpha(exponent))
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = || unit_error(text, "a probability", "a percentage from 0% to 100%, e.g. 1%, 0.5% or 5%");
        let (thousandths, unit) = split_number(text).ok_or_else(error)?;
        if unit != "%" || thousandths > 100_000 {
            return Err(error());
        }
        Ok(Probability(u32::try_from((thousandths << 16) / 100_000).map_err(|_| error())?))
    }
}

/// Writes `value` in the largest of `units` that keeps at most two decimals.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)], last: &str) -> fmt::Result {
    for &(factor, unit) in units {
        if value >= factor {
            let hundredths = u128::from(value) * 100 / u128::from(factor);
            let (whole, rest) = (hundredths / 100, hundredths % 100);
            return match (rest, rest % 10) {
                (0, _) => write!(f, "{whole}{unit}"),
                (_, 0) => write!(f, "{whole}.{}{unit}", rest / 10),
                _ => write!(f, "{whole}.{rest:02}{unit}"),
            };
        }
    }
    write!(f, "{value}{last}")
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")], "B")
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(
            f,
            self.0,
            &[(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")],
            "b/s",
        )
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.mm, &[(1_000_000, "km"), (1_000, "m")], "mm")
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns")
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.0)
    }
}

impl fmt::Display for Alpha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 0 { write!(f, "{}", 1 << self.0) } else { write!(f, "1/{}", 1 << self.0.unsigned_abs()) }
    }
}

/// Reads a quantity from a YAML string or number through its `FromStr`.
macro_rules! deserialize_from_str {
    ($($unit:ty => $expecting:literal),+ $(,)?) => {$(
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $unit;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$unit, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$unit, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    )+};
}

deserialize_from_str! {
    Bytes => "a size such as 12MiB",
    BitRate => "a bit rate such as 25G",
    Length => "a length such as 3m",
    Nanos => "a time such as 20us",
    Alpha => "an alpha such as 1/8",
    Probability => "a percentage such as 5%",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_parsed_from_text_with_a_suffix() {
        assert_eq!("12MiB".parse(), Ok(Bytes(12 << 20)));
        assert_eq!("1.5KiB".parse(), Ok(Bytes(1536)));
        assert_eq!("4096".parse(), Ok(Bytes(4096)));
        assert_eq!("25G".parse(), Ok(BitRate(25_000_000_000)));
        assert_eq!("400Gb/s".parse(), Ok(BitRate(400_000_000_000)));
        assert_eq!("0.5m".parse(), Ok(Length { mm: 500 }));
        assert_eq!("20us".parse(), Ok(Nanos(20_000)));
        assert_eq!("5%".parse(), Ok(Probability(3276)));
        assert_eq!("100%".parse(), Ok(Probability::ONE));
        assert_eq!("1/8".parse(), Ok(Alpha(-3)));
    }

    #[test]
    fn wrong_units_name_the_remedy() {
        for text in ["25Q", "", "G", "1.2345G", "-1G", "25", "0G"] {
            let error = text.parse::<BitRate>().unwrap_err();
            assert!(error.to_string().contains("write e.g. 100M"), "{error}");
        }
        assert!("3".parse::<Length>().is_err(), "a bare number has no unit");
        assert!("1/3".parse::<Alpha>().is_err());
        assert!("101%".parse::<Probability>().is_err());
        assert!("99999999999999999999GiB".parse::<Bytes>().is_err());
        assert!("0.0001KiB".parse::<Bytes>().is_err());
    }

    #[test]
    fn displayed_unit_is_parsed_back() {
        for text in ["12MiB", "1.5KiB", "17B", "25G", "3m", "20us", "1/128", "8"] {
            let shown = match text {
                t if t.ends_with('B') => t.parse::<Bytes>().unwrap().to_string(),
                t if t.ends_with('G') => t.parse::<BitRate>().unwrap().to_string(),
                t if t.ends_with('s') => t.parse::<Nanos>().unwrap().to_string(),
                t if t.ends_with('m') => t.parse::<Length>().unwrap().to_string(),
                t => t.parse::<Alpha>().unwrap().to_string(),
            };
            assert_eq!(shown, text);
        }
    }

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
