//! A small router for examples and tests.

use crate::route::{Attachment, InterfaceSpec, RoutingSpec};
use crate::sets::PortSet;
use crate::wire::MacAddr;

/// A router with two routed ports: 10.0.0.1/24 and 2001:db8:0::1/64 on port 0, 10.0.1.1/24 and 2001:db8:1::1/64 on
/// port 1.
#[must_use]
pub fn two_ports() -> RoutingSpec {
    let interface = |port: u8| InterfaceSpec {
        name: format!("p{}", port + 1),
        attachment: Attachment::Port(port),
        vlan: 4094 - u16::from(port),
        mac: MacAddr::local(0, port.into()),
        ports: PortSet::only(port.into()),
        addresses: [format!("10.0.{port}.1/24"), format!("2001:db8:{port}::1/64")]
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
        mtu: 1500,
    };
    RoutingSpec::of(vec![interface(0), interface(1)])
}
