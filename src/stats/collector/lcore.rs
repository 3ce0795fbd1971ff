//! The lcore: its polls, and the forwarding database it keeps.

use super::family::Families;
use crate::dataplane::counters::GAP_BUCKETS;
use crate::stats::snapshot::Snapshot;

/// A nanosecond in seconds.
const NANO: f64 = 1e-9;

/// Polls and their gaps, forwarding database, frames held.
pub(super) fn lcore(families: &mut Families, snapshot: &Snapshot) {
    let lcore = &snapshot.lcore;
    families.counter("holdfast_polls_total", "Polls of all ports.").add(&[], lcore.polls);
    families.counter("holdfast_busy_polls_total", "Polls that moved a frame.").add(&[], lcore.busy_polls);
    let (below, beyond) = lcore.poll_gap.split_at(GAP_BUCKETS - 1);
    let bounds = below.iter().enumerate().map(|(power, count)| ((1_u64 << power) as f64 * NANO, *count));
    families.histogram(
        "holdfast_poll_gap_seconds",
        "Time between polls, which every lossless group's headroom must cover.",
        &bounds.collect::<Vec<_>>(),
        beyond.iter().sum(),
        lcore.poll_gap_sum_ns as f64 * NANO,
    );
    let help = "The longest time between polls ever.";
    families.gauge("holdfast_poll_gap_highest_seconds", help).add_real(&[], lcore.poll_gap_highest_ns as f64 * NANO);
    families.gauge("holdfast_held_frames", "Frames in egress queues.").add(&[], lcore.held_frames);
    families.gauge("holdfast_fdb_entries", "Entries in the forwarding database.").add(&[], lcore.fdb_entries);
    let help = "Addresses learned, or moved to another port.";
    families.counter("holdfast_fdb_learned_total", help).add(&[], lcore.fdb_learned);
    let help = "Addresses not learned since there was no room for them.";
    families.counter("holdfast_fdb_full_total", help).add(&[], lcore.fdb_full);
}
