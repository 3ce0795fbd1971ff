//! Arbitrary text as a configuration never causes a panic.

use holdfast::config::Overrides;
use holdfast::pfc::PfcMode;
use holdfast::units::Bytes;
use proptest::prelude::*;

use super::*;

/// Words of valid configurations, and text that none of them has.
const PIECES: &[&str] = &[
    "preset",
    "roce",
    "ports",
    "buffer",
    "classes",
    "maps",
    "fdb",
    "lcores",
    "eal",
    "metrics",
    "faults",
    "allowed",
    "mirrors",
    "sflow",
    "copy",
    "dropped",
    "file",
    "collectors",
    "lose",
    "one_in",
    "flow",
    "api",
    "hosts",
    "name",
    "device",
    "ring",
    "net_tap0",
    "speed",
    "10G",
    "cable",
    "3m",
    "mtu",
    "1500",
    "vlan",
    "flows",
    "to",
    "h1",
    "p1",
    "static",
    "ecn",
    "tc_to_group",
    "tc_to_queue",
    "pfc_to_queue",
    "tc_to_dscp",
    "rewrite",
    "dscp",
    "pcp",
    "trust",
    "headroom",
    "policy",
    "shared-pool",
    "dynamic",
    "ratio",
    "2.5",
    "reserve",
    "queue_reserve",
    "telemetry",
    "queue_limit",
    "max_rate",
    "roce",
    "ack",
    "cnp",
    "burst",
    "routing",
    "interfaces",
    "addresses",
    "10.0.1.1/31",
    "routes",
    "0.0.0.0/0",
    "via",
    "10.0.1.0",
    "watchdog",
    "stuck_after",
    "detection",
    "200ms",
    "dataplane",
    "count",
    "lcore",
    "backlog_mark",
    "lossless",
    "true",
    "off",
    "null",
    "~",
    "-1",
    "99999999999999999999",
    "1e400",
    ".nan",
    "0x10",
    ": ",
    ":",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "? ",
    "| ",
    "> ",
    "\"",
    "'",
    "#",
    "---\n",
    "...\n",
    "%",
    "\t",
    "é",
    "\u{0}",
    "\u{feff}",
];

/// The keys that the examples do not have.
const EVERYTHING: &str = "\
preset: roce
ports:
  - {name: p1, device: net_tap0, speed: 10G, maps: {pcp: {0: 1}}, rewrite: [dscp, pcp], vlan: {tagged: [7]}, lcore: 1}
  - {name: p2, device: net_tap1, speed: 10G, pfc: asymmetric, pfc_proven: true, backlog_mark: 64, watchdog: off, stuck_after: off, trust: pcp, vlan: 9}
  - {name: p3, device: net_tap2, speed: 100M, pfc: off, max_rate: {4: off, 5: 10M}, reserve: {lossy: 1kB, lossless: 2kB}, watchdog: {action: alert}, lldp: on, storm_control: {unknown: 5kpps}, fdb_limit: 99}
  - {name: p4, device: net_tap3, speed: 10G}
storm_control: {broadcast: 1kpps, multicast: off}
loop_guard: alert
filter: {l4_length: true}
loop_probe: 5s
lldp: {name: tor1, interval: 5s}
lags: [{name: bond0, ports: [p3], lacp: passive, rate: slow, min_links: 1}]
lag_hash: {seed: 7, symmetric: true}
mirrors:
  - {name: losses, copy: [dropped, marked], reasons: [threshold, wred], ports: [p1], classes: [3], bytes: 256, rate: 50, to: {port: p4, trailer: false}}
  - {name: some, sample: 1000, to: {file: /var/log/some.pcapng, size: 1MiB, files: 3}}
sflow: {collectors: [10.0.0.9, \"[::1]:6344\"], agent: 10.0.0.1, sample: 4096, poll: 30s, drops: 10, marks: 20, bytes: 64}
buffer: {headroom: {policy: shared-pool, size: 1MiB}, small_packets: 25%, port_reserve: {lossy: 1kB}, shared: 2MiB, queue_policy: {policy: abm, interval: 5ms, congested: 30kB}}
classes: {4: {lossless: true, limit: 1MiB, max_rate: {rate: 50M, burst: 20kB}}, 0: {queue_limit: 1MiB, queue_reserve: 4kB}}
maps: {tc_to_group: {4: 3, 7: 6}, tc_to_queue: {4: 3, 7: 6}, pfc_to_queue: {4: 3}, tc_to_dscp: {3: 26}, tc_to_pcp: {3: 3}, roce: {ack: 6, cnp: off}}
watchdog: {detection: 1s, restoration: 100ms, action: forward}
stuck_after: 1s
faults: {seed: 3, list: [{lose: p1, chance: 1%, flow: {dscp: 26}}, {storm: p2, at: 1s, for: 1s}, {reorder: p1, behind: 2}]}
lcores: {count: 2, backlog_xoff: off}
routing:
  interfaces:
    - {vlan: 9, mac: 02:00:00:00:00:09, addresses: [10.10.0.1/24, \"fd00:10::1/64\"]}
    - {port: bond0, addresses: [10.0.1.1/31, \"fe80::1/64\"]}
  routes:
    - {to: 0.0.0.0/0, via: [10.0.1.0, {gateway: \"fe80::2\", port: bond0, weight: 2}]}
    - {to: 10.9.0.0/16, drop: true}
  neighbours: [{vlan: 9, address: 10.10.0.2, mac: 02:00:00:00:00:01}]
  hash: {seed: 7, symmetric: true}
  fib: {ipv4: 2048, ipv6: 1024}
";

/// A change to a text. Positions are fractions of the text in units of 2^-16.
#[derive(Debug, Clone)]
enum Mistake {
    Insert(u16, &'static str),
    Cut(u16, u16),
    Double(u16, u16),
}

fn mistakes() -> impl Strategy<Value = Vec<Mistake>> {
    let piece = prop::sample::select(PIECES);
    let one = prop_oneof![
        (any::<u16>(), piece).prop_map(|(at, piece)| Mistake::Insert(at, piece)),
        (any::<u16>(), 1_u16..30).prop_map(|(at, len)| Mistake::Cut(at, len)),
        (any::<u16>(), 1_u16..60).prop_map(|(at, len)| Mistake::Double(at, len)),
    ];
    prop::collection::vec(one, 1..6)
}

fn make(text: &mut Vec<char>, mistake: &Mistake) {
    let index = |at: u16, len: usize| (usize::from(at) * len) >> 16;
    match *mistake {
        Mistake::Insert(at, piece) => {
            let at = index(at, text.len() + 1);
            text.splice(at..at, piece.chars());
        }
        Mistake::Cut(at, len) => {
            let at = index(at, text.len() + 1);
            text.drain(at..(at + usize::from(len)).min(text.len()));
        }
        Mistake::Double(at, len) => {
            let at = index(at, text.len() + 1);
            let copy: Vec<char> = text[at..(at + usize::from(len)).min(text.len())].to_vec();
            text.splice(at..at, copy);
        }
    }
}

/// Asserts that `text` is a valid configuration, or an error with a place and a message. Repeats this with overrides.
fn judge(text: &str) {
    let some = Overrides {
        pfc: Some(PfcMode::Asymmetric),
        buffer: Some(Bytes(64 << 20)),
        headroom: Some(HeadroomPolicy::Dynamic),
        lcores: Some(text.len() as u8),
        simulated: text.len().is_multiple_of(2),
    };
    judge_with(&Overrides::default(), text);
    judge_with(&some, text);
}

fn judge_with(overrides: &Overrides, text: &str) {
    match overrides.parse("x.yaml", text) {
        Ok(config) => check_sums(&config),
        Err(errors) => {
            assert!(errors.iter().count() > 0);
            for error in errors.iter() {
                let place = error.place.expect("what was read has a place");
                assert!(place.line >= 1 && place.column >= 1, "{error}");
                assert!(!error.message.is_empty() && !error.message.contains('\n'), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn parse_never_panics_on_random_configuration_words(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        judge(&pieces.concat());
    }

    #[test]
    fn parse_never_panics_on_random_characters(text in "\\PC{0,200}") {
        judge(&text);
    }

    #[test]
    fn parse_never_panics_on_mutated_valid_configuration(file in 0_usize..5, mistakes in mistakes()) {
        let files = [
            include_str!("../../conf/incast.yaml"),
            include_str!("../../conf/tap-tor.yaml"),
            include_str!("../../conf/nic-tor.yaml"),
            include_str!("../../conf/replay-xoff.yaml"),
            EVERYTHING,
        ];
        let mut text: Vec<char> = files[file].chars().collect();
        mistakes.iter().for_each(|mistake| make(&mut text, mistake));
        judge(&text.iter().collect::<String>());
    }
}

#[test]
fn configuration_with_every_key_is_accepted() {
    check_sums(&accept(EVERYTHING));
}

#[test]
fn parse_never_panics_on_deep_nesting_or_alias_expansion() {
    // The stack of a main thread: calls that are not optimized need several times as much.
    let parser = std::thread::Builder::new().stack_size(8 << 20).spawn(judge_nested).expect("a thread");
    parser.join().expect("no panic");
}

fn judge_nested() {
    judge(&"[".repeat(500_000));
    judge(&"- ".repeat(200_000));
    judge(&"{a: ".repeat(100_000));
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        laughs += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 9].join(", "));
    }
    judge(&laughs);
}
