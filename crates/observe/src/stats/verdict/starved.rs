//! Lossless classes that hardly moved because the receive backlog of their port paused them.
//!
//! A frame that never left its sender is not lost, so loss counters do not show such a class. The whole run is judged.
//! A class that starves for a short part of a long run is left to an alert (`HoldfastHeldByOwnBacklog`).

use schemars::JsonSchema;
use serde::Serialize;

use super::super::snapshot::{PortSnapshot, Snapshot};
use super::super::switch_view::SwitchView;
use crate::hosts::FlowTally;
use crate::plan::counters::STARVED_PART;
use crate::sets::CLASSES;
use crate::units::{Nanos, WIRE_OVERHEAD};

/// A starved lossless class at a port whose core was overloaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Starved {
    /// The port.
    pub port: String,
    /// Traffic class.
    pub class: usize,
    /// Time for which the port's lossless classes were held.
    pub held_ns: u64,
    /// Duration of the run.
    pub of_ns: u64,
    /// Frames received.
    pub frames: u64,
    /// Frames that hosts had to send; null without virtual host.
    pub wanted_frames: Option<u64>,
}

/// A port that was paused for most of the run and received no lossless frame. Its peer is not a virtual host, so it is
/// not known whether frames waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MaybeStarved {
    /// The port.
    pub port: String,
    /// Time for which the port's lossless classes were held.
    pub held_ns: u64,
    /// Duration of the run.
    pub of_ns: u64,
}

/// The port that is judged.
struct Judged<'a> {
    switch_view: &'a SwitchView,
    index: usize,
    port: &'a PortSnapshot,
    held_ns: u64,
    of_ns: u64,
}

/// Judges every port of `snapshot`.
pub(super) fn starved(switch_view: &SwitchView, snapshot: &Snapshot) -> (Vec<Starved>, Vec<MaybeStarved>) {
    let of_ns = u64::try_from(snapshot.at.as_nanos()).unwrap_or(u64::MAX);
    let (mut starved, mut maybe) = (Vec::new(), Vec::new());
    for (index, port) in snapshot.ports.iter().enumerate() {
        // The counter includes the drain after the run, but the duration of the run does not.
        let judged = Judged { switch_view, index, port, held_ns: port.backlog_held_ns.min(of_ns), of_ns };
        if switch_view.is_in_process(index) {
            starved.extend(judged.by_demand());
        } else {
            starved.extend(judged.by_share());
            maybe.extend(judged.maybe());
        }
    }
    (starved, maybe)
}

impl Judged<'_> {
    /// Classes in which the virtual hosts at the port had frames to send, but sent hardly any.
    fn by_demand(&self) -> Vec<Starved> {
        if self.held_ns <= self.of_ns / 2 {
            return Vec::new();
        }
        let classes = self.lossless().into_iter().filter_map(|class| {
            let (frames, wanted) = (self.port.rx_frames[class], self.wanted_frames(class));
            let is_starved = frames * STARVED_PART < wanted && frames * STARVED_PART < self.all();
            is_starved.then(|| self.starved(class, Some(wanted)))
        });
        classes.collect()
    }

    /// Classes that sent some frames, if all lossless classes together sent hardly any. A peer whose classes could send
    /// for a tenth of the time could have sent more, so such a port is not judged.
    fn by_share(&self) -> Vec<Starved> {
        if !self.is_mostly_held() || self.received() * STARVED_PART >= self.all() {
            return Vec::new();
        }
        let came = self.lossless().into_iter().filter(|&class| self.port.rx_frames[class] > 0);
        came.map(|class| self.starved(class, None)).collect()
    }

    fn maybe(&self) -> Option<MaybeStarved> {
        let is_guarded = !self.switch_view.guarded_groups(self.index).is_empty();
        let is_silent = self.received() == 0 && self.all() > 0;
        (is_guarded && is_silent && self.is_mostly_held()).then(|| MaybeStarved {
            port: self.switch_view.port_name(self.index).to_owned(),
            held_ns: self.held_ns,
            of_ns: self.of_ns,
        })
    }

    fn is_mostly_held(&self) -> bool {
        self.held_ns > self.of_ns / 10 * 9
    }

    fn starved(&self, class: usize, wanted_frames: Option<u64>) -> Starved {
        Starved {
            port: self.switch_view.port_name(self.index).to_owned(),
            class,
            held_ns: self.held_ns,
            of_ns: self.of_ns,
            frames: self.port.rx_frames[class],
            wanted_frames,
        }
    }

    fn lossless(&self) -> Vec<usize> {
        (0..CLASSES).filter(|&class| self.switch_view.is_lossless(class)).collect()
    }

    /// Frames received in lossless classes.
    fn received(&self) -> u64 {
        self.lossless().into_iter().map(|class| self.port.rx_frames[class]).sum()
    }

    fn all(&self) -> u64 {
        self.port.rx_frames.iter().sum()
    }

    /// Frames of `class` that the hosts at the port had to send during the run, limited by the rate of their link.
    fn wanted_frames(&self, class: usize) -> u64 {
        let Some(hosts) = &self.switch_view.hosts else { return 0 };
        let is_own =
            |flow: &&FlowTally| usize::from(flow.info.class) == class && hosts.hosts[flow.info.from].port == self.index;
        let flows: Vec<&FlowTally> = hosts.flows.iter().filter(is_own).collect();
        let wanted: u64 = flows.iter().map(|flow| flow.info.wanted_frames(Nanos(self.of_ns))).sum();
        let longest = flows.iter().map(|flow| flow.info.frame_len).max().unwrap_or(0);
        let rate = self.switch_view.spec.ports.get(self.index).map_or(0, |port| port.rate.0);
        let bits = u128::from(rate) * u128::from(self.of_ns) / 1_000_000_000;
        wanted.min(u64::try_from(bits).unwrap_or(u64::MAX) / u64::from((longest + WIRE_OVERHEAD) * 8))
    }
}
