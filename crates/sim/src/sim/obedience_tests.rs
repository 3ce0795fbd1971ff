//! Peers that obey PFC, obey it late and ignore it, in simulated time.

use super::outcome::Outcome;
use super::scenario::{self, Options};
use crate::pfc::{Answers, Observed};

/// The answers of hosts h1 and h2 in class 3. Both send to h3 with keys of their own, on links of 100G.
fn answers(switch: &str, first: &str, second: &str, load: &str) -> [Answers; 2] {
    let text = format!(
        "
duration: 3ms
drain: 10ms
switches:
  - name: s
    poll: {{every: 1us, {switch}}}
    config:
      preset: roce
      buffer: {{size: 4MiB}}
      lcores: {{poll_gap: 5us}}
      watchdog: off
      ports: [{{name: p*, count: 3, speed: 100G, cable: 5m}}]
hosts:
  - {{name: h1, at: s.p1, length: 5m{first}}}
  - {{name: h2, at: s.p2, length: 5m{second}}}
  - {{name: h3, at: s.p3, length: 5m}}
flows:
  - {{from: [h1, h2], to: h3, dscp: 24, frame: 1000, ecn: false, rate: {load}}}
"
    );
    let scenarios = scenario::parse("x.yaml", &text, None, &Options::default());
    let scenario = scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1;
    let outcome: Outcome = super::run(&scenario, &mut |_| {});
    assert_eq!(outcome.violation, None);
    [0, 1].map(|port| outcome.switches[0].ports[port].classes[3].answers)
}

#[test]
fn host_that_ignores_pfc_is_found_and_one_that_obeys_is_cleared() {
    let [ignores, obeys] = answers("jitter: 500ns", ", pfc: ignore", "", "100G");
    assert_eq!((ignores.observed(), obeys.observed()), (Observed::Disobeys, Observed::Obeys));
    assert!(ignores.late.frames > 1_000 && ignores.late.bytes > 990 * ignores.late.frames, "{ignores:?}");
    assert_eq!(obeys.late.frames, 0);
}

#[test]
fn host_that_obeys_late_is_found_only_beyond_its_time() {
    // The time is that of 394 quanta, 10 us of posted data, a poll gap of 5 us and 0.7 us of frames, cable and PHY.
    // The other host ignores PFC, so that pauses last.
    let of = |response: &str| answers("jitter: 500ns", &format!(", response: {response}"), ", pfc: ignore", "100G")[0];
    let (quick, slow) = (of("2us"), of("40us"));
    assert_eq!((quick.observed(), quick.late.frames), (Observed::Obeys, 0));
    assert_eq!(slow.observed(), Observed::Disobeys);
    let longest = |answers: &Answers| answers.times.iter().rposition(|&times| times > 0);
    assert_eq!((longest(&quick), longest(&slow)), (Some(1), Some(3)), "up to 4 us, and up to 64 us");
}

#[test]
fn link_that_is_never_congested_stays_unseen() {
    let seen = answers("jitter: 500ns", ", pfc: ignore", "", "20G");
    assert_eq!(seen, [Answers::default(); 2]);
}
