//! IP addresses of interfaces, next hops and neighbours.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::yaml::names::Unique;
use crate::config::yaml::read::Item;

/// Most addresses of one interface.
const MOST_ADDRESSES: usize = 16;
/// Shortest prefixes of an interface's network: no registry assigns larger blocks.
const SHORTEST: [u8; 2] = [8, 16];

/// Whether a host's address is valid on its own link only, so that it does not name its interface.
pub fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The kind of an address that no host can have.
///
/// RFC 6890 section 2.2 lists the blocks.
pub fn not_a_host(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => match address.octets()[0] {
            0 => Some("an address of \"this network\" (0.0.0.0/8)"),
            127 => Some("a loopback address"),
            224..=239 => Some("a multicast address"),
            240.. => Some("a reserved address (240.0.0.0/4)"),
            _ => None,
        },
        IpAddr::V6(address) if address.is_unspecified() => Some("the unspecified address"),
        IpAddr::V6(address) if address.is_loopback() => Some("the loopback address"),
        IpAddr::V6(address) if address.is_multicast() => Some("a multicast address"),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => Some("an IPv4 address in IPv6 form"),
        IpAddr::V6(_) => None,
    }
}

/// The special meaning of `address` in `network`, if it has one.
///
/// RFC 4291 section 2.6.1: the lowest address of an IPv6 prefix is the anycast address of its routers. RFC 3021 and RFC
/// 6164: a link between two routers has no such addresses.
pub fn edge_of(network: IpNet, address: IpAddr) -> Option<&'static str> {
    if network.max_prefix_len() - network.prefix_len() < 2 {
        return None;
    }
    match network {
        IpNet::V4(_) if address == network.network() => Some("the address of the network itself"),
        IpNet::V4(_) if address == network.broadcast() => Some("the broadcast address of the network"),
        IpNet::V6(_) if address == network.network() => Some("the anycast address of the network's routers"),
        _ => None,
    }
}

/// The lowest address of `network` that a host can have, as an example.
fn example_host(network: IpNet) -> IpAddr {
    let first = network.hosts().find(|host| edge_of(network, *host).is_none());
    first.unwrap_or_else(|| network.addr())
}

/// Reads an IP address that a host can have.
pub fn read_host(item: &Item<'_>) -> Option<IpAddr> {
    let Ok(address) = item.shown().parse::<IpAddr>() else {
        return item.refuse(format!("`{}` is not an IP address; write e.g. 10.0.1.0 or \"2001:db8::1\"", item.shown()));
    };
    match not_a_host(address) {
        Some(kind) => item.refuse(format!("`{address}` is {kind}; write the address of a host")),
        None => Some(address),
    }
}

/// Reads the addresses of an interface.
pub fn read_own(item: &Item<'_>, unique: &mut Unique) -> Vec<IpNet> {
    let items = item.list("e.g. [10.0.1.1/31, \"2001:db8:1::/127\"]").unwrap_or_default();
    if item.is_list() && items.is_empty() {
        item.fail("there is no address; write e.g. [10.0.1.1/31, \"2001:db8:1::/127\"]");
    }
    if items.len() > MOST_ADDRESSES {
        item.fail(format!(
            "{} addresses are more than the {MOST_ADDRESSES} that an interface can have; remove some",
            items.len()
        ));
        return Vec::new();
    }
    let mut link_local = Unique::new("address");
    let read = |item: &Item<'_>| {
        let own = read_one(item)?;
        let unique = if is_link_local(own.addr()) { &mut link_local } else { &mut *unique };
        unique.claim(item, &own.addr().to_string());
        Some(own)
    };
    items.iter().filter_map(read).collect()
}

fn read_one(item: &Item<'_>) -> Option<IpNet> {
    let text = item.shown();
    let Ok(own) = text.parse::<IpNet>() else {
        return match text.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => item.refuse(format!("`{text}` has no prefix length; write e.g. {text}/24")),
            Ok(IpAddr::V6(_)) => item.refuse(format!("`{text}` has no prefix length; write e.g. \"{text}/64\"")),
            Err(_) => item.refuse(format!(
                "`{text}` is not an address with the prefix length of its network; write e.g. 10.0.1.1/24 or \
                 \"2001:db8::1/64\""
            )),
        };
    };
    let (address, longest) = (own.addr(), own.max_prefix_len());
    let shortest = SHORTEST[usize::from(address.is_ipv6())];
    if let Some(kind) = not_a_host(address) {
        return item.refuse(format!("`{address}` is {kind}; write the address of a host"));
    }
    if own.prefix_len() < shortest {
        return item.refuse(format!("`{text}` has a prefix length out of range; write from /{shortest} to /{longest}"));
    }
    if let Some(kind) = edge_of(own, address) {
        let example = example_host(own);
        return item.refuse(format!("`{text}` is {kind}; write e.g. {example}/{}", own.prefix_len()));
    }
    Some(own)
}
