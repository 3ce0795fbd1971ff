//! The keys of a configuration with their texts. Readers refuse every other key. The pages of docs and
//! `holdfast.yaml(5)` show the texts.

use super::build;
use super::sections::routing::{interfaces, linux, routes};
use super::sections::{
    api, buffer, classes, faults, fdb, filter, hosts, idle, lags, lcores, lldp, maps, mirrors, policy, ports,
    queue_policy, routing, sflow, storm_control, system, watchdog,
};

/// A key of a mapping. Its texts are lines of Markdown, with links relative to docs; each may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The word in the file.
    pub name: &'static str,
    /// The value of an absent key. In `classes` it is that of a lossy class.
    pub default: &'static str,
    /// The value of an absent key in a lossless class. Only keys of `classes` have it.
    pub lossless_default: Option<&'static str>,
    /// The valid values.
    pub range: &'static str,
    /// The effect.
    pub meaning: &'static str,
}

impl Key {
    pub(super) const fn new(
        name: &'static str,
        default: &'static str,
        range: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { name, default, lossless_default: None, range, meaning }
    }

    /// A key of a class. `defaults` are those of a lossy and of a lossless class.
    pub(super) const fn of_class(
        name: &'static str,
        defaults: [&'static str; 2],
        range: &'static str,
        meaning: &'static str,
    ) -> Self {
        let [default, lossless] = defaults;
        Self { name, default, lossless_default: Some(lossless), range, meaning }
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.name
    }
}

/// A mapping of the file.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its path, with `[]` behind a list: `routing.interfaces[]`. It is empty at the top level.
    pub path: &'static str,
    /// Its keys in the order of the pages.
    pub keys: &'static [Key],
}

/// The mappings whose keys have texts. Small mappings, such as `ecn` of a class, stand in the range of their key.
#[must_use]
pub fn sections() -> Vec<Section> {
    let sections: [(&str, &[Key]); 33] = [
        ("", build::KEYS),
        ("ports[]", ports::KEYS),
        ("buffer", buffer::KEYS),
        ("buffer.headroom", policy::KEYS),
        ("buffer.queue_policy", queue_policy::KEYS),
        ("classes", classes::KEYS),
        ("maps", maps::KEYS),
        ("watchdog", watchdog::KEYS),
        ("storm_control", storm_control::KEYS),
        ("filter", filter::KEYS),
        ("lags[]", lags::KEYS),
        ("lag_hash", lags::HASH_KEYS),
        ("mirrors[]", mirrors::KEYS),
        ("mirrors[].to", mirrors::TO_KEYS),
        ("sflow", sflow::KEYS),
        ("fdb", fdb::KEYS),
        ("routing", routing::KEYS),
        ("routing.interfaces[]", interfaces::KEYS),
        ("routing.routes[]", routes::ROUTE_KEYS),
        ("routing.routes[].via[]", routes::HOP_KEYS),
        ("routing.neighbours[]", routes::NEIGHBOUR_KEYS),
        ("routing.hash", routing::HASH_KEYS),
        ("routing.fib", routing::FIB_KEYS),
        ("routing.linux", linux::KEYS),
        ("lcores", lcores::KEYS),
        ("lcores.idle", idle::KEYS),
        ("eal", system::EAL_KEYS),
        ("api", api::KEYS),
        ("lldp", lldp::KEYS),
        ("faults", faults::KEYS),
        ("faults.list[]", faults::FAULT_KEYS),
        ("hosts[]", hosts::HOST_KEYS),
        ("hosts[].flows[]", hosts::FLOW_KEYS),
    ];
    sections.map(|(path, keys)| Section { path, keys }).into()
}
