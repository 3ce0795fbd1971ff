//! The state of one flow at its sender and its receiver.

use super::dcqcn;
use super::frame::{Cargo, Header, Part, Station};
use super::load::{Demand, PS};
use super::outcome::FlowOutcome;
use super::rng::Rng;
use super::routes::Cables;
use super::routing;
use super::spec::{End, FlowNode, Scenario};
use super::spread::Collector;
use crate::hosts::sequence::{Order, SequenceWindow};

/// ECN codepoint ECT(0).
const ECT_0: u8 = 0b10;
/// DSCP of CNPs: class 6 of the preset, a strict class.
const CNP_DSCP: u8 = 48;
/// Stream of random numbers of the first flow; each further flow uses the next one.
const FLOW_STREAM: u64 = 1 << 32;

/// A flow at both its ends.
#[derive(Debug)]
pub struct Flow {
    /// The flow as the scenario specifies it.
    pub spec: FlowNode,
    /// Headers of its frames.
    pub header: Header,
    /// Headers of the CNPs for it.
    pub cnp_header: Header,
    /// Amount of data that the flow has to send.
    pub demand: Demand,
    /// Time from which the flow's rate allows the next frame.
    pub next_ps: u64,
    /// Length of the next frame, unless a message ends earlier.
    pub next_len: u16,
    /// Number of the next frame.
    pub sequence: u64,
    /// Random numbers of the flow.
    pub rng: Rng,
    /// Congestion control at the sender; `None`: the flow sends at its rate.
    pub sender: Option<dcqcn::Sender>,
    receiver: Option<dcqcn::NotificationPoint>,
    /// Time of the next event for the sender's timer; `u64::MAX`: no event is scheduled.
    pub timer_at: u64,
    /// PFC priority of the flow's CNPs at the port of its receiver.
    pub cnp_priority: usize,
    /// Sequence numbers that the receiver has seen.
    window: SequenceWindow,
    /// Number of the message being received, and how many of its frames have arrived.
    incoming: (u64, u32),
    /// Results of the flow.
    pub outcome: FlowOutcome,
    /// Bytes received since the last sample.
    pub sampled_bytes: u64,
    latency: Collector,
    completion: Collector,
}

impl Flow {
    /// Returns flow number `number` of `scenario`.
    #[must_use]
    pub fn new(number: usize, scenario: &Scenario, cables: &Cables) -> Self {
        let spec = scenario.flows[number].clone();
        let station = |host: usize| Station { mac: scenario.hosts[host].mac, ip: scenario.hosts[host].ip };
        // A host sends to the MAC address of its gateway, and to the IP address of the other host.
        let via = |from, to| {
            let gateway = routing::gateway_between(scenario, cables, from, to);
            Station { mac: gateway.unwrap_or(scenario.hosts[to].mac), ..station(to) }
        };
        let (from, to) = (spec.from, spec.to);
        let ecn = if spec.ecn { ECT_0 } else { 0 };
        let header = Header::new(number as u16, spec.kind, station(from), via(from, to), spec.tag, spec.dscp, ecn);
        let cnp_header = Header::new(number as u16, spec.kind, station(to), via(to, from), spec.tag, CNP_DSCP, 0);
        let end = scenario.duration.0.min(spec.stop.map_or(u64::MAX, |stop| stop.0));
        let mut rng = Rng::new(scenario.seed, FLOW_STREAM + number as u64);
        Self {
            demand: Demand::new(spec.load, spec.start.0 * PS, end * PS),
            next_ps: 0,
            next_len: spec.frames.draw(header.least_frame(), &mut rng),
            sequence: 0,
            sender: spec.dcqcn.map(|dcqcn| dcqcn::Sender::new(&dcqcn, spec.rate, 0)),
            receiver: spec.dcqcn.map(|dcqcn| dcqcn::NotificationPoint::new(&dcqcn)),
            timer_at: u64::MAX,
            cnp_priority: cnp_priority(&spec, scenario),
            window: SequenceWindow::new(),
            incoming: (0, 0),
            outcome: FlowOutcome::default(),
            sampled_bytes: 0,
            latency: Collector::default(),
            completion: Collector::default(),
            rng,
            header,
            cnp_header,
            spec,
        }
    }

    /// Whether a frame may leave at `now`. The error is the time from which a retry makes sense.
    #[inline]
    pub fn ready(&mut self, now: u64) -> Result<(), u64> {
        if self.next_ps > now {
            return Err(self.next_ps);
        }
        self.demand.ready(now, &mut self.rng)
    }

    /// Returns the rate at which the flow sends now, in bit/s.
    #[inline]
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.sender.as_ref().map_or(self.spec.rate.0, |sender| sender.rate().0.min(self.spec.rate.0)).max(1)
    }

    /// Handles the arrival of a frame at the receiver, marked or not. Returns whether a CNP is due; the error states
    /// that the frame is out of order or a duplicate.
    #[inline]
    pub fn arrive(&mut self, cargo: &Cargo, len: usize, is_ce: bool, now: u64) -> Result<bool, Disorder> {
        let outcome = &mut self.outcome;
        let order = self.window.receive(cargo.sequence);
        match order {
            Order::Ahead => {}
            Order::Late => outcome.late_frames += 1,
            Order::Duplicate => {
                // The frame was received before: neither its bytes nor its latency count again.
                outcome.duplicate_frames += 1;
                return Err(Disorder);
            }
        }
        outcome.received_frames += 1;
        outcome.received_bytes += len as u64;
        outcome.last_arrival_ps = now;
        self.latency.add(now - cargo.born_ps);
        self.complete(&cargo.message, now);
        let outcome = &mut self.outcome;
        let mut cnp = false;
        if is_ce {
            outcome.marked_frames += 1;
            cnp = self.receiver.as_mut().is_some_and(|receiver| receiver.marked(now));
            outcome.cnps += u64::from(cnp);
        }
        if order == Order::Ahead { Ok(cnp) } else { Err(Disorder) }
    }

    /// Counts a frame of a message. A message is complete when its last frame arrives, if all others came before.
    #[inline]
    fn complete(&mut self, part: &Part, now: u64) {
        let (number, frames) = &mut self.incoming;
        if *number != part.number {
            (*number, *frames) = (part.number, 0);
        }
        *frames += 1;
        if let Some((whole, born)) = part.end
            && *frames == whole
        {
            self.completion.add(now - born);
        }
    }

    /// Returns the results of the flow at the end of the run.
    #[must_use]
    pub fn finish(&self) -> FlowOutcome {
        FlowOutcome {
            latency: self.latency.finish(),
            completion: self.completion.finish(),
            messages: self.demand.made,
            rate_at_end: self.rate(),
            ..self.outcome.clone()
        }
    }
}

/// Returns the PFC priority of the flow's CNPs at the port of the host that sends them.
fn cnp_priority(flow: &FlowNode, scenario: &Scenario) -> usize {
    let port = scenario.links.iter().find_map(|link| match (link.a, link.b) {
        (End::Port(port), End::Host(host)) | (End::Host(host), End::Port(port)) if host == flow.to => Some(port),
        _ => None,
    });
    let Some(at) = port else { return 0 };
    let spec = &scenario.switches[at.switch].config.switch;
    let port = &spec.ports[at.port];
    let class = port.marks.class(port.trust, port.port_class, Some(CNP_DSCP), flow.tag.map(|(_, pcp)| pcp));
    usize::from(spec.classes.tc_to_group[usize::from(class & 7)] & 7)
}

/// A frame arrived after a later one, or twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disorder;
