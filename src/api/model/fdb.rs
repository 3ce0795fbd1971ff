//! The forwarding database.

use serde::{Deserialize, Serialize};

/// The forwarding database of one lcore; where there are several, each has a copy.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fdb {
    /// Entries that it may have.
    pub capacity: u32,
    /// A learned entry not seen for this long is gone; zero: never.
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
    /// Port behind which it is.
    pub port: String,
    /// `learned` or `static`.
    pub origin: String,
    /// Time since it was last seen, to an eighth of a second; null of a static one.
    pub age_ns: Option<u64>,
}
