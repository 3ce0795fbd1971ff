//! Configurations, tested from outside: refusals word for word, absence of panics, and the commands that read them.

mod accepted;
mod commands;
mod count;
mod devices;
mod exit_codes;
mod faults;
mod fdb;
mod features;
mod fields;
mod garbage;
mod idle;
mod keys;
mod lags;
mod lcores;
mod listed;
mod lldp;
mod maps;
mod max_rate;
mod mirrors;
mod pages;
mod policies;
mod refusals;
mod replay;
mod routing;
mod storm_control;
mod trace;
mod versions;
mod warnings;

use std::path::{Path, PathBuf};

use holdfast::config::{self, Config};
use holdfast::mmu::HeadroomPolicy;
use holdfast::sets::CLASSES;
use holdfast::units::Cells;

/// Two ports, a complete configuration.
const PORTS: &str = "\
ports:
  - {name: p1, device: net_tap0, speed: 10G}
  - {name: p2, device: net_tap1, speed: 10G}
";

/// Two ports with virtual hosts.
const RINGS: &str = "\
ports: [{name: p1, device: ring, speed: 10G}, {name: p2, device: ring, speed: 10G}]
";

fn accept(text: &str) -> Config {
    config::parse("x.yaml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn refuse(text: &str, expected: &str) {
    let errors = config::parse("x.yaml", text).expect_err("this configuration is wrong");
    assert_eq!(errors.to_string(), expected);
}

#[track_caller]
fn refuse_beside_ports(text: &str, expected: &str) {
    refuse(&format!("{PORTS}{text}"), expected);
}

#[track_caller]
fn warn(text: &str, expected: &str) {
    assert_eq!(accept(text).warnings, [expected]);
}

fn conf_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conf")
}

/// Asserts that all guarantees fit the buffer: those of groups, ports and queues.
fn check_sums(config: &Config) {
    let (switch, plan) = (&config.switch, &config.switch.buffer);
    let sum = |cells: &mut dyn Iterator<Item = Cells>| cells.map(|cells| u64::from(cells.0)).sum::<u64>();
    let groups = || switch.ports.iter().flat_map(|port| &port.buffer.groups);
    let reserves = sum(&mut groups().map(|group| group.reserve))
        + sum(&mut switch.ports.iter().flat_map(|port| port.buffer.reserve));
    assert_eq!(reserves, u64::from(plan.reserves.0));
    let etas = sum(&mut groups().map(|group| group.headroom));
    let insurances = sum(&mut switch.ports.iter().map(|port| port.buffer.insurance));
    let headroom = u64::from(plan.headroom.0);
    match plan.policy {
        HeadroomPolicy::Independent => assert_eq!((headroom, insurances), (etas, 0)),
        HeadroomPolicy::SharedPool => {
            assert_eq!(insurances, 0);
            assert!(groups().all(|group| u64::from(group.headroom.0) <= headroom));
        }
        HeadroomPolicy::Dynamic => assert_eq!(headroom, insurances),
    }
    let promised = reserves + headroom + u64::from(plan.lossless_shared.0) + u64::from(plan.lossy_shared.0);
    assert!(promised <= u64::from(plan.total.0));
    assert!(groups().all(|group| group.lossless == (group.headroom.0 > 0)));
    let queues = sum(&mut switch.queues.iter().map(|queue| queue.reserve)) * switch.ports.len() as u64;
    assert!(queues <= u64::from(plan.lossy_shared.0));

    assert!(switch.classes.is_valid());
    for port in &switch.ports {
        assert!(port.live.marks.is_valid());
        assert!(port.live.rewrite.dscp.iter().flatten().all(|dscp| *dscp < 64));
        assert!(port.live.rewrite.pcp.iter().flatten().all(|pcp| *pcp < 8));
        assert!(port.lcore < switch.lcores);
        assert_eq!(port.buffer.policy, plan.policy);
        assert!(port.pfc.is_on() || (port.live.watchdog.is_none() && port.backlog_mark.is_none()));
    }
    // A lossless class is paused by the priority of its group, in its own queue, and no lossy class shares that queue.
    for class in 0..CLASSES {
        let (group, queue) = (switch.classes.tc_to_group[class], switch.classes.tc_to_queue[class]);
        let lossless = switch.lossless_groups().contains(group.into());
        assert_eq!(lossless, switch.queues[usize::from(queue)].limit.is_none());
        assert!(!lossless || switch.classes.pfc_to_queue[usize::from(group)] == queue);
    }
    assert!(config.lcores.dataplane.is_empty() || config.lcores.dataplane.len() == usize::from(switch.lcores));
}
