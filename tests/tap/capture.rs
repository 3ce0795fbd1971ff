//! Captures of a host's interface, written by dumpcap and read by tshark.

use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::namespace::Namespace;
use crate::process::{Process, wait_for};
use crate::program::PATIENCE;
use crate::rig::Host;

/// Time after which the kernel has delivered all captured frames.
const SETTLE: Duration = Duration::from_millis(500);

/// A running capture.
pub struct Capture {
    process: Process,
    trace: Trace,
}

/// A finished capture.
pub struct Trace {
    directory: tempfile::TempDir,
}

impl Capture {
    /// Starts a capture of the frames at `host`'s interface that match `filter` (pcap-filter(7)).
    #[track_caller]
    pub fn start(host: &Host, filter: &str) -> Self {
        Self::on(&host.inside, &host.interface, filter)
    }

    /// Starts a capture like `start` that survives the removal of the interface, and keeps the frames just before it.
    /// Frames have Linux's own header instead of an Ethernet header.
    #[track_caller]
    pub fn start_to_outlive(host: &Host, filter: &str) -> Self {
        Self::on(&host.inside, "any", filter)
    }

    /// Starts a capture of the frames at an interface that match `filter`.
    #[track_caller]
    pub fn on(inside: &Namespace, interface: &str, filter: &str) -> Self {
        let trace = Trace { directory: tempfile::tempdir().expect("a temporary directory") };
        let mut command = inside.command("dumpcap");
        command.args(["-q", "-p", "-B", "16", "-i", interface, "-f", filter, "-w"]).arg(trace.file());
        let process = Process::spawn(command);
        wait_for("capture", PATIENCE, || process.stderr().contains("File: ").then_some(()));
        Self { process, trace }
    }

    /// Ends the capture; panics if it lost frames.
    #[track_caller]
    pub fn stop(self) -> Trace {
        sleep(SETTLE);
        self.process.signal("INT");
        let ended = self.process.wait(PATIENCE);
        assert!(ended.status.success() && ended.stderr.contains("/0 (pcap:0/dumpcap:0/"), "{ended:?}");
        self.trace
    }
}

impl Trace {
    fn file(&self) -> PathBuf {
        self.directory.path().join("capture.pcapng")
    }

    /// Returns the values of `fields` in each frame that passes the display filter, as text. A bit is 0 or 1.
    #[track_caller]
    pub fn fields(&self, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut arguments = vec!["-Y", filter, "-T", "fields"];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        let lines = self.tshark(&arguments);
        lines.lines().map(|line| line.split('\t').map(|field| bit(field).to_owned()).collect()).collect()
    }

    /// Returns the time in seconds of each frame that passes the display filter.
    #[track_caller]
    pub fn timed(&self, filter: &str) -> Vec<f64> {
        let rows = self.fields(filter, &["frame.time_epoch"]);
        rows.iter().map(|row| row[0].parse().unwrap_or_else(|error| panic!("{error}: {row:?}"))).collect()
    }

    /// Returns the bytes of each frame that passes the display filter, in hexadecimal.
    #[track_caller]
    pub fn bytes(&self, filter: &str) -> Vec<String> {
        let text = self.tshark(&["-Y", filter, "-T", "jsonraw"]);
        let packets: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let packets = packets.as_array().expect("packets");
        let raw = packets.iter().map(|packet| &packet["_source"]["layers"]["frame_raw"][0]);
        raw.map(|hex| hex.as_str().expect("hexadecimal").to_owned()).collect()
    }

    #[track_caller]
    fn tshark(&self, arguments: &[&str]) -> String {
        let output = Command::new("tshark").args(["-n", "-r"]).arg(self.file()).args(arguments).output();
        let output = output.expect("there is tshark");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }
}

/// Normalizes a bit, which versions of tshark write differently.
fn bit(field: &str) -> &str {
    match field {
        "True" => "1",
        "False" => "0",
        other => other,
    }
}
