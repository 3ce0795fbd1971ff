//! Shutdown: orderly on SIGINT and SIGTERM, and without leftovers even after SIGKILL.

use std::thread::sleep;
use std::time::Duration;

use crate::launch::{run, start};
use crate::process::Process;
use crate::program::{PATIENCE, dpdk_leftovers, report};

#[test]
fn interrupt_and_terminate_end_a_run_in_order() {
    for signal in ["INT", "TERM"] {
        let (process, _) = start(&["--duration", "0"]);
        let pid = process.pid();
        process.signal(signal);
        let ended = process.wait(PATIENCE);
        assert_eq!((ended.status.code(), ended.told().as_slice()), (Some(0), &[""; 0][..]), "{signal}: {ended:?}");
        assert!(ended.stdout.contains("\nport  class "), "{}", ended.stdout);
        assert!(ended.stdout.contains("\nbuffer: every cell released\n"), "{}", ended.stdout);
        assert!(ended.stdout.ends_with("\nlossless: KEPT\n"), "{}", ended.stdout);
        assert_eq!(dpdk_leftovers(pid), [""; 0], "{signal}");
    }
}

#[test]
fn every_xoff_is_followed_by_xon() {
    let (process, _) = start(&["--duration", "0", "--json"]);
    process.signal("TERM");
    let ended = process.wait(PATIENCE);
    let report = report(&ended);
    assert_eq!(report["verdict"]["outcome"], "kept", "{}", report["verdict"]);
    for host in report["hosts"].as_array().expect("hosts") {
        let port = report["ports"].as_array().expect("ports").iter().find(|port| port["name"] == host["port"]);
        let port = port.unwrap_or_else(|| panic!("no port of {host}"));
        assert_eq!(host["pfc_received_frames"], port["pfc_sent_frames"], "all of it arrived: {host}");
    }
    assert!(ended.told().iter().all(|line| line.starts_with("t=")), "{}", ended.stderr);
}

#[test]
fn sigterm_during_start_ends_the_switch() {
    for milliseconds in [20, 60, 120, 250] {
        let process = Process::spawn(run(&["--duration", "0", "--metrics", "off"]));
        let pid = process.pid();
        sleep(Duration::from_millis(milliseconds));
        process.signal("TERM");
        let ended = process.wait(PATIENCE);
        // Before the switch handles signals there is nothing to shut down in order.
        let died = std::os::unix::process::ExitStatusExt::signal(&ended.status) == Some(15);
        assert!(ended.status.code() == Some(0) || died, "{ended:?}");
        assert_eq!(ended.stderr, "", "after {milliseconds} ms");
        assert_eq!(dpdk_leftovers(pid), [""; 0], "after {milliseconds} ms");
    }
}

#[test]
fn a_killed_switch_leaves_nothing_and_the_next_starts() {
    let (process, _) = start(&["--duration", "0"]);
    let pid = process.pid();
    process.signal("KILL");
    assert_eq!(process.wait(PATIENCE).status.code(), None);
    assert_eq!(dpdk_leftovers(pid), [""; 0]);
    let (process, _) = start(&["--duration", "0"]);
    process.signal("INT");
    assert_eq!(process.wait(PATIENCE).status.code(), Some(0));
}

#[test]
fn two_switches_run_side_by_side() {
    let (first, _) = start(&["--duration", "0", "--json"]);
    let (second, _) = start(&["--duration", "0", "--json"]);
    for process in [first, second] {
        process.signal("TERM");
        let ended = process.wait(PATIENCE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        assert_eq!(report(&ended)["verdict"]["outcome"], "kept");
    }
}
