//! The work that a text causes.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

thread_local! {
    /// Values that this thread has read.
    pub(super) static VALUES: Cell<usize> = const { Cell::new(0) };
}

/// Returns the values read for `text`, and whether it was refused for their number.
fn work(text: &str, bound: Bound) -> (usize, bool) {
    VALUES.set(0);
    let result = parse_within("x.yaml", text, bound);
    let is_too_much = result.err().is_some_and(|errors| errors.to_string().ends_with(TOO_MUCH));
    (VALUES.get(), is_too_much)
}

/// Lists of aliases of the list before: `width` to the power of `levels` values.
fn bomb(levels: usize, width: usize, merge: bool) -> String {
    let mut text = "- &a0 {k: [x, x, x]}\n".to_owned();
    for level in 1..levels {
        let aliases = vec![format!("*a{}", level - 1); width].join(", ");
        text += &if merge {
            format!("- &a{level} {{<<: [{aliases}], k{level}: [{aliases}]}}\n")
        } else {
            format!("- &a{level} [{aliases}]\n")
        };
    }
    text
}

proptest! {
    #[test]
    fn aliases_cause_no_more_than_bounded_work(levels in 1_usize..12, width in 1_usize..12, merge: bool) {
        let text = bomb(levels, width, merge);
        for bound in [Bound::REQUEST, Bound { values: 500, repeated: 200 }] {
            let (values, _) = work(&text, bound);
            prop_assert!(values <= bound.values + 2 * bound.repeated, "{values} values: {text}");
        }
    }
}

#[test]
fn short_text_of_aliases_is_refused_with_the_remedy() {
    let text = bomb(9, 9, false);
    assert!(text.len() < 500, "{} bytes", text.len());
    assert!(work(&text, Bound::REQUEST).1 && work(&text, Bound::FILE).1);
}

#[test]
fn request_of_as_many_faults_as_a_switch_may_have_is_within_the_bound() {
    let fault =
        "- {port: p1, toward: host, kind: delay, by: 10us, rate: 10 %, begin: 1s, end: 2s, priorities: [1, 2, 3]}\n";
    let (_, is_too_much) = work(&fault.repeat(64), Bound::REQUEST);
    assert!(!is_too_much);
    assert!(work(&"- x\n".repeat(5_000), Bound::REQUEST).1);
}
