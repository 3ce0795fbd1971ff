//! Routes of every form, and the silent effects of links. The watcher makes no dump but the first.

use holdfast::netlink::Options;

use crate::rig::{NO_DUMPS, Rig, machine_is_ready};

/// Options of a watcher that dumps only at its start.
pub fn without_dumps() -> Options {
    Options { resync: NO_DUMPS, gap: NO_DUMPS, ..Options::default() }
}

#[test]
fn routes_of_all_forms_are_mirrored() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(3, without_dumps());
    for words in [
        "route add 10.1.0.0/16 via 10.0.1.2",
        "route add 10.2.0.0/16 nexthop via 10.0.1.2 weight 2 nexthop via 10.0.2.2 dev v2 weight 3",
        "route add 10.3.0.0/16 via inet6 fe80::9 dev v3",
        "route add 10.4.0.0/16 nexthop via inet6 fe80::9 dev v3 nexthop via 10.0.1.2",
        "route add blackhole 10.5.0.0/16",
        "route add unreachable 10.6.0.0/16",
        "route add 10.7.0.0/16 via 10.0.1.2 metric 20",
        "route add 10.7.0.0/16 via 10.0.2.2 metric 10",
        "route add 10.8.0.0/16 via 10.0.1.2",
        "route append 10.8.0.0/16 via 10.0.2.2",
        "route add default via 10.0.3.2",
        "route add 10.9.0.0/16 via 10.0.1.2 table 100",
        "-6 route add 2001:db8:1::/48 via fe80::2 dev v1",
        "-6 route append 2001:db8:1::/48 via fe80::2 dev v2",
        "-6 route add 2001:db8:2::/48 nexthop via fe80::2 dev v1 nexthop via fe80::3 dev v2 weight 4",
        "-6 route add 2001:db8:3::/64 dev v3",
        "-6 route add prohibit 2001:db8:4::/48",
    ] {
        rig.ip(words);
    }
    rig.agree();
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.1.2%v1*2 10.0.2.2%v2*3");
    assert_eq!(rig.hops("10.3.0.0/16").unwrap(), "fe80::9%v3*1");
    assert_eq!(rig.hops("10.7.0.0/16").unwrap(), "10.0.2.2%v2*1");
    assert_eq!(rig.hops("10.9.0.0/16"), None, "another table");
    assert_eq!(rig.hops("2001:db8:1::/48").unwrap(), "fe80::2%v1*1 fe80::2%v2*1");
    for words in [
        "route replace 10.1.0.0/16 via 10.0.2.2",
        "route del 10.7.0.0/16 via 10.0.2.2 metric 10",
        "-6 route del 2001:db8:1::/48 via fe80::2 dev v1",
        "-6 route replace 2001:db8:2::/48 nexthop via fe80::7 dev v3 nexthop via fe80::3 dev v2",
    ] {
        rig.ip(words);
    }
    rig.agree();
    assert_eq!(rig.hops("10.7.0.0/16").unwrap(), "10.0.1.2%v1*1");
    assert_eq!(rig.hops("2001:db8:2::/48").unwrap(), "fe80::7%v3*1 fe80::3%v2*1");
    assert_eq!((rig.counters.dumps, rig.counters.malformed, rig.counters.overruns), (1, 0, 0));
}

/// The networks of a link are its routes: neither the own address nor the prefix length tells them.
#[test]
fn peers_and_addresses_without_a_route_are_mirrored() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(1, without_dumps());
    for words in [
        "address add 10.7.0.1 peer 10.7.0.2/32 dev v1",
        "address add 10.7.0.1 peer 10.7.9.3/24 dev v1",
        "address add 10.8.0.1/24 dev v1 noprefixroute",
        "address add 2001:db8:7::1 peer 2001:db8:9::2/64 dev v1 nodad",
        "address add 2001:db8:8::1/64 dev v1 nodad noprefixroute",
    ] {
        rig.ip(words);
    }
    rig.agree();
    for network in ["10.7.0.2/32", "10.7.9.0/24", "2001:db8:9::2/128"] {
        assert_eq!(rig.hops(network).as_deref(), Some("on-link%v1*1"), "{network}");
    }
    for network in ["10.7.0.0/24", "10.8.0.0/24", "2001:db8:8::/64"] {
        assert_eq!(rig.hops(network), None, "{network}");
    }
    let of_peers = |rig: &Rig| rig.view.addresses.iter().filter(|address| address.peer.is_some()).count();
    assert_eq!(of_peers(&rig), 3);
    rig.ip("address del 10.7.0.1 peer 10.7.0.2/32 dev v1");
    rig.agree();
    assert_eq!((of_peers(&rig), rig.hops("10.7.0.2/32")), (2, None));
    assert_eq!((rig.counters.dumps, rig.counters.malformed), (1, 0));
}

#[test]
fn next_hop_objects_and_groups_are_mirrored() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(3, without_dumps());
    if !rig.has_objects() {
        return;
    }
    for words in [
        "nexthop add id 1 via 10.0.1.2 dev v1",
        "nexthop add id 2 via fe80::2 dev v2",
        "nexthop add id 3 blackhole",
        "nexthop add id 4 via 10.0.3.2 dev v3",
        "nexthop add id 10 group 1,2/4,7",
        "nexthop add id 11 group 4",
        "route add 10.1.0.0/16 nhid 1",
        "route add 10.2.0.0/16 nhid 10",
        "route add 10.3.0.0/16 nhid 3",
        "route add 10.4.0.0/16 nhid 11",
        "-6 route add 2001:db8::/32 nhid 2",
    ] {
        rig.ip(words);
    }
    rig.agree();
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.1.2%v1*2 10.0.3.2%v3*7");
    rig.ip("nexthop replace id 1 via 10.0.2.9 dev v2");
    rig.agree();
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.9%v2*1");
    rig.ip("nexthop del id 4");
    rig.agree();
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.2.9%v2*1");
    assert_eq!(rig.hops("10.4.0.0/16"), None, "its group was emptied");
    // The kernel removes objects of a link without carrier, with their routes, and says nothing of it.
    rig.ip("link set p2 down");
    rig.expect_hops("10.1.0.0/16", None);
    rig.agree();
    rig.ip("link set p2 up");
    rig.agree();
    assert_eq!(rig.hops("10.2.0.0/16"), None);
    assert_eq!((rig.counters.dumps, rig.counters.malformed), (1, 0));
}

#[test]
fn disabled_link_invalidates_its_next_hops_at_once() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(2, without_dumps());
    rig.ip("route add 10.1.0.0/16 via 10.0.1.2");
    rig.ip("route add 10.2.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2");
    rig.ip("-6 route add 2001:db8::/32 nexthop via fe80::2 dev v1 nexthop via fe80::2 dev v2");
    rig.agree();
    rig.ip("link set v1 down");
    rig.expect_hops("10.1.0.0/16", None);
    rig.expect_hops("10.2.0.0/16", Some("10.0.2.2%v2*1"));
    rig.agree();
    rig.ip("link set v1 up");
    rig.agree();
    assert_eq!(rig.hops("10.1.0.0/16"), None, "the kernel has flushed it");
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.1.2%v1*1 10.0.2.2%v2*1", "the kernel has kept it");
    assert_eq!(rig.counters.dumps, 1);
}

#[test]
fn carrier_loss_disables_next_hops_until_it_is_back() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(2, without_dumps());
    rig.ip("route add 10.1.0.0/16 via 10.0.1.2 metric 5");
    rig.ip("route add 10.1.0.0/16 via 10.0.2.2 metric 9");
    rig.ip("route add 10.2.0.0/16 via 10.0.1.2");
    rig.agree();
    rig.ip("link set p1 down");
    rig.expect_hops("10.1.0.0/16", Some("10.0.2.2%v2*1"));
    rig.expect_hops("10.2.0.0/16", None);
    rig.agree();
    rig.ip("link set p1 up");
    rig.expect_hops("10.1.0.0/16", Some("10.0.1.2%v1*1"));
    rig.expect_hops("10.2.0.0/16", Some("10.0.1.2%v1*1"));
    rig.agree();
    assert_eq!(rig.counters.dumps, 1);
}

#[test]
fn removed_link_and_removed_address_flush_routes() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(3, without_dumps());
    rig.ip("route add 10.1.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2");
    rig.ip("-6 route add 2001:db8::/32 nexthop via fe80::2 dev v1 nexthop via fe80::2 dev v2");
    rig.ip("route add 10.3.0.0/16 via inet6 fe80::2 dev v3");
    rig.agree();
    rig.ip("link del v1");
    rig.expect_hops("10.1.0.0/16", None);
    rig.expect_hops("2001:db8::/32", Some("fe80::2%v2*1"));
    rig.agree();
    rig.ip("address del 10.0.3.1/24 dev v3");
    rig.expect_hops("10.3.0.0/16", None);
    rig.agree();
    assert_eq!(rig.counters.dumps, 1);
}

/// A link that the administrator disables differs from one without a carrier, in any order of the two.
#[test]
fn link_that_is_disabled_differs_from_one_without_a_carrier() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(1, without_dumps());
    let state = |rig: &Rig| {
        let link = rig.view.links.values().find(|link| link.name == "v1").expect("a link");
        (link.is_admin_up, link.is_up)
    };
    for (words, expected) in [
        ("link set p1 down", (true, false)),
        ("link set v1 down", (false, false)),
        ("link set p1 up", (false, false)),
        ("link set v1 up", (true, true)),
        ("link set v1 down", (false, false)),
    ] {
        rig.ip(words);
        rig.agree();
        assert_eq!(state(&rig), expected, "{words}");
    }
    assert_eq!(rig.counters.dumps, 1);
}

#[test]
fn first_address_of_a_link_revives_its_next_hops() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::new(2, without_dumps());
    rig.ip("route add 10.1.0.0/16 nexthop via 10.0.1.2 nexthop via 10.0.2.2");
    rig.agree();
    rig.ip("address del 10.0.1.1/24 dev v1");
    rig.expect_hops("10.1.0.0/16", Some("10.0.2.2%v2*1"));
    rig.ip("address add 10.0.1.1/24 dev v1");
    rig.expect_hops("10.1.0.0/16", Some("10.0.1.2%v1*1 10.0.2.2%v2*1"));
    rig.agree();
    assert_eq!(rig.counters.dumps, 1);
}
