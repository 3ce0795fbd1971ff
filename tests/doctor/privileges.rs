//! Privileges of the process: capabilities, devices, locked memory, and driver packages.

use holdfast::doctor::Level::{Bad, Ok as Fine, Warn};

use crate::server::{ALL, NICS, NONE, Server, at};

const TAPS: &str = "{ports: [{name: a, device: net_tap0, speed: 1G}, {name: b, device: net_tap1, speed: 1G}]}";
const PACKETS: &str = "{ports: [{name: a, device: \"net_af_packet0,iface=eth1\", speed: 1G}]}";
const RINGS: &str = "{ports: [{name: a, device: ring, speed: 1G}], hosts: [{name: h, port: a}]}";

/// A server on which the user has no privilege.
fn nobody() -> Server {
    let server = Server::new();
    server.process(65_534, NONE, "8388608");
    for file in ["dev/net/tun", "dev/vfio/40", "dev/vfio/41"] {
        server.mode(file, 0o600);
    }
    server
}

#[test]
fn taps_need_a_capability_and_a_device() {
    let server = nobody();
    let findings = server.examine(TAPS, None);
    let text = at(&findings, Bad, "CAP_NET_ADMIN");
    assert!(text.starts_with("missing, and ports a, b need it") && text.contains("--cap-add NET_ADMIN"), "{text}");
    assert!(at(&findings, Bad, "/dev/net/tun").starts_with("may not be opened"));
    server.remove("dev/net/tun");
    assert!(at(&server.examine(TAPS, None), Bad, "/dev/net/tun").contains("--device /dev/net/tun"));
    // NET_ADMIN is bit 12. The device is open to all users.
    server.process(65_534, "0000000000001000", "8388608");
    server.file("dev/net/tun", "");
    server.mode("dev/net/tun", 0o666);
    assert!(!server.faults(TAPS, None).iter().any(|(level, _)| *level == Bad), "{:?}", server.faults(TAPS, None));
}

/// Each `setcap` replaces the capabilities of the one before, so one line sets all. `chgrp` removes them, so `setcap`
/// comes last.
#[test]
fn remedy_restricts_the_file_and_sets_all_capabilities_at_once() {
    let findings = nobody().examine(TAPS, None);
    let text = at(&findings, Bad, "CAP_NET_ADMIN");
    let line = "`chgrp GROUP`, `chmod 0750` and `setcap cap_net_admin,cap_net_raw,cap_ipc_lock,cap_sys_nice+p`";
    assert!(text.contains(line), "{text}");
    assert_eq!(text.matches("setcap").count(), 1, "{text}");
}

#[test]
fn program_with_file_capabilities_open_to_all_users_is_warned_of() {
    let server = nobody();
    let is_silent = |server: &Server| !server.look().iter().any(|finding| finding.place == "program");
    server.file("proc/self/exe", "");
    server.mode("proc/self/exe", 0o755);
    assert!(is_silent(&server), "it has none");
    server.process_of_file(65_534, "0000000000003000", NONE, "8388608");
    let findings = server.look();
    let text = at(&findings, Warn, "program");
    assert!(text.contains("every user may run it") && text.contains("`chmod 0750`"), "{text}");
    server.mode("proc/self/exe", 0o750);
    assert_eq!(at(&server.look(), Fine, "program"), "its file has capabilities, and only its group may run it > ");
    // Capabilities from a systemd unit belong to the user, and root needs no capabilities of the file.
    server.mode("proc/self/exe", 0o755);
    server.process(65_534, "0000000000003000", "8388608");
    assert!(is_silent(&server));
    server.process_of_file(0, ALL, NONE, "8388608");
    assert!(is_silent(&server));
}

#[test]
fn packet_sockets_need_cap_net_raw() {
    let server = nobody();
    assert!(at(&server.examine(PACKETS, None), Bad, "CAP_NET_RAW").starts_with("missing, and ports a need it"));
    server.process(65_534, "0000000000002000", "8388608");
    assert_eq!(at(&server.examine(PACKETS, None), Fine, "CAP_NET_RAW"), "present > ");
}

#[test]
fn missing_privilege_that_no_port_needs_is_not_bad() {
    let server = nobody();
    assert!(!server.faults(RINGS, None).iter().any(|(level, _)| *level == Bad), "{:?}", server.faults(RINGS, None));
    // Without a configuration the needs are unknown, so a missing privilege is only a warning.
    let all = server.look();
    assert!(at(&all, Warn, "CAP_NET_ADMIN").starts_with("missing, and net_tap ports need it"));
    assert!(!all.iter().any(|finding| finding.level == Bad), "{all:#?}");
    assert!(at(&all, Warn, "nic 0000:3b:00.0").starts_with("/dev/vfio/40 may not be opened"));
}

#[test]
fn a_nic_needs_its_group_and_locked_memory() {
    let server = nobody();
    let findings = server.examine(NICS, Some(200));
    let text = at(&findings, Bad, "port a");
    assert!(
        text.starts_with("/dev/vfio/40 may not be opened")
            && text.contains(" /dev/vfio/40`, `chmod 0660 /dev/vfio/40`"),
        "{text}"
    );
    assert!(at(&findings, Bad, "locked memory").starts_with("at most 8192 KiB"));
    server.process(65_534, NONE, "209715200");
    assert_eq!(at(&server.examine(NICS, Some(200)), Fine, "locked memory"), "at most 204800 KiB > ");
    server.process(65_534, NONE, "209715199");
    assert!(at(&server.examine(NICS, Some(200)), Bad, "locked memory").contains("LimitMEMLOCK=infinity"));
}

#[test]
fn a_driver_that_is_not_installed_is_named_with_its_package() {
    let server = Server::new();
    server.remove(&Server::driver("net_tap"));
    let text = at(&server.examine(TAPS, None), Bad, "net_tap");
    assert!(text.contains("ports a, b") && text.contains("apt-get install librte-net-tap25"), "{text}");
    // Without a driver directory the drivers are elsewhere, and DPDK reports a missing one itself.
    server.remove("usr");
    assert_eq!(server.faults(TAPS, None), []);
}
