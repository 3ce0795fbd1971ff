//! The life of a neighbour.

use proptest::prelude::*;

use super::*;

const KEY: Key = (0, IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const ARP: Message = Message { kind: MessageKind::Arp, mac: Some(MAC), port: Some(0) };

fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000)
}

fn tick(neighbours: &mut Neighbours, now: Nanos) -> Effect {
    let mut effect = Effect::default();
    neighbours.tick(now, &mut effect);
    effect
}

fn confirmed(neighbours: &mut Neighbours, now: Nanos) -> Effect {
    let mut effect = Effect::default();
    neighbours.hear(KEY, ARP, now, &mut effect);
    effect
}

#[test]
fn packets_wait_in_order_and_leave_with_the_answer() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    for number in 0..5 {
        neighbours.resolve(KEY, Unresolved { packet: Some(&[number]), port: 0 }, seconds(1), &mut effect);
    }
    assert_eq!(effect, Effect::default());
    assert_eq!(tick(&mut neighbours, seconds(1)).questions, [Question { key: KEY, mac: None }]);
    assert_eq!((neighbours.waiting(), neighbours.counts.unresolved_packets), (3, 2));
    let effect = confirmed(&mut neighbours, seconds(2));
    assert_eq!(effect.released, [0, 1, 2].map(|number| (KEY, vec![number])));
    assert!(effect.is_changed && effect.gained == [KEY] && neighbours.waiting() == 0);
    assert_eq!(neighbours.adjacency(KEY), Some(AdjacencyId(0)));
}

#[test]
fn neighbour_that_never_answers_fails_after_three_questions() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    neighbours.resolve(KEY, Unresolved { packet: Some(&[9]), port: 0 }, seconds(1), &mut effect);
    let mut asked = 0;
    for second in 1..=3 {
        asked += tick(&mut neighbours, seconds(second)).questions.len();
    }
    assert_eq!(asked, 3);
    let effect = tick(&mut neighbours, seconds(4));
    assert_eq!((effect.given_up, effect.questions.len()), (vec![(KEY, vec![9])], 0));
    assert_eq!(neighbours.get(KEY).unwrap().state, State::Failed);
    let mut effect = Effect::default();
    neighbours.resolve(KEY, Unresolved { packet: Some(&[1]), port: 0 }, seconds(5), &mut effect);
    assert_eq!((effect.given_up.len(), tick(&mut neighbours, seconds(5)).questions.len()), (1, 0));
    tick(&mut neighbours, seconds(9));
    assert!(!neighbours.is_known(KEY), "nothing needs it");
}

#[test]
fn confirmed_neighbour_is_asked_before_it_expires_and_stays_usable() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    let first = (1..60).find(|&second| !tick(&mut neighbours, seconds(second)).questions.is_empty()).unwrap();
    assert!((35..=46).contains(&first), "asked after {first} s");
    let neighbour = neighbours.get(KEY).unwrap();
    assert_eq!((neighbour.state, neighbour.adjacency.is_some()), (State::Probing, true));
    assert!(!confirmed(&mut neighbours, seconds(first + 1)).is_changed, "the answer changes nothing");
    assert_eq!(neighbours.get(KEY).unwrap().state, State::Reachable);
}

#[test]
fn silent_neighbour_is_lost_and_a_next_hop_is_asked_for_again() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    neighbours.hold(KEY, seconds(1), &mut Effect::default());
    let mut lost = None;
    for second in 2..60 {
        let effect = tick(&mut neighbours, seconds(second));
        if !effect.lost.is_empty() {
            lost = Some(second);
            break;
        }
    }
    assert!(lost.is_some_and(|second| second <= 49), "{lost:?}");
    assert_eq!((neighbours.adjacency(KEY), neighbours.counts.flaps), (None, 1));
    let again = tick(&mut neighbours, seconds(lost.unwrap() + 5));
    assert_eq!(again.questions, [Question { key: KEY, mac: None }]);
}

#[test]
fn other_mac_address_is_a_flap_and_keeps_the_adjacency() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    let mut effect = Effect::default();
    neighbours.hear(KEY, Message { mac: Some(MacAddr([2, 0, 0, 0, 0, 3])), ..ARP }, seconds(2), &mut effect);
    assert!(effect.is_changed && effect.gained.is_empty());
    assert_eq!((neighbours.adjacency(KEY), neighbours.counts.flaps), (Some(AdjacencyId(0)), 1));
}

#[test]
fn static_neighbour_ignores_messages_and_time() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    neighbours.set_static(KEY, MAC, seconds(1), &mut effect);
    neighbours.hear(KEY, Message { mac: Some(MacAddr([2, 0, 0, 0, 0, 9])), ..ARP }, seconds(2), &mut effect);
    assert_eq!(tick(&mut neighbours, seconds(900)), Effect::default());
    let neighbour = neighbours.get(KEY).unwrap();
    assert_eq!((neighbour.state, neighbour.mac), (State::Static, MAC));
    neighbours.unset_static(KEY, seconds(900));
    assert_eq!(tick(&mut neighbours, seconds(900)).questions.len(), 1);
}

/// Lets a packet wait, or be dropped.
fn resolve(neighbours: &mut Neighbours, packet: u8, now: Nanos) -> Effect {
    let mut effect = Effect::default();
    neighbours.resolve(KEY, Unresolved { packet: Some(&[packet]), port: 0 }, now, &mut effect);
    effect
}

fn static_neighbour() -> Neighbours {
    let mut neighbours = Neighbours::default();
    neighbours.set_static(KEY, MAC, seconds(1), &mut Effect::default());
    neighbours
}

#[test]
fn packets_to_a_silent_static_neighbour_are_dropped_after_three_questions() {
    let mut neighbours = static_neighbour();
    let question = Question { key: KEY, mac: Some(MAC) };
    assert_eq!(resolve(&mut neighbours, 1, seconds(2)).questions, [question]);
    assert_eq!(resolve(&mut neighbours, 2, seconds(2)).questions, [], "a question for each second");
    for second in [3, 4] {
        assert_eq!(tick(&mut neighbours, seconds(second)).questions, [question]);
        assert_eq!(neighbours.get(KEY).unwrap().state, State::Static);
    }
    let effect = tick(&mut neighbours, seconds(5));
    assert_eq!((effect.given_up, effect.questions), (vec![(KEY, vec![1]), (KEY, vec![2])], vec![]));
    let state = |neighbours: &Neighbours| neighbours.get(KEY).map(|one| (one.state, one.adjacency.is_some()));
    assert_eq!(state(&neighbours), Some((State::Silent, true)), "its frames would teach the port");
    let effect = resolve(&mut neighbours, 3, seconds(6));
    assert_eq!((effect.given_up, effect.questions), (vec![(KEY, vec![3])], vec![]));
    assert_eq!((neighbours.counts.unresolved_packets, neighbours.waiting()), (3, 0));
    assert_eq!(tick(&mut neighbours, seconds(900)), Effect::default(), "without packets no question");
    assert_eq!(resolve(&mut neighbours, 4, seconds(900)).questions, [question], "asked again");
    let effect = confirmed(&mut neighbours, seconds(901));
    assert_eq!((effect.released, state(&neighbours)), (vec![(KEY, vec![4])], Some((State::Static, true))));
    assert_eq!(tick(&mut neighbours, seconds(910)), Effect::default());
}

#[test]
fn static_neighbour_is_silent_no_longer_when_packets_reach_it() {
    let mut neighbours = static_neighbour();
    resolve(&mut neighbours, 1, seconds(2));
    (3..6).for_each(|second| _ = tick(&mut neighbours, seconds(second)));
    for (second, frames, state) in [(6, 7, State::Silent), (8, 7, State::Silent), (10, 8, State::Static)] {
        neighbours.note_traffic(seconds(second), |_| frames);
        assert_eq!(neighbours.get(KEY).unwrap().state, state, "{second} s");
    }
}

#[test]
fn packets_of_a_static_neighbour_do_not_leave_because_of_another_host() {
    let mut neighbours = static_neighbour();
    resolve(&mut neighbours, 1, seconds(2));
    let mut effect = Effect::default();
    neighbours.hear(KEY, Message { mac: Some(MacAddr([2, 0, 0, 0, 0, 9])), ..ARP }, seconds(2), &mut effect);
    assert_eq!((effect, neighbours.waiting()), (Effect::default(), 1));
}

#[test]
fn packets_of_a_static_neighbour_do_not_outlast_its_link() {
    let mut neighbours = static_neighbour();
    resolve(&mut neighbours, 1, seconds(2));
    neighbours.interface_down(0, seconds(3), &mut Effect::default());
    assert_eq!((neighbours.waiting(), neighbours.counts.unresolved_packets), (0, 1));
    assert_eq!(tick(&mut neighbours, seconds(4)), Effect::default());
}

#[test]
fn doubted_neighbour_without_a_port_is_asked_at_once() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    let kind = MessageKind::Advertisement(messages::Flags { is_solicited: false, is_override: false });
    let message = Message { kind, mac: Some(MacAddr([2, 0, 0, 0, 0, 9])), port: Some(0) };
    neighbours.hear(KEY, message, seconds(2), &mut Effect::default());
    assert_eq!(neighbours.get(KEY).unwrap().state, State::Stale);
    resolve(&mut neighbours, 1, seconds(2));
    assert_eq!(tick(&mut neighbours, seconds(2)).questions.len(), 1);
}

#[test]
fn neighbour_without_a_port_is_asked_although_its_port_asks_for_too_many() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    for host in 0..2 * QUESTIONS as u16 {
        let key = (0, std::net::Ipv4Addr::from_bits(0x0a01_0000 + u32::from(host)).into());
        neighbours.resolve(key, Unresolved { packet: None, port: 0 }, seconds(2), &mut Effect::default());
    }
    tick(&mut neighbours, seconds(2));
    resolve(&mut neighbours, 1, seconds(2));
    let asked = tick(&mut neighbours, seconds(2)).questions;
    assert_eq!(asked.first(), Some(&Question { key: KEY, mac: Some(MAC) }));
}

#[test]
fn link_that_goes_down_forgets_its_neighbours() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    let mut effect = Effect::default();
    neighbours.interface_down(1, seconds(2), &mut effect);
    assert_eq!(effect, Effect::default());
    neighbours.interface_down(0, seconds(2), &mut effect);
    assert!(effect.lost == [KEY] && !neighbours.is_known(KEY));
    confirmed(&mut neighbours, seconds(3));
    assert_eq!(neighbours.adjacency(KEY), Some(AdjacencyId(0)), "the number is used again");
}

/// Entries of each port and kind, counted in the table itself.
fn counted(neighbours: &Neighbours) -> BTreeMap<(u8, Kind), usize> {
    let mut counts = BTreeMap::new();
    for (key, neighbour) in neighbours.iter() {
        if let Some(rank) = neighbour.rank(key) {
            *counts.entry((rank.payer, Kind::of(key.1))).or_default() += 1;
        }
    }
    counts
}

/// Checks that the indices have what the table has, and that no share exceeds its bound.
#[track_caller]
fn assert_consistent(neighbours: &Neighbours, limit: usize) {
    let counts = counted(neighbours);
    for port in 0..=NO_PORT {
        let here = counts.iter().filter(|((payer, _), _)| *payer == port).map(|(_, count)| count);
        assert_eq!(neighbours.share(port).entries, here.sum::<usize>());
    }
    for kind in [Kind::V4, Kind::V6] {
        let of_kind = || counts.iter().filter(|((_, of), _)| *of == kind).map(|(_, count)| *count);
        assert!(of_kind().all(|count| count <= limit.div_ceil(2)) && of_kind().sum::<usize>() <= limit, "{counts:?}");
    }
    let due: BTreeSet<_> = neighbours.iter().filter_map(|(key, one)| Some((one.wakes()?, key))).collect();
    assert_eq!(neighbours.due, due);
    let usable = neighbours.iter().filter_map(|(key, one)| Some((key, one.adjacency?)));
    let held = neighbours.uses.iter().enumerate().filter_map(|(id, one)| Some((one.as_ref()?.key, id as u16)));
    let sorted: BTreeSet<_> = held.collect();
    assert_eq!(usable.map(|(key, id)| (key, id.0)).collect::<BTreeSet<_>>(), sorted);
    assert_eq!(neighbours.iter().map(|(_, one)| one.waiting.len()).sum::<usize>(), neighbours.waiting());
    assert_eq!(neighbours.waiting_at.iter().sum::<usize>(), neighbours.waiting());
}

const LIMIT: usize = 12;

/// Does one of the things that can happen to neighbours.
fn operate(neighbours: &mut Neighbours, operation: (u8, u8, u8), now: Nanos) -> Effect {
    let (what, host, port) = operation;
    let mut effect = Effect::default();
    let address = if host % 2 == 0 {
        IpAddr::from([10, 0, 0, host])
    } else {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)])
    };
    let (key, mac) = ((u16::from(host % 3), address), MacAddr([2, 0, 0, 0, port % 2, host]));
    let message = |kind| Message { kind, mac: Some(mac), port: (port < 4).then_some(port) };
    match what {
        0..4 => neighbours.hear(key, message(MessageKind::Arp), now, &mut effect),
        4..8 => neighbours.hear(key, message(MessageKind::Solicitation), now, &mut effect),
        8..12 => {
            let sent_at = now.0.to_be_bytes();
            neighbours.resolve(key, Unresolved { packet: Some(&sent_at), port }, now, &mut effect);
        }
        12 => neighbours.hold(key, now, &mut effect),
        13 => neighbours.unhold(key),
        14 => neighbours.set_static(key, mac, now, &mut effect),
        15 => neighbours.unset_static(key, now),
        16 => neighbours.interface_down(key.0, now, &mut effect),
        17 => neighbours.ports_down(crate::sets::PortSet::only(port.into()), now, &mut effect),
        18 => neighbours.note_traffic(now, |id| u64::from(id.0 % 3) * now.0),
        _ => {
            let flags = messages::Flags { is_solicited: port % 2 == 0, is_override: host % 4 < 2 };
            neighbours.hear(key, message(MessageKind::Advertisement(flags)), now, &mut effect);
        }
    }
    effect
}

proptest! {
    /// Few hosts, ports and interfaces, so that shares fill and entries change hands. No packet waits for longer than
    /// the questions take, and each leaves or is counted.
    #[test]
    fn indices_and_shares_are_right_after_any_operations(
        operations in prop::collection::vec((0_u8..22, 0_u8..60, 0_u8..6, 0_u64..3_000), 1..150),
    ) {
        let mut neighbours = Neighbours::default();
        neighbours.set_limits([LIMIT; 2]);
        let (mut now, mut fixed) = (seconds(1), BTreeMap::new());
        let (mut packets, mut released) = (0, 0);
        for (what, host, port, step) in operations {
            now = Nanos(now.0 + step * 1_000_000);
            let effect = operate(&mut neighbours, (what, host, port), now);
            for key in effect.lost.iter().filter(|key| fixed.contains_key(*key)) {
                prop_assert!(what == 16, "{key:?} gave way");
            }
            packets += usize::from((8..12).contains(&what));
            released += effect.released.len() + tick(&mut neighbours, now).released.len();
            assert_consistent(&neighbours, LIMIT);
            let dropped = neighbours.counts.unresolved_packets as usize;
            prop_assert_eq!(packets, released + dropped + neighbours.waiting());
            for packet in neighbours.iter().flat_map(|(_, one)| &one.waiting) {
                let sent_at = u64::from_be_bytes(packet[..].try_into().unwrap());
                prop_assert!(now.0 < sent_at + WAIT.0, "{:?} since {sent_at}", now);
            }
            let is_fixed = |one: &Neighbour| one.state.is_static() || one.uses > 0;
            // One that a route or the configuration no longer needs may give way.
            let is_freed = matches!(what, 13 | 15);
            prop_assert!(is_freed || fixed.keys().all(|key| neighbours.is_known(*key)));
            fixed = neighbours.iter().filter(|(_, one)| is_fixed(one)).map(|(key, one)| (key, one.state)).collect();
        }
    }
}

/// A neighbour at `port` whose number is `host`.
fn numbered(host: u16, port: u8) -> (Key, Message) {
    let [high, low] = host.to_be_bytes();
    let mac = MacAddr([2, 0, 0, port, high, low]);
    ((u16::from(port), IpAddr::from([10, port, high, low])), Message { mac: Some(mac), port: Some(port), ..ARP })
}

#[test]
fn full_share_takes_the_oldest_that_no_packet_uses() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    neighbours.set_limits([8, 8]);
    let hosts: Vec<_> = (0..6).map(|host| numbered(host, 1)).collect();
    for (&(key, message), second) in hosts.iter().zip(1..).take(4) {
        neighbours.hear(key, message, seconds(second), &mut effect);
    }
    neighbours.note_traffic(seconds(10), |_| 0);
    // Packets use the two oldest.
    neighbours.note_traffic(seconds(11), |id| u64::from(id.0 < 2));
    assert_eq!(effect.lost, []);
    for &(key, message) in &hosts[4..] {
        neighbours.hear(key, message, seconds(12), &mut effect);
    }
    assert_eq!(effect.lost, [hosts[2].0, hosts[3].0]);
    assert_eq!(neighbours.share(1), PortShare { entries: 4, evicted: 2 });
}

#[test]
fn port_with_most_entries_gives_way_to_others() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    neighbours.set_limits([8, 8]);
    let entries = [(1, 0..4_u16), (2, 0..3), (3, 0..4)];
    for (port, hosts) in entries {
        for (key, message) in hosts.map(|host| numbered(host, port)) {
            neighbours.hear(key, message, seconds(1), &mut effect);
        }
    }
    let shares = [1, 2, 3].map(|port| neighbours.share(port).entries);
    assert_eq!((shares, shares.iter().sum::<usize>()), ([3, 2, 3], 8), "{effect:?}");
}

#[test]
fn neighbour_that_packets_use_is_asked_before_others() {
    let mut neighbours = Neighbours::default();
    let mut effect = Effect::default();
    for host in 0..700 {
        let (key, message) = numbered(host, 1);
        neighbours.hear(key, message, seconds(1), &mut effect);
    }
    neighbours.note_traffic(seconds(2), |_| 0);
    neighbours.note_traffic(seconds(3), |id| u64::from(id.0 == 699));
    let asked = tick(&mut neighbours, seconds(50)).questions;
    assert_eq!((asked[0].key, asked.len()), (numbered(699, 1).0, 1 + QUESTIONS as usize / 2));
}

#[test]
fn advertisement_without_override_does_not_replace_an_address() {
    let mut neighbours = Neighbours::default();
    let key = (0, "2001:db8::2".parse().unwrap());
    neighbours.hear(key, ARP, seconds(1), &mut Effect::default());
    let other = MacAddr([2, 0, 0, 0, 0, 3]);
    let advertise = |neighbours: &mut Neighbours, is_override| {
        let kind = MessageKind::Advertisement(messages::Flags { is_solicited: false, is_override });
        let message = Message { kind, mac: Some(other), port: Some(1) };
        neighbours.hear(key, message, seconds(2), &mut Effect::default());
        let neighbour = neighbours.get(key).unwrap();
        (neighbour.state, neighbour.mac, neighbour.port)
    };
    assert_eq!(advertise(&mut neighbours, false), (State::Stale, MAC, Some(0)));
    assert_eq!(tick(&mut neighbours, seconds(6)).questions, [], "packets use it for five seconds more");
    assert_eq!(tick(&mut neighbours, seconds(7)).questions, [Question { key, mac: Some(MAC) }]);
    assert_eq!(advertise(&mut neighbours, true), (State::Stale, other, Some(1)));
}

#[test]
fn port_of_a_neighbour_is_that_of_its_last_message_until_its_link_goes_down() {
    let mut neighbours = Neighbours::default();
    let port = |neighbours: &Neighbours| neighbours.get(KEY).unwrap().port;
    confirmed(&mut neighbours, seconds(1));
    assert_eq!(port(&neighbours), Some(0));
    let mut effect = Effect::default();
    neighbours.hear(KEY, Message { port: Some(5), ..ARP }, seconds(2), &mut effect);
    assert_eq!((port(&neighbours), effect.is_changed), (Some(5), true));
    neighbours.ports_down([3, 5].into_iter().collect(), seconds(3), &mut effect);
    assert_eq!(port(&neighbours), None);
    assert_eq!(neighbours.get(KEY).unwrap().state, State::Probing, "it may be elsewhere, or gone");
    assert_eq!(tick(&mut neighbours, seconds(3)).questions, [Question { key: KEY, mac: Some(MAC) }]);
}

/// RFC 4861 section 7.2.3: packets use the neighbour at once, and only its answer makes it reachable.
#[test]
fn solicitor_is_usable_and_stale_until_it_answers() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    let solicitation = Message { kind: MessageKind::Solicitation, ..ARP };
    let is = |neighbours: &Neighbours| {
        let neighbour = neighbours.get(KEY).unwrap();
        (neighbour.state, neighbour.adjacency.is_some(), neighbour.confirmed)
    };
    neighbours.resolve(KEY, Unresolved { packet: Some(&[7]), port: 0 }, seconds(1), &mut effect);
    neighbours.hear(KEY, solicitation, seconds(1), &mut effect);
    assert_eq!((is(&neighbours), effect.gained), ((State::Stale, true, Nanos(0)), vec![KEY]));
    assert_eq!(effect.released, [(KEY, vec![7])], "the packet that waited");
    // Further solicitations do not put off the question.
    neighbours.hear(KEY, solicitation, seconds(5), &mut Effect::default());
    assert_eq!(tick(&mut neighbours, seconds(5)).questions, []);
    assert_eq!(tick(&mut neighbours, seconds(6)).questions, [Question { key: KEY, mac: Some(MAC) }]);
    neighbours.hear(KEY, solicitation, seconds(6), &mut Effect::default());
    assert_eq!(is(&neighbours), (State::Probing, true, Nanos(0)), "a question is no answer");
    let answer = messages::Flags { is_solicited: true, is_override: false };
    let answer = Message { kind: MessageKind::Advertisement(answer), mac: None, port: Some(0) };
    neighbours.hear(KEY, answer, seconds(7), &mut Effect::default());
    assert_eq!(is(&neighbours), (State::Reachable, true, seconds(7)));
    neighbours.hear(KEY, solicitation, seconds(8), &mut Effect::default());
    assert_eq!(is(&neighbours), (State::Reachable, true, seconds(7)), "its own address changes nothing");
}

#[test]
fn solicitor_that_never_answers_is_lost_after_delay_and_questions() {
    let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
    neighbours.hear(KEY, Message { kind: MessageKind::Solicitation, ..ARP }, seconds(1), &mut effect);
    let lost = (1..60).find(|&second| !tick(&mut neighbours, seconds(second)).lost.is_empty());
    assert_eq!(lost, Some(9), "5 s and three questions of a second each");
}

/// The forwarding database has lost a neighbour that packets wait for; its question shows the port as an answer does.
#[test]
fn packet_that_waits_for_a_known_neighbour_leaves_with_its_solicitation() {
    let mut neighbours = Neighbours::default();
    confirmed(&mut neighbours, seconds(1));
    let mut effect = Effect::default();
    neighbours.resolve(KEY, Unresolved { packet: Some(&[7]), port: 0 }, seconds(2), &mut effect);
    assert_eq!((effect.released.len(), neighbours.waiting()), (0, 1));
    neighbours.hear(KEY, Message { kind: MessageKind::Solicitation, port: Some(3), ..ARP }, seconds(2), &mut effect);
    assert_eq!((effect.released, neighbours.get(KEY).unwrap().port), (vec![(KEY, vec![7])], Some(3)));
}
