//! `stuck_after:`, of the switch and of a port.

use super::read::Item;
use crate::units::Nanos;

const MS: u64 = 1_000_000;
/// A guest whose CPU serves others for a while must not look dead.
const DEFAULT: Nanos = Nanos(500 * MS);
/// Less than what a slow port takes for a few bursts is no evidence.
const SHORTEST: Nanos = Nanos(100 * MS);
const LONGEST: Nanos = Nanos(60_000 * MS);

/// Reads for how long a port may take no frame; `None`: for ever. Without `item` it is `over`.
pub fn read(item: Option<Item<'_>>, over: Option<Nanos>) -> Option<Nanos> {
    let Some(item) = item else { return over };
    if item.is("off") {
        return None;
    }
    let time = item.parse::<Nanos>()?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return Some(time);
    }
    item.refuse(format!("`{}` is out of range; write from {SHORTEST} to {LONGEST}, or `off`", item.shown()))
}

/// Reads the same of the switch.
pub fn of_switch(item: Option<Item<'_>>) -> Option<Nanos> {
    read(item, Some(DEFAULT))
}
