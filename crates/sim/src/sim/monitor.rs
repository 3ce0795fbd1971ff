//! Lengths of the queue of each switch port, counted by kilobytes: the `qlen.txt` of HPCC's simulator.

use super::engine::Engine;
use super::events::Event;
use super::load::PS;
use super::outcome::QueueDump;
use super::spec::{PortRef, QueueMonitor, Scenario};

/// Bytes of a kilobyte.
const KB: u64 = 1000;

/// The counts so far.
#[derive(Debug)]
pub struct Monitor<'a> {
    spec: &'a QueueMonitor,
    /// By port with a cable, the samples of each number of whole kilobytes. Samples of the first one are not counted.
    counts: Vec<(PortRef, Vec<u64>)>,
    samples: u64,
    dumps: Vec<QueueDump>,
}

impl<'a> Monitor<'a> {
    /// Returns the monitor that `scenario` asks for.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Option<Self> {
        let spec = scenario.monitor.as_ref()?;
        let (counts, dumps) = (Vec::new(), Vec::new());
        let mut monitor = Self { spec, counts, samples: 0, dumps };
        monitor.skip(spec.before);
        Some(monitor)
    }

    /// Counts `samples` of empty queues.
    fn skip(&mut self, samples: u64) {
        let end = self.samples + samples;
        for &dump in self.spec.dumps.iter().filter(|dump| (self.samples + 1..=end).contains(*dump)) {
            self.dumps.push(QueueDump { samples: dump, counts: self.counts.clone() });
        }
        self.samples = end;
    }

    fn add(&mut self, port: PortRef, bytes: u64) {
        let place = match self.counts.binary_search_by_key(&port, |(port, _)| *port) {
            Ok(place) => place,
            Err(place) => {
                self.counts.insert(place, (port, Vec::new()));
                place
            }
        };
        let (counts, kilobytes) = (&mut self.counts[place].1, (bytes / KB) as usize);
        if kilobytes > 0 {
            counts.resize(counts.len().max(kilobytes), 0);
            counts[kilobytes - 1] += 1;
        }
    }

    /// Returns the counts at each dump. Queues are empty after the run.
    #[must_use]
    pub fn finish(mut self) -> Vec<QueueDump> {
        self.skip(self.spec.samples.saturating_sub(self.samples));
        self.dumps
    }
}

impl Engine<'_> {
    /// Schedules the first sample of the monitor, if there is one.
    pub(super) fn begin_monitor(&mut self) {
        if let Some(monitor) = self.monitor.as_ref().filter(|monitor| monitor.samples < monitor.spec.samples) {
            self.net.events.at(monitor.spec.first.0 * PS, Event::Monitor);
        }
    }

    /// Takes a sample, and schedules the next one.
    pub(super) fn monitor_queues(&mut self) {
        let Some(monitor) = &mut self.monitor else { return };
        for (switch, node) in self.net.nodes.iter().enumerate() {
            node.sample_queues(self.net.now, &mut |port, bytes| {
                if bytes >= KB {
                    monitor.add(PortRef { switch, port }, bytes);
                }
            });
        }
        monitor.skip(1);
        if monitor.samples < monitor.spec.samples {
            self.net.events.at(self.net.now + monitor.spec.every.0 * PS, Event::Monitor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn dumps_have_the_samples_until_then() {
        let dumps = vec![2, 5, 9];
        let spec = QueueMonitor { first: Nanos(0), every: Nanos(100), before: 3, samples: 9, dumps };
        let mut monitor = Monitor { spec: &spec, counts: Vec::new(), samples: 0, dumps: Vec::new() };
        monitor.skip(3);
        let [one, other] = [0, 3].map(|port| PortRef { switch: 1, port });
        for (port, bytes) in [(other, 999), (other, 1_000), (one, 2_500), (one, 2_000)] {
            monitor.add(port, bytes);
            monitor.skip(1);
        }
        let dumps = monitor.finish();
        let counts: Vec<_> = dumps.iter().map(|dump| (dump.samples, dump.counts.clone())).collect();
        assert_eq!(counts[0], (2, vec![]));
        assert_eq!(counts[1], (5, vec![(other, vec![1])]));
        assert_eq!(counts[2], (9, vec![(one, vec![0, 2]), (other, vec![1])]));
    }
}
