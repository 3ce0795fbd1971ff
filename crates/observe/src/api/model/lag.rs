//! Link aggregation groups and their members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;
use crate::lacp::{GroupView, MemberView, PartnerView};

/// A link aggregation group.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lag {
    /// Its name.
    pub name: String,
    /// `active`, `passive` or `static`.
    pub lacp: String,
    /// Whether the peer should send a data unit each second.
    pub fast: bool,
    /// Fewest active members.
    pub min_links: u8,
    /// Whether it carries frames.
    pub up: bool,
    /// MAC address of the other end.
    pub partner_system: Option<String>,
    /// Key of the other end.
    pub partner_key: Option<u16>,
    /// Members, by port.
    pub members: Vec<LagMember>,
}

/// A member of a group.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LagMember {
    /// The port.
    pub port: String,
    /// Whether it takes and sends frames.
    pub active: bool,
    /// Whether it keeps its frames until older ones have left by other members.
    pub opening: bool,
    /// [Why it is idle](lag.md#why-a-member-is-idle).
    pub reason: Option<String>,
    /// The reason as a sentence with a remedy.
    pub advice: Option<String>,
    /// Bits of LACP that the port states.
    pub state: Vec<String>,
    /// The other end of the link, while its data unit holds.
    pub partner: Option<LagPartner>,
    /// Data units sent.
    pub sent_frames: u64,
    /// Data units received.
    pub received_frames: u64,
    /// Markers answered.
    pub markers: u64,
    /// Malformed frames of slow protocols.
    pub malformed_frames: u64,
    /// Times at which the member became active.
    pub ups: u64,
    /// Times at which it stopped to be active.
    pub downs: u64,
}

/// The other end of a link.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LagPartner {
    /// MAC address.
    pub system: String,
    /// Priority of its system.
    pub system_priority: u16,
    /// Its key.
    pub key: u16,
    /// Number of its port.
    pub partner_port: u16,
    /// Priority of its port.
    pub port_priority: u16,
    /// Bits that it states.
    pub state: Vec<String>,
}

impl Lag {
    /// The groups of a switch.
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let view = look.switch_view.lacp.as_ref().map(|board| board.view());
        view.iter().flat_map(|view| &view.groups).map(Self::of).collect()
    }

    fn of(group: &GroupView) -> Self {
        let (partner_system, partner_key) = group.partner.clone().unzip();
        Self {
            name: group.name.clone(),
            lacp: group.mode.to_owned(),
            fast: group.is_fast,
            min_links: group.min_links,
            up: group.is_up,
            partner_system,
            partner_key,
            members: group.members.iter().map(LagMember::of).collect(),
        }
    }
}

impl LagMember {
    fn of(member: &MemberView) -> Self {
        let counts = member.counts;
        Self {
            port: member.name.clone(),
            active: member.is_active,
            opening: member.is_opening,
            reason: member.obstacle.map(|why| why.label().to_owned()),
            advice: member.obstacle.map(|why| why.to_string()),
            state: words(&member.state),
            partner: member.partner.as_ref().map(LagPartner::of),
            sent_frames: counts.sent,
            received_frames: counts.received,
            markers: counts.markers,
            malformed_frames: counts.malformed,
            ups: counts.ups,
            downs: counts.downs,
        }
    }
}

impl LagPartner {
    fn of(partner: &PartnerView) -> Self {
        Self {
            system: partner.system.clone(),
            system_priority: partner.system_priority,
            key: partner.key,
            partner_port: partner.port,
            port_priority: partner.port_priority,
            state: words(&partner.state),
        }
    }
}

fn words(words: &[&'static str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
