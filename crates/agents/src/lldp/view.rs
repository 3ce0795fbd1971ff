//! The state of the agent as tables, JSON and metrics show it. All texts of peers are safe to show.

use serde::Serialize;

use super::agent::LldpCounts;
use super::compare::{Difference, Note};
use super::remedy::remedy;
use crate::sets::{CLASSES, ClassSet};
use crate::units::Nanos;
use crate::wire::lldp::{Aggregation, Capabilities, Lldpdu};

/// The agents of all ports.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct AgentView {
    /// Ports by index.
    pub ports: Vec<PortView>,
    /// Frames and events that were dropped because the caller did not take them.
    pub output_dropped: u64,
}

/// The agent of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PortView {
    /// Index of the port.
    pub port: usize,
    /// Whether LLDP is on.
    pub is_enabled: bool,
    /// Whether the port has a link.
    pub is_up: bool,
    /// Whether neighbours were ignored lately because there were too many.
    pub is_too_many: bool,
    /// Whether the port sends probes of loops while it has a link.
    pub has_probes: bool,
    /// The own port whose data units or probes come back here.
    pub loop_with: Option<usize>,
    /// Whether the loop guard has blocked the port.
    pub is_blocked: bool,
    /// Statistics.
    pub counts: LldpCounts,
    /// Neighbours, oldest first.
    pub neighbours: Vec<NeighbourView>,
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NeighbourView {
    /// Chassis.
    pub chassis: String,
    /// Port of the neighbour.
    pub port: String,
    /// Source address of its frames.
    pub mac: String,
    /// Description of its port.
    pub port_description: Option<String>,
    /// Name of the system.
    pub system_name: Option<String>,
    /// Description of the system.
    pub system_description: Option<String>,
    /// Capabilities in use.
    pub capabilities: Vec<&'static str>,
    /// Addresses for management.
    pub management: Vec<String>,
    /// Seconds since its first data unit.
    pub age_seconds: u64,
    /// Seconds since its last data unit.
    pub heard_seconds: u64,
    /// Seconds until its information expires.
    pub expires_seconds: u64,
    /// Statements about data center bridging, VLANs and the link.
    pub statements: StatementsView,
    /// Differences from the settings of the port.
    pub differences: Vec<DifferenceView>,
    /// Notes.
    pub notes: Vec<NoteView>,
}

/// Statements of a neighbour; `None` and empty lists: it made none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementsView {
    /// Priorities with PFC.
    pub pfc: Option<Vec<usize>>,
    /// Whether it takes over the PFC configuration of this port.
    pub pfc_willing: Option<bool>,
    /// Traffic classes that may have PFC.
    pub pfc_capability: Option<u8>,
    /// ETS configuration.
    pub ets: Option<EtsView>,
    /// Application priorities.
    pub applications: Vec<ApplicationView>,
    /// Priorities with congestion points.
    pub congestion_priorities: Option<Vec<usize>>,
    /// VLAN of untagged frames.
    pub port_vlan: Option<u16>,
    /// Names of VLANs.
    pub vlans: Vec<VlanView>,
    /// Maximum frame size in bytes.
    pub max_frame: Option<u16>,
    /// Link aggregation.
    pub aggregation: Option<AggregationView>,
    /// Whether it speaks the pre-standard DCBX of CEE.
    pub cee: bool,
}

/// An ETS configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EtsView {
    /// Whether it takes over the recommendation of this port.
    pub willing: bool,
    /// Traffic class of each priority.
    pub class_of: [u8; CLASSES],
    /// Algorithm of each traffic class.
    pub algorithms: [&'static str; CLASSES],
    /// Share of each traffic class in percent.
    pub bandwidth: [u8; CLASSES],
}

/// An application priority.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApplicationView {
    /// The compared field.
    pub selector: &'static str,
    /// Its value.
    pub protocol: u16,
    /// Priority.
    pub priority: u8,
}

/// The name of a VLAN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VlanView {
    /// VLAN id.
    pub vlan: u16,
    /// Name.
    pub name: String,
}

/// Link aggregation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AggregationView {
    /// Whether the link can be aggregated.
    pub capable: bool,
    /// Whether it is.
    pub enabled: bool,
    /// The aggregated port.
    pub port: u32,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DifferenceView {
    /// Stable name.
    pub name: &'static str,
    /// Both values in plain English.
    pub sentence: String,
    /// The command that mends it on the peer.
    pub command: String,
    /// The command of `mlnx_qos`, for NICs of Mellanox.
    pub mellanox: Option<String>,
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteView {
    /// Stable name.
    pub name: &'static str,
    /// The note in plain English.
    pub sentence: String,
}

impl NeighbourView {
    pub(super) fn new(neighbour: &super::agent::Neighbour, now: Nanos) -> Self {
        let pdu = &neighbour.pdu;
        let text = |text: &Option<crate::wire::lldp::Text>| text.as_ref().map(ToString::to_string);
        let comparison = &neighbour.comparison;
        Self {
            chassis: pdu.chassis.to_string(),
            port: pdu.port.to_string(),
            mac: neighbour.source.to_string(),
            port_description: text(&pdu.port_description),
            system_name: text(&pdu.system_name),
            system_description: text(&pdu.system_description),
            capabilities: pdu.capabilities.map_or_else(Vec::new, |bits| Capabilities::names(bits.enabled)),
            management: pdu.management.iter().map(ToString::to_string).collect(),
            age_seconds: seconds(neighbour.since, now),
            heard_seconds: seconds(neighbour.heard, now),
            expires_seconds: seconds(now, neighbour.expires),
            statements: StatementsView::new(pdu),
            differences: comparison.differences.iter().map(|one| DifferenceView::new(one, pdu)).collect(),
            notes: comparison.notes.iter().map(|&note| NoteView::new(note)).collect(),
        }
    }
}

/// Whole seconds between two instants.
fn seconds(from: Nanos, to: Nanos) -> u64 {
    to.0.saturating_sub(from.0) / 1_000_000_000
}

fn members(set: ClassSet) -> Vec<usize> {
    set.iter().collect()
}

impl StatementsView {
    fn new(pdu: &Lldpdu) -> Self {
        let dot1 = &pdu.dot1;
        let applications = dot1.applications.iter().flatten().map(|row| ApplicationView {
            selector: row.selector.label(),
            protocol: row.protocol,
            priority: row.priority,
        });
        let vlans = dot1.vlan_names.iter().map(|vlan| VlanView { vlan: vlan.vlan, name: vlan.name.to_string() });
        Self {
            pfc: dot1.pfc.map(|pfc| members(pfc.enabled)),
            pfc_willing: dot1.pfc.map(|pfc| pfc.is_willing),
            pfc_capability: dot1.pfc.map(|pfc| pfc.capability),
            ets: dot1.ets.map(|ets| EtsView {
                willing: ets.is_willing,
                class_of: ets.table.class_of,
                algorithms: ets.table.algorithm.map(|algorithm| algorithm.label()),
                bandwidth: ets.table.bandwidth,
            }),
            applications: applications.collect(),
            congestion_priorities: dot1.congestion.map(|congestion| members(congestion.priorities)),
            port_vlan: dot1.port_vlan,
            vlans: vlans.collect(),
            max_frame: pdu.dot3.max_frame,
            aggregation: dot1.aggregation.or(pdu.dot3.aggregation).map(AggregationView::new),
            cee: pdu.speaks_cee,
        }
    }
}

impl AggregationView {
    fn new(aggregation: Aggregation) -> Self {
        Self { capable: aggregation.is_capable, enabled: aggregation.is_enabled, port: aggregation.port }
    }
}

impl DifferenceView {
    fn new(difference: &Difference, peer: &Lldpdu) -> Self {
        let remedy = remedy(difference, peer);
        Self {
            name: difference.name(),
            sentence: difference.sentence(),
            command: remedy.command,
            mellanox: remedy.mellanox,
        }
    }
}

impl NoteView {
    fn new(note: Note) -> Self {
        Self { name: note.name(), sentence: note.sentence() }
    }
}
