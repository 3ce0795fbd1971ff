//! Check for the facilities that these tests need.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use crate::program::is_root;

/// Programs that the tests run, and their Debian packages.
const PROGRAMS: [(&str, &str); 11] = [
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("iperf3", "iperf3"),
    ("tshark", "tshark"),
    ("dumpcap", "tshark"),
    ("tcpreplay", "tcpreplay"),
    ("ethtool", "ethtool"),
    ("lldpd", "lldpd"),
    ("lldptool", "lldpad"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("nsenter", "util-linux"),
];

/// Whether taps, namespaces and all programs are available. If not, prints the missing one; with `CI=true` it panics.
pub fn machine_is_ready() -> bool {
    let checked = check();
    machine_has(checked.is_ok(), || checked.unwrap_err())
}

/// Returns whether a thing that some test needs is there. If not, prints what is missing; with `CI=true` it panics.
#[allow(dead_code, reason = "not all tests need more than the others")]
pub fn machine_has(is_there: bool, missing: impl FnOnce() -> String) -> bool {
    if is_there {
        return true;
    }
    let missing = missing();
    let ci = std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()));
    assert!(!ci, "a test over taps cannot run here: {missing}");
    eprintln!("SKIPPED: a test over taps cannot run here: {missing}");
    false
}

fn check() -> Result<(), String> {
    if !is_root() {
        return Err("only root can make taps and network namespaces".to_owned());
    }
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Err(format!("/dev/net/tun: {error}"));
    }
    for (program, package) in PROGRAMS {
        let order = format!("command -v {program}");
        let found = Command::new("sh").args(["-c", &order]).stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("there is no `{program}`; install {package}"));
        }
    }
    let unshare = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !unshare.is_ok_and(|status| status.success()) {
        return Err("network namespaces are not allowed (CAP_SYS_ADMIN is missing)".to_owned());
    }
    Ok(())
}
