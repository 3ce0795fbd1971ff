//! Whether the promise was kept: nothing lost in a lossless class.

use std::fmt;

use serde::Serialize;

use super::flow_control::DeviceFlowControl;
use super::format::{frames, grouped, time};
use super::snapshot::{PortSnapshot, Snapshot};
use super::subject::{PfcStanding, Subject};
use crate::dataplane::DropReason;
use crate::hosts::FlowTally;
use crate::qos::CLASSES;
use crate::units::Nanos;

/// Causes of one class written out in the one-line verdict; the report's tables have them all.
const SHOWN: usize = 4;

/// Part of a port's frames that lossless classes which are not starved bring at least, where its backlog holds them.
pub const STARVED_PART: u64 = 100;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was lost in a lossless class.
    Kept,
    /// Nothing was, as far as it is seen: what a device has lost before the switch, nobody tells.
    KeptAsSeen,
    /// Nothing was lost, and lossless classes starved behind lossy ones: [`Verdict::starved`].
    Starved,
    /// Something was.
    Broken,
    /// No class is lossless: nothing was promised.
    NothingLossless,
}

/// What broke the promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// Dropped in a lossless class for want of buffer, or since the port that it should leave by had no link.
    Dropped {
        /// Traffic class.
        class: usize,
        /// Port that counted it.
        port: String,
        /// Label of the reason.
        reason: &'static str,
        /// How many.
        frames: u64,
    },
    /// Discarded by the watchdog in a lossless class: on purpose, since a peer held it paused for too long. The peer is
    /// at fault, and yet what was promised did not arrive.
    Watchdog {
        /// Traffic class.
        class: usize,
        /// Port that counted it.
        port: String,
        /// How many.
        frames: u64,
    },
    /// Discarded in a lossless class since the port was stuck: its device took no frames, and others must not wait for it.
    Stuck {
        /// Traffic class.
        class: usize,
        /// The port that was stuck.
        port: String,
        /// How many.
        frames: u64,
    },
    /// Lost by the device of a port that has sent frames of a lossless class: it took them and could not send them. Which
    /// class they were of it does not tell.
    Transmit {
        /// The port.
        port: String,
        /// How many.
        frames: u64,
    },
    /// Sent by a virtual host in a lossless class and never received, for whatever reason.
    Missing {
        /// Traffic class.
        class: usize,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// How many.
        frames: u64,
    },
    /// Received by a virtual host in a lossless class with a wrong bit.
    Corrupt {
        /// Traffic class.
        class: usize,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// How many.
        frames: u64,
    },
    /// Lost in a receive ring, before the switch could know its class.
    ReceiveRing {
        /// The port.
        port: String,
        /// Frames lost to a full ring.
        missed_frames: u64,
        /// Frames lost to an empty buffer pool.
        no_buffer_frames: u64,
    },
    /// Cells not released after the switch has drained: the accounts are wrong.
    CellsHeld {
        /// How many.
        cells: u64,
        /// Frames in egress queues.
        frames: u64,
    },
}

/// A port that cannot promise anything, though it carries lossless classes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exposed {
    /// The port.
    pub port: String,
    /// Its PFC.
    pub pfc: PfcStanding,
    /// Flow control that its device does by itself.
    pub flow_control: DeviceFlowControl,
}

/// A trusted port whose device may do of flow control what only the operator has ruled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrustedDevice {
    /// The port.
    pub port: String,
    /// The doubt about its device.
    pub flow_control: DeviceFlowControl,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The answer.
    pub outcome: Outcome,
    /// Why it is `broken`; empty otherwise.
    pub causes: Vec<Cause>,
    /// Frames of lossless classes that no cause names: their destination or their size did not fit the network.
    pub undelivered: Vec<Undelivered>,
    /// Ports that are not lossless whatever the outcome was this time.
    pub not_lossless: Vec<Exposed>,
    /// Ports that count as lossless by the operator's word alone.
    pub trusted: Vec<String>,
    /// Of those, the ports whose device could break the promise by itself, as far as its driver says.
    pub trusted_devices: Vec<TrustedDevice>,
    /// Ports whose lossless classes were held by their own receive backlog for more than half of the time, and brought fewer
    /// than one of a hundred frames that the port received.
    pub starved: Vec<Starved>,
    /// Ports in front of which frames may have been lost that nobody has counted.
    pub unseen: Vec<Unseen>,
}

/// A port whose core had more frames than time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Starved {
    /// The port.
    pub port: String,
    /// Nanoseconds for which its lossless classes were held.
    pub held_ns: u64,
    /// Nanoseconds of the run.
    pub of_ns: u64,
}

/// A port whose driver does not tell what is lost in front of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The port.
    pub port: String,
    /// The driver.
    pub driver: String,
}

/// Frames of a lossless class that had nowhere to go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undelivered {
    /// Traffic class.
    pub class: usize,
    /// Port that counted them.
    pub port: String,
    /// Label of the reason.
    pub reason: &'static str,
    /// How many.
    pub frames: u64,
}

impl Verdict {
    /// Judges `snapshot`, taken after the hosts have stopped and the switch has drained.
    #[must_use]
    pub fn new(subject: &Subject, snapshot: &Snapshot) -> Self {
        if subject.lossless == 0 {
            return Self {
                outcome: Outcome::NothingLossless,
                causes: Vec::new(),
                undelivered: Vec::new(),
                not_lossless: Vec::new(),
                trusted: Vec::new(),
                trusted_devices: Vec::new(),
                starved: Vec::new(),
                unseen: Vec::new(),
            };
        }
        let (mut causes, undelivered) = drops(subject, snapshot);
        causes.extend(ends(subject));
        causes.extend(receive_rings(subject, snapshot));
        causes.extend(devices(subject, snapshot));
        let (cells, frames) = (snapshot.held_cells(), snapshot.lcore.held_frames);
        if cells > 0 || frames > 0 {
            causes.push(Cause::CellsHeld { cells, frames });
        }
        let (unseen, starved) = (unseen(subject), starved(subject, snapshot));
        let outcome = match (causes.is_empty(), unseen.is_empty()) {
            (true, _) if !starved.is_empty() => Outcome::Starved,
            (true, true) => Outcome::Kept,
            (true, false) => Outcome::KeptAsSeen,
            (false, _) => Outcome::Broken,
        };
        Self {
            outcome,
            causes,
            undelivered,
            not_lossless: exposed(subject),
            trusted: trusted(subject),
            trusted_devices: trusted_devices(subject),
            starved,
            unseen,
        }
    }

    /// Whether nothing was lost that must not be, and lossless classes moved.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !matches!(self.outcome, Outcome::Broken | Outcome::Starved)
    }
}

/// Frames dropped in lossless classes: those that break the promise, and those that had no place to go.
///
/// A port without link and a port that is stuck are one fault seen by two means, so both break the promise.
fn drops(subject: &Subject, snapshot: &Snapshot) -> (Vec<Cause>, Vec<Undelivered>) {
    let (mut causes, mut undelivered) = (Vec::new(), Vec::new());
    for class in (0..CLASSES).filter(|&class| subject.is_lossless(class)) {
        for (reason, label, _) in DropReason::TABLE {
            for (port, counters) in snapshot.ports.iter().enumerate() {
                let frames = counters.drops[class][*reason as usize];
                if frames == 0 {
                    continue;
                }
                let port = subject.port_name(port).to_owned();
                match reason {
                    DropReason::Watchdog => causes.push(Cause::Watchdog { class, port, frames }),
                    DropReason::EgressStuck => causes.push(Cause::Stuck { class, port, frames }),
                    DropReason::EgressDown => causes.push(Cause::Dropped { class, port, reason: label, frames }),
                    _ if reason.is_congestion() => causes.push(Cause::Dropped { class, port, reason: label, frames }),
                    _ => undelivered.push(Undelivered { class, port, reason: label, frames }),
                }
            }
        }
    }
    (causes, undelivered)
}

/// What virtual hosts find missing or damaged in lossless classes.
fn ends(subject: &Subject) -> Vec<Cause> {
    let Some(hosts) = &subject.hosts else { return Vec::new() };
    let mut causes = Vec::new();
    let is_lossless = |flow: &&FlowTally| subject.is_lossless(usize::from(flow.info.class));
    for flow in hosts.flows.iter().filter(is_lossless) {
        let class = usize::from(flow.info.class);
        let name = |host: usize| hosts.hosts[host].name.clone();
        let (from, to) = (name(flow.info.from), flow.info.to.map(name).unwrap_or_default());
        match flow.missing() {
            Some(frames) if frames > 0 => {
                causes.push(Cause::Missing { class, from: from.clone(), to: to.clone(), frames });
            }
            _ => {}
        }
        let frames = flow.corrupt_frames.get();
        if frames > 0 {
            causes.push(Cause::Corrupt { class, from, to, frames });
        }
    }
    causes
}

fn receive_rings(subject: &Subject, snapshot: &Snapshot) -> Vec<Cause> {
    let lossy = snapshot.ports.iter().enumerate().filter(|(_, port)| port.device.receive_loss() > 0);
    lossy
        .map(|(index, port)| Cause::ReceiveRing {
            port: subject.port_name(index).to_owned(),
            missed_frames: port.device.rx_missed,
            no_buffer_frames: port.device.rx_no_buffer,
        })
        .collect()
}

/// What devices have lost of frames that they took, at ports by which lossless frames have left.
fn devices(subject: &Subject, snapshot: &Snapshot) -> Vec<Cause> {
    let queue = |class: usize| usize::from(subject.spec.classes.tc_to_queue[class]) % CLASSES;
    let lossless = (0..CLASSES).filter(|&class| subject.is_lossless(class));
    let queues: Vec<usize> = lossless.map(queue).collect();
    let lossy = snapshot
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| port.device.tx_errors > 0 && queues.iter().any(|&queue| port.tx_frames[queue] > 0));
    let cause = |(index, frames)| Cause::Transmit { port: subject.port_name(index).to_owned(), frames };
    lossy.map(|(index, port)| cause((index, port.device.tx_errors))).collect()
}

fn exposed(subject: &Subject) -> Vec<Exposed> {
    let ports = (0..subject.pfc.len()).map(|port| (port, subject.standing(port)));
    let ports = ports.filter(|(_, pfc)| !pfc.is_relied_upon());
    let exposed = |(port, pfc)| Exposed {
        port: subject.port_name(port).to_owned(),
        pfc,
        flow_control: subject.flow_control.get(port),
    };
    ports.map(exposed).collect()
}

fn trusted(subject: &Subject) -> Vec<String> {
    let ports = (0..subject.pfc.len()).filter(|&port| subject.standing(port) == PfcStanding::Trusted);
    ports.map(|port| subject.port_name(port).to_owned()).collect()
}

fn trusted_devices(subject: &Subject) -> Vec<TrustedDevice> {
    let ports = (0..subject.pfc.len()).filter(|&port| subject.standing(port) == PfcStanding::Trusted);
    let ports = ports.map(|port| (port, subject.flow_control.get(port)));
    let ports = ports.filter(|(_, state)| state.consequence().is_some());
    ports.map(|(port, flow_control)| TrustedDevice { port: subject.port_name(port).to_owned(), flow_control }).collect()
}

fn unseen(subject: &Subject) -> Vec<Unseen> {
    let ports = subject.blind.iter().enumerate();
    let ports = ports.filter_map(|(port, driver)| Some((subject.port_name(port).to_owned(), driver.clone()?)));
    ports.map(|(port, driver)| Unseen { port, driver }).collect()
}

fn starved(subject: &Subject, snapshot: &Snapshot) -> Vec<Starved> {
    let of_ns = u64::try_from(snapshot.at.as_nanos()).unwrap_or(u64::MAX);
    let is_starved = |port: &PortSnapshot| {
        let lossless: u64 =
            (0..CLASSES).filter(|&class| subject.is_lossless(class)).map(|class| port.rx_frames[class]).sum();
        let all: u64 = port.rx_frames.iter().sum();
        port.backlog_held_ns > of_ns / 2 && lossless > 0 && lossless < all / STARVED_PART
    };
    let ports = snapshot.ports.iter().enumerate().filter(|(_, port)| is_starved(port));
    ports
        .map(|(index, port)| Starved {
            port: subject.port_name(index).to_owned(),
            held_ns: port.backlog_held_ns,
            of_ns,
        })
        .collect()
}

/// The line that names the ports which promise nothing, while the switch runs; `None` if all do, or nothing was promised.
#[must_use]
pub fn not_lossless_line(subject: &Subject) -> Option<String> {
    let ports = if subject.lossless == 0 { Vec::new() } else { exposed(subject) };
    (!ports.is_empty()).then(|| line_of(&ports))
}

fn line_of(ports: &[Exposed]) -> String {
    let phrase = |port: &Exposed| {
        // Where PFC is off the device has nothing to defeat.
        let why = port.flow_control.consequence().filter(|_| port.pfc != PfcStanding::Off);
        format!("{} (pfc {}{})", port.port, port.pfc.label(), why.map_or(String::new(), |why| format!("; {why}")))
    };
    format!("not lossless: {}", ports.iter().map(phrase).collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            Outcome::Kept => write!(f, "lossless: KEPT")?,
            Outcome::KeptAsSeen => write!(f, "lossless: KEPT as far as seen")?,
            Outcome::Starved => write!(f, "lossless: STARVED")?,
            Outcome::NothingLossless => write!(f, "lossless: no class is")?,
            Outcome::Broken => write!(f, "lossless: BROKEN: {}", self.broken().join("; "))?,
        }
        for cause in &self.causes {
            match cause {
                Cause::Watchdog { class, port, frames: count } => {
                    write!(f, "\nclass {class}: {} discarded by the watchdog at {port}", frames(*count))?;
                }
                Cause::Stuck { class, port, frames: count } => {
                    write!(f, "\nclass {class}: {} discarded at {port}, which was stuck", frames(*count))?;
                }
                _ => {}
            }
        }
        for Undelivered { class, port, reason, frames: count } in &self.undelivered {
            write!(f, "\nnot delivered: {} of class {class} at {port} ({reason})", frames(*count))?;
        }
        for Starved { port, held_ns, of_ns } in &self.starved {
            let (held, of) = (time(Nanos(*held_ns)), time(Nanos(*of_ns)));
            write!(f, "\nstarved: lossless classes of {port} were held by its own backlog for {held} of {of}")?;
        }
        if !self.unseen.is_empty() {
            let ports: Vec<_> = self.unseen.iter().map(|port| format!("{} ({})", port.port, port.driver)).collect();
            write!(f, "\nnot seen: loss in the receive ring of {}", ports.join(", "))?;
        }
        if !self.trusted.is_empty() {
            write!(f, "\non the operator's word: {} (pfc trusted)", self.trusted.join(", "))?;
        }
        for TrustedDevice { port, flow_control } in &self.trusted_devices {
            write!(f, "\non the operator's word: {port}: {}", flow_control.consequence().unwrap_or_default())?;
        }
        if !self.not_lossless.is_empty() {
            write!(f, "\n{}", line_of(&self.not_lossless))?;
        }
        Ok(())
    }
}

impl Verdict {
    /// One phrase a class, one for the watchdog, one for stuck ports, one a receive ring, one a device, one for what was not
    /// released.
    fn broken(&self) -> Vec<String> {
        let mut phrases: Vec<String> = (0..CLASSES).filter_map(|class| self.broken_class(class)).collect();
        let sum = |of: fn(&Self, usize) -> u64| (0..CLASSES).map(|class| of(self, class)).sum::<u64>();
        let on_purpose = [("by the watchdog", sum(Self::by_watchdog)), ("at stuck ports", sum(Self::at_stuck))];
        for (place, discarded) in on_purpose.into_iter().filter(|(_, discarded)| *discarded > 0) {
            phrases.push(format!("{} discarded {place}", frames(discarded)));
        }
        for cause in &self.causes {
            match cause {
                Cause::ReceiveRing { port, missed_frames, no_buffer_frames } => {
                    let lost = frames(missed_frames + no_buffer_frames);
                    phrases.push(format!("{lost} lost in the receive ring of {port}"));
                }
                Cause::CellsHeld { cells, frames: held } => {
                    phrases.push(format!("{} cells ({}) not released", grouped(*cells), frames(*held)));
                }
                Cause::Transmit { port, frames: lost } => {
                    phrases.push(format!("{} lost by the device of {port}", frames(*lost)));
                }
                Cause::Dropped { .. }
                | Cause::Watchdog { .. }
                | Cause::Stuck { .. }
                | Cause::Missing { .. }
                | Cause::Corrupt { .. } => {}
            }
        }
        phrases
    }

    /// Frames of `class` that the watchdog discarded.
    fn by_watchdog(&self, class: usize) -> u64 {
        let frames = self.causes.iter().map(|cause| match cause {
            Cause::Watchdog { class: c, frames, .. } if *c == class => *frames,
            _ => 0,
        });
        frames.sum()
    }

    /// Frames of `class` that were discarded at stuck ports.
    fn at_stuck(&self, class: usize) -> u64 {
        let frames = self.causes.iter().map(|cause| match cause {
            Cause::Stuck { class: c, frames, .. } if *c == class => *frames,
            _ => 0,
        });
        frames.sum()
    }

    fn broken_class(&self, class: usize) -> Option<String> {
        let (mut dropped, mut missing, mut corrupt, mut places) = (0, 0, 0, Vec::new());
        let mut last = "";
        for cause in &self.causes {
            match cause {
                Cause::Dropped { class: c, port, reason, frames } if *c == class => {
                    dropped += frames;
                    // They come sorted by reason: each is named once.
                    let what = if *reason == last { String::new() } else { format!("{reason} at ") };
                    places.push(format!("{what}{port} {}", grouped(*frames)));
                    last = reason;
                }
                Cause::Missing { class: c, frames, .. } if *c == class => missing += frames,
                Cause::Corrupt { class: c, frames, .. } if *c == class => corrupt += frames,
                _ => {}
            }
        }
        // Frames that were discarded on purpose have a phrase of their own, and hosts miss them too.
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
        // What the switch dropped is what the hosts miss; whoever counted more saw more.
        let lost = frames(dropped.max(missing).max(corrupt));
        Some(format!("{lost} lost in class {class} ({})", places.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, quiet, run};
    use super::*;
    use std::time::Duration;

    fn verdict(subject: &Subject) -> Verdict {
        Verdict::new(subject, &Snapshot::take(subject, Duration::from_secs(10)))
    }

    #[test]
    fn a_run_without_loss_keeps_it() {
        let verdict = verdict(&run());
        assert_eq!(verdict.to_string(), "lossless: KEPT");
        assert!(verdict.is_kept());
    }

    #[test]
    fn lossy_drops_break_nothing() {
        let subject = run();
        assert!(subject.counters.ports[0].drops[0][DropReason::Threshold as usize].get() > 0);
        assert!(verdict(&subject).is_kept());
    }

    #[test]
    fn a_congestion_drop_in_a_lossless_class_breaks_it() {
        let subject = quiet();
        subject.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(12_000);
        subject.counters.ports[1].drops[3][DropReason::HeadroomFull as usize].add(345);
        subject.devices[1].publish(&crate::stats::DeviceStats { link_up: true, rx_missed: 7, ..Default::default() });
        let text = verdict(&subject).to_string();
        let expected = "lossless: BROKEN: 12,345 frames lost in class 3 (headroom_full at p1 12,000, p2 345); \
                        7 frames lost in the receive ring of p2";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_watchdog_breaks_it_on_purpose() {
        let subject = quiet();
        let flow = &subject.hosts.as_ref().unwrap().flows[0];
        flow.sent_frames.add(5_000);
        flow.received_frames.add(3_000);
        for (port, frames) in subject.counters.ports.iter().zip([500, 1_500]) {
            port.drops[3][DropReason::Watchdog as usize].add(frames);
            port.drops[0][DropReason::Watchdog as usize].add(7);
        }
        let verdict = verdict(&subject);
        assert!(!verdict.is_kept() && verdict.undelivered.is_empty());
        let expected = "lossless: BROKEN: 2,000 frames discarded by the watchdog\n\
                        class 3: 500 frames discarded by the watchdog at p1\n\
                        class 3: 1,500 frames discarded by the watchdog at p2";
        assert_eq!(verdict.to_string(), expected);
        flow.sent_frames.add(1);
        let text = self::verdict(&subject).to_string();
        let expected = "lossless: BROKEN: 1 frame lost in class 3 (1 missing end to end); 2,000 frames discarded";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn frames_discarded_at_a_stuck_port_break_it() {
        let subject = quiet();
        let flow = &subject.hosts.as_ref().unwrap().flows[0];
        flow.sent_frames.add(5_000);
        flow.received_frames.add(4_500);
        for class in [0, 3] {
            subject.counters.ports[1].drops[class][DropReason::EgressStuck as usize].add(500);
        }
        let verdict = verdict(&subject);
        assert!(!verdict.is_kept() && verdict.undelivered.is_empty());
        let expected = "lossless: BROKEN: 500 frames discarded at stuck ports\n\
                        class 3: 500 frames discarded at p2, which was stuck";
        assert_eq!(verdict.to_string(), expected);
    }

    #[test]
    fn frames_for_a_port_without_link_break_it() {
        let subject = quiet();
        for class in [0, 3] {
            subject.counters.ports[0].drops[class][DropReason::EgressDown as usize].add(40);
            subject.counters.ports[0].drops[class][DropReason::LosslessUnknown as usize].add(2);
        }
        let expected = "lossless: BROKEN: 40 frames lost in class 3 (egress_down at p1 40)\n\
                        not delivered: 2 frames of class 3 at p1 (lossless_unknown)";
        assert_eq!(verdict(&subject).to_string(), expected);
    }

    #[test]
    fn what_a_device_lost_of_the_frames_it_took_breaks_it_where_lossless_frames_left() {
        let subject = quiet();
        let lost = crate::stats::DeviceStats { link_up: true, tx_errors: 40, ..Default::default() };
        subject.devices[1].publish(&lost);
        subject.counters.ports[1].tx_frames[0].add(40);
        assert_eq!(verdict(&subject).to_string(), "lossless: KEPT", "only lossy frames have left there");
        subject.counters.ports[1].tx_frames[3].add(1);
        assert_eq!(verdict(&subject).to_string(), "lossless: BROKEN: 40 frames lost by the device of p2");
        let json = serde_json::to_value(&verdict(&subject).causes).unwrap();
        assert_eq!(json, serde_json::json!([{"cause": "transmit", "port": "p2", "frames": 40}]));
    }

    #[test]
    fn every_lcore_may_hold_frames() {
        let mut subject = quiet();
        subject.counters = std::sync::Arc::new(crate::dataplane::Counters::new(2, 2));
        subject.counters.lcores.iter().for_each(|lcore| lcore.held_frames.set(2));
        subject.counters.ports.iter().for_each(|port| port.group_used_cells[3].set(6));
        assert_eq!(verdict(&subject).to_string(), "lossless: BROKEN: 12 cells (4 frames) not released");
    }

    #[test]
    fn hosts_find_what_the_switch_does_not() {
        let subject = quiet();
        let hosts = subject.hosts.as_ref().unwrap();
        hosts.flows[0].sent_frames.add(10);
        hosts.flows[0].received_frames.add(7);
        hosts.flows[0].corrupt_frames.add(1);
        let text = verdict(&subject).to_string();
        assert_eq!(text, "lossless: BROKEN: 2 frames lost in class 3 (2 missing end to end, 1 corrupt)");
        // The second flow is lossy.
        hosts.flows[0].received_frames.add(2);
        hosts.flows[1].sent_frames.add(10);
        assert_eq!(verdict(&subject).to_string(), "lossless: BROKEN: 1 frame lost in class 3 (1 corrupt)");
    }

    #[test]
    fn what_is_held_after_the_drain_breaks_it() {
        let subject = quiet();
        subject.counters.ports[0].group_headroom_cells[3].set(12);
        subject.counters.lcores[0].held_frames.set(2);
        assert_eq!(verdict(&subject).to_string(), "lossless: BROKEN: 12 cells (2 frames) not released");
    }

    #[test]
    fn ports_without_proof_are_named_loudly() {
        let mut subject = quiet();
        subject.pfc = vec![PfcStanding::Off, PfcStanding::Unproven];
        assert_eq!(verdict(&subject).to_string(), "lossless: KEPT\nnot lossless: p1 (pfc off), p2 (pfc unproven)");
        assert_eq!(not_lossless_line(&subject).as_deref(), Some("not lossless: p1 (pfc off), p2 (pfc unproven)"));
        subject.pfc = vec![PfcStanding::Trusted, PfcStanding::Unproven];
        let expected = "lossless: KEPT\non the operator's word: p1 (pfc trusted)\nnot lossless: p2 (pfc unproven)";
        assert_eq!(verdict(&subject).to_string(), expected);
        subject.lossless = 0;
        assert_eq!(verdict(&subject).to_string(), "lossless: no class is");
        assert_eq!(not_lossless_line(&subject), None);
        assert_eq!(fixture::quiet().lossless, 1 << 3);
    }

    #[test]
    fn a_device_that_pauses_or_may_eat_pfc_is_named_with_what_follows() {
        let mut subject = quiet();
        subject.pfc = vec![PfcStanding::Trusted, PfcStanding::Unproven];
        subject.flow_control.set(0, DeviceFlowControl::Pauses);
        subject.flow_control.set(1, DeviceFlowControl::Unknown);
        let expected = "not lossless: p1 (pfc unproven; its device pauses by itself), \
                        p2 (pfc unproven; its device may pause by itself or eat PFC frames)";
        assert_eq!(verdict(&subject).to_string(), format!("lossless: KEPT\n{expected}"));
        assert_eq!(not_lossless_line(&subject).as_deref(), Some(expected));
        subject.flow_control.set(0, DeviceFlowControl::Filters);
        subject.pfc[1] = PfcStanding::Off;
        let expected = "lossless: KEPT\non the operator's word: p1 (pfc trusted)\n\
                        on the operator's word: p1: its device may eat PFC frames\nnot lossless: p2 (pfc off)";
        assert_eq!(verdict(&subject).to_string(), expected);
    }

    #[test]
    fn lossless_classes_that_hardly_moved_are_not_called_kept() {
        let subject = quiet();
        let port = &subject.counters.ports[0];
        let set = |held_ns: u64, lossy: u64, lossless: u64| {
            port.backlog_held_ns.set(held_ns);
            port.rx_frames[0].set(lossy);
            port.rx_frames[3].set(lossless);
        };
        set(5_000_000_000, 1000, 1);
        assert!(verdict(&subject).is_kept(), "half of ten seconds");
        set(9_900_000_000, 1000, 500);
        assert!(verdict(&subject).is_kept(), "a core too slow for lossless frames alone");
        set(9_900_000_000, 1000, 0);
        assert!(verdict(&subject).is_kept(), "no lossless traffic");
        set(9_900_000_000, 1000, 1);
        let seen = verdict(&subject);
        assert!(!seen.is_kept() && seen.outcome == Outcome::Starved);
        let expected =
            "lossless: STARVED\nstarved: lossless classes of p1 were held by its own backlog for 9.90s of 10.00s";
        assert_eq!(seen.to_string(), expected);
    }

    #[test]
    fn what_nobody_counts_is_not_called_kept() {
        let mut subject = quiet();
        subject.blind[1] = Some("net_tap".to_owned());
        let seen = verdict(&subject);
        assert!(seen.is_kept() && seen.outcome == Outcome::KeptAsSeen);
        let expected = "lossless: KEPT as far as seen\nnot seen: loss in the receive ring of p2 (net_tap)";
        assert_eq!(seen.to_string(), expected);
        subject.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(1);
        let text = verdict(&subject).to_string();
        assert!(text.starts_with("lossless: BROKEN: ") && text.ends_with("of p2 (net_tap)"), "{text}");
    }
}
