//! The switch as a Prometheus collector: families of metrics made from a snapshot at each scrape.
//!
//! What there is
//! - Counters end in `_total`, sizes are bytes (whole cells), times seconds. Labels: `port` by name, `tc` for a traffic
//!   class, `priority` for a priority group or PFC priority, `queue` for an egress queue.
//! - Every series exists from the first scrape on, so that `rate()` sees the first event. To keep that affordable
//!   (26 reasons, 9 rows, 64 ports would be 15,000 series for drops alone) drops for want of buffer are split by
//!   traffic class, and so is whatever else lossless classes lose of frames that were fit to be forwarded; all other
//!   reasons, which are the frame's own fault or the configuration's, carry `tc="any"`: some 60 series a port. Summing
//!   over `tc` is right for each reason.
//!   What is not configured (a watchdog, a shared headroom pool, insurance) has no series at all.
//! - `lcore` is an lcore's number. What lcores share, as pools, is one series.
//! - Limits (alpha, eta, reserve) are gauges, and the configuration has a hash, so that a changed one is seen.

mod buffer;
mod configured;
mod device;
mod family;
mod flows;
mod lcore;
mod port;
mod watchdog;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::current::Current;
use super::snapshot::Snapshot;
use super::subject::Subject;
use family::Families;

/// Collects everything about one switch.
#[derive(Debug)]
pub struct SwitchCollector {
    current: Arc<Current>,
    began: Instant,
    /// Those of the scrape before.
    families: Mutex<Families>,
}

impl SwitchCollector {
    /// A collector for `current`.
    #[must_use]
    pub fn new(current: Arc<Current>) -> Self {
        Self { current, began: Instant::now(), families: Mutex::default() }
    }

    /// All metrics as they are now, in Prometheus' text format.
    #[must_use]
    pub fn text(&self) -> String {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let subject = self.current.get();
        collect(&mut families, &subject, &Snapshot::take(&subject, self.began.elapsed()))
    }
}

/// All families of `snapshot`.
fn collect(families: &mut Families, subject: &Subject, snapshot: &Snapshot) -> String {
    let ever = &subject.watermarks.since_start(snapshot);
    families.rewind();
    program(families, subject);
    port::traffic(families, subject, snapshot);
    port::drops(families, subject, snapshot);
    port::flow_control(families, subject, snapshot);
    port::backlog(families, subject, snapshot, ever);
    watchdog::watchdogs(families, subject, snapshot);
    configured::limits(families, subject);
    buffer::groups(families, subject, snapshot, ever);
    buffer::thresholds(families, subject, snapshot);
    buffer::headroom_needs(families, subject, snapshot);
    buffer::port_reserves(families, subject, snapshot);
    buffer::insurance(families, subject, snapshot, ever);
    buffer::queues(families, subject, snapshot, ever);
    buffer::pools(families, subject, snapshot, ever);
    device::devices(families, subject, snapshot);
    device::pools(families, subject);
    lcore::lcores(families, subject, snapshot, ever);
    if let Some(hosts) = &subject.hosts {
        flows::flows(families, hosts);
    }
    families.text()
}

/// What runs, by what configuration, since when, and whether it is well.
fn program(families: &mut Families, subject: &Subject) {
    families.gauge("holdfast_build_info", "Version of the program.").add(&[("version", subject.version)], 1);
    let help = "Hash of the configuration: any changed setting changes it, by whatever words.";
    families.gauge("holdfast_config_info", help).add(&[("hash", &format!("{:016x}", subject.config_hash))], 1);
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    families
        .gauge("holdfast_start_time_seconds", "When the switch began, since the epoch.")
        .add_real(&[], seconds(subject.watermarks.began()));
    families
        .gauge("holdfast_watermarks_cleared_time_seconds", "When watermarks were cleared last, or began.")
        .add_real(&[], seconds(subject.watermarks.cleared()));
    let state = subject.health.look(&subject.counters, Instant::now());
    let help = "1 if every lcore polls and ports have had their time to prove their PFC, as /readyz says.";
    families.gauge("holdfast_ready", help).add(&[], u64::from(state.is_ready()));
}

#[cfg(test)]
mod tests;
