//! The way of a switch to other settings, as the control thread goes it for a reload: ports that take settings only
//! while they are out leave first, and are in again once the buffer is divided anew.

use crate::plan::SwitchSpec;
use crate::sets::{ClassSet, PortSet};

/// The settings for which a switch heads, and how far it is.
#[derive(Debug)]
pub struct Course {
    /// The plan that it has once the ports that are out are in again.
    goal: SwitchSpec,
    /// Static entries of its configuration. Those of hosts follow.
    written_entries: usize,
    /// Ports that are out for the goal, and those of them that are known to be empty.
    out: PortSet,
    left: PortSet,
    /// Classes that promise to lose nothing.
    pub promised: ClassSet,
    /// Classes that have become lossless or lossy.
    pub changed: ClassSet,
}

impl Course {
    /// A switch that runs by `spec`, whose configuration has the first `written_entries` of the static entries.
    pub fn new(spec: &SwitchSpec, written_entries: usize) -> Self {
        Self {
            goal: spec.clone(),
            written_entries,
            out: PortSet::EMPTY,
            left: PortSet::EMPTY,
            promised: spec.lossless_classes(),
            changed: ClassSet::EMPTY,
        }
    }

    /// Shuts `port`, or takes it into use.
    pub fn set_shut(&mut self, port: usize, is_shut: bool) {
        self.goal.ports[port].live.is_enabled = !is_shut;
    }

    /// Heads for the settings of `wanted` that may change while the switch runs. Ports that are shut stay so.
    pub fn head_for(&mut self, wanted: &SwitchSpec) {
        let mut goal = self.goal.with_live_of(wanted);
        goal.fdb.entries.extend_from_slice(&self.goal.fdb.entries[self.written_entries..]);
        self.written_entries = wanted.fdb.entries.len();
        for (port, running) in goal.ports.iter_mut().zip(&self.goal.ports) {
            port.live.is_enabled = running.live.is_enabled;
        }
        self.goal = goal;
    }

    /// The next plan of a switch that runs by `spec`, and the ports that must be empty before the one after it.
    pub fn next(&mut self, spec: &SwitchSpec) -> (SwitchSpec, PortSet) {
        let replaced = spec.replaced_by(&self.goal);
        self.out |= replaced;
        let mut next = if (replaced - self.left).is_empty() { self.goal.clone() } else { spec.clone() };
        for (port, (next, goal)) in next.ports.iter_mut().zip(&self.goal.ports).enumerate() {
            next.live.is_enabled = goal.live.is_enabled && !self.out.contains(port);
        }
        // A class that becomes lossy promises nothing from now on.
        let kept = next.lossless_classes();
        self.changed |= spec.lossless_classes() ^ kept;
        self.promised &= kept;
        (next, self.out - self.left)
    }

    /// Records that the buffer is divided by `spec`, and that the ports which are out are empty. Returns whether the
    /// switch is where it is to go.
    pub fn divided(&mut self, spec: &SwitchSpec) -> bool {
        self.promised = spec.lossless_classes();
        let is_there = self.out.is_empty();
        self.left = self.out;
        if spec.replaced_by(&self.goal).is_empty() {
            (self.out, self.left) = (PortSet::EMPTY, PortSet::EMPTY);
        }
        is_there
    }
}
