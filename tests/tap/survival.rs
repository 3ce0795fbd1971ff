//! Interfaces, namespaces and switches that disappear.

use crate::program::dpdk_leftovers;
use crate::ready::machine_is_ready;
use crate::rig::{Rig, TAP_TOR};

#[test]
fn vanished_host_does_not_disturb_the_other_hosts() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::start(TAP_TOR, 4);
    let (first, second) = (&rig.hosts[0], &rig.hosts[1]);
    for host in &rig.hosts[1..] {
        first.reach(&host.ipv4(), 2);
    }
    rig.hosts[2].inside.run(&["ip", "link", "delete", "dev", "hf2"]);
    rig.hosts[3].inside.remove();
    // Stations that are known but gone. ARP and ND requests for them go to all ports.
    for gone in [rig.hosts[2].ipv4(), rig.hosts[3].ipv4(), rig.hosts[3].ipv6()] {
        assert_eq!(first.ping(&gone, 3), 0, "{gone}");
    }
    for _ in 0..2 {
        first.reach(&second.ipv4(), 20);
        second.reach(&first.ipv6(), 20);
        first.inside.run(&["ip", "neigh", "flush", "dev", "hf0"]);
    }
    assert!(rig.switch().is_running());
    rig.stop();
}

#[test]
fn a_killed_switch_leaves_nothing_and_another_takes_its_hosts() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::start(TAP_TOR, 4);
    rig.hosts[0].reach(&rig.hosts[3].ipv4(), 2);
    let pid = rig.switch().pid();
    assert_eq!(rig.end("KILL").status.code(), None);
    assert!(rig.hosts.iter().all(|host| !host.has_interface()));
    assert_eq!(dpdk_leftovers(pid), [""; 0]);

    // The namespaces still exist and get the new taps.
    rig.start_switch(TAP_TOR);
    rig.script_up();
    rig.hosts[0].reach(&rig.hosts[3].ipv4(), 2);
    rig.hosts[2].reach(&rig.hosts[1].ipv6(), 2);
    rig.stop();
}
