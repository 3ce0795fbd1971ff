//! A test for each defect of DPDK 22.11 that the module's front page lists.

use super::*;

#[test]
fn default_route_leaves_adjacent_prefixes_at_the_end_of_the_address_space() {
    let fib = fib("end", SMALL);
    let v4 = [("224.0.0.0/4", 5), ("240.0.0.0/4", 6), ("255.255.255.255/32", 7)];
    let v6 = [("fe00::/8", 5), ("ff00::/8", 6), ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 7)];
    set_all(&fib, &v4);
    set_all(&fib, &v6);
    let inner = [
        ("224.0.0.1", 5),
        ("240.0.0.1", 6),
        ("255.255.255.254", 6),
        ("255.255.255.255", 7),
        ("fe80::1", 5),
        ("ff02::1", 6),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 7),
    ];
    for default in [8, 9, 0] {
        if default == 0 {
            remove_all(&fib, &["0.0.0.0/0", "::/0"]);
        } else {
            set_all(&fib, &[("0.0.0.0/0", default), ("::/0", default)]);
        }
        expect(&fib, &inner);
        expect(&fib, &[("0.0.0.0", default), ("223.0.0.1", default), ("::", default), ("fdff::1", default)]);
    }
}

#[test]
fn halves_of_the_address_space_hide_the_default_route() {
    let fib = fib("halves", SMALL);
    let halves = [("0.0.0.0/1", 5), ("128.0.0.0/1", 6), ("::/1", 5), ("8000::/1", 6)];
    set_all(&fib, &halves);
    set_all(&fib, &[("0.0.0.0/0", 7), ("::/0", 7)]);
    expect(&fib, &[("1.1.1.1", 5), ("200.1.1.1", 6), ("1::", 5), ("ffff::", 6)]);
    remove_all(&fib, &halves.map(|(prefix, _)| prefix));
    expect(&fib, &[("1.1.1.1", 7), ("200.1.1.1", 7), ("1::", 7), ("ffff::", 7)]);
}

#[test]
fn default_route_is_written_over_the_first_addresses_only() {
    for inner in ["0.0.0.0/32", "0.0.0.0/25"] {
        let fib = fib("first", SMALL);
        set(&fib, inner, 5);
        set(&fib, "0.0.0.0/0", 7);
        expect(&fib, &[("0.0.0.0", 5), ("0.0.0.255", 7), ("0.0.1.1", 7), ("10.1.1.1", 7), ("255.255.255.255", 7)]);
        fib.remove(net("0.0.0.0/0"));
        expect(&fib, &[("0.0.0.0", 5), ("0.0.0.255", 0), ("0.0.1.1", 0), ("10.1.1.1", 0)]);
        // The guard of `V4` is a prefix that a route may have.
        set(&fib, "0.0.1.0/24", 8);
        set(&fib, "0.0.0.0/0", 9);
        fib.remove(net("0.0.0.0/0"));
        expect(&fib, &[("0.0.1.1", 8), ("0.0.2.1", 0)]);
        assert_eq!(fib.memory().ipv4_routes, 2);
    }
}

#[test]
fn hosts_with_the_group_of_their_parent_leak_no_reservation() {
    let fib = fib("parent", SMALL);
    set(&fib, "10.0.0.0/8", 5);
    set(&fib, "2001:db8::/32", 5);
    for _ in 0..5 {
        set(&fib, "10.1.1.1/32", 5);
        set(&fib, "2001:db8::1/128", 5);
        fib.remove(net("10.1.1.1/32"));
        fib.remove(net("2001:db8::1/128"));
    }
    set(&fib, "10.2.2.2/32", 6);
    set(&fib, "2001:db8::2/128", 6);
    expect(&fib, &[("10.1.1.1", 5), ("10.2.2.2", 6), ("2001:db8::1", 5), ("2001:db8::2", 6)]);
}

#[test]
fn prefixes_that_come_and_go_leak_no_tbl8() {
    let layout = Layout { routes: 100, tbl8s: 26 };
    let fib = RteFib::with_layout(eal(), "churn", layout, layout).unwrap();
    for round in 0..2_000_u32 {
        let (host4, host6) = (format!("10.{}.0.1/32", round % 200), format!("2001:db8:{:x}::1/128", round % 200));
        set(&fib, &host4, 5 + round % 3);
        set(&fib, &host6, 5 + round % 3);
        fib.remove(net(&host4));
        fib.remove(net(&host6));
    }
    assert_eq!(fib.write(|writers| (writers.v4.tbl8s(), writers.v6.tbl8s())), (0, 0));
}

/// DPDK takes no tbl8 for a host with the group of its parent. It must have one left when the group changes.
#[test]
fn change_of_a_group_finds_its_tbl8() {
    let layout = Layout { routes: 2000, tbl8s: 128 };
    let fib = RteFib::with_layout(eal(), "change", layout, layout).unwrap();
    set(&fib, "10.0.0.0/8", 5);
    set(&fib, "2001:db8::/32", 5);
    let mut hosts = Vec::new();
    for host in 0..1_000_u32 {
        let v4 = format!("10.{}.{}.1", host / 200, host % 200);
        let v6 = format!("2001:db8:{host:x}::1");
        for (host, length) in [(v4, 32), (v6, 128)] {
            if fib.set(net(&format!("{host}/{length}")), GroupId(5)).is_ok() {
                hosts.push((host, length));
            }
        }
    }
    assert_eq!(fib.memory().ipv4_routes, 1 + 128);
    for (host, length) in &hosts {
        set(&fib, &format!("{host}/{length}"), 6);
    }
    set(&fib, "10.0.0.0/8", 7);
    set(&fib, "2001:db8::/32", 7);
    hosts.iter().for_each(|(host, _)| assert_eq!(group(&fib, host), 6, "{host}"));
    expect(&fib, &[("10.0.0.2", 7), ("2001:db8::2", 7)]);
}
