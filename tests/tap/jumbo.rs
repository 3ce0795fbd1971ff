//! Jumbo frames over af_packet, configured with larger slots: from one Linux host to another, without fragments.

use crate::interface;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, report, run_arguments, sum};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

const CONFIG: &str = "\
preset: roce
ports:
  - {name: a, device: 'net_af_packet0,iface=jfa', speed: 1G, mtu: 9000}
  - {name: b, device: 'net_af_packet1,iface=jfb', speed: 1G, mtu: 9000}
lcores: {poll_gap: 1ms}
buffer: {size: 64MiB}
";

/// Payload of a packet of 9000 bytes with IPv4 and ICMP headers.
const LARGEST_PAYLOAD: &str = "8972";

#[test]
fn packets_of_9000_bytes_pass_af_packet_whole_both_ways() {
    if !machine_is_ready() {
        return;
    }
    let prefix = unique_prefix();
    let switch = Namespace::new(format!("{prefix}-switch"));
    let hosts = ["jfa", "jfb"].map(|interface| {
        let name = format!("{prefix}-{interface}");
        let host = Namespace::new(name.clone());
        switch.run(&["ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", &name]);
        switch.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
        host.run(&["ip", "link", "set", "dev", "eth0", "mtu", "9000", "up"]);
        host
    });
    for (number, host) in hosts.iter().enumerate() {
        host.run(&["ip", "address", "add", &format!("10.49.0.{}/24", number + 1), "dev", "eth0"]);
    }
    let config = Config::new(CONFIG);
    let mut command = switch.command(HOLDFAST);
    command.args(["run", &config.path(), "--json"]).args(run_arguments());
    let mut process = Process::spawn(command);
    wait_for("running switch", PATIENCE, || {
        assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
        switch.get(METRICS, "/readyz")
    });
    for interface in ["jfa", "jfb"] {
        assert_eq!(interface::look(&switch, interface)["mtu"], 9000, "the switch sets the MTU of its end");
    }
    for (host, other) in hosts.iter().zip(["10.49.0.2", "10.49.0.1"]) {
        // No packet is fragmented. A truncated packet is no reply, because `ping` compares the contents.
        let words = ["ping", "-n", "-q", "-M", "do", "-s", LARGEST_PAYLOAD, "-c", "20", "-i", "0.05", "-W", "5", other];
        let said = host.run(&words);
        assert!(said.contains(" 20 received"), "{said}");
    }
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report = report(&ended);
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    let bytes = sum(&report, "sent_bytes", false);
    assert!(bytes >= 2 * 2 * 20 * 9014, "{bytes} bytes sent");
    for port in report["ports"].as_array().expect("ports") {
        assert_eq!(port["flow_control"], "none", "{port}");
    }
}
