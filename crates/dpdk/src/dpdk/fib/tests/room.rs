//! Refusals, and the memory that a table takes.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::*;
use crate::dpdk::tests::in_child;
use crate::sim::rng::Rng;

#[test]
fn prefix_beyond_the_size_is_refused() {
    let fib = fib("routes", FibSize { ipv4: 3, ipv6: 3 });
    for (prefixes, host) in [
        (["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8", "12.0.0.0/8"], "12.0.0.1"),
        (["2001::/16", "2001:db8::/32", "2002::/16", "2003::/16"], "2003::1"),
    ] {
        for (prefix, group) in prefixes.iter().zip(4..7) {
            set(&fib, prefix, group);
        }
        assert_eq!(fib.set(net(prefixes[3]), GroupId(7)), Err(FibFull(net(prefixes[3]))));
        assert_eq!(group(&fib, host), 0);
        // A full table takes another group for a prefix that it has, and a prefix in place of another.
        set(&fib, prefixes[0], 8);
        fib.remove(net(prefixes[1]));
        set(&fib, prefixes[3], 7);
        assert_eq!(group(&fib, host), 7);
    }
    let full = fib.set(net("13.0.0.0/8"), GroupId(7)).unwrap_err();
    assert_eq!(full.to_string(), "the forwarding table has no room for 13.0.0.0/8; raise `routing.fib`");
    assert_eq!((fib.memory().ipv4_routes, fib.memory().ipv6_routes), (3, 3));
}

#[test]
fn prefix_beyond_the_tbl8s_is_refused() {
    let layout = Layout { routes: 1000, tbl8s: 5 };
    let fib = RteFib::with_layout(eal(), "tbl8s", layout, layout).unwrap();
    set(&fib, "10.0.0.0/8", 4);
    set(&fib, "2001:db8::/32", 4);
    for subnet in 0..5 {
        set(&fib, &format!("10.1.{subnet}.128/25"), 5);
    }
    // Three tbl8s lead to a /48, and each further /40 takes one. The /32 shares the first.
    for subnet in [0, 1, 0x100, 0x200] {
        set(&fib, &format!("2001:db8:{subnet:x}::/48"), 5);
    }
    for refused in ["10.1.5.128/25", "10.2.0.1/32", "2001:db8:300::/48", "2001:db8::/56", "2001:db9::/40"] {
        assert_eq!(fib.set(net(refused), GroupId(6)), Err(FibFull(net(refused))));
    }
    expect(&fib, &[("10.1.5.200", 4), ("10.2.0.1", 4), ("2001:db8:300::", 4), ("2001:db8::1", 5), ("2001:db9::", 0)]);
    for taken in ["10.1.4.1/32", "10.3.0.0/16", "2001:db8:2ff::/48", "2001:db9::/32"] {
        set(&fib, taken, 7);
    }
    expect(&fib, &[("10.1.4.1", 7), ("10.1.4.200", 5), ("10.3.0.1", 7), ("2001:db8:2ff::", 7), ("2001:db9::", 7)]);
    fib.remove(net("10.1.0.128/25"));
    fib.remove(net("2001:db8:100::/48"));
    set(&fib, "10.1.5.128/25", 6);
    set(&fib, "2001:db8:300::/48", 6);
    expect(&fib, &[("10.1.5.200", 6), ("10.1.0.200", 4), ("2001:db8:300::", 6), ("2001:db8:100::", 4)]);
}

/// Returns the resident memory of the process in MiB.
fn resident_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() >> 10
}

/// Fills the table with prefixes of which none covers another. They need the most nodes of the RIB.
fn fill_with_disjoint(fib: &RteFib, size: FibSize) {
    for n in 0..size.ipv4 {
        fib.set(Ipv4Net::new_assert(Ipv4Addr::from_bits(0x0100_0000 + (n << 8)), 24).into(), GroupId(5)).unwrap();
    }
    for n in 0..u128::from(size.ipv6) {
        let address = Ipv6Addr::from_bits(0x2001_0db8 << 96 | n << 80);
        fib.set(Ipv6Net::new_assert(address, 48).into(), GroupId(5)).unwrap();
    }
}

/// Fills the table with a realistic mix.
fn fill_with_mix(fib: &RteFib, size: FibSize) {
    let mut rng = Rng::new(1, 0);
    let mut below = |bound| rng.below(bound);
    while fib.memory().ipv4_routes < size.ipv4 as usize {
        fib.set(mix::v4(&mut below).into(), GroupId(6)).unwrap();
    }
    while fib.memory().ipv6_routes < size.ipv6 as usize {
        fib.set(mix::v6(u64::from(size.ipv6 / 8), &mut below).into(), GroupId(6)).unwrap();
    }
}

/// Two tables of `size` are created and filled in the memory that `RteFib::mib` gives, and 16 MiB for EAL itself.
/// Creation leaves the tbl8s untouched.
fn two_tables_fit(size: FibSize) {
    let eal = eal_with(2 * RteFib::mib(size) + 16);
    let before = resident_mib();
    let [one, two] = ["one", "two"].map(|name| RteFib::create(&eal, name, size).unwrap());
    let untouched: u64 = Layout::of(size).iter().map(|layout| u64::from(layout.tbl8s) >> 10).sum();
    let (created, reserved) = (resident_mib() - before, one.memory().bytes >> 20);
    assert!(created <= 2 * (reserved - untouched), "{created} MiB of 2 * {reserved} MiB, {untouched} MiB of it unused");
    if size.ipv4 <= FibSize::default().ipv4 {
        fill_with_disjoint(&one, size);
    }
    fill_with_mix(&two, size);
    let [v4, v6] = Layout::of(size).map(|layout| layout.tbl8s as usize);
    let (used4, used6) = two.write(|writers| (writers.v4.tbl8s(), writers.v6.tbl8s()));
    println!("{size:?}: {used4} of {v4} and {used6} of {v6} tbl8s, {created} MiB touched");
    assert!(used4 * 10 <= v4 * 9 && used6 * 10 <= v6 * 9, "the mix leaves a tenth: {used4}/{v4}, {used6}/{v6}");
}

#[test]
fn small_tables_fit_their_memory() {
    if in_child("dpdk::fib::tests::room::small_tables_fit_their_memory", false) {
        two_tables_fit(FibSize { ipv4: 1000, ipv6: 500 });
    }
}

#[test]
fn tables_of_the_default_size_fit_their_memory() {
    if in_child("dpdk::fib::tests::room::tables_of_the_default_size_fit_their_memory", false) {
        two_tables_fit(FibSize::default());
    }
}

#[test]
fn large_tables_fit_their_memory() {
    if in_child("dpdk::fib::tests::room::large_tables_fit_their_memory", false) {
        two_tables_fit(FibSize { ipv4: 500_000, ipv6: 100_000 });
    }
}
