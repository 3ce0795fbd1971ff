//! Ports that change while other hosts exchange packets: two hosts move to another VLAN, a port is shut and comes back,
//! a port is added, changed and removed.

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
    let reload = |rig: &mut Rig, text: &str| reload(rig, &config, text, "reload: applied");
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

/// Reloads `text`, and waits until the switch says `said` once more.
fn reload(rig: &mut Rig, config: &Config, text: &str, said: &str) {
    let count = |rig: &mut Rig| rig.switch().stderr().matches(said).count();
    let before = count(rig);
    fs::write(config.path(), text).expect("a configuration");
    rig.switch().signal("HUP");
    wait_for(said, PATIENCE, || (count(rig) > before).then_some(()));
}

#[test]
fn port_is_added_changed_and_removed_while_others_lose_nothing() {
    quiet::attempt(quiet::ALLOWED, port_comes_and_goes);
}

fn port_comes_and_goes() {
    if !machine_is_ready() {
        return;
    }
    let tap = "device: \"net_tap3,iface=hf3\", speed: 1G";
    let with = |device: &str| CONFIG.replace(tap, device);
    let absent = with("device: none, speed: 1G");
    assert_ne!(absent, CONFIG);
    let config = Config::new(&absent);
    let mut rig = Rig::start(&config.path(), 3);
    let first = rig.hosts[0].ipv4();
    let second = rig.hosts[1].ipv4();
    rig.hosts[0].reach(&second, 1);
    // It pings until the last reload.
    let mut command = rig.hosts[0].inside.command("ping");
    command.args(["-n", "-q", "-i", "0.02", &second]);
    let pinging = Process::spawn(command);

    rig.promise_host();
    let applied = "reload: applied";
    reload(&mut rig, &config, CONFIG, applied);
    rig.script_up();
    rig.hosts[3].reach(&first, 3);
    // The device stays.
    reload(&mut rig, &config, &with(&tap.replace("1G", "100M, pfc: off")), applied);
    rig.hosts[3].reach(&first, 3);
    // Another tap of this name.
    reload(&mut rig, &config, &with(&format!("{tap}, mtu: 1280")), applied);
    rig.script_up();
    rig.hosts[3].reach(&first, 3);
    // The tap is made anew, since the other device cannot be opened.
    let wrong = with("device: \"net_af_packet7,iface=not-here\", speed: 1G");
    reload(&mut rig, &config, &wrong, "reload: nothing was applied");
    rig.script_up();
    rig.hosts[3].reach(&first, 3);
    reload(&mut rig, &config, &absent, applied);
    assert!(!rig.hosts[3].has_interface());
    rig.hosts.pop();

    pinging.signal("INT");
    let ended = pinging.wait(PATIENCE);
    let count = |before: &str, after: &str| -> u32 {
        let text = ended.stdout.split(after).next().and_then(|text| text.rsplit(before).next());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| panic!("{}", ended.stdout))
    };
    let (sent, received) = (count("\n", " packets transmitted"), count(", ", " received"));
    // The last one may be on its way.
    if received + 1 < sent {
        quiet::too_busy(format!("pings were lost or late: {}", ended.stdout));
    }
    assert!(sent > 50, "{}", ended.stdout);
    rig.stop();
}
