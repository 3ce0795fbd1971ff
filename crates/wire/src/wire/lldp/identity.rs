//! Identifiers of a sender (802.1AB clauses 8.5.2, 8.5.3, 8.5.8 and 8.5.9).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Text;
use crate::wire::MacAddr;

/// Identifier of a sender's chassis (802.1AB clause 8.5.2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChassisId {
    /// Kind of the identifier (table 8-2).
    pub subtype: u8,
    /// The identifier, 1 to 255 bytes.
    pub id: Vec<u8>,
}

impl ChassisId {
    /// Subtype of a MAC address.
    pub const MAC: u8 = 4;
    /// Subtype of a network address.
    pub const NETWORK: u8 = 5;

    /// The identifier of a chassis by its MAC address.
    #[must_use]
    pub fn mac(mac: MacAddr) -> Self {
        Self { subtype: Self::MAC, id: mac.0.to_vec() }
    }
}

impl fmt::Display for ChassisId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(&self.id, self.subtype == Self::MAC, self.subtype == Self::NETWORK))
    }
}

/// Identifier of a sender's port (802.1AB clause 8.5.3).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId {
    /// Kind of the identifier (table 8-3).
    pub subtype: u8,
    /// The identifier, 1 to 255 bytes.
    pub id: Vec<u8>,
}

impl PortId {
    /// Subtype of a MAC address.
    pub const MAC: u8 = 3;
    /// Subtype of a network address.
    pub const NETWORK: u8 = 4;
    /// Subtype of an interface name (ifName of RFC 2863).
    pub const INTERFACE_NAME: u8 = 5;

    /// The identifier of a port by its name, which is cut to the 255 bytes that fit.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self { subtype: Self::INTERFACE_NAME, id: Text::new(name).to_wire().to_vec() }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown(&self.id, self.subtype == Self::MAC, self.subtype == Self::NETWORK))
    }
}

/// An identifier as text. One that does not have the length of its kind is shown as text too.
fn shown(id: &[u8], is_mac: bool, is_network: bool) -> String {
    match (id.first_chunk::<6>(), id.split_first()) {
        (Some(mac), _) if is_mac && id.len() == 6 => MacAddr(*mac).to_string(),
        (_, Some((&family, address))) if is_network => match network_address(family, address) {
            Some(address) => address.to_string(),
            None => Text::from_wire(id).to_string(),
        },
        _ => Text::from_wire(id).to_string(),
    }
}

/// The IP address of a family of IANA's list of address families.
fn network_address(family: u8, address: &[u8]) -> Option<IpAddr> {
    match family {
        ManagementAddress::IPV4 => <[u8; 4]>::try_from(address).ok().map(|octets| Ipv4Addr::from(octets).into()),
        ManagementAddress::IPV6 => <[u8; 16]>::try_from(address).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

/// Capabilities of a system (802.1AB clause 8.5.8, table 8-4), as bits.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Capabilities that the system has.
    pub supported: u16,
    /// Capabilities that are in use.
    pub enabled: u16,
}

impl Capabilities {
    /// Bit of a MAC bridge.
    pub const BRIDGE: u16 = 1 << 2;
    /// Bit of a router.
    pub const ROUTER: u16 = 1 << 4;

    /// Names of the bits, lowest first.
    const NAMES: [&'static str; 11] = [
        "other",
        "repeater",
        "bridge",
        "access-point",
        "router",
        "telephone",
        "docsis",
        "station",
        "c-vlan",
        "s-vlan",
        "relay",
    ];

    /// The names of the bits set in `bits`.
    #[must_use]
    pub fn names(bits: u16) -> Vec<&'static str> {
        Self::NAMES.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| name).collect()
    }
}

/// An address by which a system can be managed (802.1AB clause 8.5.9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementAddress {
    /// Address family by IANA.
    pub family: u8,
    /// The address, 1 to 31 bytes.
    pub address: Vec<u8>,
    /// Kind of the interface number: 1 unknown, 2 ifIndex, 3 system port number.
    pub interface_subtype: u8,
    /// Number of the interface.
    pub interface: u32,
    /// Object identifier, 0 to 128 bytes.
    pub oid: Vec<u8>,
}

impl ManagementAddress {
    /// Family of IPv4.
    pub const IPV4: u8 = 1;
    /// Family of IPv6.
    pub const IPV6: u8 = 2;

    /// The TLV of an IP address, without an interface.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        let (family, address) = match address {
            IpAddr::V4(address) => (Self::IPV4, address.octets().to_vec()),
            IpAddr::V6(address) => (Self::IPV6, address.octets().to_vec()),
        };
        Self { family, address, interface_subtype: 1, interface: 0, oid: Vec::new() }
    }
}

impl fmt::Display for ManagementAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match network_address(self.family, &self.address) {
            Some(address) => write!(f, "{address}"),
            // Other families, such as 802 addresses, as bytes.
            None => {
                let bytes: Vec<String> = self.address.iter().map(|byte| format!("{byte:02x}")).collect();
                f.write_str(&bytes.join(":"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_shown_by_their_kind() {
        let mac = ChassisId::mac(MacAddr([2, 0, 0, 0, 0, 0x1f]));
        assert_eq!(mac.to_string(), "02:00:00:00:00:1f");
        assert_eq!(ChassisId { subtype: 5, id: vec![1, 10, 0, 0, 1] }.to_string(), "10.0.0.1");
        assert_eq!(ChassisId { subtype: 5, id: vec![1, 10, 0] }.to_string(), "\\x01\\x0a");
        assert_eq!(PortId { subtype: 3, id: vec![2, 0, 0, 0, 0, 7] }.to_string(), "02:00:00:00:00:07");
        assert_eq!(PortId { subtype: 7, id: b"swp1\x1b".to_vec() }.to_string(), "swp1\\x1b");
        assert_eq!(ManagementAddress::of("2001:db8::1".parse().unwrap()).to_string(), "2001:db8::1");
        let other = ManagementAddress { family: 6, ..ManagementAddress::of("1.2.3.4".parse().unwrap()) };
        assert_eq!(other.to_string(), "01:02:03:04");
    }

    #[test]
    fn capabilities_are_named_by_table_8_4() {
        assert_eq!(Capabilities::names(Capabilities::BRIDGE | Capabilities::ROUTER | 1 << 15), ["bridge", "router"]);
    }
}
