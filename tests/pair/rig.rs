//! Two switches, the link between them, and the position of the congested class along the path.

use serde_json::Value;

use crate::interface;
use crate::metrics::Exposition;
use crate::namespace::{Namespace, unique_prefix};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE, dpdk_leftovers, run_arguments};
use crate::quiet;

/// The configurations under test, with their interfaces and the ports of their metrics.
const FIRST: (&str, &str, u16) = (include_str!("../../conf/pair-a.yaml"), "hfa", 9464);
const SECOND: (&str, &str, u16) = (include_str!("../../conf/pair-b.yaml"), "hfb", 9465);

/// Bytes of the congested class that the second switch's bottleneck holds when it sends XOFF: `limit` in its
/// configuration.
const LIMIT: f64 = 2.0 * 1024.0 * 1024.0;
/// At this depth XON is still 384 frames away, a third of a second.
const FAR_FROM_XON: f64 = LIMIT - 768.0 * 1024.0;

/// The congested class at both ends of the middle link.
pub const MIDDLE: [(&str, &str); 2] = [("port", "up"), ("priority", "3")];
/// The congested class at the link, as a class of received frames.
pub const MIDDLE_IN: [(&str, &str); 2] = [("port", "up"), ("tc", "3")];
/// The congested class at the link, as an egress queue.
pub const MIDDLE_OUT: [(&str, &str); 2] = [("port", "up"), ("queue", "3")];
/// The egress queue of the bottleneck.
pub const SLOW_OUT: [(&str, &str); 2] = [("port", "slow"), ("queue", "3")];

/// Names of metrics with labels for port and class.
pub const SENT: &str = "holdfast_port_sent_frames_total";
pub const RECEIVED: &str = "holdfast_port_received_frames_total";
pub const PAUSED: &str = "holdfast_pfc_paused";
pub const XOFF: &str = "holdfast_pfc_xoff";

/// Both switches. Dropping this value ends the processes first, then removes the namespaces and with them the link.
pub struct Rig {
    /// The switch with the senders.
    pub first: Switch,
    /// The switch with the receiver.
    pub second: Switch,
}

/// A switch, running or not.
pub struct Switch {
    process: Option<Process>,
    /// The namespace in which it runs, with its interface.
    pub host: Host,
    config: Config,
    metrics: u16,
}

/// The machine of one switch: a namespace with one end of the middle link.
pub struct Host {
    /// The namespace.
    pub inside: Namespace,
    /// The interface at this end of the link.
    pub interface: String,
}

impl Rig {
    /// Creates the link and both switches without starting them. `edit` changes the configuration of the first one.
    #[track_caller]
    pub fn new(edit: impl FnOnce(String) -> String) -> Self {
        let prefix = unique_prefix();
        let (control, dataplane) = cpus();
        let first = edit(on_cpus(FIRST.0, (0, 1), (control, dataplane)));
        let second = on_cpus(SECOND.0, (1, 0), (dataplane, control));
        let rig = Self {
            first: Switch::new(&prefix, FIRST.1, &first, FIRST.2),
            second: Switch::new(&prefix, SECOND.1, &second, SECOND.2),
        };
        let (here, there) = (&rig.first.host, &rig.second.host);
        let peer = namespace(&prefix, SECOND.1);
        here.inside.run(&["ip", "link", "add", FIRST.1, "type", "veth", "peer", "name", SECOND.1, "netns", &peer]);
        for host in [here, there] {
            // Without addresses the kernel sends nothing, so every frame on the link comes from a switch.
            host.inside.run(&["ip", "link", "set", "dev", &host.interface, "addrgenmode", "none", "up"]);
        }
        rig
    }

    /// Starts both switches, the one with the receiver first.
    #[track_caller]
    pub fn start(&mut self) {
        self.second.start();
        self.first.start();
    }

    /// Waits until the first switch is paused for a longer time and all its frames have arrived. Returns the frames of
    /// the congested class that have passed the link.
    #[track_caller]
    pub fn wait_for_hold(&self) -> u64 {
        wait_for("lasting pause on the middle link", PATIENCE, || {
            let (first, second) = (self.first.metrics(), self.second.metrics());
            let (sent, received) = (first.sum(SENT, &MIDDLE_OUT), second.sum(RECEIVED, &MIDDLE_IN));
            let is_held = first.sum(PAUSED, &MIDDLE) == 1.0
                && second.sum(XOFF, &MIDDLE) == 1.0
                && second.sum("holdfast_group_used_bytes", &MIDDLE) > FAR_FROM_XON
                && sent == received;
            is_held.then_some(sent as u64)
        })
    }

    /// Waits until the second switch has received every frame, of any class, that was ever sent from the first one's
    /// end. The second switch must have run all the time.
    #[track_caller]
    pub fn wait_until_all_arrived(&self) {
        let link = interface::look(&self.first.host.inside, &self.first.host.interface);
        let sent = link["stats64"]["tx"]["packets"].as_f64().expect("a count");
        let mut received = 0.0;
        wait_for(&format!("last of {sent} frames"), PATIENCE, || {
            received = self.second.metrics().sum("holdfast_device_received_frames_total", &[("port", "up")]);
            (received >= sent).then_some(())
        });
        assert_eq!(received, sent);
    }

    /// Asserts that every frame sent from one end of the link reached the other. Returns the losses that the ends' own
    /// counters show.
    #[track_caller]
    pub fn link_losses(&self) -> Vec<(String, u64)> {
        let mut losses = Vec::new();
        for (from, to) in [(&self.first.host, &self.second.host), (&self.second.host, &self.first.host)] {
            let packets = |host: &Host, side: &str| {
                interface::look(&host.inside, &host.interface)["stats64"][side]["packets"].clone()
            };
            assert_eq!(packets(from, "tx"), packets(to, "rx"), "{} to {}", from.interface, to.interface);
            losses.extend(interface::losses(&from.inside, &from.interface));
        }
        losses.retain(|(_, count)| *count > 0);
        losses
    }

    /// Asserts that the link lost nothing except at most `unheard` PFC frames. The second switch sent those while there
    /// was no first one: without a listener the kernel counts frames of that type as dropped.
    #[track_caller]
    pub fn assert_lost_only_pfc(&self, unheard: u64) {
        let losses = self.link_losses();
        let explained = |loss: &(String, u64)| loss.0 == "hfa rx dropped" && loss.1 <= unheard;
        assert!(losses.iter().all(explained), "{losses:?}, and {unheard} PFC frames that nobody heard");
    }
}

impl Switch {
    fn new(prefix: &str, interface: &str, config: &str, metrics: u16) -> Self {
        let inside = Namespace::new(namespace(prefix, interface));
        let host = Host { inside, interface: interface.to_owned() };
        Self { process: None, host, config: Config::new(config), metrics }
    }

    /// Starts the switch and waits until it serves metrics, which it does once it polls.
    #[track_caller]
    pub fn start(&mut self) {
        let mut command = self.host.inside.command(HOLDFAST);
        command.args(["run", &self.config.path(), "--json"]).args(run_arguments());
        let mut process = Process::spawn(command);
        wait_for("running switch", PATIENCE, || {
            assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
            self.host.inside.get(self.metrics, "/metrics")
        });
        self.process = Some(process);
    }

    /// Returns the metrics as Prometheus would read them now.
    #[track_caller]
    pub fn metrics(&self) -> Exposition {
        Exposition::parse(&self.host.inside.get(self.metrics, "/metrics").expect("a switch that answers"))
    }

    /// Kills the switch and checks that it leaves no files behind.
    #[track_caller]
    pub fn kill(&mut self) {
        self.tell_gap();
        let process = self.process.take().expect("it was started");
        let pid = process.pid();
        process.signal("KILL");
        assert_eq!(process.wait(PATIENCE).status.code(), None);
        assert_eq!(dpdk_leftovers(pid), [""; 0]);
    }

    /// Reports the longest poll gap of the switch so far.
    fn tell_gap(&self) {
        quiet::saw_gap_of(self.host.inside.get(self.metrics, "/metrics"));
    }

    /// Sends the switch a signal.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        self.process.as_ref().expect("it was started").signal(name);
    }

    /// Terminates the switch with SIGTERM and returns its report.
    #[track_caller]
    pub fn end(&mut self) -> Value {
        let process = self.process.take().expect("it was started");
        process.signal("TERM");
        let ended = process.wait(2 * PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let report = crate::program::report(&ended);
        quiet::saw_gap(report["polls"]["gap_highest_ns"].as_u64().expect("a gap"));
        report
    }

    /// Terminates the switch and returns its report. Asserts that it lost nothing and holds nothing.
    #[track_caller]
    pub fn stop(&mut self) -> Value {
        let report = self.end();
        assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
        assert_eq!(crate::program::sum(&report, "dropped_frames", false), 0, "{}", report["ports"]);
        for port in report["ports"].as_array().expect("ports") {
            let lost = (&port["receive_missed_frames"], &port["receive_no_buffer_frames"]);
            assert_eq!(lost, (&0.into(), &0.into()), "{port}");
        }
        let held = (&report["held"]["cells"], &report["held"]["frames"]);
        assert_eq!(held, (&0.into(), &0.into()), "{}", report["verdict"]);
        report
    }

    /// Waits until the switch holds no frame and no cell, pauses no peer and is not paused.
    #[track_caller]
    pub fn wait_until_idle(&self) -> Exposition {
        wait_for("idle switch", PATIENCE, || {
            let metrics = self.metrics();
            let left = [
                "holdfast_held_frames",
                "holdfast_group_used_bytes",
                "holdfast_group_headroom_bytes",
                "holdfast_pool_used_bytes",
                "holdfast_queue_bytes",
                XOFF,
                PAUSED,
            ];
            left.iter().all(|name| metrics.sum(name, &[]) == 0.0).then_some(metrics)
        })
    }

    /// Waits until a counter exceeds `more`.
    #[track_caller]
    pub fn wait_for_more_than(&self, more: f64, name: &str, labels: &[(&str, &str)]) {
        wait_for(&format!("{name} {labels:?} beyond {more}"), PATIENCE, || {
            (self.metrics().sum(name, labels) > more).then_some(())
        });
    }
}

/// If a test fails, reports the poll gaps of its switches.
impl Drop for Switch {
    fn drop(&mut self) {
        if std::thread::panicking() && self.process.is_some() {
            self.tell_gap();
        }
    }
}

/// Returns the name of the namespace with this end of the link.
fn namespace(prefix: &str, interface: &str) -> String {
    format!("{prefix}-{interface}")
}

/// Returns the first and the last CPU that a test may use. On a machine with two, each switch polls on one.
fn cpus() -> (u32, u32) {
    let status = std::fs::read_to_string("/proc/self/status").expect("our own status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("a list of CPUs");
    let numbers: Vec<u32> = list.trim().split([',', '-']).map(|number| number.parse().expect("a CPU")).collect();
    (numbers[0], numbers[numbers.len() - 1])
}

/// Returns `config` with other CPUs for control and dataplane.
#[track_caller]
fn on_cpus(config: &str, were: (u32, u32), are: (u32, u32)) -> String {
    let lines = |(control, dataplane)| format!("  control: {control}\n  dataplane: {dataplane}\n");
    assert!(config.contains(&lines(were)), "{config}");
    // Without LLDP every frame on the link is one of a flow or PFC.
    config.replace(&lines(were), &lines(are)) + "\nlldp: off\n"
}

/// Returns the port `name` of a report.
#[track_caller]
pub fn port<'a>(report: &'a Value, name: &str) -> &'a Value {
    named(&report["ports"], name)
}

/// Returns the host `name` of a report.
#[track_caller]
pub fn host<'a>(report: &'a Value, name: &str) -> &'a Value {
    named(&report["hosts"], name)
}

#[track_caller]
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().expect("a list").iter().find(|item| item["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {list}"))
}

/// Returns a counter of a class at a port of a report.
#[track_caller]
pub fn count(report: &Value, name: &str, class: u8, field: &str) -> u64 {
    let classes = port(report, name)["classes"].as_array().expect("classes");
    let found = classes.iter().find(|item| item["class"] == class);
    found.map_or(0, |found| found[field].as_u64().unwrap_or_else(|| panic!("no {field}: {found}")))
}

/// Returns the frames that a report's flows of a class have sent.
#[track_caller]
pub fn flows_sent(report: &Value, class: u8) -> u64 {
    let flows = report["flows"].as_array().expect("flows").iter();
    flows.filter(|flow| flow["class"] == class).map(|flow| flow["sent_frames"].as_u64().expect("a count")).sum()
}
