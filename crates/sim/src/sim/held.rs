//! Time for which receive backlogs on the path of a lossless flow kept their ports at XOFF during the flow's sending
//! period.

use super::EPOCH;
use super::engine::Engine;
use super::events::Event;
use super::flows::Flows;
use super::load::PS;
use super::node::Node;
use super::outcome::BacklogHold;
use super::routes::Cables;
use super::routing::Fabric;
use super::spec::{End, FlowNode, PortRef};
use crate::units::Ticks;

/// A receive ring on the path of a flow.
#[derive(Debug)]
pub struct HeldPort {
    flow: u32,
    /// Place on the path.
    place: usize,
    port: PortRef,
    /// Picoseconds for which the backlog had kept XOFF at the beginning and at the end of the flow.
    at_begin_ps: Option<u64>,
    at_end_ps: Option<u64>,
}

impl Engine<'_> {
    /// Schedules an event at the beginning and at the end of every lossless flow, for each switch on its path.
    pub(super) fn watch_backlogs(&mut self) {
        let cables = Cables::new(self.scenario);
        let fabric = self.scenario.routed.map(|_| Fabric::new(self.scenario));
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            let (begin, end) = Flows::span(flow, self.scenario);
            if !flow.lossless || begin >= end {
                continue;
            }
            let ports = match (&fabric, cables.port_of(flow.from), cables.port_of(flow.to)) {
                (Some(fabric), Some(from), Some(to)) => fabric.ingress_ports(from, to),
                _ => ingress_ports(flow, &cables),
            };
            for (place, port) in ports.into_iter().enumerate() {
                let held = &mut self.net.nodes[port.switch].held;
                let is_first = held.last().is_none_or(|held: &HeldPort| held.flow != number as u32);
                held.push(HeldPort { flow: number as u32, place, port, at_begin_ps: None, at_end_ps: None });
                for at in [begin, end].into_iter().filter(|_| is_first) {
                    self.net.events.at(at, Event::FlowSpan { flow: number as u32, switch: port.switch as u32 });
                }
            }
        }
    }

    /// Records the receive backlog that held each flow longest, if its sending period has ended.
    pub(super) fn finish_backlogs(&mut self) {
        let mut held: Vec<HeldPort> =
            self.net.nodes.iter_mut().flat_map(|node| std::mem::take(&mut node.held)).collect();
        held.sort_unstable_by_key(|held| (held.flow, held.place));
        for ports in held.chunk_by(|a, b| a.flow == b.flow) {
            let holds = ports
                .iter()
                .filter_map(|held| Some(BacklogHold { port: held.port, held_ps: held.at_end_ps? - held.at_begin_ps? }));
            if let Some(hold) = holds.max_by_key(|hold| hold.held_ps) {
                self.flows.set_backlog(ports[0].flow as usize, Some(hold));
            }
        }
    }
}

impl Node {
    /// Handles the beginning or the end of the sending period of `flow`, which goes through the switch.
    pub(super) fn flow_span(&mut self, flow: u32, now: u64) {
        let mut list = std::mem::take(&mut self.held);
        let first = list.partition_point(|held| held.flow < flow);
        for held in list[first..].iter_mut().take_while(|held| held.flow == flow) {
            let held_ps = held_ps(self, held.port, now);
            let time = if held.at_begin_ps.is_none() { &mut held.at_begin_ps } else { &mut held.at_end_ps };
            *time = Some(held_ps);
        }
        self.held = list;
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
