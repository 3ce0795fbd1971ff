//! The verdict as text.

use std::fmt;

use super::super::switch_view::{PfcStanding, SwitchView};
use super::{
    BrokenBy, Exposed, MaybeStarved, Starved, TrustedDevice, Undelivered, Verdict, VerdictOutcome, exposed, injected,
};
use crate::sets::CLASSES;
use crate::text::format::{frames, grouped, time};
use crate::units::Nanos;

/// Most causes of one class in the one-line verdict; the tables of the report list all.
const SHOWN: usize = 4;

/// The line that names the ports without a lossless guarantee, while the switch runs. `None` if there are none, or if
/// no class is lossless.
#[must_use]
pub fn not_lossless_line(switch_view: &SwitchView) -> Option<String> {
    let ports = if switch_view.lossless.is_empty() { Vec::new() } else { exposed(switch_view) };
    (!ports.is_empty()).then(|| line_of(&ports))
}

fn line_of(ports: &[Exposed]) -> String {
    let phrase = |port: &Exposed| {
        // With PFC off, the device cannot disturb it.
        let device = port.flow_control.consequence().filter(|_| port.pfc != PfcStanding::Off).map(str::to_owned);
        let late = || format!("measured: its peer does not stop at XOFF, {} came too late", frames(port.late_frames));
        let reasons = [(port.late_frames > 0).then(late), device].into_iter().flatten();
        let why: String = reasons.map(|reason| format!("; {reason}")).collect();
        format!("{} (pfc {}{why})", port.port, port.pfc.label())
    };
    format!("not lossless: {}", ports.iter().map(phrase).collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            VerdictOutcome::Kept => write!(f, "lossless: KEPT")?,
            VerdictOutcome::KeptAsSeen => write!(f, "lossless: KEPT as far as observed")?,
            VerdictOutcome::Starved => write!(f, "lossless: STARVED")?,
            VerdictOutcome::NothingLossless => write!(f, "lossless: no lossless class")?,
            VerdictOutcome::Broken => write!(f, "lossless: BROKEN: {}", self.broken().join("; "))?,
            VerdictOutcome::BrokenByInjectedFaults => {
                write!(f, "lossless: BROKEN BY INJECTED FAULTS: {}", injected::phrases(&self.injected).join("; "))?;
            }
        }
        let is_beside = matches!(self.outcome, VerdictOutcome::Broken | VerdictOutcome::Starved);
        if is_beside && !self.injected.is_empty() {
            write!(f, "\nbesides, by injected faults: {}", injected::phrases(&self.injected).join("; "))?;
        }
        if self.outcome != VerdictOutcome::Broken && !self.causes.is_empty() {
            write!(f, "\nby injected faults too, as consequences: {}", self.broken().join("; "))?;
        }
        for cause in &self.causes {
            match cause {
                BrokenBy::Watchdog { class, port, frames: count } => {
                    write!(f, "\nclass {class}: {} discarded by the watchdog at {port}", frames(*count))?;
                }
                BrokenBy::Stuck { class, port, frames: count } => {
                    write!(f, "\nclass {class}: {} discarded at {port}, which was stuck", frames(*count))?;
                }
                _ => {}
            }
        }
        for Undelivered { class, port, reason, frames: count } in &self.undelivered {
            write!(f, "\nnot delivered: {} of class {class} at {port} ({reason})", frames(*count))?;
        }
        for Starved { port, class, held_ns, of_ns, frames: came, wanted_frames } in &self.starved {
            let (held, of) = (time(Nanos(*held_ns)), time(Nanos(*of_ns)));
            let came = match wanted_frames {
                Some(wanted) => format!("{} of {} arrived", grouped(*came), frames(*wanted)),
                None => format!("{} arrived", frames(*came)),
            };
            write!(f, "\nstarved: class {class} at {port}: {came}; its receive backlog paused it for {held} of {of}")?;
        }
        for MaybeStarved { port, held_ns, of_ns } in &self.maybe_starved {
            let (held, of) = (time(Nanos(*held_ns)), time(Nanos(*of_ns)));
            write!(
                f,
                "\nnot observed: lossless frames that waited for {port}, paused by its receive backlog for {held} of \
                 {of}"
            )?;
        }
        if !self.unseen.is_empty() {
            let ports: Vec<_> = self.unseen.iter().map(|port| format!("{} ({})", port.port, port.driver)).collect();
            write!(f, "\nnot observed: loss in the receive ring of {}", ports.join(", "))?;
        }
        if !self.trusted.is_empty() {
            write!(f, "\ntrusted by the operator: {} (pfc trusted)", self.trusted.join(", "))?;
        }
        for TrustedDevice { port, flow_control } in &self.trusted_devices {
            write!(f, "\ntrusted by the operator: {port}: {}", flow_control.consequence().unwrap_or_default())?;
        }
        if !self.not_lossless.is_empty() {
            write!(f, "\n{}", line_of(&self.not_lossless))?;
        }
        Ok(())
    }
}

impl Verdict {
    /// The phrases of a broken verdict. Each lossless class, each receive ring and each device has one. The watchdog,
    /// stuck ports and cells that were not released also have one each.
    fn broken(&self) -> Vec<String> {
        let mut phrases: Vec<String> = (0..CLASSES).filter_map(|class| self.broken_class(class)).collect();
        let sum = |of: fn(&Self, usize) -> u64| (0..CLASSES).map(|class| of(self, class)).sum::<u64>();
        let on_purpose = [("by the watchdog", sum(Self::by_watchdog)), ("at stuck ports", sum(Self::at_stuck))];
        for (place, discarded) in on_purpose.into_iter().filter(|(_, discarded)| *discarded > 0) {
            phrases.push(format!("{} discarded {place}", frames(discarded)));
        }
        for cause in &self.causes {
            match cause {
                BrokenBy::ReceiveRing { port, missed_frames, no_buffer_frames } => {
                    let lost = frames(missed_frames + no_buffer_frames);
                    phrases.push(format!("{lost} lost in the receive ring of {port}"));
                }
                BrokenBy::CellsHeld { cells, frames: held } => {
                    phrases.push(format!("{} cells ({}) not released", grouped(*cells), frames(*held)));
                }
                BrokenBy::Transmit { port, frames: lost } => {
                    phrases.push(format!("{} lost by the device of {port}", frames(*lost)));
                }
                BrokenBy::Dropped { .. }
                | BrokenBy::Watchdog { .. }
                | BrokenBy::Stuck { .. }
                | BrokenBy::Missing { .. }
                | BrokenBy::Corrupt { .. } => {}
            }
        }
        phrases
    }

    /// Frames of `class` that the watchdog discarded.
    fn by_watchdog(&self, class: usize) -> u64 {
        let frames = self.causes.iter().map(|cause| match cause {
            BrokenBy::Watchdog { class: c, frames, .. } if *c == class => *frames,
            _ => 0,
        });
        frames.sum()
    }

    /// Frames of `class` that were discarded at stuck ports.
    fn at_stuck(&self, class: usize) -> u64 {
        let frames = self.causes.iter().map(|cause| match cause {
            BrokenBy::Stuck { class: c, frames, .. } if *c == class => *frames,
            _ => 0,
        });
        frames.sum()
    }

    fn broken_class(&self, class: usize) -> Option<String> {
        let (mut dropped, mut missing, mut corrupt, mut places) = (0, 0, 0, Vec::new());
        let mut last = "";
        for cause in &self.causes {
            match cause {
                BrokenBy::Dropped { class: c, port, reason, frames } if *c == class => {
                    dropped += frames;
                    // The causes are sorted by reason: each reason is named once.
                    let what = if *reason == last { String::new() } else { format!("{reason} at ") };
                    places.push(format!("{what}{port} {}", grouped(*frames)));
                    last = reason;
                }
                BrokenBy::Missing { class: c, frames, .. } if *c == class => missing += frames,
                BrokenBy::Corrupt { class: c, frames, .. } if *c == class => corrupt += frames,
                _ => {}
            }
        }
        // Frames discarded on purpose have a phrase of their own, and hosts miss them too.
        missing = u64::saturating_sub(missing, self.by_watchdog(class) + self.at_stuck(class));
        if dropped == 0 && missing == 0 && corrupt == 0 {
            return None;
        }
        let hidden = places.len().saturating_sub(SHOWN);
        places.truncate(SHOWN);
        if hidden > 0 {
            places.push(format!("{hidden} more"));
        }
        if missing > 0 {
            places.push(format!("{} missing end to end", grouped(missing)));
        }
        if corrupt > 0 {
            places.push(format!("{} corrupt", grouped(corrupt)));
        }
        // Frames that the switch dropped are also missing at the hosts: the largest count is the most complete.
        let lost = frames(dropped.max(missing).max(corrupt));
        Some(format!("{lost} lost in class {class} ({})", places.join(", ")))
    }
}
