//! Routing: interfaces, neighbours and routes.

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::SwitchSpec;
use crate::route::{Attachment, RoutingSpec};
use crate::router::view::{HopView, RouteView};
use crate::router::{InterfaceView, NeighbourView, Source};

/// Interfaces of the router.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interfaces {
    /// Whether the switch routes; else `entries` is empty.
    pub routing: bool,
    /// Interfaces.
    pub entries: Vec<Interface>,
}

/// One interface.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Interface {
    /// Name.
    pub interface: String,
    /// `port` (routed port) or `vlan` (bridged VLAN).
    pub kind: String,
    /// VLAN; null: routed port.
    pub vlan: Option<u16>,
    /// Ports that carry its frames.
    pub ports: Vec<String>,
    /// Whether one of them has a link, and it is not shut.
    pub up: bool,
    /// Whether [Linux](linux.md) has shut it.
    pub shut: bool,
    /// MAC address.
    pub mac: String,
    /// Longest IP packet.
    pub mtu_bytes: u16,
    /// Addresses with prefix lengths, the link-local one last.
    pub addresses: Vec<String>,
}

impl Interfaces {
    /// The interfaces `views` of the router of `spec`.
    #[must_use]
    pub fn of(spec: &SwitchSpec, views: &[InterfaceView]) -> Self {
        let planned = spec.routing.iter().flat_map(|routing| &routing.interfaces);
        let entries = views.iter().zip(planned).map(|(view, planned)| {
            let is_port = matches!(planned.attachment, Attachment::Port(_));
            let ports = spec.ports.iter().enumerate().filter(|(index, _)| planned.ports.contains(*index));
            Interface {
                interface: view.name.clone(),
                kind: if is_port { "port" } else { "vlan" }.to_owned(),
                vlan: (!is_port).then_some(view.vlan),
                ports: ports.map(|(_, port)| port.name.clone()).collect(),
                up: view.is_up,
                shut: view.is_shut,
                mac: view.mac.to_string(),
                mtu_bytes: view.mtu,
                addresses: view.addresses.iter().map(ToString::to_string).collect(),
            }
        });
        Self { routing: true, entries: entries.collect() }
    }
}

/// Neighbours of the router.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbours {
    /// Whether the switch routes.
    pub routing: bool,
    /// Neighbours, by interface and address.
    pub entries: Vec<Neighbour>,
}

/// One neighbour.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbour {
    /// Interface.
    pub interface: String,
    /// IP address.
    pub address: String,
    /// MAC address; null: not known.
    pub mac: Option<String>,
    /// `static`, `reachable`, `stale` (usable, will be asked), `probing` (usable, asked again), `incomplete` (asked
    /// first), `failed`, `silent` (static, without an answer).
    pub state: String,
    /// Time since it was confirmed; null: never.
    pub age_ns: Option<u64>,
    /// Sets of next hops of routes with it.
    pub groups: u32,
    /// Frames routed to it.
    pub routed_frames: u64,
}

impl Neighbours {
    /// The neighbours `views` of the router of `spec`, with the frames routed to each.
    #[must_use]
    pub fn of(spec: &RoutingSpec, views: &[NeighbourView], frames: &[u64]) -> Self {
        let entries = views.iter().zip(frames).map(|(view, frames)| Neighbour {
            interface: name(spec, view.interface),
            address: view.address.to_string(),
            mac: view.mac.map(|mac| mac.to_string()),
            state: view.state.label().to_owned(),
            age_ns: view.age.map(|age| age.0),
            groups: view.uses,
            routed_frames: *frames,
        });
        Self { routing: true, entries: entries.collect() }
    }
}

/// Routes in use.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Routes {
    /// Whether the switch routes.
    pub routing: bool,
    /// Prefix for `after`, if there may be further routes.
    pub next: Option<String>,
    /// Routes.
    pub entries: Vec<Route>,
}

/// One route.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Route {
    /// Destinations.
    pub prefix: String,
    /// `local`, `neighbour`, `connected`, `static` or `kernel`.
    pub source: String,
    /// `forward`, `connected` (hosts are their own next hops), `local` (the switch itself), `drop`.
    pub action: String,
    /// Interface of a connected network.
    pub interface: Option<String>,
    /// Whether packets are forwarded or delivered now.
    pub usable: bool,
    /// Next hops.
    pub next_hops: Vec<NextHop>,
}

/// One next hop of a route.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NextHop {
    /// IP address.
    pub address: String,
    /// Interface.
    pub interface: String,
    /// Share of the flows.
    pub weight: u16,
    /// Whether packets go there now.
    pub usable: bool,
}

impl Routes {
    /// The routes `views` of the router of `spec`, which continue after `next`.
    #[must_use]
    pub fn of(spec: &RoutingSpec, views: &[RouteView], next: Option<IpNet>) -> Self {
        let next = next.map(|prefix| prefix.to_string());
        Self { routing: true, next, entries: views.iter().map(|view| Route::of(spec, view)).collect() }
    }
}

impl Route {
    fn of(spec: &RoutingSpec, view: &RouteView) -> Self {
        let (action, usable) = match view {
            RouteView { drops: true, .. } => ("drop", false),
            RouteView { connected: Some(_), .. } => ("connected", true),
            RouteView { source: Source::Local, .. } => ("local", true),
            _ => ("forward", view.next_hops.iter().any(|hop| hop.is_usable)),
        };
        let next_hop = |hop: &HopView| NextHop {
            address: hop.address.to_string(),
            interface: name(spec, hop.interface),
            weight: hop.weight,
            usable: hop.is_usable,
        };
        Self {
            prefix: view.prefix.to_string(),
            source: view.source.label().to_owned(),
            action: action.to_owned(),
            interface: view.connected.filter(|_| !view.drops).map(|interface| name(spec, interface)),
            usable,
            next_hops: view.next_hops.iter().map(next_hop).collect(),
        }
    }
}

/// Name of an interface.
fn name(spec: &RoutingSpec, interface: u16) -> String {
    spec.interfaces.get(usize::from(interface)).map_or_else(|| format!("#{interface}"), |known| known.name.clone())
}
