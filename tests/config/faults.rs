//! `faults`: what is accepted, and refusals with place and remedy.

use holdfast::faults::{Fault, FaultKind, Share, Toward, What};
use holdfast::sets::ClassSet;
use holdfast::units::Nanos;

use super::*;

fn list(faults: &str) -> Vec<Fault> {
    accept(&format!("preset: roce\n{PORTS}faults: [{faults}]\n")).faults.expect("faults are allowed").list
}

#[test]
fn faults_are_off_by_default_and_allowed_by_a_word_or_a_list() {
    let faults = |text: &str| accept(&format!("{PORTS}{text}")).faults;
    assert_eq!(faults(""), None);
    assert_eq!(faults("faults: off"), None);
    let allowed = faults("faults: allowed").expect("allowed");
    assert_eq!((allowed.seed, allowed.list.len()), (1, 0));
    let seeded = faults("faults: {seed: 9, list: [{lose: p1}]}").expect("allowed");
    assert_eq!((seeded.seed, seeded.list.len()), (9, 1));
}

#[test]
fn every_kind_has_its_defaults_and_its_text_is_its_order() {
    let texts = [
        "{lose: p1}",
        "{lose: p2, what: pfc, toward: switch, chance: 0.5%, burst: 3, at: 1ms, for: 2s}",
        "{delay: p1, by: 100us, toward: host, one_in: 10, burst: 2, class: [3, 4]}",
        "{duplicate: p1, flow: {source: 10.0.0.1, destination: 10.1.0.0/16, protocol: 17, source_port: 5, \
         destination_port: 4791, queue_pair: 17, dscp: 26}}",
        "{reorder: p1, behind: 3}",
        "{corrupt: p1}",
        "{mark: p1}",
        "{storm: p1, priorities: [3], toward: switch}",
        "{late: p1, response: 10us, toward: host}",
        "{ignore: p1, toward: host}",
    ];
    for text in texts {
        // A storm comes from the host in any case.
        let written = if text.starts_with("{storm") { text.replace(", toward: switch", "") } else { text.to_owned() };
        let faults = list(&written);
        assert_eq!(faults.len(), 1);
        let name = format!("p{}", faults[0].port + 1);
        assert_eq!(faults[0].text(&name), *text);
    }
    let fault = list("{delay: p2, by: 1ms}")[0];
    assert_eq!(fault, Fault::new(1, FaultKind::Delay { by: Nanos(1_000_000) }));
    assert_eq!((fault.what, fault.toward, fault.share), (What::Data, None, Share::All));
    assert_eq!(list("{storm: p1}")[0].kind, FaultKind::Storm { priorities: ClassSet::only(3) });
    assert_eq!(list("{ignore: p1, toward: switch}")[0].toward, Some(Toward::Switch));
    assert_eq!(list("{lose: p1, class: 3}")[0].what, What::Data);
}

#[test]
fn wrong_faults_are_refused_with_place_and_remedy() {
    for (fault, expected) in [
        ("{lose: p9}", "faults[0].lose: there is no port `p9`; write `p1` or `p2`"),
        ("{at: 1ms}", "faults[0]: the fault has no kind; write `lose`, `delay`, `duplicate`"),
        ("{lose: p1, mark: p1}", "faults[0].mark: `lose` is given too; write one fault for each"),
        ("{delay: p1}", "faults[0]: `by` is missing; write e.g. `by: 1ms`"),
        ("{delay: p1, by: 2s}", "faults[0].by: `2s` is out of range; write from 1ns to 1s"),
        ("{mark: p1, by: 1ms}", "faults[0].by: `mark` has no `by`; remove it"),
        ("{storm: p1, chance: 1%}", "faults[0].chance: `storm` has no `chance`; remove it"),
        ("{lose: p1, chance: 101%}", "faults[0].chance: `101%` is not a probability; write a percentage"),
        ("{lose: p1, one_in: 0}", "faults[0].one_in: `0` is not a number of frames; write a whole number from 1"),
        ("{lose: p1, one_in: 2, chance: 1%}", "faults[0].one_in: `chance` is given too; write one of the two"),
        ("{lose: p1, burst: 2}", "faults[0].burst: without `chance` or `one_in` all frames are hit"),
        ("{lose: p1, one_in: 2, burst: 3}", "faults[0].burst: a burst of 3 does not fit one in 2 frames"),
        ("{lose: p1, what: pfc, class: 3}", "faults[0].what: PFC frames have neither class nor flow; write `data`"),
        ("{lose: p1, class: 8}", "faults[0].class: `8` is not a class; write a whole number from 0 to 7"),
        ("{lose: p1, class: []}", "faults[0].class: the list is empty; write e.g. `[3]`"),
        ("{lose: p1, flow: {source: x}}", "faults[0].flow.source: `x` is not an address or prefix; write e.g."),
        ("{lose: p1, flow: {}}", "faults[0].flow: the flow is empty; write `source`"),
        ("{lose: p1, flow: {dscp: 64}}", "faults[0].flow.dscp: `64` is not a DSCP; write a whole number from 0 to 63"),
        ("{lose: p1, toward: p2}", "faults[0].toward: `p2` is not one of the choices; write `switch` or `host`"),
        ("{lose: p1, los: 3}", "unknown key `los`"),
        ("{reorder: p1, behind: 65}", "faults[0].behind: `65` is not a number of frames; write a whole number"),
    ] {
        let errors = config::parse("x.yaml", &format!("preset: roce\n{PORTS}faults: [{fault}]\n"));
        let errors = errors.expect_err("this configuration is wrong").to_string();
        assert!(errors.starts_with("x.yaml:5:") && errors.contains(expected), "{fault}: {errors}");
    }
    let many = "{lose: p1}, ".repeat(65);
    let errors = config::parse("x.yaml", &format!("{PORTS}faults: [{many}]\n")).expect_err("too many").to_string();
    assert!(errors.contains("65 faults are too many; write at most 64"), "{errors}");
    let errors = config::parse("x.yaml", &format!("{PORTS}faults: 5\n")).expect_err("no list").to_string();
    assert!(errors.contains("`5` is not faults; write `allowed`, `off` or a list"), "{errors}");
    let errors = config::parse("x.yaml", &format!("{PORTS}faults: [{{storm: p1}}]\n")).expect_err("none").to_string();
    assert!(errors.contains("the switch has no lossless class; write e.g. `priorities: [3]`"), "{errors}");
}
