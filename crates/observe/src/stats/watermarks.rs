//! Watermarks since the start. The packet path has one watermark for each value, which an operator may clear. Before a
//! clearing its value is recorded here, so that the watermark since the start remains known.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::snapshot::{LcoreSnapshot, PortSnapshot, Snapshot};

/// The watermarks from before the last clearing.
#[derive(Debug)]
pub struct Watermarks {
    before: Mutex<Before>,
    /// Start of the switch.
    began: SystemTime,
}

#[derive(Debug)]
struct Before {
    /// The highest value of each watermark until the last clearing.
    highest: Snapshot,
    cleared: SystemTime,
}

impl Default for Watermarks {
    fn default() -> Self {
        let now = SystemTime::now();
        Self { before: Mutex::new(Before { highest: Snapshot::default(), cleared: now }), began: now }
    }
}

impl Watermarks {
    /// Records the watermarks of `last` before they are cleared. An increase between the last publication of gauges (at
    /// most 64 polls ago) and the clearing is lost.
    pub fn remember(&self, last: &Snapshot) {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        before.highest = raised(last.clone(), &before.highest);
        before.cleared = SystemTime::now();
    }

    /// Returns `now` with each watermark raised to its value since the start.
    #[must_use]
    pub fn since_start(&self, now: &Snapshot) -> Snapshot {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        raised(now.clone(), &before.highest)
    }

    /// Time of the last clearing, or of the start.
    #[must_use]
    pub fn cleared(&self) -> SystemTime {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).cleared
    }

    /// Start of the switch.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        self.began
    }
}

/// Returns `now` with each watermark raised to at least that of `before`.
fn raised(mut now: Snapshot, before: &Snapshot) -> Snapshot {
    for (port, before) in now.ports.iter_mut().zip(&before.ports) {
        raise_port(port, before);
    }
    for (lcore, before) in now.lcores.iter_mut().zip(&before.lcores) {
        raise_lcore(lcore, before);
    }
    raise_lcore(&mut now.lcore, &before.lcore);
    now
}

fn raise_port(port: &mut PortSnapshot, before: &PortSnapshot) {
    for (values, before) in [
        (&mut port.group_used_highest_cells, &before.group_used_highest_cells),
        (&mut port.group_shared_highest_cells, &before.group_shared_highest_cells),
        (&mut port.group_headroom_highest_cells, &before.group_headroom_highest_cells),
        (&mut port.queue_highest_cells, &before.queue_highest_cells),
    ] {
        values.iter_mut().zip(before).for_each(|(value, before)| *value = (*value).max(*before));
    }
    port.insurance_highest_cells = port.insurance_highest_cells.max(before.insurance_highest_cells);
    port.backlog_highest_frames = port.backlog_highest_frames.max(before.backlog_highest_frames);
}

fn raise_lcore(lcore: &mut LcoreSnapshot, before: &LcoreSnapshot) {
    for (value, before) in [
        (&mut lcore.poll_gap_highest_ns, before.poll_gap_highest_ns),
        (&mut lcore.lossless_used_highest_cells, before.lossless_used_highest_cells),
        (&mut lcore.lossy_used_highest_cells, before.lossy_used_highest_cells),
        (&mut lcore.headroom_pool_highest_cells, before.headroom_pool_highest_cells),
        (&mut lcore.handoff_highest_frames, before.handoff_highest_frames),
        (&mut lcore.rest_overshoot_highest_ns, before.rest_overshoot_highest_ns),
    ] {
        *value = (*value).max(before);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::run;
    use super::*;

    #[test]
    fn watermark_since_start_survives_clearing() {
        let switch_view = run();
        let take = || Snapshot::take(&switch_view, Duration::ZERO);
        let port = &switch_view.counters.ports[0];
        let lcore = &switch_view.counters.lcores[0];
        let ever = |snapshot: &Snapshot| {
            let ever = switch_view.watermarks.since_start(snapshot);
            let port = &ever.ports[0];
            (port.group_used_highest_cells[3], port.group_headroom_highest_cells[3], ever.lcore.poll_gap_highest_ns)
        };
        assert_eq!(ever(&take()), (2_500, 55, 21_500));

        switch_view.watermarks.remember(&take());
        port.group_used_highest_cells[3].set(10);
        port.group_headroom_highest_cells[3].set(0);
        lcore.poll_gap_highest_ns.set(100);
        assert_eq!(ever(&take()), (2_500, 55, 21_500));
        assert_eq!(take().ports[0].group_used_highest_cells[3], 10, "the other watermark starts again");
        port.group_headroom_highest_cells[3].set(60);
        assert_eq!(ever(&take()), (2_500, 60, 21_500), "each by itself");

        switch_view.watermarks.remember(&take());
        port.group_headroom_highest_cells[3].set(1);
        assert_eq!(ever(&take()), (2_500, 60, 21_500), "a second clearing keeps the watermarks since the start");
        assert!(switch_view.watermarks.cleared() >= switch_view.watermarks.began());
    }
}
