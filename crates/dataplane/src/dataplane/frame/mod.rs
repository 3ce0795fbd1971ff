//! The metadata of a frame: of one that is received, and of one that waits for its transmission.

pub(crate) mod class_bits;
pub mod desc;
pub(crate) mod fast_path;
pub(crate) mod lanes;
pub(crate) mod lens;
pub(crate) mod meta;
pub(crate) mod notes;
pub mod run;
