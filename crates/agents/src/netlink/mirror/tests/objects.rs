//! Next-hop objects and groups.

use super::*;

#[test]
fn changed_object_changes_all_its_routes() {
    let mut rig = Rig::new();
    rig.feed([object(7, hop("10.0.1.2", 1)), group(8, &[(7, 1)])]);
    rig.feed([
        add(object_route("10.1.0.0/16", 7)),
        add(object_route("10.2.0.0/16", 8)),
        add(object_route("2001:db8::/32", 7)),
    ]);
    rig.feed([object(7, hop("fe80::9", 2))]);
    for destination in ["10.1.0.0/16", "10.2.0.0/16", "2001:db8::/32"] {
        assert_eq!(rig.hops(destination).unwrap(), "fe80::9%2*1", "{destination}");
    }
}

#[test]
fn group_has_the_weights_of_its_members() {
    let mut rig = Rig::new();
    rig.feed([object(1, hop("10.0.1.2", 1)), object(2, hop("10.0.2.2", 2)), group(3, &[(1, 2), (2, 5)])]);
    rig.feed([add(object_route("10.1.0.0/16", 3))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*2 10.0.2.2%2*5");
    rig.feed([group(3, &[(2, 1)])]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.2%2*1");
}

#[test]
fn removed_object_leaves_its_groups_and_takes_its_routes_along() {
    let mut rig = Rig::new();
    rig.feed([object(1, hop("10.0.1.2", 1)), object(2, hop("10.0.2.2", 2)), group(3, &[(1, 1), (2, 1)])]);
    rig.feed([add(object_route("10.1.0.0/16", 1)), add(object_route("10.3.0.0/16", 3))]);
    rig.feed([KernelEvent::NextHopGone { id: 1 }]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert_eq!(rig.hops("10.3.0.0/16").unwrap(), "10.0.2.2%2*1");
    // The number is used again: neither the route nor the group has the new object.
    rig.feed([object(1, hop("10.0.1.9", 1))]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert_eq!(rig.hops("10.3.0.0/16").unwrap(), "10.0.2.2%2*1");
    rig.feed([KernelEvent::NextHopGone { id: 2 }]);
    assert_eq!(rig.hops("10.3.0.0/16"), None);
    assert_eq!((rig.mirror.sizes().next_hops, rig.mirror.sizes().routes), (1, 0), "the empty group is gone");
}

#[test]
fn link_without_carrier_removes_its_objects() {
    let mut rig = Rig::new();
    rig.feed([object(1, hop("10.0.1.2", 1)), object(2, hop("10.0.2.2", 2)), group(3, &[(1, 1), (2, 1)])]);
    rig.feed([add(object_route("10.1.0.0/16", 1)), add(object_route("10.3.0.0/16", 3))]);
    rig.feed([without_carrier(1), up(1)]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert_eq!(rig.hops("10.3.0.0/16").unwrap(), "10.0.2.2%2*1");
    assert_eq!(rig.mirror.sizes().next_hops, 2);
}

#[test]
fn update_of_a_route_by_its_object_keeps_the_order_of_alternatives() {
    let mut rig = Rig::new();
    rig.feed([object(1, hop("10.0.1.2", 1)), add(route("10.1.0.0/16", &[hop("10.0.2.2", 2)]))]);
    rig.feed([append(object_route("10.1.0.0/16", 1)), replace(object_route("10.1.0.0/16", 1))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.2%2*1");
    assert_eq!(rig.mirror.sizes().routes, 2);
}

#[test]
fn blackhole_object_drops() {
    let mut rig = Rig::new();
    rig.feed([KernelEvent::NextHop { id: 1, object: NextHopObject::Blackhole }, group(2, &[(1, 1)])]);
    let dropping = |destination, id| KernelRoute { kind: RouteKind::Blackhole, ..object_route(destination, id) };
    rig.feed([add(dropping("10.1.0.0/16", 1)), add(dropping("10.2.0.0/16", 2))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "Blackhole");
    assert_eq!(rig.hops("10.2.0.0/16").unwrap(), "Blackhole");
}

#[test]
fn route_with_an_unknown_object_waits_for_it() {
    let mut rig = Rig::new();
    rig.feed([add(object_route("10.1.0.0/16", 1))]);
    assert_eq!(rig.hops("10.1.0.0/16"), None);
    assert!(rig.mirror.wants_dump());
    rig.feed([object(1, hop("10.0.1.2", 1))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1");
}

#[test]
fn group_may_come_before_its_members_in_a_dump() {
    let mut rig = Rig::new();
    rig.dump(TableName::NextHops, [group(1, &[(5, 1)]), object(5, hop("10.0.1.2", 1))]);
    rig.dump(TableName::RoutesV4, [add(object_route("10.1.0.0/16", 1))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1");
}
