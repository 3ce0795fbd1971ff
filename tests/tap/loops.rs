//! A cable between two ports of the switch, which has no spanning tree: the loop guard blocks one of them.

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

/// Frames of a ping's ARP, with those of a loop that existed for a moment.
const FEW: usize = 20;

#[test]
fn loop_is_blocked_and_released_with_the_cable() {
    if !machine_is_ready() {
        return;
    }
    let prefix = unique_prefix();
    let switch = Namespace::new(format!("{prefix}-switch"));
    let hosts = ["lpa", "lpb"].map(|interface| {
        let name = format!("{prefix}-{interface}");
        let host = Namespace::new(name.clone());
        switch.run(&["ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", &name]);
        switch.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
        host.run(&["ip", "link", "set", "dev", "eth0", "addrgenmode", "none", "up"]);
        host
    });
    switch.run(&["ip", "link", "add", "loop0", "type", "veth", "peer", "name", "loop1"]);
    for interface in ["loop0", "loop1"] {
        switch.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
    }
    let config = Config::new(CONFIG);
    let mut command = switch.command(HOLDFAST);
    command.args(["run", &config.path(), "--json"]).args(run_arguments());
    let process = Process::spawn(command);
    let blocked = || {
        let metrics = crate::metrics::Exposition::parse(&switch.get(METRICS, "/metrics")?);
        let port = |port| metrics.sum("holdfast_port_loop_blocked", &[("port", port)]) as u64;
        Some(["a", "b", "c", "d"].map(port))
    };
    wait_for("blocked port", PATIENCE, || blocked().filter(|ports| *ports == [0, 0, 0, 1]));
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
    wait_for("released port", PATIENCE, || blocked().filter(|ports| *ports == [0; 4]));
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
