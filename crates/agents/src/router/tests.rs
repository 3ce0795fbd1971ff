//! The router with hosts that answer its questions.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::*;
use crate::route::{Action, Fib, FoundGroup, PuntCause, PuntFrame, SoftFib};

pub(super) const HOST: MacAddr = MacAddr([2, 0, 0, 0, 9, 9]);

pub(super) fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

pub(super) fn router() -> Router {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&fixture::two_ports(), fibs, seconds(1));
    router.take_output();
    router
}

pub(super) fn punt(port: u8, cause: PuntCause, bytes: Vec<u8>) -> PuntFrame {
    PuntFrame { bytes, port, vlan: 4094 - u16::from(port), l3_offset: 14, cause, may_wait: true }
}

pub(super) fn hop(interface: u16, address: &str) -> NextHopSpec {
    NextHopSpec { address: address.parse().unwrap(), interface, weight: 1 }
}

/// The action and the MAC addresses by which `table` sends a packet to `address`.
pub(super) fn way(table: &RouteTable, address: &str) -> (Action, Vec<MacAddr>) {
    let address: Ipv4Addr = address.parse().unwrap();
    let mut found = [FoundGroup::default()];
    table.fib.lookup_v4(&[address.to_bits()], &mut found);
    let group = table.groups[found[0].index()];
    let mut macs: Vec<MacAddr> = match group.action {
        Action::Forward => {
            table.buckets_of(group).map(|id| table.adjacencies[usize::from(id.0)].station().mac()).collect()
        }
        _ => Vec::new(),
    };
    macs.sort_unstable();
    macs.dedup();
    (group.action, macs)
}

/// Makes and settles tables.
pub(super) fn updated(router: &mut Router) -> Arc<RouteTable> {
    let table = router.update().expect("a change");
    router.settle();
    table
}

/// Lets the host at `address` behind `port` answer ARP.
pub(super) fn arp_reply(router: &mut Router, port: u8, address: &str, mac: MacAddr, now: Nanos) {
    let own = Ipv4Addr::new(10, 0, port, 1);
    let reply = frames::arp_reply((mac, address.parse().unwrap()), (MacAddr::local(0, port.into()), own));
    router.receive(&punt(port, PuntCause::Arp, reply), now);
}

fn udp(dst: [u8; 4], ttl: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    let builder = etherparse::PacketBuilder::ethernet2(HOST.0, [2; 6]).ipv4([10, 0, 0, 9], dst, ttl);
    builder.udp(4000, 5000).write(&mut frame, &[7; 20]).unwrap();
    frame
}

#[test]
fn own_addresses_are_local_and_networks_glean() {
    let mut router = router();
    let table = updated(&mut router);
    assert_eq!(way(&table, "10.0.0.1").0, Action::Local);
    assert_eq!(way(&table, "10.0.1.77").0, Action::Glean(1));
    assert_eq!(way(&table, "10.0.0.255").0, Action::Martian);
    assert_eq!(way(&table, "224.0.0.5").0, Action::Martian);
    assert_eq!(way(&table, "11.0.0.1").0, Action::NoRoute);
    assert!(table.is_own("10.0.1.1".parse().unwrap()) && router.update().is_none());
}

#[test]
fn packet_waits_for_its_next_hop_and_leaves_with_the_answer() {
    let mut router = router();
    updated(&mut router);
    router.receive(&punt(0, PuntCause::Resolve, udp([10, 0, 1, 9], 64)), seconds(2));
    let asked = router.take_output();
    assert_eq!((asked.len(), asked[0].to), (1, InjectTo::Port(1)));
    assert_eq!(frames::read_arp(&asked[0].bytes[14..]).unwrap().target, IpAddr::from([10, 0, 1, 9]));
    arp_reply(&mut router, 1, "10.0.1.9", HOST, seconds(2));
    let sent = router.take_output();
    assert_eq!((sent.len(), &sent[0].bytes[..6], sent[0].bytes[22]), (1, &HOST.0[..], 63));
    assert_eq!(way(&updated(&mut router), "10.0.1.9"), (Action::Forward, vec![HOST]));
}

#[test]
fn lossless_packet_asks_and_does_not_wait() {
    let mut router = router();
    let frame = PuntFrame { may_wait: false, ..punt(0, PuntCause::Resolve, udp([10, 0, 1, 9], 64)) };
    router.receive(&frame, seconds(2));
    assert_eq!(router.take_output().len(), 1);
    arp_reply(&mut router, 1, "10.0.1.9", HOST, seconds(2));
    assert!(router.take_output().is_empty());
}

#[test]
fn sender_to_a_silent_static_neighbour_gets_an_error_and_the_table_shows_it() {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut spec = fixture::two_ports();
    let address = "10.0.1.9".parse().unwrap();
    spec.neighbours = vec![crate::route::StaticNeighbour { interface: 1, address, mac: HOST }];
    let mut router = Router::new(&spec, fibs, seconds(1));
    let request = frames::arp_request((HOST, [10, 0, 0, 9].into()), [10, 0, 0, 1].into(), None);
    router.receive(&punt(0, PuntCause::Arp, request), seconds(1));
    router.take_output();
    router.receive(&punt(1, PuntCause::Resolve, udp([10, 0, 1, 9], 64)), seconds(2));
    let mut output = router.take_output();
    (3..6).for_each(|second| router.tick(seconds(second)));
    output.extend(router.take_output());
    let is_error = |frame: &Outgoing| frame.to == InjectTo::Port(0) && frame.bytes[34..36] == [3, 1];
    assert_eq!(output.iter().map(is_error).collect::<Vec<_>>(), [false, false, false, true], "three questions");
    let shown = router.neighbours_view(seconds(6));
    assert_eq!(shown.iter().find(|one| one.address == address).unwrap().state.label(), "silent");
    let view = router.view();
    assert_eq!((view.waiting, view.neighbour_counts.unresolved_packets), (0, 1));
}

#[test]
fn packet_whose_route_has_gone_is_counted() {
    let mut router = router();
    router.receive(&punt(0, PuntCause::Resolve, udp([10, 99, 1, 9], 64)), seconds(2));
    router.set_links(PortSet::only(0), seconds(2));
    router.receive(&punt(0, PuntCause::Resolve, udp([10, 0, 1, 9], 64)), seconds(2));
    assert_eq!(router.view().neighbour_counts.unresolved_packets, 2);
}

#[test]
fn next_hops_of_routes_are_asked_for_without_a_packet() {
    let mut router = router();
    router.set_route(
        Source::Static,
        "10.9.0.0/16".parse().unwrap(),
        &[hop(0, "10.0.0.2"), hop(1, "10.0.1.2")],
        seconds(1),
    );
    router.tick(seconds(1));
    assert_eq!(router.take_output().len(), 2);
    assert_eq!(way(&updated(&mut router), "10.9.1.1").0, Action::Incomplete(0));
    let other = MacAddr([2, 0, 0, 0, 8, 8]);
    arp_reply(&mut router, 0, "10.0.0.2", HOST, seconds(1));
    assert_eq!(way(&updated(&mut router), "10.9.1.1"), (Action::Forward, vec![HOST]));
    arp_reply(&mut router, 1, "10.0.1.2", other, seconds(1));
    assert_eq!(way(&updated(&mut router), "10.9.1.1"), (Action::Forward, vec![other, HOST]));
}

#[test]
fn link_that_goes_down_moves_only_its_share_at_once() {
    let mut router = router();
    router.set_route(
        Source::Static,
        "10.9.0.0/16".parse().unwrap(),
        &[hop(0, "10.0.0.2"), hop(1, "10.0.1.2")],
        seconds(1),
    );
    arp_reply(&mut router, 0, "10.0.0.2", HOST, seconds(1));
    arp_reply(&mut router, 1, "10.0.1.2", MacAddr([2, 0, 0, 0, 8, 8]), seconds(1));
    updated(&mut router);
    let moved = router.view().counts.buckets_moved;
    router.set_links(PortSet::only(0), seconds(2));
    assert_eq!(way(&updated(&mut router), "10.9.1.1"), (Action::Forward, vec![HOST]));
    assert_eq!(router.view().counts.buckets_moved - moved, 32, "half of 64");
    router.take_output();
    router.set_links(PortSet::first(2), seconds(3));
    router.tick(seconds(3));
    // Two announcements of own addresses, and the question for the next hop.
    assert_eq!(router.take_output().len(), 3);
    arp_reply(&mut router, 1, "10.0.1.2", MacAddr([2, 0, 0, 0, 8, 8]), seconds(3));
    assert_eq!(way(&updated(&mut router), "10.9.1.1").1.len(), 2);
}

#[test]
fn arp_for_an_own_address_is_answered_and_teaches_the_asker() {
    let mut router = router();
    let request = frames::arp_request((HOST, Ipv4Addr::new(10, 0, 0, 9)), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(0, PuntCause::Arp, request.clone()), seconds(1));
    let sent = router.take_output();
    let reply = frames::read_arp(&sent[0].bytes[14..]).unwrap();
    assert_eq!((reply.sender, reply.mac, reply.is_request), ([10, 0, 0, 1].into(), Some(MacAddr::local(0, 0)), false));
    assert_eq!(way(&updated(&mut router), "10.0.0.9"), (Action::Forward, vec![HOST]));
    // Not for an address of another interface, and not from a foreign network.
    router.receive(&punt(1, PuntCause::Arp, request), seconds(1));
    let foreign = frames::arp_request((HOST, Ipv4Addr::new(172, 16, 0, 9)), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(0, PuntCause::Arp, foreign), seconds(1));
    assert!(router.neighbours_view(seconds(1)).len() == 1, "{:?}", router.neighbours_view(seconds(1)));
}

#[test]
fn solicitation_for_an_own_address_is_answered() {
    let mut router = router();
    let asker: std::net::Ipv6Addr = "2001:db8:0::9".parse().unwrap();
    let request = frames::solicitation((HOST, asker), "2001:db8:0::1".parse().unwrap(), None);
    router.receive(&punt(0, PuntCause::NeighbourDiscovery, request), seconds(1));
    let sent = router.take_output();
    let answer = frames::read_discovery(&sent[0].bytes[14..]).unwrap();
    assert_eq!((answer.sender, answer.mac), ("2001:db8::1".parse().unwrap(), Some(MacAddr::local(0, 0))));
    let known = router.neighbours_view(seconds(1));
    assert_eq!((known[0].address, known[0].state, known[0].age), (asker.into(), State::Stale, None));
    assert_eq!(router.route_to(asker.into()).map(|(source, _)| source), Some(Source::Neighbour), "packets use it");
    // One for another host says nothing (RFC 4861 section 7.2.3).
    let moved = MacAddr([2, 0, 0, 0, 7, 7]);
    let request = frames::solicitation((moved, asker), "2001:db8:0::77".parse().unwrap(), None);
    router.receive(&punt(0, PuntCause::NeighbourDiscovery, request), seconds(1));
    assert_eq!(router.neighbours_view(seconds(1))[0].mac, Some(HOST));
}

/// Linux answers a question that went to it alone without its MAC address (RFC 4861 section 7.2.4).
#[test]
fn advertisement_without_mac_address_confirms_a_probed_neighbour() {
    let mut router = router();
    let (host, own): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
        ("2001:db8:0::9".parse().unwrap(), "2001:db8:0::1".parse().unwrap());
    let request = frames::solicitation((HOST, host), own, None);
    router.receive(&punt(0, PuntCause::NeighbourDiscovery, request), seconds(1));
    let answer = |solicited| {
        let header = etherparse::icmpv6::NeighborAdvertisementHeader { router: false, solicited, r#override: false };
        let kind = etherparse::Icmpv6Type::NeighborAdvertisement(header);
        let packet = frames::icmpv6_packet(host, own, 255, kind, &host.octets());
        punt(0, PuntCause::NeighbourDiscovery, frames::ip_frame(MacAddr::local(0, 0), HOST, &packet))
    };
    let state = |router: &Router| router.neighbours_view(seconds(60)).first().map(|neighbour| neighbour.state);
    for solicited in [true, false] {
        router.tick(seconds(50));
        assert_eq!(state(&router), Some(State::Probing));
        router.receive(&answer(solicited), seconds(50));
        assert_eq!(state(&router), Some(if solicited { State::Reachable } else { State::Probing }));
        if solicited {
            for second in 51..100 {
                router.tick(seconds(second));
                if state(&router) == Some(State::Probing) {
                    break;
                }
            }
        }
    }
    let stranger = Router::neighbours_view(&router, seconds(60)).len();
    router.receive(&punt(1, PuntCause::NeighbourDiscovery, answer(true).bytes), seconds(60));
    assert_eq!(router.neighbours_view(seconds(60)).len(), stranger, "it teaches no new neighbour");
}

#[test]
fn conflict_of_addresses_is_counted_and_not_learned() {
    let mut router = router();
    let claim = frames::gratuitous_arp((HOST, Ipv4Addr::new(10, 0, 0, 1)));
    router.receive(&punt(0, PuntCause::Arp, claim), seconds(1));
    assert_eq!((router.view().counts.conflicts, router.neighbours_view(seconds(1)).len()), (1, 0));
}

#[test]
fn errors_go_back_to_the_sender() {
    let mut router = router();
    let request = frames::arp_request((HOST, Ipv4Addr::new(10, 0, 0, 9)), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(0, PuntCause::Arp, request), seconds(1));
    router.take_output();
    for (cause, dst, kind, code) in [
        (PuntCause::TimeExceeded, [10, 0, 1, 9], 11, 0),
        (PuntCause::Unreachable, [11, 0, 1, 9], 3, 0),
        (PuntCause::TooBig, [10, 0, 1, 9], 3, 4),
    ] {
        router.receive(&punt(0, cause, udp(dst, 1)), seconds(1));
        let sent = router.take_output();
        assert_eq!((sent.len(), &sent[0].bytes[..6], &sent[0].bytes[34..36]), (1, &HOST.0[..], &[kind, code][..]));
        assert_eq!((&sent[0].bytes[26..30], &sent[0].bytes[30..34]), (&[10, 0, 0, 1][..], &[10, 0, 0, 9][..]));
    }
    assert_eq!(router.view().counts.icmp_errors, 3);
}

/// The spine of an unnumbered fabric: traceroute shows its loopback.
#[test]
fn router_without_addresses_answers_from_its_loopback() {
    let mut spec = fixture::two_ports();
    spec.interfaces.iter_mut().for_each(|interface| interface.addresses.clear());
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&spec, fibs, seconds(1));
    router.set_loopbacks(vec!["fd00:255::1".parse().unwrap(), "10.255.0.1".parse().unwrap()]);
    router.set_route(Source::Kernel, "10.0.0.0/24".parse().unwrap(), &[hop(0, "169.254.0.1")], seconds(1));
    router.confirm_neighbour(0, "169.254.0.1".parse().unwrap(), HOST, seconds(1));
    router.take_output();
    router.receive(&punt(0, PuntCause::TimeExceeded, udp([10, 0, 1, 9], 1)), seconds(1));
    let sent = router.take_output();
    assert_eq!((sent.len(), &sent[0].bytes[..6], &sent[0].bytes[26..30]), (1, &HOST.0[..], &[10, 255, 0, 1][..]));
}

#[test]
fn packet_to_a_silent_host_is_answered_as_unreachable() {
    let mut router = router();
    let request = frames::arp_request((HOST, Ipv4Addr::new(10, 0, 0, 9)), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(0, PuntCause::Arp, request), seconds(1));
    router.receive(&punt(0, PuntCause::Resolve, udp([10, 0, 1, 77], 64)), seconds(1));
    router.take_output();
    let mut answers = Vec::new();
    for second in 2..7 {
        router.tick(seconds(second));
        answers.extend(router.take_output().into_iter().filter(|sent| sent.to == InjectTo::Port(0)));
    }
    assert_eq!((answers.len(), &answers[0].bytes[34..36]), (1, &[3, 1][..]), "destination unreachable, host");
}

#[test]
fn reload_changes_routes_neighbours_and_addresses_alone() {
    let mut router = router();
    let mut spec = fixture::two_ports();
    spec.routes
        .push(crate::route::RouteSpec { prefix: "10.9.0.0/16".parse().unwrap(), next_hops: vec![hop(0, "10.0.0.2")] });
    spec.neighbours.push(crate::route::StaticNeighbour { interface: 0, address: [10, 0, 0, 2].into(), mac: HOST });
    router.configure(&spec, seconds(1));
    assert_eq!(way(&updated(&mut router), "10.9.1.1"), (Action::Forward, vec![HOST]));
    spec.routes[0].next_hops.clear();
    spec.interfaces[1].addresses = vec!["10.7.0.1/24".parse().unwrap()];
    router.configure(&spec, seconds(2));
    let table = updated(&mut router);
    assert_eq!(
        [way(&table, "10.9.1.1").0, way(&table, "10.7.0.9").0, way(&table, "10.0.1.9").0],
        [Action::Blackhole, Action::Glean(1), Action::NoRoute]
    );
    assert!(!table.is_own("10.0.1.1".parse().unwrap()));
    spec.routes.clear();
    router.configure(&spec, seconds(3));
    assert_eq!(way(&updated(&mut router), "10.9.1.1").0, Action::NoRoute);
    let fibs = router.tables.memory();
    router.configure(&spec, seconds(4));
    assert!(router.update().is_none(), "nothing differs");
    assert_eq!(router.tables.memory(), fibs);
}

#[test]
fn both_forwarding_tables_agree_after_each_update() {
    let fibs: [Arc<SoftFib>; 2] = [Arc::default(), Arc::default()];
    let [one, other] = fibs.clone();
    let mut router = Router::new(&fixture::two_ports(), [one, other], seconds(1));
    for round in 0..20_u8 {
        let prefix = format!("10.{}.0.0/16", 20 + round % 7).parse().unwrap();
        if round % 3 == 2 {
            router.remove_route(Source::Static, prefix);
        } else {
            router.set_route(Source::Static, prefix, &[hop(0, &format!("10.0.0.{}", 2 + round))], seconds(1));
        }
        if let Some(table) = router.update() {
            assert!(router.update().is_none(), "the last one is under way");
            router.settle();
            let probes: Vec<u32> = (0..32).map(|n| u32::from_be_bytes([10, n, 1, 1])).collect();
            let found = |fib: &dyn Fib| {
                let mut groups = vec![FoundGroup::default(); probes.len()];
                fib.lookup_v4(&probes, &mut groups);
                groups
            };
            assert_eq!(found(&*fibs[0]), found(&*fibs[1]));
            assert_eq!(found(&*table.fib), found(&*fibs[0]));
        }
    }
}

#[test]
fn next_hop_that_a_route_names_twice_is_not_asked_for_after_the_route() {
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&fixture::two_ports(), fibs, seconds(1));
    let prefix = "10.9.0.0/16".parse().unwrap();
    router.set_route(Source::Static, prefix, &[hop(1, "10.0.1.2"), hop(1, "10.0.1.2")], seconds(1));
    router.remove_route(Source::Static, prefix);
    (2..60).for_each(|second| router.tick(seconds(second)));
    router.take_output();
    (60..120).for_each(|second| router.tick(seconds(second)));
    assert_eq!(router.take_output(), []);
}

#[test]
fn interface_without_addresses_has_its_link_local_one() {
    let mut spec = fixture::two_ports();
    spec.interfaces[1].addresses.clear();
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&spec, fibs, seconds(1));
    let own = router.link_local(1);
    assert_eq!(router.route_to(own.into()), Some((Source::Local, GroupId::LOCAL)));
    assert!(updated(&mut router).is_own(own.into()));
}

#[test]
fn addresses_of_linux_stay_beside_configured_ones_and_survive_a_reload() {
    let mut router = router();
    let [learned, loopback]: [IpAddr; 2] = ["10.5.0.1", "10.255.0.1"].map(|text| text.parse().unwrap());
    router.set_learned(1, Attached::configured(&["10.5.0.1/24".parse().unwrap()]), seconds(1));
    router.set_loopbacks(vec![loopback]);
    let mut spec = fixture::two_ports();
    spec.interfaces[1].addresses = vec!["10.7.0.1/24".parse().unwrap()];
    router.configure(&spec, seconds(2));
    for own in [learned, loopback, "10.7.0.1".parse().unwrap()] {
        assert_eq!(router.route_to(own), Some((Source::Local, GroupId::LOCAL)), "{own}");
    }
    router.set_learned(1, Attached::default(), seconds(2));
    router.set_loopbacks(Vec::new());
    assert_eq!((router.route_to(learned), router.route_to(loopback)), (None, None));
    assert!(!updated(&mut router).is_own(loopback));
}

#[test]
fn route_without_a_free_group_enters_when_another_route_frees_one() {
    let mut router = router();
    let by = |number: u32| NextHopSpec { weight: 1 + (number >> 1) as u16, ..hop((number & 1) as u16, "10.0.9.9") };
    let prefix = |number: u32| IpNet::new(Ipv4Addr::from_bits(0x1400_0000 + (number << 8)).into(), 24).unwrap();
    let fits = (0..).find(|&number| !router.set_route(Source::Static, prefix(number), &[by(number)], seconds(1)));
    let full = fits.unwrap();
    assert_eq!(full as usize, groups::MAX_GROUPS - GroupId::FIRST as usize - 2);
    let (wanted, to) = ("10.9.0.0/16".parse().unwrap(), "10.9.1.1".parse().unwrap());
    assert!(router.set_route(Source::Kernel, wanted, &[by(0)], seconds(1)), "others use this set");
    assert!(!router.set_route(Source::Kernel, wanted, &[by(full + 1)], seconds(1)));
    assert_eq!(router.route_to(to), None, "not by its former next hops");
    assert!(router.set_route(Source::Static, prefix(3), &[by(full + 2)], seconds(1)), "its former group is free");
    router.remove_route(Source::Static, prefix(full));
    router.tick(seconds(2));
    assert_eq!(router.route_to(to), None);
    router.remove_route(Source::Static, prefix(7));
    router.tick(seconds(3));
    assert_eq!(router.route_to(to).map(|(source, _)| source), Some(Source::Kernel));
    assert_eq!(router.view().counts.groups_refused, 2, "attempts again are not counted");
    router.remove_route(Source::Static, prefix(8));
    router.remove_route(Source::Kernel, wanted);
    router.tick(seconds(4));
    assert_eq!(router.route_to(to), None);
}

#[test]
fn known_neighbour_has_a_route_while_it_is_on_a_network_of_its_interface() {
    let mut router = router();
    let host: IpAddr = "10.5.0.9".parse().unwrap();
    router.confirm_neighbour(1, host, HOST, seconds(1));
    assert_eq!(router.route_to(host), None);
    let attached = Attached { addresses: Vec::new(), networks: vec!["10.5.0.0/24".parse().unwrap()] };
    router.set_learned(1, attached, seconds(1));
    assert_eq!(router.route_to(host).map(|(source, _)| source), Some(Source::Neighbour));
    router.set_learned(1, Attached::default(), seconds(1));
    assert_eq!(router.route_to(host), None);
}

#[test]
fn network_that_moves_to_another_interface_takes_its_neighbours_along() {
    let mut router = router();
    let host: IpAddr = "10.5.0.9".parse().unwrap();
    let network = || Attached { addresses: Vec::new(), networks: vec!["10.5.0.0/24".parse().unwrap()] };
    router.set_learned(1, network(), seconds(1));
    router.confirm_neighbour(1, host, HOST, seconds(1));
    assert_eq!(router.route_to(host).map(|(source, _)| source), Some(Source::Neighbour));
    router.set_learned(0, network(), seconds(1));
    router.set_learned(1, Attached::default(), seconds(1));
    assert_eq!(router.route_to(host), Some((Source::Connected, Groups::glean(0))));
}

#[test]
fn next_hop_outside_of_all_networks_is_learned_from_its_answers() {
    let mut router = router();
    router.set_route(Source::Kernel, "10.9.0.0/16".parse().unwrap(), &[hop(1, "10.99.0.1")], seconds(1));
    updated(&mut router);
    router.tick(seconds(2));
    arp_reply(&mut router, 1, "10.99.0.1", HOST, seconds(2));
    assert_eq!(way(&updated(&mut router), "10.9.1.1"), (Action::Forward, vec![HOST]));
    assert_eq!(router.route_to("10.99.0.1".parse().unwrap()), None, "it is no host of a network");
}

#[test]
fn host_on_an_on_link_route_is_asked_and_its_answer_is_taken() {
    let mut router = router();
    updated(&mut router);
    let prefix = "10.66.0.0/16".parse().unwrap();
    router.set_on_link(Source::Kernel, prefix, 1, seconds(1));
    assert_eq!(way(&updated(&mut router), "10.66.1.9").0, Action::Glean(1));
    router.receive(&punt(0, PuntCause::Resolve, udp([10, 66, 1, 9], 64)), seconds(2));
    let asked = router.take_output();
    assert_eq!((asked.len(), asked[0].to), (1, InjectTo::Port(1)));
    arp_reply(&mut router, 1, "10.66.1.9", HOST, seconds(2));
    assert_eq!(router.take_output().len(), 1, "the packet has waited");
    assert_eq!(way(&updated(&mut router), "10.66.1.9"), (Action::Forward, vec![HOST]));
    router.remove_route(Source::Kernel, prefix);
    assert_eq!(way(&updated(&mut router), "10.66.1.9").0, Action::NoRoute);
}

#[test]
fn static_route_gives_way_while_all_its_interfaces_are_down() {
    let mut router = router();
    let mut spec = fixture::two_ports();
    let route = |prefix: &str, next_hops: &[NextHopSpec]| crate::route::RouteSpec {
        prefix: prefix.parse().unwrap(),
        next_hops: next_hops.to_vec(),
    };
    let (first, second) = (hop(0, "10.0.0.2"), hop(1, "10.0.1.2"));
    spec.routes =
        vec![route("10.9.0.0/16", &[second]), route("10.8.0.0/16", &[first, second]), route("10.7.0.0/16", &[])];
    router.configure(&spec, seconds(1));
    router.set_route(Source::Kernel, "10.9.0.0/16".parse().unwrap(), &[first], seconds(1));
    let sources = |router: &Router| {
        ["10.9.1.1", "10.8.1.1", "10.7.1.1"].map(|to| router.route_to(to.parse().unwrap()).map(|(source, _)| source))
    };
    let fixed = Some(Source::Static);
    assert_eq!(sources(&router), [fixed; 3], "no next hop has answered");
    router.set_links(PortSet::only(0), seconds(2));
    assert_eq!(sources(&router), [Some(Source::Kernel), fixed, fixed]);
    router.set_links(PortSet::EMPTY, seconds(3));
    assert_eq!(sources(&router), [Some(Source::Kernel), None, fixed], "the kernel's routes are the mirror's matter");
    spec.routes.push(route("10.6.0.0/16", &[second]));
    router.configure(&spec, seconds(4));
    assert_eq!(router.route_to("10.6.1.1".parse().unwrap()), None, "a new route by a link that is down");
    router.set_links(PortSet::first(2), seconds(5));
    assert_eq!(sources(&router), [fixed; 3]);
    assert!(router.route_to("10.6.1.1".parse().unwrap()).is_some());
}

/// A daemon may know another way to the network of a link that is down.
#[test]
fn network_of_an_interface_that_is_down_gives_way_to_other_routes() {
    let mut router = router();
    let (network, host) = ("10.0.1.0/24".parse().unwrap(), "10.0.1.9".parse().unwrap());
    router.set_route(Source::Kernel, network, &[hop(0, "10.0.0.2")], seconds(1));
    assert_eq!(router.route_to(host).map(|(source, _)| source), Some(Source::Connected));
    router.set_links(PortSet::only(0), seconds(2));
    assert_eq!(router.route_to(host).map(|(source, _)| source), Some(Source::Kernel));
    let mut spec = fixture::two_ports();
    spec.interfaces[1].addresses.push("10.6.0.1/24".parse().unwrap());
    router.configure(&spec, seconds(3));
    let other = "10.6.0.9".parse().unwrap();
    assert_eq!(router.route_to(other), None, "a new address while the link is down");
    router.set_links(PortSet::first(2), seconds(4));
    for address in [host, other] {
        assert_eq!(router.route_to(address).map(|(source, _)| source), Some(Source::Connected));
    }
}

/// Senders of ARP and neighbour discovery that are no host.
#[test]
fn address_that_no_host_may_have_is_not_learned() {
    let mut router = router();
    for sender in ["10.0.0.0", "10.0.0.255", "127.0.0.1", "224.0.0.5", "255.255.255.255", "0.0.0.9", "240.0.0.1"] {
        let request = frames::arp_request((HOST, sender.parse().unwrap()), Ipv4Addr::new(10, 0, 0, 1), None);
        router.receive(&punt(0, PuntCause::Arp, request), seconds(1));
        arp_reply(&mut router, 0, sender, HOST, seconds(1));
    }
    for sender in ["2001:db8::", "::1", "ff02::1"] {
        let request = frames::solicitation((HOST, sender.parse().unwrap()), "2001:db8::1".parse().unwrap(), None);
        router.receive(&punt(0, PuntCause::NeighbourDiscovery, request), seconds(1));
    }
    assert_eq!((router.neighbours_view(seconds(1)), router.take_output()), (vec![], vec![]));
    // A host that has no address yet is answered: the address is taken.
    let probe = frames::arp_request((HOST, Ipv4Addr::UNSPECIFIED), Ipv4Addr::new(10, 0, 0, 1), None);
    router.receive(&punt(0, PuntCause::Arp, probe), seconds(1));
    assert_eq!((router.neighbours_view(seconds(1)).len(), router.take_output().len()), (0, 1));
}

/// The answer of a virtual router has another source address than it names (RFC 5798 section 8.1.2).
#[test]
fn adjacency_in_a_vlan_has_the_port_of_the_answer_while_it_has_a_link() {
    let mut spec = fixture::two_ports();
    spec.interfaces[1].attachment = crate::route::Attachment::Vlan;
    spec.interfaces[1].ports = PortSet::first(4);
    let fibs: [Arc<dyn FibWriter>; 2] = [Arc::new(SoftFib::default()), Arc::new(SoftFib::default())];
    let mut router = Router::new(&spec, fibs, seconds(1));
    router.set_bridge_ports(|port| if port == 3 { 2 } else { port });
    let request = frames::arp_request((HOST, Ipv4Addr::new(10, 0, 1, 9)), Ipv4Addr::new(10, 0, 1, 1), None);
    for (port, expected) in [(1, 1), (3, 2)] {
        router.receive(&PuntFrame { vlan: 4093, ..punt(port, PuntCause::Arp, request.clone()) }, seconds(1));
        assert_eq!(updated(&mut router).adjacencies[0].answered_by, expected);
    }
    router.set_links(PortSet::first(2), seconds(2));
    assert_eq!(updated(&mut router).adjacencies[0].answered_by, 64, "its link is down");
}
