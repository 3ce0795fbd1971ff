//! Hugepages and ordinary memory.

use holdfast::doctor::Level::{self, Warn};

use crate::server::{NICS, Server, at, faults};

#[test]
fn doctor_finds_no_fault_at_a_prepared_server() {
    assert_eq!(Server::new().faults(NICS, Some(200)), []);
}

#[test]
fn too_few_hugepages_are_bad_with_the_number_to_add() {
    let server = Server::new();
    server.pages(0, 0, 0);
    server.pages(1, 100, 60);
    let findings = server.examine(NICS, Some(200));
    let text = at(&findings, Level::Bad, "hugepages");
    // 120 MiB are free and 80 are missing: 40 pages of 2 MiB.
    assert!(text.starts_with("120 MiB are free, but this configuration needs 200 MiB > add 40 pages"), "{text}");
    assert!(text.contains("`echo 140 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages`"), "{text}");
    assert_eq!(at(&findings, Level::Ok, "hugepages, node 1"), "60 of 100 pages of 2048 KiB are free > ");
    assert_eq!(server.faults(NICS, Some(120)), []);
    assert_eq!(server.faults(NICS, Some(121)), [(Level::Bad, "hugepages".to_owned())]);
}

#[test]
fn hugepages_of_the_running_switch_are_not_missing() {
    let server = Server::new();
    server.pages(0, 1024, 0);
    server.pages(1, 1024, 0);
    assert_eq!(faults(&server.examine_with(NICS, Vec::new())), []);
    let found = faults(&server.examine(NICS, None));
    assert!(found.contains(&(Level::Bad, "hugepages".to_owned())), "{found:?}");
}

#[test]
fn hugepages_missing_on_port_node_are_warned_of_once() {
    let server = Server::new();
    server.pages(1, 64, 0);
    assert_eq!(server.faults(NICS, Some(200)), [(Level::Warn, "hugepages, node 1".to_owned())]);
    let text = at(&server.examine(NICS, Some(200)), Level::Warn, "hugepages, node 1");
    assert!(text.contains("port a"), "{text}");
    // The node has 64 pages, all of them in use. 200 MiB are 100 more.
    assert!(
        text.contains("`echo 164 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages`"),
        "{text}"
    );
}

#[test]
fn hugepages_are_found_on_machine_without_numa_nodes() {
    let server = Server::new();
    server.remove("sys/devices/system/node");
    server.file("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "2\n");
    server.file("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n");
    let findings = server.examine(NICS, Some(1024));
    assert_eq!(at(&findings, Level::Ok, "hugepages, node 0"), "1 of 2 pages of 1048576 KiB are free > ");
    assert_eq!(at(&findings, Level::Ok, "hugepages"), "1024 MiB are free, 1024 MiB are needed > ");
}

#[test]
fn virtual_ports_need_ordinary_memory_and_no_hugepages() {
    let server = Server::new();
    let taps = "{ports: [{name: a, device: net_tap0, speed: 1G}]}";
    server.pages(0, 0, 0);
    server.pages(1, 0, 0);
    assert!(at(&server.examine(taps, Some(100)), Level::Ok, "hugepages").contains("needs none"));
    server.file("proc/meminfo", "MemAvailable:  51200 kB\n");
    let text = at(&server.examine(taps, Some(100)), Level::Bad, "memory");
    assert!(text.starts_with("50 MiB are free, 100 MiB are needed"), "{text}");
    server.file("proc/meminfo", "MemAvailable:  102400 kB\n");
    assert_eq!(at(&server.examine(taps, Some(100)), Level::Ok, "memory"), "100 MiB are free, 100 MiB are needed > ");
}

#[test]
fn small_tables_of_neighbours_are_warned_of_with_routing_linux() {
    let linux = "{preset: roce, ports: [{name: a, device: net_tap0, speed: 1G}], \
                 routing: {linux: {namespace: tor}, interfaces: [{port: a}]}}";
    let server = Server::new();
    let set = |family: &str, size: &str| server.file(&format!("proc/sys/net/{family}/neigh/default/gc_thresh3"), size);
    let [ipv4, ipv6] = ["ipv4", "ipv6"].map(|family| format!("net.{family}.neigh.default.gc_thresh3"));
    assert!(at(&server.examine(linux, None), Warn, &ipv6).starts_with("cannot be read here"));
    set("ipv4", "65536\n");
    set("ipv6", "1024\n");
    let findings = server.examine(linux, None);
    assert!(!findings.iter().any(|finding| finding.place == ipv4), "{findings:?}");
    let text = at(&findings, Warn, &ipv6);
    assert!(
        text.contains("at most 672 hosts of a port") && text.contains(&format!("sysctl -w {ipv6}=65536")),
        "{text}"
    );
    let alone =
        linux.replace("linux: {namespace: tor}, ", "").replace("{port: a}", "{port: a, addresses: [10.0.0.1/24]}");
    assert!(!server.examine(&alone, None).iter().any(|finding| finding.place == ipv6));
}
