use proptest::prelude::*;

use super::*;
use crate::config;

fn switch() -> SwitchSpec {
    let text = "preset: roce\nports: [{name: p1, device: net_null0, speed: 10G}, {name: p2, device: ring, speed: 1G}]\n\
                hosts: [{name: h, port: p2}]\n";
    config::parse("test", text).unwrap_or_else(|errors| panic!("{errors}")).switch
}

#[test]
fn request_is_a_fault_or_a_list_in_json_or_yaml() {
    let switch = switch();
    let count = |text: &str| read_request(text, &switch).unwrap_or_else(|errors| panic!("{errors}")).len();
    assert_eq!(count(r#"{"lose": "p1", "one_in": 10, "flow": {"source": "fd00::/8"}}"#), 1);
    assert_eq!(count(r#"[{"lose": "p1"}, {"storm": "p2", "for": "1s", "priorities": [3, 4]}]"#), 2);
    assert_eq!(count("- {mark: p1}\n- delay: p2\n  by: 1ms\n"), 2);
    let error = |text: &str| read_request(text, &switch).expect_err("it is wrong").to_string();
    assert_eq!(
        error(r#"[{"lose": "p1"}, {"mark": "p3"}]"#),
        "request:1:27: [1].mark: there is no port `p3`; write `p1` or `p2`"
    );
    for empty in ["", "[]", "null"] {
        assert!(error(empty).starts_with("request:1:1:"), "{empty}: {}", error(empty));
    }
}

const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "'",
    " ",
    "\n",
    "- ",
    "lose",
    "delay",
    "duplicate",
    "reorder",
    "corrupt",
    "mark",
    "storm",
    "late",
    "ignore",
    "p1",
    "p2",
    "by",
    "behind",
    "1ms",
    "1s",
    "3",
    "-1",
    "18446744073709551616",
    "one_in",
    "chance",
    "1%",
    "flow",
    "source",
    "10.0.0.1",
    "::/0",
    "class",
    "for",
    "&a",
    "*a",
];

/// Number of requests: `HOLDFAST_FUZZ_REQUESTS`, or a few thousand.
fn cases() -> u32 {
    std::env::var("HOLDFAST_FUZZ_REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000)
}

/// Random pieces, and a valid request with random changes, are read or refused, and never cause a panic. Each accepted
/// fault is read again from its own text.
#[test]
fn random_requests_are_read_or_refused() {
    let switch = switch();
    let valid = r#"[{"lose": "p1", "one_in": 10, "burst": 2, "toward": "host", "class": [3], "flow": {"dscp": 26}}]"#;
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40).prop_map(|all| all.concat());
    let changed = prop::collection::vec((0..valid.len(), any::<u8>()), 0..6).prop_map(move |changes| {
        let mut bytes = valid.as_bytes().to_vec();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let orders = "\\{(lose|delay|mark|storm|late|reorder): p[12](, (by|response|for|at): [0-9]{1,3}(\\.[0-9]{1,4})?(us|ms))?(, (one_in|behind|class|chance): [0-9]{1,2}%?)?\\}";
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases()));
    let read = |text: String| {
        if let Ok(faults) = read_request(&text, &switch) {
            for fault in faults {
                let name = &switch.ports[fault.port].name;
                let text = fault.text(name);
                let text =
                    if fault.kind.verb() == FaultVerb::Storm { text.replace(", toward: switch", "") } else { text };
                let again = read_request(&text, &switch).unwrap_or_else(|errors| panic!("{text}: {errors}"));
                assert_eq!(again, [fault], "{text}");
            }
        }
        Ok(())
    };
    runner.run(&prop_oneof![pieces, changed, orders, ".{0,60}"], read).unwrap_or_else(|error| panic!("{error}"));
}
