//! Random requests to the model of the kernel: the mirror follows its messages, and recovers from lost ones by a dump.

use proptest::collection::vec;
use proptest::prelude::*;

use super::kernel::{Kernel, Request};
use super::*;

/// Indexes of links in the requests.
const LINKS: std::ops::Range<u32> = 1..4;
/// Numbers of next-hop objects in the requests.
const OBJECTS: std::ops::Range<u32> = 1..6;

fn gateways() -> impl Strategy<Value = Option<IpAddr>> {
    prop_oneof![
        1 => Just(None),
        3 => (1_u8..4).prop_map(|last| Some(IpAddr::from([10, 0, 0, last]))),
        2 => (1_u16..4).prop_map(|last| Some(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, last]))),
    ]
}

fn next_hops() -> impl Strategy<Value = KernelNextHop> {
    let hop = |(gateway, index)| KernelNextHop { gateway, index, weight: 1, is_dead: false, is_linkdown: false };
    (gateways(), LINKS).prop_map(hop)
}

fn destinations() -> impl Strategy<Value = IpNet> {
    let texts = vec!["0.0.0.0/0", "10.1.0.0/16", "10.1.2.0/24", "::/0", "2001:db8::/32"];
    proptest::sample::select(texts).prop_map(prefix)
}

/// Next hops of a route. Those of an IPv6 multipath route have IPv6 gateways, and differ.
fn routes() -> impl Strategy<Value = KernelRoute> {
    let hops = prop_oneof![
        3 => vec(next_hops(), 1..4).prop_map(RouteHops::Direct),
        2 => OBJECTS.prop_map(RouteHops::Object),
    ];
    (destinations(), 0_u32..3, hops).prop_map(|(prefix, metric, mut hops)| {
        if let (RouteHops::Direct(hops), IpAddr::V6(_)) = (&mut hops, prefix.addr()) {
            let is_multipath = hops.len() > 1;
            for hop in hops.iter_mut().filter(|hop| is_multipath || hop.gateway.is_some()) {
                hop.gateway = hop.gateway.filter(IpAddr::is_ipv6).or(Some(address("fe80::9")));
            }
            let mut paths: Vec<KernelNextHop> = Vec::new();
            hops.retain(|hop| {
                let is_new = !paths.iter().any(|other| other.is_same_path(hop));
                paths.push(*hop);
                is_new
            });
        }
        KernelRoute { prefix, metric, protocol: 4, kind: RouteKind::Unicast, hops }
    })
}

fn objects() -> impl Strategy<Value = NextHopObject> {
    let member = (OBJECTS, 1_u16..4).prop_map(|(id, weight)| GroupMember { id, weight });
    let unique = |members: Vec<GroupMember>| {
        let by_id: BTreeMap<u32, GroupMember> = members.into_iter().map(|member| (member.id, member)).collect();
        NextHopObject::Group(by_id.into_values().collect())
    };
    prop_oneof![2 => next_hops().prop_map(NextHopObject::Hop), 1 => vec(member, 1..4).prop_map(unique)]
}

fn requests() -> impl Strategy<Value = Request> {
    let modes = vec![RouteMode::Exclusive, RouteMode::Prepend, RouteMode::Append, RouteMode::Replace];
    let modes = proptest::sample::select(modes);
    let own = proptest::sample::select(vec!["10.0.0.9/24", "10.0.1.9/24", "2001:db8::9/64"]).prop_map(prefix);
    let peers = proptest::sample::select(vec!["10.0.0.1", "fe80::1"]).prop_map(address);
    prop_oneof![
        2 => LINKS.prop_map(Request::AddLink),
        1 => LINKS.prop_map(Request::RemoveLink),
        6 => (LINKS, prop::bool::weighted(0.7)).prop_map(|(link, is_up)| Request::SetAdmin(link, is_up)),
        6 => (LINKS, prop::bool::weighted(0.7)).prop_map(|(link, is_up)| Request::SetCarrier(link, is_up)),
        3 => (LINKS, own.clone()).prop_map(|(link, address)| Request::AddAddress(link, address)),
        2 => (LINKS, own).prop_map(|(link, address)| Request::RemoveAddress(link, address)),
        2 => (LINKS, peers.clone(), 0_u8..3).prop_map(|(link, peer, mac)| Request::SetNeighbour(link, peer, mac)),
        1 => (LINKS, peers).prop_map(|(link, peer)| Request::RemoveNeighbour(link, peer)),
        6 => (OBJECTS, objects()).prop_map(|(id, object)| Request::SetObject(id, object)),
        2 => OBJECTS.prop_map(Request::RemoveObject),
        14 => (routes(), modes).prop_map(|(route, mode)| Request::AddRoute(route, mode)),
        4 => (destinations(), 0_usize..4, prop::option::of(0_usize..4))
            .prop_map(|(prefix, place, path)| Request::RemoveRoute(prefix, place, path)),
    ]
}

/// All links of the requests are up at first, so that routes have next hops.
fn booted() -> Kernel {
    let mut kernel = Kernel::default();
    for link in LINKS {
        kernel.run(&Request::AddLink(link));
        kernel.run(&Request::SetAdmin(link, true));
        kernel.run(&Request::SetCarrier(link, true));
    }
    kernel
}

fn dump_all(mirror: &mut Mirror, kernel: &Kernel) {
    mirror.clear_wish();
    for table in TableName::ALL {
        mirror.begin_dump(table);
        kernel.dump(table).into_iter().for_each(|event| mirror.feed_dumped(event));
        assert_eq!(mirror.end_dump(table), DumpEnd::Complete);
    }
}

/// Cases of each property. `PROPTEST_CASES` sets another number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(1500, |text| text.parse().expect("a number"))
}

/// Place of an entry in its dump.
type Key = (u32, Option<IpNet>, Option<IpAddr>);

/// The next entries of a dump, of at most `count` keys.
fn read(kernel: &Kernel, table: TableName, cursor: &mut Option<Key>, count: usize) -> Vec<KernelEvent> {
    let key = |event: &KernelEvent| match event {
        KernelEvent::Link(state) => (state.link.index, None, None),
        KernelEvent::Address(address) => (address.index, Some(address.address), None),
        KernelEvent::Neighbour(neighbour) => (neighbour.index, None, Some(neighbour.address)),
        KernelEvent::NextHop { id, .. } => (*id, None, None),
        KernelEvent::Route { route, .. } => (0, Some(route.prefix), None),
        other => unreachable!("{other:?} in a dump"),
    };
    let mut remaining = kernel.dump(table);
    remaining.retain(|event| cursor.is_none_or(|cursor| key(event) > cursor));
    let keys: BTreeSet<Key> = remaining.iter().map(key).collect();
    let Some(last) = keys.into_iter().take(count).max() else { return Vec::new() };
    remaining.retain(|event| key(event) <= last);
    *cursor = Some(last);
    remaining
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn mirror_follows_the_kernels_messages(requests in vec(requests(), 1..60)) {
        let (mut kernel, mut mirror, mut view) = (booted(), Mirror::new(Limits::default()), View::default());
        dump_all(&mut mirror, &kernel);
        for request in requests {
            kernel.run(&request).into_iter().for_each(|event| mirror.feed(event));
            view.follow(&mut mirror);
            prop_assert_eq!(&view, &kernel.view(), "after {:?}", request);
        }
    }

    #[test]
    fn mirror_recovers_from_lost_messages_by_a_dump(requests in vec((requests(), any::<bool>()), 1..60)) {
        let (mut kernel, mut mirror, mut view) = (booted(), Mirror::new(Limits::default()), View::default());
        dump_all(&mut mirror, &kernel);
        for (request, is_lost) in requests {
            kernel.run(&request).into_iter().filter(|_| !is_lost).for_each(|event| mirror.feed(event));
            view.apply(mirror.changes(3));
        }
        dump_all(&mut mirror, &kernel);
        view.follow(&mut mirror);
        prop_assert_eq!(&view, &kernel.view());
        // The mirror is whole: it follows from here on.
        for request in [Request::SetAdmin(1, false), Request::SetCarrier(2, false), Request::RemoveObject(1)] {
            kernel.run(&request).into_iter().for_each(|event| mirror.feed(event));
            view.follow(&mut mirror);
            prop_assert_eq!(&view, &kernel.view(), "after {:?}", request);
        }
    }

    /// The kernel reads a part of a table, a request changes the table, and the message of the request arrives before
    /// or after the part.
    #[test]
    fn dump_among_events_is_right_or_repeated(
        before in vec((requests(), any::<bool>()), 1..40),
        during in vec((requests(), any::<bool>(), 0_usize..8), 1..12),
    ) {
        let (mut kernel, mut mirror, mut view) = (booted(), Mirror::new(Limits::default()), View::default());
        for (request, is_lost) in before {
            kernel.run(&request).into_iter().filter(|_| !is_lost).for_each(|event| mirror.feed(event));
        }
        mirror.clear_wish();
        let mut during = during.into_iter();
        let mut is_complete = true;
        for table in TableName::ALL {
            mirror.begin_dump(table);
            let mut cursor = None;
            for (request, is_event_first, count) in during.by_ref().take(2) {
                let part = read(&kernel, table, &mut cursor, count);
                let events = kernel.run(&request);
                let feed = |mirror: &mut Mirror| part.into_iter().for_each(|event| mirror.feed_dumped(event));
                if is_event_first {
                    events.into_iter().for_each(|event| mirror.feed(event));
                    feed(&mut mirror);
                } else {
                    feed(&mut mirror);
                    events.into_iter().for_each(|event| mirror.feed(event));
                }
            }
            let remaining = read(&kernel, table, &mut cursor, usize::MAX);
            remaining.into_iter().for_each(|event| mirror.feed_dumped(event));
            is_complete &= mirror.end_dump(table) == DumpEnd::Complete;
        }
        view.follow(&mut mirror);
        if !is_complete || mirror.wants_dump() {
            dump_all(&mut mirror, &kernel);
            view.follow(&mut mirror);
        }
        prop_assert_eq!(&view, &kernel.view());
    }
}

/// The mirror missed that link 2 had no carrier for a while, so a message from that time tells it a wrong state.
#[test]
fn dump_mends_the_state_of_next_hops_beside_an_event() {
    let (mut kernel, mut mirror, mut view) = (booted(), Mirror::new(Limits::default()), View::default());
    let route = |index| {
        let hops = RouteHops::Direct(vec![hop("", index)]);
        KernelRoute { prefix: prefix("10.1.2.0/24"), metric: 0, protocol: 4, kind: RouteKind::Unicast, hops }
    };
    kernel.run(&Request::SetCarrier(2, false));
    for request in [Request::AddRoute(route(2), RouteMode::Exclusive), Request::SetCarrier(2, true)] {
        kernel.run(&request).into_iter().for_each(|event| mirror.feed(event));
    }
    mirror.clear_wish();
    let mut is_complete = true;
    for table in TableName::ALL {
        mirror.begin_dump(table);
        if table == TableName::RoutesV4 {
            let request = Request::AddRoute(route(3), RouteMode::Append);
            kernel.run(&request).into_iter().for_each(|event| mirror.feed(event));
        }
        kernel.dump(table).into_iter().for_each(|event| mirror.feed_dumped(event));
        is_complete &= mirror.end_dump(table) == DumpEnd::Complete;
    }
    if !is_complete || mirror.wants_dump() {
        dump_all(&mut mirror, &kernel);
    }
    view.follow(&mut mirror);
    assert_eq!(view, kernel.view());
}
