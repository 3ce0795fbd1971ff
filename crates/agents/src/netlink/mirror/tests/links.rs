//! Links, addresses and neighbours, and the effects of links on routes.

use super::*;

#[test]
fn disabled_link_drops_its_ipv4_routes_without_a_message() {
    let mut rig = Rig::new();
    rig.feed([
        add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])),
        add(route("10.2.0.0/16", &[hop("10.0.1.2", 1), hop("10.0.2.2", 2)])),
        add(route("10.3.0.0/16", &[hop("10.0.2.2", 2)])),
    ]);
    rig.feed([disabled(1)]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.2.2%2*1");
    assert_eq!(rig.hops("10.3.0.0/16").unwrap(), "10.0.2.2%2*1");
    assert!(rig.mirror.wants_dump());
    rig.feed([up(1)]);
    assert_eq!(rig.hops("10.1.0.0/16"), None, "the kernel has flushed it");
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.1.2%1*1 10.0.2.2%2*1", "the kernel has kept it");
}

#[test]
fn multipath_route_goes_when_its_last_link_is_disabled() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.2.0.0/16", &[hop("10.0.1.2", 1), hop("10.0.2.2", 2)])), disabled(1), disabled(2)]);
    rig.feed([up(1), up(2)]);
    assert_eq!(rig.hops("10.2.0.0/16"), None);
}

#[test]
fn link_without_carrier_disables_its_next_hops_until_it_is_back() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])), add(route("2001:db8::/32", &[hop("fe80::2", 1)]))]);
    rig.feed([without_carrier(1)]);
    assert_eq!((rig.hops("10.1.0.0/16"), rig.hops("2001:db8::/32")), (None, None));
    rig.feed([up(1)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1");
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::2%1*1");
}

#[test]
fn next_hop_that_the_kernel_marks_dead_or_linkdown_is_not_published() {
    let mut rig = Rig::new();
    let dead = KernelNextHop { is_dead: true, ..hop("10.0.1.2", 1) };
    let linkdown = KernelNextHop { is_linkdown: true, ..hop("10.0.2.2", 2) };
    rig.feed([add(route("10.1.0.0/16", &[dead, linkdown, hop("10.0.3.2", 3)]))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.3.2%3*1");
}

#[test]
fn higher_metric_serves_while_the_better_route_has_no_carrier() {
    let mut rig = Rig::new();
    rig.feed([
        add(with_metric(10, route("10.1.0.0/16", &[hop("10.0.1.2", 1)]))),
        add(with_metric(20, route("10.1.0.0/16", &[hop("10.0.2.2", 2)]))),
    ]);
    rig.feed([without_carrier(1)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.2%2*1");
    rig.feed([up(1)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1");
}

#[test]
fn removed_link_takes_addresses_neighbours_and_routes_along() {
    let mut rig = Rig::new();
    let neighbour =
        |index, text| Neighbour { index, address: address(text), mac: MacAddr([2; 6]), is_permanent: false };
    rig.feed([
        KernelEvent::Address(own(1, "10.0.1.1/24")),
        KernelEvent::Address(own(1, "2001:db8::1/64")),
        KernelEvent::Address(own(2, "10.0.2.1/24")),
        KernelEvent::Neighbour(neighbour(1, "10.0.1.2")),
        KernelEvent::Neighbour(neighbour(1, "fe80::2")),
        KernelEvent::Neighbour(neighbour(2, "10.0.2.2")),
        add(route("10.2.0.0/16", &[hop("10.0.1.2", 1), hop("10.0.2.2", 2)])),
        add(route("2001:db8:2::/48", &[hop("fe80::2", 1), hop("fe80::3", 2)])),
    ]);
    rig.feed([KernelEvent::LinkGone { index: 1 }]);
    assert_eq!(rig.view.addresses, BTreeSet::from([own(2, "10.0.2.1/24")]));
    assert_eq!(rig.view.neighbours.keys().copied().collect::<Vec<_>>(), [(2, address("10.0.2.2"))]);
    assert_eq!(rig.hops("10.2.0.0/16"), None, "IPv4 flushes a route with any next hop on the link");
    assert_eq!(rig.hops("2001:db8:2::/48").unwrap(), "fe80::3%2*1");
}

#[test]
fn last_ipv4_address_takes_the_ipv4_routes_of_its_link_along() {
    let mut rig = Rig::new();
    let own = |text| own(1, text);
    rig.feed([
        KernelEvent::Address(own("10.0.1.1/24")),
        KernelEvent::Address(own("10.0.1.9/24")),
        add(route("10.1.0.0/16", &[hop("fe80::2", 1)])),
        add(route("2001:db8::/32", &[hop("fe80::2", 1)])),
    ]);
    rig.feed([KernelEvent::AddressGone(own("10.0.1.9/24"))]);
    assert!(rig.hops("10.1.0.0/16").is_some());
    rig.feed([KernelEvent::AddressGone(own("10.0.1.1/24"))]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert!(rig.hops("2001:db8::/32").is_some());
}

#[test]
fn flap_between_two_messages_asks_for_a_dump() {
    let mut rig = Rig::new();
    assert!(!rig.mirror.wants_dump());
    let flapped = LinkState { carrier_changes: 2, ..link_state(1, true, true) };
    rig.feed([KernelEvent::Link(flapped)]);
    assert!(rig.mirror.wants_dump());
}

#[test]
fn refusal_is_announced_once_and_ends_with_a_dump_that_fits() {
    let mut rig = Rig::new();
    rig.mirror = Mirror::new(Limits { links: 2, ..Limits::default() });
    rig.mirror.clear_wish();
    [up(1), up(2), up(3), up(4)].into_iter().for_each(|event| rig.mirror.feed(event));
    let full = Change::Full { table: TableName::Links, limit: 2 };
    assert_eq!(rig.mirror.changes(1), [full]);
    assert_eq!(rig.mirror.refused(), 2);
    assert!(!rig.mirror.wants_dump(), "a dump would be refused too");
    rig.mirror.feed(KernelEvent::LinkGone { index: 1 });
    assert!(rig.mirror.wants_dump(), "now link 3 has room");
    rig.view = View::default();
    rig.dump(TableName::Links, [up(2), up(3)]);
    assert_eq!(rig.view.links.keys().copied().collect::<Vec<_>>(), [2, 3]);
    assert!(!rig.mirror.gaps[TableName::Links as usize].full.holds);
}

#[test]
fn changes_are_taken_in_parts_and_merge_meanwhile() {
    let mut rig = Rig::new();
    for number in 0..5 {
        rig.mirror.feed(add(route(&format!("10.{number}.0.0/16"), &[hop("10.0.1.2", 1)])));
    }
    let first = rig.mirror.changes(2);
    assert_eq!(first.len(), 2);
    // A route that was not published yet vanishes without a trace.
    rig.mirror.feed(KernelEvent::RouteGone(route("10.4.0.0/16", &[hop("10.0.1.2", 1)])));
    let remaining = rig.mirror.changes(100);
    assert_eq!(remaining.len(), 2, "{remaining:?}");
    assert_eq!(rig.mirror.changes(100), []);
}

/// Linux marks a next hop as dead and without carrier if its link loses its last IPv4 address.
#[test]
fn first_ipv4_address_revives_next_hops_that_a_dump_has_named_dead() {
    let mut rig = Rig::new();
    let unreachable = KernelNextHop { is_dead: true, is_linkdown: true, ..hop("10.0.1.2", 1) };
    let entry = add(route("10.2.0.0/16", &[unreachable, hop("10.0.2.2", 2)]));
    rig.dump(TableName::RoutesV4, [entry]);
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.2.2%2*1");
    rig.feed([KernelEvent::Address(own(1, "10.0.1.1/24"))]);
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "10.0.1.2%1*1 10.0.2.2%2*1");
}

/// Linux tells the address before it revives next hops, without a message. A dump may have read them before that.
#[test]
fn first_ipv4_address_during_a_dump_asks_for_another() {
    let mut rig = Rig::new();
    let address = |text| KernelEvent::Address(own(1, text));
    rig.mirror.begin_dump(TableName::RoutesV4);
    rig.mirror.feed(address("10.0.1.1/24"));
    let dead = KernelNextHop { is_dead: true, ..hop("10.0.1.2", 1) };
    rig.mirror.feed_dumped(add(route("0.0.0.0/0", &[hop("10.0.2.2", 2), dead])));
    rig.mirror.end_dump(TableName::RoutesV4);
    assert!(rig.mirror.wants_dump());
    rig.mirror.clear_wish();
    rig.feed([address("10.0.1.3/24")]);
    assert!(!rig.mirror.wants_dump(), "IPv4 was enabled before");
}
