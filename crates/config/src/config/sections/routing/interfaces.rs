//! `routing.interfaces`: routed ports and VLAN interfaces.

use crate::config::sections::draft::Port;
use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::addresses::{self, is_link_local};
use super::networks::{Network, Networks};
use crate::config::keys::Key;
use crate::config::sections::system::forwarding_port;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::forward::VlanMode;
use crate::forward::vlan::MAX_VLAN;
use crate::route::{Attachment, InterfaceSpec};
use crate::sets::PortSet;
use crate::wire::MacAddr;

pub const KEYS: &[Key] = &[
    Key::new("port", "", "a port without `vlan`", "routed port"),
    Key::new("vlan", "", "1 to 4094, with a member port", "VLAN interface"),
    Key::new(
        "mac",
        "the port's; of a VLAN, the first port's",
        "unicast",
        "source of its frames; frames to it are routed",
    ),
    Key::new(
        "addresses",
        "required without `linux`",
        "1 to 16; /8 to /32, /16 to /128",
        "own addresses with the prefix lengths of their networks",
    ),
];

/// RFC 8200 section 5: "IPv6 requires that every link in the Internet have an MTU of 1280 octets or greater."
const LEAST_IPV6_MTU: u16 = 1280;

/// The port or the VLAN of an interface. Routed ports come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Port(usize),
    Vlan(u16),
}

/// An interface whose ports are not known yet: VLANs of routed ports come after all interfaces are read.
struct Draft<'a> {
    item: Item<'a>,
    place: Place,
    mac: Option<MacAddr>,
    addresses: Vec<IpNet>,
}

/// All interfaces.
pub struct Interfaces {
    pub specs: Vec<InterfaceSpec>,
    /// Whether the MAC address is written, by interface.
    pub has_mac: Vec<bool>,
    places: Vec<Place>,
    networks: Networks,
    own: HashSet<IpAddr>,
    /// Whether no interface has an error. Otherwise an address on no network may be one of a missing interface.
    is_whole: bool,
}

/// Reads all interfaces, and gives each routed port its internal VLAN. The order in the file has no meaning. Where
/// Linux has addresses too (`has_linux`), an interface needs none.
pub fn read<'a>(fields: &Fields<'a>, ports: &mut [Port<'a>], macs: &mut Unique, has_linux: bool) -> Interfaces {
    let report = fields.owner().report();
    let errors = report.errors();
    let item = fields.required("interfaces", "interfaces: [{port: p1, addresses: [10.0.1.1/31]}]");
    let list = item.as_ref().and_then(|list| list.list("`- {port: p1, addresses: [10.0.1.1/31]}` for each interface"));
    let items = list.unwrap_or_default();
    if let Some(list) = item.filter(|list| list.is_list() && items.is_empty()) {
        list.fail("there is no interface; write e.g. `- {port: p1, addresses: [10.0.1.1/31]}`");
    }
    let (mut places, mut addresses) = (HashSet::new(), Unique::new("address"));
    let mut drafts: Vec<Draft<'_>> =
        items.iter().filter_map(|item| read_one(item, ports, &mut places, &mut addresses, has_linux)).collect();
    drafts.sort_by_key(|draft| draft.place);
    claim_macs(&drafts, ports, macs);
    take_ports(&drafts, ports);
    let specs: Vec<InterfaceSpec> = drafts.iter().filter_map(|draft| finish(draft, ports)).collect();
    let is_whole = report.errors() == errors;
    let networks = networks(&drafts, &specs, is_whole);
    let own = specs.iter().flat_map(|spec| &spec.addresses).map(IpNet::addr);
    Interfaces {
        own: own.filter(|own| !is_link_local(*own)).collect(),
        has_mac: drafts.iter().map(|draft| draft.mac.is_some()).collect(),
        places: drafts.iter().map(|draft| draft.place).collect(),
        specs,
        networks,
        is_whole,
    }
}

fn read_one<'a>(
    item: &Item<'a>,
    ports: &[Port<'_>],
    places: &mut HashSet<Place>,
    unique: &mut Unique,
    has_linux: bool,
) -> Option<Draft<'a>> {
    let fields = item.fields(KEYS)?;
    let mac = fields.get("mac").as_ref().and_then(names::station);
    let addresses = match fields.get("addresses") {
        None if has_linux => None,
        _ => fields.required("addresses", "addresses: [10.0.1.1/31]"),
    };
    let addresses = addresses.map(|item| addresses::read_own(&item, unique)).unwrap_or_default();
    let Some((item_of_place, place)) = read_place(&fields, ports)? else {
        return item.refuse("`port` or `vlan` is missing; write e.g. `port: p1` to route at a port, or `vlan: 10`");
    };
    if !places.insert(place) {
        return item_of_place.refuse(match place {
            Place::Port(port) => format!("port `{}` has an interface already; keep one of the two", ports[port].name),
            Place::Vlan(vlan) => format!("VLAN {vlan} has an interface already; keep one of the two"),
        });
    }
    Some(Draft { item: item.clone(), place, mac, addresses })
}

/// The place that `port` or `vlan` names; `Some(None)` if neither is written.
fn read_place<'a>(fields: &Fields<'a>, ports: &[Port<'_>]) -> Option<Option<(Item<'a>, Place)>> {
    match (fields.get("port"), fields.get("vlan")) {
        (None, None) => Some(None),
        (Some(_), Some(vlan)) => vlan.refuse("`port` and `vlan` exclude each other; keep one of the two"),
        (Some(item), None) => {
            let port = forwarding_port(&item, ports)?;
            Some(Some((item, Place::Port(port))))
        }
        (None, Some(item)) => {
            let vlan = item.number("a VLAN", 1..=MAX_VLAN.into())?;
            Some(Some((item, Place::Vlan(vlan))))
        }
    }
}

/// Claims the written addresses. Interfaces may share one, because each has a VLAN of its own.
fn claim_macs(drafts: &[Draft<'_>], ports: &[Port<'_>], macs: &mut Unique) {
    let mut claimed: BTreeSet<MacAddr> = ports.iter().map(|port| port.mac).collect();
    for draft in drafts {
        if let Some(mac) = draft.mac.filter(|mac| claimed.insert(*mac)) {
            macs.claim(&draft.item.child("mac"), &mac.to_string());
        }
    }
}

/// The port that stands for port `index`: the first of its link aggregation group, or itself.
fn stands_for(index: usize, port: &Port<'_>) -> usize {
    port.lag.as_ref().map_or(index, |(_, first)| *first)
}

/// Gives each routed port an internal VLAN: the highest ids that no other port and no interface uses.
fn take_ports(drafts: &[Draft<'_>], ports: &mut [Port<'_>]) {
    let routed: Vec<(usize, &Draft<'_>)> = drafts
        .iter()
        .filter_map(|draft| match draft.place {
            Place::Port(port) => Some((port, draft)),
            Place::Vlan(_) => None,
        })
        .collect();
    let is_routed = |index: &usize| routed.iter().any(|(port, _)| *port == stands_for(*index, &ports[*index]));
    let bridged = (0..ports.len()).filter(|index| !is_routed(index)).map(|index| &ports[index].vlan);
    let mut used: BTreeSet<u16> =
        bridged.flat_map(|vlan| vlan.tagged().iter().copied().chain(vlan.untagged())).collect();
    used.extend(drafts.iter().filter_map(|draft| match draft.place {
        Place::Vlan(vlan) => Some(vlan),
        Place::Port(_) => None,
    }));
    let mut free = (1..=MAX_VLAN).rev().filter(|vlan| !used.contains(vlan));
    for (port, draft) in routed {
        let members: Vec<&mut Port<'_>> = ports
            .iter_mut()
            .enumerate()
            .filter(|(index, other)| stands_for(*index, other) == port)
            .map(|(_, port)| port)
            .collect();
        for port in members.iter().filter(|port| port.item.has("vlan")) {
            port.item.child("vlan").fail(format!(
                "port `{}` has an interface and so bridges nothing; remove `vlan`, or write `vlan` instead of `port` \
                 in `routing.interfaces`",
                port.name
            ));
        }
        match free.next() {
            Some(vlan) => members.into_iter().for_each(|port| port.vlan = VlanMode::Routed(vlan)),
            None => draft.item.fail(
                "the ports carry all VLANs from 1 to 4094, and a routed port needs one inside the switch; remove one \
                 from `ports[].vlan`",
            ),
        }
    }
}

/// Completes an interface with the settings of its ports.
fn finish(draft: &Draft<'_>, ports: &[Port<'_>]) -> Option<InterfaceSpec> {
    let (attachment, vlan, name, default, members) = match draft.place {
        Place::Port(index) => {
            let port = &ports[index];
            let attachment = Attachment::Port(u8::try_from(index).ok()?);
            let name = port.lag.as_ref().map_or(&port.name, |(group, _)| group);
            (attachment, port.vlan.untagged()?, name.clone(), port.mac, PortSet::only(index))
        }
        Place::Vlan(vlan) => {
            let members: PortSet = (0..ports.len()).filter(|&index| ports[index].carries(Some(vlan))).collect();
            (Attachment::Vlan, vlan, format!("vlan{vlan}"), ports.first()?.mac, members)
        }
    };
    if members.is_empty() {
        return draft.item.child("vlan").refuse(format!(
            "no port carries VLAN {vlan}; write a VLAN of a port, or `vlan: {vlan}` at a port without an interface"
        ));
    }
    if let Some(port) = ports.iter().find(|port| port.name == name && attachment == Attachment::Vlan) {
        draft
            .item
            .child("vlan")
            .fail(format!("port `{}` has the name of this interface; write another name for the port", port.name));
    }
    let smallest = members.iter().map(|index| &ports[index]).min_by_key(|port| port.mtu)?;
    if smallest.mtu < LEAST_IPV6_MTU && draft.addresses.iter().any(|own| own.addr().is_ipv6()) {
        draft.item.child("addresses").fail(format!(
            "IPv6 needs an MTU of at least {LEAST_IPV6_MTU}, and port `{}` has {}; write `mtu: {LEAST_IPV6_MTU}` or \
             more there, or no IPv6 address",
            smallest.name, smallest.mtu
        ));
    }
    Some(InterfaceSpec {
        name,
        attachment,
        vlan,
        mac: draft.mac.unwrap_or(default),
        ports: members,
        addresses: draft.addresses.clone(),
        mtu: smallest.mtu,
    })
}

/// The networks of the interfaces. Those of two interfaces may not overlap.
fn networks(drafts: &[Draft<'_>], specs: &[InterfaceSpec], is_whole: bool) -> Networks {
    let of_spec = |(interface, spec): (usize, &InterfaceSpec)| -> Vec<Network> {
        let prefixes = spec.addresses.iter().filter(|own| !is_link_local(own.addr())).map(IpNet::trunc);
        prefixes.map(|prefix| Network { prefix, interface: interface as u16 }).collect()
    };
    let (networks, overlaps) = Networks::new(specs.iter().enumerate().flat_map(of_spec).collect());
    // Indices of specifications are those of drafts if none is missing.
    for (network, other) in overlaps.iter().filter(|_| is_whole) {
        let (draft, other_name) = (&drafts[usize::from(network.interface)], &specs[usize::from(other.interface)].name);
        draft.item.child("addresses").fail(format!(
            "network {} overlaps {} of interface `{other_name}`; write networks that do not overlap",
            network.prefix, other.prefix
        ));
    }
    networks
}

impl Interfaces {
    /// The name of an interface.
    pub fn name(&self, interface: u16) -> &str {
        &self.specs[usize::from(interface)].name
    }

    /// Whether `prefix` is the network of an interface, and of which.
    pub fn owner(&self, prefix: IpNet) -> Option<&str> {
        let is_network = |own: &IpNet| !is_link_local(own.addr()) && own.trunc() == prefix;
        let network = self.networks.of(prefix.network())?;
        let spec = self.specs.get(usize::from(network.interface))?;
        spec.addresses.iter().any(is_network).then_some(spec.name.as_str())
    }

    /// The interface that `port` or `vlan` names; `Some(None)` if neither is written.
    pub fn named(&self, fields: &Fields<'_>, ports: &[Port<'_>]) -> Option<Option<u16>> {
        let Some((item, place)) = read_place(fields, ports)? else { return Some(None) };
        let index = self.places.iter().position(|known| *known == place);
        match index {
            Some(index) => Some(u16::try_from(index).ok()),
            None if !self.is_whole => None,
            None => item.refuse(format!(
                "{} has no interface; write one of `routing.interfaces`",
                match place {
                    Place::Port(port) => format!("port `{}`", ports[port].name),
                    Place::Vlan(vlan) => format!("VLAN {vlan}"),
                }
            )),
        }
    }

    /// The interface that leads to the host at `address`: the one `named`, or the one on whose network the host is.
    pub fn lead_to(&self, item: &Item<'_>, address: IpAddr, named: Option<u16>) -> Option<u16> {
        if !self.is_whole {
            return None;
        }
        if self.is_own(address, named) {
            return item.refuse(format!("`{address}` is an address of this switch; write that of a neighbour"));
        }
        if is_link_local(address) {
            let missing = "a link-local address, so its interface is unknown; add e.g. `port: p1` or `vlan: 10`";
            return named.or_else(|| item.refuse(format!("`{address}` is {missing}")));
        }
        let network = self.networks.of(address);
        let Some(network) = network.filter(|network| named.is_none_or(|named| named == network.interface)) else {
            let of = named.map_or("any interface".to_owned(), |named| format!("interface `{}`", self.name(named)));
            let remedy = match (network, self.networks.example(named, address)) {
                (Some(network), _) => format!("write its interface, `{}`", self.name(network.interface)),
                (None, Some(network)) => {
                    format!("write e.g. a host of {}, at `{}`", network.prefix, self.name(network.interface))
                }
                (None, None) => "give an interface an address of the same network".to_owned(),
            };
            return item.refuse(format!("`{address}` is on no network of {of}; {remedy}"));
        };
        match addresses::edge_of(network.prefix, address) {
            Some(kind) => item.refuse(format!("`{address}` is {kind}, {}; write that of a host", network.prefix)),
            None => Some(network.interface),
        }
    }

    fn is_own(&self, address: IpAddr, interface: Option<u16>) -> bool {
        let spec = interface.and_then(|index| self.specs.get(usize::from(index)));
        self.own.contains(&address) || spec.is_some_and(|spec| spec.addresses.iter().any(|own| own.addr() == address))
    }
}
