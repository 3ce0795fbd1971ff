//! Keys, and the actions that they request from the command.

use std::time::Duration;

/// A key that has a function, or a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// One page up.
    PageUp,
    /// One page down.
    PageDown,
    /// Moves to the first line.
    Home,
    /// Moves to the last line.
    End,
    /// Selects the next view.
    Tab,
    /// Selects the view before.
    BackTab,
    /// Closes the help.
    Escape,
}

/// An action that a key requests from the command around the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Read the state at this interval.
    Interval(Duration),
    /// Clear the switch's watermarks.
    Clear,
}

/// Intervals that `+` and `-` step through.
pub const INTERVALS: [Duration; 7] = [
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The next longer or shorter interval after `interval`; `interval` itself at the end of the list.
pub(super) fn step(interval: Duration, longer: bool) -> Duration {
    let next = match longer {
        true => INTERVALS.into_iter().find(|next| *next > interval),
        false => INTERVALS.into_iter().rev().find(|next| *next < interval),
    };
    next.unwrap_or(interval)
}
