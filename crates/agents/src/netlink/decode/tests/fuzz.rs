//! Random and mutated messages: the decoder returns an error, the mirror stays within its limits, and neither panics.

use super::*;
use crate::netlink::frame::messages;
use crate::netlink::mirror::{Limits, Mirror, TableName};

/// Inputs of an ordinary run. `HOLDFAST_NETLINK_FUZZ` sets another number.
const INPUTS: u64 = 1_000_000;

/// The generator xorshift64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }
}

/// Valid messages of all types, with their header.
fn seeds() -> Vec<Vec<u8>> {
    let mut second = RouteNextHop::default();
    second.interface_index = 4;
    second.attributes = vec![RouteAttribute::Via(RouteVia::Inet6("fe80::2".parse().unwrap()))];
    let several = RouteAttribute::MultiPath(vec![second.clone(), second]);
    let mut link = LinkMessage::default();
    link.attributes = vec![LinkAttribute::IfName("eth0".to_owned()), LinkAttribute::Mtu(1500)];
    let mut own = AddressMessage::default();
    own.header.family = AddressFamily::Inet6;
    own.attributes = vec![AddressAttribute::Address("2001:db8::1".parse().unwrap())];
    let mut neighbour = NeighbourMessage::default();
    neighbour.header.family = AddressFamily::Inet;
    neighbour.attributes = vec![NeighbourAttribute::Destination(Ipv4Addr::LOCALHOST.into())];
    let gateway = RouteAttribute::Gateway(Ipv4Addr::new(10, 0, 0, 2).into());
    let encapsulation = RouteAttribute::EncapType(RouteLwEnCapType::Seg6);
    let contents = [
        (RTM_NEWLINK, bytes(&link)),
        (RTM_DELLINK, bytes(&link)),
        (RTM_NEWADDR, bytes(&own)),
        (RTM_DELADDR, bytes(&own)),
        (RTM_NEWNEIGH, bytes(&neighbour)),
        (RTM_DELNEIGH, bytes(&neighbour)),
        (RTM_NEWROUTE, bytes(&message(false, vec![gateway, RouteAttribute::Oif(2)]))),
        (RTM_NEWROUTE, bytes(&message(true, vec![several]))),
        (RTM_DELROUTE, bytes(&message(true, vec![encapsulation, RouteAttribute::NhId(3)]))),
        (RTM_NEWNEXTHOP, object(0, &[(1, &[1; 4]), (5, &[2; 4]), (6, &[10; 16])])),
        (RTM_NEWNEXTHOP, object(0, &[(1, &[1; 4]), (2, &[3; 32])])),
        (RTM_DELNEXTHOP, object(0, &[(1, &[1; 4])])),
    ];
    contents.into_iter().map(|(kind, content)| framed(kind, &content)).collect()
}

fn framed(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(16 + content.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(content);
    bytes
}

/// Changes bytes, inserts an attribute, cuts the end or joins two messages.
fn mutate(rng: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..=rng.below(4) {
        let place = rng.below(bytes.len());
        match rng.below(6) {
            0 => bytes[place] = rng.next().to_le_bytes()[0],
            1 => bytes[place] = bytes[place].wrapping_add(1),
            2 => bytes.truncate(place.max(1)),
            3 => bytes.extend(rng.next().to_le_bytes()),
            4 => {
                let value: Vec<u8> = (0..rng.below(24)).map(|_| rng.next().to_le_bytes()[0]).collect();
                bytes.extend(attribute(u16::try_from(rng.below(80)).unwrap(), &value));
            }
            _ => bytes.extend(seeds[rng.below(seeds.len())].clone()),
        }
    }
    // Most lengths are set right, so that the content is reached.
    if rng.below(8) != 0 && bytes.len() >= 16 {
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
    }
    bytes
}

fn inputs() -> u64 {
    std::env::var("HOLDFAST_NETLINK_FUZZ").map_or(INPUTS, |text| text.parse().expect("a number"))
}

/// Asserts that the mirror has at most as many entries and marks as its limits allow. A dump that a link ends may mark
/// more for a moment.
#[track_caller]
fn assert_bounded(mirror: &Mirror, limits: &Limits) {
    let sizes = mirror.sizes();
    let pairs = [
        (sizes.links, limits.links),
        (sizes.addresses, limits.addresses),
        (sizes.neighbours, limits.neighbours),
        (sizes.next_hops, limits.next_hops),
        (sizes.routes, limits.routes),
    ];
    assert!(pairs.iter().all(|(size, limit)| size <= limit), "{sizes:?}");
    let entries = limits.links + limits.addresses + limits.neighbours + limits.routes;
    assert!(mirror.marked() <= 4 * entries, "{} marked", mirror.marked());
}

/// The consumer takes nothing for long times.
#[test]
fn mirror_of_mutated_messages_stays_within_its_limits() {
    let limits = Limits { links: 8, addresses: 8, neighbours: 8, next_hops: 8, routes: 32 };
    let (mut rng, seeds, mut mirror) = (Rng(0x0dd0_5eed_cafe_f00d), seeds(), Mirror::new(limits));
    let (mut highest, mut taken) = (0, 0);
    for input in 0..inputs() / 4 {
        let datagram = mutate(&mut rng, &seeds);
        for message in messages(&datagram).map_while(Result::ok) {
            let event = match decode(message.kind, message.flags, message.payload) {
                Ok(Some(event)) => event,
                Ok(None) => continue,
                Err(_) => {
                    let table = TableName::ALL[rng.below(TableName::ALL.len())];
                    mirror.keep_undecoded(table, entry_key(message.kind, message.payload));
                    continue;
                }
            };
            if rng.below(3) == 0 {
                mirror.feed_dumped(event)
            } else {
                mirror.feed(event)
            }
            assert_bounded(&mirror, &limits);
        }
        let table = TableName::ALL[rng.below(TableName::ALL.len())];
        match rng.below(256) {
            0 => mirror.begin_dump(table),
            1 => drop(mirror.end_dump(table)),
            2 => mirror.cancel_dump(table),
            _ => {}
        }
        highest = highest.max(mirror.sizes().routes);
        if input % 4096 == 0 {
            taken += mirror.changes(rng.below(100)).len();
        }
    }
    assert_eq!(highest, limits.routes, "the inputs fill the table");
    assert!(taken > 100 && mirror.refused() > 1000, "{taken} changes, {} refused", mirror.refused());
}

#[test]
fn mutated_messages_never_panic() {
    let inputs = inputs();
    let (mut rng, seeds) = (Rng(0x9e37_79b9_7f4a_7c15), seeds());
    let (mut events, mut errors) = (0_u64, 0_u64);
    for _ in 0..inputs {
        for message in messages(&mutate(&mut rng, &seeds)) {
            match message.map(|message| decode(message.kind, message.flags, message.payload)) {
                Ok(Ok(Some(_))) => events += 1,
                Ok(Ok(None)) => {}
                Ok(Err(_)) | Err(_) => errors += 1,
            }
        }
    }
    assert!(events > inputs / 20 && errors > inputs / 20, "{events} events and {errors} errors of {inputs}");
}

#[test]
fn fuzz_seeds_are_decoded() {
    for seed in seeds() {
        let message = messages(&seed).next().unwrap().unwrap();
        assert!(decode(message.kind, message.flags, message.payload).is_ok(), "{message:?}");
    }
}
