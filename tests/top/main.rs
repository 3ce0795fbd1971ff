//! `holdfast top` on a terminal beside a running switch: the screen, the keys, and the terminal afterwards. script(1)
//! creates the terminal, and vt100 interprets its contents.
//!
//! The commands of docs/top.md and docs/quickstart.md are run here.

#![cfg(feature = "dpdk")]

#[path = "../switch/process.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod process;
#[path = "../switch/program.rs"]
#[allow(dead_code, reason = "the tests of the switch use more of it")]
mod program;
mod terminal;

use std::process::Command;

use assert_cmd::prelude::*;
use process::{Process, mortal, wait_for};
use program::{HOLDFAST, PATIENCE};
use terminal::Terminal;

/// Starts an incast that runs until it is terminated and serves its API at `socket`.
fn switch(socket: &str, arguments: &[&str]) -> Process {
    let mut command = mortal(HOLDFAST);
    command.args(["run", "--duration", "0", "--metrics", "off", "--socket", socket]).args(arguments);
    let mut process = Process::spawn(command);
    wait_for("API", PATIENCE, || {
        assert!(process.is_running(), "it ended: {}{}", process.stdout(), process.stderr());
        std::os::unix::net::UnixStream::connect(socket).ok()
    });
    process
}

/// Returns a temporary directory and the path of a socket in it.
fn place() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("switch.sock").display().to_string();
    (directory, socket)
}

#[test]
fn top_shows_the_incast_and_q_restores_the_terminal() {
    let (_directory, socket) = place();
    let switch = switch(&socket, &[]);
    let mut top = Terminal::start(&format!("{HOLDFAST} top --socket {socket} --interval 200ms"), 24, 80);
    // Four senders are paused, and the receiver's link is full.
    let screen = top.wait(|screen| screen.contains("lossless: 0 lost") && screen.matches("3     ").count() >= 4);
    for name in ["p1", "p2", "p3", "p4", "p5"] {
        assert!(screen.lines().any(|line| line.contains(&format!(" {name} "))), "{name}: {screen}");
    }
    for word in ["holdfast ", "5 ports", "lossless pool", "headroom", "gap 99% <", "pauses its peer", "q quit"] {
        assert!(screen.contains(word), "{word}: {screen}");
    }
    // In the view of queues: the receiver's queue.
    top.press("3");
    top.wait(|screen| screen.contains("kmin") || screen.contains("queued"));
    top.press("\t");
    top.wait(|screen| screen.contains("gaps between polls"));
    top.press("q");
    let left = top.finish();
    assert!(left.contains("code 0"), "{left}");
    assert!(left.contains("settings are as before"), "{left}");
    switch.signal("INT");
    assert!(switch.wait(PATIENCE).status.success());
}

#[test]
fn top_shows_losses_in_red_and_waits_for_the_next_switch() {
    let (_directory, socket) = place();
    let mut top = Terminal::start(&format!("{HOLDFAST} top --socket {socket} --interval 200ms"), 30, 100);
    top.wait(|screen| screen.contains("no switch listens at") && screen.contains("q quits"));
    let lossy = switch(&socket, &["--pfc", "off"]);
    top.wait(|screen| screen.contains("LOST") && screen.contains("not lossless: 5 of 5 ports"));
    assert!(top.is_red("LOST"), "{}", top.screen());
    lossy.signal("INT");
    top.wait(|screen| screen.contains("the switch does not answer"));
    assert!(lossy.wait(PATIENCE).status.success());
    let next = switch(&socket, &[]);
    top.wait(|screen| screen.contains("lossless: 0 lost"));
    // A signal restores the terminal, as `q` does.
    top.signal("TERM");
    let left = top.finish();
    assert!(left.contains("code 0") && left.contains("settings are as before"), "{left}");
    drop(next);
}

#[test]
fn top_without_usable_terminal_ends_with_2_and_remedy() {
    let output = Command::new(HOLDFAST).arg("top").env("TERM", "xterm").assert().code(2);
    let said = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(said.contains("needs a terminal") && said.contains("holdfast show"), "{said}");
    let mut top = Terminal::start(&format!("TERM=dumb {HOLDFAST} top --socket /nowhere.sock"), 24, 80);
    top.wait(|screen| screen.contains("TERM is `dumb`"));
    assert!(top.finish().contains("code 2"));
}
