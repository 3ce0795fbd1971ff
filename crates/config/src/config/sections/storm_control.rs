//! `storm_control:` of the switch and of a port.

use crate::config::keys::Key;
use crate::config::yaml::read::Item;
use crate::qos::{FloodKind, FloodLimits};

pub const KEYS: &[Key] = &[
    Key::new("broadcast", "`off`", "`1pps` to `4294Mpps`, or `off`", "frames to ff-ff-ff-ff-ff-ff, ARP included"),
    Key::new("multicast", "`off`", "as above", "frames to other group addresses"),
    Key::new("unknown", "`off`", "as above", "frames to stations that the forwarding database does not know"),
];

/// Reads the most frames that a port may receive to be flooded. `over` are the defaults, which keys override one by
/// one.
pub fn read(item: Option<Item<'_>>, over: FloodLimits) -> FloodLimits {
    let Some(item) = item else { return over };
    if item.is("off") {
        return FloodLimits::default();
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
