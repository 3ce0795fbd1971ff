//! Rules of the shared buffer in HPCC's ns-3 simulator (class `SwitchMmu`; Li et al., SIGCOMM 2019), written from their
//! description. docs/mmu-rules.md explains each rule that decides otherwise than [`super::PortLedger`].
//!
//! The comparison of a replay and the ledger of a simulated switch both use these functions. Cells are counted,
//! although that simulator counts bytes.

use std::fmt;
use std::str::FromStr;

use super::{GroupProfile, GroupState};
use crate::units::Cells;

/// A rule by which HPCC's simulator decides otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HpccRule {
    /// It drops a frame that the group's reserve holds, because neither T nor the headroom holds the frame.
    ReserveRefused,
    /// It admits a frame to the shared pool while frames of the group are in headroom.
    SharedBesideHeadroom,
    /// It sends XOFF when the share has reached T, before a frame goes to headroom.
    XoffAtThreshold,
    /// It judges XON only when a frame of the group departs.
    XonOwnDeparture,
    /// It sends XON when the share is empty, even if T has no room.
    XonEmptyShare,
    /// It marks by the depth of the queue without the departing frame.
    EcnAfterDeparture,
    /// Its pool is the buffer less one reserve and one headroom for each port, however many groups have them.
    PoolPerPort,
}

impl HpccRule {
    /// All rules, in the order of docs/mmu-rules.md.
    pub const ALL: [Self; 7] = [
        Self::XoffAtThreshold,
        Self::XonOwnDeparture,
        Self::XonEmptyShare,
        Self::SharedBesideHeadroom,
        Self::ReserveRefused,
        Self::EcnAfterDeparture,
        Self::PoolPerPort,
    ];

    /// Returns the name in outputs, in scenarios and in docs/mmu-rules.md.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            HpccRule::ReserveRefused => "reserve-refused",
            HpccRule::SharedBesideHeadroom => "shared-beside-headroom",
            HpccRule::XoffAtThreshold => "xoff-at-threshold",
            HpccRule::XonOwnDeparture => "xon-own-departure",
            HpccRule::XonEmptyShare => "xon-empty-share",
            HpccRule::EcnAfterDeparture => "ecn-after-departure",
            HpccRule::PoolPerPort => "pool-per-port",
        }
    }

    /// Returns the invariant of the auditor that a switch with this rule breaks; `None`: all hold.
    #[must_use]
    pub const fn broken_invariant(self) -> Option<&'static str> {
        match self {
            HpccRule::SharedBesideHeadroom => Some("share_within_threshold"),
            HpccRule::XoffAtThreshold => Some("paused_without_cause"),
            HpccRule::XonEmptyShare => Some("xon_too_early"),
            HpccRule::ReserveRefused
            | HpccRule::XonOwnDeparture
            | HpccRule::EcnAfterDeparture
            | HpccRule::PoolPerPort => None,
        }
    }
}

impl FromStr for HpccRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|rule| rule.label() == text);
        known.copied().ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(|rule| format!("`{}`", rule.label())).collect();
            format!("`{text}` is not a rule of HPCC's simulator; write one of {}", names.join(", "))
        })
    }
}

/// A set of rules of HPCC's simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HpccRules(u8);

impl HpccRules {
    /// No rule: the switch decides by its own.
    pub const NONE: Self = Self(0);

    /// Returns every rule: the switch decides as HPCC's simulator.
    #[must_use]
    pub fn all() -> Self {
        HpccRule::ALL.into_iter().collect()
    }

    /// Whether `rule` is one of these.
    #[inline]
    #[must_use]
    pub const fn contains(self, rule: HpccRule) -> bool {
        self.0 & 1 << rule as u8 != 0
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the rules in the order of docs/mmu-rules.md.
    pub fn iter(self) -> impl Iterator<Item = HpccRule> {
        HpccRule::ALL.into_iter().filter(move |rule| self.contains(*rule))
    }
}

impl FromStr for HpccRules {
    type Err = String;

    /// Reads `hpcc` as all rules, `holdfast` as none, or names with commas between them.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "hpcc" {
            return Ok(Self::all());
        }
        if text == "holdfast" {
            return Ok(Self::NONE);
        }
        let rules: Result<Self, String> = text.split(',').map(str::parse).collect();
        rules.map_err(|error| format!("{error}, `hpcc` alone for all, or `holdfast` for none"))
    }
}

impl FromIterator<HpccRule> for HpccRules {
    fn from_iter<I: IntoIterator<Item = HpccRule>>(rules: I) -> Self {
        Self(rules.into_iter().fold(0, |set, rule| set | 1 << rule as u8))
    }
}

impl fmt::Display for HpccRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(HpccRule::label).collect();
        f.write_str(&names.join(", "))
    }
}

/// Place that HPCC's rules give an arriving frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HpccPlace {
    /// Reserve or shared pool.
    Buffer,
    /// Headroom.
    Headroom,
    /// No place.
    Dropped,
}

/// A lossless group before an event.
#[derive(Debug, Clone, Copy)]
pub struct HpccGroup {
    /// Settings of the group.
    pub profile: GroupProfile,
    /// Cells that it holds.
    pub state: GroupState,
    /// Whether it is at XOFF.
    pub is_xoff: bool,
    /// Free cells of the lossless pool.
    pub free: Cells,
}

impl HpccGroup {
    fn threshold(&self) -> Cells {
        self.profile.threshold.limit(self.free)
    }

    /// Whether the whole frame of `cells` fits neither the headroom nor the share below T. Such a frame is dropped
    /// (`CheckIngressAdmission`).
    #[must_use]
    pub fn is_dropped(&self, cells: Cells) -> bool {
        let state = &self.state;
        cells + state.headroom > self.profile.headroom && cells + state.shared > self.threshold()
    }

    /// Whether a frame of `cells` stays out of the headroom: the share is within T with it (`UpdateIngressAdmission`).
    #[must_use]
    pub fn fits_share(&self, cells: Cells) -> bool {
        let held = self.state.reserve + self.state.shared + cells;
        held.saturating_sub(self.profile.reserve) <= self.threshold()
    }

    /// Decides on a frame of `cells`.
    #[must_use]
    pub fn admit(&self, cells: Cells) -> HpccPlace {
        match (self.is_dropped(cells), self.fits_share(cells)) {
            (true, _) => HpccPlace::Dropped,
            (false, true) => HpccPlace::Buffer,
            (false, false) => HpccPlace::Headroom,
        }
    }

    /// Whether a group in this state must be paused, after one of its frames was admitted (`CheckShouldPause`).
    #[must_use]
    pub fn must_pause(&self) -> bool {
        self.state.headroom > Cells(0) || self.state.shared >= self.threshold()
    }

    /// Whether the group is at XOFF after an arriving frame went to `place`, of whose `cells` its share took `shared`.
    #[must_use]
    pub fn is_xoff_after(&self, place: HpccPlace, shared: Cells) -> bool {
        match place {
            HpccPlace::Dropped => self.is_xoff,
            HpccPlace::Headroom => true,
            HpccPlace::Buffer => {
                let state = GroupState { shared: self.state.shared + shared, ..self.state };
                self.is_xoff || Self { state, free: self.free.saturating_sub(shared), ..*self }.must_pause()
            }
        }
    }

    /// Whether a paused group resumes in this state, after one of its frames has departed (`CheckShouldResume`).
    #[must_use]
    pub fn resumes(&self) -> bool {
        let share = self.state.shared;
        self.state.headroom == Cells(0) && (share == Cells(0) || share + self.profile.xon_offset <= self.threshold())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rules_are_read_as_written() {
        for rule in HpccRule::ALL {
            assert_eq!(rule.label().parse(), Ok(rule));
            assert!(HpccRules::all().contains(rule) && !HpccRules::NONE.contains(rule));
        }
        assert_eq!(HpccRules::all().iter().count(), HpccRule::ALL.len());
        let two: HpccRules = [HpccRule::ReserveRefused, HpccRule::XoffAtThreshold].into_iter().collect();
        assert_eq!(two.to_string(), "xoff-at-threshold, reserve-refused");
        assert_eq!("reserve-refused,xoff-at-threshold".parse(), Ok(two));
        assert_eq!("hpcc".parse(), Ok(HpccRules::all()));
        assert!("xoff".parse::<HpccRule>().unwrap_err().contains("write one of `xoff-at-threshold`, "));
    }
}
