//! A switch with an API of its own.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::process::{Ended, Process, mortal, wait_for};

/// The program under test.
pub const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

/// Longest that anything may take, on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running switch, its files, and where it is asked.
pub struct Switch {
    pub process: Process,
    directory: tempfile::TempDir,
}

/// `holdfast run` with `args` and without metrics; it has no API unless it is given one.
pub fn run(args: &[&str]) -> Command {
    let mut command = mortal(HOLDFAST);
    command.args(["run", "--duration", "0", "--metrics", "off"]).args(args);
    command
}

/// The same with the metrics of its configuration.
fn run_served() -> Command {
    let mut command = mortal(HOLDFAST);
    command.args(["run", "--duration", "0"]);
    command
}

impl Switch {
    /// The embedded incast, with `args` too.
    #[track_caller]
    pub fn start(args: &[&str]) -> Self {
        Self::with(run(args), None)
    }

    /// A switch by this configuration.
    #[track_caller]
    pub fn configured(config: &str) -> Self {
        Self::with(run(&[]), Some(config))
    }

    /// The same with the metrics that it says.
    #[track_caller]
    pub fn served(config: &str) -> Self {
        Self::with(run_served(), Some(config))
    }

    #[track_caller]
    fn with(mut command: Command, config: Option<&str>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        command.arg("--socket").arg(directory.path().join("s"));
        if let Some(text) = config {
            let file = directory.path().join("switch.yaml");
            std::fs::write(&file, text).expect("a configuration written");
            command.arg(file);
        }
        let mut switch = Self { process: Process::spawn(command), directory };
        wait_for("switch that moves frames", PATIENCE, || {
            let (out, err) = (switch.process.stdout(), switch.process.stderr());
            assert!(switch.process.is_running(), "it ended: {out}{err}");
            let answer = switch.try_get("ports")?;
            let ports = answer["ports"].as_array()?.clone();
            let received = ports.iter().map(|port| port["received_frames"].as_u64().unwrap_or(0)).sum::<u64>();
            (received > 1000).then_some(())
        });
        switch
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Writes another configuration into its file.
    #[track_caller]
    pub fn configure(&self, config: &str) {
        std::fs::write(self.directory.path().join("switch.yaml"), config).expect("a configuration written");
    }

    /// A connection.
    pub fn connect(&self) -> std::io::Result<UnixStream> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Status and body of the answer to `METHOD TARGET`.
    #[track_caller]
    pub fn ask(&self, request: &str) -> (u16, String) {
        self.try_ask(request).unwrap_or_else(|| panic!("no answer to {request}"))
    }

    fn try_ask(&self, request: &str) -> Option<(u16, String)> {
        let mut stream = self.connect().ok()?;
        write!(stream, "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    fn try_get(&self, name: &str) -> Option<Value> {
        let (status, body) = self.try_ask(&format!("GET /v1/{name}"))?;
        (status == 200).then(|| serde_json::from_str(&body).ok())?
    }

    /// The resource `name`, when there is a place for one more to ask.
    #[track_caller]
    pub fn get(&self, name: &str) -> Value {
        wait_for(&format!("answer to {name}"), PATIENCE, || self.try_get(name))
    }

    /// `holdfast` with `args`, asking this switch, to its end.
    pub fn holdfast(&self, args: &[&str]) -> Output {
        let mut command = mortal(HOLDFAST);
        command.args(args).arg("--socket").arg(self.socket()).output().expect("it can be started")
    }

    /// What `holdfast` with `args` prints; panics if it fails.
    #[track_caller]
    pub fn printed(&self, args: &[&str]) -> String {
        let output = self.holdfast(args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is UTF-8")
    }

    /// Ends it in order.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.process.signal("TERM");
        self.process.wait(PATIENCE)
    }
}

/// The sum of `field` over the rows of `part`.
pub fn sum(part: &Value, field: &str) -> u64 {
    let rows = part.as_array().unwrap_or_else(|| panic!("no rows: {part}"));
    rows.iter().map(|row| row[field].as_u64().unwrap_or_else(|| panic!("no {field}: {row}"))).sum()
}
