//! Forwarding rate at any offered load (RFC 2889): conf/golden/max-load.md.

use holdfast::sim::outcome::Outcome;
use holdfast::sim::scenario::{self, Options};

/// Frames that the core can forward in a millisecond: each takes 15 ns in and 15 ns out.
const CAPACITY: u64 = 33_333;

/// Runs two milliseconds with `percent` of the core's capacity, half of it lossless.
fn run(percent: u64, pfc: &str) -> Outcome {
    // Four ports, two flows each, of frames of 64 B with 24 B around them.
    let rate = CAPACITY * 1_000 * percent / 100 / 8 * 88 * 8;
    let mut text = format!(
        "duration: 2ms
switches:
  - name: tor
    poll: {{every: 200ns, frame: 15ns}}
    config: {{preset: roce, buffer: {{size: 64MiB}}, ports: [{{name: p*, count: 4, speed: 25G}}]}}
hosts: [{{name: h*, count: 4, at: tor.p*, pfc: {pfc}}}]
flows:\n"
    );
    for port in 0..4_usize {
        let pair = format!("from: h{}, to: h{}, rate: {}M, frame: 64", port + 1, (port ^ 1) + 1, rate / 1_000_000);
        text += &format!("  - {{{pair}}}\n  - {{{pair}, kind: udp}}\n");
    }
    let scenarios = scenario::parse("max-load.yaml", &text, None, &Options::default());
    let scenario = scenarios.unwrap_or_else(|errors| panic!("{errors}\n{text}")).remove(0).1;
    let outcome = holdfast::sim::run(&scenario, &mut |_| {});
    assert_eq!(outcome.violation, None, "{text}");
    outcome
}

/// Frames that arrive in a millisecond: lossless, lossy.
fn rates(outcome: &Outcome) -> [u64; 2] {
    let sum = |first: usize| outcome.flows.iter().skip(first).step_by(2).map(|flow| flow.received_frames).sum::<u64>();
    [sum(0), sum(1)].map(|frames| frames * 1_000_000_000 / outcome.sending_ps)
}

const LOADS: [u64; 7] = [50, 90, 100, 110, 150, 200, 400];

#[test]
fn nine_tenths_of_the_greatest_rate_leave_at_any_load_if_peers_do_not_obey() {
    let outcomes = LOADS.map(|percent| run(percent, "ignore"));
    let rates: Vec<_> = outcomes.iter().map(rates).collect();
    println!("lossless and lossy frames a millisecond at {LOADS:?} %: {rates:?}");
    let greatest = rates.iter().map(|[lossless, lossy]| lossless + lossy).max().unwrap();
    assert!(greatest >= CAPACITY * 9 / 10, "{greatest} of {CAPACITY}");
    for (load, [lossless, lossy]) in LOADS.into_iter().zip(&rates) {
        // If all lossless frames leave, the lossy ones that do not have taken a sixth of their time to be shed.
        let offered = CAPACITY * load / 100;
        let shed = if lossless * 100 >= offered * 49 { (offered / 2).saturating_sub(*lossy) / 6 } else { 0 };
        let enough = (greatest * 90 / 100).min(CAPACITY * 96 / 100 - shed);
        assert!(lossless + lossy >= enough.min(offered * 99 / 100), "{load} %: {rates:?}");
        // Lossless frames first.
        assert!(lossless * 10 >= (offered / 2).min(greatest * 6 / 10) * 9, "{load} %: {rates:?}");
    }
    for outcome in &outcomes {
        // A peer that does not obey is told at half the life of its pause, and a few times at the beginning.
        let told: u64 = outcome.hosts.iter().map(|host| host.pfc_rx_frames).max().unwrap();
        assert!(told <= 40, "{told} PFC frames in 2 ms");
    }
}

/// Obedient senders stop, so all that arrives beyond the capacity of the core is lossy, and takes its time to be shed:
/// docs/overload.md, "Greatest rate".
#[test]
fn obedient_senders_lose_nothing_at_any_load() {
    let outcomes = LOADS.map(|percent| run(percent, "obey"));
    let rates: Vec<_> = outcomes.iter().map(rates).collect();
    println!("lossless and lossy frames a millisecond at {LOADS:?} %: {rates:?}");
    for (load, (outcome, [lossless, lossy])) in LOADS.into_iter().zip(outcomes.iter().zip(&rates)) {
        assert!(outcome.flows.iter().step_by(2).all(|flow| flow.lost_frames() == 0), "{load} %");
        // Shedding takes a sixth of the time of forwarding. A poll takes 200 ns of 10 us.
        let shed = (CAPACITY * load / 200).saturating_sub(*lossy) / 6;
        let possible = (CAPACITY * load / 100).min(CAPACITY * 98 / 100 - shed);
        assert!((lossless + lossy) * 100 >= possible * 95, "{load} %: {rates:?}, possible {possible}");
    }
}
