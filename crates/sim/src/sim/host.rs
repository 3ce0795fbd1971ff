//! A simulated host with its NIC. It sends when its link is free, in turns among its flows, and obeys PFC after its own
//! response time. Faults make it slow, late, storming or dead.

use std::collections::VecDeque;

use super::HZ;
use super::garbage::Garbage;
use super::load::PS;
use super::obedience::Ignored;
use super::outcome::HostOutcome;
use super::spec::{HostNode, ReceiverSpec};
use super::transport::Reply;
use crate::headroom::standard_response;
use crate::hosts::frame::{Station, announcement};
use crate::pfc::Generator;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Ticks};
use crate::wire::inband;
use crate::wire::mac_control::PfcFrame;

/// Quanta in the longest pause.
const LONGEST: u64 = 65_535;
/// Bits in a quantum.
const QUANTUM_BITS: u64 = 512;
/// Time until the next try, if a refresh was not due yet.
const RETRY_PS: u64 = 10_000;

/// A simulated host.
#[derive(Debug)]
pub struct Host {
    /// The host as the scenario specifies it.
    pub spec: HostNode,
    /// Index of the wire that it sends on, and of the one it receives from.
    pub wires: (usize, usize),
    /// Flows that it sends and that have not begun: start in picoseconds and number, the next one last.
    pub waiting: Vec<(u64, u32)>,
    /// Numbers of the flows that it sends and that are not over, in ascending order.
    pub active: Vec<u32>,
    /// Least number of the flow that sends next. The turn goes to the lowest number after the highest.
    pub turn: u32,
    /// Flows whose senders are to get a CNP.
    pub cnps: VecDeque<usize>,
    /// ACKs to be sent.
    pub acks: VecDeque<PendingAck>,
    /// Announcement frames, sent before anything else so that bridges learn the host's port.
    pub announcements: VecDeque<Box<[u8]>>,
    /// Malformed frames that it sends in addition to its flows.
    pub garbage: Option<Garbage>,
    /// Generator of its own PFC frames: for a slow receiver or a storm.
    pub generator: Generator,
    /// Received PFC frames that the host does not obey yet: time to obey, frame, time of arrival.
    pub responses: VecDeque<(u64, PfcFrame, u64)>,
    /// End of the pause of each priority.
    paused_until: [u64; CLASSES],
    /// Time since which each priority is paused; `None`: it is not.
    paused_since: [Option<u64>; CLASSES],
    /// Time of the next send event; `u64::MAX`: no event is scheduled.
    pub wake_at: u64,
    /// Whether it neither sends nor receives.
    pub is_dead: bool,
    /// Priorities of an active storm.
    storm: ClassSet,
    response_ps: u64,
    receiver: Option<ReceiveBuffer>,
    /// Lossless priorities at the host's switch port.
    lossless: ClassSet,
    rate: BitRate,
    /// Time of its last PFC frame.
    told_ps: u64,
    /// XOFFs that a host without PFC was sent, and sent frames in spite of.
    pub ignored: [Ignored; CLASSES],
    /// Results of the host.
    pub outcome: HostOutcome,
}

/// An ACK to be sent.
#[derive(Debug, Clone, Copy)]
pub struct PendingAck {
    /// Index of the flow.
    pub flow: usize,
    pub reply: Reply,
    /// Notes of in-band telemetry that it carries back.
    pub notes: Option<[u8; inband::LEN]>,
}

/// The receive buffer of a slow host.
#[derive(Debug, Clone, Copy)]
struct ReceiveBuffer {
    spec: ReceiverSpec,
    bytes: u64,
    /// Time at which the buffer held `bytes`.
    at_ps: u64,
    is_xoff: bool,
}

impl Host {
    /// Returns a host on a link of `rate` with the `wires` (sending, receiving), at a port with the `lossless`
    /// priorities.
    #[must_use]
    pub fn new(spec: &HostNode, wires: (usize, usize), rate: BitRate, lossless: ClassSet) -> Self {
        let response_ps = spec.response.map_or_else(|| standard_response_ps(rate), |response| response.0 * PS);
        Self {
            spec: spec.clone(),
            wires,
            waiting: Vec::new(),
            active: Vec::new(),
            turn: 0,
            cnps: VecDeque::new(),
            acks: VecDeque::new(),
            announcements: VecDeque::new(),
            garbage: None,
            generator: Generator::new(rate, HZ),
            responses: VecDeque::new(),
            paused_until: [0; CLASSES],
            paused_since: [None; CLASSES],
            wake_at: u64::MAX,
            is_dead: false,
            storm: ClassSet::EMPTY,
            response_ps,
            receiver: spec.receiver.map(ReceiveBuffer::new),
            lossless,
            rate,
            told_ps: 0,
            ignored: [Ignored::default(); CLASSES],
            outcome: HostOutcome::default(),
        }
    }

    /// Queues an announcement of the host in `vlan`.
    pub fn announce_in(&mut self, vlan: Option<u16>) {
        self.announcements.push_back(announcement(Station { mac: self.spec.mac, ip: self.spec.ip }, vlan));
    }

    /// Makes the next flow whose start has come by `now` active, and returns its number.
    #[inline]
    pub fn begin_flow(&mut self, now: u64) -> Option<u32> {
        let (_, number) = self.waiting.pop_if(|(start, _)| *start <= now)?;
        self.add_flow(number);
        Some(number)
    }

    /// Adds flow `number`, which begins at `start_ps`.
    pub fn expect_flow(&mut self, start_ps: u64, number: u32) {
        let place = self.waiting.partition_point(|waiting| *waiting > (start_ps, number));
        self.waiting.insert(place, (start_ps, number));
    }

    /// Makes flow `number` active.
    fn add_flow(&mut self, number: u32) {
        let place = self.active.partition_point(|active| *active < number);
        self.active.insert(place, number);
    }

    /// Removes flow `number`, which has ended.
    pub fn remove_flow(&mut self, number: u32) {
        if let Ok(place) = self.active.binary_search(&number) {
            self.active.remove(place);
        }
    }

    /// Whether no CNP and no ACK waits.
    #[must_use]
    pub fn has_replied(&self) -> bool {
        self.cnps.is_empty() && self.acks.is_empty()
    }

    /// Returns when the pause of `priority` ends; `None` if it is not paused at `now`.
    #[inline]
    #[must_use]
    pub fn paused_until(&self, priority: usize, now: u64) -> Option<u64> {
        let until = self.paused_until[priority];
        (until > now && self.spec.obeys_pfc).then_some(until)
    }

    /// Whether any priority is paused at `now`.
    #[must_use]
    pub fn is_held(&self, now: u64) -> bool {
        (0..CLASSES).any(|priority| self.paused_until(priority, now).is_some())
    }

    /// Receives a PFC frame. Returns when the host will obey it.
    pub fn receive_pfc(&mut self, frame: PfcFrame, now: u64) -> u64 {
        self.outcome.pfc_rx_frames += 1;
        // Frames take effect in order, even if the host has become faster meanwhile.
        let at = self.responses.back().map_or(0, |(at, ..)| *at).max(now + self.response_ps);
        self.responses.push_back((at, frame, now));
        at
    }

    /// Applies the received PFC frames whose response time has passed. The last frame sets the timer, which counts from
    /// the frame's arrival.
    pub fn understand(&mut self, now: u64) {
        while let Some((at, frame, came)) = self.responses.front().copied()
            && at <= now
        {
            self.responses.pop_front();
            for priority in frame.enabled.iter() {
                self.end_pause(priority, now);
                if !self.spec.obeys_pfc {
                    self.ignored[priority].told(frame.quanta[priority].0 > 0, came);
                }
                let ps = u64::from(frame.quanta[priority].0) * self.quanta_ps(1);
                self.paused_until[priority] = came + ps;
                if came + ps > now {
                    self.paused_since[priority] = Some(now);
                } else {
                    self.paused_until[priority] = 0;
                }
            }
        }
    }

    /// Counts the time of a pause that ends or is refreshed.
    fn end_pause(&mut self, priority: usize, now: u64) {
        if let Some(since) = self.paused_since[priority].take() {
            let end = now.min(self.paused_until[priority]);
            self.outcome.paused_ps[priority] += end.saturating_sub(since);
        }
    }

    fn quanta_ps(&self, quanta: u64) -> u64 {
        (u128::from(quanta * QUANTUM_BITS) * 1_000_000_000_000).div_ceil(u128::from(self.rate.0.max(1))) as u64
    }

    /// Returns the PFC frame that is due now.
    pub fn pfc_due(&mut self, now: u64) -> Option<PfcFrame> {
        let frame = self.generator.due(Ticks(now))?;
        self.generator.sent(&frame, Ticks(now));
        self.told_ps = now;
        self.outcome.pfc_tx_frames += 1;
        Some(frame)
    }

    /// Returns when a PFC frame may be due next: a refresh, or the XON of a receive buffer that has drained.
    #[must_use]
    pub fn pfc_wake(&self, now: u64) -> Option<u64> {
        let refresh = (!self.generator.xoff().is_empty()).then(|| {
            let at = self.told_ps + self.quanta_ps(LONGEST) / 2;
            // The refresh time has come, but the generator rounds differently and does not consider it due yet.
            if at > now { at } else { now + RETRY_PS }
        });
        let drained = self.receiver.filter(|receiver| receiver.is_xoff).map(|receiver| receiver.below_xon_at());
        let next = [refresh, drained].into_iter().flatten().min()?;
        Some(next.max(now + 1))
    }

    /// Receives a frame of `bytes`. Returns false if it is dropped. Above its XOFF mark, the receive buffer of a slow
    /// host accepts only lossless frames. It accepts those without limit, because the simulation does not examine
    /// headroom of hosts.
    pub fn fill(&mut self, bytes: usize, lossless: bool, now: u64) -> bool {
        let Some(receiver) = &mut self.receiver else { return true };
        receiver.drain(now);
        if !lossless && receiver.bytes >= receiver.spec.xoff.0 {
            self.outcome.receive_dropped_frames += 1;
            return false;
        }
        receiver.bytes += bytes as u64;
        self.outcome.receive_highest_bytes = self.outcome.receive_highest_bytes.max(receiver.bytes);
        self.judge(now);
        true
    }

    /// Sets XOFF or XON as the receive buffer and the storm require.
    pub fn judge(&mut self, now: u64) {
        let mut xoff = self.storm;
        if let Some(receiver) = &mut self.receiver {
            receiver.drain(now);
            if receiver.bytes >= receiver.spec.xoff.0 {
                receiver.is_xoff = true;
            } else if receiver.bytes < receiver.spec.xon.0 {
                receiver.is_xoff = false;
            }
            if receiver.is_xoff {
                xoff |= self.lossless;
            }
        }
        self.generator.set_all(xoff);
    }

    /// Begins a storm of `priorities`; the empty set ends it.
    pub fn storm(&mut self, priorities: ClassSet, now: u64) {
        self.storm = priorities;
        self.judge(now);
    }

    /// Sets the receive buffer of the host; `None` restores the specified one.
    pub fn receive_by(&mut self, spec: Option<ReceiverSpec>, now: u64) {
        let before = self.receiver.take();
        self.receiver = spec.or(self.spec.receiver).map(|spec| ReceiveBuffer {
            bytes: before.map_or(0, |receiver| receiver.bytes),
            at_ps: now,
            ..ReceiveBuffer::new(spec)
        });
        self.judge(now);
    }

    /// Sets the time in which the host obeys PFC; `None` restores the specified one.
    pub fn respond_in(&mut self, response_ps: Option<u64>) {
        let own = || self.spec.response.map_or_else(|| standard_response_ps(self.rate), |response| response.0 * PS);
        self.response_ps = response_ps.unwrap_or_else(own);
    }

    /// Handles the loss of the link: PFC state in both directions becomes void.
    pub fn link_down(&mut self, now: u64) {
        for priority in 0..CLASSES {
            self.end_pause(priority, now);
        }
        self.paused_until = [0; CLASSES];
        self.responses.clear();
        self.generator.link_down(Ticks(now));
    }

    /// Handles the return of the link: current XOFFs are sent again.
    pub fn link_up(&mut self, now: u64) {
        let xoff = self.generator.xoff();
        self.generator.repeat(xoff);
        self.judge(now);
    }

    /// Returns the results. Pauses in progress count up to `now`.
    pub fn finish(&mut self, now: u64) -> HostOutcome {
        (0..CLASSES).for_each(|priority| self.end_pause(priority, now));
        self.outcome.clone()
    }
}

/// Returns the longest response time that the standard allows a peer at this rate, in picoseconds.
#[must_use]
pub fn standard_response_ps(rate: BitRate) -> u64 {
    let bits = u128::from(standard_response(rate).0) * 8;
    (bits * 1_000_000_000_000 / u128::from(rate.0.max(1))) as u64
}

impl ReceiveBuffer {
    fn new(spec: ReceiverSpec) -> Self {
        Self { spec, bytes: 0, at_ps: 0, is_xoff: false }
    }

    /// Removes the whole bytes that have left by `now`. The fraction of a byte is kept as time.
    fn drain(&mut self, now: u64) {
        let rate = u128::from(self.spec.rate.0.max(1));
        let gone = u128::from(now - self.at_ps) * rate / 8_000_000_000_000;
        if gone >= u128::from(self.bytes) {
            (self.bytes, self.at_ps) = (0, now);
        } else {
            self.bytes -= gone as u64;
            self.at_ps += (gone * 8_000_000_000_000 / rate) as u64;
        }
    }

    /// Returns when the buffer holds less than `xon`, if no frame arrives.
    fn below_xon_at(&self) -> u64 {
        let excess = u128::from((self.bytes + 1).saturating_sub(self.spec.xon.0));
        let ps = (excess * 8_000_000_000_000).div_ceil(u128::from(self.spec.rate.0.max(1))) + 1;
        self.at_ps.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Quanta};
    use crate::wire::MacAddr;

    fn host(receiver: Option<ReceiverSpec>) -> Host {
        let spec = HostNode {
            name: "h".into(),
            mac: MacAddr::local(1, 0),
            ip: [10, 0, 0, 1].into(),
            obeys_pfc: true,
            response: None,
            receiver,
            known: true,
        };
        Host::new(&spec, (0, 1), BitRate(10_000_000_000), ClassSet::only(3))
    }

    #[test]
    fn a_pause_is_obeyed_after_the_response_and_ends_by_itself() {
        let mut host = host(None);
        let frame = PfcFrame { enabled: ClassSet::only(3), quanta: [Quanta(1000); CLASSES] };
        // 60 quanta of 51.2 ns each.
        let at = host.receive_pfc(frame, 1_000_000);
        assert_eq!(at, 1_000_000 + 3_072_000);
        host.understand(at - 1);
        assert_eq!(host.paused_until(3, at - 1), None);
        host.understand(at);
        assert_eq!(host.paused_until(3, at), Some(1_000_000 + 51_200_000));
        assert_eq!(host.paused_until(2, at), None);
        assert_eq!(host.finish(90_000_000).paused_ps[3], 51_200_000 - 3_072_000);
    }

    #[test]
    fn xon_ends_the_pause_of_a_simulated_host() {
        let mut host = host(None);
        for quanta in [1000, 0] {
            let at = host.receive_pfc(PfcFrame { enabled: ClassSet::only(3), quanta: [Quanta(quanta); CLASSES] }, 0);
            host.understand(at);
            assert_eq!(host.paused_until(3, at).is_some(), quanta > 0);
        }
    }

    #[test]
    fn a_slow_receiver_says_xoff_and_xon_in_time() {
        let spec = ReceiverSpec { rate: BitRate(8_000_000_000), xoff: Bytes(2000), xon: Bytes(1000) };
        let mut host = host(Some(spec));
        assert!(host.fill(1999, true, 0));
        assert!(host.pfc_due(0).is_none());
        assert!(host.fill(1, true, 0));
        assert!(!host.fill(1, false, 0), "lossy, and full");
        assert_eq!(host.outcome.receive_dropped_frames, 1);
        assert_eq!(
            host.pfc_due(0).map(|frame| (frame.enabled, frame.quanta[3])),
            Some((ClassSet::only(3), Quanta(65535)))
        );
        // The rate is a byte per nanosecond, and 1001 bytes must leave.
        let wake = host.pfc_wake(0).unwrap();
        assert!((1_001_000..1_001_010).contains(&wake), "{wake}");
        host.judge(wake);
        assert_eq!(host.pfc_due(wake).map(|frame| frame.quanta[3]), Some(Quanta(0)));
        assert_eq!(host.pfc_wake(wake), None);
    }

    #[test]
    fn storm_refreshes_its_xoff_until_it_ends_with_xon() {
        let mut host = host(None);
        host.storm(ClassSet::only(3), 0);
        let mut now = 0;
        for _ in 0..5 {
            assert!(host.pfc_due(now).is_some(), "at {now}");
            now = host.pfc_wake(now).unwrap();
        }
        host.storm(ClassSet::EMPTY, now);
        assert_eq!(host.pfc_due(now).map(|frame| frame.quanta[3]), Some(Quanta(0)));
        assert_eq!(host.pfc_wake(now), None);
    }
}
