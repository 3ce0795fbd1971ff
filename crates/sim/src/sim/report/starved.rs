//! Detection of lossless flows that hardly moved, because a core had more lossy frames than time.
//!
//! A frame that never left its host is not lost, so a count of losses cannot detect such a flow.

use super::show::picoseconds;
use crate::plan::counters::STARVED_PART;
use crate::sets::CLASSES;
use crate::sim::outcome::{FlowOutcome, Outcome, PortOutcome};
use crate::sim::spec::{FlowNode, FrameSizes, Load, MessageSize, PortRef, Scenario};
use crate::text::format::{frames, grouped};
use crate::units::WIRE_OVERHEAD;

/// Maximum number of flows that are named.
const NAMED: usize = 4;
/// A flow is judged only if its sending period is at least one part in this number of the run's.
const JUDGED_PART: u64 = 10;
/// Shortest frame on the wire, in bytes without the frame check sequence.
const SHORTEST: u64 = 60;
/// Picoseconds in a second.
const SECOND_PS: u128 = 1_000_000_000_000;

/// Returns one sentence for each lossless flow that hardly moved. The last one counts the flows beyond [`NAMED`].
pub(super) fn sentences(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let flows = scenario.flows.iter().zip(&outcome.flows);
    let all: Vec<String> = flows.filter_map(|(flow, of)| sentence(scenario, outcome, flow, of)).collect();
    let more = all.len().saturating_sub(NAMED);
    let remaining = (more > 0).then(|| format!("{more} more lossless flow{}", if more == 1 { "" } else { "s" }));
    all.into_iter().take(NAMED).chain(remaining).collect()
}

/// Returns a sentence if the flow hardly moved. It had enough time, and sent less than one in [`STARVED_PART`] of its
/// frames. A receive backlog held it for more than half of its time, at a port that received mostly other frames.
fn sentence(scenario: &Scenario, outcome: &Outcome, flow: &FlowNode, of: &FlowOutcome) -> Option<String> {
    let hold = of.backlog.filter(|hold| hold.held_ps > of.span_ps / 2)?;
    let wanted = wanted_frames(flow, of.span_ps);
    let has_moved = of.sent_frames * STARVED_PART >= wanted;
    let PortRef { switch, port } = hold.port;
    let is_judged = of.span_ps >= outcome.sending_ps / JUDGED_PART;
    if !is_judged || has_moved || !is_displaced(&outcome.switches[switch].ports[port], flow.class) {
        return None;
    }
    let node = &scenario.switches[switch];
    let place = format!("{}.{}", node.name, node.config.switch.ports[port].name);
    let (held, span) = (picoseconds(hold.held_ps), picoseconds(of.span_ps));
    let (name, class, sent, wanted) = (&flow.name, flow.class, grouped(of.sent_frames), frames(wanted));
    Some(format!(
        "{name} of class {class} sent {sent} of {wanted}; the receive backlog of {place} paused it for {held} of {span}"
    ))
}

/// Whether less than one in [`STARVED_PART`] of the frames that `port` received was of `class`.
fn is_displaced(port: &PortOutcome, class: u8) -> bool {
    let all: u64 = port.classes.iter().map(|class| class.rx_frames).sum();
    port.classes[usize::from(class) % CLASSES].rx_frames * STARVED_PART < all
}

/// Returns the frames that `flow` has to send in `span_ps`, as far as its rate allows.
fn wanted_frames(flow: &FlowNode, span_ps: u64) -> u64 {
    let len = match flow.frames {
        FrameSizes::Fixed(len) => len.into(),
        FrameSizes::Uniform(low, high) => (u64::from(low) + u64::from(high)) / 2,
        FrameSizes::Imix => (7 * SHORTEST + 4 * 572 + 1496) / 12,
    };
    let len = len.max(SHORTEST);
    let by_rate = |ps: u64| {
        let bits = u128::from(flow.rate.0) * u128::from(ps) / SECOND_PS;
        u64::try_from(bits).unwrap_or(u64::MAX) / ((len + u64::from(WIRE_OVERHEAD)) * 8)
    };
    let ps = |nanos: crate::units::Nanos| nanos.0.saturating_mul(1_000);
    match flow.load {
        Load::Steady => by_rate(span_ps),
        Load::OnOff { on, off } => {
            let (on, round) = (ps(on), ps(on).saturating_add(ps(off)).max(1));
            by_rate(span_ps / round * on + (span_ps % round).min(on))
        }
        Load::Messages { size, every, count, .. } => {
            let bytes = match size {
                MessageSize::Fixed(bytes) => bytes.0,
                MessageSize::Uniform(low, high) => low.0.midpoint(high.0),
                MessageSize::Known(distribution) => distribution.cdf().mean(),
            };
            let messages = (span_ps / ps(every).max(1) + 1).min(count.map_or(u64::MAX, u64::from));
            by_rate(span_ps).min(messages.saturating_mul(bytes.div_ceil(len).max(1)))
        }
    }
}

#[cfg(test)]
#[path = "starved_tests.rs"]
mod tests;
