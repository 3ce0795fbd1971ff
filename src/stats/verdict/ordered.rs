//! Faults by order in the verdict: the frames that they hit, and the losses that follow from them.

use serde::Serialize;

use super::super::format::frames;
use super::super::snapshot::Snapshot;
use super::super::switch_view::SwitchView;
use super::BrokenBy;
use crate::dataplane::DropReason;
use crate::faults::{FaultVerb, Toward};
use crate::sets::CLASSES;

/// Frames that faults of one kind hit at a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ordered {
    /// The port.
    pub port: String,
    /// The kind of fault, as the configuration names it.
    pub fault: &'static str,
    /// The end that the frames travelled toward; `None` for held frames that were lost when the switch ended.
    pub toward: Option<&'static str>,
    /// Traffic class; `None` for PFC frames.
    pub class: Option<usize>,
    /// Number of frames.
    pub frames: u64,
}

/// The frames of lossless classes, and the PFC frames, that faults hit.
pub(super) fn ordered(switch_view: &SwitchView) -> Vec<Ordered> {
    let Some(board) = &switch_view.faults else { return Vec::new() };
    let hits = board.hits().into_iter();
    let hits = hits.filter(|hit| hit.class.is_none_or(|class| switch_view.is_lossless(class)));
    hits.map(|hit| Ordered {
        port: switch_view.port_name(hit.port).to_owned(),
        fault: hit.verb.word(),
        toward: hit.toward.map(Toward::word),
        class: hit.class,
        frames: hit.frames,
    })
    .collect()
}

/// One phrase for each kind of fault and port.
pub(super) fn phrases(by_order: &[Ordered]) -> Vec<String> {
    let mut all: Vec<(&str, &str, u64)> = Vec::new();
    for hit in by_order {
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

/// Whether every cause follows from the faults `by_order`. Losses that have no connection to a fault are those of the
/// switch.
pub(super) fn explains(
    (switch_view, snapshot): (&SwitchView, &Snapshot),
    by_order: &[Ordered],
    causes: &[BrokenBy],
) -> bool {
    // The watchdog drops frames where they arrive, so that only its storms name the port at fault.
    let stormy =
        snapshot.ports.iter().enumerate().filter(|(_, port)| port.watchdog_storms.iter().any(|&count| count > 0));
    let are_storms_ordered =
        stormy.map(|(port, _)| port).all(|port| is_any(by_order, switch_view.port_name(port), is_pause));
    let is_explained = |cause: &BrokenBy| match cause {
        BrokenBy::Watchdog { .. } => are_storms_ordered,
        BrokenBy::Dropped { port, reason, .. } => is_headroom(reason) && is_any(by_order, port, exceeds_headroom),
        // Judged below, class by class.
        BrokenBy::Missing { .. } | BrokenBy::Corrupt { .. } => true,
        _ => false,
    };
    let is_class_explained = |class: usize| {
        let lost = |fault: &str| {
            let hits = by_order.iter().filter(|hit| hit.class == Some(class) && hit.fault == fault);
            hits.map(|hit| hit.frames).sum::<u64>()
        };
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
        let damaged = lost(FaultVerb::Corrupt.word());
        // A fault may duplicate a damaged frame.
        let most_corrupt = if damaged > 0 { damaged + lost(FaultVerb::Duplicate.word()) } else { 0 };
        // A damaged frame may be missing at its host, if the wrong bit is in its marks.
        missing <= lost(FaultVerb::Lose.word()) + dropped + damaged && corrupt <= most_corrupt
    };
    switch_view.faults.is_some() && causes.iter().all(is_explained) && (0..CLASSES).all(is_class_explained)
}

fn is_any(by_order: &[Ordered], port: &str, is_it: fn(&Ordered) -> bool) -> bool {
    by_order.iter().any(|hit| hit.port == port && is_it(hit))
}

/// Whether the fault can make the watchdog of its port discard frames: a pause that does not end.
fn is_pause(hit: &Ordered) -> bool {
    hit.class.is_none() && hit.toward == Some(Toward::Switch.word())
}

/// Whether the fault can make frames exceed the headroom of its port, which assumes that PFC arrives in time and that
/// no more frames are on the wire than fit its length.
fn exceeds_headroom(hit: &Ordered) -> bool {
    let adds = [FaultVerb::Delay, FaultVerb::Duplicate, FaultVerb::Reorder].map(FaultVerb::word).contains(&hit.fault);
    match hit.toward {
        Some(toward) if toward == Toward::Host.word() => hit.class.is_none(),
        Some(_) => hit.class.is_some() && adds,
        None => false,
    }
}

fn is_headroom(reason: &str) -> bool {
    let [full, pool] = [DropReason::HeadroomFull, DropReason::HeadroomPoolEmpty].map(DropReason::label);
    [full, pool].contains(&reason)
}
