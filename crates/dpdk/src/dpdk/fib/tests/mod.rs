//! Tests of the forwarding table on a real DPDK.

mod defects;
mod mix;
mod oracle;
mod room;

use ipnet::IpNet;

use super::{Layout, RteFib};
use crate::dpdk::tests::eal;
use crate::dpdk::{Eal, EalOptions, Error, Memory};
use crate::route::{Fib, FibFull, FibSize, FibWriter, FoundGroup, GroupId, SoftFib};
use crate::sets::BURST;

/// A table for some thousand prefixes of each family.
const SMALL: FibSize = FibSize { ipv4: 4096, ipv6: 4096 };

fn fib(name: &str, size: FibSize) -> RteFib {
    RteFib::create(eal(), name, size).unwrap()
}

/// Starts DPDK with `mib` MiB, in a process of its own.
fn eal_with(mib: u32) -> Eal {
    Eal::init(&EalOptions { memory: Memory::NoHuge { mib }, ..EalOptions::default() }).unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn set(fib: &RteFib, prefix: &str, group: u32) {
    fib.set(net(prefix), GroupId(group)).unwrap();
}

fn set_all(fib: &RteFib, prefixes: &[(&str, u32)]) {
    prefixes.iter().for_each(|&(prefix, group)| set(fib, prefix, group));
}

fn remove_all(fib: &RteFib, prefixes: &[&str]) {
    prefixes.iter().for_each(|prefix| fib.remove(net(prefix)));
}

/// Returns the group of one address of either family.
fn group(fib: &dyn Fib, address: &str) -> u32 {
    let mut groups = [GroupId(u32::MAX).into()];
    match address.parse().unwrap() {
        std::net::IpAddr::V4(address) => fib.lookup_v4(&[address.to_bits()], &mut groups),
        std::net::IpAddr::V6(address) => fib.lookup_v6(&[address.octets()], &mut groups),
    }
    groups[0].id().0
}

/// Checks the groups of several addresses.
#[track_caller]
fn expect(fib: &dyn Fib, expected: &[(&str, u32)]) {
    for &(address, expected) in expected {
        assert_eq!(group(fib, address), expected, "{address}");
    }
}

#[test]
fn longest_prefix_wins_and_removal_uncovers_the_shorter() {
    let fib = fib("longest", SMALL);
    let v4 = [("0.0.0.0/0", 4), ("10.0.0.0/8", 5), ("10.1.0.0/16", 6), ("10.1.2.0/24", 7), ("10.1.2.3/32", 8)];
    let v6 = [("::/0", 14), ("2001:db8::/32", 15), ("2001:db8:1::/48", 16), ("2001:db8:1:2::/64", 17)];
    set_all(&fib, &v4);
    set_all(&fib, &v6);
    set(&fib, "2001:db8:1:2::3/128", 18);
    expect(&fib, &[("11.0.0.1", 4), ("10.2.0.1", 5), ("10.1.3.1", 6), ("10.1.2.4", 7), ("10.1.2.3", 8)]);
    expect(&fib, &[("2002::", 14), ("2001:db8:2::", 15), ("2001:db8:1:1::", 16), ("2001:db8:1:2::2", 17)]);
    expect(&fib, &[("2001:db8:1:2::3", 18)]);
    remove_all(&fib, &["10.1.0.0/16", "10.1.2.3/32", "2001:db8:1:2::/64", "2001:db8:1:2::3/128"]);
    expect(&fib, &[("10.1.3.1", 5), ("10.1.2.3", 7), ("2001:db8:1:2::2", 16), ("2001:db8:1:2::3", 16)]);
    remove_all(&fib, &["0.0.0.0/0", "::/0"]);
    expect(&fib, &[("11.0.0.1", 0), ("2002::", 0), ("10.1.2.3", 7), ("2001:db8::", 15)]);
    let memory = fib.memory();
    assert_eq!((memory.ipv4_routes, memory.ipv6_routes), (2, 2));
}

#[test]
fn set_replaces_the_group_and_ignores_host_bits() {
    let fib = fib("replace", SMALL);
    for group in [5, 6, 6, 7] {
        set(&fib, "10.1.2.3/24", group);
        set(&fib, "2001:db8::1/64", group);
        expect(&fib, &[("10.1.2.200", group), ("2001:db8::2", group), ("10.1.3.0", 0), ("2001:db8:0:1::", 0)]);
    }
    assert_eq!((fib.memory().ipv4_routes, fib.memory().ipv6_routes), (1, 1));
    fib.remove(net("10.1.2.99/24"));
    fib.remove(net("2001:db8::99/64"));
    expect(&fib, &[("10.1.2.3", 0), ("2001:db8::1", 0)]);
}

#[test]
fn removal_of_an_absent_prefix_changes_nothing() {
    let fib = fib("absent", SMALL);
    set(&fib, "10.1.2.0/24", 5);
    set(&fib, "2001:db8::/48", 5);
    for absent in ["0.0.0.0/0", "10.1.0.0/16", "10.1.2.0/25", "10.1.2.0/32", "::/0", "2001:db8::/32", "2001:db8::/49"] {
        fib.remove(net(absent));
    }
    expect(&fib, &[("10.1.2.0", 5), ("2001:db8::", 5)]);
    assert_eq!((fib.memory().ipv4_routes, fib.memory().ipv6_routes), (1, 1));
}

#[test]
fn lookup_handles_slices_longer_than_a_burst() {
    let fib = fib("bulk", SMALL);
    for subnet in 0..200 {
        set(&fib, &format!("10.0.{subnet}.0/24"), subnet + 4);
        set(&fib, &format!("2001:db8:{subnet:x}::/48"), subnet + 4);
    }
    let v4: Vec<u32> = (0..200).map(|subnet| 0x0a00_0001 + (subnet << 8)).collect();
    let v6: Vec<[u8; 16]> =
        (0..200_u8).map(|subnet| [0x20, 1, 0x0d, 0xb8, 0, subnet, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).collect();
    for count in [0, 1, BURST - 1, BURST, BURST + 1, 3 * BURST, 200] {
        // One more group than addresses: it stays.
        let expected: Vec<FoundGroup> = (4..count as u32 + 4).chain([99]).map(|id| GroupId(id).into()).collect();
        let mut groups = vec![GroupId(99).into(); count + 1];
        fib.lookup_v4(&v4[..count], &mut groups);
        assert_eq!(groups, expected);
        groups.fill(GroupId(99).into());
        fib.lookup_v6(&v6[..count], &mut groups);
        assert_eq!(groups, expected);
    }
}

#[test]
fn create_refuses_bad_names_and_sizes() {
    let refused = |name: &str, size| RteFib::create(eal(), name, size).err().unwrap();
    let first = fib("first", SMALL);
    let again = refused("first", SMALL).to_string();
    assert!(again.starts_with("a second forwarding table `first` of 4096 IPv4 and 4096 IPv6 prefixes"), "{again}");
    drop(first);
    for name in ["", "a name with spaces", "a-name-of-18-bytes", "a\0b"] {
        assert!(matches!(refused(name, SMALL), Error::Invalid { .. }), "{name}");
    }
    let large = refused("large", FibSize { ipv4: 4_194_305, ipv6: 1 });
    assert!(large.to_string().contains("at most 4194304 (`routing.fib`)"), "{large}");
    let memory = refused("memory", FibSize { ipv4: 4_000_000, ipv6: 1 });
    assert!(matches!(memory, Error::NoMemory { mib, .. } if mib > 1500), "{memory}");
    drop(fib("name-of-17-bytes-", FibSize { ipv4: 0, ipv6: 0 }));
}

#[test]
fn group_beyond_31_bits_is_refused() {
    let fib = fib("groups", SMALL);
    let largest = GroupId(i32::MAX as u32 - 1);
    for (prefix, address) in [("10.0.0.0/8", "10.0.0.0"), ("2001:db8::/32", "2001:db8::")] {
        for group in [largest.0 + 1, u32::MAX] {
            assert_eq!(fib.set(net(prefix), GroupId(group)), Err(FibFull(net(prefix))));
        }
        fib.set(net(prefix), largest).unwrap();
        assert_eq!(group(&fib, address), largest.0);
    }
}

#[test]
fn dropped_table_returns_its_memory() {
    // Each takes more than half of DPDK's memory.
    for round in 0..6 {
        let fib = fib("again", SMALL);
        for host in 0..4096 {
            fib.set(IpNet::new([10, 0, (host >> 8) as u8, host as u8].into(), 32).unwrap(), GroupId(round + 4))
                .unwrap();
        }
        expect(&fib, &[("10.0.15.255", round + 4), ("10.0.16.0", 0)]);
    }
}

/// Hosts and networks whose addresses differ in the last bytes only, as those of one interface do: they share tables.
#[test]
fn neighbouring_hosts_come_and_go_as_in_the_oracle() {
    let (fib, oracle) = (fib("near", SMALL), SoftFib::default());
    let v4 = (0..8)
        .map(|host| format!("10.48.3.{host}/32"))
        .chain(["10.48.3.0/24", "10.48.3.0/29", "10.0.0.0/8"].map(str::to_owned));
    let v6 = (0..8)
        .map(|host| format!("fd48:3::{host}/128"))
        .chain(["fd48:3::/64", "fd48:3::/124", "fd48::/16", "fe80::/10", "ff00::/8"].map(str::to_owned));
    let prefixes: Vec<IpNet> = v4.chain(v6).map(|text| net(&text)).collect();
    let addresses: Vec<String> = (0..10)
        .flat_map(|host| [format!("10.48.3.{host}"), format!("fd48:3::{host}"), format!("fd48:4::{host}")])
        .collect();
    let mut random = 1_u64;
    for step in 0..20_000 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let prefix = prefixes[(random >> 33) as usize % prefixes.len()];
        match random >> 60 {
            0..8 => {
                let group = GroupId(1 + (random >> 50 & 7) as u32);
                fib.set(prefix, group).unwrap();
                oracle.set(prefix, group).unwrap();
            }
            _ => {
                fib.remove(prefix);
                oracle.remove(prefix);
            }
        }
        for address in &addresses {
            assert_eq!(group(&fib, address), group(&oracle, address), "{address} after step {step}, {prefix}");
        }
    }
}
