//! The bonding driver of Linux in mode 802.3ad: two guests with two network cards each lose a link and get it back.
//!
//! docs/lag.md has the commands for the guests, which are run here.

use serde_json::Value;

use crate::guest::{Guest, PATIENCE, Starting};
use crate::image::Image;
use crate::lab::Switch;
use crate::process::wait_for;
use crate::ready::machine_is_ready;

/// Streams of iperf3, and seconds for which they send.
const STREAMS: usize = 6;
const SECONDS: usize = 24;
/// TCP port of the server.
const PORT: u16 = 5201;

/// Sockets of a guest's cards.
fn sockets(number: usize) -> [String; 2] {
    [0, 1].map(|card| format!("vm{number}-{card}"))
}

/// Class 3 is lossless; a guest has one queue, which the switch leaves alone to stop it.
fn configuration(directory: &std::path::Path) -> String {
    let mut text = "preset: roce
buffer: {size: 1MiB}
stuck_after: 30s
classes:
  3: {limit: 40kB, headroom: 40kB}
lcores: {poll_gap: 10ms, idle: {wait: sleep, after: 50us, longest: 500us, wake: 8ms, lossless: true}}
ports:
"
    .to_owned();
    for (port, socket) in (1..=2).flat_map(sockets).enumerate() {
        let path = directory.join(socket);
        text += &format!("  - {{name: p{port}, device: \"vhost:{}\", queues: 8, speed: 1G}}\n", path.display());
    }
    text + "lags: [{name: bond1, ports: [p0, p1]}, {name: bond2, ports: [p2, p3]}]\n"
}

/// Gives a guest its bond.
fn bond(guest: &mut Guest, address: &str) {
    guest.run(&format!(
        "set -e
         export PATH=/bin
         /bin/ip link set eth0 down
         /bin/ip addr flush dev eth0
         /bin/ip link add bond0 type bond mode 802.3ad lacp_rate fast miimon 100 xmit_hash_policy layer3+4
         /bin/ip link set eth0 master bond0
         /bin/ip link set eth1 master bond0
         /bin/ip addr add {address}/24 dev bond0
         /bin/ip link set bond0 up"
    ));
}

/// Ports of the aggregator that the driver uses.
fn ports_of(guest: &mut Guest) -> Option<usize> {
    let text = guest.run("cat /proc/net/bonding/bond0");
    let has_partner = !text.contains("Partner Mac Address: 00:00:00:00:00:00");
    let line = text.lines().find_map(|line| line.trim().strip_prefix("Number of ports: "))?;
    line.parse().ok().filter(|_| has_partner)
}

fn active(switch: &mut Switch, lag: &str) -> usize {
    switch.metrics().sum("holdfast_lag_member_active", &[("lag", lag)]) as usize
}

/// Waits until both ends have this many members of the first guest's group.
#[track_caller]
fn wait_for_members(switch: &mut Switch, guest: &mut Guest, count: usize) {
    wait_for("members", PATIENCE, || {
        (active(switch, "bond1") == count && ports_of(guest) == Some(count)).then_some(())
    });
}

#[test]
#[ignore = "needs QEMU and minutes: make test-rdma"]
fn bond_of_linux_loses_a_link_and_gets_it_back_without_reordering() {
    if !machine_is_ready() {
        return;
    }
    let image = Image::make();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut switch = Switch::with(&configuration(directory.path()), directory.path());
    let starting = [1, 2].map(|number| Starting::with_cards(&image, number, directory.path(), &sockets(number)));
    let [mut receiver, mut sender] = starting.map(Starting::wait);
    bond(&mut receiver, "10.49.0.1");
    bond(&mut sender, "10.49.0.2");
    wait_for_members(&mut switch, &mut receiver, 2);
    wait_for("members of the sender", PATIENCE, || (active(&mut switch, "bond2") == 2).then_some(()));
    let ping = "for i in $(seq 60); do ping -c 1 -W 1 10.49.0.1 && exit 0; done; exit 1";
    assert_eq!(sender.try_run(ping).0, 0);

    receiver.start("server", &format!("iperf3 -s -1 -J -i 0.25 -p {PORT}"));
    receiver.wait_for_listener(PORT);
    // DSCP 26 is class 3; small datagrams at a rate that emulated CPUs carry.
    let client = format!("iperf3 -c 10.49.0.1 -p {PORT} -u -b 200K -l 250 -P {STREAMS} -t {SECONDS} --tos 104");
    sender.start("client", &client);
    let sent = |switch: &mut Switch, port: &str| {
        switch.metrics().sum("holdfast_port_sent_frames_total", &[("port", port), ("queue", "3")])
    };
    wait_for("flows at both members", PATIENCE, || {
        ["p0", "p1"].iter().all(|port| sent(&mut switch, port) > 50.0).then_some(())
    });
    receiver.set_link(0, "off");
    wait_for_members(&mut switch, &mut receiver, 1);
    let alone = sent(&mut switch, "p1");
    wait_for("flows at one member", PATIENCE, || (sent(&mut switch, "p1") > alone + 500.0).then_some(()));
    let back = sent(&mut switch, "p0");
    receiver.set_link(0, "on");
    wait_for_members(&mut switch, &mut receiver, 2);
    wait_for("flows at the member that is back", PATIENCE, || (sent(&mut switch, "p0") > back + 50.0).then_some(()));
    let (status, text) = wait_for("end of iperf3", PATIENCE, || receiver.ended("server"));
    assert_eq!(status, 0, "{text}");
    judge(&text);
    let metrics = switch.metrics();
    let dropped = |labels: &[(&str, &str)]| metrics.sum("holdfast_port_dropped_frames_total", labels);
    let at_link = dropped(&[("tc", "3"), ("reason", "egress_down"), ("port", "p0")]);
    assert_eq!(dropped(&[("tc", "3")]), at_link, "what waited at the lost link, and no more");
}

/// Judges what the server of iperf3 saw: no datagram after a later one, and no stream that stood still for long.
fn judge(text: &str) {
    let json: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let streams = json["end"]["streams"].as_array().expect("streams");
    assert_eq!(streams.len(), STREAMS, "{text}");
    for stream in streams {
        let udp = &stream["udp"];
        assert_eq!(udp["out_of_order"].as_u64(), Some(0), "{udp}");
        assert!(udp["packets"].as_u64() > Some(100), "{udp}");
    }
    let intervals = json["intervals"].as_array().expect("intervals");
    assert!(intervals.len() > 2 * SECONDS, "{} intervals", intervals.len());
    let is_still = |interval: &Value, stream: usize| interval["streams"][stream]["bytes"].as_u64() == Some(0);
    let longest = |stream| {
        let runs = intervals.split(|interval| !is_still(interval, stream)).map(<[Value]>::len);
        runs.max().unwrap_or_default()
    };
    let still: Vec<usize> = (0..STREAMS).map(longest).collect();
    // Four intervals are a second. All streams stand still while the machine runs something else.
    let [least, most] = [still.iter().min(), still.iter().max()].map(|end| end.copied().unwrap_or_default());
    assert!(most <= least + 4, "quarters of a second without bytes: {still:?}");
}
