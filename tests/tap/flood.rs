//! Flood limits with real hosts: one floods broadcast frames, and the others talk on. Spanning tree of a Linux bridge.

use std::path::Path;

use crate::capture::Capture;
use crate::frames;
use crate::process::wait_for;
use crate::program::PATIENCE;
use crate::ready::machine_is_ready;
use crate::rig::{Rig, TAP_TOR};

/// Frames of the flood, and their rate.
const FLOOD: usize = 1_000;
const PER_SECOND: u32 = 1_000;
/// The limit of the port, and the frames that pass in a row.
const LIMIT: f64 = 50.0;
const BURST: f64 = 64.0;

#[test]
fn flood_of_a_host_is_limited_and_others_talk_on() {
    if !machine_is_ready() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = directory.path().join("tor.yaml");
    let text = std::fs::read_to_string(Path::new(TAP_TOR)).expect("the configuration");
    let text = text.replace("iface=hf0\", speed: 1G", "iface=hf0\", speed: 1G, storm_control: {broadcast: 50pps}");
    std::fs::write(&config, text).expect("a file");
    let mut rig = Rig::start(config.to_str().expect("a path"), 4);
    rig.hosts[1].reach(&rig.hosts[2].ipv4(), 1);
    // No host answers: it is a local experiment's type (IEEE 802).
    let mut frame = [&[0xff; 6][..], &frames::mac(&rig.hosts[0].mac()), &[0x88, 0xb5]].concat();
    frame.resize(100, 0);
    let capture = Capture::start(&rig.hosts[3], "ether proto 0x88b5");
    frames::send(&rig.hosts[0], &vec![frame; FLOOD], PER_SECOND);
    rig.hosts[1].reach(&rig.hosts[2].ipv4(), 3);
    let times = capture.stop().timed("eth.type == 0x88b5");
    let took = times.last().expect("some pass") - times[0];
    let passed = times.len() as f64;
    assert!(passed <= BURST + LIMIT * took + 2.0, "{passed} in {took} s");
    let drops =
        rig.metrics().sum("holdfast_port_dropped_frames_total", &[("port", "hf0"), ("reason", "storm_broadcast")]);
    // A busy machine may lose frames before the switch, and none after it.
    assert!(drops > FLOOD as f64 / 2.0 && drops + passed <= FLOOD as f64, "{drops} dropped, {passed} passed");
    let line = " flood: hf0 received broadcast frames beyond its limit: they are dropped";
    wait_for(line, PATIENCE, || rig.switch().stderr().contains(line).then_some(()));
    rig.stop();
}

/// The bridge of the Linux kernel sends BPDUs.
#[test]
fn bridge_of_linux_with_spanning_tree_is_told_and_counted() {
    if !machine_is_ready() {
        return;
    }
    let mut rig = Rig::start(TAP_TOR, 4);
    let (inside, interface) = (&rig.hosts[1].inside, rig.hosts[1].interface.clone());
    inside.run(&["ip", "link", "add", "br0", "type", "bridge", "stp_state", "1"]);
    inside.run(&["ip", "link", "set", "dev", &interface, "master", "br0"]);
    inside.run(&["ip", "link", "set", "dev", "br0", "up"]);
    let labels = [("port", "hf1"), ("reason", "bpdu")];
    let counted = |rig: &Rig| rig.metrics().sum("holdfast_port_dropped_frames_total", &labels);
    wait_for("BPDUs", PATIENCE, || (counted(&rig) >= 2.0).then_some(()));
    let line = " spanning tree: hf1 received a BPDU";
    wait_for(line, PATIENCE, || rig.switch().stderr().contains(line).then_some(()));
    rig.stop();
}
