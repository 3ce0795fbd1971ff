//! The router of a simulated switch: routes, groups and tables of a real switch, with static neighbours.
//!
//! No ARP and no ICMP messages are sent, and no routing protocol runs. Some time after a link has changed, all routers
//! get the routes by the links that are up.

use std::sync::Arc;

use super::engine::Engine;
use super::frame::SimPacket;
use super::load::PS;
use super::outcome::HopOutcome;
use super::routing::Fabric;
use super::spec::{End, PortRef};
use crate::dataplane::Pipeline;
use crate::forward::LagsSpec;
use crate::plan::Counters;
use crate::route::{Attachment, FibWriter, RouteSpec, RouteTable, RoutingSpec, SoftFib};
use crate::router::Router;
use crate::sets::PortSet;
use crate::units::Nanos;

/// The router of a switch.
#[derive(Debug)]
pub struct SimRouter {
    router: Router,
    /// The plan of the start. Later ones have other routes.
    plan: RoutingSpec,
    lags: LagsSpec,
    /// The tables that the lcores route by. Kept, because an lcore must not free them.
    table: Option<Arc<RouteTable>>,
}

impl SimRouter {
    /// Returns the router with this plan on a switch with these groups, after the lcores of `fleet` have received its
    /// tables.
    #[must_use]
    pub fn new(plan: &RoutingSpec, lags: &LagsSpec, fleet: &mut [Pipeline<SimPacket>]) -> Self {
        let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
        let mut router =
            Self { router: Router::new(plan, fibs, Nanos(1)), plan: plan.clone(), lags: lags.clone(), table: None };
        router.publish(fleet);
        router
    }

    /// Follows a change of links: only the ports `up` have one, and `routes` are the shortest paths now. Returns
    /// whether the lcores route otherwise than before.
    fn reroute(&mut self, up: PortSet, routes: Vec<RouteSpec>, fleet: &mut [Pipeline<SimPacket>], now: Nanos) -> bool {
        // A group is one port to the router, and all of its members with a link are active.
        self.router.set_links(self.lags.bridge_ports_up(up, PortSet::ALL), now);
        self.router.configure(&RoutingSpec { routes, ..self.plan.clone() }, now);
        self.publish(fleet)
    }

    /// Gives the lcores the tables with all changes. Returns whether there are any.
    fn publish(&mut self, fleet: &mut [Pipeline<SimPacket>]) -> bool {
        // Neighbours are static, so the announcements of the router's own addresses would change nothing.
        drop(self.router.take_output());
        let Some(table) = self.router.update() else { return false };
        fleet.iter_mut().for_each(|pipeline| pipeline.set_routes(&table));
        self.router.settle();
        self.table = Some(table);
        true
    }

    /// Returns the results of the next hops behind routed ports.
    #[must_use]
    pub fn hops(&self, counters: &Counters) -> Vec<HopOutcome> {
        let neighbours = self.router.neighbours_view(Nanos(1));
        let hops = neighbours.iter().filter_map(|neighbour| {
            let Attachment::Port(port) = self.plan.interfaces.get(usize::from(neighbour.interface))?.attachment else {
                return None;
            };
            let frames = neighbour.adjacency.map_or(0, |adjacency| counters.adjacency_frames(adjacency));
            Some(HopOutcome { port: port.into(), frames })
        });
        hops.collect()
    }
}

/// The tables of the router with this plan, while all links are up.
#[must_use]
pub fn table(plan: &RoutingSpec) -> Option<Arc<RouteTable>> {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    Router::new(plan, fibs, Nanos(1)).update()
}

impl Engine<'_> {
    /// Lets all routers follow the present state of the links.
    pub(super) fn reroute(&mut self) {
        let now = Nanos(1 + self.net.now / PS);
        let fabric = Fabric::new(self.scenario);
        let is_up = |link: usize| self.net.wires[2 * link].is_up;
        for (switch, node) in self.net.nodes.iter_mut().enumerate() {
            let Some(router) = &mut node.router else { continue };
            let up = self.scenario.links.iter().enumerate().filter(|&(link, _)| is_up(link));
            let ends = up.flat_map(|(_, link)| [link.a, link.b]).filter_map(|end| match end {
                End::Port(PortRef { switch: of, port }) if of == switch => Some(port),
                _ => None,
            });
            if router.reroute(ends.collect(), fabric.routes(switch, &is_up), &mut node.fleet, now) {
                self.rerouted_ps = Some(self.net.now);
            }
        }
    }
}
