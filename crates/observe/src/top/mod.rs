//! `holdfast top`: the live state of a running switch, on a terminal.
//!
//! The screen is a function of the states that the API returned and the keys that were pressed: [`App`] takes both and
//! draws itself into a [`ratatui`] buffer of any size. The command (`src/cli/top.rs`) owns the terminal, the clock and
//! the socket. So a test can draw every screen.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use holdfast_observe::top::{App, Paint};
//! use ratatui::buffer::Buffer;
//! use ratatui::layout::Rect;
//!
//! let app = App::new(Paint { colour: false, unicode: false }, Duration::from_secs(1));
//! let area = Rect::new(0, 0, 80, 24);
//! let mut screen = Buffer::empty(area);
//! app.draw(area, &mut screen);
//! ```

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
