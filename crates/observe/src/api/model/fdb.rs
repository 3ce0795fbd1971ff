//! The forwarding database.

use serde::{Deserialize, Serialize};

/// The forwarding database; each lcore has a copy of its own.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fdb {
    /// Most entries of one copy.
    pub capacity: u32,
    /// Time after which a learned entry expires unless its station sends; zero: it never expires.
    pub ageing_ns: u64,
    /// Live entries, by VLAN and address.
    pub entries: Vec<FdbEntry>,
}

/// One station.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct FdbEntry {
    /// VLAN.
    pub vlan: u16,
    /// Address.
    pub mac: String,
    /// Port behind which the station is.
    pub port: String,
    /// `learned` or `static`.
    pub origin: String,
    /// Time since it last sent a frame, in steps of an eighth of a second; null for a static entry.
    pub age_ns: Option<u64>,
}
