//! Verdict on lossless service: every frame of every lossless flow arrived, and every lossless flow moved.

use serde::{Deserialize, Serialize};

use super::show::picoseconds;
use super::starved;
use crate::sim::outcome::{Ending, Outcome};
use crate::sim::spec::Scenario;
use crate::text::format::{frames, grouped};

/// Verdict on the lossless flows of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowVerdict {
    /// Frames of lossless flows that were sent and never arrived, including frames that a deadlock holds for ever.
    pub lossless_lost: u64,
    /// Frames of lossless flows that were sent.
    pub lossless_sent: u64,
    /// Whether a lossless flow had frames to send and hardly moved.
    pub starved: bool,
    /// Whether no lossless frame was lost, and every lossless flow moved.
    pub kept: bool,
}

/// Returns the verdict on a run.
#[must_use]
pub fn verdict(scenario: &Scenario, outcome: &Outcome) -> FlowVerdict {
    let (lossless_sent, lossless_lost) = sent_and_lost(scenario, outcome, true);
    let starved = !starved::sentences(scenario, outcome).is_empty();
    FlowVerdict { lossless_lost, lossless_sent, starved, kept: lossless_lost == 0 && !starved }
}

/// Returns the frames of lossless or of lossy flows that were sent, and how many of them never arrived.
pub fn sent_and_lost(scenario: &Scenario, outcome: &Outcome, lossless: bool) -> (u64, u64) {
    let flows = scenario.flows.iter().zip(&outcome.flows).filter(|(flow, _)| flow.lossless == lossless);
    let workloads = scenario.workloads.iter().zip(&outcome.workloads);
    let workloads = workloads.filter(|(node, _)| node.is_lossless() == lossless).map(|(_, workload)| &workload.sum);
    let flows = flows.map(|(_, flow)| flow).chain(workloads);
    flows.fold((0, 0), |(sent, lost), flow| (sent + flow.sent_frames, lost + flow.lost_frames()))
}

/// Cause of frames that are not lost yet.
const UNDER_WAY: &str = "still under way (any class)";

/// Returns the possible causes of lost lossless frames, with counts. Frames that a link's fault lost have no class.
fn causes(outcome: &Outcome) -> Vec<(String, u64)> {
    let mut causes: Vec<(String, u64)> = Vec::new();
    let mut add = |what: &str, count: u64| match causes.iter_mut().find(|(known, _)| known == what) {
        Some((_, all)) => *all += count,
        None => causes.push((what.to_owned(), count)),
    };
    for port in outcome.switches.iter().flat_map(|switch| &switch.ports) {
        for (reason, count) in port.classes.iter().filter(|class| class.lossless).flat_map(|class| &class.drops) {
            add(reason.label(), *count);
        }
        add("missed by a full receive ring", port.missed_lossless_frames);
    }
    for link in &outcome.links {
        let data = |way: usize| link.lost_frames[way].saturating_sub(link.lost_pfc_frames[way]);
        add("lost on a faulty wire (any class)", data(0) + data(1));
    }
    if let Ending::Undrained { frames } = outcome.ending {
        add(UNDER_WAY, frames);
    }
    causes.retain(|(_, count)| *count > 0);
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    causes
}

/// Returns the last lines of a run: the verdict, how the run ended, and whether all invariants held.
pub fn lines(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = format!("lossless: {} - {}\n", word(scenario, outcome), losses(scenario, outcome));
    text += &match outcome.ending {
        Ending::Drained => "ending: drained - every frame has arrived or is counted as lost\n".to_owned(),
        Ending::Undrained { frames: 0 } => "ending: undrained - no frames were under way at the end of the drain time \
                                            (`drain`), but cells were still held or peers paused\n"
            .to_owned(),
        Ending::Undrained { frames: left } => {
            format!("ending: undrained - {} under way at the end of the drain time (`drain`)\n", frames(left))
        }
        Ending::TooManyEvents => format!("ending: given up after {} events\n", grouped(outcome.events)),
        Ending::Violated => "ending: stopped at the violation\n".to_owned(),
    };
    for sentence in starved::sentences(scenario, outcome) {
        text += &format!("starved: {sentence}\n");
    }
    text + &invariants(outcome)
}

/// Returns the verdict in a word. A run that did not drain is `OPEN` if frames under way are the only known cause: they
/// might have arrived. Without a guarantee, `KEPT` is only an observation.
fn word(scenario: &Scenario, outcome: &Outcome) -> &'static str {
    let is_open = outcome.ending != Ending::Drained && causes(outcome).iter().all(|(what, _)| what == UNDER_WAY);
    match verdict(scenario, outcome) {
        FlowVerdict { kept: true, .. } if outcome.waivers.is_empty() => "KEPT",
        FlowVerdict { kept: true, .. } => "KEPT, not promised",
        FlowVerdict { lossless_lost: 0, .. } => "STARVED",
        _ if is_open => "OPEN",
        _ => "BROKEN",
    }
}

/// Describes how many lossless frames were lost, and where.
fn losses(scenario: &Scenario, outcome: &Outcome) -> String {
    let FlowVerdict { lossless_lost, lossless_sent, .. } = verdict(scenario, outcome);
    let what = if word(scenario, outcome) == "OPEN" { "have not arrived" } else { "lost" };
    let text = format!("{} of {} lossless frames {what}", grouped(lossless_lost), grouped(lossless_sent));
    let list = |(what, count): &(String, u64)| format!("{} {what}", grouped(*count));
    let causes: Vec<String> = if lossless_lost == 0 { Vec::new() } else { causes(outcome).iter().map(list).collect() };
    if causes.is_empty() { text } else { format!("{text}: {}", causes.join(", ")) }
}

/// The lines about a variant below the table of variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantVerdict {
    variant: String,
    /// The verdict and the losses, if frames were lost or a flow starved; `None`: kept.
    losses: Option<String>,
    /// Starved flows, as sentences.
    starved: Vec<String>,
    /// The reason for which nothing was guaranteed; `None` if there was a guarantee.
    not_promised: Option<String>,
    /// The violated invariant, as lines; `None`: all held.
    violated: Option<String>,
}

impl VariantVerdict {
    pub fn new(variant: &str, scenario: &Scenario, outcome: &Outcome) -> Self {
        let kept = verdict(scenario, outcome).kept;
        let losses =
            (!kept).then(|| format!("{} in `{variant}` - {}", word(scenario, outcome), losses(scenario, outcome)));
        Self {
            variant: variant.to_owned(),
            losses,
            starved: starved::sentences(scenario, outcome),
            not_promised: reason(outcome),
            violated: outcome.violation.is_some().then(|| invariants(outcome)),
        }
    }

    /// Returns the name of the variant.
    pub fn name(&self) -> &String {
        &self.variant
    }
}

/// Returns the last lines of several variants. Each variant that lost frames or starved a flow has a line with the
/// causes, and with the reason for a missing guarantee. Variants that lost nothing without a guarantee follow.
pub fn of_variants(rows: &[&VariantVerdict]) -> String {
    let mut text = String::new();
    for row in rows {
        let Some(losses) = &row.losses else { continue };
        text += &format!("lossless: {losses}\n");
        for sentence in &row.starved {
            text += &format!("  starved: {sentence}\n");
        }
        text += &row.not_promised.as_ref().map_or(String::new(), |reason| format!("  not promised: {reason}\n"));
    }
    let unpromised = unpromised(rows);
    match (text.is_empty(), unpromised.is_empty()) {
        (true, true) => text += "lossless: KEPT in all variants\n",
        (true, false) => text += "lossless: KEPT in all variants; not promised in these:\n",
        (false, true) => {}
        (false, false) => text += "lossless: KEPT in others; not promised in these:\n",
    }
    text += &unpromised;
    for row in rows {
        text += &row.violated.as_ref().map_or(String::new(), |lines| format!("in `{}`: {lines}", row.variant));
    }
    text
}

/// Lists the variants that lost nothing without a guarantee; those with the same reason share a line.
fn unpromised(rows: &[&VariantVerdict]) -> String {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.losses.is_none()) {
        let Some(reason) = &row.not_promised else { continue };
        match by_reason.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(format!("`{}`", row.variant)),
            None => by_reason.push((reason, vec![format!("`{}`", row.variant)])),
        }
    }
    by_reason.iter().map(|(reason, names)| format!("  {}: {reason}\n", names.join(", "))).collect()
}

/// Returns the first reason for which nothing was guaranteed, and the number of further reasons; `None` if there was a
/// guarantee.
fn reason(outcome: &Outcome) -> Option<String> {
    let (first, remaining) = outcome.waivers.split_first()?;
    let more =
        if remaining.is_empty() { String::new() } else { format!(" (and {} more)", grouped(remaining.len() as u64)) };
    Some(format!("{first}{more}"))
}

fn invariants(outcome: &Outcome) -> String {
    let checks = grouped(outcome.checks);
    let plural = if outcome.checks == 1 { "" } else { "s" };
    let Some(violation) = &outcome.violation else { return format!("{checks} invariant check{plural}, all held\n") };
    let (at, event) = (picoseconds(violation.at_ps), grouped(violation.event));
    let (name, what) = (violation.invariant, &violation.what);
    format!("VIOLATED: {name} at {at}, after event {event}: {what}\n{checks} invariant check{plural} held before\n")
}
