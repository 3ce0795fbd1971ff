//! Loops at a switch without spanning tree: a cable between two of its ports, and two cables to a bridge that does not
//! relay LLDP. The loop guard blocks one of the ports.

use crate::capture::Capture;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, run_arguments};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

const CONFIG: &str = "\
preset: roce
ports:
  - {name: a, device: 'net_af_packet0,iface=lpa', speed: 1G}
  - {name: b, device: 'net_af_packet1,iface=lpb', speed: 1G}
  - {name: c, device: 'net_af_packet2,iface=loop0', speed: 1G}
  - {name: d, device: 'net_af_packet3,iface=loop1', speed: 1G}
lcores: {poll_gap: 1ms}
";

/// Ports `c` and `d` lead to a bridge. Without probes at first.
const TO_BRIDGE: &str = "\
preset: roce
ports:
  - {name: a, device: 'net_af_packet0,iface=lpa', speed: 1G}
  - {name: b, device: 'net_af_packet1,iface=lpb', speed: 1G}
  - {name: c, device: 'net_af_packet2,iface=lpc', speed: 1G}
  - {name: d, device: 'net_af_packet3,iface=lpd', speed: 1G}
lcores: {poll_gap: 1ms}
lldp: {interval: 1s}
";

/// Frames of a ping's ARP, with those of a loop that existed for a moment.
const FEW: usize = 20;

/// A switch, and a namespace behind each of its ports of veths with these names.
struct Lab {
    switch: Namespace,
    peers: Vec<Namespace>,
}

impl Lab {
    fn new(interfaces: &[&str]) -> Self {
        let prefix = unique_prefix();
        let switch = Namespace::new(format!("{prefix}-switch"));
        let peer = |interface: &&str| {
            let name = format!("{prefix}-{interface}");
            let peer = Namespace::new(name.clone());
            switch.run(&["ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", &name]);
            switch.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
            peer.run(&["ip", "link", "set", "dev", "eth0", "addrgenmode", "none", "up"]);
            peer
        };
        let peers = interfaces.iter().map(peer).collect();
        Self { switch, peers }
    }

    fn start(&self, config: &Config) -> Process {
        let mut command = self.switch.command(HOLDFAST);
        command.args(["run", &config.path(), "--json"]).args(run_arguments());
        Process::spawn(command)
    }

    /// The sum of a metric at each port.
    fn at_ports(&self, name: &str) -> Option<[u64; 4]> {
        let metrics = crate::metrics::Exposition::parse(&self.switch.get(METRICS, "/metrics")?);
        Some(["a", "b", "c", "d"].map(|port| metrics.sum(name, &[("port", port)]) as u64))
    }

    fn wait_for_blocked(&self, ports: [u64; 4]) {
        let blocked = || self.at_ports("holdfast_port_loop_blocked").filter(|blocked| *blocked == ports);
        wait_for("blocked ports", PATIENCE, blocked);
    }
}

#[test]
fn loop_is_blocked_and_released_with_the_cable() {
    if !machine_is_ready() {
        return;
    }
    let lab = Lab::new(&["lpa", "lpb"]);
    let (switch, hosts) = (&lab.switch, &lab.peers);
    switch.run(&["ip", "link", "add", "loop0", "type", "veth", "peer", "name", "loop1"]);
    for interface in ["loop0", "loop1"] {
        switch.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
    }
    let config = Config::new(CONFIG);
    let process = lab.start(&config);
    lab.wait_for_blocked([0, 0, 0, 1]);
    for (number, host) in hosts.iter().enumerate() {
        host.run(&["ip", "address", "add", &format!("10.50.0.{}/24", number + 1), "dev", "eth0"]);
    }
    let capture = Capture::on(&hosts[1], "eth0", "arp");
    let said = hosts[0].run(&["ping", "-n", "-q", "-c", "10", "-i", "0.05", "-W", "5", "10.50.0.2"]);
    assert!(said.contains(" 10 received"), "{said}");
    let requests = capture.stop().timed("arp").len();
    assert!(requests <= FEW, "{requests} ARP frames");
    let line = " lldp: d: a loop: frames of the own port c come back here; d is blocked";
    wait_for(line, PATIENCE, || process.stderr().contains(line).then_some(()));

    // At once: the life of a data unit is two minutes.
    switch.run(&["ip", "link", "set", "dev", "loop0", "down"]);
    lab.wait_for_blocked([0; 4]);
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

/// A bridge of Linux relays no LLDP, and floods probes.
#[test]
fn loop_by_a_bridge_is_found_by_probes_alone_and_its_flood_ends() {
    if !machine_is_ready() {
        return;
    }
    let lab = Lab::new(&["lpa", "lpb", "lpc"]);
    let (switch, [a, b, bridge]) = (&lab.switch, [0, 1, 2].map(|number| &lab.peers[number]));
    // The second cable to the bridge.
    switch.run(&["ip", "link", "add", "lpd", "type", "veth", "peer", "name", "eth1"]);
    switch.run(&["ip", "link", "set", "dev", "eth1", "netns", bridge.name()]);
    switch.run(&["ip", "link", "set", "dev", "lpd", "addrgenmode", "none", "up"]);
    bridge.run(&["ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping", "0"]);
    for interface in ["eth0", "eth1", "br0"] {
        bridge.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
    }
    for interface in ["eth0", "eth1"] {
        bridge.run(&["ip", "link", "set", "dev", interface, "master", "br0"]);
    }
    let config = Config::new(&format!("{TO_BRIDGE}loop_probe: off\n"));
    let process = lab.start(&config);
    let sent = || lab.at_ports("holdfast_lldp_sent_frames_total").filter(|sent| sent.iter().all(|&sent| sent >= 3));
    wait_for("LLDP at all ports", PATIENCE, sent);
    lab.wait_for_blocked([0; 4]);
    assert_eq!(lab.at_ports("holdfast_port_loop"), Some([0; 4]), "LLDP does not show this loop");

    // One broadcast circulates without end.
    a.run(&["ip", "address", "add", "10.50.0.1/24", "dev", "eth0"]);
    let _ = a.try_run(&["ping", "-n", "-q", "-c", "1", "-W", "1", "10.50.0.9"]);
    let flooded = || lab.at_ports("holdfast_port_sent_frames_total").map(|sent| sent[1]);
    let before = flooded().expect("metrics");
    wait_for("flood", PATIENCE, || flooded().filter(|sent| sent - before > 50 * FEW as u64));

    let probes = Capture::on(a, "eth0", "ether proto 0x9000");
    std::fs::write(config.path(), format!("{TO_BRIDGE}loop_probe: 500ms\n")).expect("a file");
    process.signal("HUP");
    lab.wait_for_blocked([0, 0, 0, 1]);
    let requests = Capture::on(b, "eth0", "arp").stop().timed("arp").len();
    assert!(requests <= FEW, "the flood goes on: {requests} ARP frames");
    let line = " lldp: d: a loop: frames of the own port c come back here; d is blocked";
    wait_for(line, PATIENCE, || process.stderr().contains(line).then_some(()));
    let metrics = crate::metrics::Exposition::parse(&switch.get(METRICS, "/metrics").expect("metrics"));
    assert!(metrics.sum("holdfast_punted_frames_total", &[("cause", "loop_probe")]) > 0.0);
    let probes = probes.stop();
    let fields = ["eth.dst", "loop.skipcount", "loop.function", "frame.len"];
    let seen = probes.fields("loop && !_ws.malformed", &fields);
    assert!(!seen.is_empty() && seen.iter().all(|row| row == &["cf:00:00:00:00:00", "0", "1", "60"]), "{seen:?}");
    assert_eq!(probes.fields("_ws.malformed", &["frame.number"]), [[""; 0]; 0], "tshark reads all of it");

    // The block lasts while the loop does. The cable leaves the bridge, and its link stays up.
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(lab.at_ports("holdfast_port_loop_blocked"), Some([0, 0, 0, 1]));
    bridge.run(&["ip", "link", "set", "dev", "eth1", "nomaster"]);
    lab.wait_for_blocked([0; 4]);
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
