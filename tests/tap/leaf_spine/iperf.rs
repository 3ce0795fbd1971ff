//! iperf3 from host 1 to host 2 while a link fails: parallel streams of TCP over IPv4 and IPv6.

use std::time::Instant;

use serde_json::Value;

use super::fabric::Fabric;
use super::{LONG, SOON};
use crate::process::{Process, wait_for};
use crate::program::PATIENCE;
use crate::quiet;

/// Addresses and ports of the servers, one for each family. Host 1 has the servers, and they send (`-R`), so that the
/// reports tell when bytes arrived at host 2.
const SERVERS: [(&str, &str); 2] = [("10.1.1.2", "5301"), ("fd00:1:1::2", "5302")];
/// Streams of each family. Each has its own port, so they spread over the links.
const STREAMS: usize = 4;
/// Seconds of traffic: a link fails in the second one, and `send_through` ends after the fourth.
const SECONDS: &str = "5";
/// Rate of a stream. A host without PFC at full rate would overrun its switch, and class 3 beside it would lose frames.
const RATE: &str = "1M";
/// Bytes of a write: at this rate longer ones would be bursts.
const BLOCK: &str = "8K";

/// Running streams.
pub struct Streams {
    start: Instant,
    clients: Vec<Process>,
    servers: Vec<Process>,
}

impl Streams {
    /// Starts the streams of both families.
    #[track_caller]
    pub fn start(fabric: &Fabric) -> Self {
        let servers = SERVERS.map(|(_, port)| {
            let mut server = fabric.host(1).command("iperf3");
            server.args(["-s", "-1", "--forceflush", "-p", port]);
            let server = Process::spawn(server);
            wait_for("iperf3 server", PATIENCE, || server.stdout().contains("Server listening").then_some(()));
            server
        });
        let start = Instant::now();
        let clients = SERVERS.map(|(address, port)| {
            let mut client = fabric.host(2).command("iperf3");
            let streams = STREAMS.to_string();
            client.args(["-J", "-R", "-c", address, "-p", port, "-P", &streams]);
            client.args(["-b", RATE, "-l", BLOCK, "-i", "0.5", "-t", SECONDS]);
            Process::spawn(client)
        });
        Self { start, clients: clients.into(), servers: servers.into() }
    }

    /// Waits for the end of all streams. Asserts that each succeeded and received bytes later than a second after
    /// `failure`.
    #[track_caller]
    pub fn assert_each_goes_on_after(self, failure: Instant) {
        // A report counts from a moment after the start of its client, so an interval is never earlier than it seems.
        let moved = (failure - self.start + SOON).as_secs_f64();
        for client in self.clients {
            let ended = client.wait(LONG);
            let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
            assert!(ended.status.success() && report["error"].is_null(), "{}", report["error"]);
            let bytes = bytes_after(&report, moved);
            eprintln!("iperf3: streams received {bytes:?} bytes later than a second after the failure");
            assert!(bytes.len() == STREAMS && bytes.iter().all(|bytes| *bytes > 0), "{bytes:?}: {report:#}");
        }
        self.servers.into_iter().for_each(|server| assert!(server.wait(PATIENCE).status.success()));
    }
}

/// Bytes of each stream in the intervals that begin later than `seconds`.
fn bytes_after(report: &Value, seconds: f64) -> Vec<u64> {
    let intervals = report["intervals"].as_array().expect("intervals");
    let later = |interval: &&Value| interval["sum"]["start"].as_f64().is_some_and(|start| start >= seconds);
    let later: Vec<&Value> = intervals.iter().filter(later).collect();
    if later.is_empty() {
        quiet::too_busy(format!("iperf3 ended before {seconds} s"));
    }
    let bytes = |interval: &Value, stream: usize| interval["streams"][stream]["bytes"].as_u64().unwrap_or(0);
    (0..STREAMS).map(|stream| later.iter().map(|interval| bytes(interval, stream)).sum()).collect()
}
