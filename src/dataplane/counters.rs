//! Counters of the packet path: plain loads and stores by the one lcore that owns them, read by anyone at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::drops::DropReason;
use crate::qos::CLASSES;

/// Row of [`PortCounters::drops`] for frames dropped before they had a class.
pub const UNCLASSIFIED: usize = CLASSES;

/// A 64-bit value with one writer. No read-modify-write: on the machine it is a plain load, add and store.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may: two writers would lose counts.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Sets the value: for gauges.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Raises the value to `value` if it is lower: for watermarks.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// One counter a class.
pub type PerClass = [Counter; CLASSES];

/// What one port counts. Written by the lcore that owns the port.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Data frames received, by traffic class; PFC frames and malformed ones are not among them.
    pub rx_frames: PerClass,
    /// Their bytes, without the frame check sequence.
    pub rx_bytes: PerClass,
    /// Data frames sent, by egress queue.
    pub tx_frames: PerClass,
    /// Their bytes.
    pub tx_bytes: PerClass,
    /// Frames dropped, by traffic class (the last row: before they had one) and reason. Drops before the egress queue
    /// count at the receiving port, drops at the queue at the port they would have left by.
    pub drops: [[Counter; DropReason::COUNT]; CLASSES + 1],
    /// PFC frames sent with XOFF for this priority (refreshes included).
    pub pfc_tx_xoff: PerClass,
    /// PFC frames sent with XON for this priority.
    pub pfc_tx_xon: PerClass,
    /// PFC frames received with XOFF for this priority.
    pub pfc_rx_xoff: PerClass,
    /// PFC frames received with XON for this priority.
    pub pfc_rx_xon: PerClass,
    /// PFC frames sent.
    pub pfc_tx_frames: Counter,
    /// PFC frames received.
    pub pfc_rx_frames: Counter,
    /// Classic PAUSE frames received (and ignored).
    pub pause_rx_frames: Counter,
    /// Frames marked CE, by egress queue.
    pub ecn_marked: PerClass,
    /// Gauge: cells that frames received here hold in reserve and shared, by priority group.
    pub group_used_cells: PerClass,
    /// Gauge: cells in headroom, by priority group.
    pub group_headroom_cells: PerClass,
    /// Watermark of `group_used_cells`.
    pub group_used_highest_cells: PerClass,
    /// Watermark of `group_headroom_cells`.
    pub group_headroom_highest_cells: PerClass,
    /// Gauge: cells waiting in the egress queue.
    pub queue_cells: PerClass,
    /// Watermark of `queue_cells`.
    pub queue_highest_cells: PerClass,
    /// Gauge, a mask: priorities for which this port holds its peer at XOFF.
    pub xoff_mask: Counter,
    /// Gauge, a mask: priorities that the peer holds at XOFF.
    pub paused_mask: Counter,
}

/// Buckets of the poll-gap histogram: the n-th counts gaps below 2^n ns, the last everything above.
pub const GAP_BUCKETS: usize = 24;

/// What one lcore counts.
#[derive(Debug, Default)]
pub struct LcoreCounters {
    /// Polls of all ports.
    pub polls: Counter,
    /// Polls that moved a frame.
    pub busy_polls: Counter,
    /// Histogram of the time between polls, by power of two nanoseconds.
    pub poll_gap: [Counter; GAP_BUCKETS],
    /// Sum of those times in nanoseconds.
    pub poll_gap_sum_ns: Counter,
    /// The longest of them in nanoseconds.
    pub poll_gap_highest_ns: Counter,
    /// Gauge: entries in the forwarding database.
    pub fdb_entries: Counter,
    /// Addresses learned (or moved to another port).
    pub fdb_learned: Counter,
    /// Addresses not learned because their buckets were full of younger or static ones.
    pub fdb_full: Counter,
    /// Gauge: cells in use of the lossless shared pool.
    pub lossless_used_cells: Counter,
    /// Watermark of `lossless_used_cells`.
    pub lossless_used_highest_cells: Counter,
    /// Gauge: cells in use of the lossy shared pool.
    pub lossy_used_cells: Counter,
    /// Watermark of `lossy_used_cells`.
    pub lossy_used_highest_cells: Counter,
    /// Gauge: frames held in egress queues.
    pub held_frames: Counter,
}

/// All counters of a switch, shared between the lcore that writes and those who look on.
#[derive(Debug)]
pub struct Counters {
    /// By port index.
    pub ports: Box<[PortCounters]>,
    /// Of the one lcore there is.
    pub lcore: LcoreCounters,
}

impl Counters {
    /// Zeros for `ports` ports.
    #[must_use]
    pub fn new(ports: usize) -> Self {
        Self { ports: (0..ports).map(|_| PortCounters::default()).collect(), lcore: LcoreCounters::default() }
    }
}
