//! Limits of stations.

use holdfast::config;
use holdfast::forward::{Fdb, FdbSpec, StaticEntry};
use holdfast::wire::MacAddr;

const PORTS: &str = "ports:
  - {name: a, device: net_null0, speed: 10G}
  - {name: b, device: net_null1, speed: 10G, fdb_limit: 40}
";

#[test]
fn port_overrides_the_limit_of_stations() {
    let limits = |more: &str| {
        let config = config::parse("x.yaml", &format!("{PORTS}{more}")).unwrap_or_else(|errors| panic!("{errors}"));
        config.switch.ports.iter().map(|port| port.fdb_limit).collect::<Vec<_>>()
    };
    assert_eq!(limits(""), [8192, 40], "half of the default capacity");
    assert_eq!(limits("fdb: {capacity: 1000}"), [500, 40]);
    assert_eq!(limits("fdb: {capacity: 100, limit: 100}"), [100, 40]);
}

#[test]
fn limit_over_the_capacity_is_refused_with_its_place() {
    for (more, words) in [
        (
            "fdb: {limit: 20000}",
            "x.yaml:4:14: fdb.limit: 20000 stations are over `fdb.capacity: 16384`; write 16384 or less",
        ),
        (
            "fdb: {capacity: 32}",
            "x.yaml:3:57: ports[1].fdb_limit: 40 stations are over `fdb.capacity: 32`; write 32 or less",
        ),
        (
            "fdb: {limit: 0}",
            "x.yaml:4:14: fdb.limit: `0` is not a count of stations; write a whole number from 1 to 1048576",
        ),
    ] {
        let errors = config::parse("x.yaml", &format!("{PORTS}{more}")).expect_err(more).to_string();
        assert!(errors.contains(words), "{more}: {errors}");
    }
}

#[test]
fn members_of_a_group_have_one_limit_of_stations() {
    let errors =
        config::parse("x.yaml", &format!("{PORTS}lags: [{{name: bond0, ports: [a, b]}}]\n")).expect_err("two limits");
    assert!(errors.to_string().contains("port `b` differs in `fdb_limit` from `a`"), "{errors}");
}

#[test]
fn seed_leaves_each_static_entry_a_place() {
    let mut spec = holdfast::config::embedded().switch;
    let entry = |number: u16| StaticEntry { vlan: 1, mac: MacAddr::local(7, number), port: 0 };
    spec.fdb = FdbSpec { capacity: 16, entries: (0..12).map(entry).collect(), ..spec.fdb };
    let fits = |seed: u64| Fdb::try_new(&FdbSpec { seed, ..spec.fdb.clone() }, 1).is_ok();
    let (good, bad): (Vec<u64>, Vec<u64>) = (1..500).partition(|seed| fits(*seed));
    assert!(!good.is_empty() && !bad.is_empty());
    let seeded = |seeds: &[u64]| {
        let mut spec = spec.clone();
        spec.seed_fdb(seeds.iter().copied());
        spec.fdb.seed
    };
    assert_eq!(seeded(&[&bad[..], &good[..]].concat()), good[0]);
    assert_eq!(seeded(&bad), 0);
}
