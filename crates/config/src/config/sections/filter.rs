//! `filter:` of the switch: checks of frames that a bridge need not make.

use crate::config::keys::Key;
use crate::config::yaml::read::Item;

pub const KEYS: &[Key] = &[Key::new(
    "l4_length",
    "`false`",
    "",
    "drop every frame whose UDP, TCP or extension header is cut short or states an impossible length \
         (`l4_truncated`, `l4_malformed`)",
)];

/// Reads whether bridged frames are dropped too if their UDP or TCP header has a defect.
pub fn read(item: Option<Item<'_>>) -> bool {
    let fields = item.and_then(|item| item.fields(KEYS));
    let check = fields.and_then(|fields| fields.get("l4_length"));
    check.and_then(|item| item.flag()).unwrap_or(false)
}
