//! The switch as a Prometheus collector: families of metrics made from a snapshot at each scrape.
//!
//! What there is
//! - Counters end in `_total`, sizes are bytes (whole cells), times seconds. Labels: `port` by name, `tc` for a traffic
//!   class, `priority` for a priority group or PFC priority, `queue` for an egress queue.
//! - Every series exists from the first scrape on, so that `rate()` sees the first event. To keep that affordable
//!   (26 reasons, 9 rows, 64 ports would be 15,000 series for drops alone) drops for want of buffer are split by
//!   traffic class, and so are lossless frames that the watchdog dropped; all other reasons, which are the frame's own
//!   fault or the configuration's, carry `tc="any"`: some 60 series a port. Summing over `tc` is right for each reason.
//!   What is not configured (a watchdog, a shared headroom pool, insurance) has no series at all.
//! - `lcore` is an lcore's number. What lcores share, as pools, is one series.
//! - Limits (alpha, eta, reserve) are gauges, and the configuration has a hash, so that a changed one is seen.

mod buffer;
mod device;
mod family;
mod flows;
mod lcore;
mod port;
mod watchdog;

use std::sync::Arc;
use std::time::Instant;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::snapshot::Snapshot;
use super::subject::Subject;
use family::Families;

/// Collects everything about one switch. Register it once, in a registry of its own.
#[derive(Debug)]
pub struct SwitchCollector {
    subject: Arc<Subject>,
    began: Instant,
    /// What the registry knows the collector by: one family stands for all.
    desc: Desc,
}

impl SwitchCollector {
    /// A collector for `subject`.
    ///
    /// # Panics
    /// Never: the one description it makes is constant and right.
    #[must_use]
    pub fn new(subject: Arc<Subject>) -> Self {
        let help = "Version of the program and hash of its configuration.".to_owned();
        let desc = Desc::new("holdfast_build_info".to_owned(), help, Vec::new(), Default::default());
        Self { subject, began: Instant::now(), desc: desc.expect("a constant and valid description") }
    }
}

impl Collector for SwitchCollector {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        collect(&self.subject, &Snapshot::take(&self.subject, self.began.elapsed()))
    }
}

/// All families of `snapshot`.
fn collect(subject: &Subject, snapshot: &Snapshot) -> Vec<MetricFamily> {
    let mut families = Families::default();
    let hash = format!("{:016x}", subject.config_hash());
    let info = &[("version", subject.version), ("config", &hash)];
    families.gauge("holdfast_build_info", "Version of the program and hash of its configuration.").add(info, 1);
    port::traffic(&mut families, subject, snapshot);
    port::drops(&mut families, subject, snapshot);
    port::flow_control(&mut families, subject, snapshot);
    port::backlog(&mut families, subject, snapshot);
    watchdog::watchdogs(&mut families, subject, snapshot);
    buffer::limits(&mut families, subject);
    buffer::groups(&mut families, subject, snapshot);
    buffer::headroom_needs(&mut families, subject, snapshot);
    buffer::port_reserves(&mut families, subject, snapshot);
    buffer::insurance(&mut families, subject, snapshot);
    buffer::queues(&mut families, subject, snapshot);
    buffer::pools(&mut families, subject, snapshot);
    device::devices(&mut families, subject, snapshot);
    lcore::lcores(&mut families, subject, snapshot);
    if let Some(hosts) = &subject.hosts {
        flows::flows(&mut families, hosts);
    }
    families.done()
}

#[cfg(test)]
mod tests;
