//! Steers lossless priorities to receive queues of their own, at NICs with flow rules.
//!
//! The switch polls queues with lossless frames first. On an lcore that is too slow, other frames then overflow in the
//! NIC, which costs no cycle. Queue 0 is for all frames that are not lossless. A NIC without such rules chooses the
//! queues by itself: all frames are forwarded, but lossless ones may share a queue with others.

use super::devices::PortAccess;
use crate::dataplane::PortSpec;
use crate::dpdk::{FlowRule, Frames, Steerable, steerable};
use crate::qos::{ClassMap, Trust};
use crate::sets::ClassSet;
use crate::stats::SwitchView;

/// Frames for which a device refused a rule, with its reason.
type Refused = Vec<(Frames, String)>;

/// The flow rules of all ports.
pub(super) struct Steering {
    /// The rules of each port; `None` if it was not asked for any.
    ports: Vec<Option<Rules>>,
}

/// The rules of one port.
struct Rules {
    wanted: Vec<FlowRule>,
    /// Receive queues to which a rule leads, except queue 0.
    queues: ClassSet,
    /// Whether the device took any.
    has_any: bool,
}

impl Steering {
    /// Gives their rules to the devices of started ports. Returns warnings for those that do not steer.
    pub fn start(ports: &[impl PortAccess], switch_view: &SwitchView) -> (Self, Vec<String>) {
        let mut steering = Self { ports: ports.iter().map(|_| None).collect() };
        let warnings = steering.follow(ports, switch_view);
        (steering, warnings)
    }

    /// Gives new rules to the devices whose ports map marks to lossless groups in another way than before.
    pub fn follow(&mut self, ports: &[impl PortAccess], switch_view: &SwitchView) -> Vec<String> {
        let classes = &switch_view.spec.classes;
        let mut warnings = Vec::new();
        for ((port, rules), spec) in ports.iter().zip(&mut self.ports).zip(&switch_view.spec.ports) {
            let marks = queues_of_marks(spec, classes);
            if !port.chooses_queues() || spec.rx_queues < 2 || (marks.is_empty() && rules.is_none()) {
                continue;
            }
            let driver = port.driver();
            let wanted = steerable(&driver).map_or(Vec::new(), |driver| rules_of(spec.trust, &marks, &driver));
            if rules.as_ref().is_some_and(|rules| rules.wanted == wanted) {
                continue;
            }
            if rules.as_ref().is_some_and(|rules| rules.has_any)
                && let Err(why) = port.steer_nothing()
            {
                warnings.push(format!(
                    "port {}: {driver} keeps its old flow rules ({why}), so lossless frames may share receive queues \
                     with others; reload again, or restart the switch",
                    spec.name
                ));
                continue;
            }
            let unknown = wanted.is_empty() && !marks.is_empty();
            let (given, refused) = give(port, wanted);
            warnings.extend(warning(spec, &driver, unknown, &refused));
            *rules = Some(given);
        }
        warnings
    }

    /// Receive queues of a port that its device fills with lossless frames.
    pub fn queues(&self, port: usize) -> ClassSet {
        self.ports.get(port).and_then(Option::as_ref).map_or(ClassSet::EMPTY, |rules| rules.queues)
    }
}

/// Gives the rules `wanted` to the device. After a refusal it skips the other rules for frames of that kind.
fn give(port: &impl PortAccess, wanted: Vec<FlowRule>) -> (Rules, Refused) {
    let (mut refused, mut queues, mut has_any) = (Refused::new(), ClassSet::EMPTY, false);
    for rule in &wanted {
        if refused.iter().any(|(frames, _)| *frames == rule.frames) {
            continue;
        }
        match port.steer(*rule) {
            Ok(()) => {
                has_any = true;
                queues |= ClassSet::only_if(rule.queue > 0, rule.queue.into());
            }
            Err(why) => refused.push((rule.frames, why)),
        }
    }
    (Rules { wanted, queues, has_any }, refused)
}

/// Marks of lossless frames at a port, each with its receive queue. Each lossless group has a queue from 1 on, if there
/// are enough. Empty if the port has no lossless group or trusts no mark.
fn queues_of_marks(port: &PortSpec, classes: &ClassMap) -> Vec<(u8, u16)> {
    let lossless = port.lossless_groups();
    if !port.pfc.sends_frames() || port.rx_queues < 2 {
        return Vec::new();
    }
    let queue_of = |class: u8| {
        let group = usize::from(classes.tc_to_group[usize::from(class)]);
        let rank = lossless.iter().position(|lossless| lossless == group)?;
        Some(1 + (rank % usize::from(port.rx_queues - 1)) as u16)
    };
    let table: &[u8] = match port.trust {
        Trust::Dscp => &port.marks.dscp_to_tc,
        Trust::Pcp => &port.marks.pcp_to_tc,
        Trust::Port => &[],
    };
    (0..).zip(table).filter_map(|(mark, &class)| Some((mark, queue_of(class)?))).collect()
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
    if driver.needs_rest && !rules.is_empty() {
        rules.push(FlowRule { frames: Frames::All, mark: 0, queue: 0 });
    }
    rules
}

/// A warning if the device does not steer all lossless frames, or leaves others among them. `is_unknown` is whether
/// its driver is not asked for rules.
fn warning(port: &PortSpec, driver: &str, is_unknown: bool, refused: &Refused) -> Option<String> {
    let mark = if port.trust == Trust::Pcp { "PCP" } else { "DSCP" };
    let frames: Vec<_> = refused.iter().filter(|(frames, _)| *frames != Frames::All).collect();
    let fault = match (frames.first(), refused.first()) {
        _ if is_unknown => format!("{driver} is not known to steer frames by {mark}"),
        (Some((_, why)), _) => {
            let frames: Vec<_> = frames.iter().map(|(frames, _)| frames.to_string()).collect();
            format!("{driver} does not steer {} by {mark} ({why})", frames.join(", "))
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
