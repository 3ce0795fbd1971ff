//! Finds switches, ports and hosts by name.

use std::collections::HashMap;

use super::hosts::Host;
use super::switches::Switch;
use crate::config::yaml::names;
use crate::config::yaml::read::Item;
use crate::plan::PortSpec;
use crate::sim::spec::{End, PortRef};

/// Most names that an error message is compared with: more would take long and not help.
const MOST_SUGGESTED: usize = 64;

/// The parts of a scenario that others refer to. Invalid parts are included, so that a reference to one is not another
/// error.
pub struct Net<'a> {
    pub switches: Vec<Switch<'a>>,
    pub hosts: Vec<Host<'a>>,
    /// Hosts by name.
    pub by_name: HashMap<String, usize>,
    /// Whether a name could not be read, so that an unknown name may be valid.
    pub has_unnamed: bool,
}

impl Net<'_> {
    /// Returns the specification of a port; `None` if its switch is invalid.
    pub fn spec(&self, port: PortRef) -> Option<&PortSpec> {
        self.switches.get(port.switch)?.config.as_ref()?.switch.ports.get(port.port)
    }

    /// Returns the name of a port, like `tor.p1`.
    pub fn port_name(&self, port: PortRef) -> String {
        let switch = self.switches.get(port.switch).and_then(|switch| switch.name.as_deref()).unwrap_or_default();
        let name = self.spec(port).map(|spec| spec.name.as_str()).unwrap_or_default();
        format!("{switch}.{name}")
    }

    /// Finds the switch that `item` names.
    pub fn switch(&self, item: &Item<'_>) -> Option<usize> {
        let name = item.text("the name of a switch; write e.g. `tor`")?;
        let index = self.switches.iter().position(|switch| switch.name.as_deref() == Some(name));
        if index.is_none() && !self.has_unnamed_switch() {
            item.fail(format!("there is no switch `{}`; {}", item.shown(), self.suggest_switch(&item.shown())));
        }
        index
    }

    /// Finds the port that `item` names, like `tor.p1`.
    pub fn port(&self, item: &Item<'_>) -> Option<PortRef> {
        let text = item.text("a port; write e.g. `tor.p1`")?;
        let Some((name, port)) = text.split_once('.') else {
            return item.refuse(format!("`{}` is not a port; write switch and port, e.g. `tor.p1`", item.shown()));
        };
        let Some(switch) = self.switches.iter().position(|switch| switch.name.as_deref() == Some(name)) else {
            let shown = item.shown();
            let name = shown.split('.').next().unwrap_or_default();
            let remedy = self.suggest_switch(name);
            return if self.has_unnamed_switch() {
                None
            } else {
                item.refuse(format!("there is no switch `{name}`; {remedy}"))
            };
        };
        let ports = &self.switches[switch].config.as_ref()?.switch.ports;
        if let Some(port) = ports.iter().position(|spec| spec.name == port) {
            return Some(PortRef { switch, port });
        }
        let known: Vec<String> = ports.iter().map(|spec| format!("{name}.{}", spec.name)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let shown = item.shown();
        item.refuse(format!("there is no port `{shown}`; {}", names::suggest(&shown, &known)))
    }

    /// Finds the host that `item` names.
    pub fn host(&self, item: &Item<'_>) -> Option<usize> {
        let name = item.text("the name of a host; write e.g. `h1`")?;
        let index = self.by_name.get(name).copied();
        if index.is_none() && !self.has_unnamed {
            let known: Vec<&str> = self.hosts.iter().take(MOST_SUGGESTED).map(|host| host.node.name.as_str()).collect();
            let shown = item.shown();
            item.fail(format!("there is no host `{shown}`; {}", names::suggest(&shown, &known)));
        }
        index
    }

    /// Finds the port or host that `item` names.
    pub fn end(&self, item: &Item<'_>) -> Option<End> {
        let text = item.text("a port or a host; write e.g. `tor.p1` or `h1`")?;
        if text.contains('.') { self.port(item).map(End::Port) } else { self.host(item).map(End::Host) }
    }

    /// Reads a list of ports.
    pub fn ports(&self, item: &Item<'_>) -> Vec<PortRef> {
        let mut ports = Vec::new();
        for item in item.list("e.g. [tor.p1]").unwrap_or_default() {
            match self.port(&item) {
                Some(port) if ports.contains(&port) => {
                    item.fail(format!("`{}` is listed twice; remove one", item.shown()));
                }
                port => ports.extend(port),
            }
        }
        ports
    }

    fn has_unnamed_switch(&self) -> bool {
        self.switches.iter().any(|switch| switch.name.is_none())
    }

    fn suggest_switch(&self, name: &str) -> String {
        let known: Vec<&str> = self.switches.iter().filter_map(|switch| switch.name.as_deref()).collect();
        names::suggest(name, &known)
    }
}
