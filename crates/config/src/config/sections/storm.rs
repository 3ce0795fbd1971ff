//! `storm_control:` of the switch and of a port.

use crate::config::yaml::read::Item;
use crate::qos::{FloodKind, StormLimits};

const KEYS: &[&str] = &["broadcast", "multicast", "unknown"];

/// Reads the most frames that a port may receive to be flooded. `over` are the defaults, which keys override one by
/// one.
pub fn read(item: Option<Item<'_>>, over: StormLimits) -> StormLimits {
    let Some(item) = item else { return over };
    if item.is("off") {
        return StormLimits::default();
    }
    let fields = item.fields(KEYS);
    let mut limits = over;
    for (kind, key) in FloodKind::TABLE {
        if let Some(limit) = fields.as_ref().and_then(|fields| fields.get(key)) {
            limits[kind as usize] = if limit.is("off") { None } else { limit.parse() };
        }
    }
    limits
}
