//! Time for which receive backlogs on the path of a lossless flow kept their ports at XOFF during the flow's sending
//! period.

use super::engine::Engine;
use super::events::Event;
use super::flows::Flows;
use super::load::PS;
use super::node::{EPOCH, Node};
use super::outcome::BacklogHold;
use super::routes::Cables;
use super::routing::Fabric;
use super::spec::{End, FlowNode, PortRef};
use crate::units::Ticks;

/// The receive rings on the path of a flow.
#[derive(Debug)]
pub struct HeldFlow {
    ports: Vec<PortRef>,
    /// Picoseconds for which each backlog had kept XOFF when the flow began; empty before.
    before: Vec<u64>,
}

impl Engine<'_> {
    /// Schedules an event at the beginning and at the end of every lossless flow.
    pub(super) fn watch_backlogs(&mut self) {
        let cables = Cables::new(self.scenario);
        let fabric = self.scenario.routed.map(|_| Fabric::new(self.scenario));
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            let (begin, end) = Flows::span(flow, self.scenario);
            let is_watched = flow.lossless && begin < end;
            if is_watched {
                self.events.at(begin, Event::FlowSpan(number as u32));
                self.events.at(end, Event::FlowSpan(number as u32));
            }
            let ports = || match (&fabric, cables.port_of(flow.from), cables.port_of(flow.to)) {
                (Some(fabric), Some(from), Some(to)) => fabric.ingress_ports(from, to),
                _ => ingress_ports(flow, &cables),
            };
            self.held.push(is_watched.then(|| HeldFlow { ports: ports(), before: Vec::new() }));
        }
    }

    /// Handles the beginning or the end of the sending period of flow `number`.
    pub(super) fn flow_span(&mut self, number: usize) {
        let Some(held) = &mut self.held[number] else { return };
        let now: Vec<u64> =
            held.ports.iter().map(|port| held_ps(&mut self.nodes[port.switch], *port, self.now)).collect();
        if held.before.is_empty() {
            held.before = now;
            return;
        }
        let grown = held.ports.iter().zip(now.iter().zip(&held.before));
        let holds = grown.map(|(port, (now, before))| BacklogHold { port: *port, held_ps: now - before });
        self.flows.set_backlog(number, holds.max_by_key(|hold| hold.held_ps));
    }
}

/// Returns the ports at which frames of `flow` enter switches, in path order.
fn ingress_ports(flow: &FlowNode, cables: &Cables) -> Vec<PortRef> {
    let toward = cables.toward(flow.to);
    let (mut ports, mut next) = (Vec::new(), cables.port_of(flow.from));
    while let Some(port) = next.filter(|_| ports.len() < toward.len()) {
        ports.push(port);
        let out = toward[port.switch].map(|out| PortRef { switch: port.switch, port: out });
        next = out.and_then(|out| cables.peer(out)).and_then(|end| match end {
            End::Port(port) => Some(port),
            End::Host(_) => None,
        });
    }
    ports
}

/// Returns the picoseconds for which the receive backlog of `port` has kept its lossless classes at XOFF by `now`.
fn held_ps(node: &mut Node, port: PortRef, now: u64) -> u64 {
    let counters = &node.counters.ports[port.port];
    if counters.backlog_xoffs.get() == 0 {
        return 0;
    }
    // A busy switch publishes its gauges only now and then.
    if let Some(owner) = node.fleet.iter_mut().find(|pipeline| pipeline.owns(port.port)) {
        owner.settle_gauges(Ticks(EPOCH + now));
    }
    counters.backlog_held_ns.get() * PS
}
