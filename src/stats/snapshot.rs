//! All counters at one time, as plain numbers: what tables, pictures and metrics are made from.
//!
//! Counters are read one after another while the switch runs on, so those of one snapshot may be a poll apart.

use std::time::Duration;

use super::device::DeviceStats;
use super::subject::Subject;
use crate::dataplane::counters::{Counter, GAP_BUCKETS, LcoreCounters, PerClass, PortCounters};
use crate::dataplane::{Counters, DropReason};
use crate::qos::CLASSES;
use crate::units::Cells;

/// One value a class.
pub type Values = [u64; CLASSES];

/// Drops by traffic class (the last row: before there was one) and reason.
pub type Drops = [[u64; DropReason::COUNT]; CLASSES + 1];

/// One port's counters; each field as in [`PortCounters`].
#[derive(Debug, Default, Clone)]
#[allow(missing_docs, reason = "each is documented where it is counted")]
pub struct PortSnapshot {
    pub rx_frames: Values,
    pub rx_bytes: Values,
    pub tx_frames: Values,
    pub tx_bytes: Values,
    pub drops: Drops,
    pub pfc_tx_xoff: Values,
    pub pfc_tx_xon: Values,
    pub pfc_rx_xoff: Values,
    pub pfc_rx_xon: Values,
    pub pfc_tx_frames: u64,
    pub pfc_rx_frames: u64,
    pub pause_rx_frames: u64,
    pub ecn_marked: Values,
    pub group_used_cells: Values,
    pub group_headroom_cells: Values,
    pub group_used_highest_cells: Values,
    pub group_headroom_highest_cells: Values,
    pub queue_cells: Values,
    pub queue_highest_cells: Values,
    pub xoff_mask: u8,
    pub paused_mask: u8,
    pub device: DeviceStats,
}

impl PortSnapshot {
    fn take(port: &PortCounters, device: DeviceStats) -> Self {
        Self {
            rx_frames: values(&port.rx_frames),
            rx_bytes: values(&port.rx_bytes),
            tx_frames: values(&port.tx_frames),
            tx_bytes: values(&port.tx_bytes),
            drops: port.drops.each_ref().map(|row| row.each_ref().map(Counter::get)),
            pfc_tx_xoff: values(&port.pfc_tx_xoff),
            pfc_tx_xon: values(&port.pfc_tx_xon),
            pfc_rx_xoff: values(&port.pfc_rx_xoff),
            pfc_rx_xon: values(&port.pfc_rx_xon),
            pfc_tx_frames: port.pfc_tx_frames.get(),
            pfc_rx_frames: port.pfc_rx_frames.get(),
            pause_rx_frames: port.pause_rx_frames.get(),
            ecn_marked: values(&port.ecn_marked),
            group_used_cells: values(&port.group_used_cells),
            group_headroom_cells: values(&port.group_headroom_cells),
            group_used_highest_cells: values(&port.group_used_highest_cells),
            group_headroom_highest_cells: values(&port.group_headroom_highest_cells),
            queue_cells: values(&port.queue_cells),
            queue_highest_cells: values(&port.queue_highest_cells),
            xoff_mask: port.xoff_mask.get() as u8,
            paused_mask: port.paused_mask.get() as u8,
            device,
        }
    }

    /// Cells that frames received here hold.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        self.group_used_cells.iter().chain(&self.group_headroom_cells).sum()
    }

    /// Drops in the rows that `is_counted` names; [`UNCLASSIFIED`](crate::dataplane::counters::UNCLASSIFIED) is one.
    #[must_use]
    pub fn dropped(&self, is_counted: impl Fn(usize) -> bool) -> u64 {
        let rows = self.drops.iter().enumerate().filter(|(row, _)| is_counted(*row));
        rows.flat_map(|(_, reasons)| reasons).sum()
    }
}

/// The lcore's counters; each field as in [`LcoreCounters`].
#[derive(Debug, Default, Clone)]
#[allow(missing_docs, reason = "each is documented where it is counted")]
pub struct LcoreSnapshot {
    pub polls: u64,
    pub busy_polls: u64,
    pub poll_gap: [u64; GAP_BUCKETS],
    pub poll_gap_sum_ns: u64,
    pub poll_gap_highest_ns: u64,
    pub fdb_entries: u64,
    pub fdb_learned: u64,
    pub fdb_full: u64,
    pub lossless_used_cells: u64,
    pub lossless_used_highest_cells: u64,
    pub lossy_used_cells: u64,
    pub lossy_used_highest_cells: u64,
    pub held_frames: u64,
}

impl LcoreSnapshot {
    fn take(lcore: &LcoreCounters) -> Self {
        Self {
            polls: lcore.polls.get(),
            busy_polls: lcore.busy_polls.get(),
            poll_gap: lcore.poll_gap.each_ref().map(Counter::get),
            poll_gap_sum_ns: lcore.poll_gap_sum_ns.get(),
            poll_gap_highest_ns: lcore.poll_gap_highest_ns.get(),
            fdb_entries: lcore.fdb_entries.get(),
            fdb_learned: lcore.fdb_learned.get(),
            fdb_full: lcore.fdb_full.get(),
            lossless_used_cells: lcore.lossless_used_cells.get(),
            lossless_used_highest_cells: lcore.lossless_used_highest_cells.get(),
            lossy_used_cells: lcore.lossy_used_cells.get(),
            lossy_used_highest_cells: lcore.lossy_used_highest_cells.get(),
            held_frames: lcore.held_frames.get(),
        }
    }

    /// The time in nanoseconds below which `per_mille` thousandths of all poll gaps lie: a power of two, or the longest
    /// gap if that is less. `None` before there was one.
    #[must_use]
    pub fn poll_gap_quantile_ns(&self, per_mille: u64) -> Option<u64> {
        let total: u64 = self.poll_gap.iter().sum();
        let rank = (u128::from(total) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut below = 0;
        let bucket = self.poll_gap.iter().position(|count| {
            below += u128::from(*count);
            below >= rank
        })?;
        let highest = self.poll_gap_highest_ns;
        Some(if bucket == GAP_BUCKETS - 1 { highest } else { highest.min(1 << bucket) })
    }
}

/// Everything at one time.
#[derive(Debug, Default, Clone)]
pub struct Snapshot {
    /// Time since the switch began.
    pub at: Duration,
    /// By port index.
    pub ports: Vec<PortSnapshot>,
    /// Of the one lcore.
    pub lcore: LcoreSnapshot,
}

impl Snapshot {
    /// Reads all counters of `subject` at time `at` since it began.
    #[must_use]
    pub fn take(subject: &Subject, at: Duration) -> Self {
        let Counters { ports, lcores } = &*subject.counters;
        let device = |port: usize| subject.devices.get(port).map(super::DeviceCounters::read).unwrap_or_default();
        Self {
            at,
            ports: ports.iter().enumerate().map(|(index, port)| PortSnapshot::take(port, device(index))).collect(),
            lcore: lcores.first().map(|lcore| LcoreSnapshot::take(lcore)).unwrap_or_default(),
        }
    }

    /// Cells that frames hold anywhere.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        self.ports.iter().map(PortSnapshot::held_cells).sum()
    }

    /// Sum over all ports.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        self.ports.iter().map(of).sum()
    }
}

/// A count of cells from a gauge; saturates.
#[must_use]
pub fn cells(count: u64) -> Cells {
    Cells(u32::try_from(count).unwrap_or(u32::MAX))
}

fn values(counters: &PerClass) -> Values {
    counters.each_ref().map(Counter::get)
}
