//! MAC addresses.

use std::fmt;
use std::str::FromStr;

/// An EUI-48 address.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The broadcast address, to all stations.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// Nearest customer bridge: destination of BPDUs (IEEE 802.1Q table 8-1).
    pub const BRIDGES: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x00]);
    /// Provider bridges: destination of their BPDUs.
    pub const PROVIDER_BRIDGES: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x08]);
    /// Destination of MAC control frames (IEEE 802.3 annexes 31B and 31D). Bridges never forward it.
    pub const MAC_CONTROL: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x01]);
    /// Destination of slow protocols, such as LACP (IEEE 802.3 annex 57A). Bridges never forward it.
    pub const SLOW_PROTOCOLS: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x02]);
    /// Destination of LLDP frames (IEEE 802.1AB): the nearest bridge. Bridges never forward it.
    pub const LLDP: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);

    /// Group address of the Configuration Testing Protocol (Ethernet 2.0, section 8). Bridges flood it, because it is
    /// none of the reserved addresses of IEEE 802.1Q table 8-1.
    pub const LOOPBACK_ASSISTANCE: MacAddr = MacAddr([0xcf, 0, 0, 0, 0, 0]);

    /// Returns the locally administered unicast address of `kind` and `number`. Virtual hosts use it, and ports without
    /// an address.
    #[must_use]
    pub const fn local(kind: u8, number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        Self([0x02, 0x48, 0x46, kind, high, low])
    }

    /// Converts the address to a 48-bit number whose highest byte is the first on the wire. The packet path uses this
    /// form.
    #[inline]
    #[must_use]
    pub const fn to_number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Converts a number to an address and ignores bits above 48.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// Whether the address is a group address: broadcast or multicast.
    #[inline]
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Whether the address is all zero. No station has this address.
    #[inline]
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 6]
    }

    /// Whether the address is one of 01-80-C2-00-00-00 to 0F, which a bridge must not relay.
    ///
    /// IEEE 802.1Q clause 8.6.3, in substance: the addresses of table 8-1 are permanent entries, filtered at all ports
    /// and in all VLANs.
    #[inline]
    #[must_use]
    pub fn is_link_local(self) -> bool {
        self.0[..5] == [0x01, 0x80, 0xc2, 0x00, 0x00] && self.0[5] < 0x10
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The error for a text that is not a MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a MAC address; write six bytes in hex, e.g. 02:48:46:00:00:01")]
pub struct MacAddrError(pub String);

impl FromStr for MacAddr {
    type Err = MacAddrError;
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        let error = || MacAddrError(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.trim().split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(error)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

impl<'de> serde::Deserialize<'de> for MacAddr {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_address_is_parsed_and_displayed() {
        let mac: MacAddr = "02:48:46:01:00:0a".parse().unwrap();
        assert_eq!(mac, MacAddr::local(1, 10));
        assert_eq!(mac.to_string(), "02:48:46:01:00:0a");
        for wrong in ["", "02:48:46:01:00", "02:48:46:01:00:0a:0b", "02:48:46:01:00:zz", "2:48:46:01:00:0a"] {
            assert!(wrong.parse::<MacAddr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn mac_address_kinds_are_recognized() {
        assert!(MacAddr::BROADCAST.is_group());
        assert!(MacAddr::MAC_CONTROL.is_group() && MacAddr::MAC_CONTROL.is_link_local());
        assert!(!MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x10]).is_link_local());
        assert!(MacAddr::default().is_zero());
    }
}
