use super::super::fixture::{self, quiet, run};
use super::*;
use crate::faults::counters::PFC_ROW;
use crate::faults::{FaultBoard, FaultVerb, Toward};
use crate::sets::{ClassSet, PortSet};
use crate::units::{BitRate, Ticks};
use std::time::Duration;

fn verdict(switch_view: &SwitchView) -> Verdict {
    Verdict::new(switch_view, &Snapshot::take(switch_view, Duration::from_secs(10)))
}

#[test]
fn verdict_of_a_run_without_loss_is_kept() {
    let verdict = verdict(&run());
    assert_eq!(verdict.to_string(), "lossless: KEPT");
    assert!(verdict.is_kept());
}

#[test]
fn lossy_drops_leave_the_verdict_kept() {
    let switch_view = run();
    assert!(switch_view.counters.ports[0].drops[0][DropReason::Threshold as usize].get() > 0);
    assert!(verdict(&switch_view).is_kept());
}

#[test]
fn a_congestion_drop_in_a_lossless_class_breaks_it() {
    let switch_view = quiet();
    switch_view.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(12_000);
    switch_view.counters.ports[1].drops[3][DropReason::HeadroomFull as usize].add(345);
    switch_view.devices[1].publish(&crate::stats::DeviceStats { link_up: true, rx_missed: 7, ..Default::default() });
    let text = verdict(&switch_view).to_string();
    let expected = "lossless: BROKEN: 12,345 frames lost in class 3 (headroom_full at p1 12,000, p2 345); \
                    7 frames lost in the receive ring of p2";
    assert_eq!(text, expected);
}

#[test]
fn frames_discarded_by_the_watchdog_make_the_verdict_broken() {
    let switch_view = quiet();
    let flow = &switch_view.hosts.as_ref().unwrap().flows[0];
    flow.sent_frames.add(5_000);
    flow.received_frames.add(3_000);
    for (port, frames) in switch_view.counters.ports.iter().zip([500, 1_500]) {
        port.drops[3][DropReason::Watchdog as usize].add(frames);
        port.drops[0][DropReason::Watchdog as usize].add(7);
    }
    let verdict = verdict(&switch_view);
    assert!(!verdict.is_kept() && verdict.undelivered.is_empty());
    let expected = "lossless: BROKEN: 2,000 frames discarded by the watchdog\n\
                    class 3: 500 frames discarded by the watchdog at p1\n\
                    class 3: 1,500 frames discarded by the watchdog at p2";
    assert_eq!(verdict.to_string(), expected);
    flow.sent_frames.add(1);
    let text = self::verdict(&switch_view).to_string();
    let expected = "lossless: BROKEN: 1 frame lost in class 3 (1 missing end to end); 2,000 frames discarded";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn frames_discarded_at_a_stuck_port_break_it() {
    let switch_view = quiet();
    let flow = &switch_view.hosts.as_ref().unwrap().flows[0];
    flow.sent_frames.add(5_000);
    flow.received_frames.add(4_500);
    for class in [0, 3] {
        switch_view.counters.ports[1].drops[class][DropReason::EgressStuck as usize].add(500);
    }
    let verdict = verdict(&switch_view);
    assert!(!verdict.is_kept() && verdict.undelivered.is_empty());
    let expected = "lossless: BROKEN: 500 frames discarded at stuck ports\n\
                    class 3: 500 frames discarded at p2, which was stuck";
    assert_eq!(verdict.to_string(), expected);
}

#[test]
fn frames_for_a_port_without_link_break_it() {
    let switch_view = quiet();
    for class in [0, 3] {
        switch_view.counters.ports[0].drops[class][DropReason::EgressDown as usize].add(40);
        switch_view.counters.ports[0].drops[class][DropReason::LosslessUnknown as usize].add(2);
    }
    let expected = "lossless: BROKEN: 40 frames lost in class 3 (egress_down at p1 40)\n\
                    not delivered: 2 frames of class 3 at p1 (lossless_unknown)";
    assert_eq!(verdict(&switch_view).to_string(), expected);
}

#[test]
fn transmit_loss_breaks_the_verdict_if_the_port_sent_lossless_frames() {
    let switch_view = quiet();
    let lost = crate::stats::DeviceStats { link_up: true, tx_errors: 40, ..Default::default() };
    switch_view.devices[1].publish(&lost);
    switch_view.counters.ports[1].tx_frames[0].add(40);
    assert_eq!(verdict(&switch_view).to_string(), "lossless: KEPT", "only lossy frames have left there");
    switch_view.counters.ports[1].tx_frames[3].add(1);
    assert_eq!(verdict(&switch_view).to_string(), "lossless: BROKEN: 40 frames lost by the device of p2");
    let json = serde_json::to_value(&verdict(&switch_view).causes).unwrap();
    assert_eq!(json, serde_json::json!([{"cause": "transmit", "port": "p2", "frames": 40}]));
}

#[test]
fn frames_held_by_all_lcores_are_summed_in_the_verdict() {
    let mut switch_view = quiet();
    switch_view.counters = std::sync::Arc::new(crate::plan::Counters::new(2, 2));
    switch_view.counters.lcores.iter().for_each(|lcore| lcore.held_frames.set(2));
    switch_view.counters.ports.iter().for_each(|port| port.group_used_cells[3].set(6));
    assert_eq!(verdict(&switch_view).to_string(), "lossless: BROKEN: 12 cells (4 frames) not released");
}

#[test]
fn frames_missing_or_corrupt_at_hosts_make_the_verdict_broken() {
    let switch_view = quiet();
    let hosts = switch_view.hosts.as_ref().unwrap();
    hosts.flows[0].sent_frames.add(10);
    hosts.flows[0].received_frames.add(7);
    hosts.flows[0].corrupt_frames.add(1);
    let text = verdict(&switch_view).to_string();
    assert_eq!(text, "lossless: BROKEN: 2 frames lost in class 3 (2 missing end to end, 1 corrupt)");
    // The second flow is lossy.
    hosts.flows[0].received_frames.add(2);
    hosts.flows[1].sent_frames.add(10);
    assert_eq!(verdict(&switch_view).to_string(), "lossless: BROKEN: 1 frame lost in class 3 (1 corrupt)");
}

#[test]
fn cells_held_after_the_drain_make_the_verdict_broken() {
    let switch_view = quiet();
    switch_view.counters.ports[0].group_headroom_cells[3].set(12);
    switch_view.counters.lcores[0].held_frames.set(2);
    assert_eq!(verdict(&switch_view).to_string(), "lossless: BROKEN: 12 cells (2 frames) not released");
}

#[test]
fn ports_without_pfc_proof_are_named_as_not_lossless() {
    let mut switch_view = quiet();
    switch_view.pfc = vec![PfcStanding::Off, PfcStanding::Unproven];
    assert_eq!(verdict(&switch_view).to_string(), "lossless: KEPT\nnot lossless: p1 (pfc off), p2 (pfc unproven)");
    assert_eq!(not_lossless_line(&switch_view).as_deref(), Some("not lossless: p1 (pfc off), p2 (pfc unproven)"));
    switch_view.spec.mirror.outputs = PortSet::only(0);
    assert_eq!(not_lossless_line(&switch_view).as_deref(), Some("not lossless: p2 (pfc unproven)"));
    switch_view.spec.mirror.outputs = PortSet::EMPTY;
    switch_view.pfc = vec![PfcStanding::Trusted, PfcStanding::Unproven];
    let expected = "lossless: KEPT\ntrusted by the operator: p1 (pfc trusted)\nnot lossless: p2 (pfc unproven)";
    assert_eq!(verdict(&switch_view).to_string(), expected);
    switch_view.lossless = ClassSet::EMPTY;
    assert_eq!(verdict(&switch_view).to_string(), "lossless: no lossless class");
    assert_eq!(not_lossless_line(&switch_view), None);
    assert_eq!(fixture::quiet().lossless, ClassSet::only(3));
}

#[test]
fn peer_that_disobeys_is_named_against_the_word_of_the_operator() {
    let mut switch_view = quiet();
    switch_view.pfc = vec![PfcStanding::Trusted, PfcStanding::Trusted];
    switch_view.witnesses = vec![None, None];
    let p1 = &switch_view.counters.ports[0];
    p1.pfc_late_frames[3].add(1234);
    assert_eq!(not_lossless_line(&switch_view), None, "one XOFF may have been lost");
    p1.pfc_disobeyed_mask.set(1 << 3);
    let expected =
        "not lossless: p1 (pfc unproven; measured: its peer does not stop at XOFF, 1,234 frames came too late)";
    assert_eq!(not_lossless_line(&switch_view).as_deref(), Some(expected));
    let verdict = verdict(&switch_view).to_string();
    assert_eq!(verdict, format!("lossless: KEPT\ntrusted by the operator: p2 (pfc trusted)\n{expected}"));
}

#[test]
fn a_device_that_pauses_or_may_eat_pfc_is_named_with_what_follows() {
    let mut switch_view = quiet();
    switch_view.pfc = vec![PfcStanding::Trusted, PfcStanding::Unproven];
    switch_view.flow_control.set(0, DeviceFlowControl::Pauses);
    switch_view.flow_control.set(1, DeviceFlowControl::Unknown);
    let expected = "not lossless: p1 (pfc unproven; its device pauses by itself), p2 (pfc unproven; its device may \
                    pause by itself or drop PFC frames)";
    assert_eq!(verdict(&switch_view).to_string(), format!("lossless: KEPT\n{expected}"));
    assert_eq!(not_lossless_line(&switch_view).as_deref(), Some(expected));
    switch_view.flow_control.set(0, DeviceFlowControl::Filters);
    switch_view.pfc[1] = PfcStanding::Off;
    let expected = "lossless: KEPT\ntrusted by the operator: p1 (pfc trusted)\ntrusted by the operator: p1: its device \
                    may drop PFC frames\nnot lossless: p2 (pfc off)";
    assert_eq!(verdict(&switch_view).to_string(), expected);
}

/// Sets the first port's received frames of `classes`, and the nanoseconds of ten seconds for which its backlog paused
/// them.
fn receive(switch_view: &SwitchView, held_ns: u64, classes: &[(usize, u64)]) {
    let port = &switch_view.counters.ports[0];
    port.backlog_held_ns.set(held_ns);
    port.rx_frames.iter().for_each(|counter| counter.set(0));
    classes.iter().for_each(|&(class, frames)| port.rx_frames[class].set(frames));
}

#[track_caller]
fn assert_outcome(switch_view: &SwitchView, outcome: VerdictOutcome, why: &str) {
    let found = verdict(switch_view);
    assert_eq!(found.outcome, outcome, "{why}: {found}");
    assert_eq!(found.is_kept(), outcome != VerdictOutcome::Starved, "{why}");
}

#[test]
fn class_of_a_virtual_host_that_hardly_moved_is_starved() {
    let switch_view = quiet();
    // 1000 B frames at 10 Gb/s for ten seconds are 12,207,031 frames.
    receive(&switch_view, 5_000_000_000, &[(0, 100_000_000)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "held for half of ten seconds");
    receive(&switch_view, 9_900_000_000, &[(0, 100_000_000)]);
    assert_outcome(&switch_view, VerdictOutcome::Starved, "held before its first frame");
    receive(&switch_view, 9_900_000_000, &[(0, 100_000_000), (3, 122_071)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "one of a hundred of the frames that it had to send");
    receive(&switch_view, 9_900_000_000, &[(0, 1000), (3, 500)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "a core too slow for lossless frames alone");
    receive(&switch_view, 19_900_000_000, &[(0, 100_000_000), (3, 1)]);
    let expected = "lossless: STARVED\nstarved: class 3 at p1: 1 of 12,207,031 frames arrived; its receive backlog \
                    paused it for 10.00s of 10.00s";
    assert_eq!(verdict(&switch_view).to_string(), expected, "no longer than the run");
}

#[test]
fn class_is_starved_although_another_lossless_class_moves() {
    let mut switch_view = quiet();
    switch_view.lossless.insert(4);
    receive(&switch_view, 9_900_000_000, &[(0, 50_000_000), (4, 50_000_000)]);
    let found = verdict(&switch_view);
    let classes: Vec<usize> = found.starved.iter().map(|starved| starved.class).collect();
    assert_eq!(
        (found.outcome, classes),
        (VerdictOutcome::Starved, vec![3]),
        "no host sends in class 4, so it is not starved"
    );
}

#[test]
fn class_of_a_low_rate_whose_frames_all_came_is_kept() {
    let switch_view = fixture::slow(BitRate(8_192_000));
    receive(&switch_view, 9_900_000_000, &[(0, 100_000_000), (3, 10_000)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "all of ten thousand frames");
    receive(&switch_view, 9_900_000_000, &[(0, 100_000_000), (3, 99)]);
    assert_outcome(&switch_view, VerdictOutcome::Starved, "less than one of a hundred");
}

#[test]
fn class_of_an_unknown_peer_is_judged_by_its_share_of_the_frames() {
    let mut switch_view = quiet();
    switch_view.hosts = None;
    receive(&switch_view, 9_000_000_000, &[(0, 1000), (3, 1)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "free to send for a tenth of the time");
    receive(&switch_view, 9_900_000_000, &[(0, 1000), (3, 500)]);
    assert_outcome(&switch_view, VerdictOutcome::Kept, "a core too slow for lossless frames alone");
    receive(&switch_view, 9_900_000_000, &[(0, 1000), (3, 1)]);
    let expected =
        "lossless: STARVED\nstarved: class 3 at p1: 1 frame arrived; its receive backlog paused it for 9.90s of 10.00s";
    assert_eq!(verdict(&switch_view).to_string(), expected);
}

#[test]
fn unknown_peer_without_lossless_frames_is_kept_as_seen() {
    let mut switch_view = quiet();
    switch_view.hosts = None;
    receive(&switch_view, 9_900_000_000, &[(0, 1000)]);
    let expected = "lossless: KEPT as far as observed\nnot observed: lossless frames that waited for p1, paused by its \
                    receive backlog for 9.90s of 10.00s";
    assert_eq!(verdict(&switch_view).to_string(), expected);
    switch_view.spec.ports[0].pfc = crate::pfc::PfcMode::Off;
    assert_outcome(&switch_view, VerdictOutcome::Kept, "without PFC its peer is not held");
}

#[test]
fn loss_that_a_driver_does_not_count_makes_it_kept_as_seen() {
    let mut switch_view = quiet();
    switch_view.blind[1] = Some("net_tap".to_owned());
    let seen = verdict(&switch_view);
    assert!(seen.is_kept() && seen.outcome == VerdictOutcome::KeptAsSeen);
    let expected = "lossless: KEPT as far as observed\nnot observed: loss in the receive ring of p2 (net_tap)";
    assert_eq!(seen.to_string(), expected);
    switch_view.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(1);
    let text = verdict(&switch_view).to_string();
    assert!(text.starts_with("lossless: BROKEN: ") && text.ends_with("of p2 (net_tap)"), "{text}");
}

/// A switch whose faults hit these numbers of frames: port, verb, direction, row.
fn injected(hits: &[(usize, FaultVerb, Toward, usize, u64)]) -> SwitchView {
    let mut switch_view = quiet();
    let board = FaultBoard::new(&switch_view.spec, &[], 1, || Ticks(0), 1_000_000_000).0;
    for &(port, verb, toward, row, frames) in hits {
        board.counters().lcore(0).ports[port].hits[verb as usize][toward as usize][row].add(frames);
    }
    switch_view.faults = Some(board);
    switch_view
}

#[test]
fn faults_that_hit_lossless_frames_break_by_injected_faults() {
    assert!(verdict(&injected(&[(0, FaultVerb::Lose, Toward::Switch, 0, 9)])).injected.is_empty(), "a lossy class");
    let switch_view = injected(&[
        (0, FaultVerb::Lose, Toward::Switch, 3, 10),
        (0, FaultVerb::Lose, Toward::Host, 3, 2),
        (1, FaultVerb::Late, Toward::Host, PFC_ROW, 4),
    ]);
    let judged = verdict(&switch_view);
    assert!(judged.is_kept() && judged.outcome == VerdictOutcome::BrokenByInjectedFaults && judged.causes.is_empty());
    assert_eq!(
        judged.to_string(),
        "lossless: BROKEN BY INJECTED FAULTS: 12 frames lost at p1; 4 frames of PFC late at p2"
    );
    // Late PFC can exceed the headroom of its port, and lost frames are missing at their host.
    switch_view.counters.ports[1].drops[3][DropReason::HeadroomFull as usize].add(5);
    let flow = &switch_view.hosts.as_ref().unwrap().flows[0];
    flow.sent_frames.add(117);
    flow.received_frames.add(100);
    let text = verdict(&switch_view).to_string();
    assert!(
        text.contains("\nby injected faults too, as consequences: 17 frames lost in class 3 (headroom_full at p2 5"),
        "{text}"
    );
    flow.sent_frames.add(1);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "one more is missing than faults explain");
}

#[test]
fn other_loss_beside_faults_is_broken() {
    let late = [(1, FaultVerb::Ignore, Toward::Host, PFC_ROW, 4)];
    let switch_view = injected(&late);
    switch_view.counters.ports[0].drops[3][DropReason::HeadroomFull as usize].add(5);
    let judged = verdict(&switch_view);
    assert!(!judged.is_kept());
    let expected = "lossless: BROKEN: 5 frames lost in class 3 (headroom_full at p1 5)\n\
                    besides, by injected faults: 4 frames of PFC ignored at p2";
    assert_eq!(judged.to_string(), expected);
    let switch_view = injected(&late);
    switch_view.devices[1].publish(&crate::stats::DeviceStats { link_up: true, rx_missed: 7, ..Default::default() });
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken);
}

#[test]
fn watchdog_is_explained_by_storms_at_each_port_where_it_found_one() {
    let switch_view = injected(&[(1, FaultVerb::Storm, Toward::Switch, PFC_ROW, 30)]);
    // Frames count where they arrive.
    switch_view.counters.ports[0].drops[3][DropReason::Watchdog as usize].add(5);
    switch_view.counters.ports[1].watchdog_storms[3].add(1);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::BrokenByInjectedFaults);
    switch_view.counters.ports[0].watchdog_storms[3].add(1);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "nobody injected this one");
}

#[test]
fn faults_explain_headroom_drops_of_their_class_up_to_their_number() {
    let drops = |switch_view: &SwitchView, class: usize, frames| {
        switch_view.counters.ports[0].drops[class][DropReason::HeadroomFull as usize].add(frames);
    };
    for verb in [FaultVerb::Duplicate, FaultVerb::Delay, FaultVerb::Reorder] {
        let switch_view = injected(&[(0, verb, Toward::Switch, 3, 4), (0, verb, Toward::Switch, 0, 100)]);
        drops(&switch_view, 3, 4);
        assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::BrokenByInjectedFaults);
        drops(&switch_view, 3, 1);
        assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "one more than the faults added");
    }
    let mut switch_view = injected(&[(0, FaultVerb::Duplicate, Toward::Switch, 3, 4)]);
    switch_view.lossless.insert(4);
    drops(&switch_view, 4, 1);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "another class");
    // 65,535 quanta of 512 bits are 49,931 frames of 84 bytes.
    let switch_view = injected(&[(0, FaultVerb::Ignore, Toward::Host, PFC_ROW, 2)]);
    drops(&switch_view, 3, 2 * 49_931);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::BrokenByInjectedFaults);
    drops(&switch_view, 3, 1);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken);
}

#[test]
fn frames_toward_hosts_explain_any_class_where_marks_do_not_tell_theirs() {
    let missing = |switch_view: &SwitchView| {
        let flow = &switch_view.hosts.as_ref().unwrap().flows[0];
        flow.sent_frames.add(5);
    };
    // Class 0 by the marks at the port that sends.
    let mut switch_view = injected(&[(1, FaultVerb::Lose, Toward::Host, 0, 5)]);
    missing(&switch_view);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "marks tell that they are lossy");
    switch_view.spec.ports[0].live.trust = crate::qos::Trust::Port;
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::BrokenByInjectedFaults);
    missing(&switch_view);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Broken, "more than the faults hit");
    let mut switch_view = injected(&[(1, FaultVerb::Lose, Toward::Host, 0, 5)]);
    missing(&switch_view);
    switch_view.spec.ports[1].live.rewrite.dscp[3] = Some(0);
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::BrokenByInjectedFaults);
    let mut switch_view = injected(&[(1, FaultVerb::Lose, Toward::Switch, 0, 5)]);
    switch_view.spec.ports[1].live.trust = crate::qos::Trust::Port;
    assert_eq!(verdict(&switch_view).outcome, VerdictOutcome::Kept, "received frames have the class of their port");
}

#[test]
fn starved_class_shows_beside_faults() {
    let mut switch_view = injected(&[(0, FaultVerb::Lose, Toward::Switch, 3, 2)]);
    switch_view.hosts = None;
    receive(&switch_view, 9_900_000_000, &[(0, 1000), (3, 1)]);
    assert_outcome(&switch_view, VerdictOutcome::Starved, "a fault does not starve");
    let text = verdict(&switch_view).to_string();
    assert!(
        text.starts_with("lossless: STARVED\nbesides, by injected faults: 2 frames lost at p1\nstarved: "),
        "{text}"
    );
}
