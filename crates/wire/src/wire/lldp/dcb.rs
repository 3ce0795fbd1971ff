//! TLVs of data center bridging (802.1Q annex D): congestion notification, ETS, PFC, application priority.
//!
//! Reserved bits are sent as zero and ignored when received.

use crate::sets::{CLASSES, ClassSet};

/// Congestion notification TLV (D.2.7).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CongestionNotification {
    /// Congestion notification priority values: priorities whose queues are congestion points.
    pub priorities: ClassSet,
    /// Priorities whose frames keep their priority and their CN-TAG here.
    pub ready: ClassSet,
}

impl CongestionNotification {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let [priorities, ready] = *value.first_chunk()?;
        Some(Self { priorities: ClassSet::from_bits(priorities), ready: ClassSet::from_bits(ready) })
    }

    pub(super) fn write(self) -> [u8; 2] {
        [self.priorities.bits(), self.ready.bits()]
    }
}

/// Transmission selection algorithm of a traffic class (802.1Q table 8-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm(pub u8);

impl Algorithm {
    /// Strict priority.
    pub const STRICT: Self = Self(0);
    /// Credit-based shaper.
    pub const CREDIT_BASED: Self = Self(1);
    /// Enhanced transmission selection: a share of the bandwidth.
    pub const ETS: Self = Self(2);
    /// Algorithm of a vendor.
    pub const VENDOR: Self = Self(255);

    /// Its word, which is that of `dcb ets`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::STRICT => "strict",
            Self::CREDIT_BASED => "cbs",
            Self::ETS => "ets",
            Self::VENDOR => "vendor",
            _ => "reserved",
        }
    }
}

/// The tables that both ETS TLVs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtsTable {
    /// Traffic class of each priority; four bits, of which the standard uses values up to 7.
    pub class_of: [u8; CLASSES],
    /// Share of each traffic class, in percent.
    pub bandwidth: [u8; CLASSES],
    /// Algorithm of each traffic class.
    pub algorithm: [Algorithm; CLASSES],
}

impl EtsTable {
    /// Bytes of the tables.
    const LEN: usize = CLASSES / 2 + 2 * CLASSES;

    fn read(value: &[u8]) -> Option<Self> {
        let (classes, remaining) = value.split_first_chunk::<{ CLASSES / 2 }>()?;
        let (bandwidth, remaining) = remaining.split_first_chunk()?;
        let algorithm: &[u8; CLASSES] = remaining.first_chunk()?;
        // Two priorities share a byte; the lower one is in the upper half.
        let class_of = std::array::from_fn(|priority| {
            let pair = classes[priority / 2];
            if priority % 2 == 0 { pair >> 4 } else { pair & 0xf }
        });
        Some(Self { class_of, bandwidth: *bandwidth, algorithm: algorithm.map(Algorithm) })
    }

    fn write(&self, first: u8) -> [u8; 1 + Self::LEN] {
        let mut value = [0; 1 + Self::LEN];
        value[0] = first;
        for (pair, byte) in self.class_of.chunks_exact(2).zip(&mut value[1..]) {
            *byte = pair[0] << 4 | pair[1] & 0xf;
        }
        value[5..13].copy_from_slice(&self.bandwidth);
        value[13..].copy_from_slice(&self.algorithm.map(|algorithm| algorithm.0));
        value
    }

    /// The traffic class of `priority`, below [`CLASSES`].
    #[must_use]
    pub fn class(&self, priority: usize) -> usize {
        usize::from(self.class_of[priority & 7]) & 7
    }

    /// Priorities of the traffic class of `priority`.
    #[must_use]
    pub fn companions(&self, priority: usize) -> ClassSet {
        (0..CLASSES).filter(|&other| self.class(other) == self.class(priority)).collect()
    }
}

/// ETS configuration TLV (D.2.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtsConfiguration {
    /// Whether the port takes over the peer's recommendation.
    pub is_willing: bool,
    /// Whether the port has credit-based shapers.
    pub has_credit_based: bool,
    /// Traffic classes of the port, 1 to 8.
    pub classes: u8,
    /// The configuration in force.
    pub table: EtsTable,
}

impl EtsConfiguration {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let (&first, remaining) = value.split_first()?;
        // Three bits, of which zero means eight.
        let classes = match first & 7 {
            0 => 8,
            classes => classes,
        };
        let (is_willing, has_credit_based) = (first & 0x80 != 0, first & 0x40 != 0);
        Some(Self { is_willing, has_credit_based, classes, table: EtsTable::read(remaining)? })
    }

    pub(super) fn write(&self) -> [u8; 1 + EtsTable::LEN] {
        let first = u8::from(self.is_willing) << 7 | u8::from(self.has_credit_based) << 6 | self.classes & 7;
        self.table.write(first)
    }
}

/// ETS recommendation TLV (D.2.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EtsRecommendation(pub EtsTable);

impl EtsRecommendation {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        EtsTable::read(value.get(1..)?).map(Self)
    }

    pub(super) fn write(&self) -> [u8; 1 + EtsTable::LEN] {
        self.0.write(0)
    }
}

/// Priority-based flow control configuration TLV (D.2.10).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PfcConfiguration {
    /// Whether the port takes over the peer's configuration.
    pub is_willing: bool,
    /// Whether the port can bypass MACsec (MBC), which adds delay.
    pub bypasses_macsec: bool,
    /// The most traffic classes that may have PFC at the same time, 0 to 15.
    pub capability: u8,
    /// Priorities with PFC.
    pub enabled: ClassSet,
}

impl PfcConfiguration {
    pub(super) fn read(value: &[u8]) -> Option<Self> {
        let [first, enabled] = *value.first_chunk()?;
        Some(Self {
            is_willing: first & 0x80 != 0,
            bypasses_macsec: first & 0x40 != 0,
            capability: first & 0xf,
            enabled: ClassSet::from_bits(enabled),
        })
    }

    pub(super) fn write(self) -> [u8; 2] {
        let first = u8::from(self.is_willing) << 7 | u8::from(self.bypasses_macsec) << 6 | self.capability & 0xf;
        [first, self.enabled.bits()]
    }
}

/// The field that a row of the application priority TLV compares (D.2.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector(pub u8);

impl Selector {
    /// An EtherType; zero is the default priority of the port.
    pub const ETHERTYPE: Self = Self(1);
    /// A well-known port of TCP or SCTP.
    pub const STREAM: Self = Self(2);
    /// A well-known port of UDP or DCCP.
    pub const DATAGRAM: Self = Self(3);
    /// A well-known port of any of the four.
    pub const ANY_PORT: Self = Self(4);
    /// A DSCP.
    pub const DSCP: Self = Self(5);

    /// Its word in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ETHERTYPE => "ethertype",
            Self::STREAM => "tcp",
            Self::DATAGRAM => "udp",
            Self::ANY_PORT => "port",
            Self::DSCP => "dscp",
            _ => "reserved",
        }
    }
}

/// A row of the application priority TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Application {
    /// Priority of the frames, below 8.
    pub priority: u8,
    /// The compared field.
    pub selector: Selector,
    /// Its value.
    pub protocol: u16,
}

/// The rows of an application priority TLV: one reserved byte, then three bytes for each row. Bytes of an incomplete
/// row are ignored.
pub(super) fn read_applications(value: &[u8]) -> Option<Vec<Application>> {
    let (_, rows) = value.split_first()?;
    let rows = rows.chunks_exact(3).map(|row| Application {
        priority: row[0] >> 5,
        selector: Selector(row[0] & 7),
        protocol: u16::from_be_bytes([row[1], row[2]]),
    });
    Some(rows.collect())
}

pub(super) fn write_applications(rows: &[Application]) -> Vec<u8> {
    let mut value = vec![0];
    for row in rows {
        let [high, low] = row.protocol.to_be_bytes();
        value.extend([row.priority << 5 | row.selector.0 & 7, high, low]);
    }
    value
}
