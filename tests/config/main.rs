//! Configurations from outside: what is refused and in which words, that nothing panics, and the commands around it.

mod accepted;
mod commands;
mod garbage;
mod refusals;
mod replay;
mod warnings;

use std::path::{Path, PathBuf};

use holdfast::config::{self, Config};

/// Two ports that nothing else is needed for.
const PORTS: &str = "\
ports:
  - {name: p1, device: net_tap0, speed: 10G}
  - {name: p2, device: net_tap1, speed: 10G}
";

/// A switch with virtual hosts.
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

/// What the buffer promises fits it, group by group.
fn check_sums(config: &Config) {
    let plan = &config.switch.buffer;
    let groups = || config.switch.ports.iter().flat_map(|port| &port.buffer.groups);
    let reserves: u64 = groups().map(|group| u64::from(group.reserve.0)).sum();
    let headroom: u64 = groups().map(|group| u64::from(group.headroom.0)).sum();
    assert_eq!((reserves, headroom), (plan.reserves.0.into(), plan.headroom.0.into()));
    let promised = reserves + headroom + u64::from(plan.lossless_shared.0) + u64::from(plan.lossy_shared.0);
    assert!(promised <= plan.total.0.into());
    assert!(groups().all(|group| group.lossless == (group.headroom.0 > 0)));
    assert!(config.switch.classes.is_valid());
}
