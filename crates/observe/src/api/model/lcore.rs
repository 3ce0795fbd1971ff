//! Dataplane lcores: their polls, rests and hand-offs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Look;

/// One lcore of the dataplane.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lcore {
    /// Its number, from zero.
    pub lcore: u8,
    /// Ports that it owns.
    pub ports: Vec<String>,
    /// Polls of all its ports.
    pub polls: u64,
    /// Polls that moved a frame.
    pub busy_polls: u64,
    /// `lcores.poll_gap`.
    pub poll_gap_configured_ns: u64,
    /// Sum of all gaps.
    pub poll_gap_sum_ns: u64,
    /// Half of the gaps were shorter: a power of two, or the longest gap.
    pub poll_gap_p50_ns: Option<u64>,
    /// 99 % were shorter, in the same way.
    pub poll_gap_p99_ns: Option<u64>,
    /// The longest gap.
    pub poll_gap_highest_ns: u64,
    /// Histogram: entry n (from 0) counts gaps below 2^n ns that no earlier one counts, the last all others.
    pub poll_gaps: Vec<u64>,
    /// Configured longest [rest](idle.md); null: never rests.
    pub rest_longest_ns: Option<u64>,
    /// Rests.
    pub rests: u64,
    /// Time of all rests.
    pub rested_ns: u64,
    /// 99 % of rests ended late by less; null: before the first.
    pub rest_overshoot_p99_ns: Option<u64>,
    /// Latest end of a rest.
    pub rest_overshoot_highest_ns: u64,
    /// Frames handed to other lcores.
    pub handed_off_frames: u64,
    /// Most frames in one hand-off ring to it.
    pub handoff_highest_frames: u64,
    /// Frames in its egress queues.
    pub held_frames: u64,
    /// Entries in its forwarding database.
    pub fdb_entries: u64,
    /// Addresses learned or moved.
    pub fdb_learned: u64,
    /// Addresses not learned: no room.
    pub fdb_full: u64,
}

impl Lcore {
    pub(in crate::api) fn all(look: &Look<'_>) -> Vec<Self> {
        let switch_view = look.switch_view;
        let lcores = look.snapshot.lcores.iter().enumerate();
        lcores
            .map(|(number, lcore)| {
                let ports = switch_view.spec.ports.iter().filter(|port| usize::from(port.lcore) == number);
                Self {
                    lcore: number as u8,
                    ports: ports.map(|port| port.name.clone()).collect(),
                    polls: lcore.polls,
                    busy_polls: lcore.busy_polls,
                    poll_gap_configured_ns: switch_view.spec.poll_gap.0,
                    poll_gap_sum_ns: lcore.poll_gap_sum_ns,
                    poll_gap_p50_ns: lcore.poll_gap_quantile_ns(500),
                    poll_gap_p99_ns: lcore.poll_gap_quantile_ns(990),
                    poll_gap_highest_ns: lcore.poll_gap_highest_ns,
                    poll_gaps: lcore.poll_gap.to_vec(),
                    rest_longest_ns: switch_view.rests.get(number).copied().flatten().map(|longest| longest.0),
                    rests: lcore.rests,
                    rested_ns: lcore.rested_ns,
                    rest_overshoot_p99_ns: lcore.rest_overshoot_quantile_ns(990),
                    rest_overshoot_highest_ns: lcore.rest_overshoot_highest_ns,
                    handed_off_frames: lcore.handed_off_frames,
                    handoff_highest_frames: lcore.handoff_highest_frames,
                    held_frames: lcore.held_frames,
                    fdb_entries: lcore.fdb_entries,
                    fdb_learned: lcore.fdb_learned,
                    fdb_full: lcore.fdb_full,
                }
            })
            .collect()
    }
}
