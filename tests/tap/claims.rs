//! Two switches with one interface: the second is refused.

use std::time::Duration;

use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE};
use crate::ready::machine_is_ready;
use crate::rig::METRICS;

/// A switch with a port on `device`, in `space`.
fn start(space: &Namespace, device: &str, more: &[&str]) -> (Process, Config) {
    let config = Config::new(&format!("ports:\n  - {{name: a, device: '{device}', speed: 1G}}\nlldp: off\n"));
    let mut command = space.command(HOLDFAST);
    command.args(["run", &config.path()]).args(more);
    (Process::spawn(command), config)
}

#[track_caller]
fn wait_until_it_runs(space: &Namespace) {
    wait_for("running switch", PATIENCE, || space.get(METRICS, "/readyz"));
}

#[test]
fn interface_of_another_switch_is_refused_with_its_process_and_is_free_after_its_end() {
    if !machine_is_ready() {
        return;
    }
    let [space, other] = ["a", "b"].map(|name| Namespace::new(format!("{}-{name}", unique_prefix())));
    for space in [&space, &other] {
        space.run(&["ip", "link", "add", "hfva", "type", "veth", "peer", "name", "hfvb"]);
        space.run(&["ip", "link", "set", "dev", "hfva", "up"]);
        space.run(&["ip", "link", "set", "dev", "hfvb", "up"]);
    }
    space.run(&["ip", "link", "property", "add", "dev", "hfva", "altname", "holdfast-alt"]);
    for (device, seconds) in [
        ("net_tap0,iface=hft", ["net_tap0,iface=hft", "net_tap5,iface=hft"]),
        // The kernel names it dtap0.
        ("net_tap0", ["net_tap0,iface=dtap0", "eth_tap3,iface=dtap0"]),
        ("net_af_packet0,iface=hfva", ["net_af_packet0,iface=hfva", "net_af_packet1,iface=holdfast-alt"]),
    ] {
        let (first, _first_config) = start(&space, device, &[]);
        wait_until_it_runs(&space);
        for second in seconds {
            let (process, _config) = start(&space, second, &["--metrics", "off", "--duration", "1s"]);
            let ended = process.wait(PATIENCE);
            assert_eq!(ended.status.code(), Some(1), "{ended:?}");
            let holder = format!("process {} has it as a port; stop that switch", first.pid());
            assert!(ended.stderr.contains(&holder), "{second}: {}", ended.stderr);
        }
        // The first is not disturbed, and the same name in another namespace is another interface.
        assert!(space.get(METRICS, "/readyz").is_some());
        let (elsewhere, _config) = start(&other, device, &["--duration", "500ms", "--metrics", "off"]);
        let ended = elsewhere.wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        first.signal("KILL");
        first.wait(Duration::from_secs(10));
        let (again, _config) = start(&space, device, &["--duration", "500ms", "--metrics", "off"]);
        let ended = again.wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}
