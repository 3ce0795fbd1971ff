//! One flow at both its ends.

use super::dcqcn;
use super::frame::{Header, Station};
use super::load::{Demand, PS};
use super::outcome::FlowOutcome;
use super::rng::Rng;
use super::spec::{FlowNode, HostNode, Scenario};
use super::spread::Collector;

/// ECT(0).
const ECT_0: u8 = 0b10;
/// DSCP of CNPs: class 6 of the preset, strict.
const CNP_DSCP: u8 = 48;
/// Stream of random numbers of the first flow.
const FLOW_STREAM: u64 = 1 << 32;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// What it is.
    pub spec: FlowNode,
    /// Headers of its frames.
    pub header: Header,
    /// Headers of the CNPs for it.
    pub cnp_header: Header,
    /// What it has to send.
    pub demand: Demand,
    /// When its rate allows the next frame.
    pub next_ps: u64,
    /// Length of the next frame, unless a message ends before.
    pub next_len: u16,
    /// Number of the next frame.
    pub sequence: u64,
    /// Its dice.
    pub rng: Rng,
    /// Congestion control, at the sender and at the receiver.
    pub sender: Option<dcqcn::Sender>,
    receiver: Option<dcqcn::Receiver>,
    /// When the timer of the sender is looked at next; `u64::MAX`: no event is under way.
    pub timer_at: u64,
    /// Number of the frame that the receiver expects.
    expected: u64,
    /// What came of it.
    pub outcome: FlowOutcome,
    /// Bytes received, for samples.
    pub sampled_bytes: u64,
    latency: Collector,
    completion: Collector,
}

impl Flow {
    /// Flow number `number` of `scenario`.
    #[must_use]
    pub fn new(number: usize, scenario: &Scenario) -> Self {
        let spec = scenario.flows[number].clone();
        let station = |host: &HostNode| Station { mac: host.mac, ip: host.ip };
        let (from, to) = (station(&scenario.hosts[spec.from]), station(&scenario.hosts[spec.to]));
        let ecn = if spec.ecn { ECT_0 } else { 0 };
        let header = Header::new(number as u16, spec.kind, from, to, spec.tag, spec.dscp, ecn);
        let cnp_header = Header::new(number as u16, spec.kind, to, from, spec.tag, CNP_DSCP, 0);
        let end = scenario.duration.0.min(spec.stop.map_or(u64::MAX, |stop| stop.0));
        let mut rng = Rng::new(scenario.seed, FLOW_STREAM + number as u64);
        Self {
            demand: Demand::new(spec.load, spec.start.0 * PS, end * PS),
            next_ps: 0,
            next_len: spec.frames.draw(header.least_frame(), &mut rng),
            sequence: 0,
            sender: spec.dcqcn.map(|dcqcn| dcqcn::Sender::new(&dcqcn, spec.rate, 0)),
            receiver: spec.dcqcn.map(|dcqcn| dcqcn::Receiver::new(&dcqcn)),
            timer_at: u64::MAX,
            expected: 0,
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

    /// Whether a frame may leave at `now`; if not, from when on to ask again.
    #[inline]
    pub fn ready(&mut self, now: u64) -> Result<(), u64> {
        if self.next_ps > now {
            return Err(self.next_ps);
        }
        self.demand.ready(now, &mut self.rng)
    }

    /// Rate at which it sends now, in bit/s.
    #[inline]
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.sender.as_ref().map_or(self.spec.rate.0, |sender| sender.rate().0.min(self.spec.rate.0)).max(1)
    }

    /// A frame of it arrives at its receiver, marked or not. True if a CNP is due; an error if the frames are not in order.
    #[inline]
    pub fn arrive(&mut self, cargo: &super::frame::Cargo, len: usize, is_ce: bool, now: u64) -> Result<bool, Disorder> {
        let outcome = &mut self.outcome;
        let order = if cargo.sequence >= self.expected { Ok(()) } else { Err(Disorder) };
        self.expected = self.expected.max(cargo.sequence + 1);
        if order.is_err() {
            outcome.late_frames += 1;
        }
        outcome.received_frames += 1;
        outcome.received_bytes += len as u64;
        outcome.last_arrival_ps = now;
        self.latency.add(now - cargo.born_ps);
        if let Some(born) = cargo.message_ps {
            self.completion.add(now - born);
        }
        let mut cnp = false;
        if is_ce {
            outcome.marked_frames += 1;
            cnp = self.receiver.as_mut().is_some_and(|receiver| receiver.marked(now));
            outcome.cnps += u64::from(cnp);
        }
        order.map(|()| cnp)
    }

    /// What came of it, at the end.
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

/// A frame came after a later one, or twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disorder;
