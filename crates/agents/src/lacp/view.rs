//! The state of the groups as tables, JSON and metrics show it.

use std::fmt;

use serde::Serialize;

use super::member::MemberCounts;
use crate::wire::lacp::Participant;

/// All groups.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct AgentView {
    /// Address of the switch as a system.
    pub system: String,
    /// Groups in the order of the configuration.
    pub groups: Vec<GroupView>,
    /// Members that opened before all older frames of their flows had left.
    pub early_openings: u64,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupView {
    /// Name.
    pub name: String,
    /// `active`, `passive` or `static`.
    pub mode: &'static str,
    /// Whether it wants a data unit each second.
    pub is_fast: bool,
    /// Fewest active members with which it carries frames.
    pub min_links: u8,
    /// Whether it carries frames.
    pub is_up: bool,
    /// System and key of the other end.
    pub partner: Option<(String, u16)>,
    /// Members by port.
    pub members: Vec<MemberView>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberView {
    /// Index of the port, and its name.
    pub port: usize,
    /// See `port`.
    pub name: String,
    /// Whether it takes and sends frames.
    pub is_active: bool,
    /// Whether it keeps its frames until older ones of their flows have left by other members.
    pub is_opening: bool,
    /// Why it is not active.
    pub obstacle: Option<Obstacle>,
    /// State of the port, in words.
    pub state: Vec<&'static str>,
    /// The other end, while its data unit holds.
    pub partner: Option<PartnerView>,
    /// Statistics.
    pub counts: MemberCounts,
}

/// The other end of a link, as it states itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartnerView {
    /// Priority and address of the system.
    pub system_priority: u16,
    /// See `system_priority`.
    pub system: String,
    /// Key.
    pub key: u16,
    /// Priority and number of the port.
    pub port_priority: u16,
    /// See `port_priority`.
    pub port: u16,
    /// State of the port, in words.
    pub state: Vec<&'static str>,
}

impl PartnerView {
    pub(super) fn of(partner: &Participant) -> Self {
        Self {
            system_priority: partner.system_priority,
            system: partner.system.to_string(),
            key: partner.key,
            port_priority: partner.port_priority,
            port: partner.port,
            state: partner.state.words(),
        }
    }
}

/// Why a member is not active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// It has no link.
    NoLink,
    /// No data unit comes.
    Silent,
    /// No data unit comes, and the switch does not speak first.
    SilentToPassive,
    /// Its peer is another own port.
    Own,
    /// It is connected to another system or key than the group.
    OtherPartner,
    /// The partner has left its group, or has not chosen this link for it.
    NotSelectedByPartner,
    /// The partner takes no frames yet.
    PartnerTakesNothing,
    /// Fewer members than the group needs are ready.
    TooFew,
}

impl Obstacle {
    /// Every obstacle with its label, and its sentence with a remedy.
    pub const TABLE: [(Self, &'static str, &'static str); 8] = [
        (Self::NoLink, "no_link", "it has no link"),
        (
            Self::Silent,
            "silent",
            "the peer sends no LACP; give its ports mode 802.3ad, or write `lacp: off` here if they are static",
        ),
        (
            Self::SilentToPassive,
            "silent_to_passive",
            "the peer sends no LACP and perhaps waits too; write `lacp: active` here",
        ),
        (Self::Own, "own", "its peer is a port of this switch; remove the cable"),
        (
            Self::OtherPartner,
            "other_partner",
            "its peer is another system or another group than that of the others; check the cables",
        ),
        (
            Self::NotSelectedByPartner,
            "not_selected_by_partner",
            "the peer has left the group or has not chosen it; its ports need one speed and full duplex",
        ),
        (Self::PartnerTakesNothing, "partner_takes_nothing", "the peer takes no frames yet"),
        (Self::TooFew, "too_few", "it is ready, and too few others are; mend them, or lower `min_links`"),
    ];

    /// Label in metrics and JSON.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::TABLE[*self as usize].2)
    }
}
