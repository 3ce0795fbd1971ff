//! `holdfast top`: what a running switch does, on a terminal.
//!
//! All of it is a function of the states that the API gave and the keys that were pressed: [`App`] takes both and draws
//! itself into a [`ratatui`] buffer of any size. The terminal, the clock and the socket are the command's
//! (`src/cli/top.rs`), so that every screen can be had in a test.

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
