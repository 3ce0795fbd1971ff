//! Formatting of numbers in the tables of a run.

use crate::sim::outcome::{Ending, Spread};
use crate::text::format::{frames, time};
use crate::units::{Bytes, Nanos};

/// Text for an empty value.
pub const NOTHING: &str = "-";

/// Formats a time, rounded to nanoseconds.
pub fn picoseconds(ps: u64) -> String {
    time(Nanos((ps + 500) / 1000))
}

/// Formats a time; zero gives [`NOTHING`].
pub fn span(ps: u64) -> String {
    if ps == 0 { NOTHING.to_owned() } else { picoseconds(ps) }
}

/// Formats the median, the 99th percentile and the maximum, or [`NOTHING`] three times.
pub fn quantiles(spread: &Spread) -> [String; 3] {
    match spread.count {
        0 => [NOTHING; 3].map(str::to_owned),
        _ => [spread.p50_ps, spread.p99_ps, spread.most_ps].map(picoseconds),
    }
}

/// Formats `part` of `whole` in percent with one decimal, rounded down. Integer arithmetic makes the result equal on
/// every machine.
pub fn share(part: u64, whole: u64) -> String {
    if part == 0 {
        return NOTHING.to_owned();
    }
    let thousandths = (u128::from(part) * 1000).checked_div(u128::from(whole)).unwrap_or(0);
    format!("{}.{}%", thousandths / 10, thousandths % 10)
}

/// Formats a number of cells as the bytes that they span.
pub fn cells(cells: u64, cell: Bytes) -> String {
    if cells == 0 { NOTHING.to_owned() } else { Bytes(cells * cell.0).to_string() }
}

/// Formats the number of a class, with a star if it is lossless.
pub fn class(number: usize, lossless: bool) -> String {
    format!("{number}{}", if lossless { "*" } else { "" })
}

/// Describes how a run ended, in a few words.
pub fn ending(ending: Ending) -> String {
    match ending {
        Ending::Drained => "drained".to_owned(),
        Ending::Undrained { frames: left } => format!("undrained, {} under way", frames(left)),
        Ending::TooManyEvents => "too many events".to_owned(),
        Ending::Violated => "invariant violated".to_owned(),
    }
}
