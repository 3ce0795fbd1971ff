//! Mirrors and sFlow of a switch between real Linux hosts: copies in a pcapng file, at a monitor and at a collector,
//! all read by tshark.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::capture::Capture;
use crate::frames::{roce, send};
use crate::process::wait_for;
use crate::program::{Config, HOLDFAST, PATIENCE};
use crate::ready::machine_is_ready;
use crate::rig::Rig;

/// A fast sender, a slow receiver and a monitor. Class 3 is marked from 20 kB on, class 0 is dropped by its group from
/// 30 kB on.
const CONFIG: &str = r#"
preset: roce
lldp: {name: tor1}
ports:
  - {name: hf0, device: "net_tap0,iface=hf0", speed: 1G}
  - {name: hf1, device: "net_tap1,iface=hf1", speed: 10M}
  - {name: hf2, device: "net_tap2,iface=hf2", speed: 1G}
buffer: {size: 12MiB}
classes:
  0: {limit: 30kB, ecn: off}
  3: {limit: 100kB, headroom: 2MB, ecn: {kmin: 20kB, kmax: 20kB, pmax: 100%}}
metrics: 127.0.0.1:9464
api: {writes: true}
mirrors:
  - {name: events, copy: [dropped, marked], reasons: threshold, rate: 100000, to: {file: FILE}}
  - {name: monitor, copy: [dropped, marked], reasons: threshold, rate: 100000, to: {port: hf2}}
sflow: {collectors: [127.0.0.1], agent: 10.48.0.254, sample: 10, poll: 1s, drops: 1000, marks: 1000}
"#;

/// Frames of each burst.
const FRAMES: usize = 120;

/// A rig with a switch whose sessions write to a directory.
struct Lab {
    rig: Rig,
    directory: tempfile::TempDir,
    config: Config,
}

impl Lab {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let config =
            Config::new(&CONFIG.replace("FILE", &directory.path().join("events.pcapng").display().to_string()));
        let mut rig = Rig::without_switch(3);
        let socket = directory.path().join("s");
        rig.start_switch_with(&config.path(), &[("HOLDFAST_SOCKET", Path::new(&socket))]);
        rig.script_up();
        rig.hosts[0].reach(&rig.hosts[1].ipv4(), 3);
        Self { rig, directory, config }
    }

    /// Runs `holdfast` with `words` against the switch.
    #[track_caller]
    fn holdfast(&self, words: &[&str]) -> String {
        let socket = self.directory.path().join("s").display().to_string();
        self.rig.inside_run(&[&[HOLDFAST], words, &["--socket", &socket]].concat())
    }

    /// Sends a burst of `FRAMES` frames of 1000 bytes with this DSCP and ECN to the slow host.
    #[track_caller]
    fn burst(&self, dscp: u8, ecn: u8) {
        let (from, to) = (self.rig.hosts[0].mac(), self.rig.hosts[1].mac());
        let frame = |id: usize| {
            let mut frame = roce(&from, &to, id as u16, 1000);
            let sum = u32::from(!u16::from_be_bytes([frame[24], frame[25]]));
            let sum = sum + 0xffff - u32::from(frame[15]) + u32::from(dscp << 2 | ecn);
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            frame[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            frame[15] = dscp << 2 | ecn;
            frame
        };
        send(&self.rig.hosts[0], &(0..FRAMES).map(frame).collect::<Vec<_>>(), 20_000);
    }

    /// Lines of tshark about the file of events.
    #[track_caller]
    fn events(&self, fields: &[&str]) -> Vec<Vec<String>> {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-r"]).arg(self.directory.path().join("events.pcapng")).args(["-T", "fields"]);
        tshark.args(fields.iter().flat_map(|field| ["-e", *field]));
        let output = tshark.output().expect("there is tshark");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// A metric with this label.
    #[track_caller]
    fn metric(&self, name: &str, label: (&str, &str)) -> u64 {
        self.rig.metrics().sum(name, &[label]) as u64
    }
}

#[test]
fn copies_of_drops_marks_and_samples_reach_port_file_and_collector() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let monitor = Capture::start(&lab.rig.hosts[2], "udp port 4791");
    let collector = Capture::on(lab.rig.inside(), "lo", "udp port 6343");
    lab.burst(26, 2);
    lab.burst(0, 0);
    wait_for("copies of both kinds", PATIENCE, || {
        let shown = |event| lab.metric("holdfast_mirror_copies_total", ("event", event));
        (shown("dropped") > 0 && shown("marked") > 0 && shown("sampled") > 0).then_some(())
    });
    // Copies that find no room at the monitor are drops of its own port, and have no copy.
    let at_hf0 = [("port", "hf0"), ("reason", "threshold")];
    let dropped = || lab.rig.metrics().sum("holdfast_port_dropped_frames_total", &at_hf0) as usize;
    let marked = || lab.rig.metrics().sum("holdfast_ecn_marked_frames_total", &[("port", "hf1")]) as usize;
    wait_for("empty queues", PATIENCE, || {
        (lab.rig.metrics().sum("holdfast_queue_bytes", &[("port", "hf1")]) == 0.0).then_some(())
    });
    // Each copied event is in the file, with its reason and the state of its queue.
    let both = |name: &str| ["dropped", "marked"].map(|event| lab.metric(name, ("event", event))).iter().sum::<u64>();
    // The exporter of a busy machine may be late, so that copies find its queue full.
    let lost = || lab.metric("holdfast_mirror_lost_total", ("session", "events"));
    wait_for("all copies in the file", PATIENCE, || {
        (lab.events(&["frame.number"]).len() as u64 + lost() == both("holdfast_mirror_copies_total")).then_some(())
    });
    let events = lab.events(&["frame.comment", "ip.dsfield.ecn", "frame.len", "frame.interface_name"]);
    let of = |word: &str| events.iter().filter(|event| event[0].contains(word)).collect::<Vec<_>>();
    let (drops, marks) = (of(": dropped threshold: hf0 to hf1"), of(": marked with CE: hf0 to hf1"));
    let counts = (drops.len(), marks.len(), dropped(), marked());
    assert!((1..=counts.2).contains(&counts.0) && (1..=counts.3).contains(&counts.1), "{counts:?}");
    // A poll copies few bytes. Each session counts an event that is beyond them.
    let policed = both("holdfast_mirror_policed_total") as usize + lost() as usize;
    assert_eq!(events.len(), drops.len() + marks.len(), "{:?}", events.first());
    assert!(events.len() + policed >= counts.2 + counts.3, "{counts:?}, {policed} policed");
    assert!(drops.iter().all(|event| event[0].starts_with("holdfast tor1") && event[0].contains("priority group 0: ")));
    assert!(marks.iter().all(|event| event[1] == "3" && event[0].contains("queue 3: ")), "{marks:?}");
    assert!(events.iter().all(|event| event[2] == "1000" && event[3] == "hf0"), "{events:?}");

    // The monitor has whole frames, with the line behind them.
    let frames = monitor.stop().bytes("udp.port == 4791");
    let lines: Vec<String> = frames.iter().map(|frame| trailer(frame)).collect();
    let lost = lab.metric("holdfast_mirror_lost_total", ("session", "monitor")) as usize;
    // Frames of the monitor itself are dropped too.
    let drops = |labels: &[(&str, &str)]| lab.rig.metrics().sum("holdfast_port_dropped_frames_total", labels) as usize;
    let dropped = drops(&[("port", "hf2")]) - drops(&[("port", "hf2"), ("reason", "mirror_output")]);
    assert_eq!(lab.metric("holdfast_mirror_output_dropped_total", ("port", "hf2")) as usize, dropped);
    let counted = (lines.len(), lost, dropped);
    assert!(lines.len() + lost + dropped == events.len() && !lines.is_empty(), "{counted:?} of {}", events.len());
    assert!(lines.iter().all(|line| line.contains(": dropped threshold: ") || line.contains(": marked with CE: ")));

    check_collector(collector, &lab);
    let shown: Value = serde_json::from_str(&lab.holdfast(&["show", "mirrors", "--json"])).expect("JSON");
    assert!(shown.to_string().contains("\"events\""), "{shown}");
    let report = lab.rig.stop();
    assert_eq!(report["verdict"]["outcome"], "kept_as_seen", "{}", report["verdict"]);
}

/// The text behind a frame of 1000 bytes, which is hexadecimal.
fn trailer(frame: &str) -> String {
    let bytes = frame.as_bytes().chunks(2).skip(1000);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hexadecimal");
    bytes.map(|pair| char::from(byte(pair))).collect()
}

/// The collector has samples, drops with their reason, marks and counters.
fn check_collector(collector: Capture, lab: &Lab) {
    let port = ("session", "sflow-samples");
    wait_for("samples", PATIENCE, || (lab.metric("holdfast_mirror_written_total", port) > 0).then_some(()));
    // Counters follow every second.
    std::thread::sleep(Duration::from_millis(1500));
    let trace = collector.stop();
    let fields = ["sflow_245.sampletype", "sflow_245.agent"];
    let rows = trace.fields("sflow", &fields);
    assert!(rows.iter().all(|row| row[1] == "10.48.0.254"), "{rows:?}");
    let types: Vec<&str> = rows.iter().flat_map(|row| row[0].split(',')).collect();
    // Flow samples, counters, and discarded packets, which this tshark knows by number.
    for wanted in ["1", "2", "5"] {
        assert!(types.contains(&wanted), "no sample of type {wanted}: {rows:?}");
    }
}

#[test]
fn a_reload_changes_mirrors_of_a_running_switch() {
    if !machine_is_ready() {
        return;
    }
    let mut lab = Lab::start();
    let path = lab.config.path();
    let text = std::fs::read_to_string(&path).expect("a configuration");
    let file = lab.directory.path().join("events.pcapng").display().to_string();
    let other = lab.directory.path().join("other.pcapng").display().to_string();
    std::fs::write(&path, text.replace(&file, &other)).expect("a change");
    lab.holdfast(&["reload"]);
    lab.burst(0, 0);
    wait_for("events in the other file", PATIENCE, || {
        let bytes = std::fs::metadata(&other).map_or(0, |metadata| metadata.len());
        (bytes > 10_000).then_some(())
    });
    assert_eq!(lab.events(&["frame.number"]).len(), 0, "the first file has no more");
    std::fs::write(&path, text.replace("{port: hf2}", "{port: hf1}")).expect("a change");
    let socket = lab.directory.path().join("s").display().to_string();
    let mut reload = lab.rig.inside_command(HOLDFAST, &["reload", "--socket", &socket]);
    let said = reload.output().expect("holdfast");
    let said = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("needs a restart"), "{said}");
    lab.rig.stop();
}
