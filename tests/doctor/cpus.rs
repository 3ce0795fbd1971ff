//! CPUs, their NUMA nodes, and the clock.

use holdfast::doctor::Level::{self, Bad, Ok as Fine, Warn};
use holdfast::doctor::probe;

use crate::server::{NICS, Server, at};

const LCORE_0: &str = "lcore 0, CPU 6";
const LCORE_1: &str = "lcore 1, CPU 7";

fn warned(server: &Server, place: &str) -> String {
    at(&server.examine(NICS, None), Warn, place)
}

#[test]
fn lcore_on_non_isolated_cpu_is_warned_of_with_boot_line() {
    let server = Server::new();
    server.file("sys/devices/system/cpu/isolated", "2-3,7\n");
    let text = warned(&server, LCORE_0);
    // The line includes the CPUs that are isolated already and the other lcore's, because a new line replaces the old
    // one.
    let line = "isolcpus=2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7";
    assert!(text.starts_with("not isolated") && text.contains(line), "{text}");
    assert_eq!(server.faults(NICS, None), [(Warn, LCORE_0.to_owned())]);
}

#[test]
fn lcore_on_cpu_with_tick_is_warned_of() {
    let server = Server::new();
    server.file("sys/devices/system/cpu/nohz_full", "(null)\n");
    assert!(warned(&server, LCORE_1).contains("nohz_full=2-3,6-7"));
    assert_eq!(server.faults(NICS, None).len(), 2);
}

#[test]
fn a_governor_that_saves_power_is_named() {
    let server = Server::new();
    server.file("sys/devices/system/cpu/cpu7/cpufreq/scaling_governor", "schedutil\n");
    let text = warned(&server, LCORE_1);
    assert!(text.contains("schedutil") && text.contains("cpu7/cpufreq/scaling_governor"), "{text}");
}

#[test]
fn nic_on_another_node_than_its_lcore_is_warned_of() {
    let server = Server::new();
    let far = NICS.replace("[6, 7]", "[3, 7]");
    let text = at(&server.examine(&far, None), Warn, "port a");
    assert!(text.starts_with("on node 1, polled by lcore 0 on node 0") && text.ends_with("from 4-7"), "{text}");
    assert_eq!(server.faults(&far, None), [(Warn, "port a".to_owned())]);
}

#[test]
fn lcore_that_shares_its_core_or_cpu_is_warned_of() {
    let server = Server::new();
    for cpu in [6, 7] {
        server.file(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), "6-7\n");
    }
    assert!(warned(&server, LCORE_1).contains("shares its physical core with lcore 0"));
    let control = NICS.replace("control: 0", "control: 6");
    let places: Vec<Level> = server.faults(&control, None).into_iter().map(|(level, _)| level).collect();
    assert_eq!(places, [Warn, Warn]);
    assert!(at(&server.examine(&control, None), Warn, LCORE_0).contains("control thread"));
}

#[test]
fn a_cpu_that_this_process_may_not_use_is_bad() {
    let server = Server::new();
    let status = std::fs::read_to_string(server.path("proc/self/status")).unwrap();
    server.file("proc/self/status", &status.replace("0-7", "0-6"));
    let text = at(&server.examine(NICS, None), Bad, LCORE_1);
    assert!(text.starts_with("this process may not use this CPU, only 0-6"), "{text}");
}

/// Linux takes isolated CPUs from the affinity of process 1, so no process has them at first, and each may go there.
#[test]
fn isolated_cpus_that_process_1_lost_at_boot_may_be_used() {
    let server = Server::new();
    let status = std::fs::read_to_string(server.path("proc/self/status")).unwrap();
    server.file("proc/self/status", &status.replace("0-7", "0-1,4-5"));
    assert_eq!(server.faults(NICS, None), []);
    let of = |place: &str| at(&server.examine(NICS, None), Fine, place);
    assert!(of("cpus").starts_with("8 of 8 may be used: 0-7"));
    assert!(of(LCORE_1).starts_with("isolated, and without tick"));
    // A mask without CPUs 0 and 1 was chosen.
    server.file("proc/self/status", &status.replace("0-7", "4-5"));
    assert_eq!(probe(server.root()).cpus.allowed, [4, 5]);
}

#[test]
fn lcores_without_a_cpu_get_the_last_ones() {
    let server = Server::new();
    let free = "{ports: [{name: a, device: net_tap0, speed: 1G}], lcores: {count: 2}}";
    let findings = server.examine(free, None);
    assert_eq!(at(&findings, Fine, "lcore 0, CPU 7"), "isolated, and without tick > ");
    assert_eq!(at(&findings, Fine, "lcore 1, CPU 6"), "isolated, and without tick > ");
}

#[test]
fn one_cpu_is_too_few() {
    let server = Server::new();
    server.file("sys/devices/system/cpu/online", "0\n");
    let status = std::fs::read_to_string(server.path("proc/self/status")).unwrap();
    server.file("proc/self/status", &status.replace("0-7", "0"));
    assert!(at(&server.look(), Warn, "cpus").contains("1 of 1 may be used"), "{:?}", server.look());
}

#[test]
fn clock_without_nonstop_tsc_is_warned_of() {
    let server = Server::new();
    server.file("proc/cpuinfo", "flags\t\t: fpu constant_tsc waitpkg\n");
    assert!(warned(&server, "clock").contains("(nonstop_tsc missing)"));
    server.file("proc/cpuinfo", "flags\t\t: fpu constant_tsc nonstop_tsc waitpkg\n");
    server.file("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    assert!(warned(&server, "clock").contains("the kernel uses hpet"));
}

#[test]
fn umwait_that_the_cpu_lacks_is_bad() {
    let server = Server::new();
    let resting = NICS.replace("[6, 7]", "[6, 7], idle: {wait: umwait, lossless: true}");
    assert_eq!(server.faults(&resting, None), []);
    server.file("proc/cpuinfo", "flags\t\t: fpu constant_tsc nonstop_tsc\n");
    assert!(at(&server.examine(&resting, None), Bad, "umwait").contains("wait: pause"));
    assert_eq!(server.faults(NICS, None), []);
}
