//! A routed fabric of four switches: two leaves, two spines, FRR at each, made by the users' own script.
//!
//! The commands of docs/linux.md are run here.

mod bfd;
mod fabric;
mod flows;
mod iperf;

use std::time::{Duration, Instant};

use self::fabric::{Fabric, machine_has_frr};
use self::flows::{Arrivals, EACH, FLOWS, Receiver, Sender};
use self::iperf::Streams;
use crate::process::wait_for;
use crate::quiet;

/// Addresses of the second host.
const V4: &str = "10.1.2.2";
const V6: &str = "fd00:1:2::2";
/// Time in which flows of a cut link have moved.
const SOON: Duration = Duration::from_secs(1);
/// Packets by which the path of a flow is found.
const PROBES: u32 = 10;
/// Longest time for routing protocols to find a fabric again, even on a machine that runs other work.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn fabric_carries_all_traffic_and_moves_only_the_flows_of_a_cut_link() {
    quiet::attempt(quiet::ALLOWED, cut_under_load);
}

fn cut_under_load() {
    if !machine_has_frr() {
        return;
    }
    let fabric = Fabric::start();
    for (host, address) in [("h1", V4), ("h1", V6), ("h2", "10.1.1.2"), ("h2", "fd00:1:1::2")] {
        fabric.ping(host, address);
    }
    fabric.script(&["exec", "h1", "ping", "-c", "3", V4]);
    let summary = fabric.script(&["vtysh", "leaf1", "-c", "show bgp summary"]);
    assert!(summary.contains("65200"), "{summary}");
    assert!(fabric.traceroute(V4).contains("10.255.0."), "a spine answers from its loopback");
    for address in [V4, V6] {
        let bits = fabric.iperf(address);
        assert!(bits > 1e6, "{bits} bit/s to {address}");
    }
    let mut sender = Sender::new(&fabric.host(1), V4, V6);
    let before = paths(&fabric, &mut sender);
    assert_both_links_carry_flows(&before);
    let streams = Streams::start(&fabric);
    let passage = send_through(&fabric, &mut sender, "cut");
    streams.assert_each_goes_on_after(passage.failure);
    let moved = paths(&fabric, &mut sender);
    assert!(moved.iter().all(|path| *path == 2), "{moved:?}");
    assert_only_flows_of_link_1_suffered(&before, &passage, SOON);
    fabric.script(&["join", "1", "1"]);
    fabric.wait_for_paths(2);
    bfd::wait_for_sessions(&fabric);
    bfd::assert_only_link_1_went_down(&fabric);
    assert_both_links_carry_flows(&paths(&fabric, &mut sender));
    let lost = fabric.lossless_drops("leaf2") + fabric.lossless_drops("spine2");
    assert_eq!(lost, 0.0, "frames of class 3 beside the cut: {}", fabric.drops());
    fabric.lose_pid("leaf1/bfdd");
    fabric.stop();
}

/// Both families use both links.
#[track_caller]
fn assert_both_links_carry_flows(paths: &[u8]) {
    for family in [&paths[..EACH], &paths[EACH..]] {
        assert!(family.contains(&1) && family.contains(&2), "{paths:?}");
    }
}

/// The fate of packets while the link from leaf 1 to spine 1 fails.
struct Passage {
    /// When the link had failed.
    failure: Instant,
    arrivals: Vec<Arrivals>,
    /// Sequence numbers before the first packet, and of the last one, by flow.
    numbers: Vec<(u32, u32)>,
}

/// Sends for a second, and lets the link from leaf 1 to spine 1 fail by an order of the script. It goes on until two
/// seconds after the next hops of the link have become unusable.
#[track_caller]
fn send_through(fabric: &Fabric, sender: &mut Sender, order: &str) -> Passage {
    let already: Vec<u32> = sender.sent().to_vec();
    let receiver = Receiver::start(&fabric.host(2));
    let start = Instant::now();
    let (mut failure, mut moved) = (None::<Instant>, None::<Instant>);
    sender.send_until(|| {
        match failure {
            None if start.elapsed() > SOON => {
                fabric.script(&[order, "1", "1"]);
                failure = Some(Instant::now());
            }
            Some(at) if moved.is_none() && !fabric.is_usable("leaf1", "u1") => {
                moved = Some(Instant::now());
                eprintln!("{order}: next hops of the link are unusable after {:?}", at.elapsed());
            }
            Some(at) => assert!(moved.is_some() || at.elapsed() < LONG, "{order}: next hops of the link are in use"),
            None => {}
        }
        moved.is_some_and(|moved| moved.elapsed() > 2 * SOON)
    });
    let numbers = already.into_iter().zip(sender.sent().iter().copied()).collect();
    Passage { failure: failure.expect("it failed"), arrivals: receiver.finish(), numbers }
}

/// Flows of the other link lose nothing. Those of the failed one go on in time, and none is reordered.
#[track_caller]
fn assert_only_flows_of_link_1_suffered(before: &[u8], passage: &Passage, in_time: Duration) {
    let mut longest = Duration::ZERO;
    for (flow, (seen, &(first, last))) in passage.arrivals.iter().zip(&passage.numbers).enumerate() {
        assert_eq!(seen.reordered, 0, "flow {flow}: {seen:?}");
        assert_eq!(seen.highest, last, "flow {flow} goes on: {seen:?}");
        if before[flow] == 2 {
            assert_eq!(seen.packets, last - first, "flow {flow} has another link: {seen:?}");
        } else {
            longest = longest.max(seen.gap);
        }
    }
    eprintln!("flows of the failed link paused for {longest:?} at most");
    if longest > in_time {
        quiet::too_busy(format!("flows of the failed link paused for {longest:?}"));
    }
}

/// Returns the uplink of leaf 1 that each flow takes, by the switch's own counters of class 3.
fn paths(fabric: &Fabric, sender: &mut Sender) -> Vec<u8> {
    let sent = |fabric: &Fabric| [1, 2].map(|uplink| fabric.class_3_sent("leaf1", &format!("u{uplink}")));
    let mut paths = Vec::new();
    for flow in 0..FLOWS {
        let before = sent(fabric);
        (0..PROBES).for_each(|_| sender.send(flow));
        let more = wait_for(&format!("frames of flow {flow}"), LONG, || {
            let more = [0, 1].map(|uplink| sent(fabric)[uplink] - before[uplink]);
            (more[0] + more[1] >= f64::from(PROBES)).then_some(more)
        });
        assert!(more.contains(&0.0), "flow {flow} takes one path: {more:?}");
        paths.push(if more[0] > 0.0 { 1 } else { 2 });
    }
    paths
}

#[test]
fn killed_daemons_and_switch_come_back_with_the_tables_of_the_kernel() {
    quiet::attempt(quiet::ALLOWED, kill_and_restart);
}

fn kill_and_restart() {
    if !machine_has_frr() {
        return;
    }
    let fabric = Fabric::start();
    fabric.wait_for_paths(2);
    // A network behind leaf 2, announced before each kill and withdrawn while the victim is dead, and the next one.
    let network = |number| format!("10.77.{number}.1/32");
    fabric.announce("leaf2", "add", &network(0));
    for (number, victim) in ["leaf1/zebra", "leaf1/bgpd", "leaf1", "spine1"].into_iter().enumerate() {
        let (old, new) = (network(number), network(number + 1));
        fabric.wait_for_route("leaf1", &old, 2);
        let start = Instant::now();
        if victim.contains('/') {
            // Until the tables are compared watchfrr must not restart the daemon.
            fabric.signal("leaf1/watchfrr", "STOP");
        }
        let dead = fabric.pid(victim);
        fabric.kill(victim);
        fabric.announce("leaf2", "del", &old);
        fabric.announce("leaf2", "add", &new);
        if victim == "leaf1/zebra" {
            // The kernel keeps the routes of a killed zebra, so two paths alone would prove nothing.
            let kept = (fabric.paths_to("leaf1", &old), fabric.paths_to("leaf1", &new));
            assert_eq!(kept, (2, 0), "paths to the withdrawn and to the new network");
        }
        match victim.split_once('/') {
            Some(_) => fabric.signal("leaf1/watchfrr", "CONT"),
            None => drop(fabric.script(&["start", victim])),
        }
        fabric.wait_for_route("leaf1", &new, 2);
        fabric.wait_for_route("leaf1", &old, 0);
        fabric.wait_for_paths(2);
        bfd::wait_for_sessions(&fabric);
        fabric.ping("h1", V4);
        fabric.ping("h1", V6);
        fabric.wait_for_another(victim, &dead);
        eprintln!("{victim}: both paths and equal, fresh tables {:?} after the kill", start.elapsed());
    }
    // A switch that is still ending: the script starts it when it has ended. So is a watchfrr that was killed.
    let before = fabric.pid("spine2");
    fabric.kill("spine2/watchfrr");
    fabric.signal("spine2", "TERM");
    fabric.script(&["start", "spine2"]);
    assert_ne!(fabric.pid("spine2"), before, "another process");
    let before = fabric.pid("spine2/bgpd");
    fabric.kill("spine2/bgpd");
    fabric.wait_for_another("spine2/bgpd", &before);
    fabric.wait_for_paths(2);
    fabric.stop();
}
