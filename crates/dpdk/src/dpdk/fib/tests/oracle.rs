//! The table against the oracle, [`SoftFib`], after random updates.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use proptest::prelude::*;

use super::*;
use crate::dpdk::tests::in_child;
use crate::route::SoftFib;
use crate::sim::rng::Rng;

/// Operations of the long runs, unless `HOLDFAST_FIB_OPERATIONS` gives another number.
const OPERATIONS: u64 = 1_000_000;

/// Both tables, and the prefixes in them.
struct Pair {
    fib: RteFib,
    oracle: SoftFib,
    prefixes: Vec<IpNet>,
    refused: u64,
}

impl Pair {
    fn new(fib: RteFib) -> Self {
        Self { fib, oracle: SoftFib::default(), prefixes: Vec::new(), refused: 0 }
    }

    fn set(&mut self, prefix: IpNet, group: GroupId) {
        let before = self.oracle.memory();
        if self.fib.set(prefix, group).is_err() {
            self.refused += 1;
            return;
        }
        self.oracle.set(prefix, group).unwrap();
        if routes(before) != routes(self.oracle.memory()) {
            self.prefixes.push(prefix.trunc());
        }
    }

    fn remove(&mut self, prefix: IpNet) {
        self.fib.remove(prefix);
        self.oracle.remove(prefix);
    }

    /// Compares both at the edges of `prefix`: the addresses before, first, last and behind.
    #[track_caller]
    fn compare_edges(&self, prefix: &IpNet) {
        match prefix {
            IpNet::V4(prefix) => {
                let (first, last) = (prefix.network().to_bits(), prefix.broadcast().to_bits());
                self.compare_v4(&[first.wrapping_sub(1), first, last, last.wrapping_add(1)]);
            }
            IpNet::V6(prefix) => {
                let (first, last) = (prefix.network().to_bits(), prefix.broadcast().to_bits());
                self.compare_v6(&[first.wrapping_sub(1), first, last, last.wrapping_add(1)]);
            }
        }
    }

    #[track_caller]
    fn compare_v4<const N: usize>(&self, addresses: &[u32; N]) {
        let [mut found, mut expected] = [[GroupId(u32::MAX).into(); N]; 2];
        self.fib.lookup_v4(addresses, &mut found);
        self.oracle.lookup_v4(addresses, &mut expected);
        if let Some(at) = (0..N).find(|&at| found[at] != expected[at]) {
            panic!("{}: {:?}, not {:?}", Ipv4Addr::from_bits(addresses[at]), found[at].id(), expected[at].id());
        }
    }

    #[track_caller]
    fn compare_v6<const N: usize>(&self, addresses: &[u128; N]) {
        let octets = addresses.map(u128::to_be_bytes);
        let [mut found, mut expected] = [[GroupId(u32::MAX).into(); N]; 2];
        self.fib.lookup_v6(&octets, &mut found);
        self.oracle.lookup_v6(&octets, &mut expected);
        if let Some(at) = (0..N).find(|&at| found[at] != expected[at]) {
            panic!("{}: {:?}, not {:?}", Ipv6Addr::from_bits(addresses[at]), found[at].id(), expected[at].id());
        }
    }

    /// Compares the edges of all prefixes, then removes them and compares again.
    fn finish(mut self, rng: &mut Rng) {
        assert_eq!(routes(self.fib.memory()), routes(self.oracle.memory()));
        let prefixes = std::mem::take(&mut self.prefixes);
        prefixes.iter().for_each(|prefix| self.compare_edges(prefix));
        let random: Vec<[u32; 100]> = (0..1000).map(|_| std::array::from_fn(|_| rng.next() as u32)).collect();
        random.iter().for_each(|addresses| self.compare_v4(addresses));
        for &prefix in &prefixes {
            self.remove(prefix);
        }
        assert_eq!(routes(self.fib.memory()), (0, 0));
        random.iter().for_each(|addresses| self.compare_v4(addresses));
        prefixes.iter().for_each(|prefix| self.compare_edges(prefix));
        assert_eq!(self.fib.write(|writers| (writers.v4.tbl8s(), writers.v6.tbl8s())), (0, 0));
    }
}

fn routes(memory: crate::route::FibMemory) -> (usize, usize) {
    (memory.ipv4_routes, memory.ipv6_routes)
}

/// Draws a prefix of any length at an edge of the address space, or one that ends there.
fn edge(bits: u64, rng: &mut Rng) -> (u128, u8) {
    let length = rng.below(bits + 1) as u8;
    let near = u128::from(rng.below(3)) << (128 - bits);
    let address = match rng.below(4) {
        0 => near,
        1 => u128::MAX - near,
        2 => 1 << 127,
        _ => u128::MAX << (128 - rng.between(1, bits)),
    };
    (address, length)
}

/// A realistic IPv4 prefix in an eighth of the addresses, so that prefixes meet; sometimes one at an edge.
fn draw_v4(rng: &mut Rng) -> IpNet {
    if rng.chance(500) {
        let (address, length) = edge(32, rng);
        return Ipv4Net::new_assert(Ipv4Addr::from_bits((address >> 96) as u32), length).into();
    }
    let prefix = mix::v4(&mut |bound| rng.below(bound));
    Ipv4Net::new_assert(Ipv4Addr::from_bits(prefix.addr().to_bits() & 0xc7ff_ffff), prefix.prefix_len()).into()
}

/// A realistic IPv6 prefix of few providers; sometimes one at an edge.
fn draw_v6(rng: &mut Rng) -> IpNet {
    if rng.chance(10_000) {
        let (address, length) = edge(128, rng);
        return Ipv6Net::new_assert(Ipv6Addr::from_bits(address), length).into();
    }
    mix::v6(1000, &mut |bound| rng.below(bound)).into()
}

/// Sets, replaces and removes random prefixes: of a hundred operations 60, 10 and 30.
fn churn(pair: &mut Pair, operations: u64, rng: &mut Rng, draw: fn(&mut Rng) -> IpNet) {
    for operation in 0..operations {
        // Few groups, so that a prefix often has that of its parent.
        let group = GroupId(rng.below(8) as u32);
        let prefix = match rng.below(10) {
            0..6 => draw(rng),
            _ if pair.prefixes.is_empty() => continue,
            6 => *rng.pick(&pair.prefixes),
            _ => {
                let at = rng.below(pair.prefixes.len() as u64) as usize;
                let prefix = pair.prefixes.swap_remove(at);
                pair.remove(prefix);
                pair.compare_edges(&prefix);
                continue;
            }
        };
        pair.set(prefix, group);
        pair.compare_edges(&prefix);
        if operation % 64 == 0 && !pair.prefixes.is_empty() {
            pair.compare_edges(rng.pick(&pair.prefixes));
        }
    }
}

/// Returns the number of operations of a long run, of which the default is a share of [`OPERATIONS`].
fn operations(share: u64) -> u64 {
    let given = std::env::var("HOLDFAST_FIB_OPERATIONS").ok();
    given.map_or(OPERATIONS / share, |text| text.parse().expect("a number"))
}

fn run(name: &str, size: FibSize, operations: u64, draw: fn(&mut Rng) -> IpNet) {
    let eal = eal_with(RteFib::mib(size) + 16);
    let mut pair = Pair::new(RteFib::create(&eal, name, size).unwrap());
    let mut rng = Rng::new(1, 0);
    let start = std::time::Instant::now();
    churn(&mut pair, operations, &mut rng, draw);
    println!("{operations} operations in {:.1?}, {} prefixes at the end", start.elapsed(), pair.prefixes.len());
    assert_eq!(pair.refused, 0);
    pair.finish(&mut rng);
    println!("{:.1?} with the removal of all", start.elapsed());
}

/// A million operations; `HOLDFAST_FIB_OPERATIONS` gives another number.
#[test]
fn v4_table_equals_the_oracle_after_random_updates() {
    if in_child("dpdk::fib::tests::oracle::v4_table_equals_the_oracle_after_random_updates", false) {
        run("v4", FibSize { ipv4: 400_000, ipv6: 1 }, operations(1), draw_v4);
    }
}

/// 200,000 operations; `HOLDFAST_FIB_OPERATIONS` gives another number.
#[test]
fn v6_table_equals_the_oracle_after_random_updates() {
    if in_child("dpdk::fib::tests::oracle::v6_table_equals_the_oracle_after_random_updates", false) {
        run("v6", FibSize { ipv4: 1, ipv6: 100_000 }, operations(5), draw_v6);
    }
}

/// Tables that are full most of the time: refusals change nothing.
#[test]
fn full_table_equals_the_oracle_after_random_updates() {
    let mut rng = Rng::new(2, 0);
    for (layout, seed) in [(Layout { routes: 100, tbl8s: 1000 }, 3), (Layout { routes: 1000, tbl8s: 20 }, 4)] {
        for draw in [draw_v4, draw_v6] {
            let mut pair = Pair::new(RteFib::with_layout(eal(), &format!("full{seed}"), layout, layout).unwrap());
            churn(&mut pair, 10_000, &mut rng, draw);
            assert!(pair.refused > 1000, "{}", pair.refused);
            pair.finish(&mut rng);
        }
    }
}

/// An operation: a prefix as address and length, and its group; without one it is removed.
type Operation = (u128, u8, Option<u32>);

/// Few addresses, at edges of bytes and of the address space, so that prefixes nest and adjoin.
fn operation() -> impl Strategy<Value = Operation> {
    let byte = prop_oneof![Just(0_u8), Just(0xff), Just(0x80), Just(1), Just(0xfe), Just(0xf0)];
    let bytes = prop::collection::vec(byte, 4)
        .prop_map(|bytes| bytes.iter().rev().fold(u128::MAX, |rest, &byte| u128::from(byte) << 120 | rest >> 8));
    let last_but_one = (0..128_u32).prop_map(|bit| !(1 << bit));
    let address = prop_oneof![3 => bytes, 1 => Just(u128::MAX), 1 => last_but_one];
    // Short prefixes are rare, because DPDK writes up to 64 MiB for them.
    let length = prop_oneof![1 => 0..=6_u8, 9 => 7..=33_u8];
    (address, length, prop::option::weighted(0.7, 0..4_u32))
}

/// The prefix of an operation in the family of `bits` bits. IPv6 lengths reach beyond the bytes that are drawn.
fn prefix(address: u128, length: u8, is_v6: bool) -> IpNet {
    if is_v6 {
        let length = if length == 33 { 128 } else { length.min(32) + length / 4 };
        return Ipv6Net::new_assert(Ipv6Addr::from_bits(address), length).trunc().into();
    }
    Ipv4Net::new_assert(Ipv4Addr::from_bits((address >> 96) as u32), length.min(32)).trunc().into()
}

/// All sequences share a table, which is empty again after each, because its creation writes 128 MiB.
fn check_sequence(pair: &mut Pair, operations: &[Operation], is_v6: bool) {
    for &(address, length, group) in operations {
        let changed = prefix(address, length, is_v6);
        match group {
            Some(group) => pair.set(changed, GroupId(group)),
            None => pair.remove(changed),
        }
        for &(address, length, _) in operations {
            pair.compare_edges(&prefix(address, length, is_v6));
        }
    }
    for &(address, length, _) in operations {
        pair.remove(prefix(address, length, is_v6));
    }
    assert_eq!(routes(pair.fib.memory()), (0, 0));
}

#[test]
fn nested_and_adjacent_prefixes_equal_the_oracle() {
    let pair = std::cell::RefCell::new(Pair::new(fib("nested", SMALL)));
    proptest!(ProptestConfig::with_cases(400), |(operations in prop::collection::vec(operation(), 1..24), is_v6: bool)| {
        check_sequence(&mut pair.borrow_mut(), &operations, is_v6);
    });
}
