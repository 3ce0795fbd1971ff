//! Addresses that no single host may have, in any network or in the networks of the router.
//!
//! No packet may come from one of them (RFC 1812 section 5.3.7, RFC 4443 section 2.4 e), and no ICMP error goes to one
//! (RFC 1812 section 4.3.2.7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Whether `address` can be that of one host in some network: it is not unspecified, a loopback, a group or reserved.
#[must_use]
pub fn is_possible(address: IpAddr) -> bool {
    match address {
        // RFC 6890: "this network" (0.0.0.0/8) and reserved addresses, with the limited broadcast address.
        IpAddr::V4(v4) => !(v4.is_loopback() || v4.is_multicast() || matches!(v4.octets()[0], 0 | 240..)),
        // RFC 4291 section 2.5: none of these is a source on a wire.
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_multicast() || v6.is_unspecified()),
    }
}

/// The addresses of a network that mean all of its hosts: its own and its directed broadcast address (RFC 1812 section
/// 4.2.2.11, RFC 2644). A network of two addresses has none (RFC 3021).
pub fn broadcasts(network: Ipv4Net) -> impl Iterator<Item = Ipv4Addr> {
    let ends = [network.network(), network.broadcast()];
    ends.into_iter().filter(move |_| network.prefix_len() < 31)
}

/// The subnet-router anycast address of a network, which every router on it has (RFC 4291 section 2.6.1). A network of
/// two addresses has none (RFC 6164 section 6).
#[must_use]
pub fn anycast(network: Ipv6Net) -> Option<Ipv6Addr> {
    (network.prefix_len() < 127).then(|| network.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_no_single_host() {
        let none = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"];
        for text in none.iter().chain(&["::", "::1", "ff02::1", "ff0e::77"]) {
            assert!(!is_possible(text.parse().unwrap()), "{text}");
        }
        for text in ["10.0.0.0", "10.0.0.255", "169.254.1.1", "223.255.255.255", "fe80::1", "::2", "2001:db8::"] {
            assert!(is_possible(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn network_of_two_addresses_has_neither_broadcast_nor_anycast_address() {
        let ends = |text: &str| broadcasts(text.parse().unwrap()).map(|end| end.to_string()).collect::<Vec<_>>();
        assert_eq!(ends("192.0.2.77/24"), ["192.0.2.0", "192.0.2.255"]);
        assert_eq!(ends("192.0.2.5/30"), ["192.0.2.4", "192.0.2.7"]);
        assert_eq!([ends("192.0.2.4/31"), ends("192.0.2.4/32")], [[""; 0]; 2]);
        let of = |text: &str| anycast(text.parse().unwrap()).map(|address| address.to_string());
        assert_eq!(of("2001:db8:0:1::9/64").as_deref(), Some("2001:db8:0:1::"));
        assert_eq!(of("2001:db8::7/126").as_deref(), Some("2001:db8::4"));
        assert_eq!([of("2001:db8::7/127"), of("2001:db8::7/128")], [None, None]);
    }
}
