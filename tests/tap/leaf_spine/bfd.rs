//! BFD between the switches: its frames pass between taps and ports both ways, and it finds a silent link.

use std::time::Duration;

use serde_json::Value;

use super::fabric::{Fabric, SWITCHES, list, machine_has_frr};
use super::flows::Sender;
use super::{LONG, V4, V6, assert_both_links_carry_flows, assert_only_flows_of_link_1_suffered, paths, send_through};
use crate::process::wait_for;
use crate::quiet;

/// BGP's hold time, after which it would find the silent link itself.
const HOLD: Duration = Duration::from_secs(9);

#[test]
fn bfd_finds_a_silent_link_long_before_bgp() {
    quiet::attempt(quiet::ALLOWED, silent_link);
}

fn silent_link() {
    if !machine_has_frr() {
        return;
    }
    let fabric = Fabric::start();
    wait_for_sessions(&fabric);
    frames_pass_both_ways(&fabric);
    let mut sender = Sender::new(&fabric.host(1), V4, V6);
    let before = paths(&fabric, &mut sender);
    assert_both_links_carry_flows(&before);
    let passage = send_through(&fabric, &mut sender, "silence");
    assert!(fabric.has_link("leaf1", "u1") && fabric.has_link("spine1", "d1"), "a silent link stays up");
    for (switch, interface) in [("leaf1", "u1"), ("spine1", "d1")] {
        let session = session(&fabric, switch, interface);
        assert_eq!(session["diagnostic"], "control detection time expired", "{switch}: {session}");
    }
    assert_only_flows_of_link_1_suffered(&before, &passage, HOLD / 2);
    fabric.script(&["join", "1", "1"]);
    wait_for_sessions(&fabric);
    fabric.wait_for_paths(2);
    assert_both_links_carry_flows(&paths(&fabric, &mut sender));
    assert_only_link_1_went_down(&fabric);
    fabric.stop();
}

/// Waits until every switch has a BFD session with both of its neighbours.
#[track_caller]
pub fn wait_for_sessions(fabric: &Fabric) {
    for switch in SWITCHES {
        wait_for(&format!("BFD sessions of {switch}"), LONG, || {
            let peers = bfd(fabric, switch, "show bfd peers json");
            (peers.len() == 2 && peers.iter().all(|peer| peer["status"] == "up")).then_some(())
        });
    }
}

/// Asserts that no session went down, except once that between leaf 1 and spine 1.
#[track_caller]
pub fn assert_only_link_1_went_down(fabric: &Fabric) {
    let downs = |switch: &'static str| {
        let sessions = bfd(fabric, switch, "show bfd peers counters json");
        sessions.into_iter().map(move |session| {
            let interface = session["interface"].as_str().expect("a name").to_owned();
            (switch, interface, session["session-down"].as_u64().expect("a number"))
        })
    };
    let downs: Vec<_> = SWITCHES.into_iter().flat_map(downs).filter(|(.., count)| *count > 0).collect();
    let of_link_1 = [("leaf1", "u1".to_owned(), 1), ("spine1", "d1".to_owned(), 1)];
    assert!(downs.iter().all(|down| of_link_1.contains(down)), "{downs:?}");
}

/// Every switch hands BFD frames to Linux and sends those of Linux: both ends of each session receive more of them.
#[track_caller]
fn frames_pass_both_ways(fabric: &Fabric) {
    let punted = || SWITCHES.map(|switch| fabric.punted(switch, "bfd"));
    // Punted frames first: each that is received later is punted later too.
    let before = punted();
    let received = SWITCHES.map(|switch| received(fabric, switch));
    wait_for("BFD frames of every session", LONG, || {
        let now = SWITCHES.map(|switch| self::received(fabric, switch));
        let is_more = |(now, before): (&Vec<u64>, &Vec<u64>)| now.iter().zip(before).all(|(now, before)| now > before);
        now.iter().zip(&received).all(is_more).then_some(())
    });
    for (switch, (after, before)) in SWITCHES.iter().zip(punted().iter().zip(before)) {
        assert!(*after >= before + 2.0, "{switch} punted {before} frames of BFD, then {after}");
    }
}

/// The output of a command of bfdd: an entry for each session, in the order of interfaces.
#[track_caller]
fn bfd(fabric: &Fabric, switch: &str, command: &str) -> Vec<Value> {
    let mut sessions = list(&fabric.script(&["vtysh", switch, "-c", command]));
    sessions.sort_by_key(|session| session["interface"].as_str().map(str::to_owned));
    sessions
}

#[track_caller]
fn session(fabric: &Fabric, switch: &str, interface: &str) -> Value {
    let sessions = bfd(fabric, switch, "show bfd peers json");
    let found = sessions.iter().find(|session| session["interface"] == interface);
    found.unwrap_or_else(|| panic!("{switch}: {sessions:#?}")).clone()
}

/// Frames received in each session.
#[track_caller]
fn received(fabric: &Fabric, switch: &str) -> Vec<u64> {
    let sessions = bfd(fabric, switch, "show bfd peers counters json");
    sessions.iter().map(|session| session["control-packet-input"].as_u64().expect("a number")).collect()
}
