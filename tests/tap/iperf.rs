//! iperf3 between hosts.

use std::time::Duration;

use serde_json::Value;

use crate::process::{Process, wait_for};
use crate::program::PATIENCE;
use crate::rig::{Host, Rig};

/// What a client sends.
#[derive(Clone, Copy)]
pub enum Load {
    /// As fast as TCP goes.
    Tcp,
    /// So many bits a second.
    Udp(u32),
}

/// A server for each host and each of its peers, all hosts being each other's.
pub struct Servers {
    _processes: Vec<Process>,
}

/// Where host `to` serves host `from`: a server takes one client at a time.
fn port(from: usize, to: usize) -> String {
    (5200 + 10 * to + from).to_string()
}

impl Servers {
    /// Starts them.
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

/// Sends `load` for `seconds` along each of `pairs` at the same time; what each client reports.
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
        // Room for what arrives while the receiving process waits for a CPU; as much as the kernel gives.
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap_or_default();
        let most: u32 = most.trim().parse().unwrap_or(212_992);
        command.args(["-u", "-b", &rate.to_string(), "-w", &most.min(1 << 20).to_string()]);
    }
    Process::spawn(command)
}

/// Datagrams that reached `host` and that its socket had no room for: lost, but not by the network.
pub fn socket_overflows(host: &Host) -> u64 {
    let text = host.inside.run(&["cat", "/proc/self/net/snmp"]);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    both.find(|(name, _)| *name == "RcvbufErrors").and_then(|(_, value)| value.parse().ok()).expect("a counter")
}
