//! Counters of virtual hosts: written by the thread that polls the hosts, readable by any thread at any time.

use super::spec::{FlowKind, FlowPattern};
use crate::plan::counters::{Counter, PerClass};
use crate::sets::CLASSES;
use crate::units::{BitRate, Nanos, WIRE_OVERHEAD};

/// Number of equal buckets per power of two.
const STEPS: usize = 8;
/// Values below this limit have a bucket each.
const EXACT: u64 = STEPS as u64;
/// Number of buckets: those of the powers of two from 2^3 to 2^63, and those of the exact values below.
const BUCKETS: usize = (64 - 3) * STEPS + STEPS;

/// A histogram over all of `u64`. Buckets are an eighth of a power of two wide, so a quantile is accurate to 12.5 %.
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

    /// Returns the value below which `per_mille` thousandths of all values lie, as the upper end of its bucket. Returns
    /// `None` if the histogram is empty.
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

    /// Returns the largest value of `bucket`.
    fn highest(bucket: usize) -> u64 {
        if bucket < STEPS {
            return bucket as u64;
        }
        let (power, step) = (bucket / STEPS + 2, bucket % STEPS);
        let width = 1_u64 << (power - 3);
        (1_u64 << power) + (step as u64) * width + (width - 1)
    }
}

/// The properties of a flow that are fixed before it sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowInfo {
    /// Index of the sending host.
    pub from: usize,
    /// Index of the receiving host; `None` for a station outside, whose received frames cannot be counted.
    pub to: Option<usize>,
    /// Shape of the frames.
    pub kind: FlowKind,
    /// Traffic class.
    pub class: u8,
    /// Bytes of a frame.
    pub frame_len: u32,
    /// Rate on the wire.
    pub rate: BitRate,
    /// Pattern of sending over time.
    pub pattern: FlowPattern,
}

impl FlowInfo {
    /// Returns the number of frames that the flow has to send in `time` at its rate.
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

/// Counters of one flow at both ends.
#[derive(Debug)]
pub struct FlowTally {
    /// Properties of the flow.
    pub info: FlowInfo,
    /// Frames that the transmit ring of the host accepted, or that the wire lost.
    pub sent_frames: Counter,
    /// Bytes of the sent frames, without the frame check sequence.
    pub sent_bytes: Counter,
    /// Frames that arrived intact, each sequence number once.
    pub received_frames: Counter,
    /// Bytes of the received frames, without the frame check sequence.
    pub received_bytes: Counter,
    /// Received frames that a later one had overtaken.
    pub late_frames: Counter,
    /// Frames whose number had arrived before, or was older than the window.
    pub duplicate_frames: Counter,
    /// Frames that arrived with a wrong bit.
    pub corrupt_frames: Counter,
    /// Received frames that carried Congestion Experienced.
    pub ce_frames: Counter,
    /// Latency from sending to receiving in ticks; both ends are rounded to a poll.
    pub latency: LogHistogram,
    /// The shortest latency, in ticks; `u64::MAX` before the first frame.
    pub latency_lowest: Counter,
    /// The longest latency, in ticks.
    pub latency_highest: Counter,
}

impl FlowTally {
    /// Creates counters of zero.
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

    /// Returns the number of frames that were sent but neither received nor found corrupt. They are lost if the switch
    /// has drained. Returns `None` if the receiver is not a virtual host.
    #[must_use]
    pub fn missing(&self) -> Option<u64> {
        // The receiver's counters are read first. Otherwise a frame between the reads would count as received but not
        // as sent.
        let arrived = self.received_frames.get() + self.corrupt_frames.get();
        self.info.to.map(|_| self.sent_frames.get().saturating_sub(arrived))
    }

    /// Records one latency.
    #[inline]
    pub(super) fn record_latency(&self, ticks: u64) {
        self.latency.record(ticks);
        self.latency_highest.raise(ticks);
        if ticks < self.latency_lowest.get() {
            self.latency_lowest.set(ticks);
        }
    }
}

/// Counters of one host.
#[derive(Debug, Default)]
pub struct HostTally {
    /// Name of the host.
    pub name: String,
    /// Index of its switch port.
    pub port: usize,
    /// Frames sent by its flows, by class.
    pub tx_frames: PerClass,
    /// Bytes of the sent frames, by class.
    pub tx_bytes: PerClass,
    /// Received frames of flows to this host, by class, including corrupt and duplicate ones.
    pub rx_frames: PerClass,
    /// Bytes of the received frames, by class.
    pub rx_bytes: PerClass,
    /// PFC frames received.
    pub pfc_rx_frames: Counter,
    /// Ticks for which PFC paused the host, by class, whether it obeyed or not.
    pub paused_ticks: [Counter; CLASSES],
    /// Announcements sent.
    pub announced_frames: Counter,
    /// ARP frames received.
    pub arp_rx_frames: Counter,
    /// Received frames of no flow to this host: frames for other stations, flooded frames, unknown frames.
    pub foreign_frames: Counter,
    /// Frames lost because the switch's receive ring was full, on a wire that does not wait.
    pub lost_frames: Counter,
    /// Number of times that the host waited because the transmit ring was full.
    pub tx_waits: Counter,
    /// Number of times that the host waited because the pool had no buffer.
    pub buffer_waits: Counter,
}

/// All counters of the virtual hosts.
#[derive(Debug)]
pub struct HostCounters {
    /// Ticks per second.
    pub hz: u64,
    /// Counters of the hosts, by host index.
    pub hosts: Box<[HostTally]>,
    /// Counters of the flows, by flow number: those of the first host in order, then those of the second, and so on.
    pub flows: Box<[FlowTally]>,
}

impl HostCounters {
    /// Returns the number of frames in transit or lost: sent to virtual hosts and not received yet.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.flows.iter().filter_map(FlowTally::missing).sum()
    }

    /// Converts `ticks` to nanoseconds.
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
