//! The part of the crate's `units` that the included sources use.

/// A count of buffer cells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cells(pub u32);
