//! Checks the privileges of this process. The capabilities of the program's file are raised before the probe.

use super::{Access, Facts, Finding, Level, Needs, fix};

/// Capability numbers from Linux' `capability.h`.
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const IPC_LOCK: u32 = 14;

pub fn findings(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(program(facts));
    all.extend(taps(facts, needs));
    all.extend(raw(facts, needs));
    all.extend(locked(facts, needs));
    all.extend(drivers(facts, needs));
    all
}

/// Level of a missing privilege: a warning if no configuration shows whether it is needed.
fn level(needs: Option<&Needs>) -> Level {
    if needs.is_some() { Level::Bad } else { Level::Warn }
}

fn ports_of(needs: &Needs, drivers: &[&str]) -> Vec<String> {
    drivers.iter().flat_map(|driver| needs.on(driver)).map(|device| device.port.clone()).collect()
}

/// The ports that need one of these drivers, as text; `None` if there are none. Without a configuration any port may.
fn wanted(needs: Option<&Needs>, drivers: &[&str]) -> Option<String> {
    let Some(needs) = needs else { return Some(format!("{} ports", drivers[0])) };
    let ports = ports_of(needs, drivers);
    (!ports.is_empty()).then(|| format!("ports {}", ports.join(", ")))
}

/// The command that sets the capabilities of the file. It lists all that any port may need, since each `setcap`
/// replaces the previous one. They are permitted only, so that the program starts even if one of them is not available.
const SETCAP: &str = "setcap cap_net_admin,cap_net_raw,cap_ipc_lock,cap_sys_nice+p";

fn grant(name: &str) -> String {
    let short = name.trim_start_matches("CAP_");
    format!(
        "run as root; or `chgrp GROUP`, `chmod 0750` and `{SETCAP}` on the program, in this order; or `--cap-add {short}` for a \
         container, AmbientCapabilities={name} in a unit"
    )
}

/// Checks that not every user may run a file with capabilities: they give access to interfaces, raw sockets and locked
/// memory of the whole machine.
fn program(facts: &Facts) -> Option<Finding> {
    let place = "program";
    let process = &facts.process;
    match (process.of_file != 0, process.is_for_all) {
        (false, _) => None,
        (true, false) => Some(Finding::ok(place, "its file has capabilities, and only its group may run it")),
        (true, true) => Some(Finding::warn(
            place,
            "its file has capabilities, and every user may run it: every user may change this machine's network",
            format!(
                "`chgrp GROUP`, `chmod 0750` and `{SETCAP}` on it, in this order, because `chgrp` removes capabilities"
            ),
        )),
    }
}

fn taps(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let Some(who) = wanted(needs, &["net_tap", "net_tun"]) else { return Vec::new() };
    let level = level(needs);
    let capability = match facts.process.has(NET_ADMIN) {
        true => Finding::ok("CAP_NET_ADMIN", "present"),
        false => Finding::of(level, "CAP_NET_ADMIN", format!("missing, and {who} need it"), grant("CAP_NET_ADMIN")),
    };
    let place = "/dev/net/tun";
    let tun = match facts.tun {
        Access::Open => Finding::ok(place, "may be opened"),
        Access::Denied => Finding::of(
            level,
            place,
            format!("may not be opened, and {who} need it"),
            "run as root, or `chmod 0666 /dev/net/tun`, the default: CAP_NET_ADMIN is needed in any case",
        ),
        Access::Absent => Finding::of(
            level,
            place,
            format!("does not exist, and {who} need it"),
            "`modprobe tun`, or `--device /dev/net/tun` for a container",
        )
        .fixed_by(fix::module("tun")),
    };
    vec![capability, tun]
}

fn raw(facts: &Facts, needs: Option<&Needs>) -> Option<Finding> {
    let who = wanted(needs, &["net_af_packet"])?;
    Some(match facts.process.has(NET_RAW) {
        true => Finding::ok("CAP_NET_RAW", "present"),
        false => Finding::of(level(needs), "CAP_NET_RAW", format!("missing, and {who} need it"), grant("CAP_NET_RAW")),
    })
}

/// Checks the limit of locked memory: memory that a NIC reads and writes is locked.
fn locked(facts: &Facts, needs: Option<&Needs>) -> Option<Finding> {
    if !needs.is_none_or(|needs| needs.huge) {
        return None;
    }
    let place = "locked memory";
    let wanted = needs.and_then(|needs| needs.memory_mib).map(|mib| u64::from(mib) << 20);
    if facts.process.has(IPC_LOCK) {
        return Some(Finding::ok(place, "no limit (CAP_IPC_LOCK)"));
    }
    let Some(limit) = facts.process.memlock else { return Some(Finding::ok(place, "no limit")) };
    let what = format!("at most {} KiB", limit >> 10);
    if wanted.is_some_and(|wanted| limit >= wanted) {
        return Some(Finding::ok(place, what));
    }
    let remedy = "`ulimit -l unlimited` as root, LimitMEMLOCK=infinity in a unit, `--ulimit memlock=-1` for a container, or \
                  CAP_IPC_LOCK";
    Some(Finding::of(level(needs), place, format!("{what}; hugepages and NICs need more"), remedy))
}

/// Reports missing drivers of virtual devices. DPDK itself would only report an unknown device name.
fn drivers(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let Some(needs) = needs.filter(|_| !facts.drivers.is_empty()) else { return Vec::new() };
    let mut wanted: Vec<&str> = needs.devices.iter().filter_map(|device| device.driver()).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let missing = wanted.into_iter().filter(|driver| !facts.drivers.iter().any(|have| have == driver));
    let finding = |driver: &str| {
        let ports = ports_of(needs, &[driver]).join(", ");
        if facts.drivers_are_linked {
            let what = format!("this program was linked without DPDK's driver of ports {ports}");
            return Finding::bad(driver, what, "use a program with shared DPDK, or another `device`");
        }
        let what = format!("DPDK's driver of ports {ports} is not installed");
        let package = facts.package(driver);
        let remedy = format!("`apt-get install {package}`, or another `device`");
        Finding::bad(driver, what, remedy).fixed_by(fix::package(&package))
    };
    missing.map(finding).collect()
}
