//! Static routes of the configuration. They are in use while one of their next hops has an interface that is up.

use super::{Router, Source};
use crate::route::RouteSpec;
use crate::units::Nanos;

impl Router {
    /// Sets a static route, or removes it if all its next hops are by interfaces that are down: routes of other sources
    /// and shorter prefixes apply then. A next hop that does not answer ARP is not down.
    pub(super) fn set_static_route(&mut self, route: &RouteSpec, now: Nanos) {
        let is_up = |index: u16| self.interfaces.get(usize::from(index)).is_some_and(|interface| interface.is_up);
        if route.next_hops.is_empty() || route.next_hops.iter().any(|hop| is_up(hop.interface)) {
            self.set_route(Source::Static, route.prefix, &route.next_hops, now);
        } else {
            self.remove_route(Source::Static, route.prefix);
        }
    }

    /// Follows a change of the link of interface `index`.
    pub(super) fn follow_link(&mut self, index: u16, now: Nanos) {
        let routes = std::mem::take(&mut self.spec.routes);
        for route in routes.iter().filter(|route| route.next_hops.iter().any(|hop| hop.interface == index)) {
            self.set_static_route(route, now);
        }
        self.spec.routes = routes;
    }
}
