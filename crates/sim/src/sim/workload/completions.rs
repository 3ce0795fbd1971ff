//! Results of workloads. Completed flows take bounded memory, and no random numbers choose them.

use crate::sim::outcome::{FlowOutcome, Spread};

/// Results of one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadOutcome {
    /// Flows that started.
    pub started: u64,
    /// Flows that completed: acknowledged if they are reliable, else received.
    pub completed: u64,
    /// Flows that did not start, because too many were in progress.
    pub left_out: u64,
    /// Rounds of a collective that are complete; `None` for other patterns.
    pub rounds: Option<u64>,
    /// Completion times of its flows.
    pub time: Spread,
    /// Results of its flows together. Times of frames and messages are left out.
    pub sum: FlowOutcome,
}

/// A completed flow of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Index of the workload.
    pub workload: u16,
    /// Index of the sender.
    pub from: u16,
    /// Index of the receiver.
    pub to: u16,
    /// Bytes that it carried, without headers.
    pub bytes: u64,
    /// Time of its start.
    pub start_ps: u64,
    /// Completion time.
    pub time_ps: u64,
    /// Completion time on the empty path.
    pub ideal_ps: u64,
}

/// Completed flows: all of them up to [`Completions::MOST`], beyond that an evenly spaced subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    /// The flows that are kept.
    pub list: Vec<Completion>,
    /// Number of all completed flows.
    pub seen: u64,
    /// Distance of the flows that are kept: one keeps all.
    pub stride: u64,
}

impl Default for Completions {
    fn default() -> Self {
        Self { list: Vec::new(), seen: 0, stride: 1 }
    }
}

impl Completions {
    /// Maximum number of flows that are kept.
    pub const MOST: usize = 1 << 20;

    /// Adds a flow. Once [`Completions::MOST`] are kept, every second one is forgotten, and only every second one of
    /// those that follow is kept, and so on.
    pub(in crate::sim) fn add(&mut self, flow: Completion) {
        if self.seen.is_multiple_of(self.stride) {
            if self.list.len() == Self::MOST {
                let mut place = 0;
                self.list.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.list.push(flow);
            }
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_an_even_part_is_kept() {
        let mut completions = Completions::default();
        let flow = |bytes| Completion { workload: 0, from: 0, to: 1, bytes, start_ps: 0, time_ps: 2, ideal_ps: 1 };
        let count = 3 * Completions::MOST as u64;
        (0..count).for_each(|bytes| completions.add(flow(bytes)));
        assert_eq!((completions.seen, completions.stride), (count, 4));
        assert!(completions.list.iter().enumerate().all(|(place, flow)| flow.bytes == 4 * place as u64));
        assert_eq!(completions.list.len() as u64, count / 4);
    }
}
