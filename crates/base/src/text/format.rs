//! Formats numbers and settings for tables and live pictures.

use crate::sets::ClassSet;
use crate::units::{Nanos, WIRE_OVERHEAD};

/// Formats `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of frames: `1 frame`, `1,234 frames`.
#[must_use]
pub fn frames(number: u64) -> String {
    format!("{} frame{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Lists at most `most` names and counts the others: `a, b and 3 more`.
#[must_use]
pub fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), grouped(more as u64)),
    }
}

/// Formats a number with three or four digits and a unit, for narrow columns: `9999`, `12.3k`, `4.56M`.
#[must_use]
pub fn short(number: u64) -> String {
    if number < 10_000 {
        return number.to_string();
    }
    let (scale, unit) = match number {
        0..1_000_000 => (1e3, 'k'),
        1_000_000..1_000_000_000 => (1e6, 'M'),
        1_000_000_000..1_000_000_000_000 => (1e9, 'G'),
        _ => (1e12, 'T'),
    };
    let value = number as f64 / scale;
    match value {
        ..10.0 => format!("{value:.2}{unit}"),
        10.0..100.0 => format!("{value:.1}{unit}"),
        _ => format!("{value:.0}{unit}"),
    }
}

/// Formats a time in a suitable unit, rounded to three digits: `850ns`, `8.19us`, `1.25ms`.
#[must_use]
pub fn time(time: Nanos) -> String {
    let ns = time.0 as f64;
    match time.0 {
        0..1_000 => format!("{}ns", time.0),
        1_000..10_000 => format!("{:.2}us", ns / 1e3),
        10_000..1_000_000 => format!("{:.1}us", ns / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}ms", ns / 1e6),
        _ => format!("{:.2}s", ns / 1e9),
    }
}

/// Bits per second that `frames` of `bytes` in total took on the wire in `seconds`; zero if `seconds` is zero.
#[must_use]
pub fn wire_rate(frames: u64, bytes: u64, seconds: f64) -> f64 {
    let bits = (bytes + frames * u64::from(WIRE_OVERHEAD)) as f64 * 8.0;
    if seconds > 0.0 { bits / seconds } else { 0.0 }
}

/// Formats a rate in Gb/s with two decimals.
#[must_use]
pub fn gigabits(rate: f64) -> String {
    format!("{:.2}", rate / 1e9)
}

/// The count per second; zero if `seconds` is zero.
#[must_use]
pub fn per_second(count: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (count as f64 / seconds).round() as u64 } else { 0 }
}

/// `part` of `whole` in percent, rounded down, so that 100 means the whole.
#[must_use]
pub fn percent(part: u64, whole: u64) -> u64 {
    (part * 100).checked_div(whole).unwrap_or(0)
}

/// Formats `classes` in at most seven characters: `3,4`, `6 of 8`; `-` if there are none.
#[must_use]
pub fn classes(classes: ClassSet) -> String {
    let list: Vec<String> = classes.iter().map(|class| class.to_string()).collect();
    match list.len() {
        0 => "-".to_owned(),
        1..=4 => list.join(","),
        count => format!("{count} of 8"),
    }
}

/// The word of `value` in `words`, the choices of a key.
///
/// # Panics
/// If it has none: the words of a type are complete.
#[must_use]
pub fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, other)| other == value).map(|(word, _)| *word).expect("each value has a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_shortened_and_given_units() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [9_999, 12_345, 123_456, 4_560_000, u64::MAX].map(short),
            ["9999", "12.3k", "123k", "4.56M", "18446744T"]
        );
        assert_eq!(
            [850, 8_190, 81_900, 1_250_000, 2_000_000_000].map(|ns| time(Nanos(ns))),
            ["850ns", "8.19us", "81.9us", "1.25ms", "2.00s"]
        );
        assert_eq!(
            [0, 0b0001_1000, 0b1101_1011].map(|bits| classes(ClassSet::from_bits(bits))),
            ["-", "3,4", "6 of 8"]
        );
        assert_eq!(percent(999, 1000), 99);
        assert_eq!(percent(1, 0), 0);
    }

    #[test]
    fn a_full_wire_is_its_nominal_rate() {
        // 1,220,703 frames of 1000 bytes and 24 of overhead are a second of 10 Gb/s.
        assert_eq!(gigabits(wire_rate(1_220_703, 1_220_703_000, 1.0)), "10.00");
        assert_eq!(wire_rate(1, 1, 0.0), 0.0);
    }
}
