//! `fdb:` of the configuration, and the limits of stations.

use super::draft::Port;
use super::routing::{Routing, SHORTEST_AGEING};
use super::system::forwarding_port;
use crate::config::keys::Key;
use crate::config::yaml::names;
use crate::config::yaml::read::{Fields, Item};
use crate::forward::{Fdb, FdbSpec, StaticEntry};
use crate::units::Nanos;

pub const KEYS: &[Key] = &[
    Key::new(
        "capacity",
        "`16384`",
        "16 to 1048576",
        "entries, rounded up to a power of two of buckets of four; use twice the expected stations",
    ),
    Key::new(
        "limit",
        "half of `capacity`",
        "1 to `capacity`",
        "most learned stations of a port or [group](lag.md); at it, the oldest gives way",
    ),
    Key::new(
        "ageing",
        "`300s`",
        "a time; `0s`: never",
        "silence after which a station is forgotten; other lcores forget it up to a quarter later",
    ),
    Key::new(
        "static",
        "none",
        "list of `{vlan: 1, mac: ..., port: p1}`; `vlan` defaults to 1",
        "entries that neither age nor move; up to half of `capacity`",
    ),
];

const DEFAULT_CAPACITY: u32 = 16_384;
/// Most entries, and most stations of a port.
const MOST: u64 = 1 << 20;
/// Default ageing time of IEEE 802.1Q clause 8.8.3.
const DEFAULT_AGEING: Nanos = Nanos(300_000_000_000);
const STATIONS: &str = "a count of stations";

/// Reads `fdb:`. The stations of the router take places in the database.
pub fn read(item: Option<Item<'_>>, ports: &mut [Port<'_>], routing: Option<&Routing<'_>>) -> FdbSpec {
    let fields = item.and_then(|item| item.fields(KEYS));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let statics = get("static").and_then(|item| item.list("e.g. `- {vlan: 1, mac: 02:00:00:00:00:01, port: p1}`"));
    let own = routing.map(Routing::stations).unwrap_or_default();
    let mut entries: Vec<StaticEntry> = Vec::new();
    for item in statics.unwrap_or_default() {
        let Some(entry) = item.fields(&["vlan", "mac", "port"]).and_then(|fields| read_static(&fields, ports)) else {
            continue;
        };
        if entries.iter().any(|other| (other.vlan, other.mac) == (entry.vlan, entry.mac)) {
            item.fail(format!("{} in VLAN {} has a static entry already; keep one of the two", entry.mac, entry.vlan));
        }
        if own.iter().any(|own| (own.vlan, own.mac) == (entry.vlan, entry.mac)) {
            item.fail(format!(
                "{} in VLAN {} is the address of this switch, which routes there; remove the entry",
                entry.mac, entry.vlan
            ));
        }
        entries.push(entry);
    }
    // The order has no meaning, so a reload must not find a difference in it.
    entries.sort_by_key(|entry| (entry.vlan, entry.mac));
    let capacity = get("capacity").and_then(|item| item.number("a count of entries", 16..=MOST));
    let capacity = capacity.unwrap_or(DEFAULT_CAPACITY);
    read_limits(get("limit"), capacity, ports);
    let ageing = get("ageing").and_then(|item| item.parse()).unwrap_or(DEFAULT_AGEING);
    if let Some(item) = get("ageing").filter(|_| routing.is_some_and(Routing::has_vlans)) {
        warn_of_ageing(&item, ageing);
    }
    let spec = FdbSpec { capacity, ageing, entries, seed: 0 };
    // An entry has eight possible places in a table of any size. With half of the capacity free, others can be learned.
    let mut all = spec.clone();
    all.entries.extend(own);
    let crowded = all.entries.len() > capacity as usize / 2 || Fdb::try_new(&all, 1).is_err();
    if let Some(item) =
        get("static").or_else(|| get("capacity")).or(routing.map(|routing| routing.item.clone())).filter(|_| crowded)
    {
        let (entries, enough) = (all.entries.len(), 4 * all.entries.len());
        let interfaces = if all.entries.len() > spec.entries.len() { " and interfaces" } else { "" };
        item.fail(format!(
            "{entries} static entries{interfaces} are too many for a capacity of {capacity}; write `capacity: \
             {enough}` or more"
        ));
    }
    spec
}

/// Reads `fdb.limit`, and checks it and the limits of ports.
fn read_limits(item: Option<Item<'_>>, capacity: u32, ports: &mut [Port<'_>]) {
    let check = |item: &Item<'_>, limit: u32| {
        if limit > capacity {
            item.fail(format!("{limit} stations are over `fdb.capacity: {capacity}`; write {capacity} or less"));
        }
    };
    let written = item.and_then(|item| item.number(STATIONS, 1..=MOST).inspect(|limit| check(&item, *limit)));
    // One port leaves as much to the others.
    let limit = written.unwrap_or(capacity / 2);
    for port in ports {
        match port.fdb_limit {
            Some(limit) => check(&port.item.child("fdb_limit"), limit),
            None => port.fdb_limit = Some(limit),
        }
    }
}

/// Reads `fdb_limit` of a port.
pub fn read_limit(item: Option<Item<'_>>) -> Option<u32> {
    item.and_then(|item| item.number(STATIONS, 1..=MOST))
}

/// Warns of an ageing time in which the router's neighbours in VLANs are forgotten: packets to them are then dropped
/// until they send again.
fn warn_of_ageing(item: &Item<'_>, ageing: Nanos) {
    if ageing > Nanos(0) && ageing < SHORTEST_AGEING {
        item.warn(format!(
            "`{}` is short for a switch that routes: a silent neighbour in a VLAN is forgotten before the router asks \
             for it again; write `{SHORTEST_AGEING}` or more",
            item.shown()
        ));
    }
}

fn read_static(fields: &Fields<'_>, ports: &[Port<'_>]) -> Option<StaticEntry> {
    let vlan = match fields.get("vlan") {
        Some(item) => item.number("a VLAN", 1..=4094)?,
        None => 1,
    };
    let mac = names::station(&fields.required("mac", "mac: 02:00:00:00:00:01")?)?;
    let item = fields.required("port", "port: p1")?;
    let port = forwarding_port(&item, ports)?;
    if !ports[port].carries(Some(vlan)) {
        item.fail(format!(
            "port {} does not carry VLAN {vlan}; write a VLAN of the port, or another port",
            item.shown()
        ));
    }
    Some(StaticEntry { vlan, mac, port: u8::try_from(port).ok()? })
}
