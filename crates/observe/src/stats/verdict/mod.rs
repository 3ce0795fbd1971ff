//! The verdict on a run: whether frames of lossless classes were lost, and whether such classes starved.

mod injected;
mod starved;
mod text;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::injected::InjectedHits;
pub use self::starved::{MaybeStarved, Starved};
pub use self::text::not_lossless_line;

use super::flow_control::DeviceFlowControl;
use super::snapshot::Snapshot;
use super::switch_view::{PfcStanding, SwitchView};
use crate::hosts::FlowTally;
use crate::plan::DropReason;
use crate::sets::CLASSES;

/// The outcome of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictOutcome {
    /// No frame of a lossless class was lost.
    Kept,
    /// No loss was seen, but some cannot be seen: [`Verdict::unseen`] or [`Verdict::maybe_starved`] is not empty.
    KeptAsSeen,
    /// No frame was lost except by injected faults, but lossless classes starved behind lossy ones:
    /// [`Verdict::starved`].
    Starved,
    /// Frames of a lossless class were lost.
    Broken,
    /// Injected faults hit lossless frames or PFC, and every loss is one of these faults or follows from them:
    /// [`Verdict::injected`].
    #[serde(rename = "broken_by_order")]
    BrokenByInjectedFaults,
    /// No class is lossless, so nothing was promised.
    NothingLossless,
}

/// A cause for the outcome [`VerdictOutcome::Broken`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum BrokenBy {
    /// Congestion, or `egress_down`.
    Dropped {
        /// Traffic class.
        class: usize,
        /// Port that counted them.
        port: String,
        /// Label of the reason.
        reason: &'static str,
        /// Number of frames.
        frames: u64,
    },
    /// Discarded in a storm: the peer is at fault, but the frames did not arrive.
    Watchdog {
        /// Traffic class.
        class: usize,
        /// Port that counted them.
        port: String,
        /// Number of frames.
        frames: u64,
    },
    /// Discarded at a stuck port.
    Stuck {
        /// Traffic class.
        class: usize,
        /// The port that was stuck.
        port: String,
        /// Number of frames.
        frames: u64,
    },
    /// Lost by a device that sent lossless frames; any class, PFC included.
    Transmit {
        /// The port.
        port: String,
        /// Number of frames.
        frames: u64,
    },
    /// Sent by a virtual host and never received.
    Missing {
        /// Traffic class.
        class: usize,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// Number of frames.
        frames: u64,
    },
    /// Received with a wrong bit.
    Corrupt {
        /// Traffic class.
        class: usize,
        /// Sending host.
        from: String,
        /// Receiving host.
        to: String,
        /// Number of frames.
        frames: u64,
    },
    /// Lost to a full receive ring, or an empty packet pool.
    ReceiveRing {
        /// The port.
        port: String,
        /// Frames lost to a full ring.
        missed_frames: u64,
        /// Frames lost to an empty buffer pool.
        no_buffer_frames: u64,
    },
    /// Cells not released after the drain: the accounting is wrong.
    CellsHeld {
        /// Number of cells.
        cells: u64,
        /// Frames in egress queues.
        frames: u64,
    },
}

/// A port that carries lossless classes but cannot guarantee them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exposed {
    /// The port.
    pub port: String,
    /// Its PFC standing.
    pub pfc: PfcStanding,
    /// The device's own flow control.
    pub flow_control: DeviceFlowControl,
    /// Frames that came too late after XOFF, if the peer disobeys; zero otherwise.
    pub late_frames: u64,
}

/// A trusted port whose device may disturb PFC, which only the operator has ruled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrustedDevice {
    /// The port.
    pub port: String,
    /// The flow control state that causes the doubt.
    pub flow_control: DeviceFlowControl,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// `nothing_lossless`; `broken` (rows in `causes`), else `starved` (rows in `starved`), else `broken_by_order`
    /// (rows in `by_order`), else `kept_as_seen` (rows in `unseen` or `maybe_starved`), else `kept`.
    pub outcome: VerdictOutcome,
    /// Causes of `broken`, each with `cause`. With other outcomes, losses that follow from faults.
    pub causes: Vec<BrokenBy>,
    /// PFC frames and lossless frames that [injected faults](faults.md) hit.
    #[serde(rename = "by_order")]
    pub injected: Vec<InjectedHits>,
    /// Lossless frames dropped for reasons such as `lossless_unknown`, `lossless_group`, `egress_mtu`.
    pub undelivered: Vec<Undelivered>,
    /// Ports with neither proven nor trusted PFC.
    pub not_lossless: Vec<Exposed>,
    /// Trusted ports.
    pub trusted: Vec<String>,
    /// Trusted ports whose devices may drop PFC frames or pause.
    pub trusted_devices: Vec<TrustedDevice>,
    /// Lossless classes that the receive backlog [almost stopped](#verdict).
    pub starved: Vec<Starved>,
    /// Ports without virtual host that were held over nine tenths of the run and received only lossy frames.
    pub maybe_starved: Vec<MaybeStarved>,
    /// Ports that cannot report loss before them.
    pub unseen: Vec<Unseen>,
}

/// A port whose driver does not report frames lost in front of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unseen {
    /// The port.
    pub port: String,
    /// The driver.
    pub driver: String,
}

/// Frames of a lossless class that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undelivered {
    /// Traffic class.
    pub class: usize,
    /// Port that counted them.
    pub port: String,
    /// Label of the reason.
    pub reason: &'static str,
    /// Number of frames.
    pub frames: u64,
}

impl Verdict {
    /// Judges `snapshot`, which is taken after the hosts have stopped and the switch has drained.
    #[must_use]
    pub fn new(switch_view: &SwitchView, snapshot: &Snapshot) -> Self {
        if switch_view.ever_lossless().is_empty() {
            return Self {
                outcome: VerdictOutcome::NothingLossless,
                causes: Vec::new(),
                injected: Vec::new(),
                undelivered: Vec::new(),
                not_lossless: Vec::new(),
                trusted: Vec::new(),
                trusted_devices: Vec::new(),
                starved: Vec::new(),
                maybe_starved: Vec::new(),
                unseen: Vec::new(),
            };
        }
        let (mut causes, undelivered) = drops(switch_view, snapshot);
        causes.extend(ends(switch_view));
        causes.extend(receive_rings(switch_view, snapshot));
        causes.extend(devices(switch_view, snapshot));
        let (cells, frames) = (snapshot.held_cells(), snapshot.lcore.held_frames);
        if cells > 0 || frames > 0 {
            causes.push(BrokenBy::CellsHeld { cells, frames });
        }
        let (unseen, (starved, maybe_starved)) = (unseen(switch_view), starved::starved(switch_view, snapshot));
        let injected = injected::injected(switch_view);
        let is_kept = causes.is_empty() || injected::explains(switch_view, snapshot, &injected, &causes);
        let outcome = match (is_kept, unseen.is_empty() && maybe_starved.is_empty()) {
            (true, _) if !starved.is_empty() => VerdictOutcome::Starved,
            (true, _) if !injected.is_empty() => VerdictOutcome::BrokenByInjectedFaults,
            (true, true) => VerdictOutcome::Kept,
            (true, false) => VerdictOutcome::KeptAsSeen,
            (false, _) => VerdictOutcome::Broken,
        };
        Self {
            outcome,
            causes,
            injected,
            undelivered,
            not_lossless: exposed(switch_view),
            trusted: trusted(switch_view),
            trusted_devices: trusted_devices(switch_view),
            starved,
            maybe_starved,
            unseen,
        }
    }

    /// Whether no loss broke the promise and no lossless class starved. A break by injected faults is none of the
    /// switch.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        !matches!(self.outcome, VerdictOutcome::Broken | VerdictOutcome::Starved)
    }
}

/// Frames dropped in lossless classes: those that break the promise, and those that could not be delivered.
///
/// A port without link and a stuck port are one fault that is detected in two ways, so both break the promise.
fn drops(switch_view: &SwitchView, snapshot: &Snapshot) -> (Vec<BrokenBy>, Vec<Undelivered>) {
    let (mut causes, mut undelivered) = (Vec::new(), Vec::new());
    for class in switch_view.ever_lossless().iter() {
        for (reason, label, _) in DropReason::TABLE {
            for (port, counters) in snapshot.ports.iter().enumerate() {
                let frames = counters.lost(class)[*reason as usize];
                if frames == 0 {
                    continue;
                }
                let port = switch_view.port_name(port).to_owned();
                match reason {
                    DropReason::Watchdog => causes.push(BrokenBy::Watchdog { class, port, frames }),
                    DropReason::EgressStuck => causes.push(BrokenBy::Stuck { class, port, frames }),
                    DropReason::EgressDown => causes.push(BrokenBy::Dropped { class, port, reason: label, frames }),
                    _ if reason.is_congestion() => {
                        causes.push(BrokenBy::Dropped { class, port, reason: label, frames })
                    }
                    _ => undelivered.push(Undelivered { class, port, reason: label, frames }),
                }
            }
        }
    }
    (causes, undelivered)
}

/// Frames of lossless classes that virtual hosts find missing or damaged. A class that a reload has made lossless or
/// lossy is judged by what the switch dropped: hosts do not know when they lost a frame.
fn ends(switch_view: &SwitchView) -> Vec<BrokenBy> {
    let Some(hosts) = &switch_view.hosts else { return Vec::new() };
    let mut causes = Vec::new();
    let judged = switch_view.lossless - switch_view.former.changed;
    let is_lossless = |flow: &&FlowTally| judged.contains(usize::from(flow.info.class));
    for flow in hosts.flows.iter().filter(is_lossless) {
        let class = usize::from(flow.info.class);
        let name = |host: usize| hosts.hosts[host].name.clone();
        let (from, to) = (name(flow.info.from), flow.info.to.map(name).unwrap_or_default());
        match flow.missing() {
            Some(frames) if frames > 0 => {
                causes.push(BrokenBy::Missing { class, from: from.clone(), to: to.clone(), frames });
            }
            _ => {}
        }
        let frames = flow.corrupt_frames.get();
        if frames > 0 {
            causes.push(BrokenBy::Corrupt { class, from, to, frames });
        }
    }
    causes
}

fn receive_rings(switch_view: &SwitchView, snapshot: &Snapshot) -> Vec<BrokenBy> {
    let lossy = snapshot.ports.iter().enumerate().filter(|(_, port)| port.device.receive_loss() > 0);
    lossy
        .map(|(index, port)| BrokenBy::ReceiveRing {
            port: switch_view.port_name(index).to_owned(),
            missed_frames: port.device.rx_missed,
            no_buffer_frames: port.device.rx_no_buffer,
        })
        .collect()
}

/// Frames that devices accepted but lost, at ports that have sent lossless frames. They include PFC frames.
fn devices(switch_view: &SwitchView, snapshot: &Snapshot) -> Vec<BrokenBy> {
    let queue = |class: usize| usize::from(switch_view.spec.classes.tc_to_queue[class]) % CLASSES;
    let lossless = switch_view.ever_lossless().iter();
    let queues: Vec<usize> = lossless.map(queue).collect();
    let lossy = snapshot
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| port.device.tx_errors > 0 && queues.iter().any(|&queue| port.tx_frames[queue] > 0));
    let cause = |(index, frames)| BrokenBy::Transmit { port: switch_view.port_name(index).to_owned(), frames };
    lossy.map(|(index, port)| cause((index, port.device.tx_errors))).collect()
}

fn exposed(switch_view: &SwitchView) -> Vec<Exposed> {
    // An output of mirrors takes no frames that could be lost, and its copies may be lost.
    let ports = (0..switch_view.pfc.len()).filter(|&port| !switch_view.spec.mirror.outputs.contains(port));
    let ports = ports.filter(|&port| !switch_view.is_shut(port));
    let ports = ports.map(|port| (port, switch_view.standing(port)));
    let ports = ports.filter(|(_, pfc)| !pfc.is_relied_upon());
    let exposed = |(port, pfc)| Exposed {
        port: switch_view.port_name(port).to_owned(),
        pfc,
        flow_control: switch_view.flow_control.get(port),
        late_frames: late_frames(switch_view, port),
    };
    ports.map(exposed).collect()
}

/// Frames that came too late in the priorities that the peer of `port` disobeys.
fn late_frames(switch_view: &SwitchView, port: usize) -> u64 {
    let disobeyed = switch_view.disobeyed(port);
    disobeyed.iter().map(|priority| switch_view.counters.ports[port].pfc_late_frames[priority].get()).sum()
}

fn trusted(switch_view: &SwitchView) -> Vec<String> {
    let ports = (0..switch_view.pfc.len()).filter(|&port| switch_view.standing(port) == PfcStanding::Trusted);
    ports.map(|port| switch_view.port_name(port).to_owned()).collect()
}

fn trusted_devices(switch_view: &SwitchView) -> Vec<TrustedDevice> {
    let ports = (0..switch_view.pfc.len()).filter(|&port| switch_view.standing(port) == PfcStanding::Trusted);
    let ports = ports.map(|port| (port, switch_view.flow_control.get(port)));
    let ports = ports.filter(|(_, state)| state.consequence().is_some());
    ports
        .map(|(port, flow_control)| TrustedDevice { port: switch_view.port_name(port).to_owned(), flow_control })
        .collect()
}

fn unseen(switch_view: &SwitchView) -> Vec<Unseen> {
    let ports = switch_view.blind.iter().enumerate();
    let ports = ports.filter_map(|(port, driver)| Some((switch_view.port_name(port).to_owned(), driver.clone()?)));
    ports.map(|(port, driver)| Unseen { port, driver }).collect()
}

#[cfg(test)]
mod tests;
