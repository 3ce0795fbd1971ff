//! `holdfast top`: the live state of a running switch, on a terminal.
//!
//! The screen is a function of the states that the API returned and the keys that were pressed: [`App`] takes both and
//! draws itself into a [`ratatui`] buffer of any size. The command (`src/cli/top.rs`) owns the terminal, the clock and
//! the socket. So a test can draw every screen.

mod app;
mod bar;
mod choice;
mod history;
mod keys;
mod log;
mod paint;
mod rows;
mod step;
mod table;
#[cfg(test)]
mod tests;
mod view;

pub use app::App;
pub use choice::View;
pub use keys::{Action, INTERVALS, Key};
pub use paint::Paint;
