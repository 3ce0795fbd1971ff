//! A routed fabric of four switches: two leaves, two spines, FRR at each, made by the users' own script.
//!
//! The commands of docs/linux.md are run here.

mod fabric;
mod flows;

use std::time::{Duration, Instant};

use self::fabric::{Fabric, machine_has_frr};
use self::flows::{Arrivals, EACH, FLOWS, Receiver, Sender};
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
    let (arrivals, sent) = send_through_a_cut(&fabric, &mut sender);
    let moved = paths(&fabric, &mut sender);
    assert!(moved.iter().all(|path| *path == 2), "{moved:?}");
    assert_only_cut_flows_suffered(&before, &arrivals, &sent);
    fabric.script(&["join", "1", "1"]);
    fabric.wait_for_paths(2);
    assert_both_links_carry_flows(&paths(&fabric, &mut sender));
    let lost = fabric.lossless_drops("leaf2") + fabric.lossless_drops("spine2");
    assert_eq!(lost, 0.0, "frames of class 3 beside the cut: {}", fabric.drops());
    fabric.stop();
}

/// Both families use both links.
#[track_caller]
fn assert_both_links_carry_flows(paths: &[u8]) {
    for family in [&paths[..EACH], &paths[EACH..]] {
        assert!(family.contains(&1) && family.contains(&2), "{paths:?}");
    }
}

/// Sends for a second, cuts the link from leaf 1 to spine 1, and goes on. Returns arrivals and packets sent.
fn send_through_a_cut(fabric: &Fabric, sender: &mut Sender) -> (Vec<Arrivals>, Vec<u32>) {
    let already: Vec<u32> = sender.sent().to_vec();
    let receiver = Receiver::start(&fabric.host(2));
    let start = Instant::now();
    let mut cut: Option<Instant> = None;
    let mut is_moved = false;
    sender.send_until(|| {
        match cut {
            None if start.elapsed() > SOON => {
                fabric.script(&["cut", "1", "1"]);
                cut = Some(Instant::now());
            }
            Some(at) if !is_moved && !fabric.is_usable("leaf1", "u1") => {
                is_moved = true;
                eprintln!("next hops of the cut link are unusable after {:?}", at.elapsed());
            }
            _ => {}
        }
        cut.is_some_and(|cut| cut.elapsed() > 3 * SOON)
    });
    assert!(is_moved, "the next hops of the cut link are unusable");
    let sent = sender.sent().iter().zip(already).map(|(sent, already)| sent - already).collect();
    (receiver.finish(), sent)
}

/// Flows of the other link lose nothing. Those of the cut one go on soon, and none is reordered.
fn assert_only_cut_flows_suffered(before: &[u8], arrivals: &[Arrivals], sent: &[u32]) {
    let mut longest = Duration::ZERO;
    for (flow, (seen, sent)) in arrivals.iter().zip(sent).enumerate() {
        assert_eq!(seen.reordered, 0, "flow {flow}: {seen:?}");
        let lost = sent - seen.packets;
        if before[flow] == 2 {
            assert_eq!(lost, 0, "flow {flow} has another link: {seen:?} of {sent}");
        } else {
            longest = longest.max(seen.gap);
            assert!(lost < sent / 2, "flow {flow} goes on: {seen:?} of {sent}");
        }
    }
    eprintln!("flows of the cut link paused for {longest:?} at most");
    if longest > SOON {
        quiet::too_busy(format!("flows of the cut link paused for {longest:?}"));
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
    for victim in ["leaf1/zebra", "leaf1/bgpd", "leaf1", "spine1"] {
        let start = Instant::now();
        fabric.kill(victim);
        fabric.script(&["start", victim.split('/').next().expect("a name")]);
        fabric.wait_for_paths(2);
        fabric.ping("h1", V4);
        fabric.ping("h1", V6);
        eprintln!("{victim}: both paths and equal tables {:?} after the kill", start.elapsed());
    }
    fabric.stop();
}
