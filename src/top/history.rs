//! What a port did at the last looks.

use std::collections::VecDeque;

/// Looks kept: more than the widest terminal shows.
const KEPT: usize = 512;

/// One look at a port.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Bits a second received.
    pub rx_bps: f64,
    /// Bits a second sent.
    pub tx_bps: f64,
    /// Whether PFC held it or its peer.
    pub held: bool,
    /// Whether something of a lossless class was lost.
    pub lost: bool,
}

/// The last looks at a port, the oldest first.
#[derive(Debug, Default, Clone)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Adds one.
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// All of them.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> {
        self.samples.iter()
    }
}
