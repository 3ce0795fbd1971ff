//! VLANs: their ports, stations and interface.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::SwitchSpec;
use crate::route::Attachment;

/// One bridged VLAN.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Vlan {
    /// Its id.
    pub vlan: u16,
    /// Ports that carry its frames without a tag.
    pub untagged_ports: Vec<String>,
    /// Ports that carry its frames with a tag.
    pub tagged_ports: Vec<String>,
    /// Stations that the forwarding database knows in it.
    pub stations: u64,
    /// Interface of the router in it, or null.
    pub interface: Option<String>,
}

impl Vlan {
    /// The VLANs of `spec`, with the number of stations in each. The internal VLAN of a routed port is none.
    #[must_use]
    pub fn all(spec: &SwitchSpec, stations: &BTreeMap<u16, u64>) -> Vec<Self> {
        let mut vlans: BTreeMap<u16, Self> = BTreeMap::new();
        for port in &spec.ports {
            if matches!(port.vlan, crate::forward::VlanMode::Routed(_)) {
                continue;
            }
            for &vlan in port.vlan.tagged() {
                vlans.entry(vlan).or_default().tagged_ports.push(port.name.clone());
            }
            if let Some(vlan) = port.vlan.untagged() {
                vlans.entry(vlan).or_default().untagged_ports.push(port.name.clone());
            }
        }
        let interfaces = spec.routing.iter().flat_map(|routing| &routing.interfaces);
        for interface in interfaces.filter(|interface| !matches!(interface.attachment, Attachment::Port(_))) {
            vlans.entry(interface.vlan).or_default().interface = Some(interface.name.clone());
        }
        let count = |vlan| stations.get(&vlan).copied().unwrap_or(0);
        vlans.into_iter().map(|(vlan, members)| Self { vlan, stations: count(vlan), ..members }).collect()
    }
}
