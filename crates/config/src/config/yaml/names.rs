//! Names and addresses that must be unique.

use std::collections::HashMap;

use super::read::{Fields, Item, nearest, one_of};
use crate::wire::MacAddr;

const LONGEST_NAME: usize = 32;

/// The values claimed so far, each with the key that claimed it.
pub struct Unique {
    what: &'static str,
    seen: HashMap<String, String>,
}

impl Unique {
    /// No names yet, of `what`.
    pub fn new(what: &'static str) -> Self {
        Self { what, seen: HashMap::new() }
    }

    /// Claims `value`; reports an error at `item` if another item has it already.
    pub fn claim(&mut self, item: &Item<'_>, value: &str) {
        if let Some(first) = self.seen.get(value) {
            item.fail(format!("`{value}` is already the {} of {first}; write another", self.what));
        } else {
            self.seen.insert(value.to_owned(), item.owner_path());
        }
    }
}

/// Reads the `name` of a port or host, which appears in metrics and tables.
pub fn read(fields: &Fields<'_>, example: &str, names: &mut Unique) -> Option<String> {
    read_of(fields, example, names, "`_`, `-`, `.` or `/`")
}

/// Reads a `name` without dots, for names in which a dot separates switch and port.
pub fn read_undotted(fields: &Fields<'_>, example: &str, names: &mut Unique) -> Option<String> {
    read_of(fields, example, names, "`_`, `-` or `/`")
}

fn read_of(fields: &Fields<'_>, example: &str, names: &mut Unique, marks: &str) -> Option<String> {
    let item = fields.required("name", example)?;
    let name = item.shown();
    let is_mark = |c: char| "_-./".contains(c) && marks.contains(c);
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || is_mark(c));
    if name.is_empty() || name.len() > LONGEST_NAME || !is_plain || item.is_map() {
        let remedy = format!("write up to {LONGEST_NAME} letters, digits, {marks}");
        return item.refuse(format!("`{name}` is not a name; {remedy}"));
    }
    names.claim(&item, &name);
    Some(name)
}

/// Reads the `mac` of a port or host; the default is `own`. The address must be a station's and unique. Returns true if
/// the address was written.
pub fn read_mac(fields: &Fields<'_>, macs: &mut Unique, own: MacAddr) -> MacAddr {
    let item = fields.get("mac");
    let mac = item.as_ref().and_then(station).unwrap_or(own);
    macs.claim(item.as_ref().unwrap_or(fields.owner()), &mac.to_string());
    mac
}

/// Reads the address of a station: neither zero nor a group address.
pub fn station(item: &Item<'_>) -> Option<MacAddr> {
    let mac = item.parse::<MacAddr>()?;
    if mac.is_group() || mac.is_zero() {
        let kind = if mac.is_zero() { "the zero address" } else { "a group address" };
        return item.refuse(format!("`{mac}` is {kind}; write a station address, e.g. 02:48:46:00:00:01"));
    }
    Some(mac)
}

/// Suggests the known name nearest to an unknown one.
pub fn suggest(name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("write `{near}` if that was meant"),
        None if known.is_empty() => "none is configured".to_owned(),
        None => format!("write {}", one_of(known)),
    }
}
