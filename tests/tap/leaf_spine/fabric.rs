//! The fabric of `conf/leaf-spine.sh`.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::LONG;
use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, mortal, wait_for};
use crate::program::{HOLDFAST, PATIENCE};
use crate::quiet;
use crate::ready::{machine_has, machine_is_ready};
use crate::rig::METRICS;
use crate::services::stop_orphans;

/// The script under test.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/leaf-spine.sh");
/// Directory of FRR's daemons.
pub const FRR: &str = "/usr/lib/frr";
/// The switches.
pub const SWITCHES: [&str; 4] = ["leaf1", "leaf2", "spine1", "spine2"];

/// Time between two comparisons.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether everything is there. If not, prints the reason; with `CI=true` it panics.
pub fn machine_has_frr() -> bool {
    if !machine_is_ready() {
        return false;
    }
    machine_has(Path::new(FRR).join("frrinit.sh").exists(), || format!("there is no {FRR}/frrinit.sh; install frr"))
}

/// Four switches and two hosts. Dropping this value ends all processes and removes all namespaces.
pub struct Fabric {
    prefix: String,
    state: TempDir,
}

/// A next hop: prefix, gateway, interface.
type Hop = (String, String, String);

impl Fabric {
    /// Starts the fabric. The script returns when the hosts reach each other by both spines.
    #[track_caller]
    pub fn start() -> Self {
        stop_orphans();
        let prefix = format!("{}-", unique_prefix());
        let state = tempfile::tempdir().expect("a directory");
        // FRR's daemons become the user frr.
        fs::set_permissions(state.path(), Permissions::from_mode(0o755)).expect("an own directory");
        let fabric = Self { prefix, state };
        fabric.script(&["up"]);
        fabric
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = mortal(SCRIPT);
        command.args(words).env("HOLDFAST_PREFIX", &self.prefix).env("HOLDFAST", HOLDFAST);
        command.env("HOLDFAST_STATE", self.state.path().join("fabric"));
        command.env("HOLDFAST_WAIT", LONG.as_secs().to_string());
        command
    }

    /// Runs the script, which must succeed. Returns its output.
    #[track_caller]
    pub fn script(&self, words: &[&str]) -> String {
        let ended = Process::spawn(self.command(words)).wait(3 * LONG);
        assert!(ended.status.success(), "{words:?}: {ended:?}\n{}", self.logs());
        ended.stdout
    }

    /// The last lines that the switches wrote to standard error.
    fn logs(&self) -> String {
        let log = |name: &&str| {
            let text = fs::read_to_string(self.state.path().join(format!("fabric/{name}.log")));
            format!("{name}: {}\n", text.unwrap_or_default())
        };
        SWITCHES.iter().map(log).collect()
    }

    /// The namespace of a host.
    pub fn host(&self, number: u8) -> Namespace {
        Namespace::borrowed(format!("{}h{number}", self.prefix))
    }

    /// Pings an address from a host until three answers have come in a row.
    #[track_caller]
    pub fn ping(&self, host: &str, address: &str) {
        let number = host[1..].parse().expect("a number");
        let words = ["ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "2", address];
        wait_for(&format!("answers of {address} to {host}"), LONG, || {
            self.host(number).try_run(&words).ok().filter(|said| said.contains(" 3 received"))
        });
    }

    /// Pings an address from host 1 with a time to live that ends at a spine. Returns the output.
    pub fn traceroute(&self, address: &str) -> String {
        let words = ["ping", "-n", "-c", "3", "-W", "2", "-t", "2", address];
        self.host(1).try_run(&words).unwrap_or_else(|output| output)
    }

    /// Sends TCP from host 1 to host 2 for two seconds. Returns the bits a second that arrived.
    #[track_caller]
    pub fn iperf(&self, address: &str) -> f64 {
        let mut server = self.host(2).command("iperf3");
        server.args(["-s", "-1", "--forceflush"]);
        let server = Process::spawn(server);
        wait_for("iperf3 server", PATIENCE, || server.stdout().contains("Server listening").then_some(()));
        let said = self.host(1).run(&["iperf3", "-J", "-t", "2", "-c", address]);
        let report: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        server.wait(PATIENCE);
        report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{report}"))
    }

    fn answer(&self, switch: &str) -> Option<String> {
        Namespace::borrowed(format!("{}{switch}-ports", self.prefix)).get(METRICS, "/metrics")
    }

    fn metrics(&self, switch: &str) -> Option<Exposition> {
        self.answer(switch).map(|text| Exposition::parse(&text))
    }

    /// Frames that a port has sent from its queue 3.
    pub fn class_3_sent(&self, switch: &str, port: &str) -> f64 {
        let metrics = self.metrics(switch).expect("a switch that answers");
        metrics.sum("holdfast_port_sent_frames_total", &[("port", port), ("queue", "3")])
    }

    /// Drops of all switches, by port, class and reason.
    pub fn drops(&self) -> String {
        let of = |switch: &&str| {
            let drops = self.metrics(switch).map(|metrics| metrics.nonzero("holdfast_port_dropped_frames_total"));
            format!("{switch}: {drops:#?}\n")
        };
        SWITCHES.iter().map(of).collect()
    }

    /// Frames of class 3 that a switch has dropped.
    pub fn lossless_drops(&self, switch: &str) -> f64 {
        let metrics = self.metrics(switch).expect("a switch that answers");
        metrics.sum("holdfast_port_dropped_frames_total", &[("tc", "3")])
    }

    /// Frames of a cause that a switch has given to its control plane.
    pub fn punted(&self, switch: &str, cause: &str) -> f64 {
        let metrics = self.metrics(switch).expect("a switch that answers");
        metrics.sum("holdfast_punted_frames_total", &[("cause", cause)])
    }

    /// Whether an interface has a link for Linux.
    pub fn has_link(&self, switch: &str, interface: &str) -> bool {
        let inside = Namespace::borrowed(format!("{}{switch}", self.prefix));
        inside.run(&["ip", "-br", "link", "show", "dev", interface]).contains("LOWER_UP")
    }

    /// Whether routes send packets by an interface.
    pub fn is_usable(&self, switch: &str, interface: &str) -> bool {
        let metrics = self.metrics(switch).expect("a switch that answers");
        metrics.labels_of_nonzero("holdfast_next_hop_usable", "interface").iter().any(|name| name == interface)
    }

    /// Waits until both leaves have `paths` paths to each other's host in both families, and every switch forwards by
    /// the routes of its kernel.
    #[track_caller]
    pub fn wait_for_paths(&self, paths: usize) {
        for (leaf, other) in [("leaf1", 2), ("leaf2", 1)] {
            let prefixes = [format!("10.1.{other}.0/24"), format!("fd00:1:{other}::/64")];
            wait_for(&format!("{paths} paths of {leaf}"), LONG, || {
                prefixes.iter().all(|prefix| self.paths_to(leaf, prefix) == paths).then_some(())
            });
        }
        for switch in SWITCHES {
            let end = Instant::now() + LONG;
            loop {
                let (kernel, forwarding) = (self.kernel_hops(switch), self.forwarding_hops(switch));
                if kernel == forwarding && !kernel.is_empty() {
                    break;
                }
                assert!(Instant::now() < end, "{switch}: {kernel:#?} in the kernel, {forwarding:#?} in use");
                sleep(AGAIN);
            }
        }
    }

    /// Adds (`add`) an address to the loopback of a switch, whose BGP announces it, or removes it (`del`).
    #[track_caller]
    pub fn announce(&self, switch: &str, order: &str, address: &str) {
        let inside = Namespace::borrowed(format!("{}{switch}", self.prefix));
        inside.run(&["ip", "address", order, address, "dev", "lo"]);
    }

    /// Waits until the kernel of a switch has a route of BGP with `paths` next hops; with 0, until it has none.
    #[track_caller]
    pub fn wait_for_route(&self, switch: &str, prefix: &str, paths: usize) {
        wait_for(&format!("{paths} paths of {switch} to {prefix}"), LONG, || {
            (self.paths_to(switch, prefix) == paths).then_some(())
        });
    }

    /// Next hops of BGP's route to a prefix in the kernel of a switch's namespace.
    pub fn paths_to(&self, switch: &str, prefix: &str) -> usize {
        self.kernel_hops(switch).iter().filter(|hop| hop.0 == prefix).count()
    }

    /// Next hops of BGP's routes in the kernel of a switch's namespace.
    fn kernel_hops(&self, switch: &str) -> BTreeSet<Hop> {
        let inside = Namespace::borrowed(format!("{}{switch}", self.prefix));
        let mut hops = BTreeSet::new();
        for family in ["-4", "-6"] {
            let said = inside.run(&["ip", "-j", family, "route", "show", "proto", "bgp"]);
            for route in list(&said) {
                let prefix = prefix_of(text(&route["dst"]));
                let each = route["nexthops"].as_array().cloned().unwrap_or_else(|| vec![route.clone()]);
                for hop in each {
                    let gateway = hop["gateway"].as_str().or(hop["via"]["host"].as_str()).unwrap_or_default();
                    hops.insert((prefix.clone(), gateway.to_owned(), text(&hop["dev"]).to_owned()));
                }
            }
        }
        hops
    }

    /// Usable next hops of the kernel's routes that a switch forwards by.
    fn forwarding_hops(&self, switch: &str) -> BTreeSet<Hop> {
        let said = self.script(&["show", switch, "routes", "--source", "kernel", "--json"]);
        let shown: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        let mut hops = BTreeSet::new();
        for route in shown["routes"]["entries"].as_array().unwrap_or_else(|| panic!("{shown}")) {
            for hop in route["next_hops"].as_array().into_iter().flatten().filter(|hop| hop["usable"] == true) {
                let words = [&route["prefix"], &hop["address"], &hop["interface"]].map(|value| text(value).to_owned());
                let [prefix, address, interface] = words;
                hops.insert((prefix, address, interface));
            }
        }
        hops
    }

    /// The number of the process of a switch (`leaf1`) or of a daemon of its FRR (`leaf1/zebra`).
    #[track_caller]
    pub fn pid(&self, name: &str) -> String {
        self.try_pid(name).expect("a number")
    }

    fn try_pid(&self, name: &str) -> Option<String> {
        let file = match name.contains('/') {
            true => PathBuf::from(format!("/run/frr/{}{name}.pid", self.prefix)),
            false => self.state.path().join(format!("fabric/{name}.pid")),
        };
        Some(fs::read_to_string(file).ok()?.trim().to_owned()).filter(|pid| !pid.is_empty())
    }

    /// Waits until a process has been replaced by another.
    #[track_caller]
    pub fn wait_for_another(&self, name: &str, dead: &str) {
        wait_for(&format!("another {name}"), LONG, || self.try_pid(name).filter(|pid| pid != dead));
    }

    /// Sends a process a signal, and does not wait for its effect.
    #[track_caller]
    pub fn signal(&self, name: &str, signal: &str) {
        signal_to(&self.pid(name), signal);
    }

    /// Kills a process.
    #[track_caller]
    pub fn kill(&self, name: &str) {
        let pid = self.pid(name);
        signal_to(&pid, "KILL");
        let is_over = |pid: &str| match fs::read_to_string(format!("/proc/{pid}/status")) {
            // Other threads may still run.
            Ok(status) => status.contains("State:\tZ") && status.contains("Threads:\t1\n"),
            Err(_) => true,
        };
        wait_for("end of the process", PATIENCE, || is_over(&pid).then_some(()));
    }

    /// Removes the file by which FRR knows a daemon, which then survives FRR's stop.
    #[track_caller]
    pub fn lose_pid(&self, daemon: &str) {
        fs::remove_file(format!("/run/frr/{}{daemon}.pid", self.prefix)).expect("the file of a daemon");
    }

    /// Ends everything, and asserts that nothing is left.
    #[track_caller]
    pub fn stop(&self) {
        SWITCHES.iter().for_each(|switch| quiet::saw_gap_of(self.answer(switch)));
        self.script(&["down"]);
        let left: Vec<String> =
            crate::namespace::list().into_iter().filter(|name| name.starts_with(&self.prefix)).collect();
        assert_eq!(left, [""; 0]);
        for switch in SWITCHES {
            for place in ["/etc/frr", "/run/frr"] {
                let left = format!("{place}/{}{switch}", self.prefix);
                assert!(!Path::new(&left).exists(), "{left} is left");
            }
            let pattern = format!("^/usr/lib/frr/.* -N {}{switch} ", self.prefix);
            let left = Command::new("pgrep").args(["-f", &pattern]).output().expect("pgrep").stdout;
            assert_eq!(String::from_utf8_lossy(&left), "", "daemons of {switch} are left");
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        if std::thread::panicking() {
            SWITCHES.iter().for_each(|switch| quiet::saw_gap_of(self.answer(switch)));
            eprintln!("{}", self.logs());
        }
        // A panic here, after another one, would end all tests.
        let _ = self.command(&["down"]).output();
    }
}

#[track_caller]
fn signal_to(pid: &str, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), pid]).output().expect("there is `kill`");
    assert!(sent.status.success(), "{sent:?}");
}

/// Parses the output of a command, which has none for an empty list.
pub fn list(text: &str) -> Vec<Value> {
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `ip` shows a prefix of one address without its length.
fn prefix_of(text: &str) -> String {
    match text.contains('/') {
        true => text.to_owned(),
        false if text.contains(':') => format!("{text}/128"),
        false => format!("{text}/32"),
    }
}
