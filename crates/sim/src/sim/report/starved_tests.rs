use super::super::fixture;
use super::super::{table, verdict};
use super::*;
use crate::sim::outcome::BacklogHold;
use crate::sim::scenario::{self, Options};
use crate::sim::workload::Distribution;
use crate::units::{Bytes, Nanos};

const US: u64 = 1_000_000;

/// Returns a run of two milliseconds. The flow of h2 in class 3 sent `sent` frames, and the backlog of its port held it
/// for `held_us`.
fn held(sent: u64, held_us: u64) -> (Scenario, Outcome) {
    let (scenario, mut outcome) = fixture::run();
    let hold = BacklogHold { port: PortRef { switch: 0, port: 1 }, held_ps: held_us * US };
    let flow = &mut outcome.flows[1];
    (flow.sent_frames, flow.received_frames, flow.span_ps, flow.backlog) = (sent, sent, 2_000 * US, Some(hold));
    let classes = &mut outcome.switches[0].ports[1].classes;
    (classes[0].rx_frames, classes[3].rx_frames) = (100_000, sent);
    (scenario, outcome)
}

#[track_caller]
fn assert_starved(run: &(Scenario, Outcome), starved: bool, why: &str) {
    let found = verdict(&run.0, &run.1);
    assert_eq!((found.starved, found.kept), (starved, !starved), "{why}: {:?}", sentences(&run.0, &run.1));
}

#[test]
fn flow_held_by_backlog_is_starved_only_if_it_hardly_moved() {
    // Two milliseconds at 10 Gb/s are 2,441 frames of 1000 B.
    assert_starved(&held(0, 1_900), true, "no frame left its host");
    assert_starved(&held(24, 1_900), true, "less than one of a hundred");
    assert_starved(&held(25, 1_900), false, "one of a hundred");
    assert_starved(&held(0, 1_000), false, "held for half of its time");
    let mut slow = held(24, 1_900);
    slow.1.switches[0].ports[1].classes[0].rx_frames = 0;
    assert_starved(&slow, false, "a core too slow for lossless frames alone");
    let text = table(&held(0, 1_900).0, &held(0, 1_900).1, false);
    let expected = "\nstarved: h2-h3 of class 3 sent 0 of 2,441 frames; the receive backlog of tor.p2 paused it for \
                    1.90ms of 2.00ms\n";
    assert!(text.contains("\nlossless: STARVED - 0 of 1,000 ") && text.contains(expected), "{text}");
}

#[test]
fn flow_of_a_low_rate_that_sent_all_its_frames_is_not_starved() {
    let mut run = held(2, 1_900);
    let size = MessageSize::Fixed(Bytes(1_000));
    run.0.flows[1].load = Load::Messages { size, every: Nanos(1_500_000), poisson: false, count: None };
    assert_starved(&run, false, "two messages of one frame");
    run.0.flows[1].load = Load::Messages { size, every: Nanos(5_000), poisson: false, count: None };
    assert_starved(&run, true, "401 messages");
}

#[test]
fn flow_that_begins_near_the_end_is_not_judged() {
    let mut run = held(0, 190);
    run.1.flows[1].span_ps = 200 * US;
    assert_starved(&run, true, "a tenth of the sending time");
    run.1.flows[1].span_ps = 199 * US;
    assert_starved(&run, false, "less than a tenth");
}

#[test]
fn many_starved_flows_are_counted_and_some_named() {
    let (mut scenario, mut outcome) = held(0, 1_900);
    for _ in 0..5 {
        scenario.flows.push(scenario.flows[1].clone());
        outcome.flows.push(outcome.flows[1].clone());
    }
    let lines = sentences(&scenario, &outcome);
    assert_eq!((lines.len(), lines[4].as_str()), (5, "2 more lossless flows"));
}

#[test]
fn wanted_frames_follow_the_load() {
    let (scenario, _) = fixture::run();
    let wanted = |load, frames| wanted_frames(&FlowNode { load, frames, ..scenario.flows[1].clone() }, 2_000 * US);
    let fixed = FrameSizes::Fixed(1000);
    assert_eq!(wanted(Load::Steady, fixed), 2_441);
    assert_eq!(wanted(Load::Steady, FrameSizes::Uniform(500, 1500)), 2_441);
    assert_eq!(wanted(Load::OnOff { on: Nanos(300_000), off: Nanos(700_000) }, fixed), 732);
    let messages = |size, count| Load::Messages { size, every: Nanos(100_000), poisson: false, count };
    assert_eq!(wanted(messages(MessageSize::Fixed(Bytes(2_500)), None), fixed), 63);
    assert_eq!(wanted(messages(MessageSize::Fixed(Bytes(2_500)), Some(2)), fixed), 6);
    assert_eq!(
        wanted(messages(MessageSize::Known(Distribution::WebSearch), None), fixed),
        2_441,
        "no more than the rate allows"
    );
}

/// Runs `conf/sim/isolation.yaml` for one millisecond on a core for which shedding a frame takes as long as receiving
/// one.
fn isolation(change: impl Fn(String) -> String) -> (Scenario, Outcome) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/sim/isolation.yaml");
    let text = std::fs::read_to_string(path).expect("the scenario");
    let text = text.replace("frame: 60ns", "frame: 60ns, shed: 60ns").replace("duration: 5ms", "duration: 1ms");
    let scenarios = scenario::parse("isolation.yaml", &change(text), None, &Options::default());
    let scenario = scenarios.unwrap_or_else(|errors| panic!("{errors}")).remove(0).1;
    let outcome = crate::sim::run(&scenario, &mut |_| {});
    (scenario, outcome)
}

#[test]
fn flow_that_begins_after_the_flood_and_never_sends_is_starved() {
    let run = isolation(|text| text.replace("frame: 1078}", "frame: 1078, start: 200us}"));
    let lines = sentences(&run.0, &run.1);
    let [sent, received] = [run.1.flows[0].sent_frames, run.1.switches[0].ports[0].classes[3].rx_frames];
    assert_eq!((sent, received, lines.len()), (0, 0, 2), "{lines:?}");
    assert_starved(&run, true, "both hosts were held before their first frame");
}

#[test]
fn flow_is_starved_although_another_flow_of_its_class_moves() {
    // h4 sends no flood, so no backlog holds its port.
    let run = isolation(|text| {
        let text = text.replace("frame: 1078}", "frame: 1078, start: 200us}");
        text + "  - {from: h4, to: h1, rate: 1G, frame: 1078}\n"
    });
    let other = run.1.flows.last().expect("a flow");
    assert!(other.received_frames > 50, "{other:?}");
    assert_starved(&run, true, "the flows of h1 and h3");
}

#[test]
fn backlog_is_measured_within_the_time_of_the_flow() {
    let run = isolation(|text| text.replace("frame: 1078}", "frame: 1078, start: 200us, stop: 700us}"));
    let flow = &run.1.flows[0];
    let hold = flow.backlog.expect("a lossless flow");
    assert_eq!((flow.span_ps, hold.port), (500 * US, PortRef { switch: 0, port: 0 }));
    assert!(hold.held_ps > 450 * US && hold.held_ps <= flow.span_ps, "{hold:?}");
    assert!(run.1.switches[0].ports[0].backlog_held_ps > 900 * US, "the drain and the time before are not in it");
    assert_eq!(run.1.flows[2].backlog, None, "a lossy flow");
}
