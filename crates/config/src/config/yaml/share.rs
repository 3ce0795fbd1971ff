//! Shares written as percentages, in millionths.

use std::fmt;
use std::str::FromStr;

const WHOLE: u32 = 1_000_000;

/// Reads a percentage of at most four decimals, from 0.0001% to 100%.
pub fn per_million(text: &str) -> Option<u32> {
    let number = text.trim().strip_suffix('%')?.trim_end();
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 4 || !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let parts: u32 = format!("{whole}{decimals:0<4}").parse().ok()?;
    (1..=WHOLE).contains(&parts).then_some(parts)
}

/// A probability in millionths, written as a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance(pub u32);

impl Chance {
    /// Every time.
    pub const ALL: Self = Self(WHOLE);
}

/// A text that is not a probability.
pub struct ChanceError(String);

impl fmt::Display for ChanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a probability; write a percentage from 0.0001% to 100%, e.g. 1% or 0.01%", self.0)
    }
}

impl FromStr for Chance {
    type Err = ChanceError;
    fn from_str(text: &str) -> Result<Self, ChanceError> {
        per_million(text).map(Chance).ok_or_else(|| ChanceError(text.to_owned()))
    }
}
