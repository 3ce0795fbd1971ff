//! Steers lossless priorities to receive queues of their own, at NICs with flow rules.
//!
//! The switch polls queues with lossless frames first. On an lcore that is too slow, other frames then overflow in the
//! NIC, which costs no cycle. PFC of the peer comes by the first queue of lossless frames, so that it never overflows
//! with others. Queue 0 is for all frames that are not lossless. A NIC without such rules chooses the queues by itself:
//! all frames are forwarded, but lossless ones may share a queue with others.
//!
//! The rules stay as they are at the start, so a change of `trust`, `class` or `maps` at such a port needs a restart.

use super::devices::PortAccess;
use crate::dpdk::{FlowRule, Frames, Steerable, steerable};
use crate::plan::PortSpec;
use crate::qos::{ClassMap, Trust};
use crate::sets::ClassSet;

/// Frames for which a device refused a rule, with its reason.
type Refused = Vec<(Frames, String)>;

/// Queues of a port whose device chooses the queue of a frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steered {
    /// Receive queues that the device fills with lossless frames.
    pub queues: ClassSet,
    /// Whether no other queue has lossless frames or PFC.
    pub is_complete: bool,
}

/// Gives the rules of a started port to its device. Returns its queues; `None` if the port has one queue, or if the
/// sender chooses it. Also returns a warning if the device does not steer.
pub(super) fn steer(port: &impl PortAccess, spec: &PortSpec, classes: &ClassMap) -> (Option<Steered>, Option<String>) {
    if !port.chooses_queues() || spec.rx_queues < 2 {
        return (None, None);
    }
    let (marks, driver) = (queues_of_marks(spec, classes), port.driver());
    let known = steerable(&driver);
    let wanted = known.map_or(Vec::new(), |known| rules_of(spec.live.trust, &marks, &known));
    let is_unknown = wanted.is_empty() && !marks.is_empty();
    let (queues, refused) = give(port, &wanted);
    // Rules for IP do not select tagged frames at each driver, and none selects frames without a mark.
    let has_marked =
        spec.live.trust == Trust::Pcp || spec.vlan.tagged().is_empty() && known.is_some_and(|known| known.is_complete);
    let is_complete =
        !wanted.is_empty() && refused.is_empty() && has_marked && !is_lossless(spec, classes, spec.live.port_class);
    (Some(Steered { queues, is_complete }), warning(spec, &driver, is_unknown, &refused))
}

/// Gives the rules `wanted` to the device. After a refusal it skips the other rules for frames of that kind. Returns
/// the queues to which rules lead, except queue 0.
fn give(port: &impl PortAccess, wanted: &[FlowRule]) -> (ClassSet, Refused) {
    let (mut refused, mut queues) = (Refused::new(), ClassSet::EMPTY);
    for rule in wanted {
        if refused.iter().any(|(frames, _)| *frames == rule.frames) {
            continue;
        }
        match port.steer(*rule) {
            Ok(()) => queues |= ClassSet::only_if(rule.queue > 0, rule.queue.into()),
            Err(why) => refused.push((rule.frames, why)),
        }
    }
    (queues, refused)
}

/// Marks of lossless frames at a port, each with its receive queue. Each lossless group has a queue from 1 on, if there
/// are enough. Empty if the port has no lossless group or trusts no mark.
fn queues_of_marks(port: &PortSpec, classes: &ClassMap) -> Vec<(u8, u16)> {
    let lossless = port.lossless_groups();
    if !port.pfc.sends_frames() || port.rx_queues < 2 {
        return Vec::new();
    }
    let queue_of = |class: u8| {
        let group = group(classes, class);
        let rank = lossless.iter().position(|lossless| lossless == group)?;
        Some(1 + (rank % usize::from(port.rx_queues - 1)) as u16)
    };
    let table: &[u8] = match port.live.trust {
        Trust::Dscp => &port.live.marks.dscp_to_tc,
        Trust::Pcp => &port.live.marks.pcp_to_tc,
        Trust::Port => &[],
    };
    (0..).zip(table).filter_map(|(mark, &class)| Some((mark, queue_of(class)?))).collect()
}

fn group(classes: &ClassMap, class: u8) -> usize {
    usize::from(classes.tc_to_group[usize::from(class)])
}

fn is_lossless(port: &PortSpec, classes: &ClassMap, class: u8) -> bool {
    port.lossless_groups().contains(group(classes, class))
}

/// The rules for these marks, for each kind of frames that the driver tells apart.
fn rules_of(trust: Trust, queues: &[(u8, u16)], driver: &Steerable) -> Vec<FlowRule> {
    let bytes: Vec<(u8, u16)> = match trust {
        // Drivers compare the whole byte, so there is a rule for each codepoint of ECN.
        Trust::Dscp => {
            queues.iter().flat_map(|&(dscp, queue)| (0..4).map(move |ecn| (dscp << 2 | ecn, queue))).collect()
        }
        Trust::Pcp | Trust::Port => queues.to_vec(),
    };
    let kinds = if trust == Trust::Dscp { driver.by_dscp } else { driver.by_pcp };
    let of_kind = |&frames: &Frames| bytes.iter().map(move |&(mark, queue)| FlowRule { frames, mark, queue });
    let mut rules: Vec<_> = kinds.iter().flat_map(of_kind).collect();
    if !rules.is_empty() {
        rules.push(FlowRule { frames: Frames::MacControl, mark: 0, queue: 1 });
        rules.extend(driver.needs_default_rule.then_some(FlowRule { frames: Frames::All, mark: 0, queue: 0 }));
    }
    rules
}

/// A warning if the device does not steer all lossless frames, or leaves others among them. `is_unknown` is whether
/// its driver is not asked for rules.
fn warning(port: &PortSpec, driver: &str, is_unknown: bool, refused: &Refused) -> Option<String> {
    let mark = if port.live.trust == Trust::Pcp { "PCP" } else { "DSCP" };
    let is_marked = |frames: Frames| !matches!(frames, Frames::All | Frames::MacControl);
    let frames: Vec<_> = refused.iter().filter(|(frames, _)| is_marked(*frames)).collect();
    let fault = match (frames.first(), refused.first()) {
        _ if is_unknown => format!("{driver} is not known to steer frames by {mark}"),
        (Some((_, why)), _) => {
            let frames: Vec<_> = frames.iter().map(|(frames, _)| frames.to_string()).collect();
            format!("{driver} does not steer {} by {mark} ({why})", frames.join(", "))
        }
        (None, Some((Frames::MacControl, why))) => {
            return Some(format!(
                "port {}: {driver} does not steer MAC control frames ({why}), so PFC shares queue 0 with lossy frames, \
                 and these are still received and shed; see docs/nics.md",
                port.name
            ));
        }
        (None, Some((_, why))) => format!("{driver} has no rule for all other frames ({why})"),
        (None, None) => return None,
    };
    Some(format!(
        "port {}: {fault}, so lossless frames may share receive queues with others, and are not polled before those; \
         write `queues: 1`, or see docs/nics.md",
        port.name
    ))
}

#[cfg(test)]
#[path = "steering_tests.rs"]
mod tests;
