//! Host behaviour in the simulation: hosts receive, answer, and send when their link is free.

use super::engine::Engine;
use super::events::Event;
use super::flow::{Disorder, Replies};
use super::frame::{Cargo, FrameKind, Note, SimFrame, SimPacket};
use super::host::PendingAck;
use super::spec::Learning;
use super::transport::ACK_LEN;
use crate::io::Packet;
use crate::wire::mac_control::PfcFrame;
use crate::wire::{cnm, inband};

/// Bytes of a CNP without the frame check sequence: Ethernet, IPv4, UDP, BTH, 16 reserved (InfiniBand annex A17).
const CNP_LEN: u16 = 14 + 20 + 8 + 12 + 16;

impl Engine<'_> {
    /// Handles a change of the link of `host`.
    pub(super) fn host_link(&mut self, host: usize, is_up: bool) {
        let now = self.net.now;
        if is_up {
            self.hosts[host].link_up(now);
            // Switches forget the host's port when its link goes down.
            if self.scenario.learning == Learning::Frames {
                self.announce(host);
            }
            self.wake(host, now);
        } else {
            self.hosts[host].link_down(now);
        }
    }

    /// Queues announcements, which the host sends before anything else, in every VLAN in which it sends or receives.
    pub(super) fn announce(&mut self, host: usize) {
        if !self.scenario.hosts[host].known {
            return;
        }
        let mut vlans: Vec<Option<u16>> = self.scenario.tags_of(host).map(|tag| tag.map(|(vlan, _)| vlan)).collect();
        vlans.sort_unstable();
        vlans.dedup();
        vlans.into_iter().for_each(|vlan| self.hosts[host].announce_in(vlan));
    }

    /// Schedules a send event for `host` at `at`, unless an earlier one is scheduled.
    pub(super) fn wake(&mut self, host: usize, at: u64) {
        let state = &mut self.hosts[host];
        if at < state.wake_at {
            state.wake_at = at;
            self.net.events.at(at, Event::HostSend(host as u32));
        }
    }

    pub(super) fn host_receive(&mut self, host: usize) {
        if self.net.expects_at[host] != self.net.now {
            return;
        }
        self.net.expects_at[host] = u64::MAX;
        let wire = self.hosts[host].wires.1;
        while let Some((at, mut packet)) = self.net.wires[wire].arrived(self.net.now) {
            let pfc = packet.pfc();
            if let Some(frame) = &pfc {
                // A PFC frame counts as a timely refresh even if the host is dead.
                self.net.watch.pfc_received(wire, frame, at);
            }
            if self.hosts[host].is_dead {
                self.buried += u64::from(packet.cargo.kind != FrameKind::Pfc);
            } else {
                self.arrive(host, &mut packet, pfc, at);
            }
            let flow = packet.cargo.flow;
            self.net.pool.free(packet);
            if flow != u32::MAX {
                self.frame_ended(flow as usize, at);
            }
        }
        self.net.expect(host, wire);
    }

    fn arrive(&mut self, host: usize, packet: &mut SimPacket, pfc: Option<PfcFrame>, at: u64) {
        match packet.cargo.kind {
            FrameKind::Pfc => {
                if let Some(frame) = pfc {
                    let understood = self.hosts[host].receive_pfc(frame, at);
                    self.net.events.at(understood, Event::HostHear(host as u32));
                }
            }
            FrameKind::Data if self.flows[packet.cargo.flow as usize].spec.to == host => self.accept(host, packet, at),
            FrameKind::Cnp if self.flows[packet.cargo.flow as usize].spec.from == host => {
                self.checks.cnps_received += 1;
                let number = packet.cargo.flow as usize;
                let flow = &mut self.flows[number];
                if let Some(control) = &mut flow.control {
                    control.notified(at);
                }
                self.set_timer(number);
            }
            FrameKind::Ack if self.flows[packet.cargo.flow as usize].spec.from == host => {
                self.checks.acks_received += 1;
                let number = packet.cargo.flow as usize;
                if let Note::Reply(reply) = &packet.cargo.note {
                    self.flows[number].acknowledge(reply, packet.returned_notes(), at);
                }
                self.set_timer(number);
                // It may have made room in the window.
                self.wake(host, at);
            }
            FrameKind::Cnm => {
                self.checks.cnms_received += 1;
                self.react(host, packet, at);
            }
            FrameKind::Announcement => self.checks.announcements_received += 1,
            FrameKind::Garbage => self.checks.garbage_received += 1,
            FrameKind::Data | FrameKind::Cnp | FrameKind::Ack => self.hosts[host].outcome.foreign_frames += 1,
        }
    }

    /// Handles a message of QCN at a host. The flow is the one whose frame the message repeats; if it has ended, there
    /// is nothing to do.
    fn react(&mut self, host: usize, packet: &SimPacket, at: u64) {
        let Some((envelope, cnm)) = cnm::parse(packet.bytes()) else { return };
        let state = &mut self.hosts[host];
        if envelope.dst != state.spec.mac {
            return;
        }
        let flows = &mut self.flows;
        let is_sampled =
            |&&number: &&u32| flows.get_mut(number as usize).is_some_and(|flow| flow.header.is_of(cnm.msdu));
        let Some(number) = state.active.iter().find(is_sampled).map(|number| *number as usize) else { return };
        if let Some(control) = &mut self.flows[number].control {
            control.congested(cnm.feedback, at);
        }
        self.set_timer(number);
    }

    /// Receives a frame of a flow at its destination.
    fn accept(&mut self, host: usize, packet: &mut SimPacket, at: u64) {
        let number = packet.cargo.flow as usize;
        if !self.hosts[host].fill(packet.len(), self.flows[number].spec.lossless, at) {
            return;
        }
        let flow = &mut self.flows[number];
        if flow.transport.is_some() {
            let replies = flow.arrive_reliably(&packet.cargo, packet.len(), packet.is_ce(), at);
            let notes = if flow.has_telemetry { packet.notes() } else { None };
            return self.reply(host, number, replies, notes, at);
        }
        match flow.arrive(&packet.cargo, packet.len(), packet.is_ce(), at) {
            Ok(false) => {}
            Ok(true) => {
                flow.waiting_replies += 1;
                self.hosts[host].cnps.push_back(number);
                self.wake(host, at);
            }
            Err(_) if self.checks.may_disorder => {}
            // It was under way when routes changed, so a later frame may have had a shorter path.
            Err(Disorder::Late) if self.rerouted_ps.is_some_and(|changed| packet.cargo.born_ps <= changed) => {}
            Err(_) => {
                let (name, sequence) = (flow.spec.name.clone(), packet.cargo.sequence);
                self.net
                    .watch
                    .broken("frames_in_order", || format!("frame {sequence} of flow {name} arrived late or twice"));
            }
        }
        if !self.hosts[host].generator.xoff().is_empty() {
            self.wake(host, at);
        }
    }

    /// Queues the replies to a frame of `flow` at its receiver. An ACK carries its `notes` back.
    fn reply(&mut self, host: usize, flow: usize, replies: Replies, notes: Option<[u8; inband::LEN]>, at: u64) {
        let state = &mut self.hosts[host];
        self.flows[flow].waiting_replies += u32::from(replies.ack.is_some()) + u32::from(replies.cnp);
        state.acks.extend(replies.ack.map(|reply| PendingAck { flow, reply, notes }));
        if replies.cnp {
            state.cnps.push_back(flow);
        }
        if !state.has_replied() || !state.generator.xoff().is_empty() {
            self.wake(host, at);
        }
    }

    pub(super) fn flow_timer(&mut self, number: usize) {
        // The timer of a flow that has ended means nothing.
        let Some(flow) = self.flows.get_mut(number).filter(|flow| flow.timer_at == self.net.now) else { return };
        flow.timer_at = u64::MAX;
        flow.timer(self.net.now);
        let from = flow.spec.from;
        // A timeout makes frames due again, and a timer may raise the rate.
        if self.flows[number].transport.is_some() {
            self.wake(from, self.net.now);
        }
        self.set_timer(number);
    }

    fn set_timer(&mut self, number: usize) {
        let flow = &mut self.flows[number];
        let Some(at) = flow.next_timer() else { return };
        let at = at.max(self.net.now + 1);
        if at < flow.timer_at {
            flow.timer_at = at;
            let sender = flow.spec.from as u32;
            self.net.events.at(at, Event::FlowTimer { flow: number as u32, sender });
        }
    }

    /// Sends a frame if the host's link is free and a frame is ready, and schedules the next send event.
    pub(super) fn host_send(&mut self, host: usize) {
        let (now, state) = (self.net.now, &mut self.hosts[host]);
        if state.wake_at != now {
            return;
        }
        state.wake_at = u64::MAX;
        let wire = state.wires.0;
        // Without a carrier a NIC keeps its frames. The end of that state wakes the host.
        if state.is_dead || !self.net.wires[wire].is_up {
            return;
        }
        let free_at = self.net.wires[wire].free_at();
        if free_at > now {
            return self.wake(host, free_at);
        }
        state.judge(now);
        let pfc_wake = match self.next_frame(host) {
            Ok(packet) => {
                self.net.wires[wire].send(packet, now, &mut self.net.pool, &mut self.net.faults);
                self.net.arrivals.update(&self.net.wires[wire]);
                self.net.frame_sent(wire);
                Some(self.net.wires[wire].free_at())
            }
            Err(at) => (at < u64::MAX).then_some(at),
        };
        let wakes = [pfc_wake, self.hosts[host].pfc_wake(now)];
        if let Some(at) = wakes.into_iter().flatten().min() {
            self.wake(host, at.max(now + 1));
        }
    }

    /// Returns the frame that `host` sends now. The error is the time at which there may be one.
    fn next_frame(&mut self, host: usize) -> Result<SimPacket, u64> {
        let (now, state) = (self.net.now, &mut self.hosts[host]);
        if let Some(frame) = state.pfc_due(now) {
            let bytes = frame.emit(state.spec.mac);
            return Ok(self.net.pool.make(&bytes, bytes.len(), Cargo::of(FrameKind::Pfc)));
        }
        if let Some(bytes) = state.announcements.pop_front() {
            self.checks.announcements_sent += 1;
            return Ok(self.net.pool.make(&bytes, bytes.len(), Cargo::of(FrameKind::Announcement)));
        }
        // CNPs precede the data that causes congestion, and have a class of their own.
        let cnp_paused = |number: &usize| state.paused_until(self.flows[*number].cnp_priority, now);
        let cnp_until = state.cnps.front().and_then(cnp_paused);
        if cnp_until.is_none()
            && let Some(number) = state.cnps.pop_front()
        {
            self.checks.cnps_sent += 1;
            let flow = &mut self.flows[number];
            flow.waiting_replies -= 1;
            let cargo = Cargo { flow: number as u32, born_ps: now, ..Cargo::of(FrameKind::Cnp) };
            let len = flow.cnp_header.least_frame().max(CNP_LEN);
            return Ok(self.net.pool.make(flow.cnp_header.for_len(len), usize::from(len), cargo));
        }
        // ACKs too: they end the wait of senders.
        let ack_until = state.acks.front().and_then(|ack| state.paused_until(self.flows[ack.flow].ack_priority, now));
        if ack_until.is_none()
            && let Some(ack) = state.acks.pop_front()
        {
            self.checks.acks_sent += 1;
            let flow = &mut self.flows[ack.flow];
            flow.waiting_replies -= 1;
            flow.ack_header.set_reply(&ack.reply);
            if let Some(notes) = &ack.notes {
                flow.ack_header.copy_notes(notes);
            }
            let cargo = Cargo { flow: ack.flow as u32, note: Note::Reply(ack.reply), ..Cargo::of(FrameKind::Ack) };
            // The invariant CRC is behind the headers.
            let len = flow.ack_header.least_frame().max(ACK_LEN);
            return Ok(self.net.pool.make(flow.ack_header.for_len(len), usize::from(len), cargo));
        }
        let mut again = cnp_until.into_iter().chain(ack_until).min().unwrap_or(u64::MAX);
        let is_held = state.is_held(now);
        if let Some(garbage) = state.garbage.as_mut().filter(|_| now < self.duration_ps) {
            let at = garbage.ready_at(now);
            if at == now {
                let bytes = garbage.frame(now, is_held);
                self.checks.garbage_sent += 1;
                return Ok(self.net.pool.make(&bytes, bytes.len(), Cargo::of(FrameKind::Garbage)));
            }
            again = again.min(at);
        }
        match self.next_flow(host) {
            Ok(number) => Ok(self.data_frame(number)),
            Err(at) => Err(again.min(at)),
        }
    }

    /// Returns the flow of `host` that sends a frame now, in turns. The error is the time at which there may be one.
    fn next_flow(&mut self, host: usize) -> Result<usize, u64> {
        let (now, state) = (self.net.now, &mut self.hosts[host]);
        while let Some(number) = state.begin_flow(now) {
            self.flows.begin(number as usize);
        }
        let mut again = state.waiting.last().map_or(u64::MAX, |(start, _)| *start);
        let (first, count) = (state.active.partition_point(|number| *number < state.turn), state.active.len());
        let (mut next, mut has_over) = (None, false);
        for step in 0..count {
            let place = if first + step < count { first + step } else { first + step - count };
            let number = state.active[place] as usize;
            let Some(flow) = self.flows.get_mut(number) else {
                has_over = true;
                continue;
            };
            if let Some(until) = state.paused_until(usize::from(flow.spec.priority), now) {
                again = again.min(until);
                continue;
            }
            match flow.ready(now) {
                Ok(()) => {
                    next = Some(number);
                    break;
                }
                Err(at) => again = again.min(at),
            }
            has_over |= flow.is_over(now);
        }
        if has_over {
            state.active.retain(|number| self.flows.get_mut(*number as usize).is_some_and(|flow| !flow.is_over(now)));
        }
        let Some(number) = next else { return Err(again) };
        state.turn = number as u32 + 1;
        if !state.spec.obeys_pfc {
            state.ignored[usize::from(self.flows[number].spec.priority)].sent(now);
        }
        Ok(number)
    }

    /// Returns the next frame of a flow, which leaves now.
    fn data_frame(&mut self, number: usize) -> SimPacket {
        let (now, flow) = (self.net.now, &mut self.flows[number]);
        let (len, mut cargo) = flow.take(now);
        flow.header.set_number(cargo.sequence);
        flow.outcome.sent_frames += 1;
        flow.outcome.sent_bytes += u64::from(len);
        let bits = (u64::from(len.max(60)) + u64::from(crate::units::WIRE_OVERHEAD)) * 8;
        flow.next_ps = flow.next_ps.max(now) + (bits * 1_000_000_000_000).div_ceil(flow.rate());
        if let Note::Part(part) = &mut cargo.note {
            part.asks = flow.asks_for_ack();
            flow.header.set_asks(part.asks);
        }
        let packet = self.net.pool.make(flow.header.for_len(len), usize::from(len), cargo);
        if let Some(control) = &mut flow.control {
            control.sent(u64::from(len), now);
        }
        if flow.control.is_some() || flow.transport.is_some() {
            self.set_timer(number);
        }
        packet
    }
}
