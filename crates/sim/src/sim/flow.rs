//! The state of one flow at its sender and its receiver.

use super::control::dcqcn::NotificationPoint;
use super::control::{Ack, CongestionControl, Path};
use super::flows::Flows;
use super::frame::{Cargo, FrameKind, Header, Note, Part, Station};
use super::launch::Origin;
use super::load::{Demand, PS};
use super::outcome::FlowOutcome;
use super::path::Paths;
use super::rng::Rng;
use super::routes::Cables;
use super::routing;
use super::spec::{FlowNode, Scenario};
use super::spread::Collector;
use super::transport::{Arrived, Receipt, Receiver, Reply, Sender};
use crate::hosts::sequence::{Order, SequenceWindow};
use crate::wire::inband::Hops;

/// ECN codepoint ECT(0).
const ECT_0: u8 = 0b10;
/// DSCP of CNPs: class 6 of the preset, a strict class.
const CNP_DSCP: u8 = 48;
/// Stream of random numbers of the first flow; each further flow uses the next one.
const FLOW_STREAM: u64 = 1 << 32;
/// An odd number: seeds of the congestion control of flows differ in their upper bits too.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A flow at both its ends.
#[derive(Debug)]
pub struct Flow {
    /// Index of the flow.
    number: u32,
    /// The flow as the scenario specifies it.
    pub spec: FlowNode,
    /// Headers of its frames.
    pub header: Header,
    /// Headers of the CNPs and of the ACKs for it.
    pub cnp_header: Header,
    pub ack_header: Header,
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
    pub control: Option<Box<dyn CongestionControl>>,
    notifier: Option<NotificationPoint>,
    /// Reliable transport; `None`: frames are sent once and not acknowledged.
    pub transport: Option<Box<Transport>>,
    /// Time of the next event for the sender's timer; `u64::MAX`: no event is scheduled.
    pub timer_at: u64,
    /// Whether switches note their queues in the flow's frames, and ACKs carry the notes back.
    pub has_telemetry: bool,
    /// PFC priority of the flow's CNPs and of its ACKs at the port of its receiver.
    pub cnp_priority: usize,
    pub ack_priority: usize,
    /// CNPs and ACKs that its receiver has queued.
    pub waiting_replies: u32,
    /// Place in a workload; `None`: the scenario lists the flow.
    pub origin: Option<Origin>,
    /// Whether its timers have stopped for good.
    has_stopped_timers: bool,
    /// Sequence numbers that the receiver has seen.
    window: SequenceWindow,
    /// Number of the message being received, and how many of its frames have arrived.
    incoming: (u64, u32),
    /// Results of the flow.
    pub outcome: FlowOutcome,
    /// Bytes received since the last sample.
    pub sampled_bytes: u64,
    latency: Collector,
    /// Completion times of messages at the receiver.
    pub completion: Collector,
}

/// Both ends of a reliable flow.
#[derive(Debug)]
pub struct Transport {
    pub sender: Sender,
    pub receiver: Receiver,
    /// Time from a message's arrival at the sender's queue until all of it was acknowledged.
    pub acknowledged: Collector,
}

impl Flow {
    /// Returns flow number `number` of `scenario`.
    #[must_use]
    pub fn new(number: usize, scenario: &Scenario, paths: &mut Paths<'_>) -> Self {
        Self::of(scenario.flows[number].clone(), number, number as u64, scenario, paths)
    }

    /// Returns the flow of `spec` with this number. Its ports and its random numbers follow from `serial`, because a
    /// number may be that of an earlier flow.
    #[must_use]
    pub fn of(spec: FlowNode, number: usize, serial: u64, scenario: &Scenario, paths: &mut Paths<'_>) -> Self {
        let station = |host: usize| Station { mac: scenario.hosts[host].mac, ip: scenario.hosts[host].ip };
        // A host sends to the MAC address of its gateway, and to the IP address of the other host.
        let via = |from, to| {
            let gateway = routing::gateway_between(scenario, paths.cables(), from, to);
            Station { mac: gateway.unwrap_or(scenario.hosts[to].mac), ..station(to) }
        };
        let (from, to) = (spec.from, spec.to);
        let ecn = if spec.ecn { ECT_0 } else { 0 };
        let [entropy, of_answers] = spec.entropy.unwrap_or([serial as u16; 2]);
        let header = Header::new(entropy, spec.kind, station(from), via(from, to), spec.tag, spec.dscp, ecn);
        let cnp_header =
            Header::new(of_answers, spec.kind, station(to), via(to, from), spec.tag, CNP_DSCP, 0).for_cnps();
        let ack_dscp = spec.transport.and_then(|transport| transport.ack_dscp).unwrap_or(spec.dscp);
        let ack_header = Header::new(of_answers, spec.kind, station(to), via(to, from), spec.tag, ack_dscp, 0);
        let has_telemetry = spec.control.is_some_and(|control| control.needs().telemetry);
        let header = if has_telemetry { header.with_telemetry() } else { header };
        let (begin, end) = Flows::span(&spec, scenario);
        let mut rng = Rng::new(scenario.seed, FLOW_STREAM + serial);
        // A walk through the fabric, which other flows do not need.
        let path = (spec.control.is_some() || spec.transport.is_some()).then(|| paths.of(&spec));
        let path = path.map(|path| Path { seed: scenario.seed ^ serial.wrapping_mul(SEED_STEP), ..path });
        Self {
            number: number as u32,
            demand: Demand::new(spec.load, spec.start.0 * PS, end),
            next_ps: 0,
            next_len: spec.frames.draw(header.least_frame(), &mut rng),
            sequence: 0,
            control: spec.control.zip(path).map(|(control, path)| control.begin(spec.rate, &path, 0)),
            notifier: spec.control.and_then(|control| control.cnp_interval_ps()).map(NotificationPoint::new),
            transport: spec.transport.zip(path).map(|(transport, path)| {
                let (sender, receiver) = (Sender::new(&transport, path.base_rtt_ps), Receiver::new(&transport));
                Box::new(Transport { sender, receiver, acknowledged: Collector::default() })
            }),
            timer_at: u64::MAX,
            cnp_priority: reply_priority(&spec, CNP_DSCP, scenario, paths.cables()),
            ack_priority: reply_priority(&spec, ack_dscp, scenario, paths.cables()),
            ack_header: ack_header.for_acks(),
            has_stopped_timers: false,
            window: SequenceWindow::new(),
            incoming: (0, 0),
            outcome: FlowOutcome {
                is_reliable: spec.transport.is_some(),
                span_ps: end - begin,
                ..FlowOutcome::default()
            },
            waiting_replies: 0,
            origin: None,
            sampled_bytes: 0,
            latency: Collector::default(),
            completion: Collector::default(),
            rng,
            header,
            has_telemetry,
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
        let Some(transport) = &self.transport else { return self.demand.ready(now, &mut self.rng) };
        if transport.sender.has_failed() || !transport.sender.has_room(self.window()) {
            // The next ACK, or a timeout, wakes the host.
            return Err(u64::MAX);
        }
        match transport.sender.repeats() {
            true => Ok(()),
            false => self.demand.ready_to_end(now, &mut self.rng),
        }
    }

    /// Whether a reliable flow has nothing in flight, and no message that it has begun.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.transport.as_deref().is_none_or(|Transport { sender, .. }| {
            sender.has_failed() || sender.is_settled() && !self.demand.has_begun() && !self.demand.is_due()
        })
    }

    /// Whether the sender never sends data again after `now`.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.demand.is_over(now)
            && self.transport.as_ref().is_none_or(|transport| transport.sender.has_failed() || self.is_settled())
    }

    /// Whether the flow is over at `now`, and each message that it has begun was delivered. The caller knows that no
    /// frame of it is under way.
    #[must_use]
    pub fn has_ended(&self, now: u64) -> bool {
        self.waiting_replies == 0 && self.message_counts().is_none_or(Messages::are_equal) && self.is_over(now)
    }

    /// Whether the flow is reliable, has not failed, and no frame of it was lost.
    #[must_use]
    pub fn has_lost_nothing(&self) -> bool {
        let FlowOutcome { sent_frames, received_frames, discarded_frames, .. } = self.outcome;
        self.message_counts().is_some() && sent_frames == received_frames + discarded_frames
    }

    /// Messages of a reliable flow that has not failed; `None` for others.
    #[must_use]
    pub fn message_counts(&self) -> Option<Messages> {
        let transport = self.transport.as_deref().filter(|transport| !transport.sender.has_failed())?;
        Some(Messages {
            begun: self.demand.made,
            received: self.completion.count(),
            acknowledged: transport.acknowledged.count(),
        })
    }

    /// Takes the frame that leaves now: its length and its metadata.
    #[inline]
    pub fn take(&mut self, now: u64) -> (u16, Cargo) {
        let cargo = |sequence, part| Cargo {
            flow: self.number,
            sequence,
            born_ps: now,
            is_lossless: self.spec.lossless,
            note: Note::Part(part),
            ..Cargo::of(FrameKind::Data)
        };
        if let Some(transport) = &mut self.transport
            && let Some(frame) = transport.sender.repeat(now)
        {
            self.outcome.repeated_frames += 1;
            return (frame.len, cargo(frame.number, frame.part));
        }
        let least = self.header.least_frame();
        let (len, part) = self.demand.take(self.next_len, least);
        self.next_len = self.spec.frames.draw(least, &mut self.rng);
        let sequence = match &mut self.transport {
            Some(transport) => transport.sender.send(len, part, now),
            None => {
                self.sequence += 1;
                self.sequence - 1
            }
        };
        (len, cargo(sequence, part))
    }

    /// Whether the frame that leaves now must be acknowledged at once: it fills the window, or no other follows.
    #[must_use]
    pub fn asks_for_ack(&self) -> bool {
        self.transport.as_ref().is_some_and(|transport| {
            !transport.sender.has_room(self.window())
                || !transport.sender.repeats() && !self.demand.has_data_at(self.next_ps)
        })
    }

    /// Time of the next timer of the sender; `None`: none runs.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<u64> {
        if self.has_stopped_timers {
            return None;
        }
        let control = self.control.as_ref().and_then(|control| control.next_timer());
        let transport = self.transport.as_ref().and_then(|transport| transport.sender.next_timer());
        control.into_iter().chain(transport).min()
    }

    /// Stops the timers of a flow that has ended and is kept for samples: its results are those of an ended flow.
    pub fn stop_timers(&mut self) {
        self.has_stopped_timers = true;
    }

    /// Runs the timers of the sender that are due.
    pub fn timer(&mut self, now: u64) {
        if self.has_stopped_timers {
            return;
        }
        let loss = self.transport.as_mut().and_then(|transport| transport.sender.timer(now));
        self.outcome.timeouts += u64::from(loss.is_some());
        if let Some(control) = &mut self.control {
            if let Some(loss) = loss {
                control.lost(loss, now);
            }
            control.timer(now);
        }
    }

    /// Handles an ACK or NAK at the sender.
    pub fn acknowledge(&mut self, reply: &Reply, hops: Hops, now: u64) {
        let Some(transport) = &mut self.transport else { return };
        let Transport { sender, acknowledged, .. } = &mut **transport;
        let loss = sender.reply(reply, now, |born| acknowledged.add(now - born));
        self.outcome.naks += u64::from(reply.is_nak);
        if let Some(control) = &mut self.control {
            control.acked(&Ack {
                now_ps: now,
                rtt_ps: now - reply.born_ps,
                cumulative: reply.cumulative,
                next: sender.next(),
                frames: reply.frames.into(),
                marked: reply.marked.into(),
                bytes: sender.acked_bytes(),
                hops: if self.has_telemetry { hops } else { Hops::default() },
            });
            if let Some(loss) = loss {
                control.lost(loss, now);
            }
        }
    }

    /// Returns the window of congestion control, in bytes; `None`: only the transport limits what is in flight.
    #[inline]
    fn window(&self) -> Option<u64> {
        let control = self.control.as_ref()?;
        let own = control.window().map(|window| window.0);
        let transport = self.spec.transport.filter(|transport| transport.scales_window);
        let scaled = transport.and_then(|transport| transport.window).map(|window| {
            (u128::from(window.0) * u128::from(self.rate()) / u128::from(self.spec.rate.0.max(1))) as u64
        });
        own.into_iter().chain(scaled).min()
    }

    /// Returns the rate at which the flow sends now, in bit/s.
    #[inline]
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.control.as_ref().map_or(self.spec.rate.0, |control| control.rate().0.min(self.spec.rate.0)).max(1)
    }

    /// Handles the arrival of a frame of a reliable flow, marked or not. Returns the replies that are due.
    pub fn arrive_reliably(&mut self, cargo: &Cargo, len: usize, is_ce: bool, now: u64) -> Replies {
        let (Some(mut transport), Note::Part(part)) = (self.transport.take(), cargo.note) else {
            unreachable!("data of a reliable flow");
        };
        let arrived = Arrived { number: cargo.sequence, part, is_ce, born_ps: cargo.born_ps, now_ps: now };
        let (receipt, ack) = transport.receiver.receive(arrived, |part| match part {
            Some(part) => self.complete(&part, now),
            None => self.incoming.1 = 0,
        });
        self.transport = Some(transport);
        match receipt {
            Receipt::Accepted => self.count(cargo, len, now),
            Receipt::Again | Receipt::Discarded => self.outcome.discarded_frames += 1,
        }
        Replies { ack, cnp: is_ce && self.mark(now) }
    }

    /// Counts a frame that is received for the first time.
    #[inline]
    fn count(&mut self, cargo: &Cargo, len: usize, now: u64) {
        self.outcome.received_frames += 1;
        self.outcome.received_bytes += len as u64;
        self.outcome.last_arrival_ps = now;
        // The flows of workloads are too many for a collection of times each.
        if self.origin.is_none() {
            self.latency.add(now - cargo.born_ps);
        }
    }

    /// Counts a frame that is marked CE. Returns whether a CNP is due.
    fn mark(&mut self, now: u64) -> bool {
        self.outcome.marked_frames += 1;
        let cnp = self.notifier.as_mut().is_some_and(|notifier| notifier.marked(now));
        self.outcome.cnps += u64::from(cnp);
        cnp
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
                return Err(Disorder::Twice);
            }
        }
        self.count(cargo, len, now);
        if let Note::Part(part) = &cargo.note {
            self.complete(part, now);
        }
        let cnp = is_ce && self.mark(now);
        if order == Order::Ahead { Ok(cnp) } else { Err(Disorder::Late) }
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

    /// Returns the counters of the flow, and whether it failed.
    #[must_use]
    pub fn counters(&self) -> FlowOutcome {
        let has_failed = self.transport.as_ref().is_some_and(|transport| transport.sender.has_failed());
        FlowOutcome { messages: self.demand.made, failed_flows: has_failed.into(), ..self.outcome.clone() }
    }

    /// Returns the results of the flow at the end of the run.
    #[must_use]
    pub fn finish(&self) -> FlowOutcome {
        FlowOutcome {
            latency: self.latency.finish(),
            completion: self.completion.finish(),
            acknowledged: self.transport.as_ref().map(|transport| transport.acknowledged.finish()).unwrap_or_default(),
            rate_at_end: self.rate(),
            is_settled: self.is_settled(),
            ..self.counters()
        }
    }
}

/// Returns the PFC priority of replies with `dscp` to the flow's sender, at the port of the host that sends them. The
/// host stops its replies by their marks, whatever class `maps.roce` of its switch gives them.
fn reply_priority(flow: &FlowNode, dscp: u8, scenario: &Scenario, cables: &Cables) -> usize {
    let Some(at) = cables.port_of(flow.to) else { return 0 };
    let spec = &scenario.switches[at.switch].config.switch;
    let port = &spec.ports[at.port];
    let class = port.live.marks.class(port.live.trust, port.live.port_class, Some(dscp), flow.tag.map(|(_, pcp)| pcp));
    usize::from(spec.classes.tc_to_group[usize::from(class & 7)] & 7)
}

/// Numbers of messages of a reliable flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Messages {
    pub begun: u64,
    pub received: u64,
    pub acknowledged: u64,
}

impl Messages {
    /// Whether each message that has begun was received and acknowledged.
    #[must_use]
    pub fn are_equal(self) -> bool {
        self.received == self.begun && self.acknowledged == self.begun
    }
}

/// The replies to a frame of a reliable flow.
#[derive(Debug, Clone, Copy)]
pub struct Replies {
    pub ack: Option<Reply>,
    /// Whether a CNP is due.
    pub cnp: bool,
}

/// A frame that is out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disorder {
    /// It arrived after a later one.
    Late,
    /// It arrived twice.
    Twice,
}
