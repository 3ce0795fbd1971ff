//! A Prometheus of the test: on loopback, with the rules of conf/prometheus, and terminated with the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::process::{Process, mortal, wait_for};
use crate::tools::{repository, text};

/// Longest time until it starts, even on a machine that runs other work.
const START: Duration = Duration::from_secs(60);
/// Longest time until it answers.
const ANSWER: Duration = Duration::from_secs(30);

/// Number of attempts to start it, each on another address.
const TRIES: usize = 5;

/// Returns an address without a listener. Another process may bind it before it is used.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    listener.local_addr().expect("it is bound")
}

/// Returns status and body of the answer to a GET of `path`, or `None` without an answer.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    // HTTP/1.0: the answer is not chunked and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// A running Prometheus.
pub struct Prometheus {
    address: SocketAddr,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes `switch` once a second, with the shipped configuration otherwise.
    #[track_caller]
    pub fn start(switch: SocketAddr) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let shipped = text("conf/prometheus/prometheus.yaml");
        let mut configuration = shipped.clone();
        for (from, to) in [
            ("holdfast:9464", switch.to_string()),
            ("scrape_interval: 5s", "scrape_interval: 1s".to_owned()),
            ("evaluation_interval: 15s", "evaluation_interval: 1s".to_owned()),
        ] {
            assert!(configuration.contains(from), "{from}");
            configuration = configuration.replace(from, &to);
        }
        let file = directory.path().join("prometheus.yaml");
        std::fs::write(&file, configuration).expect("a configuration written");
        for rules in ["rules.yaml", "alerts.yaml"] {
            let from = repository("conf/prometheus").join(rules);
            std::fs::copy(from, directory.path().join(rules)).expect("rules copied");
        }
        for left in (0..TRIES).rev() {
            let address = free_address();
            let mut command = mortal("prometheus");
            command.arg(format!("--config.file={}", file.display()));
            command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
            command.arg(format!("--web.listen-address={address}")).arg("--log.level=warn");
            let mut process = Process::spawn(command);
            let is_ready = wait_for("Prometheus", START, || {
                if !process.is_running() {
                    let told = format!("{}{}", process.stdout(), process.stderr());
                    assert!(left > 0 && told.contains("address already in use"), "it ended: {told}");
                    return Some(false);
                }
                get(address, "/-/ready").filter(|(status, _)| *status == 200).map(|_| true)
            });
            if is_ready {
                return Self { address, _process: process, _directory: directory };
            }
        }
        unreachable!("the last try says why it ended")
    }

    /// Returns the answer to a request of its HTTP API.
    #[track_caller]
    fn api(&self, path: &str) -> Value {
        let (_, body) = get(self.address, path).expect("an answer");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }

    /// Returns the present number of series of `expression`. Panics if Prometheus refuses it.
    #[track_caller]
    pub fn series(&self, expression: &str) -> usize {
        let escaped: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = self.api(&format!("/api/v1/query?query={escaped}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        match answer["data"]["resultType"].as_str() {
            Some("vector") => answer["data"]["result"].as_array().map_or(0, Vec::len),
            Some("scalar") => 1,
            other => panic!("{expression}: {other:?}"),
        }
    }

    /// Returns the errors of its rule evaluations.
    pub fn rule_errors(&self) -> Vec<String> {
        let answer = self.api("/api/v1/rules");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        let rules = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules"));
        let wrong = rules.filter(|rule| rule["health"] == "err");
        wrong.map(|rule| format!("{}: {}", rule["name"], rule["lastError"])).collect()
    }
}
