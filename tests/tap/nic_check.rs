//! `holdfast nic-check` on a veth pair: its ends stand for two ports and the cable between them.

use serde_json::Value;

use crate::namespace::{Namespace, unique_prefix};
use crate::process::Process;
use crate::program::{HOLDFAST, PATIENCE};
use crate::ready::machine_is_ready;

fn veth() -> Namespace {
    let inside = Namespace::new(format!("{}-check", unique_prefix()));
    inside.run(&["ip", "link", "add", "va", "type", "veth", "peer", "name", "vb"]);
    for interface in ["va", "vb"] {
        // Without addresses the kernel sends nothing.
        inside.run(&["ip", "link", "set", "dev", interface, "addrgenmode", "none", "up"]);
    }
    inside
}

#[test]
fn veth_pair_by_af_packet_passes_the_check() {
    if !machine_is_ready() {
        return;
    }
    let inside = veth();
    let mut command = inside.command(HOLDFAST);
    // A rate that a busy machine keeps.
    command.args(["nic-check", "net_af_packet0,iface=va", "net_af_packet1,iface=vb", "--rate", "50M", "--json"]);
    let ended = Process::spawn(command).wait(PATIENCE);
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    for port in report["ports"].as_array().expect("ports") {
        assert_eq!(port["faults"], serde_json::json!([]), "{port}");
        assert_eq!(port["pfc_priorities_passed"].as_array().map(Vec::len), Some(8), "{port}");
        // The rate leaves the priorities time beyond the 10 ms of a device of software.
        assert_eq!(
            (&port["observed"], port["given_ns"].as_u64() > Some(10_000_000)),
            (&"obeys".into(), true),
            "{port}"
        );
        for response in port["responses"].as_array().expect("responses") {
            let bytes = |key: &str| response[key].as_u64().expect("a count");
            assert!(bytes("posted_wire_bytes") <= bytes("wire_bytes"), "{response}");
        }
    }
}
