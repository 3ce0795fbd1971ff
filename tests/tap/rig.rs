//! A switch in a namespace, with hosts behind its taps in theirs, created by the users' own script.
//!
//! The commands of docs/install.md are run here.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::interface;
use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Ended, Process, wait_for};
use crate::program::{HOLDFAST, PATIENCE, run_arguments};
use crate::quiet;

/// The script under test.
pub const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/tap-tor.sh");

/// The configuration that belongs to the script.
pub const TAP_TOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conf/tap-tor.yaml");

/// Default port on which switches serve metrics, each in its own namespace.
pub const METRICS: u16 = 9464;

/// The switch, its namespace and its hosts. Dropping this value ends the switch first, then removes the namespaces.
pub struct Rig {
    switch: Option<Process>,
    /// Hosts by number.
    pub hosts: Vec<Host>,
    inside: Namespace,
    prefix: String,
}

/// A host behind tap `hf<number>`.
pub struct Host {
    /// The host's namespace.
    pub inside: Namespace,
    /// The host's interface.
    pub interface: String,
    number: usize,
}

impl Rig {
    /// Starts a switch with the configuration at `config`, whose taps are hf0, hf1 and so on, and `hosts` hosts.
    #[track_caller]
    pub fn start(config: &str, hosts: usize) -> Self {
        let mut rig = Self::without_switch(hosts);
        rig.start_switch(config);
        rig.script_up();
        rig
    }

    /// Creates the namespaces without a switch.
    pub fn without_switch(hosts: usize) -> Self {
        let prefix = unique_prefix();
        let inside = Namespace::new(format!("{prefix}-switch"));
        let mut rig = Self { switch: None, hosts: Vec::new(), inside, prefix };
        (0..hosts).for_each(|_| rig.promise_host());
        rig
    }

    /// Adds a host, for which the script's next `up` makes a namespace.
    pub fn promise_host(&mut self) {
        let number = self.hosts.len();
        let inside = Namespace::promised(format!("{}-h{number}", self.prefix));
        self.hosts.push(Host { inside, interface: format!("hf{number}"), number });
    }

    /// Starts the switch.
    #[track_caller]
    pub fn start_switch(&mut self, config: &str) {
        self.start_switch_with(config, &[]);
    }

    /// Starts the switch with these variables in its environment.
    #[track_caller]
    pub fn start_switch_with(&mut self, config: &str, variables: &[(&str, &Path)]) {
        let mut command = self.inside.command(HOLDFAST);
        command.args(["run", config, "--json"]).args(run_arguments()).envs(variables.iter().copied());
        self.switch = Some(Process::spawn(command));
    }

    /// The switch's namespace.
    pub fn inside(&self) -> &Namespace {
        &self.inside
    }

    /// Runs a program in the switch's namespace and returns its standard output. Panics if it fails.
    #[track_caller]
    pub fn inside_run(&self, words: &[&str]) -> String {
        self.inside.run(words)
    }

    /// Runs the script's `up`, which waits for the taps, and waits until the switch answers.
    #[track_caller]
    pub fn script_up(&mut self) {
        let ended = Process::spawn(self.script(&["up"])).wait(PATIENCE);
        let said = self.switch.as_ref().map(Process::stderr).unwrap_or_default();
        assert!(ended.status.success(), "{ended:?}; the switch said {said:?}");
        self.wait_for_answer();
    }

    /// Waits until the switch answers.
    #[track_caller]
    pub fn wait_for_answer(&mut self) {
        wait_for("running switch", PATIENCE, || {
            let switch = self.switch.as_mut().expect("it was started");
            assert!(switch.is_running(), "it ended: {}{}", switch.stdout(), switch.stderr());
            self.inside.get(METRICS, "/metrics")
        });
    }

    /// Returns the script with `arguments`, to be run in the switch's namespace.
    pub fn script(&self, arguments: &[&str]) -> Command {
        self.inside_command(SCRIPT, arguments)
    }

    /// Returns a program to be run in the switch's namespace with the script's environment.
    pub fn inside_command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.inside.command(program);
        command.args(arguments);
        command.env("HOLDFAST_PREFIX", format!("{}-h", self.prefix));
        command.env("HOLDFAST_HOSTS", self.hosts.len().to_string());
        command.env("HOLDFAST_WAIT", PATIENCE.as_secs().to_string());
        command
    }

    /// Whether `namespace` belongs to a host of this rig.
    pub fn owns_host(&self, namespace: &str) -> bool {
        namespace.starts_with(&format!("{}-h", self.prefix))
    }

    /// Returns the metrics as Prometheus would read them now.
    #[track_caller]
    pub fn metrics(&self) -> Exposition {
        Exposition::parse(&self.inside.get(METRICS, "/metrics").expect("a switch that answers"))
    }

    /// Returns the running switch.
    pub fn switch(&mut self) -> &mut Process {
        self.switch.as_mut().expect("it was started")
    }

    /// Terminates the switch, checks an orderly end, and returns its report.
    #[track_caller]
    pub fn stop(&mut self) -> Value {
        let ended = self.end("TERM");
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        for line in ended.stderr.lines() {
            assert!(line.starts_with("t=") || line.starts_with("warning: "), "{}", ended.stderr);
        }
        for host in &self.hosts {
            assert!(!host.has_interface(), "{} is left", host.interface);
        }
        let report = crate::program::report(&ended);
        quiet::saw_gap(report["polls"]["gap_highest_ns"].as_u64().expect("a gap"));
        let held = (&report["held"]["cells"], &report["held"]["frames"]);
        assert_eq!(held, (&0.into(), &0.into()), "{}", report["verdict"]);
        report
    }

    /// Ends the switch by a signal.
    #[track_caller]
    pub fn end(&mut self, signal: &str) -> Ended {
        let process = self.switch.take().expect("it was started");
        process.signal(signal);
        process.wait(PATIENCE)
    }
}

/// If a test fails, reports the poll gap of its switch.
impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() && self.switch.is_some() {
            quiet::saw_gap_of(self.inside.get(METRICS, "/metrics"));
        }
    }
}

impl Host {
    /// Returns the host's IPv4 address.
    pub fn ipv4(&self) -> String {
        format!("10.48.0.{}", self.number + 1)
    }

    /// Returns the host's IPv6 address.
    pub fn ipv6(&self) -> String {
        format!("fd48::{}", self.number + 1)
    }

    /// Returns the host's MAC address as text.
    #[track_caller]
    pub fn mac(&self) -> String {
        self.link()["address"].as_str().expect("an address").to_owned()
    }

    /// Whether the host's interface exists.
    pub fn has_interface(&self) -> bool {
        self.inside.try_run(&["ip", "link", "show", "dev", &self.interface]).is_ok()
    }

    /// Returns the frames that the interface lost or found damaged in both directions. `rx` is towards the host, `tx`
    /// towards the switch.
    #[track_caller]
    pub fn losses(&self) -> Vec<(String, u64)> {
        interface::losses(&self.inside, &self.interface)
    }

    /// Pings `address` `count` times and asserts a reply to each. ping(8) waits for at most twice the time of the other
    /// replies, and counts a later one as lost. In that case this function pings again.
    #[track_caller]
    pub fn reach(&self, address: &str, count: u32) {
        let replies: Vec<u32> =
            (0..quiet::ATTEMPTS).map(|_| self.ping(address, count)).take_while(|n| *n < count).collect();
        if !replies.is_empty() {
            eprintln!("NOT QUIET: {} to {address}: {replies:?} of {count} answered in time", self.interface);
        }
        assert!(replies.len() < quiet::ATTEMPTS, "{} to {address}: {replies:?} of {count} answered", self.interface);
    }

    /// Pings `address` and returns the number of replies.
    pub fn ping(&self, address: &str, count: u32) -> u32 {
        let count = count.to_string();
        let words = ["ping", "-n", "-q", "-c", &count, "-i", "0.05", "-W", "2", address];
        let said = self.inside.try_run(&words).unwrap_or_else(|error| error);
        let replies = said.split(" packets transmitted, ").nth(1).and_then(|remaining| remaining.split(' ').next());
        replies.and_then(|replies| replies.parse().ok()).unwrap_or_else(|| panic!("{words:?}: {said}"))
    }

    /// Returns the state of the host's interface as `ip` shows it.
    #[track_caller]
    pub fn link(&self) -> Value {
        interface::look(&self.inside, &self.interface)
    }
}
