//! The rows of each view, and their order.

use super::app::App;
use super::choice::{Sort, View};
use super::step::QueueStep;
use super::view;
use crate::api::State;
use crate::api::model::{Group, Queue};

impl App {
    /// The port index of each row in the view of groups or queues.
    pub(super) fn row_ports(&self) -> Vec<usize> {
        let Some(state) = &self.state else { return Vec::new() };
        let index = |name: &str| state.ports.iter().position(|port| port.port == name).unwrap_or(0);
        match self.view {
            View::Buffer => self.groups(state).map(|group| index(&group.port)).collect(),
            View::Queues => self.queues(state).map(|(queue, _)| index(&queue.port)).collect(),
            _ => Vec::new(),
        }
    }

    /// The groups that are shown: those that were ever used, and those that PFC protects.
    pub(super) fn groups<'a>(&'a self, state: &'a State) -> impl Iterator<Item = &'a Group> {
        state.groups.iter().filter(|group| {
            let highest = group.used_highest_bytes.max(group.used_bytes).max(group.headroom_bytes);
            self.shows_idle || group.lossless || highest > 0
        })
    }

    /// The queues that are shown, with their rates.
    pub(super) fn queues<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (&'a Queue, QueueStep)> {
        let steps = self.step.queues.iter().copied().chain(std::iter::repeat(Default::default()));
        state.queues.iter().zip(steps).filter(|(queue, _)| {
            self.shows_idle || queue.paused || queue.sent_frames > 0 || queue.depth_highest_bytes > 0
        })
    }

    /// Port indexes in the order in which they are shown.
    pub(super) fn order(&self) -> Vec<usize> {
        let Some(state) = &self.state else { return Vec::new() };
        let mut order: Vec<usize> = (0..state.ports.len()).collect();
        let step = |port: usize| self.step.ports.get(port).copied().unwrap_or_default();
        let by = |port: usize| match self.sort {
            Sort::Configured => 0.0,
            Sort::Sent => step(port).tx_bps,
            Sort::Received => step(port).rx_bps,
            Sort::Queue => view::deepest(state, &state.ports[port].port).map_or(0.0, |queue| queue.depth_bytes as f64),
            Sort::Paused => step(port).xoff.share.max(step(port).paused.share),
            Sort::Drops => step(port).lost * 1e9 + step(port).dropped,
        };
        let keys: Vec<f64> = order.iter().map(|&port| by(port)).collect();
        // The highest comes first. The sort is stable, so equal ports stay in configured order.
        order.sort_by(|a, b| keys[*b].total_cmp(&keys[*a]));
        order
    }
}
