//! Runs a variant of a scenario and reads its report.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The report of one variant, as `holdfast sim --format json` prints it.
pub struct Report(Value);

impl Report {
    /// Runs a case. `variant` is empty for a scenario without variants.
    #[track_caller]
    pub fn of(case: u8, variant: &str) -> Self {
        Self::of_seed(case, variant, 1)
    }

    /// Runs a case with the random draws of `seed`.
    #[track_caller]
    pub fn of_seed(case: u8, variant: &str, seed: u64) -> Self {
        let file = format!("conf/sonic/case-{case:02}.yaml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).args(["sim", &file, "-q", "--format", "json"]);
        command.args(["--seed", &seed.to_string()]);
        if !variant.is_empty() {
            command.args(["--variant", variant]);
        }
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{command:?}: {output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["ending"], "drained", "{file}, {variant}");
        Self(report)
    }

    /// The reasons why a scenario may lose lossless frames.
    pub fn not_promised(&self) -> usize {
        self.0["not_promised"].as_array().expect("a list").len()
    }

    fn flows(&self) -> impl Iterator<Item = &Value> {
        self.0["flows"].as_array().expect("a list").iter()
    }

    /// Sums `key` over the flows of lossless or of lossy classes.
    #[track_caller]
    pub fn flow_sum(&self, lossless: bool, key: &str) -> u64 {
        self.flows().filter(|flow| flow["lossless"] == lossless).map(|flow| count(flow, key)).sum()
    }

    /// Sums `key` over the flows from `host`.
    #[track_caller]
    pub fn sum_from(&self, host: &str, key: &str) -> u64 {
        self.flows().filter(|flow| flow["from"] == host).map(|flow| count(flow, key)).sum()
    }

    /// The number of flows whose messages are incomplete, or which failed.
    pub fn incomplete(&self) -> usize {
        let is_incomplete = |flow: &&Value| {
            flow["has_failed"] == true || count(flow, "messages") != count(&flow["completion"], "count")
        };
        self.flows().filter(is_incomplete).count()
    }

    fn ports(&self) -> impl Iterator<Item = &Value> {
        let switches = self.0["switches"].as_array().expect("a list").iter();
        switches.flat_map(|switch| switch["ports"].as_array().expect("a list"))
    }

    /// Sums `key` of a class over all ports of all switches.
    #[track_caller]
    pub fn class_sum(&self, class: u8, key: &str) -> u64 {
        let classes = self.ports().flat_map(|port| port["classes"].as_array().expect("a list"));
        classes.filter(|of| of["class"] == class).map(|of| count(of, key)).sum()
    }

    /// Reads `key` of a class at `port`; zero if the class had no traffic.
    #[track_caller]
    pub fn class_at(&self, port: &str, class: u8, key: &str) -> u64 {
        let port = self.ports().find(|of| of["name"] == port).unwrap_or_else(|| panic!("no port {port}"));
        let class = port["classes"].as_array().expect("a list").iter().find(|of| of["class"] == class);
        class.map_or(0, |class| count(class, key))
    }

    /// Asserts that the only switch and its hosts counted the same PFC frames at each port, in both directions.
    /// `hosts` are those at ports p1, p2 and so on.
    #[track_caller]
    pub fn assert_pfc_counters_match(&self, hosts: &[&str]) {
        for (number, host) in hosts.iter().enumerate() {
            let name = format!("p{}", number + 1);
            let port = self.ports().find(|port| port["name"] == name.as_str()).expect("a port");
            let host = self.0["hosts"].as_array().expect("a list").iter().find(|of| of["name"] == *host);
            let host = host.expect("a host");
            assert_eq!(count(port, "pfc_sent_frames"), count(host, "pfc_received_frames"), "{name}");
            assert_eq!(count(port, "pfc_received_frames"), count(host, "pfc_sent_frames"), "{name}");
        }
    }

    /// The frames that each next hop of a router received.
    pub fn next_hops(&self, switch: &str) -> Vec<u64> {
        let switches = self.0["switches"].as_array().expect("a list");
        let switch = switches.iter().find(|of| of["name"] == switch).expect("a switch");
        let hops = switch["next_hops"].as_array().expect("a router");
        hops.iter().map(|hop| count(hop, "frames")).collect()
    }

    /// Asserts that nothing of lossless classes was lost and that the receivers missed nothing.
    #[track_caller]
    pub fn assert_lossless(&self) {
        assert_eq!(self.not_promised(), 0);
        assert!(self.flow_sum(true, "sent_frames") > 1000, "there is traffic");
        for key in ["lost_frames", "naks", "repeated_frames", "timeouts", "late_frames", "duplicate_frames"] {
            assert_eq!(self.flow_sum(true, key), 0, "{key}");
        }
        assert_eq!(self.incomplete(), 0);
    }

    /// Asserts that no packet was marked and no CNP was sent.
    #[track_caller]
    pub fn assert_no_mark_and_no_cnp(&self) {
        for lossless in [true, false] {
            assert_eq!((self.flow_sum(lossless, "marked_frames"), self.flow_sum(lossless, "cnps")), (0, 0));
        }
        for class in 0..8 {
            assert_eq!(self.class_sum(class, "marked_frames"), 0, "class {class}");
        }
        assert_eq!(self.class_sum(5, "received_frames"), 0, "CNPs");
    }

    /// Asserts that ACKs passed in class 6 and that all that came left.
    #[track_caller]
    pub fn assert_acks_in_class_6(&self) {
        let received = self.class_sum(6, "received_frames");
        assert!(received > 0, "no ACK in class 6");
        assert_eq!(received, self.class_sum(6, "sent_frames"));
    }

    /// XOFFs that the switches sent for a class.
    #[track_caller]
    pub fn xoffs(&self, class: u8) -> u64 {
        self.class_sum(class, "pfc_sent_xoff")
    }
}

#[track_caller]
fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key}: {value}"))
}
