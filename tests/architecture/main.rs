//! The architecture and the style, as the sources have them: which module uses which, what comes from where, and how long
//! lines and functions are. Each finding names its file and line.

mod arrows;
mod circles;
mod style;
