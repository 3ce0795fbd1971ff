//! Reads `load:` of a flow.

use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item};
use crate::sim::spec::{Load, MessageSize};
use crate::sim::workload::Distribution;
use crate::units::{Bytes, Nanos};

const SHORTEST: Nanos = Nanos(100);
const LONGEST: Nanos = Nanos(10_000_000_000);
const LARGEST: Bytes = Bytes(1 << 34);
const REMEDY: &str = "write `steady`, `{on: 1ms, off: 4ms}` or `{message: 1MB, every: 1ms}`";

/// Reads the load of a flow.
pub fn read(item: &Item<'_>) -> Option<Load> {
    if item.is("steady") {
        return Some(Load::Steady);
    }
    if !item.is_map() {
        return item.refuse(format!("`{}` is not a load; {REMEDY}", item.shown()));
    }
    match (item.has("on") || item.has("off"), item.has("message")) {
        (true, false) => read_phases(&item.fields(&["on", "off"])?),
        (false, true) => read_messages(&item.fields(&["message", "every", "poisson", "count"])?),
        (true, true) => item.refuse("phases and messages cannot be combined; keep one of the two"),
        (false, false) => item.refuse(format!("the load has neither phases nor messages; {REMEDY}")),
    }
}

fn read_phases(fields: &Fields<'_>) -> Option<Load> {
    let on = bounds::required(fields, "on", "on: 1ms", SHORTEST..=LONGEST);
    let off = bounds::required(fields, "off", "off: 4ms", SHORTEST..=LONGEST);
    Some(Load::OnOff { on: on?, off: off? })
}

fn read_messages(fields: &Fields<'_>) -> Option<Load> {
    let size = fields.required("message", "message: 1MB").and_then(|item| read_size(&item));
    let count = fields.get("count").map(|item| item.number::<u32>("a count of messages", 1..=u64::from(u32::MAX)));
    let poisson = fields.get("poisson").and_then(|item| item.flag()).unwrap_or(false);
    let every = match fields.get("every") {
        Some(item) => bounds::within(&item, SHORTEST..=LONGEST),
        // A single message has no next one.
        None if count == Some(Some(1)) => Some(LONGEST),
        None => {
            fields.owner().refuse("`every` is missing; write e.g. `every: 1ms`, or `count: 1` for a single message")
        }
    };
    Some(Load::Messages { size: size?, every: every?, poisson, count: count.flatten() })
}

fn read_size(item: &Item<'_>) -> Option<MessageSize> {
    if let Some((_, distribution)) = Distribution::NAMES.iter().find(|(name, _)| item.is(name)) {
        return Some(MessageSize::Known(*distribution));
    }
    // The name from before there were several.
    if item.is("websearch") {
        return Some(MessageSize::Known(Distribution::WebSearch));
    }
    if !item.is_map() {
        return bounds::within(item, Bytes(1)..=LARGEST).map(MessageSize::Fixed);
    }
    let fields = item.fields(&["from", "to"])?;
    let from = bounds::required(&fields, "from", "from: 10kB", Bytes(1)..=LARGEST);
    let to = bounds::required(&fields, "to", "to: 1MB", Bytes(1)..=LARGEST);
    let (from, to) = (from?, to?);
    if from > to {
        let [from, to] = ["from", "to"].map(|key| item.child(key).shown());
        return item.refuse(format!("from {from} to {to} is not a range; write the smaller size as `from`"));
    }
    Some(MessageSize::Uniform(from, to))
}
