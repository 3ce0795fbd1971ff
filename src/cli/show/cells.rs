//! Formats the cells of tables: zero and missing values are a dash.

use holdfast::text::format::{self, grouped};
use holdfast::units::{Bytes, Nanos};

/// The cell of a zero or missing value.
pub const NONE: &str = "-";

/// Formats a count.
pub fn count(number: u64) -> String {
    if number == 0 { NONE.to_owned() } else { grouped(number) }
}

/// Formats a size in bytes.
pub fn bytes(size: u64) -> String {
    if size == 0 { NONE.to_owned() } else { Bytes(size).to_string() }
}

/// Formats an optional size in bytes; only a missing one is a dash.
pub fn some_bytes(size: Option<u64>) -> String {
    size.map_or_else(|| NONE.to_owned(), |size| Bytes(size).to_string())
}

/// Formats a time in nanoseconds.
pub fn time(ns: u64) -> String {
    if ns == 0 { NONE.to_owned() } else { format::time(Nanos(ns)) }
}

/// Formats `part` as a percentage of `whole`.
pub fn percent(part: u64, whole: u64) -> String {
    match (part, whole) {
        (0, _) | (_, 0) => NONE.to_owned(),
        _ => format!("{:.1}%", part as f64 * 100.0 / whole as f64),
    }
}

/// A class, with a star if it is lossless.
pub fn class(number: u8, lossless: bool) -> String {
    format!("{number}{}", if lossless { "*" } else { "" })
}

/// The growth of a counter from `before` to `now`.
pub fn grown(now: u64, before: Option<u64>) -> u64 {
    now.saturating_sub(before.unwrap_or(0))
}

/// Formats a rate in Gb/s, from bytes on the wire in `seconds`.
pub fn gigabits(bytes: u64, seconds: f64) -> String {
    if bytes == 0 { NONE.to_owned() } else { format::gigabits(bytes as f64 * 8.0 / seconds) }
}

/// Formats alpha of the Dynamic Threshold as it is configured.
pub fn alpha(alpha: Option<f64>) -> String {
    match alpha {
        Some(alpha) if alpha < 1.0 => format!("1/{}", 1.0 / alpha),
        Some(alpha) => format!("{alpha}"),
        None => NONE.to_owned(),
    }
}

/// Time since the switch began, for a line below a table of counters.
pub fn since(at_ns: u64) -> String {
    format!("{} after the switch began", duration(at_ns))
}

/// Formats a time in a readable form: `3.1s`, `4m 05s`, `2h 03m`, `5d 04h`.
pub fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..60 => format!("{:.1}s", ns as f64 / 1e9),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_formatters_print_readable_counts_bytes_and_times() {
        assert_eq!(
            [count(0), count(1234), bytes(0), bytes(1536), time(0), time(1500)],
            ["-", "1,234", "-", "1.5KiB", "-", "1.50us"]
        );
        assert_eq!([percent(1, 8), percent(0, 8), percent(1, 0)], ["12.5%", "-", "-"]);
        assert_eq!([alpha(Some(0.25)), alpha(Some(8.0)), alpha(None)], ["1/4", "8", NONE]);
        let times = [3_140_000_000, 245_000_000_000, 7_380_000_000_000, 446_400_000_000_000].map(duration);
        assert_eq!(times, ["3.1s", "4m 05s", "2h 03m", "5d 04h"]);
        assert_eq!(gigabits(1_250_000_000, 1.0), "10.00");
    }
}
