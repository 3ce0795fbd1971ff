//! `stuck_after:` of the switch and of a port.

use crate::config::yaml::read::Item;
use crate::units::Nanos;

const MS: u64 = 1_000_000;
/// Long enough that a virtual machine whose CPU is busy elsewhere for a while is not declared stuck.
const DEFAULT: Nanos = Nanos(500 * MS);
/// A slow port may need almost this long for a few bursts.
const SHORTEST: Nanos = Nanos(100 * MS);
const LONGEST: Nanos = Nanos(60_000 * MS);

/// Reads the longest time for which a port may take no frame; `None`: no limit. `over` is the default.
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

/// Reads `stuck_after:` of the switch.
pub fn of_switch(item: Option<Item<'_>>) -> Option<Nanos> {
    read(item, Some(DEFAULT))
}
