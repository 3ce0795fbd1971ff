//! The switch as a Prometheus collector: each scrape converts a snapshot to families of metrics.
//!
//! Conventions
//! - Counters end in `_total`. Sizes are in bytes (whole cells), times in seconds. Labels: `port` by name, `tc` for a
//!   traffic class, `priority` for a priority group or PFC priority, `queue` for an egress queue.
//! - Every series exists from the first scrape on, so that `rate()` includes the first event. 30 reasons, 9 rows and 64
//!   ports would be 17,000 series for drops alone. So only drops for want of buffer, and other losses of lossless
//!   frames that could have been forwarded, are split by traffic class. All other reasons are the fault of the frame or
//!   of the configuration, and have `tc="any"`: about 70 series for each port. Summing over `tc` is right for each
//!   reason.
//! - A feature that is not configured (a watchdog, a shared headroom pool, insurance) has no series at all.
//! - `lcore` is the number of an lcore. State that lcores share, such as pools, is one series.
//! - Limits (alpha, eta, reserve) are gauges, and the configuration has a hash, so that a change is visible.

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

/// Collects all metrics of one switch.
#[derive(Debug)]
pub struct SwitchCollector {
    current: Arc<Current>,
    began: Instant,
    /// The families of the previous scrape.
    families: Mutex<Families>,
}

impl SwitchCollector {
    /// Returns a collector for `current`.
    #[must_use]
    pub fn new(current: Arc<Current>) -> Self {
        Self { current, began: Instant::now(), families: Mutex::default() }
    }

    /// All current metrics in the text format of Prometheus.
    #[must_use]
    pub fn text(&self) -> String {
        let mut families = self.families.lock().unwrap_or_else(PoisonError::into_inner);
        let subject = self.current.get();
        collect(&mut families, &subject, &Snapshot::take(&subject, self.began.elapsed()))
    }
}

/// Formats all families of `snapshot`.
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

/// Version, configuration hash, start time and readiness.
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
