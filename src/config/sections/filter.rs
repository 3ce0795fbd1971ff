//! `filter:` of the switch: checks of frames that a bridge need not make.

use crate::config::yaml::read::Item;

/// Reads whether frames are dropped whose UDP or TCP header has a defect. A simulated switch drops them by default: its
/// hosts send such garbage, which ends at the first switch.
pub fn read(item: Option<Item<'_>>, is_simulated: bool) -> bool {
    let fields = item.and_then(|item| item.fields(&["l4_length"]));
    let check = fields.and_then(|fields| fields.get("l4_length"));
    check.and_then(|item| item.flag()).unwrap_or(is_simulated)
}
