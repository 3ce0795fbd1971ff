//! The switch as these tests start it.

use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use crate::process::{Ended, Process, mortal, wait_for};
use crate::program::{HOLDFAST, PATIENCE, run_arguments};
use crate::scraping::get;

/// `holdfast run` with `args`, after those of `HOLDFAST_TEST_ARGS`.
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

/// An address on which nobody listens: the kernel gave it out and does not give it out again soon.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    listener.local_addr().expect("it is bound")
}

/// Starts `holdfast run` with `args` and metrics, and waits until it moves frames.
#[track_caller]
pub fn start(args: &[&str]) -> (Process, SocketAddr) {
    let address = free_address();
    let metrics = address.to_string();
    let mut process = Process::spawn(run(&[args, &["--metrics", &metrics]].concat()));
    wait_for("running switch", PATIENCE, || {
        assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
        get(address, "/healthz")
    });
    (process, address)
}
