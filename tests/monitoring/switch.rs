//! The switch that Prometheus scrapes.

use std::net::SocketAddr;
use std::time::Duration;

use crate::process::{Process, mortal, wait_for};
use crate::prometheus::get;
use crate::tools::repository;

/// Longest time for a switch to start or to end, even on a machine that runs other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running switch with the configuration `tests/monitoring/switch.yaml`.
pub struct Switch {
    /// The address that serves its metrics.
    pub address: SocketAddr,
    process: Process,
}

impl Switch {
    /// Starts a switch without waiting until it forwards.
    #[track_caller]
    pub fn spawn() -> Self {
        let mut command = mortal(env!("CARGO_BIN_EXE_holdfast"));
        command.arg("run").arg(repository("tests/monitoring/switch.yaml"));
        command.args(["--duration", "0", "--metrics", "127.0.0.1:0"]);
        let mut process = Process::spawn(command);
        Self { address: process.metrics_address(PATIENCE), process }
    }

    /// Waits for an answer of `path` for which `is_wanted` holds.
    #[track_caller]
    pub fn wait_for(&mut self, path: &str, is_wanted: impl Fn(u16, &str) -> bool) -> String {
        let Self { address, process } = self;
        wait_for(path, PATIENCE, || {
            assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
            get(*address, path).filter(|(status, body)| is_wanted(*status, body)).map(|(_, body)| body)
        })
    }

    /// Starts a switch and waits until it is ready.
    #[track_caller]
    pub fn start() -> Self {
        let mut switch = Self::spawn();
        switch.wait_for("/readyz", |status, _| status == 200);
        switch
    }

    /// Returns all metrics of the switch.
    #[track_caller]
    pub fn metrics(&mut self) -> String {
        self.wait_for("/metrics", |status, _| status == 200)
    }

    /// Clears the watermarks.
    pub fn clear(&self) {
        self.process.signal("USR1");
    }

    /// Terminates the switch with SIGTERM and waits for it.
    #[track_caller]
    pub fn stop(self) {
        self.process.signal("TERM");
        let ended = self.process.wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
}
