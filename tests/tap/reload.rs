//! Ports that change while other hosts exchange packets: two hosts move to another VLAN, a port is shut and comes back.

use std::fs;

use crate::process::{Process, wait_for};
use crate::program::{Config, PATIENCE};
use crate::quiet;
use crate::ready::machine_is_ready;
use crate::rig::Rig;

const CONFIG: &str = r#"
preset: roce
ports:
  - {name: hf0, device: "net_tap0,iface=hf0", speed: 1G}
  - {name: hf1, device: "net_tap1,iface=hf1", speed: 1G}
  - {name: hf2, device: "net_tap2,iface=hf2", speed: 1G}
  - {name: hf3, device: "net_tap3,iface=hf3", speed: 1G}
metrics: 127.0.0.1:9464
"#;

/// Pings of the hosts that stay, and of a host that should get no answer.
const STEADY: &str = "200";
const VAIN: u32 = 5;

#[test]
fn hosts_change_their_vlan_and_a_port_is_shut_while_others_lose_nothing() {
    quiet::attempt(quiet::ALLOWED, hosts_change_their_vlan);
}

fn hosts_change_their_vlan() {
    if !machine_is_ready() {
        return;
    }
    let config = Config::new(CONFIG);
    let mut rig = Rig::start(&config.path(), 4);
    let addresses: Vec<String> = rig.hosts.iter().map(crate::rig::Host::ipv4).collect();
    rig.hosts[0].reach(&addresses[1], 1);
    rig.hosts[2].reach(&addresses[0], 1);
    let mut command = rig.hosts[0].inside.command("ping");
    command.args(["-n", "-q", "-i", "0.02", "-c", STEADY, &addresses[1]]);
    let pinging = Process::spawn(command);

    let moved =
        CONFIG.replace("iface=hf2\", ", "iface=hf2\", vlan: 7, ").replace("iface=hf3\", ", "iface=hf3\", vlan: 7, ");
    let shut = moved.replace("name: hf3, ", "name: hf3, enabled: false, ");
    let enabled = |rig: &Rig| rig.metrics().sum("holdfast_port_enabled", &[("port", "hf3")]);
    let applied = |rig: &mut Rig| rig.switch().stderr().matches("reload: applied").count();
    let reload = |rig: &mut Rig, text: &str| {
        let before = applied(rig);
        fs::write(config.path(), text).expect("a configuration");
        rig.switch().signal("HUP");
        wait_for("a reload", PATIENCE, || (applied(rig) > before).then_some(()));
    };
    reload(&mut rig, &moved);
    assert_eq!(rig.hosts[2].ping(&addresses[0], VAIN), 0, "it is in another VLAN");
    rig.hosts[2].reach(&addresses[3], 3);
    assert_eq!(enabled(&rig), 1.0);
    reload(&mut rig, &shut);
    assert_eq!((rig.hosts[3].ping(&addresses[2], VAIN), enabled(&rig)), (0, 0.0));
    let dropped = rig.metrics().sum("holdfast_port_dropped_frames_total", &[("port", "hf3"), ("reason", "admin_down")]);
    assert!(dropped > 0.0, "what the host sends is dropped");
    reload(&mut rig, &moved);
    rig.hosts[3].reach(&addresses[2], 3);
    reload(&mut rig, CONFIG);
    rig.hosts[2].reach(&addresses[0], 3);

    let ended = pinging.wait(PATIENCE);
    if !ended.stdout.contains("200 packets transmitted, 200 received") {
        quiet::too_busy(format!("pings were lost or late: {}", ended.stdout));
    }
    rig.stop();
}
