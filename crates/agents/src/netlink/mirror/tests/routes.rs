//! Routes: metrics, several routes of one metric, multipath.

use super::*;

#[test]
fn lowest_metric_wins() {
    let mut rig = Rig::new();
    let worse = with_metric(20, route("10.1.0.0/16", &[hop("10.0.2.2", 2)]));
    let better = with_metric(10, route("10.1.0.0/16", &[hop("10.0.1.2", 1)]));
    rig.feed([add(worse.clone())]);
    assert_eq!(rig.view.routes[&prefix("10.1.0.0/16")].metric, 20);
    rig.feed([add(better.clone())]);
    assert_eq!(rig.view.routes[&prefix("10.1.0.0/16")].metric, 10);
    rig.feed([KernelEvent::RouteGone(better)]);
    assert_eq!(rig.view.routes[&prefix("10.1.0.0/16")].metric, 20);
    rig.feed([KernelEvent::RouteGone(worse)]);
    assert_eq!(rig.view.routes.len(), 0);
    assert_eq!(rig.mirror.sizes().routes, 0);
}

#[test]
fn ipv4_replace_takes_the_place_of_its_metrics_first_route() {
    let mut rig = Rig::new();
    rig.feed([
        add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])),
        add(with_metric(5, route("10.1.0.0/16", &[hop("10.0.3.2", 3)]))),
        replace(route("10.1.0.0/16", &[hop("10.0.2.2", 2)])),
    ]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.2%2*1");
    assert_eq!(rig.mirror.sizes().routes, 2);
}

#[test]
fn ipv4_routes_of_one_metric_are_alternatives_in_the_kernels_order() {
    let mut rig = Rig::new();
    let [a, b, c] = [1, 2, 3].map(|index| route("10.1.0.0/16", &[hop(&format!("10.0.{index}.2"), index)]));
    rig.feed([add(b.clone()), append(c.clone())]);
    rig.feed([KernelEvent::Route { route: a.clone(), mode: RouteMode::Prepend }]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1", "no multipath route");
    rig.feed([KernelEvent::RouteGone(a)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.2.2%2*1");
    rig.feed([KernelEvent::RouteGone(b)]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.3.2%3*1");
}

#[test]
fn exclusive_route_shows_that_earlier_ones_were_flushed() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)])), append(route("10.1.0.0/16", &[hop("10.0.2.2", 2)]))]);
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.3.2", 3)]))]);
    assert_eq!(rig.mirror.sizes().routes, 1);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.3.2%3*1");
}

#[test]
fn removal_of_an_unknown_ipv4_route_asks_for_a_dump() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)]))]);
    rig.feed([KernelEvent::RouteGone(route("10.2.0.0/16", &[hop("10.0.1.2", 1)]))]);
    assert!(!rig.mirror.wants_dump(), "nothing can be wrong about a prefix that is unknown");
    rig.feed([KernelEvent::RouteGone(route("10.1.0.0/16", &[hop("10.0.2.2", 2)]))]);
    assert!(rig.mirror.wants_dump());
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.2%1*1", "until the dump");
}

#[test]
fn weights_of_a_multipath_route_are_published() {
    let mut rig = Rig::new();
    let heavy = KernelNextHop { weight: 3, ..hop("10.0.2.2", 2) };
    rig.feed([add(route("0.0.0.0/0", &[hop("10.0.1.2", 1), heavy]))]);
    assert_eq!(rig.hops("0.0.0.0/0").unwrap(), "10.0.1.2%1*1 10.0.2.2%2*3");
}

#[test]
fn ipv4_route_may_have_an_ipv6_gateway() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("fe80::2", 1)]))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "fe80::2%1*1");
}

#[test]
fn ipv6_message_with_all_next_hops_replaces_the_set() {
    let mut rig = Rig::new();
    rig.feed([add(route("2001:db8::/32", &[hop("fe80::1", 1)]))]);
    rig.feed([append(route("2001:db8::/32", &[hop("fe80::1", 1), hop("fe80::2", 2)]))]);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::1%1*1 fe80::2%2*1");
    assert_eq!(rig.mirror.sizes().routes, 1);
    let from_the_third = [hop("fe80::3", 3), hop("fe80::1", 1), hop("fe80::2", 2)];
    rig.feed([append(route("2001:db8::/32", &from_the_third))]);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::1%1*1 fe80::2%2*1 fe80::3%3*1", "the order is kept");
    rig.feed([replace(route("2001:db8::/32", &[hop("fe80::2", 2), hop("fe80::3", 3)]))]);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::2%2*1 fe80::3%3*1");
}

#[test]
fn ipv6_next_hops_in_several_messages_make_one_route() {
    let mut rig = Rig::new();
    rig.feed([add(route("2001:db8::/32", &[hop("fe80::1", 1)]))]);
    rig.feed([append(route("2001:db8::/32", &[hop("fe80::2", 2)]))]);
    rig.feed([append(route("2001:db8::/32", &[hop("fe80::2", 2)]))]);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::1%1*1 fe80::2%2*1");
    let both = [1, 2].map(|index| add(route("2001:db8::/32", &[hop(&format!("fe80::{index}"), index)])));
    assert_eq!(rig.dump(TableName::RoutesV6, both), DumpEnd::Complete);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::1%1*1 fe80::2%2*1");
}

#[test]
fn ipv6_removal_of_one_next_hop_leaves_the_others() {
    let mut rig = Rig::new();
    let all = [hop("fe80::1", 1), hop("fe80::2", 2), hop("fe80::3", 3)];
    rig.feed([add(route("2001:db8::/32", &all))]);
    rig.feed([KernelEvent::RouteGone(route("2001:db8::/32", &all[..1]))]);
    assert_eq!(rig.hops("2001:db8::/32").unwrap(), "fe80::2%2*1 fe80::3%3*1");
    rig.feed([KernelEvent::RouteGone(route("2001:db8::/32", &all[1..]))]);
    assert_eq!(rig.hops("2001:db8::/32"), None);
    assert!(!rig.mirror.wants_dump());
}

#[test]
fn ipv6_routes_without_gateway_stay_alternatives() {
    let mut rig = Rig::new();
    rig.feed([add(route("2001:db8::/64", &[hop("", 1)])), append(route("2001:db8::/64", &[hop("", 2)]))]);
    assert_eq!(rig.hops("2001:db8::/64").unwrap(), "on-link%1*1");
    assert_eq!(rig.mirror.sizes().routes, 2);
}

#[test]
fn ipv6_replace_prefers_a_route_of_its_own_sort() {
    let mut rig = Rig::new();
    rig.feed([add(route("2001:db8::/64", &[hop("", 1)])), append(route("2001:db8::/64", &[hop("fe80::2", 2)]))]);
    rig.feed([replace(route("2001:db8::/64", &[hop("fe80::3", 3)]))]);
    rig.feed([KernelEvent::RouteGone(route("2001:db8::/64", &[hop("", 1)]))]);
    assert_eq!(rig.hops("2001:db8::/64").unwrap(), "fe80::3%3*1");
    assert_eq!(rig.mirror.sizes().routes, 1);
}

#[test]
fn router_advertisements_do_not_join_to_multipath() {
    let mut rig = Rig::new();
    let advertised = |index| KernelRoute { protocol: 9, ..route("::/0", &[hop(&format!("fe80::{index}"), index)]) };
    rig.feed([add(advertised(1)), append(advertised(2))]);
    assert_eq!(rig.hops("::/0").unwrap(), "fe80::1%1*1");
}

#[test]
fn dropping_routes_need_no_next_hop() {
    let mut rig = Rig::new();
    for (kind, destination) in [
        (RouteKind::Blackhole, "10.1.0.0/16"),
        (RouteKind::Unreachable, "10.2.0.0/16"),
        (RouteKind::Prohibit, "2001:db8::/32"),
    ] {
        let route = KernelRoute { kind, ..route(destination, &[]) };
        rig.feed([add(route.clone())]);
        assert_eq!(rig.hops(destination).unwrap(), format!("{kind:?}"));
        rig.feed([KernelEvent::RouteGone(route)]);
        assert_eq!(rig.hops(destination), None);
    }
}

#[test]
fn route_beyond_the_limit_is_refused_but_a_known_one_may_change() {
    let mut rig = Rig::new();
    rig.mirror = Mirror::new(Limits { routes: 1, ..Limits::default() });
    rig.view = View::default();
    rig.feed([up(1), add(route("10.1.0.0/16", &[hop("10.0.1.2", 1)]))]);
    rig.feed([append(route("10.1.0.0/16", &[hop("10.0.1.3", 1)])), add(route("10.2.0.0/16", &[hop("10.0.1.2", 1)]))]);
    assert_eq!((rig.mirror.sizes().routes, rig.mirror.refused()), (1, 2));
    rig.feed([replace(route("10.1.0.0/16", &[hop("10.0.1.4", 1)]))]);
    assert_eq!(rig.hops("10.1.0.0/16").unwrap(), "10.0.1.4%1*1");
}

#[test]
fn route_with_too_many_next_hops_is_refused() {
    let mut rig = Rig::new();
    rig.feed([add(route("10.1.0.0/16", &[hop("10.0.1.2", 1); 513]))]);
    assert_eq!((rig.hops("10.1.0.0/16"), rig.mirror.refused()), (None, 1));
}
