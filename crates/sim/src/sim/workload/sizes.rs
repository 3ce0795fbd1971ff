//! Distributions of flow sizes: tables of bytes and cumulative shares. They are drawn with integers only, so that draws
//! are equal on every machine.

use std::borrow::Cow;

use crate::config::error::ConfigErrors;
use crate::sim::rng::Rng;
use crate::sim::tokens::Words;
use crate::units::Bytes;

/// An entry of a table: bytes, and the number of parts of all flows that are not larger.
pub type Point = (u64, u64);

/// Largest size of a flow.
pub const LARGEST: Bytes = Bytes(1 << 34);
/// Most entries of a user's table.
const MOST: usize = 4096;
/// Parts of a percent in a user's table.
const PARTS: f64 = 1e7;

/// A distribution of sizes. The first entry has no parts, the last has all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeCdf {
    points: Cow<'static, [Point]>,
}

impl SizeCdf {
    /// Returns the distribution of a table in which both bytes and parts increase.
    #[must_use]
    pub const fn of(points: &'static [Point]) -> Self {
        Self { points: Cow::Borrowed(points) }
    }

    /// Returns the distribution in which all flows have `bytes`.
    #[must_use]
    pub fn fixed(bytes: Bytes) -> Self {
        Self { points: Cow::Owned(vec![(bytes.0, 0), (bytes.0, 1)]) }
    }

    /// Reads a table of `source` in the format of HPCC's traffic generator: a line for each size, with bytes and the
    /// percentage of flows up to that size.
    ///
    /// # Errors
    /// The entry that is wrong, with its place and a remedy.
    pub fn parse(source: &str, text: &str) -> Result<Self, ConfigErrors> {
        let (mut words, mut points) = (Words::new(source, text, 1), Vec::<Point>::new());
        while let Some(size) = words.next() {
            let bytes = size.text.parse().ok().filter(|bytes| *bytes <= LARGEST.0);
            let bytes = bytes.ok_or_else(|| {
                words.error(size.place, format!("`{}` is not a size; write from 0 to {} bytes", size.text, LARGEST.0))
            })?;
            let percent = words.decimal("a percentage", 0.0..=100.0)?;
            let parts = (percent * PARTS).round() as u64;
            let remedy = match points.last() {
                None if parts > 0 => Some("the first percentage is not 0; write the smallest size with 0 first"),
                Some(last) if last.0 > bytes => Some("the size is below the one before; order the lines by size"),
                Some(last) if last.1 >= parts => Some("the percentage does not grow; remove the line, or correct it"),
                _ if points.len() == MOST => Some("the table has more than 4096 lines; remove some"),
                _ => None,
            };
            if let Some(remedy) = remedy {
                return Err(words.error(size.place, remedy));
            }
            points.push((bytes, parts));
        }
        if points.last().is_none_or(|last| last.1 != (100.0 * PARTS) as u64) {
            let message = "the last percentage is not 100; end with the largest size and 100";
            return Err(ConfigErrors::one(source, None, message.to_owned()));
        }
        Ok(Self { points: Cow::Owned(points) })
    }

    /// The entries.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Number of parts of all flows.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.points.last().map_or(1, |last| last.1)
    }

    /// Draws the size of a flow, in bytes: at least one.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let place = rng.below(self.parts());
        let above = self.points.partition_point(|(_, parts)| *parts <= place).clamp(1, self.points.len() - 1);
        let ((from, low), (to, high)) = (self.points[above - 1], self.points[above]);
        let more = u128::from(place - low) * u128::from(to - from) / u128::from(high - low);
        (from + more as u64).max(1)
    }

    /// Returns the mean size in bytes, rounded: at least one.
    #[must_use]
    pub fn mean(&self) -> u64 {
        let pairs = self.points.iter().zip(&self.points[1..]);
        let sum: u128 = pairs.map(|(a, b)| u128::from(b.1 - a.1) * u128::from(a.0 + b.0)).sum();
        let parts = 2 * u128::from(self.parts());
        ((sum + parts / 2) / parts).max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_sizes_reach_both_ends_of_their_table_and_nothing_beyond() {
        let (cdf, mut rng) = (SizeCdf::parse("x", "10 0\n20 100\n").unwrap(), Rng::new(1, 1));
        let mut seen = [0_u32; 10];
        (0..10_000).for_each(|_| seen[cdf.draw(&mut rng) as usize - 10] += 1);
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(cdf.mean(), 15);
    }

    #[test]
    fn fixed_size_distribution_draws_its_size_only() {
        let (cdf, mut rng) = (SizeCdf::fixed(Bytes(64_000)), Rng::new(1, 1));
        assert!((0..100).all(|_| cdf.draw(&mut rng) == 64_000));
        assert_eq!((cdf.mean(), cdf.parts()), (64_000, 1));
    }

    #[test]
    fn jump_in_a_size_table_gives_its_size_that_share() {
        let (cdf, mut rng) = (SizeCdf::parse("x", "100 0 100 75 300 100").unwrap(), Rng::new(1, 1));
        let small = (0..10_000).filter(|_| cdf.draw(&mut rng) == 100).count();
        assert!((7_300..7_700).contains(&small), "{small}");
        assert_eq!(cdf.mean(), 125);
    }

    #[test]
    fn wrong_tables_are_refused_with_their_place() {
        let errors = [
            ("", "x: the last percentage is not 100; end with the largest size and 100"),
            ("0 0\n10 50\n", "x: the last percentage is not 100; end with the largest size and 100"),
            ("0 1\n10 100\n", "x:1:1: the first percentage is not 0; write the smallest size with 0 first"),
            ("0 0\n10 50\n9 100\n", "x:3:1: the size is below the one before; order the lines by size"),
            ("0 0\n10 50\n20 50\n", "x:3:1: the percentage does not grow; remove the line, or correct it"),
            ("0 0\n10 101\n", "x:2:4: `101` is not a percentage; write from 0 to 100"),
            ("0 0\n10\n", "x:2:1: a percentage is missing; write it behind this word"),
            ("0 0\n-1 100\n", "x:2:1: `-1` is not a size; write from 0 to 17179869184 bytes"),
        ];
        for (text, expected) in errors {
            assert_eq!(SizeCdf::parse("x", text).unwrap_err().to_string(), expected, "{text:?}");
        }
        let many: String = (0..=4096).map(|line| format!("{line} {}\n", f64::from(line) / 50.0)).collect();
        let error = SizeCdf::parse("x", &many).unwrap_err().to_string();
        assert_eq!(error, "x:4097:1: the table has more than 4096 lines; remove some");
    }
}
