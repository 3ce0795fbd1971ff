//! Metrics of the lcores: their polls, their hand-offs, and their forwarding databases.

use super::family::{Families, Family, watermark};
use crate::plan::counters::GAP_BUCKETS;
use crate::stats::snapshot::{LcoreSnapshot, Snapshot};
use crate::stats::switch_view::SwitchView;
use crate::units::Nanos;

/// Converts nanoseconds to seconds by a division, so that short decimals stay short.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

type Row = (&'static str, &'static str, fn(&LcoreSnapshot) -> u64);

const COUNTERS: [Row; 5] = [
    ("holdfast_polls_total", "Polls of all ports of the lcore.", |lcore| lcore.polls),
    ("holdfast_busy_polls_total", "Polls that moved a frame.", |lcore| lcore.busy_polls),
    ("holdfast_fdb_learned_total", "Addresses learned or moved.", |lcore| lcore.fdb_learned),
    ("holdfast_fdb_full_total", "Addresses not learned: no room.", |lcore| lcore.fdb_full),
    ("holdfast_handed_off_frames_total", "Frames handed to the egress port's lcore.", |lcore| lcore.handed_off_frames),
];

const GAUGES: [Row; 2] = [
    ("holdfast_held_frames", "Frames in egress queues.", |lcore| lcore.held_frames),
    ("holdfast_fdb_entries", "Entries of the forwarding database.", |lcore| lcore.fdb_entries),
];

/// The watermark of frames.
const HIGHEST: Row = ("holdfast_handoff_highest_frames", "Most frames in one hand-off ring to the lcore", |lcore| {
    lcore.handoff_highest_frames
});

/// Watermarks of times: whether only resting lcores have it, and its row in nanoseconds.
const HIGHEST_TIMES: [(bool, Row); 2] = [
    (false, ("holdfast_poll_gap_highest_seconds", "Longest time between polls", |lcore| lcore.poll_gap_highest_ns)),
    (
        true,
        ("holdfast_rest_overshoot_highest_seconds", "Longest delay of the end of a rest", |lcore| {
            lcore.rest_overshoot_highest_ns
        }),
    ),
];

/// Polls and poll gaps, forwarding database, held frames and handed-off frames of each lcore.
pub(super) fn lcores(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot, ever: &Snapshot) {
    let numbers: Vec<String> = (0..snapshot.lcores.len()).map(|number| number.to_string()).collect();
    let lcores = || numbers.iter().map(String::as_str).zip(&snapshot.lcores);
    for (name, help, of) in COUNTERS {
        let family = families.counter(name, help);
        lcores().for_each(|(number, lcore)| family.add(&[("lcore", number)], of(lcore)));
    }
    for (name, help, of) in GAUGES {
        let family = families.gauge(name, help);
        lcores().for_each(|(number, lcore)| family.add(&[("lcore", number)], of(lcore)));
    }
    let help = "Time between polls, which headroom must cover.";
    let family = families.histogram("holdfast_poll_gap_seconds", help);
    for (number, lcore) in lcores() {
        add_histogram(family, number, &lcore.poll_gap, lcore.poll_gap_sum_ns);
    }
    let help = "Polls in histogram buckets that begin at `lcores.poll_gap` or later.";
    let family = families.counter("holdfast_late_polls_total", help);
    for (number, lcore) in lcores() {
        family.add(&[("lcore", number)], late_polls(lcore, switch_view.spec.poll_gap));
    }
    (0..2).for_each(|side| watermarks(families, switch_view, [snapshot, ever], side));
    let help = "Longest time between polls that headroom covers: `lcores.poll_gap`.";
    let family = families.gauge("holdfast_poll_gap_configured_seconds", help);
    family.add_real(&[], seconds(switch_view.spec.poll_gap.0));
    let family = families.gauge("holdfast_port_lcore_info", "1 for the owner of the port.");
    for port in &switch_view.spec.ports {
        family.add(&[("port", &port.name), ("lcore", &port.lcore.to_string())], 1);
    }
    rests(families, switch_view, snapshot);
}

/// Watermarks by lcore: those that can be cleared, or with `side` 1 those since the start.
fn watermarks(families: &mut Families, switch_view: &SwitchView, snapshots: [&Snapshot; 2], side: usize) {
    let lcores = || snapshots[side].lcores.iter().zip(&switch_view.rests).enumerate();
    let (name, help, _) = &watermark(HIGHEST.0, HIGHEST.1, snapshots)[side];
    let family = families.gauge(name, help);
    for (number, (lcore, _)) in lcores() {
        family.add(&[("lcore", &number.to_string())], HIGHEST.2(lcore));
    }
    for (only_resting, (name, what, of)) in HIGHEST_TIMES {
        let (name, help, _) = &watermark(name, what, snapshots)[side];
        let family = families.gauge(name, help);
        for (number, (lcore, _)) in lcores().filter(|(_, (_, rest))| rest.is_some() || !only_resting) {
            family.add_real(&[("lcore", &number.to_string())], seconds(of(lcore)));
        }
    }
}

/// Polls whose gap was certainly longer than `allowed`: those in buckets that begin at or above it.
fn late_polls(lcore: &LcoreSnapshot, allowed: Nanos) -> u64 {
    let beyond = |bucket: usize| bucket > 0 && 1 << (bucket - 1) >= allowed.0;
    lcore.poll_gap.iter().enumerate().filter(|(bucket, _)| beyond(*bucket)).map(|(_, count)| count).sum()
}

/// Rests of the lcores that are configured to rest.
fn rests(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) {
    let lcores = snapshot.lcores.iter().zip(&switch_view.rests).enumerate();
    let lcores = lcores.filter_map(|(number, (lcore, longest))| Some((number.to_string(), lcore, (*longest)?)));
    let lcores: Vec<_> = lcores.collect();
    let family = families.gauge("holdfast_rest_configured_seconds", "Longest rest: `lcores.idle.longest`.");
    for (number, _, longest) in &lcores {
        family.add_real(&[("lcore", number)], seconds(longest.0));
    }
    let help = "Time at rest, also part of poll gaps.";
    let family = families.counter("holdfast_rested_seconds_total", help);
    for (number, lcore, _) in &lcores {
        family.add_real(&[("lcore", number)], seconds(lcore.rested_ns));
    }
    let help = "Delay of the ends of rests.";
    let family = families.histogram("holdfast_rest_overshoot_seconds", help);
    for (number, lcore, _) in &lcores {
        add_histogram(family, number, &lcore.rest_overshoot, lcore.rest_overshoot_sum_ns);
    }
}

/// Adds a histogram of times with bounds at powers of two nanoseconds; the last bucket is unbounded.
fn add_histogram(family: &mut Family, lcore: &str, buckets: &[u64; GAP_BUCKETS], sum_ns: u64) {
    let (below, beyond) = buckets.split_at(GAP_BUCKETS - 1);
    let bounds = below.iter().enumerate().map(|(power, count)| (seconds(1 << power), *count));
    family.add_histogram(&[("lcore", lcore)], &bounds.collect::<Vec<_>>(), beyond.iter().sum(), seconds(sum_ns));
}
