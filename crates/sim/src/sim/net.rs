//! Switches and wires of a run, as far as one thread has them.
//!
//! A run has one [`Net`] with everything. If it has several threads, they divide the switches among them until the next
//! event that concerns the whole network.

use super::checks::Steps;
use super::device::World;
use super::events::{Event, Events};
use super::frame::Pool;
use super::node::{self, Node};
use super::own::Own;
use super::parts::Parts;
use super::rng::Rng;
use super::spec::{End, Scenario};
use super::waivers::Waiver;
use super::watch::Watch;
use super::wire::{Arrivals, Wire};

/// Stream of random numbers of faults on wires.
const FAULT_STREAM: u64 = 1;

/// Switches and wires, with the events that concern them.
#[derive(Debug)]
pub struct Net<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) events: Events,
    pub(super) now: u64,
    pub(super) handled: u64,
    /// Parts of this thread.
    pub(super) parts: Vec<usize>,
    pub(super) nodes: Own<Node>,
    pub(super) wires: Own<Wire>,
    pub(super) arrivals: Arrivals,
    pub(super) pool: Pool,
    pub(super) watch: Watch,
    pub(super) steps: Steps,
    pub(super) faults: Rng,
    /// Waivers that the run has brought, each with time and switch.
    pub(super) waivers: Vec<(u64, usize, Waiver)>,
    /// By host, the time of its next receive event; `u64::MAX`: no event is scheduled.
    pub(super) expects_at: Vec<u64>,
    /// The earliest violated invariant: time, part, name, description.
    pub(super) violation: Option<(u64, usize, &'static str, String)>,
    /// Wires to other threads on which frames were sent in this window.
    pub(super) crossed: Vec<usize>,
    used: Vec<usize>,
}

impl<'a> Net<'a> {
    /// Returns the wires of `scenario`, before it has switches.
    #[must_use]
    pub fn new(scenario: &'a Scenario, parts: Parts) -> Self {
        let wires =
            scenario.links.iter().flat_map(|link| [link.b, link.a].map(|to| Wire::new(to, link.rate, link.length)));
        Self {
            wires: wires.collect(),
            nodes: Own::absent(0),
            parts: (0..parts.count()).collect(),
            arrivals: Arrivals::new(scenario.switches.iter().map(|switch| switch.config.switch.ports.len())),
            watch: Watch::new(scenario),
            expects_at: vec![u64::MAX; scenario.hosts.len()],
            ..Self::absent(scenario, Events::new(parts))
        }
    }

    /// Returns the place for switches and wires of `scenario` that another thread has.
    #[must_use]
    pub fn absent(scenario: &'a Scenario, events: Events) -> Self {
        let (switches, wires) = (scenario.switches.len(), 2 * scenario.links.len());
        Self {
            scenario,
            events,
            now: 0,
            handled: 0,
            parts: Vec::new(),
            nodes: Own::absent(switches),
            wires: Own::absent(wires),
            arrivals: Arrivals::new(scenario.switches.iter().map(|_| 0)),
            pool: Pool::default(),
            watch: Watch::absent(wires),
            steps: Steps::new(scenario),
            faults: Rng::new(scenario.seed, FAULT_STREAM),
            waivers: Vec::new(),
            expects_at: Vec::new(),
            violation: None,
            crossed: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Handles an event of a switch. Returns false for other events.
    #[inline]
    pub(super) fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::PollIn { switch, lcore } => self.poll_in(switch as usize, lcore as usize),
            Event::PollOut { switch, lcore } => self.poll_out(switch as usize, lcore as usize),
            Event::RestEnd(switch) => self.rest_end(switch as usize),
            Event::FlowSpan { flow, switch } => self.nodes[switch as usize].flow_span(flow, self.now),
            _ => return false,
        }
        true
    }

    /// Takes note of an event that is handled now.
    #[inline]
    pub(super) fn begin(&mut self, at: u64, event: Event) {
        self.now = at;
        self.handled += u64::from(event.is_counted());
    }

    /// Whether the last event of `part` violated an invariant. The earliest violation of a window is kept.
    #[inline]
    pub(super) fn is_broken(&mut self, part: usize) -> bool {
        let Some((invariant, what)) = self.watch.violation.take() else { return false };
        self.found((self.now, part, invariant, what));
        true
    }

    /// Takes note of a violation.
    pub(super) fn found(&mut self, violation: (u64, usize, &'static str, String)) {
        if self.violation.as_ref().is_none_or(|(at, of, ..)| (violation.0, violation.1) < (*at, *of)) {
            self.violation = Some(violation);
        }
    }

    fn poll_in(&mut self, switch: usize, lcore: usize) {
        let until = self.nodes[switch].lcores[lcore].stalled_until;
        if until > self.now {
            self.events.at(until, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
            return;
        }
        let out = self.with_node(switch, |node, now, world| node.poll_in(lcore, now, world));
        if out > self.now {
            // A pause may expire before this poll ends.
            self.watch_gap(switch, out - self.now);
            self.check(switch);
            self.events.at(out, Event::PollOut { switch: switch as u32, lcore: lcore as u32 });
        } else {
            self.poll_out(switch, lcore);
        }
    }

    fn poll_out(&mut self, switch: usize, lcore: usize) {
        let (next, rests) = self.with_node(switch, |node, now, world| node.poll_out(lcore, now, world));
        self.watch_gap(switch, next - self.nodes[switch].lcores[lcore].began_ps);
        self.check(switch);
        if rests {
            self.begin_rest(switch, next);
        } else {
            self.events.at(next, Event::PollIn { switch: switch as u32, lcore: lcore as u32 });
        }
    }

    /// Records that the next poll comes `gap` or more after the last one, if that exceeds half the life of a pause. No
    /// pause can then be refreshed in time. The waivers state whether the switch guarantees anything with such gaps.
    fn watch_gap(&mut self, switch: usize, gap: u64) {
        if gap > node::SHORTEST_HALF_LIFE_PS {
            let wires = self.nodes[switch].devices.iter().filter_map(|device| device.wires);
            wires.for_each(|(out, _)| self.watch.polled_late(out, gap));
        }
    }

    /// Calls `work` on a switch, then schedules the reception of the frames that it sent.
    fn with_node<R>(&mut self, switch: usize, work: impl FnOnce(&mut Node, u64, &mut World<'_>) -> R) -> R {
        let mut world = World {
            wires: &mut self.wires,
            arrivals: &mut self.arrivals,
            pool: &mut self.pool,
            watch: &mut self.watch,
            faults: &mut self.faults,
            used: &mut self.used,
        };
        let result = work(&mut self.nodes[switch], self.now, &mut world);
        // The list is taken for the loop, and returned with its memory.
        let mut used = std::mem::take(&mut self.used);
        used.drain(..).for_each(|wire| self.frame_sent(wire));
        self.used = used;
        result
    }

    /// Handles frames that were sent on `wire`. The host at its end expects them, and a switch does not rest longer.
    #[inline]
    pub(super) fn frame_sent(&mut self, wire: usize) {
        let state = &self.wires[wire];
        if state.is_crossing {
            self.crossed.push(wire);
            return;
        }
        match state.to {
            End::Host(host) => self.expect(host, wire),
            End::Port(port) => {
                if self.nodes[port.switch].rest.is_some()
                    && let Some(at) = self.wires[wire].next_arrival()
                {
                    self.end_rest_at(port.switch, at);
                }
            }
        }
    }

    /// Schedules an event for the next frame that arrives at `host` on `wire`.
    pub(super) fn expect(&mut self, host: usize, wire: usize) {
        // A link failure may have removed the expected frame, and a shorter one may arrive earlier than it would have.
        if let Some(at) = self.wires[wire].next_arrival()
            && at < self.expects_at[host]
        {
            self.expects_at[host] = at;
            self.events.at(at, Event::HostReceive(host as u32));
        }
    }

    /// Moves every frame that has arrived by now into its receive ring.
    pub(super) fn settle(&mut self) {
        for switch in 0..self.nodes.len() {
            self.with_node(switch, |node, now, world| node.settle(now, world));
        }
    }

    /// Counts the frames in switches, on wires and in receive rings.
    pub(super) fn under_way(&self) -> u64 {
        let flying: usize = self.wires.iter().map(Wire::flying).sum();
        let held: usize = self.nodes.iter().map(Node::held_frames).sum();
        (flying + held) as u64
    }

    /// Counts the PFC frames among those under way: in receive rings and on wires.
    pub(super) fn pfc_under_way(&self) -> u64 {
        let wires: usize = self.wires.iter().map(Wire::flying_pfc).sum();
        let rings = self.nodes.iter().flat_map(|node| &node.devices).flat_map(|device| &device.ring);
        (wires + rings.filter(|packet| packet.cargo.kind == super::frame::FrameKind::Pfc).count()) as u64
    }

    /// Returns the text of the waivers that the run has brought, in order of time.
    pub(super) fn take_waivers(&mut self) -> impl Iterator<Item = String> + use<> {
        let mut waivers = std::mem::take(&mut self.waivers);
        waivers.sort_by_key(|(at, switch, _)| (*at, *switch));
        waivers.into_iter().map(|(.., waiver)| waiver.what)
    }

    /// Adds a waiver that switch `switch` has brought, and exempts its switches from now on.
    pub(super) fn waive(&mut self, switch: usize, waiver: Waiver) {
        for exempt in &waiver.switches {
            self.nodes[*exempt].is_waived = true;
        }
        self.waivers.push((self.now, switch, waiver));
    }
}

/// A thread's share of a network.
pub trait Share<'a> {
    /// Its switches and wires.
    fn net(&mut self) -> &mut Net<'a>;

    /// Handles an event of one of its parts.
    fn handle_event(&mut self, event: Event);

    /// Handles the events of its parts before `until`, part by part. A part stops at a violation.
    fn window(&mut self, until: u64) {
        let mut last = self.net().now;
        for place in 0..self.net().parts.len() {
            let part = self.net().parts[place];
            while let Some((at, event)) = self.net().events.next_before(part, until) {
                self.net().begin(at, event);
                self.handle_event(event);
                if self.net().is_broken(part) {
                    break;
                }
            }
            last = last.max(self.net().now);
        }
        self.net().now = last;
    }
}

impl<'a> Share<'a> for Net<'a> {
    fn net(&mut self) -> &mut Net<'a> {
        self
    }

    #[inline]
    fn handle_event(&mut self, event: Event) {
        assert!(self.handle(event), "hosts are with the first thread");
    }
}
