//! Injected faults between real Linux hosts, whose own counters and programs show the effects.
//!
//! The commands of docs/faults.md are run here.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::capture::Capture;
use crate::frames::{roce, send};
use crate::process::{Process, wait_for};
use crate::program::{Config, HOLDFAST, PATIENCE};
use crate::ready::machine_is_ready;
use crate::rig::{Host, Rig};

/// Two taps. Each poll of a tap is a system call.
const CONFIG: &str = r#"
preset: roce
ports:
  - {name: hf0, device: "net_tap0,iface=hf0", speed: 1G}
  - {name: hf1, device: "net_tap1,iface=hf1", speed: 1G}
lcores: {poll_gap: 100us}
metrics: 127.0.0.1:9464
faults: {seed: 3}
api: {writes: true}
"#;

/// A rig of two hosts whose switch takes orders at a socket.
pub struct Lab {
    /// The switch and its hosts.
    pub rig: Rig,
    socket: String,
    _directory: tempfile::TempDir,
    _config: Config,
}

/// A fast sender, a slow receiver, and headroom for all frames of a burst.
pub const FAST_TO_SLOW: &str = r#"
preset: roce
ports:
  - {name: hf0, device: "net_tap0,iface=hf0", speed: 1G}
  - {name: hf1, device: "net_tap1,iface=hf1", speed: 10M}
buffer: {size: 12MiB}
classes:
  3: {limit: 100kB, headroom: 2MB}
metrics: 127.0.0.1:9464
"#;

impl Lab {
    /// Starts the switch with the taps hf0 and hf1.
    #[track_caller]
    pub fn start(configuration: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("s").display().to_string();
        let config = Config::new(configuration);
        let mut rig = Rig::without_switch(2);
        rig.start_switch_with(&config.path(), &[("HOLDFAST_SOCKET", Path::new(&socket))]);
        rig.script_up();
        rig.hosts[0].reach(&rig.hosts[1].ipv4(), 3);
        Self { rig, socket, _directory: directory, _config: config }
    }

    /// Runs `holdfast` with `words` against the switch.
    #[track_caller]
    pub fn holdfast(&self, words: &[&str]) -> String {
        let words = [&[HOLDFAST], words, &["--socket", &self.socket]].concat();
        self.rig.inside_run(&words)
    }

    /// Runs `holdfast` like [`Lab::holdfast`]. Returns its exit code and what it says.
    #[track_caller]
    pub fn try_holdfast(&self, words: &[&str]) -> (Option<i32>, String) {
        let words = [words, &["--socket", &self.socket]].concat();
        let ended = Process::spawn(self.rig.inside_command(HOLDFAST, &words)).wait(PATIENCE);
        (ended.status.code(), ended.stdout)
    }

    #[track_caller]
    fn order(&self, fault: &str) {
        self.holdfast(&["fault", "add", fault]);
    }

    #[track_caller]
    fn clear(&self) {
        self.holdfast(&["fault", "clear"]);
    }

    /// The frames that the only fault has hit.
    #[track_caller]
    fn hits(&self) -> u64 {
        let shown: Value = serde_json::from_str(&self.holdfast(&["show", "faults", "--json"])).expect("JSON");
        shown["faults"]["list"][0]["frames"].as_u64().expect("a number")
    }

    /// Pings host 1 from host 0 with these further arguments; returns what ping says.
    #[track_caller]
    fn ping(&self, words: &[&str]) -> String {
        let (from, to) = (&self.rig.hosts[0], self.rig.hosts[1].ipv4());
        let words = [&["ping", "-n", "-i", "0.05", "-W", "5"], words, &[&to]].concat();
        from.inside.try_run(&words).unwrap_or_else(|said| said)
    }
}

/// The words of the commands of docs/faults.md. A word in apostrophes may have spaces.
fn documented() -> Vec<Vec<&'static str>> {
    let page = include_str!("../../docs/faults.md");
    let marker = "<!-- commands: run by tests/tap/faults.rs -->\n```sh\n";
    let block = page.split_once(marker).and_then(|(_, remaining)| remaining.split_once("```")).expect("commands").0;
    let words = |line: &'static str| {
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().collect::<Vec<_>>(),
            _ => vec![part],
        });
        words.skip(1).collect()
    };
    block.lines().map(words).collect()
}

/// A counter of the kernel of `host`, from a file with lines of names and of values.
#[track_caller]
fn kernel(host: &Host, file: &str, group: &str, name: &str) -> u64 {
    let text = host.inside.run(&["cat", file]);
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let index = names.split(' ').position(|other| other == name).unwrap_or_else(|| panic!("{name}: {text}"));
    values.split(' ').nth(index).and_then(|value| value.parse().ok()).expect("a value")
}

/// Sends `count` numbered datagrams from host 0 to host 1; returns the numbers in the order of their arrival.
#[track_caller]
fn datagrams(lab: &Lab, count: u8, expected: usize) -> Vec<u8> {
    let to = format!("{}:4000", lab.rig.hosts[1].ipv4());
    let receiver = lab.rig.hosts[1].inside.udp(&to);
    let sender = lab.rig.hosts[0].inside.udp(&format!("{}:4001", lab.rig.hosts[0].ipv4()));
    receiver.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    for number in 0..count {
        sender.send_to(&[number; 40], &to).expect("a datagram that leaves");
    }
    let mut buffer = [0; 64];
    let mut arrived = Vec::new();
    while arrived.len() < expected && receiver.recv(&mut buffer).is_ok() {
        arrived.push(buffer[0]);
    }
    arrived
}

#[test]
fn real_hosts_meet_the_injected_faults() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start(CONFIG);
    let said: Vec<String> = documented().iter().map(|words| lab.holdfast(words)).collect();
    assert_eq!(
        (said[0].as_str(), &said[2..]),
        (
            "fault 1: {lose: hf1, toward: host, one_in: 5}\n",
            &["1 fault is removed\n".to_owned(), "0 faults are removed\n".to_owned()][..]
        )
    );
    assert!(said[1].contains("{lose: hf1, toward: host, one_in: 5}"), "{}", said[1]);
    // Counted loss: one in five of the requests.
    lab.order("{lose: hf1, one_in: 5, toward: host, flow: {protocol: icmp}}");
    let said = lab.ping(&["-q", "-c", "20"]);
    assert!(said.contains("20 packets transmitted, 16 received"), "{said}");
    assert_eq!(lab.hits(), 4);
    assert!(lab.holdfast(&["show", "faults"]).contains("{lose: hf1, toward: host, one_in: 5, flow: "));
    assert_eq!(lab.rig.metrics().sum("holdfast_faults_active", &[("port", "hf1")]) as u64, 1);
    lab.clear();

    lab.order("{duplicate: hf0, toward: host, flow: {protocol: icmp}}");
    let said = lab.ping(&["-q", "-c", "5"]);
    // Behind the last reply ping does not wait for a copy.
    assert!(said.contains("5 received, +5 duplicates") || said.contains("5 received, +4 duplicates"), "{said}");
    lab.clear();

    lab.order("{delay: hf1, by: 200ms, toward: host, flow: {protocol: icmp}}");
    let said = lab.ping(&["-q", "-c", "5"]);
    let least =
        said.split("min/avg/max/mdev = ").nth(1).and_then(|remaining| remaining.split('/').next()?.parse::<f64>().ok());
    assert!(said.contains(" 5 received") && least.is_some_and(|ms| ms >= 200.0), "{said}");
    lab.clear();

    // The kernel counts packets with CE, if their checksum is right.
    lab.order("{mark: hf1, one_in: 2, toward: host}");
    let marked = |lab: &Lab| kernel(&lab.rig.hosts[1], "/proc/self/net/netstat", "IpExt", "InCEPkts");
    let before = marked(&lab);
    let said = lab.ping(&["-q", "-c", "10", "-Q", "2"]);
    assert!(said.contains(" 10 received"), "{said}");
    assert_eq!(marked(&lab) - before, 5);
    lab.clear();

    lab.order("{corrupt: hf1, one_in: 4, toward: host, flow: {protocol: udp, destination_port: 4000}}");
    let wrong = |lab: &Lab| kernel(&lab.rig.hosts[1], "/proc/self/net/snmp", "Udp", "InCsumErrors");
    let before = wrong(&lab);
    assert_eq!(datagrams(&lab, 8, 6), [0, 1, 2, 4, 5, 6]);
    wait_for("wrong checksums", PATIENCE, || (wrong(&lab) - before == 2).then_some(()));
    lab.clear();

    lab.order("{reorder: hf1, one_in: 4, behind: 2, toward: host, flow: {protocol: udp, destination_port: 4000}}");
    assert_eq!(datagrams(&lab, 7, 7), [0, 1, 2, 4, 5, 3, 6]);
    lab.clear();

    let stderr = lab.rig.switch().stderr();
    assert!(stderr.contains(" fault 2 begins: {lose: hf1") && stderr.contains("; frames hit: 4\n"), "{stderr}");
    let report = lab.rig.stop();
    assert_eq!(report["verdict"]["by_order"], serde_json::json!([]), "all frames were lossy");
}

#[test]
fn injected_storm_is_found_by_the_watchdog_and_breaks_by_injected_faults() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start(CONFIG);
    lab.order("{storm: hf1}");
    // DSCP 26 is lossless: these requests wait in the stopped queue until the watchdog drops them.
    let said = lab.ping(&["-q", "-c", "20", "-Q", "104", "-w", "2"]);
    assert!(said.contains(" 0 received"), "{said}");
    // The lossy class goes on.
    lab.rig.hosts[0].reach(&lab.rig.hosts[1].ipv4(), 3);
    wait_for("storm that is found", PATIENCE, || lab.rig.switch().stderr().contains(" watchdog: hf1 ").then_some(()));
    lab.clear();
    wait_for("end of the fault", PATIENCE, || lab.rig.switch().stderr().contains("fault 1 ends").then_some(()));
    wait_for("lossless frames", PATIENCE, || {
        lab.ping(&["-q", "-c", "1", "-Q", "104"]).contains(" 1 received").then_some(())
    });
    let report = lab.rig.stop();
    let verdict = &report["verdict"];
    assert_eq!(verdict["outcome"], "broken_by_order", "{verdict}");
    assert_eq!(
        (&verdict["causes"][0]["cause"], &verdict["by_order"][0]["fault"]),
        (&"watchdog".into(), &"storm".into())
    );
}

#[test]
fn injected_losses_of_lossless_frames_are_counted() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start(CONFIG);
    lab.order("{lose: hf1, one_in: 2, burst: 2, class: 3, toward: switch}");
    let said = lab.ping(&["-q", "-c", "10", "-Q", "104"]);
    assert!(said.contains("10 packets transmitted, 1 received"), "{said}");
    let report = lab.rig.stop();
    let expected = serde_json::json!([{"port": "hf1", "fault": "lose", "toward": "switch", "class": 3, "frames": 9}]);
    assert_eq!((&report["verdict"]["outcome"], &report["verdict"]["by_order"]), (&"broken_by_order".into(), &expected));
}

/// Sends 400 lossless frames to the slow host. Returns the time from the first of them to the first PFC frame at the
/// fast host, and the number of its PFC frames.
fn first_pfc(lab: &mut Lab) -> (Option<f64>, usize) {
    let (from, to) = (lab.rig.hosts[0].mac(), lab.rig.hosts[1].mac());
    let sent = |lab: &Lab| {
        lab.rig.metrics().sum("holdfast_port_sent_frames_total", &[("port", "hf1"), ("queue", "3")]) as usize
    };
    let before = sent(lab);
    let trace = Capture::start(&lab.rig.hosts[0], "ether proto 0x8808 or udp dst port 4791");
    let frames: Vec<_> = (0..400).map(|id| roce(&from, &to, id, 1000)).collect();
    send(&lab.rig.hosts[0], &frames, 10_000);
    wait_for("end of the burst", PATIENCE, || (sent(lab) >= before + frames.len()).then_some(()));
    // The last PFC frames may be late.
    wait_for("held frames", PATIENCE, || {
        (lab.rig.metrics().sum("holdfast_fault_held_frames", &[]) as usize == 0).then_some(())
    });
    let trace = trace.stop();
    let (data, pfc) = (trace.timed("udp.dstport == 4791"), trace.timed("macc"));
    (pfc.first().map(|first| first - data[0]), pfc.len())
}

#[test]
fn pfc_to_a_real_host_is_late_or_missing_by_injected_faults() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start(&format!("{FAST_TO_SLOW}faults: allowed\napi: {{writes: true}}\n"));
    lab.order("{late: hf0, response: 300ms}");
    let (first, count) = first_pfc(&mut lab);
    assert!(first.is_some_and(|seconds| seconds >= 0.3), "{first:?}");
    assert_eq!(lab.hits() as usize, count);
    lab.clear();
    lab.order("{ignore: hf0}");
    assert_eq!(first_pfc(&mut lab), (None, 0));
    assert!(lab.hits() > 0);
    lab.clear();
    let (first, _) = first_pfc(&mut lab);
    assert!(first.is_some(), "PFC is back");
    let verdict = lab.rig.stop()["verdict"].take();
    assert_eq!(verdict["outcome"], "broken_by_order", "{verdict}");
    let faults: Vec<&str> =
        verdict["by_order"].as_array().expect("rows").iter().filter_map(|row| row["fault"].as_str()).collect();
    assert_eq!((faults, &verdict["causes"]), (vec!["late", "ignore"], &serde_json::json!([])));
}
