//! Start of the switch in these tests.

use std::net::SocketAddr;
use std::process::Command;

use crate::process::{Ended, Process, mortal, wait_for};
use crate::program::{HOLDFAST, PATIENCE, run_arguments};
use crate::scraping::get;

/// Returns the command `holdfast run` with the arguments of `HOLDFAST_TEST_ARGS`, then `args`.
pub fn run(args: &[&str]) -> Command {
    let mut command = mortal(HOLDFAST);
    command.arg("run").args(run_arguments()).args(args);
    command
}

/// Runs `command` to its end.
#[track_caller]
pub fn finish(command: Command) -> Ended {
    Process::spawn(command).wait(PATIENCE)
}

/// Starts `holdfast run` with `args` and metrics, and waits until it forwards frames.
#[track_caller]
pub fn start(args: &[&str]) -> (Process, SocketAddr) {
    let mut process = Process::spawn(run(&[args, &["--metrics", "127.0.0.1:0"]].concat()));
    let address = process.metrics_address(PATIENCE);
    wait_for("running switch", PATIENCE, || {
        assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
        get(address, "/healthz")
    });
    (process, address)
}
