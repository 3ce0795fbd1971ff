use super::is_suspect_v6;
use crate::route::{RouteTable, SoftFib};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

#[test]
fn suspect_sources_are_those_that_no_host_may_route_from() {
    let table = RouteTable::empty(Arc::new(SoftFib::default()));
    for (text, is_suspect) in [
        ("0.0.0.0", true),
        ("0.1.2.3", true),
        ("1.0.0.1", false),
        ("10.0.0.1", false),
        ("126.255.255.255", false),
        ("127.0.0.1", true),
        ("128.0.0.1", false),
        ("168.255.255.255", false),
        ("169.254.0.1", true),
        ("170.0.0.0", false),
        ("223.255.255.255", false),
        ("224.0.0.1", true),
        ("255.255.255.255", true),
    ] {
        let address = text.parse::<Ipv4Addr>().unwrap().to_bits();
        assert_eq!(table.sources.suspects_v4(address), is_suspect, "{text}");
    }
    for (text, is_suspect) in [
        ("::", true),
        ("::1", true),
        ("::ffff:10.0.0.1", true),
        ("fe80::1", true),
        ("ff02::1", true),
        ("fec0::1", false),
        ("2001:db8::1", false),
        ("fd00::1", false),
    ] {
        assert_eq!(is_suspect_v6(&table, text.parse::<Ipv6Addr>().unwrap().octets()), is_suspect, "{text}");
    }
}

#[test]
fn own_address_is_a_suspect_source() {
    let mut table = RouteTable::empty(Arc::new(SoftFib::default()));
    table.set_own([[10, 0, 0, 1].into(), "fd00::1".parse().unwrap()]);
    assert!(table.sources.suspects_v4(0x0a00_0001));
    assert!(is_suspect_v6(&table, "fd00::1".parse::<Ipv6Addr>().unwrap().octets()));
}
