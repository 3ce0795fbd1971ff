//! Mutation tests: random fabrics must detect each deliberate defect of the switch, and must report nothing without
//! one.

use super::{Found, run, try_seed};
use crate::mutant::{self, Mutant};
use crate::sim::outcome::Violation;
use crate::sim::scenario::{self, Options};
use crate::sim::spec::Scenario;

/// Returns the first of `most` seeds that detects `mutant`, with the violation.
#[track_caller]
fn hunt(mutant: Mutant, most: u64) -> (u64, Found) {
    let found = (0..most).find_map(|seed| Some((seed, *mutant::with(mutant, || run(seed)).err()?)));
    let Some((seed, found)) = found else { panic!("{mutant:?} was not found in {most} fabrics") };
    println!("{mutant:?}: seed {seed}: {}: {}", found.violation.invariant, found.violation.what);
    (seed, found)
}

/// Asserts that one of the invariants in `by` detects `mutant` within `most` fabrics, and that the same fabric holds
/// without the mutant.
#[track_caller]
fn assert_found(mutant: Mutant, most: u64, by: &[&str]) {
    let (seed, found) = hunt(mutant, most);
    assert!(by.contains(&found.violation.invariant), "{mutant:?} by {}", found.violation.invariant);
    if let Err(found) = run(seed) {
        panic!("without {mutant:?}, seed {seed}: {:?}", found.violation);
    }
}

#[test]
fn mutant_no_refresh_is_found() {
    assert_found(Mutant::NoRefresh, 400, &["pause_refreshed"]);
}

#[test]
fn mutant_xon_too_early_is_found() {
    assert_found(Mutant::XonTooEarly, 100, &["xon_too_early", "xoff_while_headroom"]);
}

#[test]
fn mutant_headroom_shared_is_found() {
    assert_found(Mutant::HeadroomShared, 400, &["headroom_limit"]);
}

#[test]
fn mutant_release_order_is_found() {
    assert_found(Mutant::ReleaseOrder, 100, &["release_order"]);
}

#[test]
fn mutant_released_when_queued_is_found() {
    assert_found(Mutant::ReleasedWhenQueued, 100, &["never_underestimated", "cells_conserved"]);
}

#[test]
fn mutant_tally_read_last_is_found() {
    assert_found(Mutant::TallyReadLast, 100, &["paused_without_cause"]);
}

#[test]
fn mutant_grows_too_early_is_found() {
    assert_found(Mutant::GrowsTooEarly, 400, &["division_fits"]);
}

#[test]
fn mutant_promises_too_early_is_found() {
    assert_found(Mutant::PromisesTooEarly, 400, &["promised_with_headroom"]);
}

#[test]
fn mutant_backlog_ignored_is_found() {
    assert_found(Mutant::BacklogIgnored, 1500, &["lossless_kept"]);
}

#[test]
fn mutant_never_sheds_is_found() {
    assert_found(Mutant::NeverSheds, 800, &["starved_by_lossy"]);
}

/// Random fabrics seldom have the load that reveals this mutant, so the test uses a shrunk fabric. One port receives a
/// flood of large frames that it can process; another receives a flood of small frames that it cannot.
#[test]
fn mutant_sheds_only_where_held_is_found() {
    let flooded = read(
        "duration: 900us
drain: 3513687ns
switches:
  - name: s0
    poll: {every: 1us, frame: 0ns}
    config:
      buffer: {size: 2144272B, cell: 208B, lossy: 25%}
      classes: {3: {lossless: true}}
      ports: [{name: p1, speed: 100G, cable: 5m}, {name: u0, speed: 100G, cable: 5m, rx_descriptors: 4096}]
  - name: s1
    poll: {every: 1us, frame: 13ns, jitter: 856ns}
    config:
      buffer: {size: 2197312B, cell: 208B, lossy: 25%}
      lcores: {poll_gap: 4560ns}
      classes: {3: {lossless: true}}
      ports:
        - {name: p6, speed: 100G, cable: 5m}
        - {name: p7, speed: 100G, cable: 5m}
        - {name: u0, speed: 100G, cable: 5m, rx_descriptors: 4096}
hosts:
  - {name: h1, at: s0.p1, length: 5m}
  - {name: h6, at: s1.p6, length: 5m}
  - {name: h7, at: s1.p7, length: 5m}
flows:
  - {from: h6, to: h1, dscp: 40, frame: 1078, ecn: false, start: 10us}
  - {from: h7, to: h1, dscp: 40, frame: 64, ecn: false, start: 10us}
links:
  - {a: s0.u0, b: s1.u0, length: 5m}
",
    );
    assert_eq!(violation(&flooded), None);
    let found = mutant::with(Mutant::ShedsOnlyWhereHeld, || violation(&flooded));
    assert_eq!(found.map(|violation| violation.invariant), Some("starved_by_lossy"));
}

#[test]
fn mutant_queue_of_port_is_found() {
    assert_found(Mutant::QueueOfPort, 400, &["dropped_without_cause"]);
}

#[test]
fn mutant_guest_ignores_pauses_is_found() {
    assert_found(Mutant::GuestIgnoresPauses, 200, &["paused_queue_silent"]);
}

#[test]
fn mutant_posted_is_forgotten_is_found() {
    assert_found(Mutant::PostedIsForgotten, 200, &["depth_counts_posted"]);
}

#[test]
fn mutant_depth_stays_is_found() {
    assert_found(Mutant::DepthStays, 200, &["joint_state_told"]);
}

#[test]
fn mutant_reaction_forgotten_is_found() {
    assert_found(Mutant::ReactionForgotten, 200, &["obedient_peer_cleared"]);
}

#[test]
fn mutant_ring_forgotten_is_found() {
    assert_found(Mutant::RingForgotten, 800, &["obedient_peer_cleared"]);
}

#[test]
fn mutant_lateness_ignored_is_found() {
    assert_found(Mutant::LatenessIgnored, 800, &["disobedient_peer_found"]);
}

#[test]
fn violation_shrinks_to_a_small_file_that_reproduces_it() {
    let mutant = Mutant::HeadroomShared;
    let (seed, _) = hunt(mutant, 400);
    let failure = mutant::with(mutant, || try_seed(seed)).expect_err("it was found before");
    println!("{failure}");
    let scenario = read(&failure.shrunk_yaml);
    assert!(scenario.switches.len() <= 1 && scenario.hosts.len() <= 4, "{failure}");
    assert_eq!(mutant::with(mutant, || violation(&scenario)), Some(failure.shrunk_violation.clone()));
    assert_eq!(violation(&scenario), None);
    let whole = mutant::with(mutant, || violation(&read(&failure.yaml)));
    assert_eq!(whole, Some(failure.violation.clone()));
}

fn violation(scenario: &Scenario) -> Option<Violation> {
    crate::sim::run(scenario, &mut |_| {}).violation
}

fn read(yaml: &str) -> Scenario {
    let scenarios = scenario::parse("shrunk.yaml", yaml, None, &Options::default());
    scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1
}
