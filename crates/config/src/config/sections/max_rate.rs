//! `max_rate` of classes and ports: the highest rates of egress queues.

use super::draft::{WrittenMax, WrittenMaxes};
use crate::config::checks::bounds;
use crate::config::yaml::read::Item;

/// Reads `max_rate` of a class; `None`: no maximum.
pub fn read(item: &Item<'_>) -> Option<WrittenMax> {
    if item.is("off") {
        return None;
    }
    if !item.is_map() {
        return item.read(bounds::max_rate).map(|rate| WrittenMax { rate, burst: None });
    }
    let fields = item.fields(&["rate", "burst"])?;
    let rate = fields.required("rate", "rate: 5G")?.read(bounds::max_rate)?;
    Some(WrittenMax { rate, burst: fields.get("burst").and_then(|item| item.read(bounds::max_burst)) })
}

/// Reads `max_rate` of a port.
pub fn read_of_port(item: Option<Item<'_>>) -> WrittenMaxes<'_> {
    let mut maxima = WrittenMaxes::default();
    for (key, value) in item.and_then(|item| item.entries("e.g. `{3: 5G}`")).unwrap_or_default() {
        if let Some(class) = key.number::<u8>("a class", 0..=7) {
            let maximum = read(&value);
            maxima[usize::from(class)] = Some((value, maximum));
        }
    }
    maxima
}
