//! Reads `hosts:` of the scenario and of the configurations of switches.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::net::Net;
use super::switches::Switch;
use crate::config::read_cable;
use crate::config::read_ip;
use crate::config::yaml::bounds;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::hosts::{FlowSpec, HostSpec};
use crate::sim::spec::{HostNode, PortRef, ReceiverSpec};
use crate::units::{BitRate, Bytes, Length, Nanos};
use crate::wire::MacAddr;

const KEYS: &[&str] = &["name", "at", "pfc", "response", "receiver", "known", "length", "mac", "ip", "flows"];
const EXAMPLE: &str = "`- {name: h1, at: tor.p1}` for each host";
const MOST: usize = 16_384;

/// Name that stands for every host as sender or receiver of flows.
pub const ALL: &str = "all";

pub const LONGEST_RESPONSE: Nanos = Nanos(1_000_000_000);
const SLOWEST_RECEIVER: BitRate = BitRate(1_000);
const FASTEST_RECEIVER: BitRate = BitRate(800_000_000_000);
const SMALLEST_BUFFER: Bytes = Bytes(64);
const LARGEST_BUFFER: Bytes = Bytes(1 << 30);

/// Number of last octets in a row of addresses; they exclude the network address and the broadcast address.
const ADDRESSES: usize = 250;

/// A host as read. Invalid values are replaced by defaults.
pub struct Host<'a> {
    pub node: HostNode,
    /// Switch port of the host; `None`: there is none, which is reported.
    pub at: Option<PortRef>,
    /// Length of the host's cable, if given.
    pub length: Option<Length>,
    /// The item that defines the host.
    pub item: Item<'a>,
    pub flows: HostFlows<'a>,
}

/// Flows that are defined with the host.
pub enum HostFlows<'a> {
    /// Flows in the scenario.
    Written(Vec<Item<'a>>),
    /// Flows in the configuration of the host's switch. The first host of that switch has the index `first`.
    OfSwitch { first: usize, specs: Vec<FlowSpec> },
}

/// Reads all hosts: first those of switches, in the order of switches.
pub fn read<'a>(item: Option<Item<'a>>, switches: Vec<Switch<'a>>, names: &mut Unique) -> Net<'a> {
    let has_unnamed = switches.iter().any(|switch| switch.name.is_none() || switch.config.is_none());
    let mut net = Net { switches, hosts: Vec::new(), by_name: HashMap::new(), has_unnamed };
    let mut macs = Unique::new("MAC address");
    for switch in 0..net.switches.len() {
        read_of_switch(&mut net, switch, names, &mut macs);
    }
    let items = item.as_ref().and_then(|item| item.list(EXAMPLE)).unwrap_or_default();
    if let Some(item) = item.filter(|_| net.hosts.len() + items.len() > MOST) {
        item.fail(format!("{} hosts are too many; write at most {MOST}", net.hosts.len() + items.len()));
        net.has_unnamed = true;
        return net;
    }
    for item in &items {
        let host = item.fields(KEYS).and_then(|fields| read_one(&fields, &net, names, &mut macs));
        match host {
            Some(host) => add(&mut net, host),
            None => net.has_unnamed = true,
        }
    }
    net
}

fn add<'a>(net: &mut Net<'a>, host: Host<'a>) {
    net.by_name.entry(host.node.name.clone()).or_insert(net.hosts.len());
    net.hosts.push(host);
}

/// Reads the hosts in a switch's own configuration.
fn read_of_switch(net: &mut Net<'_>, switch: usize, names: &mut Unique, macs: &mut Unique) {
    let (first, node) = (net.hosts.len(), &mut net.switches[switch]);
    let (Some(config), Some(written)) = (&mut node.config, &node.written) else { return };
    let specs = std::mem::take(&mut config.hosts);
    let items = if specs.is_empty() { Vec::new() } else { written.child("hosts").list(EXAMPLE).unwrap_or_default() };
    for (spec, item) in specs.into_iter().zip(items) {
        let number = net.hosts.len();
        let name = item.child("name");
        if spec.name.contains('.') || spec.name == ALL {
            name.fail(format!("`{}` is ambiguous among the names of a simulation; write e.g. `h1`", spec.name));
        }
        names.claim(&name, &spec.name);
        let host = of_switch(spec, item, PortRef { switch, port: 0 }, first, number, macs);
        add(net, host);
    }
}

fn of_switch<'a>(
    spec: HostSpec,
    item: Item<'a>,
    at: PortRef,
    first: usize,
    number: usize,
    macs: &mut Unique,
) -> Host<'a> {
    // The configuration numbers the hosts of one switch. In a scenario, addresses must also differ between switches.
    let (own_mac, own_ip) = addresses(number);
    let mac = if item.has("mac") { spec.mac } else { own_mac };
    macs.claim(&if item.has("mac") { item.child("mac") } else { item.clone() }, &mac.to_string());
    let node = HostNode {
        name: spec.name,
        mac,
        ip: if item.has("ip") { spec.ip } else { own_ip },
        obeys_pfc: spec.obeys_pfc,
        response: None,
        receiver: None,
        known: true,
    };
    let at = Some(PortRef { port: spec.port, ..at });
    Host { node, at, length: None, item, flows: HostFlows::OfSwitch { first, specs: spec.flows } }
}

/// Returns the addresses of the host with this index.
fn addresses(number: usize) -> (MacAddr, Ipv4Addr) {
    let (row, last) = (number / ADDRESSES, number % ADDRESSES + 1);
    (MacAddr::local(1, number as u16), Ipv4Addr::new(10, (row >> 8) as u8, row as u8, last as u8))
}

fn read_one<'a>(fields: &Fields<'a>, net: &Net<'a>, names: &mut Unique, macs: &mut Unique) -> Option<Host<'a>> {
    let name = names::read_undotted(fields, "name: h1", names);
    if name.as_deref() == Some(ALL)
        && let Some(item) = fields.get("name")
    {
        item.fail(format!("`{ALL}` means every host in `from` and `to` of flows; write another name"));
    }
    let (own_mac, own_ip) = addresses(net.hosts.len());
    let mac = names::read_mac(fields, macs, own_mac);
    let ip = fields.get("ip").and_then(|item| read_ip(&item)).unwrap_or(own_ip);
    let obeys_pfc =
        fields.get("pfc").and_then(|item| item.choice(&[("obey", true), ("ignore", false)])).unwrap_or(true);
    let response = bounds::get(fields, "response", Nanos(0)..=LONGEST_RESPONSE);
    let receiver = fields.get("receiver").and_then(|item| read_receiver(&item));
    let known = fields.get("known").and_then(|item| item.flag()).unwrap_or(true);
    let length = fields.get("length").and_then(|item| read_cable(&item));
    let flows = fields.get("flows").and_then(|item| item.list("e.g. `- {to: h2, kind: roce}`")).unwrap_or_default();
    let at = fields.required("at", "at: tor.p1").and_then(|item| net.port(&item));
    let node = HostNode { name: name?, mac, ip, obeys_pfc, response, receiver, known };
    Some(Host { node, at, length, item: fields.owner().clone(), flows: HostFlows::Written(flows) })
}

/// Reads the receive buffer of a slow host.
pub fn read_receiver(item: &Item<'_>) -> Option<ReceiverSpec> {
    let fields = item.fields(&["rate", "buffer", "xoff", "xon"])?;
    let rate = bounds::required(&fields, "rate", "rate: 2G", SLOWEST_RECEIVER..=FASTEST_RECEIVER);
    let sizes = SMALLEST_BUFFER..=LARGEST_BUFFER;
    let xoff = match (fields.get("buffer"), fields.get("xoff")) {
        (Some(buffer), None) => bounds::within(&buffer, sizes),
        (None, Some(xoff)) => bounds::within(&xoff, sizes),
        (Some(_), Some(xoff)) => xoff.refuse("`buffer` sets the same limit; keep one of the two"),
        (None, None) => item.refuse("`buffer` is missing; write e.g. `buffer: 200kB`, or `xoff` and `xon`"),
    }?;
    let xon = match fields.get("xon") {
        Some(xon) => read_xon(&xon, xoff)?,
        None => Bytes(xoff.0 / 2),
    };
    Some(ReceiverSpec { rate: rate?, xoff, xon })
}

fn read_xon(item: &Item<'_>, xoff: Bytes) -> Option<Bytes> {
    let xon = bounds::within(item, Bytes(1)..=LARGEST_BUFFER)?;
    if xon <= xoff {
        return Some(xon);
    }
    item.refuse(format!("`{}` is above XOFF; write at most {}B", item.shown(), xoff.0))
}
