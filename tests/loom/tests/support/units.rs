//! As much of the crate's `units` as the included sources use.

/// A count of buffer cells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cells(pub u32);
