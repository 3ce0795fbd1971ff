//! iperf3 between hosts.

use std::time::Duration;

use serde_json::Value;

use crate::process::{Process, wait_for};
use crate::program::PATIENCE;
use crate::rig::{Host, Rig};

/// The traffic of a client.
#[derive(Clone, Copy)]
pub enum Load {
    /// TCP at its own rate.
    Tcp,
    /// UDP at this rate in bits per second.
    Udp(u32),
}

/// A server on each host for each of its peers. All hosts are peers of each other.
pub struct Servers {
    _processes: Vec<Process>,
}

/// Returns the port on which host `to` serves host `from`. A server accepts one client at a time.
fn port(from: usize, to: usize) -> String {
    (5200 + 10 * to + from).to_string()
}

impl Servers {
    /// Starts the servers.
    pub fn start(rig: &Rig) -> Self {
        let mut processes = Vec::new();
        for (to, host) in rig.hosts.iter().enumerate() {
            for from in (0..rig.hosts.len()).filter(|from| *from != to) {
                let mut command = host.inside.command("iperf3");
                command.args(["-s", "-p", &port(from, to), "--forceflush"]);
                processes.push(Process::spawn(command));
            }
        }
        for process in &processes {
            wait_for("iperf3 server", PATIENCE, || process.stdout().contains("Server listening").then_some(()));
        }
        Self { _processes: processes }
    }
}

/// Sends `load` for `seconds` along all `pairs` at the same time, and returns the report of each client.
#[track_caller]
pub fn run(rig: &Rig, pairs: &[(usize, usize)], load: Load, seconds: u32) -> Vec<Value> {
    let clients: Vec<_> =
        pairs.iter().map(|&(from, to)| client(&rig.hosts[from], &rig.hosts[to], from, to, load, seconds)).collect();
    let limit = PATIENCE + Duration::from_secs(seconds.into());
    let reports = clients.into_iter().map(|client| {
        let ended = client.wait(limit);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert!(ended.status.success() && report["error"].is_null(), "{}", report["error"]);
        report["end"].clone()
    });
    reports.collect()
}

fn client(from: &Host, to: &Host, sender: usize, receiver: usize, load: Load, seconds: u32) -> Process {
    let mut command = from.inside.command("iperf3");
    command.args(["-J", "-c", &to.ipv4(), "-p", &port(sender, receiver), "-t", &seconds.to_string()]);
    if let Load::Udp(rate) = load {
        // The largest socket buffer that the kernel permits, for datagrams that arrive while the receiving process
        // waits for a CPU.
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
        let most: u32 = most.trim().parse().unwrap_or(212_992);
        command.args(["-u", "-b", &rate.to_string(), "-w", &most.min(1 << 20).to_string()]);
    }
    Process::spawn(command)
}

/// Returns the datagrams that reached `host` and found its socket full: lost, but not by the network.
pub fn socket_overflows(host: &Host) -> u64 {
    let text = host.inside.run(&["cat", "/proc/self/net/snmp"]);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    both.find(|(name, _)| *name == "RcvbufErrors").and_then(|(_, value)| value.parse().ok()).expect("a counter")
}
