//! Reads `forwarding:`, `hash_seed:` and `reroute:`, and checks that the network can route.

use super::cables::Cables;
use super::net::Net;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item};
use crate::route::ROUTER_PORT;
use crate::sim::routing::HIGHEST_VLAN;
use crate::sim::spec::{End, FlowNode, Learning, PortRef, RoutedSpec};
use crate::sim::workload::WorkloadNode;
use crate::units::Nanos;

/// Time from a change of a link until routers follow it. The control plane of a real switch sleeps for 1 ms between two
/// looks.
const DEFAULT_REROUTE: Nanos = Nanos(1_000_000);
const LONGEST_REROUTE: Nanos = Nanos(1_000_000_000);

/// Reads the settings of a routed network, whose hash seed is `seed` by default; `None`: switches bridge.
pub fn read(top: &Fields<'_>, seed: u64) -> Option<RoutedSpec> {
    let item = top.get("forwarding");
    let is_routed = item.and_then(|item| item.choice(&[("bridged", false), ("routed", true)])).unwrap_or_default();
    for item in ["hash_seed", "reroute"].into_iter().filter_map(|key| top.get(key)).filter(|_| !is_routed) {
        item.warn("has no effect on switches that bridge; write `forwarding: routed`, or remove it");
    }
    let hash_seed = top.get("hash_seed").and_then(|item| item.number("a seed", 0..=u64::MAX)).unwrap_or(seed);
    let reroute = bounds::get(top, "reroute", Nanos(0)..=LONGEST_REROUTE).unwrap_or(DEFAULT_REROUTE);
    is_routed.then_some(RoutedSpec { hash_seed, reroute })
}

/// The flows and workloads of a scenario.
#[derive(Clone, Copy)]
pub struct Traffic<'a> {
    pub flows: &'a [FlowNode],
    pub workloads: &'a [WorkloadNode],
}

/// Reports the parts of the scenario with which its switches cannot route, at `item`: `forwarding: routed`.
pub fn check(item: &Item<'_>, net: &Net<'_>, cables: &Cables, traffic: Traffic<'_>, learning: Learning) {
    let Traffic { flows, workloads } = traffic;
    if learning == Learning::Frames {
        item.fail("routers do not learn routes from frames; remove `learning: frames`");
    }
    for host in net.hosts.iter().filter(|host| host.item.has("ip")) {
        host.item.child("ip").fail("a host of a routed network gets its address from its port; remove it");
    }
    if let Some(flow) = flows.iter().find(|flow| flow.tag.is_some()) {
        item.fail(format!("flow {} has tags, and hosts send untagged frames to a router; remove `vlan`", flow.name));
    }
    if let Some(workload) = workloads.iter().find(|workload| workload.senders.iter().any(|flow| flow.tag.is_some())) {
        let name = &workload.name;
        item.fail(format!("flows of {name} have tags, and hosts send untagged frames to a router; remove `vlan`"));
    }
    let needs_points = |flow: &FlowNode| flow.control.is_some_and(|control| control.needs().congestion_points);
    if let Some(flow) = flows.iter().find(|flow| needs_points(flow)) {
        let name = &flow.name;
        item.fail(format!("flow {name} has `cc: qcn`, and messages of QCN do not cross routers; write another `cc`"));
    }
    if let Some(workload) = workloads.iter().find(|workload| workload.senders.iter().any(needs_points)) {
        let name = &workload.name;
        item.fail(format!(
            "flows of {name} have `cc: qcn`, and messages of QCN do not cross routers; write another `cc`"
        ));
    }
    (0..net.switches.len()).for_each(|switch| check_switch(item, net, cables, switch));
}

fn check_switch(item: &Item<'_>, net: &Net<'_>, cables: &Cables, switch: usize) {
    let Some(config) = net.switches[switch].config.as_ref() else { return };
    let (spec, name) = (&config.switch, net.switches[switch].name.as_deref().unwrap_or_default());
    if spec.ports.len() > ROUTER_PORT {
        item.fail(format!(
            "switch {name} has {} ports, and a router at most {ROUTER_PORT}; remove some",
            spec.ports.len()
        ));
    }
    if spec.routing.is_some() {
        item.fail(format!("switch {name} has `routing`, which the simulator plans itself; remove one of the two"));
    }
    if spec.has_congestion_points() {
        item.fail(format!("a class of switch {name} has `qcn`, and messages of QCN do not cross routers; remove it"));
    }
    let leads_to_switch = |port: usize| {
        let link = cables.at(End::Port(PortRef { switch, port })).and_then(|link| cables.links.get(link));
        link.is_some_and(|link| matches!((link.a, link.b), (End::Port(_), End::Port(_))))
    };
    let ports = (0..spec.ports.len()).filter(|&port| !leads_to_switch(port));
    let mut vlans: Vec<Option<u16>> = ports.map(|port| spec.ports[port].vlan.untagged()).collect();
    vlans.dedup();
    let highest = HIGHEST_VLAN - ROUTER_PORT as u16;
    if vlans.len() > 1 || vlans.iter().any(|vlan| vlan.is_none_or(|vlan| vlan > highest)) {
        item.fail(format!(
            "the ports of switch {name} to hosts need one common untagged VLAN up to {highest}; set their `vlan`"
        ));
    }
}
