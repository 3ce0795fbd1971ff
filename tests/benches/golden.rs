//! The guard of the packet path's instruction counts detects changes. Runs `perf/instructions/golden.rs` on invented
//! counts and on the committed file.

use crate::counts::{Count, Finding, GoldenCounts};

const NAMES: &[&str] = &["pipeline, 1 flow", "stage, parse"];

fn counts(pipeline: f64, stage: f64) -> Vec<Count> {
    vec![(NAMES[0].to_owned(), pipeline), (NAMES[1].to_owned(), stage)]
}

fn golden() -> GoldenCounts {
    GoldenCounts { rustc: "rustc 1.95.0".to_owned(), counts: counts(300.0, 20.0) }
}

fn findings(measured: &[Count]) -> Vec<String> {
    golden().judge(NAMES, measured).iter().map(ToString::to_string).collect()
}

#[test]
fn count_within_two_percent_or_one_instruction_passes() {
    for measured in [counts(300.0, 20.0), counts(306.0, 21.0), counts(294.0, 19.0), counts(306.04, 21.04)] {
        assert_eq!(findings(&measured), Vec::<String>::new());
    }
}

#[test]
fn regression_is_reported_with_both_counts() {
    let expected = ["pipeline, 1 flow: from 300.0 to 306.1 instructions (+2.0 %), more"];
    assert_eq!(findings(&counts(306.1, 20.0)), expected);
    let expected = ["stage, parse: from 20.0 to 21.1 instructions (+5.5 %), more"];
    assert_eq!(findings(&counts(300.0, 21.1)), expected);
}

#[test]
fn count_below_its_golden_value_fails_until_committed() {
    let expected = ["pipeline, 1 flow: from 300.0 to 150.0 instructions (-50.0 %), fewer: commit the improvement"];
    assert_eq!(findings(&counts(150.0, 20.0)), expected);
}

#[test]
fn uncommitted_count_and_missing_count_fail() {
    let mut measured = counts(300.0, 20.0);
    measured.push(("stage, new".to_owned(), 5.0));
    assert_eq!(findings(&measured), ["stage, new: 5.0 instructions, and no committed count"]);
    let gone = golden().judge(&NAMES[..1], &counts(300.0, 20.0)[..1]);
    assert_eq!(gone, [Finding::Gone { name: NAMES[1].to_owned() }]);
    // A missing count is no finding unless its name was requested.
    assert_eq!(golden().judge(NAMES, &counts(300.0, 20.0)[..1]), []);
}

#[test]
fn update_writes_measured_counts_and_keeps_the_others() {
    let mut golden = golden();
    golden.update(NAMES, &counts(250.04, 0.0)[..1]);
    assert_eq!(golden.counts, counts(250.04, 20.0));
    let read = GoldenCounts::parse(&golden.text()).unwrap();
    assert_eq!(read.counts, counts(250.0, 20.0), "a decimal is enough");
    assert_eq!(read.rustc, golden.rustc);
    golden.update(&NAMES[1..], &[]);
    assert_eq!(golden.counts, counts(0.0, 20.0)[1..]);
}

#[test]
fn a_line_that_is_no_count_is_refused() {
    let error = GoldenCounts::parse("# fine\n\nstage, parse 20\nstage, parse: twenty\n").unwrap_err();
    assert_eq!(error, "line 4: `stage, parse: twenty` is no name and count");
    assert!(GoldenCounts::parse("stage, parse NaN").is_err());
}

#[test]
fn committed_file_equals_the_output_of_an_update() {
    let text = include_str!("../../perf/instructions.txt");
    let golden = GoldenCounts::parse(text).unwrap();
    assert_eq!(golden.text(), text, "write it with UPDATE_INSTRUCTIONS=1, not by hand");
    assert!(golden.counts.len() > 20 && golden.rustc.starts_with("rustc "));
}
