//! A switch with its own API socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;

use crate::description;
use crate::process::{Ended, Process, mortal, wait_for};

/// The program under test.
pub const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

/// Longest time that any step may take, even on a machine that runs other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running switch with its temporary directory, which holds its socket and its configuration file.
pub struct Switch {
    pub process: Process,
    directory: tempfile::TempDir,
}

/// Returns the command `holdfast run` with `args` and without metrics. It has no API unless the caller adds one.
pub fn run(args: &[&str]) -> Command {
    let mut command = mortal(HOLDFAST);
    command.args(["run", "--duration", "0", "--metrics", "off"]).args(args);
    command
}

/// Returns the command `holdfast run` with the metrics server of its configuration.
fn run_served() -> Command {
    let mut command = mortal(HOLDFAST);
    command.args(["run", "--duration", "0"]);
    command
}

impl Switch {
    /// Starts the embedded incast with the further arguments `args`.
    #[track_caller]
    pub fn start(args: &[&str]) -> Self {
        Self::with(run(args), None)
    }

    /// Starts a switch with the configuration `config` and without metrics.
    #[track_caller]
    pub fn configured(config: &str) -> Self {
        Self::with(run(&[]), Some(config))
    }

    /// Starts a switch with the configuration `config` and with the metrics server that it defines.
    #[track_caller]
    pub fn served(config: &str) -> Self {
        Self::with(run_served(), Some(config))
    }

    /// Starts a switch by `command`, with a configuration.
    #[track_caller]
    pub fn with(mut command: Command, config: Option<&str>) -> Self {
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

    /// Overwrites the configuration file of the switch.
    #[track_caller]
    pub fn configure(&self, config: &str) {
        std::fs::write(self.directory.path().join("switch.yaml"), config).expect("a configuration written");
    }

    /// Connects to the socket of the switch.
    pub fn connect(&self) -> std::io::Result<UnixStream> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Returns the status and the body of the answer to `METHOD TARGET`, which obeys the description of the API.
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
        let status = head.split(' ').nth(1)?.parse().ok()?;
        description::check(request, status, body);
        Some((status, body.to_owned()))
    }

    fn try_get(&self, name: &str) -> Option<Value> {
        let target = format!("/v1/{name}");
        let (status, body) = self.try_ask(&format!("GET {}", target.trim_end_matches('/')))?;
        (status == 200).then(|| serde_json::from_str(&body).ok())?
    }

    /// Returns the resource `name`. Retries while the server has no free connection.
    #[track_caller]
    pub fn get(&self, name: &str) -> Value {
        wait_for(&format!("answer to {name}"), PATIENCE, || self.try_get(name))
    }

    /// Runs `holdfast` with `args` against this switch until it exits.
    pub fn holdfast(&self, args: &[&str]) -> Output {
        let mut command = mortal(HOLDFAST);
        command.args(args).arg("--socket").arg(self.socket()).output().expect("it can be started")
    }

    /// Returns the standard output of `holdfast` with `args`; panics if it fails.
    #[track_caller]
    pub fn printed(&self, args: &[&str]) -> String {
        let output = self.holdfast(args);
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is UTF-8")
    }

    /// Terminates the switch with SIGTERM and waits for it.
    #[track_caller]
    pub fn end(self) -> Ended {
        self.process.signal("TERM");
        self.process.wait(PATIENCE)
    }
}

/// Returns the sum of `field` over the rows of `part`.
pub fn sum(part: &Value, field: &str) -> u64 {
    let rows = part.as_array().unwrap_or_else(|| panic!("no rows: {part}"));
    rows.iter().map(|row| row[field].as_u64().unwrap_or_else(|| panic!("no {field}: {row}"))).sum()
}
