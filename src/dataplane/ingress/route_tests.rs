use super::{is_odd_v4, is_odd_v6};
use std::net::{Ipv4Addr, Ipv6Addr};

#[test]
fn odd_sources_are_those_that_no_host_may_route_from() {
    for (text, is_odd) in [
        ("0.0.0.0", true),
        ("0.1.2.3", true),
        ("1.0.0.1", false),
        ("10.0.0.1", false),
        ("126.255.255.255", false),
        ("127.0.0.1", true),
        ("128.0.0.1", false),
        ("169.253.255.255", false),
        ("169.254.0.1", true),
        ("169.255.0.0", false),
        ("223.255.255.255", false),
        ("224.0.0.1", true),
        ("255.255.255.255", true),
    ] {
        assert_eq!(is_odd_v4(text.parse::<Ipv4Addr>().unwrap().to_bits()), is_odd, "{text}");
    }
    for (text, is_odd) in [
        ("::", true),
        ("::1", true),
        ("::ffff:10.0.0.1", true),
        ("fe80::1", true),
        ("ff02::1", true),
        ("fec0::1", false),
        ("2001:db8::1", false),
        ("fd00::1", false),
    ] {
        assert_eq!(is_odd_v6(text.parse::<Ipv6Addr>().unwrap().octets()), is_odd, "{text}");
    }
}
