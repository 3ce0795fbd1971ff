//! What virtual hosts count: written by the thread that polls them, read by anyone at any time.

use super::spec::{FlowKind, FlowPattern};
use crate::dataplane::counters::{Counter, PerClass};
use crate::qos::shaper::WIRE_OVERHEAD;
use crate::sets::CLASSES;
use crate::units::{BitRate, Nanos};

/// Buckets of equal width into which each power of two is divided.
const STEPS: usize = 8;
/// Values below this have a bucket each.
const EXACT: u64 = STEPS as u64;
/// Powers of two from 2^3 to 2^63, and the exact values below them.
const BUCKETS: usize = (64 - 3) * STEPS + STEPS;

/// A histogram over all of `u64` whose buckets are an eighth of a power of two wide, so it is right to 12.5 %.
#[derive(Debug)]
pub struct LogHistogram {
    buckets: Box<[Counter; BUCKETS]>,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { buckets: Box::new(std::array::from_fn(|_| Counter::default())) }
    }
}

impl LogHistogram {
    /// Counts `value`.
    #[inline]
    pub fn record(&self, value: u64) {
        self.buckets[Self::bucket(value)].add(1);
    }

    /// The value below which `per_mille` thousandths of all lie, as the upper end of its bucket; `None` if there is
    /// none.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let total: u64 = self.buckets.iter().map(Counter::get).sum();
        let rank = (u128::from(total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += u128::from(count.get());
            if below >= rank {
                return Some(Self::highest(bucket));
            }
        }
        None
    }

    #[inline]
    fn bucket(value: u64) -> usize {
        if value < EXACT {
            return value as usize;
        }
        let power = value.ilog2() as usize;
        (power - 2) * STEPS + ((value >> (power - 3)) as usize & (STEPS - 1))
    }

    /// Largest value of `bucket`.
    fn highest(bucket: usize) -> u64 {
        if bucket < STEPS {
            return bucket as u64;
        }
        let (power, step) = (bucket / STEPS + 2, bucket % STEPS);
        let width = 1_u64 << (power - 3);
        (1_u64 << power) + (step as u64) * width + (width - 1)
    }
}

/// What is known of a flow before it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowInfo {
    /// Index of the sending host.
    pub from: usize,
    /// Index of the receiving host; `None` for a station outside, of which nothing comes back.
    pub to: Option<usize>,
    /// Shape.
    pub kind: FlowKind,
    /// Its class.
    pub class: u8,
    /// Bytes of a frame.
    pub frame_len: u32,
    /// Rate on the wire.
    pub rate: BitRate,
    /// Spread over time.
    pub pattern: FlowPattern,
}

impl FlowInfo {
    /// Frames that it has to send in `time` at its rate.
    #[must_use]
    pub fn wanted_frames(&self, time: Nanos) -> u64 {
        let sending = match self.pattern {
            FlowPattern::Steady => time.0,
            FlowPattern::OnOff { on, off } => {
                let round = on.0.saturating_add(off.0).max(1);
                time.0 / round * on.0 + (time.0 % round).min(on.0)
            }
        };
        let bits = u128::from(self.rate.0) * u128::from(sending) / 1_000_000_000;
        u64::try_from(bits).unwrap_or(u64::MAX) / u64::from((self.frame_len + WIRE_OVERHEAD) * 8)
    }
}

/// What one flow counts, at both ends.
#[derive(Debug)]
pub struct FlowTally {
    /// Which flow it is.
    pub info: FlowInfo,
    /// Frames that its host's transmit ring took, or the wire lost.
    pub sent_frames: Counter,
    /// Their bytes, without the frame check sequence.
    pub sent_bytes: Counter,
    /// Frames that arrived whole, each number once.
    pub received_frames: Counter,
    /// Their bytes.
    pub received_bytes: Counter,
    /// Of those received, how many were overtaken by a later one.
    pub late_frames: Counter,
    /// Frames that had arrived before, or were too old to tell.
    pub duplicate_frames: Counter,
    /// Frames that arrived with a wrong bit.
    pub corrupt_frames: Counter,
    /// Of those received, how many carried Congestion Experienced.
    pub ce_frames: Counter,
    /// Ticks from sending to receiving, each to the nearest poll.
    pub latency: LogHistogram,
    /// The shortest, in ticks; `u64::MAX` before there is one.
    pub latency_lowest: Counter,
    /// The longest, in ticks.
    pub latency_highest: Counter,
}

impl FlowTally {
    /// Zeros.
    #[must_use]
    pub fn new(info: FlowInfo) -> Self {
        let counters = Self {
            info,
            sent_frames: Counter::default(),
            sent_bytes: Counter::default(),
            received_frames: Counter::default(),
            received_bytes: Counter::default(),
            late_frames: Counter::default(),
            duplicate_frames: Counter::default(),
            corrupt_frames: Counter::default(),
            ce_frames: Counter::default(),
            latency: LogHistogram::default(),
            latency_lowest: Counter::default(),
            latency_highest: Counter::default(),
        };
        counters.latency_lowest.set(u64::MAX);
        counters
    }

    /// Frames sent and neither received nor found corrupt: lost, once the switch has drained. `None` if the receiver
    /// is not ours.
    #[must_use]
    pub fn missing(&self) -> Option<u64> {
        // Receiver first: read the other way round a frame in between would count as received and not sent.
        let arrived = self.received_frames.get() + self.corrupt_frames.get();
        self.info.to.map(|_| self.sent_frames.get().saturating_sub(arrived))
    }

    /// Counts one latency.
    #[inline]
    pub(super) fn record_latency(&self, ticks: u64) {
        self.latency.record(ticks);
        self.latency_highest.raise(ticks);
        if ticks < self.latency_lowest.get() {
            self.latency_lowest.set(ticks);
        }
    }
}

/// What one host counts.
#[derive(Debug, Default)]
pub struct HostTally {
    /// Its name.
    pub name: String,
    /// Index of the switch port it hangs on.
    pub port: usize,
    /// Frames of its flows sent, by class.
    pub tx_frames: PerClass,
    /// Their bytes.
    pub tx_bytes: PerClass,
    /// Frames of flows to it received, by class; corrupt and duplicate ones too.
    pub rx_frames: PerClass,
    /// Their bytes.
    pub rx_bytes: PerClass,
    /// PFC frames received.
    pub pfc_rx_frames: Counter,
    /// Ticks for which PFC told it to stop, by class, whether it obeyed or not.
    pub paused_ticks: [Counter; CLASSES],
    /// Announcements sent.
    pub announced_frames: Counter,
    /// ARP frames received.
    pub arp_rx_frames: Counter,
    /// Frames received that are of no flow to this host: other stations', flooded ones, rubbish.
    pub foreign_frames: Counter,
    /// Frames lost since the switch's receive ring was full, where the wire does not wait.
    pub lost_frames: Counter,
    /// Times the transmit ring was full and the host waited.
    pub tx_waits: Counter,
    /// Times there was no buffer for a frame and the host waited.
    pub buffer_waits: Counter,
}

/// All counters of the virtual hosts.
#[derive(Debug)]
pub struct HostCounters {
    /// Ticks a second.
    pub hz: u64,
    /// By host index.
    pub hosts: Box<[HostTally]>,
    /// By flow number: those of the first host in order, then those of the second, and so on.
    pub flows: Box<[FlowTally]>,
}

impl HostCounters {
    /// Frames under way, or lost: sent by flows to our own hosts and not yet received.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.flows.iter().filter_map(FlowTally::missing).sum()
    }

    /// `ticks` in nanoseconds.
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.hz.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_with_phases_has_to_send_only_while_it_is_on() {
        let pattern = FlowPattern::Steady;
        let (from, to, kind, class) = (0, None, FlowKind::Roce, 3);
        let steady = FlowInfo { from, to, kind, class, frame_len: 1000, rate: BitRate(8_192_000), pattern };
        assert_eq!(steady.wanted_frames(Nanos(2_000_000_000)), 2_000);
        let pattern = FlowPattern::OnOff { on: Nanos(300_000_000), off: Nanos(500_000_000) };
        assert_eq!(FlowInfo { pattern, ..steady }.wanted_frames(Nanos(1_000_000_000)), 300 + 200);
    }

    #[test]
    fn every_value_is_in_a_bucket_that_ends_no_more_than_an_eighth_above_it() {
        for power in 0..64 {
            for offset in [0, 1, 3, 5] {
                let value = (1_u64 << power).saturating_add(offset << (power.max(3) - 3));
                let highest = LogHistogram::highest(LogHistogram::bucket(value));
                assert!(highest >= value && highest - value <= value / 8, "{value} {highest}");
            }
        }
        assert_eq!(LogHistogram::bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(LogHistogram::highest(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn quantiles_come_from_the_ranks() {
        let histogram = LogHistogram::default();
        assert_eq!(histogram.quantile(500), None);
        (0..98).for_each(|_| histogram.record(5));
        histogram.record(1000);
        histogram.record(1_000_000);
        assert_eq!(histogram.quantile(500), Some(5));
        assert_eq!(histogram.quantile(980), Some(5));
        assert_eq!(histogram.quantile(990), Some(1023));
        assert_eq!(histogram.quantile(1000), Some((1 << 20) - 1));
    }
}
