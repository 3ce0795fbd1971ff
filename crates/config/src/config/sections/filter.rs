//! `filter:` of the switch: checks of frames that a bridge need not make.

use crate::config::yaml::read::Item;

/// Reads whether bridged frames are dropped too if their UDP or TCP header has a defect.
pub fn read(item: Option<Item<'_>>) -> bool {
    let fields = item.and_then(|item| item.fields(&["l4_length"]));
    let check = fields.and_then(|fields| fields.get("l4_length"));
    check.and_then(|item| item.flag()).unwrap_or(false)
}
