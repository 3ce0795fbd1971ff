//! Workloads in a run: they start flows, and learn when flows complete.

use super::engine::{Engine, LOOK_PS};
use super::events::Event;
use super::flow::Flow;
use super::load::PS;
use super::outcome::{Completion, Completions, FlowOutcome, WorkloadOutcome};
use super::spec::{FlowNode, FrameSizes, Load, MessageSize, Scenario};
use super::spread::Collector;
use super::workload::{Arrival, Generator, WorkloadNode};
use crate::units::{Bytes, Nanos};

/// Most flows of workloads in progress at once: a bound of memory. Flows that would start beyond it are left out.
const MOST: usize = 1 << 18;
/// Flows in progress from which on those are searched whose last frames were lost in switches.
const FEWEST: usize = 1 << 10;
/// Time to the next message of a flow, which has only one.
const NEVER: Nanos = Nanos(10_000_000_000);

/// The place of a flow in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Index of the workload.
    pub workload: u16,
    /// Place in its pattern.
    pub tag: u64,
    /// Bytes that the flow carries, without headers.
    pub bytes: u64,
    /// Time of its start.
    pub start_ps: u64,
    /// Completion time on the empty path.
    pub ideal_ps: u64,
    /// Whether it was reported as received and as complete.
    pub is_received: bool,
    pub is_complete: bool,
}

/// The workloads of a run.
#[derive(Debug)]
pub struct Workloads<'a> {
    list: Vec<Workload<'a>>,
    completions: Completions,
    /// Completions that are not counted yet.
    recent: Vec<Completion>,
    /// Flows that a completion starts.
    started: Vec<Arrival>,
    /// Flows in progress at which the next search for ended ones begins.
    search_at: usize,
}

/// A workload of a run.
#[derive(Debug)]
struct Workload<'a> {
    node: &'a WorkloadNode,
    generator: Generator<'a>,
    /// The next flow, whose start is scheduled.
    next: Option<Arrival>,
    time: Collector,
    outcome: WorkloadOutcome,
}

impl<'a> Workloads<'a> {
    /// Returns the workloads of `scenario` before any event.
    #[must_use]
    pub fn new(scenario: &'a Scenario) -> Self {
        let duration = scenario.duration.0 * PS;
        let of = |(number, node): (usize, &'a WorkloadNode)| {
            let end = node.stop.map_or(duration, |stop| duration.min(stop.0 * PS));
            let generator = Generator::new(&node.pattern, number, scenario.seed, node.start.0 * PS, end);
            Workload { node, generator, next: None, time: Collector::default(), outcome: WorkloadOutcome::default() }
        };
        let list = scenario.workloads.iter().enumerate().map(of).collect();
        Self { list, completions: Completions::default(), recent: Vec::new(), started: Vec::new(), search_at: FEWEST }
    }

    /// Returns the counters of the flows of each workload that have ended.
    pub fn sums(&self) -> impl Iterator<Item = &FlowOutcome> {
        self.list.iter().map(|workload| &workload.outcome.sum)
    }

    /// Counts the completions since the last call, in order of time: hosts are not simulated in that order.
    pub fn count_recent(&mut self) {
        let end_ps = |flow: &Completion| flow.start_ps + flow.time_ps;
        self.recent
            .sort_unstable_by_key(|flow| (end_ps(flow), flow.workload, flow.from, flow.to, flow.start_ps, flow.bytes));
        for completion in self.recent.drain(..) {
            let workload = &mut self.list[usize::from(completion.workload)];
            workload.outcome.completed += 1;
            workload.time.add(completion.time_ps);
            self.completions.add(completion);
        }
    }

    /// Adds the results of a flow that has ended.
    fn absorb(&mut self, flow: &Flow) {
        let Some(origin) = flow.origin else { return };
        let sum = &mut self.list[usize::from(origin.workload)].outcome.sum;
        sum.add(&flow.counters());
        sum.is_reliable |= flow.outcome.is_reliable;
    }
}

impl Flow {
    /// Returns the place in a workload of a flow that was received whole, once.
    pub fn take_receipt(&mut self) -> Option<Origin> {
        let is_whole = self.completion.count() > 0;
        let origin = self.origin.as_mut().filter(|origin| is_whole && !origin.is_received)?;
        origin.is_received = true;
        Some(*origin)
    }

    /// Returns the place in a workload of a flow that is complete, once: acknowledged if it is reliable, else received.
    pub fn take_completion(&mut self) -> Option<Origin> {
        let counts = self.transport.as_ref().map_or(&self.completion, |transport| &transport.acknowledged);
        let is_complete = counts.count() > 0;
        let origin = self.origin.as_mut().filter(|origin| is_complete && !origin.is_complete)?;
        origin.is_complete = true;
        Some(*origin)
    }
}

impl Engine<'_> {
    /// Schedules the first flow of each workload.
    pub(super) fn begin_workloads(&mut self) {
        (0..self.workloads.list.len()).for_each(|number| self.schedule_arrival(number));
    }

    /// Schedules the next flow of a workload, if there is one and none is scheduled.
    fn schedule_arrival(&mut self, number: usize) {
        let workload = &mut self.workloads.list[number];
        if workload.next.is_none() {
            workload.next = workload.generator.next();
            if let Some(arrival) = workload.next {
                // Flows are made for some time together, so that their starts do not divide that time.
                let at = arrival.at_ps / LOOK_PS * LOOK_PS;
                self.net.events.at(at.max(self.net.now), Event::Arrival(number as u32));
            }
        }
    }

    /// Makes the next flow of a workload, which starts now or soon.
    pub(super) fn workload_arrival(&mut self, number: usize) {
        if let Some(arrival) = self.workloads.list[number].next.take() {
            self.launch(number, arrival);
        }
        self.schedule_arrival(number);
    }

    fn launch(&mut self, number: usize, arrival: Arrival) {
        let (alive, left_out) = (self.flows.count_added(), self.workloads.list[number].outcome.left_out);
        // A search takes as long as many flows, so not every flow that is left out causes one.
        if alive >= self.workloads.search_at && left_out.is_multiple_of(FEWEST as u64) {
            self.search_ended();
        }
        let workload = &mut self.workloads.list[number];
        if self.flows.count_added() >= MOST {
            workload.outcome.left_out += 1;
            return;
        }
        workload.outcome.started += 1;
        let (spec, bytes) = flow_node(workload.node, arrival, self.scenario);
        let ideal_ps = self.flows.paths().ideal_ps(&spec, bytes);
        let origin = Origin {
            workload: number as u16,
            tag: arrival.tag,
            bytes: arrival.bytes,
            start_ps: spec.start.0 * PS,
            ideal_ps,
            is_received: false,
            is_complete: false,
        };
        let (from, start_ps) = (spec.from, origin.start_ps);
        let flow = self.flows.add(spec, origin);
        self.net.pool.count_flows(flow + 1);
        self.hosts[from].expect_flow(start_ps, flow as u32);
        self.wake(from, start_ps.max(self.net.now));
    }

    /// Handles that a frame of flow `number` is no longer under way: the flow may be received or complete. It ends when
    /// the whole network is looked at ([`Engine::end_flow`]), because its two hosts may not be at the same time.
    pub(super) fn frame_ended(&mut self, number: usize, at: u64) {
        if let Some(flow) = self.flows.get_mut(number)
            && flow.origin.is_some()
        {
            let (receipt, completion) = (flow.take_receipt(), flow.take_completion());
            let (from, to) = (flow.spec.from, flow.spec.to);
            if let Some(origin) = completion {
                self.count_completion(&origin, from, to, at);
            }
            if let Some(origin) = receipt {
                self.follow_up(&origin, at);
            }
        }
    }

    /// Ends flow `number` if it is over and no frame of it is under way.
    pub(super) fn end_flow(&mut self, number: usize, at: u64) {
        if self.net.pool.under_way(number) == 0
            && let Some(flow) = self.flows.end(number, at)
        {
            self.hosts[flow.spec.from].remove_flow(number as u32);
            self.workloads.absorb(&flow);
        }
    }

    /// Ends the flows of workloads that are over. A flow whose last frame a switch drops has no event at its end.
    fn search_ended(&mut self) {
        self.flows.numbers_added().for_each(|number| self.end_flow(number, self.net.now));
        self.workloads.search_at = FEWEST.max(2 * self.flows.count_added()).min(MOST);
    }

    /// Starts the flows that depend on one that was received whole.
    fn follow_up(&mut self, origin: &Origin, at: u64) {
        let (number, mut started) = (usize::from(origin.workload), std::mem::take(&mut self.workloads.started));
        self.workloads.list[number].generator.completed(origin.tag, at, &mut started);
        started.drain(..).for_each(|arrival| self.launch(number, arrival));
        self.workloads.started = started;
        self.schedule_arrival(number);
    }

    fn count_completion(&mut self, origin: &Origin, from: usize, to: usize, at: u64) {
        self.workloads.recent.push(Completion {
            workload: origin.workload,
            from: from as u16,
            to: to as u16,
            bytes: origin.bytes,
            start_ps: origin.start_ps,
            time_ps: at - origin.start_ps,
            ideal_ps: origin.ideal_ps,
        });
    }

    /// Takes the results of the workloads. Flows in progress end.
    pub(super) fn finish_workloads(&mut self) -> (Vec<WorkloadOutcome>, Completions) {
        self.workloads.count_recent();
        let flows = self.flows.take_added();
        flows.iter().for_each(|flow| self.workloads.absorb(flow));
        let list = std::mem::take(&mut self.workloads.list);
        let finish = |workload: Workload<'_>| WorkloadOutcome {
            rounds: workload.generator.rounds(),
            time: workload.time.finish(),
            ..workload.outcome
        };
        (list.into_iter().map(finish).collect(), std::mem::take(&mut self.workloads.completions))
    }

    /// Samples the queues of all switch ports with a cable, while hosts send.
    pub(super) fn sample_queues(&mut self) {
        let Some(lengths) = &mut self.queues else { return };
        let now = self.net.now;
        self.net.nodes.iter().for_each(|node| node.sample_queues(now, &mut |_, bytes| lengths.add(bytes, 1)));
        let next = self.net.now + self.scenario.queues.0 * PS;
        if next < self.duration_ps {
            self.net.events.at(next, Event::SampleQueues);
        }
    }
}

/// Returns the flow of an arrival, and the bytes of all its frames.
fn flow_node(workload: &WorkloadNode, arrival: Arrival, scenario: &Scenario) -> (FlowNode, u64) {
    let sender = workload.sender(arrival.from);
    let headers = sender.header_bytes();
    let FrameSizes::Fixed(frame) = sender.frames else { unreachable!("flows of a workload have frames of one length") };
    let bytes = arrival.bytes + arrival.bytes.div_ceil(u64::from(frame) - headers) * headers;
    let [from, to] = [arrival.from, arrival.to].map(|host| &scenario.hosts[host].name);
    let spec = FlowNode {
        name: format!("{} {from}-{to}", workload.name),
        to: arrival.to,
        start: Nanos(arrival.at_ps / PS),
        stop: None,
        load: Load::Messages { size: MessageSize::Fixed(Bytes(bytes)), every: NEVER, poisson: false, count: Some(1) },
        ..sender.clone()
    };
    (spec, bytes)
}
