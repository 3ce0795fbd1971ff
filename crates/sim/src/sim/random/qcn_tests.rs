//! Random fabrics whose queues are congestion points, and whose hosts are reaction points of QCN.

use super::{judge, yaml};
use crate::qos::CongestionPointSpec;
use crate::sim::control::ControlSpec;
use crate::sim::control::qcn::QcnSpec;
use crate::sim::engine::{Engine, run_prepared};
use crate::sim::outcome::Outcome;
use crate::sim::run_on;
use crate::sim::scenario::{self, Options};
use crate::sim::spec::Scenario;
use crate::units::{Bytes, Nanos};

/// Returns the fabric of `seed` with QCN everywhere. Runs last about a millisecond, so samples and cycles are short.
fn fabric(seed: u64) -> Scenario {
    let text = yaml(seed).unwrap();
    let mut scenario = scenario::parse("random.yaml", &text, None, &Options::default()).unwrap().remove(0).1;
    let point = CongestionPointSpec { set_point: Bytes(3_000), weight: 2, sample: Bytes(6_000) };
    for switch in &mut scenario.switches {
        switch.config.switch.congestion_points = [Some(point); 8];
    }
    let control = QcnSpec { byte_counter: Bytes(6_000), increase_timer: Nanos(40_000), ..QcnSpec::default() };
    let senders = scenario.workloads.iter_mut().flat_map(|workload| &mut workload.senders);
    for flow in scenario.flows.iter_mut().chain(senders) {
        flow.control = Some(ControlSpec::Qcn(control));
    }
    scenario
}

fn cnms(outcome: &Outcome) -> u64 {
    let ports = outcome.switches.iter().flat_map(|switch| &switch.ports);
    ports.flat_map(|port| &port.classes).map(|class| class.cnms_made).sum()
}

#[test]
fn random_fabrics_with_qcn_keep_every_invariant() {
    let (mut made, mut fabrics) = (0, 0);
    for seed in 1..=200 {
        let scenario = fabric(seed);
        let outcome = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(judge(&scenario, &outcome), None, "seed {seed}");
        made += cnms(&outcome);
        fabrics += u64::from(cnms(&outcome) > 0);
    }
    assert!(made > 10_000 && fabrics > 100, "{made} messages in {fabrics} fabrics");
}

#[test]
fn rests_change_no_result_of_qcn() {
    let mut made = 0;
    for scenario in (1..=40).map(fabric).filter(|scenario| scenario.drain.0 <= 20_000_000) {
        let never = |engine: &mut Engine<'_>| engine.net.nodes.iter_mut().for_each(|node| node.rests = false);
        let with = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(with, run_prepared(&scenario, never, &mut |_| {}));
        made += cnms(&with);
    }
    assert!(made > 1_000, "{made}");
}

#[test]
fn threads_change_no_result_of_qcn() {
    let mut made = 0;
    for seed in 1..=20 {
        let scenario = fabric(seed);
        let one = crate::sim::run(&scenario, &mut |_| {});
        assert_eq!(run_on(2, &scenario, &mut |_| {}), one, "seed {seed}");
        made += cnms(&one);
    }
    assert!(made > 1_000, "{made}");
}
