//! Compares the statements of a peer with the settings of its port.
//!
//! Only statements are compared: a TLV that the peer does not send says nothing, except that of PFC at a lossless port.

use super::local::Stated;
use crate::sets::ClassSet;
use crate::wire::lldp::{Algorithm, Application, EtsTable, Lldpdu, Selector};
use crate::wire::roce;

/// Bytes on top of the MTU that an implementation may count: none (lldpd), header, frame check sequence, two tags.
const MOST_OVERHEAD: u16 = 26;
/// Percentage points by which shares may differ, because others round otherwise.
const SHARE_TOLERANCE: u8 = 1;

/// A kind of difference between a peer and the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// The peer states no PFC configuration at a port with lossless priorities.
    PfcAbsent,
    /// The peer has PFC on other priorities.
    PfcPriorities,
    /// The peer has another maximum frame size.
    MaxFrame,
    /// The peer sends RoCE in another priority.
    RocePriority,
    /// The peer maps DSCPs to other priorities.
    DscpPriority,
    /// The peer schedules a lossless priority by another algorithm.
    EtsAlgorithm,
    /// The peer gives a lossless priority another share of the bandwidth.
    EtsBandwidth,
    /// The peer has a lossless priority in one traffic class with others.
    EtsShared,
    /// The peer has another VLAN for untagged frames.
    PortVlan,
}

impl DifferenceKind {
    /// Every kind with its name in metrics, JSON and events.
    pub const TABLE: [(Self, &'static str); 9] = [
        (Self::PfcAbsent, "pfc_absent"),
        (Self::PfcPriorities, "pfc_priorities"),
        (Self::MaxFrame, "max_frame"),
        (Self::RocePriority, "roce_priority"),
        (Self::DscpPriority, "dscp_priority"),
        (Self::EtsAlgorithm, "ets_algorithm"),
        (Self::EtsBandwidth, "ets_bandwidth"),
        (Self::EtsShared, "ets_shared"),
        (Self::PortVlan, "port_vlan"),
    ];

    /// The name in metrics, JSON and events.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

/// A DSCP whose priority differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DscpRow {
    /// DSCP.
    pub dscp: u16,
    /// Its lossless priority here; `None`: it is lossy here.
    pub ours: Option<u8>,
    /// Its priority at the peer.
    pub theirs: u8,
}

/// A difference between a peer and the port, with both values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The peer states no PFC configuration.
    PfcAbsent {
        /// Lossless priorities of the port.
        ours: ClassSet,
        /// Whether the peer speaks the pre-standard DCBX of CEE, in which it may state one.
        speaks_cee: bool,
    },
    /// Priorities with PFC.
    PfcPriorities {
        /// Those of the port.
        ours: ClassSet,
        /// Those of the peer.
        theirs: ClassSet,
        /// Whether the peer is willing to take over those of the port.
        is_willing: bool,
    },
    /// Maximum frame sizes in bytes.
    MaxFrame {
        /// Size that the port states.
        ours: u16,
        /// Size that the peer states.
        theirs: u16,
        /// MTU of the port.
        mtu: u16,
    },
    /// Priorities of RoCEv2.
    RocePriority {
        /// That of the port.
        ours: u8,
        /// That of the peer.
        theirs: u8,
    },
    /// DSCPs of other priorities.
    DscpPriority {
        /// At least one row.
        rows: Vec<DscpRow>,
    },
    /// Scheduling of lossless priorities.
    EtsAlgorithm {
        /// Priority, algorithm of the port, algorithm of the peer.
        rows: Vec<(usize, Algorithm, Algorithm)>,
        /// The port's tables, which the remedy sets.
        ours: EtsTable,
    },
    /// Shares of lossless priorities in percent.
    EtsBandwidth {
        /// Priority, share at the port, share at the peer.
        rows: Vec<(usize, u8, u8)>,
        /// The port's tables, which the remedy sets.
        ours: EtsTable,
    },
    /// Lossless priorities that share a traffic class.
    EtsShared {
        /// Priority, and the others in its class at the peer that are not in its class here.
        rows: Vec<(usize, ClassSet)>,
        /// The port's tables, which the remedy sets.
        ours: EtsTable,
    },
    /// VLANs of untagged frames.
    PortVlan {
        /// That of the port.
        ours: u16,
        /// That of the peer.
        theirs: u16,
    },
}

/// A property of a peer that is no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The peer is willing, and its PFC configuration is that of the port.
    WillingPfc,
    /// The peer is willing to take over the ETS recommendation.
    WillingEts,
    /// The peer speaks the pre-standard DCBX of CEE, which is not read.
    Cee,
    /// The peer can have PFC on fewer traffic classes than the port has lossless priorities.
    FewPfcClasses {
        /// Classes of the peer.
        theirs: u8,
        /// Lossless priorities of the port.
        needed: u8,
    },
}

impl Note {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WillingPfc => "willing_pfc",
            Self::WillingEts => "willing_ets",
            Self::Cee => "cee",
            Self::FewPfcClasses { .. } => "few_pfc_classes",
        }
    }

    /// The note in plain English.
    #[must_use]
    pub fn sentence(self) -> String {
        match self {
            Self::WillingPfc => "the peer is willing and has the PFC configuration of this port".to_owned(),
            Self::WillingEts => "the peer is willing to take over the ETS recommendation of this port".to_owned(),
            Self::Cee => "the peer speaks the pre-standard DCBX of CEE, which this switch does not read".to_owned(),
            Self::FewPfcClasses { theirs, needed } => {
                format!("the peer can have PFC on {theirs} traffic classes, this port has {needed} lossless priorities")
            }
        }
    }
}

/// The result of a comparison.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Differences, each kind at most once, in the order of [`DifferenceKind::TABLE`].
    pub differences: Vec<Difference>,
    /// Notes.
    pub notes: Vec<Note>,
}

/// Compares `peer` with the statement of its port. With `is_pfc_elsewhere` another neighbour of the port states PFC, as
/// where firmware and operating system of a host both send LLDP. Then its absence here is no difference.
#[must_use]
pub fn compare(port: &Stated, peer: &Lldpdu, is_pfc_elsewhere: bool) -> Comparison {
    let ours = &port.pdu.dot1;
    let mut comparison = Comparison::default();
    let mut found: Vec<Difference> = Vec::new();
    found.extend(pfc(port, peer, is_pfc_elsewhere, &mut comparison.notes));
    found.extend(max_frame(port, peer));
    if let (Some(ours), Some(theirs)) = (&ours.applications, &peer.dot1.applications) {
        found.extend(roce(ours, theirs));
        found.extend(dscps(ours, theirs, port.lossless()));
    }
    if let (Some(ours), Some(theirs)) = (&ours.ets, &peer.dot1.ets) {
        found.extend(ets(&ours.table, &theirs.table, port.lossless()));
        if theirs.is_willing {
            comparison.notes.push(Note::WillingEts);
        }
    }
    if let (Some(ours), Some(theirs)) = (ours.port_vlan, peer.dot1.port_vlan)
        && ours != theirs
        && ours != 0
        && theirs != 0
    {
        found.push(Difference::PortVlan { ours, theirs });
    }
    if peer.speaks_cee {
        comparison.notes.push(Note::Cee);
    }
    comparison.differences = found;
    comparison
}

fn pfc(port: &Stated, peer: &Lldpdu, is_pfc_elsewhere: bool, notes: &mut Vec<Note>) -> Option<Difference> {
    let ours = port.lossless();
    let Some(theirs) = peer.dot1.pfc else {
        let is_missing = !ours.is_empty() && !is_pfc_elsewhere;
        return is_missing.then_some(Difference::PfcAbsent { ours, speaks_cee: peer.speaks_cee });
    };
    let needed = ours.len() as u8;
    if theirs.capability < needed {
        notes.push(Note::FewPfcClasses { theirs: theirs.capability, needed });
    }
    if theirs.enabled != ours {
        let is_willing = theirs.is_willing;
        return Some(Difference::PfcPriorities { ours, theirs: theirs.enabled, is_willing });
    }
    if theirs.is_willing {
        notes.push(Note::WillingPfc);
    }
    None
}

/// Compares frame sizes by their MTU. Implementations add 0 to 26 bytes to it, so that smaller differences are not
/// seen.
fn max_frame(port: &Stated, peer: &Lldpdu) -> Option<Difference> {
    let (ours, theirs) = (port.pdu.dot3.max_frame?, peer.dot3.max_frame?);
    let is_equal = (port.mtu..=port.mtu.saturating_add(MOST_OVERHEAD)).contains(&theirs);
    (!is_equal).then_some(Difference::MaxFrame { ours, theirs, mtu: port.mtu })
}

/// Compares the priority of RoCEv2: the peer may name its port for UDP or for any protocol.
fn roce(ours: &[Application], theirs: &[Application]) -> Option<Difference> {
    let is_roce = |row: &&Application| {
        row.protocol == roce::PORT && [Selector::DATAGRAM, Selector::ANY_PORT].contains(&row.selector)
    };
    let ours = ours.iter().find(is_roce)?.priority;
    let theirs = theirs.iter().filter(is_roce).find(|row| row.priority != ours)?.priority;
    Some(Difference::RocePriority { ours, theirs })
}

/// Compares DSCPs, if the port trusts them: those that are lossless here, and those that the peer has in a priority
/// that is lossless here.
fn dscps(ours: &[Application], theirs: &[Application], lossless: ClassSet) -> Option<Difference> {
    let is_dscp = |row: &&Application| row.selector == Selector::DSCP && row.protocol < 64;
    if !ours.iter().any(|row| is_dscp(&row)) {
        return None;
    }
    let rows = theirs.iter().filter(is_dscp).filter_map(|row| {
        let ours = ours.iter().filter(is_dscp).find(|own| own.protocol == row.protocol).map(|own| own.priority);
        let differs = match ours {
            Some(ours) => ours != row.priority,
            None => lossless.contains(row.priority.into()),
        };
        differs.then_some(DscpRow { dscp: row.protocol, ours, theirs: row.priority })
    });
    let rows: Vec<DscpRow> = rows.collect();
    (!rows.is_empty()).then_some(Difference::DscpPriority { rows })
}

/// Compares the schedule of lossless priorities. Hosts have few traffic classes, so that lossy priorities always
/// differ.
fn ets(ours: &EtsTable, theirs: &EtsTable, lossless: ClassSet) -> Vec<Difference> {
    let (mut algorithms, mut shares, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for priority in lossless.iter() {
        let (own, other) = (ours.class(priority), theirs.class(priority));
        if ours.algorithm[own] != theirs.algorithm[other] {
            algorithms.push((priority, ours.algorithm[own], theirs.algorithm[other]));
        } else if ours.algorithm[own] == Algorithm::ETS
            && ours.bandwidth[own].abs_diff(theirs.bandwidth[other]) > SHARE_TOLERANCE
        {
            shares.push((priority, ours.bandwidth[own], theirs.bandwidth[other]));
        }
        let companions = theirs.companions(priority) - ours.companions(priority);
        if !companions.is_empty() {
            shared.push((priority, companions));
        }
    }
    let ours = *ours;
    let found = [
        (!algorithms.is_empty()).then_some(Difference::EtsAlgorithm { rows: algorithms, ours }),
        (!shares.is_empty()).then_some(Difference::EtsBandwidth { rows: shares, ours }),
        (!shared.is_empty()).then_some(Difference::EtsShared { rows: shared, ours }),
    ];
    found.into_iter().flatten().collect()
}

impl Difference {
    /// The kind.
    #[must_use]
    pub fn kind(&self) -> DifferenceKind {
        match self {
            Self::PfcAbsent { .. } => DifferenceKind::PfcAbsent,
            Self::PfcPriorities { .. } => DifferenceKind::PfcPriorities,
            Self::MaxFrame { .. } => DifferenceKind::MaxFrame,
            Self::RocePriority { .. } => DifferenceKind::RocePriority,
            Self::DscpPriority { .. } => DifferenceKind::DscpPriority,
            Self::EtsAlgorithm { .. } => DifferenceKind::EtsAlgorithm,
            Self::EtsBandwidth { .. } => DifferenceKind::EtsBandwidth,
            Self::EtsShared { .. } => DifferenceKind::EtsShared,
            Self::PortVlan { .. } => DifferenceKind::PortVlan,
        }
    }

    /// The stable name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The difference in plain English, with both values.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::PfcAbsent { ours, speaks_cee } => {
                let cee = if *speaks_cee { ", only the pre-standard DCBX of CEE" } else { "" };
                format!("the peer states no PFC{cee}; this port is lossless for priorities {}", list(*ours))
            }
            Self::PfcPriorities { ours, theirs, is_willing } => {
                let willing = if *is_willing { ", although it is willing" } else { "" };
                format!("the peer has PFC for priorities {}, this port for {}{willing}", list(*theirs), list(*ours))
            }
            Self::MaxFrame { ours, theirs, .. } => {
                let effect =
                    if theirs < ours { "the peer may drop longer frames" } else { "longer frames are dropped here" };
                format!("the peer takes frames of {theirs} bytes, this port of {ours}: {effect}")
            }
            Self::RocePriority { ours, theirs } => {
                format!("the peer sends RoCE (UDP {}) in priority {theirs}, this port expects {ours}", roce::PORT)
            }
            Self::DscpPriority { rows } => {
                let rows = rows.iter().map(|DscpRow { dscp, ours, theirs }| match ours {
                    Some(ours) => format!("DSCP {dscp} in priority {theirs}, this port in {ours}"),
                    None => format!("DSCP {dscp} in priority {theirs}, for this port it is lossy"),
                });
                format!("the peer has {}", joined(rows))
            }
            Self::EtsAlgorithm { rows, .. } => {
                let row = |&(priority, ours, theirs): &(usize, Algorithm, Algorithm)| {
                    format!("priority {priority} by {}, this port by {}", theirs.label(), ours.label())
                };
                format!("the peer schedules {}", joined(rows.iter().map(row)))
            }
            Self::EtsBandwidth { rows, .. } => {
                let row = |(priority, ours, theirs): &(usize, u8, u8)| {
                    format!("priority {priority} {theirs} % of the bandwidth, this port {ours} %")
                };
                format!("the peer gives {}", joined(rows.iter().map(row)))
            }
            Self::EtsShared { rows, .. } => {
                let row = |(priority, with): &(usize, ClassSet)| {
                    format!("lossless priority {priority} in one traffic class with {}", list(*with))
                };
                format!("the peer has {}; this port separates them", joined(rows.iter().map(row)))
            }
            Self::PortVlan { ours, theirs } => {
                format!("untagged frames are in VLAN {theirs} for the peer, in VLAN {ours} for this port")
            }
        }
    }
}

/// Priorities as text.
fn list(priorities: ClassSet) -> String {
    let names: Vec<String> = priorities.iter().map(|priority| priority.to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The first rows, and the number of the others.
fn joined(rows: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 4;
    let more = rows.len().saturating_sub(MOST);
    let mut parts: Vec<String> = rows.take(MOST).collect();
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}
