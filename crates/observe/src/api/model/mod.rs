//! The answers of the API: [`State`], one record of the whole switch at one time. Every resource is a part of it.
//!
//! Field names are the interface: under `/v1` fields may be added but never changed. A suffix is the unit (`_bytes`,
//! `_ns`, `_bps`). `_frames` and counts grow for as long as the switch runs. So a rate is the difference of two
//! answers, divided by the difference of their `at_ns`.
//!
//! Sizes are whole cells in bytes. A field that is missing in an answer has its default. It is missing if the switch is
//! older than the client, or if the resource is only a part of the state.

mod buffer;
mod config;
mod event;
mod fault;
mod fdb;
mod group;
mod history;
mod host;
mod lag;
mod lcore;
mod lldp;
mod loss;
mod mirror;
mod pfc;
mod port;
mod queue;
mod reload;
mod routing;
mod vlan;
mod watchdog;
mod why;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use buffer::{Buffers, Pool, PortBuffer};
pub use config::{Class, RunningConfig, Setting, Version};
pub use event::{Advice, Event};
pub use fault::{Fault, Faults};
pub use fdb::{Fdb, FdbEntry};
pub use group::Group;
pub use history::{Past, PastText};
pub use host::{Flow, Host};
pub use lag::{Lag, LagMember, LagPartner};
pub use lcore::Lcore;
pub use lldp::{LldpDifference, LldpNeighbour, LldpNote, LldpPort};
pub use loss::{Dropped, Ecn};
pub use mirror::{CopiedEvent, MirrorOutput, Mirrors, Session, Sflow};
pub use pfc::{Pfc, PfcPriority};
pub use port::{Port, PortClass};
pub use queue::Queue;
pub use reload::{Difference, Reload, ReloadOutcome};
pub use routing::{Interface, Interfaces, Neighbour, Neighbours, NextHop, Route, Routes};
pub use vlan::Vlan;
pub use watchdog::{Watchdog, WatchdogQueue};
pub use why::{Explained, Reason, Why, age};

use crate::mmu::Threshold;
use crate::sets::CLASSES;
use crate::stats::snapshot::cells;
use crate::stats::{Snapshot, SwitchView};
use crate::units::Cells;

/// The switch at one time: its settings and its counters.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct State {
    /// Time since the start of the switch.
    pub at_ns: u64,
    /// The running program.
    pub version: Version,
    /// Traffic classes.
    pub classes: Vec<Class>,
    /// Ports.
    pub ports: Vec<Port>,
    /// Priority flow control, by port.
    pub pfc: Vec<Pfc>,
    /// The buffer and its pools.
    pub buffers: Buffers,
    /// Priority groups of all ports.
    pub groups: Vec<Group>,
    /// Egress queues of all ports.
    pub queues: Vec<Queue>,
    /// Dropped frames, if there are any.
    pub drops: Vec<Dropped>,
    /// ECN of the queues that mark.
    pub ecn: Vec<Ecn>,
    /// Watchdogs of the ports that have one.
    pub watchdog: Vec<Watchdog>,
    /// Dataplane lcores.
    pub lcores: Vec<Lcore>,
    /// Virtual hosts.
    pub hosts: Vec<Host>,
    /// Flows of the virtual hosts, end to end.
    pub flows: Vec<Flow>,
    /// Advice for the configuration, derived from counters.
    pub advice: Vec<Advice>,
}

/// The sources of a [`State`].
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The switch.
    pub switch_view: &'a SwitchView,
    /// Its counters.
    pub snapshot: &'a Snapshot,
}

impl Look<'_> {
    /// `count` cells in bytes.
    fn bytes(&self, count: u64) -> u64 {
        self.size(cells(count))
    }

    /// Converts a size in cells to bytes.
    fn size(&self, count: Cells) -> u64 {
        count.to_bytes(self.switch_view.spec.buffer.cell).0
    }

    /// The current limit of `threshold` in the lossless or the lossy pool, at most the size of the pool.
    fn limit(&self, threshold: Threshold, lossless: bool) -> Cells {
        self.snapshot.limit(&self.switch_view.spec.buffer, threshold, lossless)
    }

    /// Nanoseconds since the start of the switch.
    #[must_use]
    pub fn at_ns(&self) -> u64 {
        u64::try_from(self.snapshot.at.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The whole record; `version` is an argument, because no counter holds it.
    #[must_use]
    pub fn state(&self, version: Version) -> State {
        State {
            at_ns: self.at_ns(),
            version,
            classes: Class::all(self),
            ports: Port::all(self),
            pfc: Pfc::all(self),
            buffers: Buffers::of(self),
            groups: Group::all(self),
            queues: Queue::all(self),
            drops: Dropped::all(self),
            ecn: Ecn::all(self),
            watchdog: Watchdog::all(self),
            lcores: Lcore::all(self),
            hosts: Host::all(self),
            flows: Flow::all(self),
            advice: Advice::all(self),
        }
    }
}

/// The factor of a Dynamic Threshold, or the limit in cells of a static one.
fn threshold(threshold: Threshold) -> (Option<f64>, Option<Cells>) {
    (threshold.alpha().map(|alpha| f64::from(alpha.exponent()).exp2()), threshold.cells())
}

/// Classes that `map` assigns to `target`.
fn classes_of(map: &[u8; CLASSES], target: usize) -> Vec<u8> {
    (0..CLASSES as u8).filter(|&class| usize::from(map[usize::from(class)]) == target).collect()
}
