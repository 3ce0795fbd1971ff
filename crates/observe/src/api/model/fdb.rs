//! The forwarding database.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The forwarding database; each lcore has a copy of its own.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fdb {
    /// Most entries of an lcore's database.
    pub capacity: u32,
    /// Life of a learned entry; 0: unlimited.
    pub ageing_ns: u64,
    /// Stations, by VLAN and address.
    pub entries: Vec<FdbEntry>,
}

/// One station.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FdbEntry {
    /// VLAN.
    pub vlan: u16,
    /// Address.
    pub mac: String,
    /// Port of the station.
    pub port: String,
    /// `learned` or `static`.
    pub origin: String,
    /// Time since last seen, to an eighth of a second; null: static.
    pub age_ns: Option<u64>,
}
