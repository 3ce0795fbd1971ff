//! A snapshot of all counters as plain numbers, from which tables, pictures and metrics are made.
//!
//! Counters are read one after another while the switch runs, so those of one snapshot may be a poll apart.

use std::time::Duration;

use super::device::DeviceStats;
use super::peer::PeerSnapshot;
use super::switch_view::SwitchView;
use crate::mmu::{BufferPlan, Threshold};
use crate::plan::Counters;
use crate::plan::counters::{Counter, GAP_BUCKETS, LcoreCounters, PortCounters};
use crate::plan::drops::{DropReason, PerReason};
use crate::route::PuntCause;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Cells, Nanos};

/// One value for each class.
pub type Values = [u64; CLASSES];

/// Drops by traffic class and reason; the last row is for frames without a class.
pub type Drops = [PerReason<u64>; CLASSES + 1];

/// A value of a snapshot, which is read from a counter or from several.
pub(super) trait Reading<C> {
    fn read(counter: &C) -> Self;
}

impl Reading<Counter> for u64 {
    fn read(counter: &Counter) -> Self {
        counter.get()
    }
}

impl Reading<Counter> for bool {
    fn read(counter: &Counter) -> Self {
        counter.get() != 0
    }
}

impl Reading<Counter> for ClassSet {
    fn read(counter: &Counter) -> Self {
        ClassSet::from_bits(counter.get() as u8)
    }
}

impl<T: Reading<C>, C, const N: usize> Reading<[C; N]> for [T; N] {
    fn read(counters: &[C; N]) -> Self {
        counters.each_ref().map(T::read)
    }
}

impl Reading<PerReason<Counter>> for PerReason<u64> {
    fn read(counters: &PerReason<Counter>) -> Self {
        PerReason(counters.each_ref().map(Counter::get))
    }
}

/// Makes a struct of values that are read from counters of the same names, and of others that its owner sets.
macro_rules! snapshot {
    ($(#[$meta:meta])* $name:ident of $counters:ty {
        $($field:ident: $kind:ty,)*
    } and {
        $($(#[$doc:meta])* $other:ident: $other_kind:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone)]
        #[allow(missing_docs, reason = "each is documented where it is counted")]
        pub struct $name {
            $(pub $field: $kind,)*
            $($(#[$doc])* pub $other: $other_kind,)*
        }

        impl $name {
            fn take(counters: &$counters) -> Self {
                Self { $($field: Reading::read(&counters.$field),)* $($other: Default::default(),)* }
            }
        }
    };
}

snapshot! {
    /// One port's counters; each field as in [`PortCounters`].
    PortSnapshot of PortCounters {
        rx_frames: Values,
        rx_bytes: Values,
        tx_frames: Values,
        tx_bytes: Values,
        drops: Drops,
        pfc_tx_xoff: Values,
        pfc_tx_xon: Values,
        queue_stops: Values,
        rx_queue_carries: Values,
        pfc_rx_xoff: Values,
        pfc_rx_xon: Values,
        pfc_tx_frames: u64,
        pfc_rx_frames: u64,
        pause_rx_frames: u64,
        ecn_marked: Values,
        cnms_made: Values,
        cnms_sent: u64,
        roce_frames: [u64; 2],
        max_rate_held_ns: Values,
        group_used_cells: Values,
        group_headroom_cells: Values,
        group_used_highest_cells: Values,
        group_headroom_highest_cells: Values,
        queue_cells: Values,
        queue_highest_cells: Values,
        xoff_mask: ClassSet,
        paused_mask: ClassSet,
        pfc_tx_paused_ns: Values,
        pfc_rx_paused_ns: Values,
        pfc_rx_ignored: Values,
        group_shared_cells: Values,
        group_shared_highest_cells: Values,
        reserve_used_cells: [u64; 2],
        insurance_cells: u64,
        insurance_highest_cells: u64,
        port_xoff: bool,
        backlog_frames: u64,
        backlog_highest_frames: u64,
        backlog_xoffs: u64,
        backlog_held_ns: u64,
        watchdog_storms: Values,
        watchdog_restores: Values,
        watchdog_mask: ClassSet,
        egress_stuck: bool,
        egress_stucks: u64,
        link_ups: u64,
    } and {
        /// [`Counters::punt_policed_at`].
        punt_policed: [u64; PuntCause::COUNT],
        /// [`Counters::fdb_stations`], [`Counters::fdb_evicted`] and [`Counters::fdb_refused`].
        fdb_stations: u64,
        /// See `fdb_stations`.
        fdb_evicted: u64,
        /// See `fdb_stations`.
        fdb_refused: u64,
        /// Neighbours of the router in the port's share that gave way to others.
        neighbours_evicted: u64,
        /// Frames that Linux did not get because their sender had no place in its neighbours.
        linux_withheld: u64,
        /// The answers of the peer to XOFF.
        peer: PeerSnapshot,
        device: DeviceStats,
        /// Losses by class, if classes have become lossless or lossy: see [`PortSnapshot::lost`].
        losses: Option<Box<[PerReason<u64>; CLASSES]>>,
        /// Classes that are lossless, or were so at some time.
        ever_lossless: ClassSet,
    }
}

impl PortSnapshot {
    /// Reads the counters of `port`. At a joint port, what the lcores count adds up, and so do their watermarks: their
    /// sum is at least the highest depth of the queue.
    fn of(counters: &Counters, port: usize, device: DeviceStats) -> Self {
        let mut all = Self { device, ..Self::take(&counters.ports[port]) };
        all.punt_policed = counters.punt_policed_at(port);
        all.fdb_stations = counters.fdb_stations(port);
        all.fdb_evicted = counters.fdb_evicted(port);
        all.fdb_refused = counters.fdb_refused(port);
        all.peer = PeerSnapshot::take(&counters.ports[port]);
        for guest in counters.of_port(port).skip(1).map(Self::take) {
            let add = |sum: &mut Values, more: &Values| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            add(&mut all.tx_frames, &guest.tx_frames);
            add(&mut all.tx_bytes, &guest.tx_bytes);
            add(&mut all.ecn_marked, &guest.ecn_marked);
            add(&mut all.queue_cells, &guest.queue_cells);
            add(&mut all.queue_highest_cells, &guest.queue_highest_cells);
            for (row, more) in all.drops.iter_mut().zip(&guest.drops) {
                row.0.iter_mut().zip(&more.0).for_each(|(sum, more)| *sum += more);
            }
            all.pfc_tx_frames += guest.pfc_tx_frames;
            all.egress_stuck |= guest.egress_stuck;
            all.egress_stucks += guest.egress_stucks;
        }
        all
    }

    /// Cells that frames received on this port hold.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        self.group_used_cells.iter().chain(&self.group_headroom_cells).sum()
    }

    /// Drops in `class`, which is or was lossless, while it was so.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn lost(&self, class: usize) -> &PerReason<u64> {
        self.losses.as_ref().map_or(&self.drops[class], |losses| &losses[class])
    }

    /// Drops in classes while they were lossless.
    #[must_use]
    pub fn all_lost(&self) -> u64 {
        self.ever_lossless.iter().flat_map(|class| self.lost(class)).sum()
    }

    /// Drops in `row` for `reason`: while its class was lossless, and else.
    #[must_use]
    pub fn dropped_by_kind(&self, row: usize, reason: DropReason) -> [u64; 2] {
        let all = self.drops[row][reason as usize];
        let is_of_class = row < CLASSES && self.ever_lossless.contains(row);
        let lost = if is_of_class { self.lost(row)[reason as usize] } else { 0 };
        [lost, all - lost]
    }

    /// Drops in the rows for which `is_counted` is true.
    /// [`UNCLASSIFIED`](crate::plan::counters::UNCLASSIFIED) is one of them.
    #[must_use]
    pub fn dropped(&self, is_counted: impl Fn(usize) -> bool) -> u64 {
        let rows = self.drops.iter().enumerate().filter(|(row, _)| is_counted(*row));
        rows.flat_map(|(_, reasons)| reasons).sum()
    }
}

snapshot! {
    /// The counters of one lcore, or of all lcores together; each field as in [`LcoreCounters`].
    LcoreSnapshot of LcoreCounters {
        polls: u64,
        busy_polls: u64,
        poll_gap: [u64; GAP_BUCKETS],
        poll_gap_sum_ns: u64,
        poll_gap_highest_ns: u64,
        fdb_entries: u64,
        fdb_learned: u64,
        fdb_full: u64,
        lossless_used_cells: u64,
        lossless_used_highest_cells: u64,
        lossy_used_cells: u64,
        lossy_used_highest_cells: u64,
        headroom_pool_used_cells: u64,
        headroom_pool_highest_cells: u64,
        held_frames: u64,
        handed_off_frames: u64,
        handoff_highest_frames: u64,
        rests: u64,
        rested_ns: u64,
        rest_overshoot: [u64; GAP_BUCKETS],
        rest_overshoot_sum_ns: u64,
        rest_overshoot_highest_ns: u64,
    } and {}
}

impl LcoreSnapshot {
    /// Combines the counters of this lcore and another. Counts add up, and so does the use of the shared pools: each
    /// lcore reports the use by its own groups. Watermarks do not add up: each lcore reports the highest use of the
    /// whole pool.
    ///
    /// All lcores report the use of the headroom pool, and each has a copy of the forwarding database. There the
    /// largest value counts: if they differ by a poll, it is the latest.
    fn with(mut self, other: &Self) -> Self {
        self.polls += other.polls;
        self.busy_polls += other.busy_polls;
        self.poll_gap.iter_mut().zip(other.poll_gap).for_each(|(sum, count)| *sum += count);
        self.poll_gap_sum_ns += other.poll_gap_sum_ns;
        self.poll_gap_highest_ns = self.poll_gap_highest_ns.max(other.poll_gap_highest_ns);
        self.fdb_entries = self.fdb_entries.max(other.fdb_entries);
        self.fdb_learned += other.fdb_learned;
        self.fdb_full += other.fdb_full;
        self.lossless_used_cells += other.lossless_used_cells;
        self.lossless_used_highest_cells = self.lossless_used_highest_cells.max(other.lossless_used_highest_cells);
        self.lossy_used_cells += other.lossy_used_cells;
        self.lossy_used_highest_cells = self.lossy_used_highest_cells.max(other.lossy_used_highest_cells);
        self.headroom_pool_used_cells = self.headroom_pool_used_cells.max(other.headroom_pool_used_cells);
        self.headroom_pool_highest_cells = self.headroom_pool_highest_cells.max(other.headroom_pool_highest_cells);
        self.held_frames += other.held_frames;
        self.handed_off_frames += other.handed_off_frames;
        self.handoff_highest_frames = self.handoff_highest_frames.max(other.handoff_highest_frames);
        self.rests += other.rests;
        self.rested_ns += other.rested_ns;
        self.rest_overshoot.iter_mut().zip(other.rest_overshoot).for_each(|(sum, count)| *sum += count);
        self.rest_overshoot_sum_ns += other.rest_overshoot_sum_ns;
        self.rest_overshoot_highest_ns = self.rest_overshoot_highest_ns.max(other.rest_overshoot_highest_ns);
        self
    }

    /// The time in nanoseconds below which `per_mille` thousandths of all poll gaps lie: a power of two, or the longest
    /// gap if that is less. `None` before the first gap.
    #[must_use]
    pub fn poll_gap_quantile_ns(&self, per_mille: u64) -> Option<u64> {
        quantile_ns(&self.poll_gap, per_mille, self.poll_gap_highest_ns)
    }

    /// The time in nanoseconds below which `per_mille` thousandths of all delays after rests lie: a power of two, or
    /// the longest delay if that is less. `None` before the first rest.
    #[must_use]
    pub fn rest_overshoot_quantile_ns(&self, per_mille: u64) -> Option<u64> {
        quantile_ns(&self.rest_overshoot, per_mille, self.rest_overshoot_highest_ns)
    }
}

/// The power of two nanoseconds below which `per_mille` thousandths of the values in `buckets` lie, or `highest` if
/// that is less.
fn quantile_ns(buckets: &[u64; GAP_BUCKETS], per_mille: u64, highest: u64) -> Option<u64> {
    let total: u64 = buckets.iter().sum();
    let rank = (u128::from(total) * u128::from(per_mille)).div_ceil(1000).max(1);
    let mut below = 0;
    let bucket = buckets.iter().position(|count| {
        below += u128::from(*count);
        below >= rank
    })?;
    Some(if bucket == GAP_BUCKETS - 1 { highest } else { highest.min(1 << bucket) })
}

/// All counters at one time.
#[derive(Debug, Default, Clone)]
pub struct Snapshot {
    /// Time since the start of the switch.
    pub at: Duration,
    /// Counters of the ports, by port index.
    pub ports: Vec<PortSnapshot>,
    /// Counters of the dataplane lcores, by number.
    pub lcores: Vec<LcoreSnapshot>,
    /// Counters of all lcores together.
    pub lcore: LcoreSnapshot,
}

impl Snapshot {
    /// Reads all counters of `switch_view`; `at` is the time since the start of the switch.
    #[must_use]
    pub fn take(switch_view: &SwitchView, at: Duration) -> Self {
        let Counters { ports, lcores, .. } = &*switch_view.counters;
        let device = |port: usize| switch_view.devices.get(port).map(super::DeviceCounters::read).unwrap_or_default();
        let lcores: Vec<_> = lcores.iter().map(|lcore| LcoreSnapshot::take(lcore)).collect();
        let router = switch_view.router.as_ref();
        let of_port = |port: usize| {
            let snapshot = PortSnapshot::of(&switch_view.counters, port, device(port));
            PortSnapshot {
                neighbours_evicted: router.map_or(0, |router| router.evicted(port)),
                linux_withheld: router.map_or(0, |router| router.withheld(port)),
                losses: switch_view.former.losses(port, &snapshot.drops),
                ever_lossless: switch_view.ever_lossless(),
                ..snapshot
            }
        };
        Self {
            at,
            ports: (0..ports.len()).map(of_port).collect(),
            lcore: lcores.iter().fold(LcoreSnapshot::default(), LcoreSnapshot::with),
            lcores,
        }
    }

    /// The current limit of `threshold` on a share of the lossless or the lossy pool of `plan`: at most the size of the
    /// pool.
    #[must_use]
    pub fn limit(&self, plan: &BufferPlan, threshold: Threshold, lossless: bool) -> Cells {
        let (size, used) = match lossless {
            true => (plan.lossless_shared, self.lcore.lossless_used_cells),
            false => (plan.lossy_shared, self.lcore.lossy_used_cells),
        };
        threshold.limit(Cells(size.0.saturating_sub(cells(used).0))).min(size)
    }

    /// The longest time between two polls of port `port`, which is that of its lcore.
    #[must_use]
    pub fn longest_poll_gap(&self, switch_view: &SwitchView, port: usize) -> Nanos {
        let lcore = switch_view.spec.ports.get(port).and_then(|port| self.lcores.get(usize::from(port.lcore)));
        Nanos(lcore.map_or(0, |lcore| lcore.poll_gap_highest_ns))
    }

    /// Cells that all frames in the switch hold.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        self.ports.iter().map(PortSnapshot::held_cells).sum()
    }

    /// The sum of a value over all ports.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&PortSnapshot) -> u64) -> u64 {
        self.ports.iter().map(of).sum()
    }
}

/// Converts the value of a gauge to a count of cells; saturates.
#[must_use]
pub fn cells(count: u64) -> Cells {
    Cells(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fixture::quiet;
    use super::*;

    #[test]
    fn snapshot_sums_counters_of_lcores_and_takes_the_highest_watermark() {
        let mut switch_view = quiet();
        switch_view.counters = Arc::new(Counters::new(2, 2));
        switch_view.spec.ports[1].lcore = 1;
        for (lcore, more) in switch_view.counters.lcores.iter().zip([0, 5]) {
            lcore.polls.set(100 + more);
            lcore.poll_gap[9].add(10);
            lcore.poll_gap[12].add(more);
            lcore.poll_gap_highest_ns.set(300 + 1000 * more);
            lcore.lossless_used_cells.set(40 + more);
            lcore.lossless_used_highest_cells.set(90 + more);
            lcore.headroom_pool_used_cells.set(7 + more);
            lcore.headroom_pool_highest_cells.set(8 + more);
            lcore.held_frames.set(2);
            lcore.handed_off_frames.add(1);
            lcore.handoff_highest_frames.raise(more);
            lcore.rests.set(10 + more);
            lcore.rested_ns.set(1000);
            lcore.rest_overshoot[14].add(10 + more);
            lcore.rest_overshoot_highest_ns.set(9000 + more);
            lcore.fdb_entries.set(4);
        }
        let snapshot = Snapshot::take(&switch_view, Duration::ZERO);
        let all = &snapshot.lcore;
        assert_eq!((snapshot.lcores.len(), all.polls, all.held_frames, all.handed_off_frames), (2, 205, 4, 2));
        assert_eq!((all.lossless_used_cells, all.lossless_used_highest_cells), (85, 95));
        assert_eq!((all.headroom_pool_used_cells, all.headroom_pool_highest_cells), (12, 13));
        assert_eq!((all.handoff_highest_frames, all.fdb_entries), (5, 4));
        assert_eq!((all.poll_gap_quantile_ns(500), all.poll_gap_quantile_ns(990)), (Some(512), Some(4096)));
        assert_eq!((all.rests, all.rested_ns, all.rest_overshoot_highest_ns), (25, 2000, 9005));
        assert_eq!(all.rest_overshoot_quantile_ns(990), Some(9005), "the highest is less than the bucket's end");
        let gaps = [0, 1].map(|port| snapshot.longest_poll_gap(&switch_view, port).0);
        assert_eq!(gaps, [300, 5300]);
    }
}
