//! Keys, and what they ask of the program around.

use std::time::Duration;

/// A key, as far as there is something on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// The arrow.
    Up,
    /// The arrow.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
    /// The next view.
    Tab,
    /// The view before.
    BackTab,
    /// Away with what is in front.
    Escape,
}

/// What a key asks of the program around the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The end.
    Quit,
    /// To look this often.
    Interval(Duration),
    /// To clear the switch's watermarks.
    Clear,
}

/// Intervals that `+` and `-` go through.
pub const INTERVALS: [Duration; 7] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The next interval above `interval`, or below it; itself at the end.
pub(super) fn step(interval: Duration, longer: bool) -> Duration {
    let next = match longer {
        true => INTERVALS.into_iter().find(|next| *next > interval),
        false => INTERVALS.into_iter().rev().find(|next| *next < interval),
    };
    next.unwrap_or(interval)
}
