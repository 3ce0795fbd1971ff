//! Injected faults in the verdict: the frames that they hit, and the losses that follow from them.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::snapshot::Snapshot;
use super::super::switch_view::SwitchView;
use super::BrokenBy;
use crate::faults::board::Hit;
use crate::faults::table::ClassReader;
use crate::faults::{FaultVerb, Toward};
use crate::plan::{DropReason, SwitchSpec};
use crate::qos::Trust;
use crate::sets::{CLASSES, PortSet};
use crate::text::format::frames;

/// Frames of the smallest size, with preamble and gap, that arrive in the longest pause of a PFC frame. A sender that
/// misses one PFC frame sends no more than these.
const FRAMES_OF_PFC: u64 = 65_535 * 512 / (84 * 8);

/// Frames that faults of one kind hit at a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InjectedHits {
    /// The port.
    pub port: String,
    /// [Kind](faults.md#keys) of the fault.
    pub fault: &'static str,
    /// `switch` or `host`; null: held until the end.
    pub toward: Option<&'static str>,
    /// Traffic class; null: PFC.
    pub class: Option<usize>,
    /// Number of frames.
    pub frames: u64,
    /// Whether the switch forwarded the frames in this class. The marks of a sent frame do not tell if its class came
    /// from another map, from a port, or from a mark that was rewritten.
    #[serde(skip)]
    is_certain: bool,
}

/// The frames of lossless classes, and the PFC frames, that faults hit. Frames of an uncertain class count as lossless.
pub(super) fn injected(switch_view: &SwitchView) -> Vec<InjectedHits> {
    let Some(board) = &switch_view.faults else { return Vec::new() };
    let certain = certain_ports(&switch_view.spec);
    let is_certain =
        |hit: &Hit| hit.class.is_none() || hit.toward == Some(Toward::Switch) || certain.contains(hit.port);
    let hits = board.hits().into_iter();
    let lossless = switch_view.ever_lossless();
    let hits = hits.filter(|hit| hit.class.is_none_or(|class| lossless.contains(class)) || !is_certain(hit));
    hits.map(|hit| InjectedHits {
        is_certain: is_certain(&hit),
        port: switch_view.port_name(hit.port).to_owned(),
        fault: hit.verb.word(),
        toward: hit.toward.map(Toward::word),
        class: hit.class,
        frames: hit.frames,
    })
    .collect()
}

/// Ports whose sent frames have the class by their marks: all ports go by the same map of DSCPs, and the port rewrites
/// none.
fn certain_ports(spec: &SwitchSpec) -> PortSet {
    let readers = ClassReader::all(spec);
    let is_common = readers.windows(2).all(|pair| pair[0] == pair[1]);
    let by_dscp = spec.ports.iter().all(|port| port.live.trust == Trust::Dscp);
    let keeps = |port: &usize| spec.ports[*port].live.rewrite.dscp == [None; CLASSES];
    (0..spec.ports.len()).filter(|port| is_common && by_dscp && keeps(port)).collect()
}

/// One phrase for each kind of fault and port.
pub(super) fn phrases(injected: &[InjectedHits]) -> Vec<String> {
    let mut all: Vec<(&str, &str, u64)> = Vec::new();
    for hit in injected {
        match all.iter_mut().find(|(fault, port, _)| (*fault, *port) == (hit.fault, &hit.port)) {
            Some((_, _, count)) => *count += hit.frames,
            None => all.push((hit.fault, &hit.port, hit.frames)),
        }
    }
    let done = |fault: &str| {
        let verb = FaultVerb::TABLE.iter().find(|(_, word, _)| *word == fault);
        verb.map_or("hit", |(_, _, done)| *done)
    };
    all.into_iter().map(|(fault, port, count)| format!("{} {} at {port}", frames(count), done(fault))).collect()
}

/// Whether every cause follows from the faults `injected`. Losses that have no connection to a fault are those of the
/// switch.
pub(super) fn explains(
    switch_view: &SwitchView,
    snapshot: &Snapshot,
    injected: &[InjectedHits],
    causes: &[BrokenBy],
) -> bool {
    // The watchdog drops frames where they arrive, so that only its storms name the port at fault.
    let stormy =
        snapshot.ports.iter().enumerate().filter(|(_, port)| port.watchdog_storms.iter().any(|&count| count > 0));
    let are_storms_injected =
        stormy.map(|(port, _)| port).all(|port| is_any(injected, switch_view.port_name(port), is_pause));
    let is_explained = |cause: &BrokenBy| match cause {
        BrokenBy::Watchdog { .. } => are_storms_injected,
        BrokenBy::Dropped { class, port, reason, .. } => {
            is_headroom(reason) && headroom_drops(causes, *class, port) <= most_headroom_drops(injected, *class, port)
        }
        // Judged below, class by class.
        BrokenBy::Missing { .. } | BrokenBy::Corrupt { .. } => true,
        _ => false,
    };
    // Frames of an uncertain class explain the excess of any class.
    let (mut excess_missing, mut excess_corrupt) = (0, 0);
    for class in 0..CLASSES {
        let hits = |verb| hit_frames(injected, verb, |hit| hit.is_certain && hit.class == Some(class));
        let (mut missing, mut dropped, mut corrupt) = (0, 0, 0);
        for cause in causes {
            match cause {
                BrokenBy::Missing { class: of, frames, .. } if *of == class => missing += frames,
                BrokenBy::Corrupt { class: of, frames, .. } if *of == class => corrupt += frames,
                BrokenBy::Watchdog { class: of, frames, .. } | BrokenBy::Dropped { class: of, frames, .. }
                    if *of == class =>
                {
                    dropped += frames;
                }
                _ => {}
            }
        }
        // A damaged frame may be missing at its host, if the wrong bit is in its marks.
        let most_missing = hits(FaultVerb::Lose) + dropped + hits(FaultVerb::Corrupt);
        excess_missing += u64::saturating_sub(missing, most_missing);
        excess_corrupt += u64::saturating_sub(corrupt, most_corrupt(hits));
    }
    let uncertain = |verb| hit_frames(injected, verb, |hit| !hit.is_certain);
    switch_view.faults.is_some()
        && causes.iter().all(is_explained)
        && excess_missing <= uncertain(FaultVerb::Lose) + uncertain(FaultVerb::Corrupt)
        && excess_corrupt <= most_corrupt(uncertain)
}

/// Damaged frames that hosts may receive if faults have the effects `hits`: a fault may duplicate a damaged frame.
fn most_corrupt(hits: impl Fn(FaultVerb) -> u64) -> u64 {
    let damaged = hits(FaultVerb::Corrupt);
    if damaged > 0 { damaged + hits(FaultVerb::Duplicate) } else { 0 }
}

fn hit_frames(injected: &[InjectedHits], verb: FaultVerb, is_it: impl Fn(&InjectedHits) -> bool) -> u64 {
    injected.iter().filter(|hit| hit.fault == verb.word() && is_it(hit)).map(|hit| hit.frames).sum()
}

/// Frames of `class` that `port` dropped for want of headroom.
fn headroom_drops(causes: &[BrokenBy], class: usize, port: &str) -> u64 {
    let frames = causes.iter().map(|cause| match cause {
        BrokenBy::Dropped { class: of, port: at, reason, frames }
            if *of == class && at == port && is_headroom(reason) =>
        {
            *frames
        }
        _ => 0,
    });
    frames.sum()
}

/// Most frames of `class` that exceed the headroom of `port` because of faults. The headroom formula assumes that PFC
/// arrives in time, and that no more frames are on the wire than fit its length.
fn most_headroom_drops(injected: &[InjectedHits], class: usize, port: &str) -> u64 {
    let at_port = injected.iter().filter(|hit| hit.port == port);
    let frames = at_port.map(|hit| {
        let adds = [FaultVerb::Delay, FaultVerb::Duplicate, FaultVerb::Reorder].map(FaultVerb::word);
        match (hit.toward, hit.class) {
            (Some(toward), None) if toward == Toward::Host.word() => hit.frames.saturating_mul(FRAMES_OF_PFC),
            (Some(toward), Some(of)) if toward == Toward::Switch.word() && of == class && adds.contains(&hit.fault) => {
                hit.frames
            }
            _ => 0,
        }
    });
    frames.fold(0, u64::saturating_add)
}

fn is_any(injected: &[InjectedHits], port: &str, is_it: fn(&InjectedHits) -> bool) -> bool {
    injected.iter().any(|hit| hit.port == port && is_it(hit))
}

/// Whether the fault can make the watchdog of its port discard frames: a pause that does not end.
fn is_pause(hit: &InjectedHits) -> bool {
    hit.class.is_none() && hit.toward == Some(Toward::Switch.word())
}

fn is_headroom(reason: &str) -> bool {
    let [full, pool] = [DropReason::HeadroomFull, DropReason::HeadroomPoolEmpty].map(DropReason::label);
    [full, pool].contains(&reason)
}
