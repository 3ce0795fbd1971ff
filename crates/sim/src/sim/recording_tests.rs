//! Checks the simulator like the real switch (`verify::record::tests`). A replay of the frames that the simulated
//! switch received and sent must decide the same, poll by poll, with the same counters.

use super::why_not;
use crate::sim::HZ;
use crate::sim::outcome::{Ending, Outcome};
use crate::sim::rng::Rng;
use crate::sim::run_recorded;
use crate::sim::scenario::{Options, parse};
use crate::sim::spec::Scenario;
use crate::verify::replay::agreement::{Agreed, Counts, DROPS, add, agree};

fn scenario(yaml: &str) -> Scenario {
    let mut all = parse("test", yaml, None, &Options::default()).unwrap_or_else(|errors| panic!("{errors}\n{yaml}"));
    all.remove(0).1
}

fn counted(outcome: &Outcome) -> (Counts, Counts, Counts) {
    let (mut counts, mut begun, mut highest) = Default::default();
    for (port, of) in outcome.switches[0].ports.iter().enumerate() {
        for (class, of) in of.classes.iter().enumerate() {
            for (reason, count) in of.drops.iter().filter(|(reason, _)| DROPS.contains(reason)) {
                add(&mut counts, port, class, reason.label(), *count);
            }
            add(&mut counts, port, class, "sent frames", of.tx_frames);
            add(&mut counts, port, class, "sent bytes", of.tx_bytes);
            add(&mut counts, port, class, "marked", of.marked_frames);
            add(&mut counts, port, class, "XOFF sent", of.xoff_tx);
            add(&mut counts, port, class, "XON sent", of.xon_tx);
            add(&mut begun, port, class, "pauses", of.pauses_tx);
            add(&mut highest, port, class, "cells", of.used_highest_cells);
            add(&mut highest, port, class, "headroom", of.headroom_highest_cells);
            add(&mut highest, port, class, "queue", of.queue_highest_cells);
        }
    }
    (counts, begun, highest)
}

#[track_caller]
fn agrees(yaml: &str) -> Agreed {
    let scenario = scenario(yaml);
    assert_eq!(why_not(&scenario, 0), None);
    let (outcome, recording) = run_recorded(&scenario, 0, &mut |_| {});
    assert_eq!((&outcome.violation, outcome.ending), (&None, Ending::Drained), "{yaml}");
    assert_eq!(recording.untold, []);
    let agreed = agree(&recording.tape, &recording.spec, &recording.stations, HZ);
    let (counts, begun, highest) = counted(&outcome);
    assert_eq!(agreed.counts, counts, "{yaml}");
    assert_eq!(agreed.begun, begun, "{yaml}");
    assert_eq!(agreed.highest, highest, "{yaml}");
    agreed
}

/// Returns a random scenario with hosts that send to one or two others. It has frames of all lengths, lossy and
/// lossless classes, tags, floods, a host that ignores PFC, slow receivers and late polls. Marking is certain, so that
/// no random draw affects it.
fn random(headroom: &str, seed: u64) -> String {
    let mut rng = Rng::new(seed, 77);
    let hosts = rng.between(3, 6);
    let kmin = rng.between(2, 60);
    // A limit must exceed the headroom that is subtracted from it.
    let buffer = if headroom == "dynamic" { rng.between(4500, 6000) } else { rng.between(2000, 2800) };
    let mut yaml = format!(
        "duration: 300us\ndrain: 20ms\nseed: {seed}\nswitches:\n  - name: tor\n    \
         poll: {{every: {}ns, jitter: {}ns, frame: {}ns}}\n    config:\n      preset: roce\n      \
         buffer: {{size: {}kB, headroom: {headroom}}}\n      classes:\n        \
         0: {{ecn: {{kmin: {kmin}kB, kmax: {kmin}kB, pmax: 100%}}}}\n        \
         3: {{ecn: {{kmin: {kmin}kB, kmax: {kmin}kB, pmax: 100%}}}}\n      ports:\n",
        rng.between(200, 900),
        rng.between(0, 100),
        rng.between(0, 15),
        buffer,
    );
    for n in 1..=hosts {
        let vlan = if rng.below(4) == 0 { ", vlan: {tagged: [7], native: 1}" } else { "" };
        yaml +=
            &format!("        - {{name: p{n}, speed: 25G, cable: {}m, backlog_mark: off{vlan}}}\n", rng.between(2, 40));
    }
    yaml += "hosts:\n";
    for n in 1..=hosts {
        let pfc = if rng.below(5) == 0 { "ignore" } else { "obey" };
        let known = rng.below(8) > 0 || n < 3;
        let slow = if n == hosts && rng.below(3) == 0 { ", receiver: {rate: 8G, buffer: 60kB}" } else { "" };
        yaml += &format!("  - {{name: h{n}, at: tor.p{n}, pfc: {pfc}, known: {known}{slow}}}\n");
    }
    yaml += "flows:\n";
    for n in 2..=hosts {
        let to = if n > 3 && rng.below(3) == 0 { 2 } else { 1 };
        let (dscp, ecn) = if rng.below(3) == 0 { (0, rng.below(2) == 0) } else { (26, true) };
        let frame =
            if rng.below(2) == 0 { "{from: 64, to: 1500}".to_owned() } else { rng.between(64, 1500).to_string() };
        yaml += &format!("  - {{from: h{n}, to: h{to}, kind: udp, frame: {frame}, dscp: {dscp}, ecn: {ecn}}}\n");
        yaml += &format!(
            "  - {{from: h{n}, to: h{to}, kind: udp, rate: {}G, frame: 900, dscp: 0, ecn: false}}\n",
            rng.between(1, 9)
        );
    }
    yaml
}

#[track_caller]
fn many_agree(headroom: &str, must_reach: &[&str]) {
    let mut reached = std::collections::BTreeMap::new();
    for seed in 1..=25 {
        let agreed = agrees(&random(headroom, seed));
        assert!(agreed.looks > 50, "seed {seed}: {} looks", agreed.looks);
        agreed.decided.into_iter().for_each(|(what, count)| *reached.entry(what).or_insert(0) += count);
    }
    println!("{headroom}: {reached:?}");
    for place in must_reach.iter().chain(&["shared", "headroom", "queue_threshold", "marked", "wred", "XOFF", "XON"]) {
        assert!(reached.contains_key(place), "{place} is not among {reached:?}");
    }
}

#[test]
fn replay_of_a_simulated_switch_agrees_with_independent_headroom() {
    many_agree("independent", &["reserve", "headroom_full"]);
}

#[test]
fn replay_of_a_simulated_switch_agrees_with_a_headroom_pool() {
    many_agree("shared-pool", &["reserve"]);
}

#[test]
fn replay_of_a_simulated_switch_agrees_with_dynamic_headroom() {
    many_agree("dynamic", &[]);
}

#[test]
fn replay_of_the_simulated_default_incast_agrees() {
    let text = include_str!("../../../../conf/incast.yaml")
        .replace("preset: roce\n", "preset: roce\nclasses: {3: {ecn: {kmin: 100kB, kmax: 100kB, pmax: 100%}}}\n");
    let config: String = text.lines().map(|line| format!("      {line}\n")).collect();
    let agreed = agrees(&format!("duration: 2ms\ndrain: 20ms\nswitches:\n  - name: tor\n    config:\n{config}"));
    assert!(agreed.decided["XOFF"] > 10 && agreed.decided["marked"] > 100, "{:?}", agreed.decided);
}

/// The comparison detects a missing frame.
#[test]
fn replay_of_a_tape_with_a_missing_event_disagrees() {
    let scenario = scenario(&random("independent", 1));
    let (_, recording) = run_recorded(&scenario, 0, &mut |_| {});
    let honest = agree(&recording.tape, &recording.spec, &recording.stations, HZ).counts;
    let count = recording.tape.happened().len();
    for index in (1..20).map(|part| count * part / 20) {
        let untrue = recording.tape.without(index);
        let found = std::panic::catch_unwind(|| agree(&untrue, &recording.spec, &recording.stations, HZ).counts);
        let is_noticed = found.is_err() || found.is_ok_and(|counts| counts != honest);
        assert!(is_noticed, "the replay does not detect the missing event {:?}", recording.tape.happened()[index]);
    }
}
