//! Cables: one for each host, and `links:` between switches.

use std::collections::BTreeMap;

use super::net::Net;
use crate::config::read_cable;
use crate::config::yaml::read::{Fields, Item};
use crate::sim::spec::{End, LinkNode, PortRef};
use crate::units::Length;

const KEYS: &[&str] = &["a", "b", "length"];
const EXAMPLE: &str = "`- {a: s1.p9, b: s2.p9}` for each link";

/// All cables, and the ports and hosts at their ends.
pub struct Cables {
    pub links: Vec<LinkNode>,
    /// Whether frames can return to a switch that sent them.
    pub circle: bool,
    by_port: BTreeMap<PortRef, usize>,
    by_host: BTreeMap<usize, usize>,
    /// Disjoint sets of connected switches: by switch, its parent. The root stands for its set.
    groups: Vec<usize>,
}

impl Cables {
    /// Lays the cables of hosts, then reads `links:`.
    pub fn read(net: &Net<'_>, item: Option<Item<'_>>) -> Self {
        let mut cables = Self {
            links: Vec::new(),
            circle: false,
            by_port: BTreeMap::new(),
            by_host: BTreeMap::new(),
            groups: (0..net.switches.len()).collect(),
        };
        (0..net.hosts.len()).for_each(|host| cables.lay_to_host(net, host));
        for item in item.and_then(|item| item.list(EXAMPLE)).unwrap_or_default() {
            if let Some(fields) = item.fields(KEYS) {
                cables.lay_between_switches(net, &fields);
            }
        }
        cables
    }

    /// Returns the cable at a port or host.
    pub fn at(&self, end: End) -> Option<usize> {
        match end {
            End::Port(port) => self.by_port.get(&port).copied(),
            End::Host(host) => self.by_host.get(&host).copied(),
        }
    }

    /// Whether a path connects two switches.
    pub fn connect(&self, a: usize, b: usize) -> bool {
        self.group(a) == self.group(b)
    }

    fn lay_to_host(&mut self, net: &Net<'_>, host: usize) {
        let (item, node, length) = (&net.hosts[host].item, &net.hosts[host].node, net.hosts[host].length);
        let Some(port) = net.hosts[host].at else { return };
        let Some(rate) = net.spec(port).map(|spec| spec.rate) else { return };
        if let Some(length) = length {
            warn_of_length(&item.child("length"), net, length, &[port]);
        }
        // In a switch's own configuration the key is `port`.
        let place = item.child(if item.has("at") { "at" } else { "port" });
        if self.is_free(&place, net, port) {
            let name = format!("{}-{}", net.port_name(port), node.name);
            let length = length.unwrap_or_else(|| cable_of(net, port));
            self.lay(LinkNode { name, a: End::Port(port), b: End::Host(host), rate, length });
        }
    }

    fn lay_between_switches(&mut self, net: &Net<'_>, fields: &Fields<'_>) {
        let end = |key: &str, example: &str| {
            let item = fields.required(key, example)?;
            net.port(&item).map(|port| (item, port))
        };
        let (a, b) = (end("a", "a: s1.p9"), end("b", "b: s2.p9"));
        let length = fields.get("length").and_then(|item| read_cable(&item));
        let (Some((a_item, a)), Some((b_item, b))) = (a, b) else { return };
        let (Some(a_spec), Some(b_spec)) = (net.spec(a), net.spec(b)) else { return };
        if a.switch == b.switch {
            return b_item.fail("both ends are at the same switch; write a port of another switch");
        }
        if a_spec.rate != b_spec.rate {
            return fields.owner().fail(format!(
                "{} has {} and {} has {}; write the same `speed` for both",
                net.port_name(a),
                a_spec.rate,
                net.port_name(b),
                b_spec.rate
            ));
        }
        let length = length.unwrap_or_else(|| cable_of(net, a));
        let place = fields.get("length").unwrap_or_else(|| fields.owner().clone());
        warn_of_length(&place, net, length, &[a, b]);
        // `&` without short circuit: both ends are checked, so both can have an error.
        if self.is_free(&a_item, net, a) & self.is_free(&b_item, net, b) {
            let name = format!("{}-{}", net.port_name(a), net.port_name(b));
            self.lay(LinkNode { name, a: End::Port(a), b: End::Port(b), rate: a_spec.rate, length });
            self.join(a.switch, b.switch);
        }
    }

    fn lay(&mut self, link: LinkNode) {
        for end in [link.a, link.b] {
            match end {
                End::Port(port) => self.by_port.insert(port, self.links.len()),
                End::Host(host) => self.by_host.insert(host, self.links.len()),
            };
        }
        self.links.push(link);
    }

    /// Whether the port has no cable yet; reports an error if it has one.
    fn is_free(&self, item: &Item<'_>, net: &Net<'_>, port: PortRef) -> bool {
        let Some(&taken) = self.by_port.get(&port) else { return true };
        let name = net.port_name(port);
        let cable = self.links.get(taken).map_or("a cable", |link| &link.name);
        item.fail(format!("port {name} has a cable already ({cable}); write another port"));
        false
    }

    fn group(&self, mut switch: usize) -> usize {
        while self.groups[switch] != switch {
            switch = self.groups[switch];
        }
        switch
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.group(a), self.group(b));
        self.circle |= a == b;
        self.groups[a] = b;
    }
}

/// Returns the length of a port's cable in the configuration.
fn cable_of(net: &Net<'_>, port: PortRef) -> Length {
    let config = net.switches[port.switch].config.as_ref();
    config.and_then(|config| config.devices.get(port.port)).map_or(Length::default(), |device| device.cable)
}

/// Warns if the cable is longer than the configured one, from which the headroom is computed.
fn warn_of_length(item: &Item<'_>, net: &Net<'_>, length: Length, ports: &[PortRef]) {
    for &port in ports {
        let cable = cable_of(net, port);
        if cable < length {
            let name = net.port_name(port);
            item.warn(format!(
                "headroom of {name} is computed for {cable}, and the cable has {length}; write `cable: {length}` there"
            ));
        }
    }
}
