//! LLDP: ports, their neighbours, and the differences of these.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::lldp::view::{DifferenceView, NeighbourView, NoteView, PortView};
use crate::stats::SwitchView;

const NS_PER_S: u64 = 1_000_000_000;

/// LLDP of one port.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LldpPort {
    /// The port.
    pub port: String,
    /// Whether LLDP is on.
    pub enabled: bool,
    /// Frames sent.
    pub sent_frames: u64,
    /// Frames received.
    pub received_frames: u64,
    /// Frames discarded, for an error or for lack of room.
    pub discarded_frames: u64,
    /// TLVs discarded for an error.
    pub discarded_tlvs: u64,
    /// Whether neighbours are ignored because there are eight.
    pub too_many: bool,
    /// The own port whose LLDP or [probes](lldp.md#probes) come back here.
    pub loop_with: Option<String>,
    /// Whether the [loop guard](lldp.md#loops) has blocked the port.
    pub blocked: bool,
    /// Neighbours as they state themselves, oldest first.
    pub neighbours: Vec<LldpNeighbour>,
}

/// A neighbour, as it states itself. Texts have no control characters.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LldpNeighbour {
    /// Its chassis.
    pub chassis: String,
    /// Its port.
    pub neighbour_port: String,
    /// Source address of its frames.
    pub mac: String,
    /// Name of the system.
    pub system_name: Option<String>,
    /// Description of the system.
    pub system_description: Option<String>,
    /// Description of its port.
    pub port_description: Option<String>,
    /// Capabilities in use, such as `bridge`.
    pub capabilities: Vec<String>,
    /// Addresses for management.
    pub management: Vec<String>,
    /// Time since its first frame.
    pub age_ns: u64,
    /// Time until it expires.
    pub expires_ns: u64,
    /// Priorities with PFC.
    pub pfc_priorities: Option<Vec<u8>>,
    /// Longest frame.
    pub max_frame_bytes: Option<u16>,
    /// VLAN of untagged frames; 0: none.
    pub port_vlan: Option<u16>,
    /// Statements that differ from the settings of the port.
    pub differences: Vec<LldpDifference>,
    /// Notes that are no differences.
    pub notes: Vec<LldpNote>,
}

/// A difference between a neighbour and its port.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LldpDifference {
    /// Its [kind](lldp.md#differences).
    pub name: String,
    /// Sentence with both values.
    pub text: String,
    /// Command that mends it at the neighbour.
    pub command: String,
    /// Command of `mlnx_qos`.
    pub mellanox_command: Option<String>,
}

/// A note about a neighbour.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LldpNote {
    /// Its name.
    pub name: String,
    /// Sentence.
    pub text: String,
}

impl LldpPort {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let SwitchView { lldp: Some(board), .. } = look.switch_view else { return Vec::new() };
        board.view().ports.iter().map(|view| Self::of(look.switch_view, view)).collect()
    }

    fn of(switch_view: &SwitchView, view: &PortView) -> Self {
        Self {
            port: switch_view.port_name(view.port).to_owned(),
            enabled: view.is_enabled,
            sent_frames: view.counts.frames_out,
            received_frames: view.counts.frames_in,
            discarded_frames: view.counts.frames_discarded,
            discarded_tlvs: view.counts.tlvs_discarded,
            too_many: view.is_too_many,
            loop_with: view.loop_with.map(|port| switch_view.port_name(port).to_owned()),
            blocked: view.is_blocked,
            neighbours: view.neighbours.iter().map(LldpNeighbour::of).collect(),
        }
    }
}

impl LldpNeighbour {
    fn of(view: &NeighbourView) -> Self {
        let said = &view.statements;
        let priorities = |all: &Vec<usize>| all.iter().map(|&priority| priority as u8).collect();
        Self {
            chassis: view.chassis.clone(),
            neighbour_port: view.port.clone(),
            mac: view.mac.clone(),
            system_name: view.system_name.clone(),
            system_description: view.system_description.clone(),
            port_description: view.port_description.clone(),
            capabilities: view.capabilities.iter().map(|&name| name.to_owned()).collect(),
            management: view.management.clone(),
            age_ns: view.age_seconds * NS_PER_S,
            expires_ns: view.expires_seconds * NS_PER_S,
            pfc_priorities: said.pfc.as_ref().map(priorities),
            max_frame_bytes: said.max_frame,
            port_vlan: said.port_vlan,
            differences: view.differences.iter().map(LldpDifference::of).collect(),
            notes: view.notes.iter().map(LldpNote::of).collect(),
        }
    }
}

impl LldpDifference {
    fn of(view: &DifferenceView) -> Self {
        let DifferenceView { name, sentence, command, mellanox } = view.clone();
        Self { name: name.to_owned(), text: sentence, command, mellanox_command: mellanox }
    }
}

impl LldpNote {
    fn of(view: &NoteView) -> Self {
        Self { name: view.name.to_owned(), text: view.sentence.clone() }
    }
}
