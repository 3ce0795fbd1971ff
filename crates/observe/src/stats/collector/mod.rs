//! The switch as a Prometheus collector: each scrape converts a snapshot to families of metrics.
//!
//! Conventions
//! - Counters end in `_total`. Sizes are in bytes (whole cells), times in seconds. Labels: `port` by name, `tc` for a
//!   traffic class, `priority` for a priority group or PFC priority, `queue` for an egress queue.
//! - Every series exists from the first scrape on, so that `rate()` includes the first event. 46 reasons, 9 rows and 64
//!   ports would be 26,000 series for drops alone. So only drops for want of buffer, and other losses of lossless
//!   frames that could have been forwarded, are split by traffic class. All other reasons are the fault of the frame or
//!   of the configuration, and have `tc="any"`: about 70 series for each port. Summing over `tc` is right for each
//!   reason.
//! - A feature that is not configured (a watchdog, a shared headroom pool, insurance, routing) has no series at all.
//! - Next hops have series of their own up to a fixed number, since routes come from outside.
//! - `lcore` is the number of an lcore. State that lcores share, such as pools, is one series.
//! - Limits (alpha, eta, reserve) are gauges, and the configuration has a hash, so that a change is visible.

mod buffer;
mod configured;
mod device;
mod family;
mod faults;
mod flows;
mod lag;
mod lcore;
mod lldp;
mod mirror;
mod peer;
mod port;
mod routing;
mod watchdog;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::current::Current;
use super::snapshot::Snapshot;
use super::switch_view::SwitchView;
use crate::output;
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
        let switch_view = self.current.get();
        collect(&mut families, &switch_view, &Snapshot::take(&switch_view, self.began.elapsed()))
    }
}

/// Formats all families of `snapshot`.
fn collect(families: &mut Families, switch_view: &SwitchView, snapshot: &Snapshot) -> String {
    let ever = &switch_view.watermarks.since_start(snapshot);
    families.rewind();
    program(families, switch_view);
    port::traffic(families, switch_view, snapshot);
    port::stations(families, switch_view, snapshot);
    port::drops(families, switch_view, snapshot);
    port::flow_control(families, switch_view, snapshot);
    port::backlog(families, switch_view, snapshot, ever);
    watchdog::watchdogs(families, switch_view, snapshot);
    configured::limits(families, switch_view);
    buffer::groups(families, switch_view, snapshot, ever);
    buffer::thresholds(families, switch_view, snapshot);
    buffer::headroom_needs(families, switch_view, snapshot);
    buffer::port_reserves(families, switch_view, snapshot);
    buffer::insurance(families, switch_view, snapshot, ever);
    buffer::queues(families, switch_view, snapshot, ever);
    buffer::pools(families, switch_view, snapshot, ever);
    device::devices(families, switch_view, snapshot);
    device::pools(families, switch_view);
    lcore::lcores(families, switch_view, snapshot, ever);
    routing::routing(families, switch_view);
    if switch_view.router.is_some() || switch_view.lldp.is_some() {
        routing::exceptions(families, switch_view);
    }
    lldp::lldp(families, switch_view);
    faults::faults(families, switch_view);
    lag::lag(families, switch_view);
    mirror::mirrors(families, switch_view);
    if let Some(hosts) = &switch_view.hosts {
        flows::flows(families, hosts);
    }
    families.text()
}

/// Version, configuration hash, start time and readiness.
fn program(families: &mut Families, switch_view: &SwitchView) {
    let build = switch_view.build;
    let facts = [
        ("version", build.version),
        ("commit", build.commit),
        ("date", build.date),
        ("dpdk", build.dpdk),
        ("linkage", build.linkage),
        ("rustc", build.rustc),
        ("target", build.target),
        ("features", build.features),
    ];
    families
        .gauge("holdfast_build_info", "What the program was built from, as in `holdfast --version`.")
        .add(&facts, 1);
    let help = "Hash of the settings: it changes with any of them.";
    families
        .gauge("holdfast_config_info", help)
        .add(&[("hash", &format!("{:016x}", switch_view.settings.fingerprint()))], 1);
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    families
        .gauge("holdfast_start_time_seconds", "Start of the switch, since the epoch.")
        .add_real(&[], seconds(switch_view.watermarks.began()));
    families
        .gauge("holdfast_watermarks_cleared_time_seconds", "Last clearing of watermarks, or start, since the epoch.")
        .add_real(&[], seconds(switch_view.watermarks.cleared()));
    let state = switch_view.health.look(&switch_view.counters, Instant::now());
    let help = "1 if `/readyz` says ready.";
    families.gauge("holdfast_ready", help).add(&[], u64::from(state.is_ready()));
    let help = "Time since a [thread](monitoring.md#threads) last ran; 0 while it waits for a disk or a reader.";
    let family = families.gauge("holdfast_thread_pulse_age_seconds", help);
    // A writer that hangs on a file that was replaced has the name of its successor.
    let mut ages = BTreeMap::new();
    for thread in switch_view.health.threads() {
        let age = ages.entry(thread.name).or_insert(thread.age);
        *age = thread.age.max(*age);
    }
    for (name, age) in &ages {
        family.add_real(&[("thread", name)], age.as_secs_f64());
    }
    let help = "Lines left out because `stdout` or `stderr` was not read.";
    let family = families.counter("holdfast_output_left_out_lines_total", help);
    for (stream, label) in output::Stream::TABLE {
        family.add(&[("stream", label)], output::left_out(stream));
    }
}

#[cfg(test)]
mod tests;
