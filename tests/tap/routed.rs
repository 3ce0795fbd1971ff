//! A router between real Linux hosts: ARP and neighbour discovery, ping, time exceeded, path MTU, TCP, ECMP and reload.
//!
//! The commands of docs/routing.md are run here.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::capture::Capture;
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::Rig;

/// The configuration under test.
const TAP_ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/tap-router.yaml");

/// Addresses of the hosts in their networks, by host.
const V4: [&str; 4] = ["10.48.0.1", "10.48.0.2", "10.48.2.2", "10.48.3.2"];
const V6: [&str; 4] = ["fd48::1", "fd48::2", "fd48:2::2", "fd48:3::2"];
/// The address that both routed hosts have, behind the two ways of 10.99.0.0/16.
const ANYCAST: &str = "10.99.0.1";

/// Starts a router by `config`, and gives the hosts their networks and gateways.
#[track_caller]
fn start(config: &str) -> Rig {
    let rig = Rig::start(config, 4);
    for (number, host) in rig.hosts.iter().enumerate() {
        let run = |words: &str| host.inside.run(&words.split(' ').collect::<Vec<_>>());
        let (dev, gateways) =
            (&host.interface, [("10.48.0.254", "fd48::fe"), ("10.48.2.1", "fd48:2::1"), ("10.48.3.1", "fd48:3::1")]);
        let (v4, v6) = gateways[number.saturating_sub(1)];
        if number >= 2 {
            run(&format!("ip address flush dev {dev} scope global"));
            run(&format!("ip address add {}/24 dev {dev}", V4[number]));
            run(&format!("ip address add {}/64 dev {dev} nodad", V6[number]));
            run(&format!("ip address add {ANYCAST}/32 dev lo"));
        }
        run(&format!("ip route add default via {v4}"));
        run(&format!("ip -6 route add default via {v6}"));
    }
    rig
}

/// Returns the drops for `reason`, of all ports.
fn drops(rig: &Rig, reason: &str) -> f64 {
    rig.metrics().sum("holdfast_port_dropped_frames_total", &[("reason", reason)])
}

#[test]
fn hosts_of_different_networks_talk_through_the_router() {
    quiet::attempt(quiet::ALLOWED, hosts_talk);
}

fn hosts_talk() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = start(TAP_ROUTER);
    every_host_reaches_every_other(&rig);
    own_addresses_answer(&rig);
    expired_packets_are_answered(&rig);
    unreachable_packets_are_answered(&rig);
    tcp_crosses_the_router(&mut rig);
    let report = rig.stop();
    assert_eq!(report["verdict"]["outcome"], "kept_as_seen", "{}", report["verdict"]);
}

fn every_host_reaches_every_other(rig: &Rig) {
    for (from, host) in rig.hosts.iter().enumerate() {
        for to in (0..4).filter(|to| *to != from) {
            host.reach(V4[to], 3);
            host.reach(V6[to], 3);
        }
    }
}

/// The own address of the interface, and those behind other ports.
fn own_addresses_answer(rig: &Rig) {
    for address in ["10.48.0.254", "fd48::fe", "10.48.2.1", "fd48:3::1"] {
        let replies = rig.hosts[0].ping(address, 3);
        assert!(replies > 0, "no answer from {address}; {}", state(rig));
    }
}

/// Returns the neighbours of host 0 and the counters of the router, for a failure.
fn state(rig: &Rig) -> String {
    let neighbours = rig.hosts[0].inside.run(&["ip", "neigh"]);
    let metrics = rig.metrics();
    let counters = [
        "icmp_errors_sent_total",
        "echo_replies_sent_total",
        "injected_frames_total",
        "inject_dropped_frames_total",
        "unresolved_packets_total",
        "neighbour_flaps_total",
    ];
    let counters = counters.map(|name| format!("{name} {}", metrics.sum(&format!("holdfast_{name}"), &[])));
    let punted = ["icmp", "neighbour_discovery", "time_exceeded", "resolve", "local"].map(|cause| {
        let sum = |name| metrics.sum(name, &[("cause", cause)]);
        format!("{cause} {} policed {}", sum("holdfast_punted_frames_total"), sum("holdfast_punt_policed_frames_total"))
    });
    let states = ["reachable", "stale", "probing", "incomplete", "failed"]
        .map(|state| format!("{state} {}", metrics.sum("holdfast_neighbours", &[("state", state)])));
    format!("host 0 knows\n{neighbours}the router has {counters:?}, punted {punted:?}, neighbours {states:?}")
}

/// Returns the output of one ping with `options`, which may fail.
fn ping(rig: &Rig, host: usize, options: &str) -> String {
    let words: Vec<&str> = ["ping", "-n", "-c", "1", "-W", "2"].into_iter().chain(options.split(' ')).collect();
    rig.hosts[host].inside.try_run(&words).unwrap_or_else(|error| error)
}

fn expired_packets_are_answered(rig: &Rig) {
    for (options, own, words) in
        [("-t 1 10.48.2.2", "10.48.0.254", "Time to live exceeded"), ("-t 1 fd48:2::2", "fd48::fe", "Time exceeded")]
    {
        let said = ping(rig, 0, options);
        assert!(said.contains(own) && said.contains(words), "{said}; {}", state(rig));
    }
    let said = ping(rig, 0, "-t 2 10.48.2.2");
    assert!(said.contains("1 received") && said.contains("ttl=63"), "{said}");
}

fn unreachable_packets_are_answered(rig: &Rig) {
    let said = ping(rig, 2, "10.77.0.1");
    assert!(said.contains("10.48.2.1") && said.contains("Net Unreachable"), "{said}");
    // Host 250 does not exist: the router asks for it three times.
    let said = rig.hosts[0].inside.try_run(&["ping", "-n", "-c", "1", "-W", "8", "10.48.3.250"]);
    let said = said.unwrap_or_else(|error| error);
    assert!(said.contains("10.48.0.254") && said.contains("Host Unreachable"), "{said}");
    let said = ping(rig, 0, "10.66.0.1");
    assert!(said.contains("0 received") && !said.contains("From"), "a route that drops is silent: {said}");
    assert!(drops(rig, "blackhole") >= 1.0 && drops(rig, "no_route") >= 1.0);
}

fn tcp_crosses_the_router(rig: &mut Rig) {
    let server = {
        let mut command = rig.hosts[2].inside.command("iperf3");
        command.args(["-s", "--forceflush"]);
        crate::process::Process::spawn(command)
    };
    wait_for("iperf3 server", PATIENCE, || server.stdout().contains("Server listening").then_some(()));
    for address in [V4[2], V6[2]] {
        // The server serves one client at a time, and may not yet be done with the one before.
        let received = wait_for(&format!("a result of iperf3 to {address}"), PATIENCE, || {
            let said = rig.hosts[0].inside.try_run(&["iperf3", "-J", "-c", address, "-t", "1"]).ok()?;
            let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
            report["end"]["sum_received"]["bytes"].as_u64()
        });
        assert!(received > 100_000, "{address}: {received} bytes");
    }
    let metrics = rig.metrics();
    for reason in ["ipv4_checksum", "martian", "own_source", "ipv4_options", "not_routable"] {
        let dropped = metrics.sum("holdfast_port_dropped_frames_total", &[("reason", reason)]);
        assert_eq!(dropped, 0.0, "{reason}");
    }
}

/// Host 0 sends flows to an address behind both ways. Each flow takes one, and both are used.
#[test]
fn flows_spread_over_both_ways_and_each_keeps_its_own() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = start(TAP_ROUTER);
    let filter = "udp and dst host 10.99.0.1";
    wait_for("both next hops", PATIENCE, || {
        let usable = rig.metrics().labels_of_nonzero("holdfast_next_hop_usable", "address");
        [V4[2], V4[3]].iter().all(|address| usable.iter().any(|usable| usable == address)).then_some(())
    });
    let captures = [2, 3].map(|host| Capture::start(&rig.hosts[host], filter));
    for port in 0..32 {
        rig.hosts[0].inside.send_udp(49_152 + port, &format!("{ANYCAST}:4791"), 3);
    }
    let seen = captures.map(|capture| capture.stop().fields("udp", &["udp.srcport"]));
    let flows = |rows: &[Vec<String>]| {
        let mut ports: Vec<String> = rows.iter().map(|row| row[0].clone()).collect();
        ports.sort();
        ports.dedup();
        ports
    };
    let [one, other] = [flows(&seen[0]), flows(&seen[1])];
    assert_eq!((one.len() + other.len(), seen[0].len() + seen[1].len()), (32, 96), "{one:?} {other:?}");
    assert!(one.iter().all(|port| !other.contains(port)), "a flow took both ways: {one:?} {other:?}");
    assert!(one.len() >= 6 && other.len() >= 6, "{} and {} of 32", one.len(), other.len());
    rig.stop();
}

/// Routes come and go by reload while packets cross the router. None is lost.
#[test]
fn reload_changes_routes_without_a_lost_packet() {
    quiet::attempt(quiet::ALLOWED, reload_changes_routes);
}

fn reload_changes_routes() {
    if !machine_is_ready() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("router.yaml");
    let text = fs::read_to_string(TAP_ROUTER).expect("the configuration");
    fs::write(&file, &text).expect("a file");
    let mut rig = start(file.to_str().expect("a path"));
    rig.hosts[0].reach(V4[2], 1);
    let mut command = rig.hosts[0].inside.command("ping");
    command.args(["-n", "-q", "-i", "0.02", "-c", "200", V4[2]]);
    let pinging = crate::process::Process::spawn(command);
    for round in 0..3 {
        let more: String =
            (0..50).map(|n| format!("    - {{to: 10.{}.{n}.0/24, via: [10.48.3.2]}}\n", 100 + round)).collect();
        fs::write(&file, text.replace("  routes:\n", &format!("  routes:\n{more}"))).expect("a file");
        rig.switch().signal("HUP");
        sleep(Duration::from_millis(600));
    }
    let ended = pinging.wait(PATIENCE);
    if !ended.stdout.contains("200 packets transmitted, 200 received") {
        quiet::too_busy(format!("pings were lost or late: {}", ended.stdout));
    }
    let said = rig.switch().stderr();
    assert_eq!(said.matches("reload: applied").count(), 3, "{said}");
    // The last file has a route to 10.102.0.0/24, and none to 10.100.0.0/24.
    let gone = ping(&rig, 0, "10.100.7.1");
    assert!(gone.contains("Net Unreachable"), "{gone}");
    let answered = ping(&rig, 0, "10.102.7.1");
    assert!(!answered.contains("Net Unreachable"), "{answered}");
    rig.stop();
}
