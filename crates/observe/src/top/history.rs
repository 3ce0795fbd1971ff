//! History of the rates and losses of a port.

use std::collections::VecDeque;

/// Samples kept per port: more than the widest terminal shows.
const KEPT: usize = 512;

/// Rates and losses of a port between two states of the switch.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Bits received per second.
    pub rx_bps: f64,
    /// Bits sent per second.
    pub tx_bps: f64,
    /// Whether PFC paused the port or its peer.
    pub held: bool,
    /// Whether a frame of a lossless class was lost.
    pub lost: bool,
}

/// The last samples of a port, the oldest first.
#[derive(Debug, Default, Clone)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Adds a sample; the oldest is removed if the history is full.
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// All samples, the oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> {
        self.samples.iter()
    }
}
