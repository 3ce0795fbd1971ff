//! Periodic samples of the values that plots show: queues, groups, thresholds and rates.

use super::EPOCH;
use super::flows::Flows;
use super::node::Node;
use super::outcome::{ClassSeries, PortSeries, Samples};
use super::own::Own;
use super::spec::{PortRef, Scenario};
use crate::dataplane::Pipeline;
use crate::sets::CLASSES;
use crate::units::Ticks;

/// Takes samples and collects them.
#[derive(Debug)]
pub struct Sampler {
    samples: Samples,
    ports: Vec<Watched>,
}

/// A port that is sampled.
#[derive(Debug)]
struct Watched {
    port: PortRef,
    /// Series from the first sample with any activity on; all earlier values are zero.
    classes: [Option<ClassSeries>; CLASSES],
    tx_bytes: Vec<u32>,
    tx_before: u64,
    marked_before: [u64; CLASSES],
}

impl Sampler {
    /// Returns a sampler of the ports that the scenario watches, or of all ports.
    #[must_use]
    pub fn new(scenario: &Scenario, every_ps: u64) -> Self {
        let all =
            scenario.switches.iter().enumerate().flat_map(|(switch, node)| {
                (0..node.config.switch.ports.len()).map(move |port| PortRef { switch, port })
            });
        let ports: Vec<PortRef> = if scenario.watch.is_empty() { all.collect() } else { scenario.watch.clone() };
        let watched = |port| Watched {
            port,
            classes: Default::default(),
            tx_bytes: Vec::new(),
            tx_before: 0,
            marked_before: [0; CLASSES],
        };
        let samples = Samples {
            every_ps,
            flow_bytes: vec![Vec::new(); scenario.flows.len()],
            flow_rate_mbps: vec![Vec::new(); scenario.flows.len()],
            pools: vec![Default::default(); scenario.switches.len()],
            ..Samples::default()
        };
        Self { samples, ports: ports.into_iter().map(watched).collect() }
    }

    /// Takes a sample. All flows live if there are samples.
    pub fn sample(&mut self, nodes: &Own<Node>, flows: &mut Flows<'_>, now: u64) {
        self.samples.count += 1;
        for watched in &mut self.ports {
            watched.sample(&nodes[watched.port.switch], self.samples.count - 1, Ticks(EPOCH + now));
        }
        for (flow, (bytes, rate)) in
            flows.live_mut().zip(self.samples.flow_bytes.iter_mut().zip(&mut self.samples.flow_rate_mbps))
        {
            bytes.push(clamp(flow.outcome.received_bytes - flow.sampled_bytes));
            flow.sampled_bytes = flow.outcome.received_bytes;
            if flow.control.is_some() {
                rate.push(clamp(flow.rate() / 1_000_000));
            }
        }
        for (series, node) in self.samples.pools.iter_mut().zip(nodes.iter()) {
            let used = Pipeline::pool_used(&node.fleet);
            series.iter_mut().zip(used).for_each(|(series, used)| series.push(used.0));
        }
    }

    /// Returns the samples. They include ports and classes with any activity, and all ports that the scenario watches.
    #[must_use]
    pub fn finish(mut self, scenario: &Scenario) -> Samples {
        for watched in self.ports {
            let classes: Vec<ClassSeries> = watched.classes.into_iter().flatten().collect();
            if !classes.is_empty() || scenario.watch.contains(&watched.port) {
                self.samples.ports.push(PortSeries { port: watched.port, classes, tx_bytes: watched.tx_bytes });
            }
        }
        self.samples
    }
}

impl Watched {
    /// Takes the sample of the port that follows `before` others.
    fn sample(&mut self, node: &Node, before: usize, now: Ticks) {
        let port = self.port.port;
        let Some(pipeline) = node.fleet.iter().find(|pipeline| pipeline.owns(port)) else { return };
        let counters = &node.counters;
        let tx: u64 = (0..CLASSES).map(|queue| counters.sum(port, |port| &port.tx_bytes[queue])).sum();
        self.tx_bytes.push(clamp(tx - self.tx_before));
        self.tx_before = tx;
        for (class, series) in self.classes.iter_mut().enumerate() {
            let marked = counters.sum(port, |port| &port.ecn_marked[class]);
            let mut view = pipeline.view(port, class);
            view.queue_bytes += pipeline.posted_of(port, class, now);
            for guest in node.fleet.iter().filter(|part| !part.owns(port) && part.sends_by(port)) {
                let there = guest.view(port, class);
                view.queue_bytes += there.queue_bytes;
                view.queue_cells += there.queue_cells;
                view.queue_frames += there.queue_frames;
            }
            let is_idle = view.queue_bytes.0 == 0 && view.used.0 == 0 && view.headroom.0 == 0 && !view.is_xoff;
            if series.is_none() && is_idle && marked == 0 {
                continue;
            }
            let series = series.get_or_insert_with(|| ClassSeries::after(class as u8, before, view.threshold.0));
            series.queue_bytes.push(clamp(view.queue_bytes.0));
            series.shared_cells.push(view.shared.0);
            series.headroom_cells.push(view.headroom.0);
            series.threshold_cells.push(view.threshold.0);
            series.xoff.push(view.is_xoff);
            series.marked.push(clamp(marked - self.marked_before[class]));
            self.marked_before[class] = marked;
        }
    }
}

impl ClassSeries {
    /// Returns the series of a class that was idle for `samples` samples. Its threshold in that time was not recorded;
    /// the threshold of the first sample stands in for it.
    fn after(class: u8, samples: usize, threshold: u32) -> Self {
        let nothing = vec![0; samples];
        Self {
            class,
            queue_bytes: nothing.clone(),
            shared_cells: nothing.clone(),
            headroom_cells: nothing.clone(),
            threshold_cells: vec![threshold; samples],
            xoff: vec![false; samples],
            marked: nothing,
        }
    }
}

fn clamp(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
