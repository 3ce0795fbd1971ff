//! A number or a range of numbers, as VLANs and DSCPs are written: `7` or `20-30`.

use std::ops::RangeInclusive;

use super::read::Item;

/// A range of numbers; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRange {
    pub first: u16,
    pub last: u16,
}

impl IdRange {
    /// Reads a range within `allowed`; `what` names the kind of number with its article, for errors.
    pub fn read(item: &Item<'_>, what: &str, allowed: RangeInclusive<u16>) -> Option<Self> {
        let text = item.shown();
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse())
            && first <= last
            && allowed.contains(&first)
            && allowed.contains(&last)
        {
            return Some(Self { first, last });
        }
        let (low, high) = allowed.into_inner();
        item.refuse(format!(
            "`{text}` is not {what}; write a number from {low} to {high} or a range such as {low}-{high}"
        ))
    }

    /// The lowest number that is in both ranges.
    pub fn common(self, other: Self) -> Option<u16> {
        let first = self.first.max(other.first);
        (first <= self.last.min(other.last)).then_some(first)
    }

    /// The range as indices of a table.
    pub fn indices(self) -> RangeInclusive<usize> {
        usize::from(self.first)..=usize::from(self.last)
    }
}
