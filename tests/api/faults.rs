//! Faults by requests: added, removed and refused. Random requests do no harm.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::process::wait_for;
use crate::rig::{PATIENCE, Switch};

/// The incast with four hosts that send to the fifth.
fn configuration(more: &str) -> String {
    format!("{}\n{more}\n", include_str!("../../conf/incast.yaml"))
}

impl Switch {
    /// Sends `body` with `request`; returns the status and the answer.
    fn send(&self, request: &str, body: &[u8]) -> (u16, Value) {
        let mut stream = self.connect().expect("a connection");
        let head =
            format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        // The server may answer before it has read all.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request}: {answer:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{head}")), serde_json::from_str(body).unwrap_or_default())
    }

    fn faults(&self) -> Vec<Value> {
        self.get("faults")["faults"]["list"].as_array().expect("a list").clone()
    }
}

#[test]
fn faults_are_added_and_removed_by_requests() {
    let switch = Switch::configured(&configuration("faults: allowed\napi: {writes: true}"));
    assert_eq!(switch.printed(&["show", "faults"]), "no fault is injected\n");
    let body = br#"[{"lose": "p1", "one_in": 100, "class": 3}, {"mark": "p2", "at": "1000s"}]"#;
    let (status, answer) = switch.send("POST /v1/faults", body);
    assert_eq!((status, &answer["added"]["ids"]), (200, &json!([1, 2])), "{answer}");
    wait_for("lost frames", PATIENCE, || switch.faults()[0]["lossless_frames"].as_u64().filter(|frames| *frames > 10));
    let faults = switch.faults();
    assert_eq!((&faults[0]["state"], &faults[1]["state"]), (&json!("active"), &json!("waiting")));
    assert_eq!(faults[1]["text"], "{mark: p2, at: 1000s}");
    // All or none: the second one is wrong.
    let (status, answer) = switch.send("POST /v1/faults", br#"[{"lose": "p1"}, {"lose": "p7"}]"#);
    assert_eq!(status, 400);
    let error = "request:1:27: [1].lose: there is no port `p7`; write `p1`, `p2`, `p3`, `p4` or `p5`";
    assert_eq!((answer["error"].as_str(), switch.faults().len()), (Some(error), 2));
    for (request, status) in [
        ("DELETE /v1/faults/9", 404),
        ("DELETE /v1/faults/x", 400),
        ("DELETE /v1/faults/%ff", 400),
        ("PUT /v1/faults", 405),
        ("GET /v1/faults/1", 405),
    ] {
        let (found, answer) = switch.send(request, b"");
        assert_eq!(
            (found, answer["error"].is_string(), answer["remedy"].is_string()),
            (status, true, true),
            "{request}"
        );
    }
    // Aliases of aliases: a few hundred bytes that stand for millions of values.
    let lists = (1..9).map(|level| format!("- &a{level} [{}]\n", [&format!("*a{}", level - 1)[..]; 9].join(", ")));
    let bomb = lists.fold("- &a0 [x]\n".to_owned(), |text, list| text + &list);
    let (status, answer) = switch.send("POST /v1/faults", bomb.as_bytes());
    assert!(
        status == 400 && answer["error"].as_str().is_some_and(|error| error.contains("too many values")),
        "{answer}"
    );
    let (status, _) = switch.send("POST /v1/faults", &vec![b' '; 70_000]);
    assert_eq!(status, 413);
    let added = switch.printed(&["fault", "add", "{corrupt: p3, one_in: 5, at: 0s}", "{duplicate: p3}"]);
    assert_eq!(added, "fault 3: {corrupt: p3, one_in: 5}\nfault 4: {duplicate: p3}\n");
    assert_eq!(switch.printed(&["fault", "remove", "4"]), "1 fault is removed\n");
    let shown = switch.printed(&["show", "faults"]);
    assert!(shown.contains("{corrupt: p3, one_in: 5}"), "{shown}");
    assert_eq!(switch.send("DELETE /v1/faults/1", b"").1["removed"], 1);
    assert_eq!(switch.printed(&["fault", "clear"]), "2 faults are removed\n");
    assert!(switch.faults().is_empty());
    wait_for("end that is told", PATIENCE, || switch.process.stderr().contains(" fault 1 ends: ").then_some(()));
    let ended = switch.end();
    let is_told = |words: &str| ended.stderr.contains(words);
    assert!(is_told(" fault 1 begins: {lose: p1, one_in: 100, class: [3]"), "{}", ended.stderr);
    assert!(!is_told("fault 2 "), "{}", ended.stderr);
    assert!(ended.stdout.contains("lossless: BROKEN BY INJECTED FAULTS: "), "{}", ended.stdout);
    assert_eq!(ended.status.code(), Some(0));
}

#[test]
fn faults_need_the_configuration_and_writes() {
    for (more, error) in
        [("api: {writes: true}", "this switch allows no faults"), ("faults: allowed", "this switch's API is read-only")]
    {
        let switch = Switch::configured(&configuration(more));
        for request in ["POST /v1/faults", "DELETE /v1/faults", "DELETE /v1/faults/1"] {
            let (status, answer) = switch.send(request, br#"{"lose": "p1"}"#);
            assert_eq!((status, answer["error"].as_str()), (403, Some(error)), "{request}: {answer}");
        }
        assert_eq!(switch.get("faults")["faults"]["allowed"], more.starts_with("faults"), "{more}");
        switch.end();
    }
}

#[test]
fn clients_that_order_at_the_same_time_wait_for_each_other() {
    let switch = Switch::configured(&configuration("faults: allowed\napi: {writes: true}"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..8 {
                    let (status, answer) = switch.send("POST /v1/faults", br#"{"mark": "p1"}"#);
                    assert_eq!(status, 200, "{answer}");
                }
            });
        }
    });
    assert_eq!(switch.faults().len(), 32);
    switch.end();
}

#[test]
fn faults_end_before_the_switch_and_hosts_miss_no_frame() {
    let faults = "faults: [{delay: p5, by: 2ms, toward: host}, {storm: p1, priorities: [3]}]";
    let switch = Switch::configured(&configuration(faults));
    wait_for("held frames", PATIENCE, || {
        switch.faults()[0]["lossless_frames"].as_u64().filter(|frames| *frames > 4000)
    });
    let ended = switch.end();
    assert!(ended.stdout.contains("lossless: BROKEN BY INJECTED FAULTS: "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("missing end to end"), "{}", ended.stdout);
    assert_eq!(ended.status.code(), Some(0));
}

/// Length of the comment in each random request, and the growth in KiB that is no leak of such bodies.
const COMMENT: usize = 60_000;
const MARGIN: u64 = 6 << 10;

/// Pieces of requests, valid and not.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    " ",
    "lose",
    "delay",
    "storm",
    "reorder",
    "duplicate",
    "p1",
    "p2",
    "by",
    "1ms",
    "for",
    "one_in",
    "3",
    "{lose: p1, for: 1ms}",
    "{delay: p2, by: 1ms, chance: 1%, for: 1ms}",
    "&a",
    "\u{1f980}",
];

/// Sends `HOLDFAST_FUZZ_REQUESTS` requests, or a few hundred. The switch answers all of them, keeps its bounds and its
/// memory, and forwards.
#[test]
fn random_requests_neither_end_the_switch_nor_leak() {
    let count = std::env::var("HOLDFAST_FUZZ_REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(400_u64);
    let switch = Switch::configured(&configuration("faults: allowed\napi: {writes: true}"));
    let mut state = 1_u64;
    let mut draw = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut memory = None;
    for number in 0..count {
        let pieces: String = (0..draw(12)).map(|_| PIECES[draw(PIECES.len())]).collect();
        let body = format!("#{}\n{pieces}", "x".repeat(COMMENT));
        let request = match draw(6) {
            0 => format!("DELETE /v1/faults/{}", draw(300)),
            1 if number % 50 == 0 => "DELETE /v1/faults".to_owned(),
            _ => "POST /v1/faults".to_owned(),
        };
        let (status, answer) = switch.send(&request, body.as_bytes());
        assert!([200, 400, 404, 503].contains(&status), "{request} {pieces:?}: {status} {answer}");
        assert!(status == 200 || answer["error"].is_string() && answer["remedy"].is_string(), "{pieces:?}: {answer}");
        if number == count / 2 {
            memory = Some(switch.resident());
        }
    }
    assert!(switch.faults().len() <= 64);
    let (before, after) = (memory.expect("it was measured"), switch.resident());
    assert!(after < before + MARGIN, "{before} KiB, then {after} KiB");
    assert_eq!(switch.send("DELETE /v1/faults", b"").0, 200);
    let received = |switch: &Switch| crate::rig::sum(&switch.get("ports")["ports"], "received_frames");
    let now = received(&switch);
    wait_for("frames", PATIENCE, || (received(&switch) > now + 1_000).then_some(()));
    let ended = switch.end();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("lossless: "), "{}", ended.stdout);
}

impl Switch {
    /// Resident memory in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}
