//! The users' first configuration and script: four hosts communicate as over any switch.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::iperf::{self, Load, Servers};
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::{Host, Rig, TAP_TOR};

/// Three rounds in which each host has one partner. They cover all pairs in both directions.
const ROUNDS: [[(usize, usize); 4]; 3] =
    [[(0, 1), (1, 0), (2, 3), (3, 2)], [(0, 2), (2, 0), (1, 3), (3, 1)], [(0, 3), (3, 0), (1, 2), (2, 1)]];

/// Bits per second of a UDP flow. Four such flows at once are far below the capacity of taps on a small machine.
const UDP_RATE: u32 = 20_000_000;

/// Drop reasons that must not occur: lack of buffer, and frames that no Linux host should send.
const NEVER: [&str; 10] = [
    "headroom_full",
    "threshold",
    "pool_empty",
    "queue_threshold",
    "wred",
    "no_buffer",
    "oversize",
    "egress_mtu",
    "l4_truncated",
    "ipv4_malformed",
];

#[test]
fn four_hosts_talk_by_every_protocol_and_lose_nothing() {
    quiet::attempt(quiet::ALLOWED, four_hosts_talk);
}

fn four_hosts_talk() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::start(TAP_TOR, 4);
    everybody_pings_everybody(&rig);
    nothing_is_left_to_a_nic(&rig);
    let servers = Servers::start(&rig);
    tcp_moves_data(&rig);
    paced_udp_loses_nothing(&rig);
    drop(servers);

    let report = rig.stop();
    assert_eq!(report["verdict"]["outcome"], "kept_as_seen", "{}", report["verdict"]);
}

/// ARP and ND run first: afterwards each neighbour is known by its own MAC address.
fn everybody_pings_everybody(rig: &Rig) {
    for from in &rig.hosts {
        for to in rig.hosts.iter().filter(|to| to.interface != from.interface) {
            for address in [to.ipv4(), to.ipv6()] {
                from.reach(&address, 3);
                let neighbour = from.inside.run(&["ip", "neigh", "show", &address]);
                assert!(neighbour.contains(&format!("lladdr {}", to.mac())), "{address}: {neighbour}");
            }
        }
    }
}

/// Frames must be complete when they reach the switch: no checksum and no segmentation may be left to a NIC.
fn nothing_is_left_to_a_nic(rig: &Rig) {
    for host in &rig.hosts {
        let features = host.inside.run(&["ethtool", "-k", &host.interface]);
        for feature in ["tx-checksumming: off", "tcp-segmentation-offload: off", "tx-udp-segmentation: off"] {
            assert!(features.contains(feature), "{}: not {feature}: {features}", host.interface);
        }
    }
}

/// TCP sends at its own rate. It finds that rate by loss too, so this test does not check losses.
fn tcp_moves_data(rig: &Rig) {
    for pairs in ROUNDS {
        for (pair, end) in pairs.iter().zip(iperf::run(rig, &pairs, Load::Tcp, 1)) {
            let received = end["sum_received"]["bytes"].as_u64();
            assert!(received > Some(100_000), "{pair:?}: {received:?} bytes");
        }
    }
}

/// Asserts that no frame is lost, by the counters of the switch and of the taps.
fn paced_udp_loses_nothing(rig: &Rig) {
    // Frames in transit from the TCP test must arrive first.
    sleep(Duration::from_millis(200));
    let losses = || -> Vec<_> { rig.hosts.iter().flat_map(|host| host.losses()).collect() };
    let dropped = |metrics: &crate::metrics::Exposition| {
        NEVER.map(|reason| (reason, metrics.sum("holdfast_port_dropped_frames_total", &[("reason", reason)])))
    };
    let unreceived = |metrics: &crate::metrics::Exposition| -> Vec<u64> {
        let sent = |name, host: &Host| metrics.sum(name, &[("port", &host.interface)]) as u64;
        let of = |host| sent("holdfast_pfc_sent_frames_total", host) + sent("holdfast_lldp_sent_frames_total", host);
        rig.hosts.iter().map(of).collect()
    };
    let metrics = rig.metrics();
    let (unreceived_before, before, dropped_before) = (unreceived(&metrics), losses(), dropped(&metrics));
    let start = Instant::now();
    for pairs in ROUNDS {
        let overflows = || -> Vec<u64> { rig.hosts.iter().map(iperf::socket_overflows).collect() };
        let had = overflows();
        let ends = iperf::run(rig, &pairs, Load::Udp(UDP_RATE), 2);
        let have = overflows();
        for ((from, to), end) in pairs.iter().zip(ends) {
            let (sent, lost) = (&end["sum"]["packets"], &end["sum"]["lost_packets"]);
            let (sent, lost) = (sent.as_u64().expect("a count"), lost.as_u64().expect("a count"));
            // A seventh of the frames that 20 Mb/s of 1448 bytes make in two seconds. Lcores may use nearly all CPU
            // time.
            if sent <= 500 {
                quiet::too_busy(format!("{from} to {to}: only {sent} sent"));
            }
            let overflown = have[*to] - had[*to];
            assert!(lost <= overflown, "{from} to {to}: {lost} of {sent} lost, {overflown} by the receiver's socket");
        }
    }
    let after = losses();
    let metrics = rig.metrics();
    // The hosts' kernels drop PFC and LLDP frames and probes of loops, because no socket receives their types. A port
    // sends PFC when its lcore is late and finds a backlog. Probes are at least 800 ms apart.
    let probes = start.elapsed().as_millis() as u64 / 800 + 2;
    let told: Vec<u64> = unreceived(&metrics).iter().zip(&unreceived_before).map(|(now, then)| now - then).collect();
    for ((name, now), (_, then)) in after.iter().zip(&before) {
        let host = rig.hosts.iter().position(|host| *name == format!("{} rx dropped", host.interface));
        let most = host.map_or(0, |host| told[host] + probes);
        assert!(now - then <= most, "{name}: {} more, with {most} frames of the switch itself", now - then);
    }
    assert_eq!(dropped(&metrics), dropped_before);
    for counter in ["holdfast_device_receive_missed_frames_total", "holdfast_device_receive_no_buffer_frames_total"] {
        assert_eq!(metrics.sum(counter, &[]), 0.0, "{counter}");
    }
}
