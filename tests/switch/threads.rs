//! Threads that do not run: the switch says which, and they are missed by nothing else.
//!
//! Perl stops a single thread as a debugger does (`ptrace`), and the thread runs again when Perl ends.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::launch::start;
use crate::process::{Process, wait_for};
use crate::program::{Config, PATIENCE, is_root};
use crate::scraping::{get, request, scrape};

/// Stops the thread `$ARGV[0]` until standard input ends: PTRACE_SEIZE, PTRACE_INTERRUPT, and `waitpid` with `__WALL`.
const STOP: &str = "my $thread = 0 + shift; syscall(101, 0x4206, $thread, 0, 0) == 0 or die $!; \
                    syscall(101, 0x4207, $thread, 0, 0) == 0 or die $!; waitpid($thread, 0x40000000); \
                    $| = 1; print qq(stopped\\n); <STDIN>;";

/// A switch with every thread that needs no namespace.
const CONFIG: &str = "\
preset: roce
ports:
  - {name: p1, device: ring, speed: 1G}
  - {name: p2, device: ring, speed: 1G}
hosts:
  - {name: h1, port: p1}
  - {name: h2, port: p2}
routing:
  interfaces: [{port: p1, addresses: [10.0.1.1/24]}]
mirrors:
  - {name: disk, copy: [dropped], to: {file: DIRECTORY/m.pcapng}}
";

/// A thread that does not run.
pub struct Stopped(Child);

impl Stopped {
    pub fn new(thread: u32) -> Self {
        let mut perl = Command::new("perl");
        perl.args(["-e", STOP, &thread.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut perl = perl.spawn().expect("perl");
        let mut line = String::new();
        let mut told = BufReader::new(perl.stdout.take().expect("it is piped"));
        told.read_line(&mut line).expect("a line");
        assert_eq!(line, "stopped\n");
        Self(perl)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The number of the switch's thread `name`; the first one is `main`.
fn thread(switch: &Process, name: &str) -> u32 {
    if name == "main" {
        return switch.pid();
    }
    let threads = std::fs::read_dir(format!("/proc/{}/task", switch.pid())).expect("threads");
    // Since 24.11 DPDK's own name for its interrupt thread is another than that of the metric.
    let is_named = |comm: &str| comm == name || (name, comm) == ("eal-intr-thread", "dpdk-intr");
    let named =
        |path: &std::path::PathBuf| std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| is_named(comm.trim()));
    let found = threads.map(|entry| entry.expect("a thread").path()).find(named);
    let number = found.and_then(|path| path.file_name()?.to_str()?.parse().ok());
    number.unwrap_or_else(|| panic!("no thread {name}"))
}

fn age(address: SocketAddr, thread: &str) -> f64 {
    scrape(address).sum("holdfast_thread_pulse_age_seconds", &[("thread", thread)])
}

#[test]
fn stopped_threads_are_named_by_readiness_metric_and_event() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = Config::new(&CONFIG.replace("DIRECTORY", &directory.path().display().to_string()));
    let (switch, address) = start(&[&config.path(), "--duration", "0"]);
    wait_for("readiness", PATIENCE, || get(address, "/readyz"));
    // Threads that give work to each other are stopped apart. The events of `main` and `stderr` cannot be read in time.
    for names in [&["control-plane", "mirror-disk", "eal-intr-thread"][..], &["mirror", "stdout"], &["stderr", "main"]]
    {
        let stopped: Vec<_> = names.iter().map(|name| Stopped::new(thread(&switch, name))).collect();
        let told = wait_for(&format!("word about {names:?}"), PATIENCE, || {
            let (head, body) = request(address, "/readyz")?;
            let is_told = |name| body.contains(&format!("thread {name} has not run for "));
            (head.starts_with("HTTP/1.1 503 ") && names.iter().all(is_told)).then_some(body)
        });
        assert_eq!(told.lines().count(), names.len(), "only {names:?} are late: {told}");
        for name in names {
            assert!(age(address, name) >= 5.0, "{name}");
        }
        // A liveness check restarts the switch if it cannot be controlled any more.
        assert_eq!(get(address, "/healthz").is_none(), names.contains(&"main"), "{names:?}");
        let wait_for_event = |name, text: String| {
            wait_for(&format!("event about {name}"), PATIENCE, || switch.stderr().contains(&text).then_some(()));
        };
        for name in names.iter().filter(|name| !["main", "stderr"].contains(name)) {
            wait_for_event(name, format!("thread: {name} has not run for 5 s"));
        }
        drop(stopped);
        wait_for(&format!("{names:?} again"), PATIENCE, || get(address, "/readyz"));
        for name in names {
            wait_for_event(name, format!("thread: {name} runs again after "));
        }
    }
    switch.signal("TERM");
    assert_eq!(switch.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn stopped_thread_of_the_servers_is_an_event_and_keeps_no_switch_from_its_end() {
    if !is_root() {
        return;
    }
    let (switch, _) = start(&["--duration", "0"]);
    let stopped = Stopped::new(thread(&switch, "api"));
    let told = "thread: api has not run for 5 s";
    wait_for("event", PATIENCE, || switch.stderr().contains(told).then_some(()));
    switch.signal("TERM");
    wait_for("report", PATIENCE, || switch.stdout().contains("\nlossless: ").then_some(()));
    // The kernel reports no end of a process with a traced thread.
    drop(stopped);
    assert_eq!(switch.wait(PATIENCE).status.code(), Some(0));
}
