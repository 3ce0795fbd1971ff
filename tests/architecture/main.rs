//! Checks the sources: which module uses which, and the style of comments and functions. Each finding names its file
//! and line.

mod arrows;
mod circles;
mod crates;
mod modules;
mod style;
mod written;
