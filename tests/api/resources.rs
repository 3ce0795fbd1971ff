//! The resources of the API and their fields.

use holdfast::api::operations::OPERATIONS;
use serde_json::Value;

use crate::process::wait_for;
use crate::rig::{PATIENCE, Switch, sum};

/// The rig compares each answer with the schema of its operation.
#[test]
fn each_resource_has_its_schema_and_a_time_after_that_of_an_earlier_state() {
    let switch = Switch::start(&[]);
    let state = switch.get("state");
    let index = switch.get("");
    let paths: Vec<&str> = index["resources"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(paths.len() > 25, "{paths:?}");
    for name in paths.iter().map(|path| path.strip_prefix("/v1/").expect("under /v1")) {
        let answer = switch.get(name);
        if name != "openapi.json" {
            assert!(answer["at_ns"].as_u64() >= state["at_ns"].as_u64(), "{name} came later");
        }
    }
    let config = switch.get("config");
    assert_eq!(config["config"]["hash"], state["version"]["config_hash"]);
    assert_eq!(config["config"]["text"], include_str!("../../conf/incast.yaml"));
    switch.end();
}

#[test]
fn description_is_served_with_every_operation_and_without_links() {
    let switch = Switch::start(&[]);
    let served = switch.get("openapi.json");
    for operation in OPERATIONS {
        let method = operation.method.word().to_lowercase();
        assert!(served["paths"][operation.path][method]["responses"]["200"].is_object(), "{operation:?}");
    }
    assert_eq!(served["components"]["schemas"]["Port"]["properties"]["pfc_mode"]["description"], "PFC mode.");
    switch.end();
}

#[test]
fn counters_of_two_states_grow_and_drop_sums_agree() {
    let switch = Switch::start(&["--pfc", "off"]);
    let before = switch.get("state");
    let dropped = |state: &Value| sum(&state["ports"], "lossless_dropped_frames");
    let after = wait_for("drops", PATIENCE, || {
        let state = switch.get("state");
        (dropped(&state) > dropped(&before)).then_some(state)
    });
    assert!(after["at_ns"].as_u64() > before["at_ns"].as_u64());
    assert!(sum(&after["ports"], "received_wire_bytes") > sum(&before["ports"], "received_wire_bytes"));
    assert_eq!(sum(&after["drops"], "frames"), sum(&after["ports"], "dropped_frames"));
    let row = &after["drops"][0];
    assert_eq!(
        (row["class"].as_u64(), &row["lossless"], &row["reason"]),
        (Some(3), &true.into(), &"headroom_full".into())
    );
    assert_eq!(after["ports"][0]["pfc_standing"], "off");
    assert_eq!(switch.get("config")["config"]["overrides"], serde_json::json!(["--pfc off"]));
    switch.end();
}

#[test]
fn the_forwarding_database_has_every_host_at_its_port() {
    for lcores in ["1", "2"] {
        let switch = Switch::start(&["--lcores", lcores]);
        let fdb = wait_for("five stations", PATIENCE, || {
            let fdb = switch.get("fdb")["fdb"].take();
            (fdb["entries"].as_array()?.len() == 5).then_some(fdb)
        });
        let entries = fdb["entries"].as_array().expect("entries");
        let mut ports: Vec<&str> = entries.iter().filter_map(|entry| entry["port"].as_str()).collect();
        ports.sort_unstable();
        assert_eq!(ports, ["p1", "p2", "p3", "p4", "p5"], "{fdb}");
        for entry in entries {
            assert_eq!((&entry["vlan"], &entry["origin"]), (&1.into(), &"learned".into()), "{entry}");
            assert!(entry["age_ns"].as_u64().is_some_and(|ns| ns < 300_000_000_000), "{entry}");
        }
        switch.end();
    }
}

#[test]
fn wrong_request_gets_error_status_and_remedy() {
    let switch = Switch::start(&[]);
    for (request, status, error, remedy) in [
        ("GET /v1/prts", 404, "there is no /v1/prts", "/v1/ports, /v1/pfc"),
        ("GET /v1/prts", 404, "there is no /v1/prts", "or POST to one of /v1/fdb/clear, /v1/reload,"),
        ("GET /", 404, "there is no /", "GET one of /v1/openapi.json, /v1/state"),
        ("DELETE /v1/ports", 405, "DELETE is not supported for /v1/ports", "use GET"),
        ("PUT /v1/faults", 405, "PUT is not supported for /v1/faults", "use GET, POST, DELETE"),
        ("GET /v1/faults/2", 405, "GET is not supported for /v1/faults/2", "use DELETE"),
        ("GET /v1/watermarks/clear", 405, "GET is not supported for /v1/watermarks/clear", "use POST"),
        ("GET /v1/ports?port=p1", 400, "only /v1/routes accepts parameters", "without `?`"),
        ("GET /v1/routes?x=1", 400, "routes have no parameter `x`", "use address, prefix"),
        ("POST /v1/watermarks/clear", 403, "this switch's API is read-only", "`api: {writes: true}`"),
    ] {
        let (got, body) = switch.ask(request);
        let answer: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{request}: {error}: {body}"));
        assert_eq!((got, answer["error"].as_str()), (status, Some(error)), "{request}: {body}");
        assert!(answer["remedy"].as_str().is_some_and(|text| text.contains(remedy)), "{request}: {body}");
    }
    switch.end();
}

#[test]
fn lossless_drops_are_events() {
    let switch = Switch::start(&["--pfc", "off"]);
    let texts = || switch.get("events")["events"].as_array().expect("events").clone();
    let begins = |port| format!("lossless drop: {port} class 3 lost ");
    let is_told =
        |port| texts().iter().any(|event| event["text"].as_str().is_some_and(|text| text.contains(&begins(port))));
    for port in ["p1", "p2", "p3", "p4"] {
        wait_for("loss that is told", PATIENCE, || is_told(port).then_some(()));
    }
    assert!(!is_told("p5"), "which only sends");
    let shown = switch.printed(&["show", "events"]);
    assert!(shown.contains("headroom_full, a lossless group's headroom is full"), "{shown}");
    assert!(switch.process.stderr().contains(&begins("p1")), "{}", switch.process.stderr());
    switch.end();
}

#[test]
fn watermarks_are_cleared_where_writes_are_allowed() {
    let config = format!("{}\napi: {{writes: true}}\n", include_str!("../../conf/incast.yaml"));
    let switch = Switch::configured(&config);
    let highest = |switch: &Switch| sum(&switch.get("queues")["queues"], "depth_highest_bytes");
    wait_for("a queue", PATIENCE, || (highest(&switch) > 1 << 20).then_some(()));
    // Without load a cleared watermark stays at zero: ports that only receive have empty queues.
    let p1 = |switch: &Switch| switch.get("queues")["queues"][0]["depth_highest_bytes"].as_u64().expect("a number");
    assert!(p1(&switch) > 0, "an announcement has passed");
    assert_eq!(switch.printed(&["clear", "watermarks"]), "watermarks are set to the current values\n");
    wait_for("cleared watermark", PATIENCE, || (p1(&switch) == 0).then_some(()));
    switch.end();
}
