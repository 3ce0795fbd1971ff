//! `qlen.txt`: lengths of the queues of switch ports, as HPCC's simulator samples and counts them.

use std::fmt::Write as _;

use super::Prepared;
use super::config::Settings;
use crate::sim::outcome::Outcome;
use crate::sim::routes::Cables;
use crate::sim::spec::{PortRef, QueueMonitor};
use crate::units::Nanos;

/// Time between two samples, and between two dumps of the counts.
const EVERY_NS: u64 = 100;
const DUMP_NS: u64 = 100_000_000;

/// Returns the samples that the configuration asks for, in a run that begins at `epoch_ns`. The last one comes at the
/// end or just after it.
pub fn monitor(settings: &Settings, epoch_ns: u64) -> QueueMonitor {
    let stop = (settings.stop_seconds * 1e9) as u64;
    let (start, end) = (settings.qlen_start_ns, settings.qlen_end_ns.min(stop));
    let samples = end.saturating_sub(start).div_ceil(EVERY_NS) + 1;
    let before = epoch_ns.saturating_sub(start).div_ceil(EVERY_NS).min(samples);
    let first = Nanos((start + before * EVERY_NS).saturating_sub(epoch_ns));
    let multiples = start.div_ceil(DUMP_NS)..=(start + (samples - 1) * EVERY_NS) / DUMP_NS;
    let since = multiples.map(|number| number * DUMP_NS - start).filter(|since| since.is_multiple_of(EVERY_NS));
    QueueMonitor {
        first,
        every: Nanos(EVERY_NS),
        before,
        samples,
        dumps: since.map(|since| since / EVERY_NS + 1).collect(),
    }
}

impl Prepared {
    /// For each dump `time: t` in nanoseconds, then `switch port count...` for each port. The counts are samples by the
    /// length of the queue, in steps of a kilobyte.
    pub(super) fn qlen_lines(&self, outcome: &Outcome) -> String {
        let (mut text, cables) = (String::new(), Cables::new(&self.scenario));
        let Some(monitor) = &self.scenario.monitor else { return text };
        // The first sample of the run, and those before it.
        let start = (self.epoch_ns + monitor.first.0).saturating_sub(monitor.before * EVERY_NS);
        for dump in &outcome.queue_dumps {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "time: {}", start + (dump.samples - 1) * EVERY_NS);
            for (switch, node) in self.switches.iter().enumerate() {
                let ports = 0..self.scenario.switches[switch].config.switch.ports.len();
                for port in ports.filter(|port| cables.peer(PortRef { switch, port: *port }).is_some()) {
                    let own = dump.counts.iter().find(|(at, _)| *at == PortRef { switch, port });
                    let counts = own.map_or(&[][..], |(_, counts)| counts);
                    let _ = write!(text, "{node} {} {}", port + 1, dump.samples - counts.iter().sum::<u64>());
                    counts.iter().for_each(|count| {
                        let _ = write!(text, " {count}");
                    });
                    text.push('\n');
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(start: u64, end: u64) -> Settings {
        Settings { qlen_start_ns: start, qlen_end_ns: end, ..Settings::default() }
    }

    #[test]
    fn samples_and_dumps_are_those_of_the_simulator() {
        // One sample at the start, whose time is a multiple of 100 ms, then one each 100 ns up to the end.
        let monitor = monitor(&settings(2_000_000_000, 2_100_000_000), 1_999_990_000);
        assert_eq!((monitor.first, monitor.before, monitor.samples), (Nanos(10_000), 0, 1_000_001));
        assert_eq!(monitor.dumps, [1, 1_000_001]);
    }

    #[test]
    fn samples_before_the_run_are_skipped() {
        let monitor = monitor(&settings(1_900_000_000, 2_000_000_050), 1_999_990_030);
        assert_eq!((monitor.before, monitor.first, monitor.samples), (999_901, Nanos(70), 1_000_002));
        assert_eq!(monitor.dumps, [1, 1_000_001]);
    }
}
