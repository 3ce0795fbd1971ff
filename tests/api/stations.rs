//! Stations and VLANs of a running switch: shown, and removed on request.

use serde_json::{Value, json};

use crate::process::{mortal, wait_for};
use crate::rig::{HOLDFAST, PATIENCE, Switch};

/// Two hosts that send, and two that have announced themselves once; static entries at two ports.
const CONFIG: &str = "\
preset: roce
ports:
  - {name: p1, device: ring, speed: 10G, cable: 5m}
  - {name: p2, device: ring, speed: 10G, cable: 5m}
  - {name: p3, device: ring, speed: 10G, cable: 5m}
  - {name: p4, device: ring, speed: 10G, cable: 5m, vlan: 20}
hosts:
  - {name: h1, port: p1, flows: [{to: h2, kind: udp, rate: 10M}]}
  - {name: h2, port: p2}
  - {name: h3, port: p3}
  - {name: h4, port: p4}
fdb:
  static: [{vlan: 20, mac: \"02:00:00:00:aa:01\", port: p4}]
";

/// The entries of the forwarding database behind `port`: learned and static ones.
fn behind(switch: &Switch, port: &str) -> (usize, usize) {
    let fdb = switch.get("fdb");
    let entries = fdb["fdb"]["entries"].as_array().expect("entries").iter().filter(|entry| entry["port"] == port);
    let (learned, fixed): (Vec<_>, Vec<_>) = entries.partition(|entry| entry["origin"] == "learned");
    (learned.len(), fixed.len())
}

#[test]
fn learned_stations_are_cleared_by_port_and_vlan_and_static_ones_stay() {
    let switch = Switch::configured(&format!("{CONFIG}api: {{writes: true}}\n"));
    for port in ["p2", "p3", "p4"] {
        wait_for("announcement", PATIENCE, || (behind(&switch, port).0 == 1).then_some(()));
    }
    assert_eq!(switch.printed(&["clear", "fdb", "--port", "p3", "--vlan", "20"]), "learned stations removed: 0\n");
    assert_eq!(switch.printed(&["clear", "mac", "--port", "p3"]), "learned stations removed: 1\n");
    assert_eq!((behind(&switch, "p3"), behind(&switch, "p2"), behind(&switch, "p4")), ((0, 0), (1, 0), (1, 1)));
    assert_eq!(switch.printed(&["clear", "fdb", "--vlan", "20"]), "learned stations removed: 1\n");
    assert_eq!(behind(&switch, "p4"), (0, 1), "the static one stays");
    let all = switch.printed(&["clear", "fdb"]);
    assert!(["learned stations removed: 1\n", "learned stations removed: 2\n"].contains(&all.as_str()), "{all}");
    let event = wait_for("event", PATIENCE, || {
        let events = switch.get("events")["events"].as_array().expect("events").clone();
        events.into_iter().find(|event| event["kind"] == "fdb_cleared" && event["port"] == "p3")
    });
    assert_eq!(event["severity"], "notice");
    // Another thread writes it there.
    wait_for("line of the event", PATIENCE, || {
        switch.process.stderr().contains("clear: learned stations of p3: 1, by ").then_some(())
    });
    for (args, code, error) in [
        (&["clear", "fdb", "--port", "p9"][..], 2, "there is no port `p9`"),
        (&["clear", "watermarks", "--vlan", "1"], 2, "`clear watermarks` does not take --vlan"),
        (&["clear", "fdb", "--vlan", "4095"], 2, "4095"),
    ] {
        let output = switch.holdfast(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && stderr.contains(error), "{args:?}: {output:?}");
    }
    switch.end();
}

#[test]
fn read_only_switch_keeps_its_stations_and_shows_its_vlans() {
    let switch = Switch::configured(CONFIG);
    wait_for("announcement", PATIENCE, || (behind(&switch, "p4") == (1, 1)).then_some(()));
    let (status, body) = switch.ask("POST /v1/fdb/clear");
    assert!(status == 403 && body.contains("read-only"), "{status} {body}");
    assert_eq!(behind(&switch, "p4"), (1, 1));
    let vlans = switch.get("vlans")["vlans"].clone();
    let expected = json!({
        "vlan": 20, "untagged_ports": ["p4"], "tagged_ports": [], "stations": 2, "interface": Value::Null,
    });
    assert_eq!((&vlans[1], &vlans[0]["untagged_ports"]), (&expected, &json!(["p1", "p2", "p3"])), "{vlans}");
    let text = switch.printed(&["show", "vlan", "--port", "p4"]);
    assert!(text.lines().count() == 3 && text.contains("\n  20  p4"), "{text}");
    switch.end();
}

#[test]
fn counters_are_cleared_for_one_user_until_undone() {
    let switch = Switch::configured(CONFIG);
    let home = tempfile::tempdir().expect("a directory");
    let run = |args: &[&str], home: &std::path::Path| {
        let mut command = mortal(HOLDFAST);
        command.args(args).arg("--socket").arg(switch.socket()).env("XDG_STATE_HOME", home);
        let output = command.output().expect("it can be started");
        assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is UTF-8")
    };
    let received = |text: &str| {
        let row = text.lines().find(|line| line.starts_with("p1 ")).expect("a row");
        row.split_whitespace().nth(5).expect("received").replace(',', "").parse::<u64>().unwrap_or(0)
    };
    let whole = |switch: &Switch| switch.get("ports")["ports"][0]["received_frames"].as_u64().expect("a count");
    let text = run(&["clear", "counters"], home.path());
    assert!(text.starts_with("`holdfast show` counts from ") && text.contains(" UTC on"), "{text}");
    let before = whole(&switch);
    let shown = run(&["show", "ports"], home.path());
    assert!(received(&shown) < before && shown.contains("(since 2"), "{before}: {shown}");
    assert!(whole(&switch) >= before, "the switch counts on");
    let json: Value = serde_json::from_str(&run(&["show", "ports", "--json"], home.path())).expect("JSON");
    assert!(json["ports"][0]["received_frames"].as_u64() >= Some(before), "the answer of the API");
    let other = tempfile::tempdir().expect("a directory");
    assert!(received(&run(&["show", "ports"], other.path())) >= before, "another user");
    assert!(run(&["clear", "counters", "--undo"], home.path()).contains("from the start of the switch again"));
    let shown = run(&["show", "ports"], home.path());
    assert!(received(&shown) >= before && shown.contains("after the switch began"), "{shown}");
    assert_eq!(run(&["clear", "counters", "--undo"], home.path()), "no counters of this switch are cleared\n");
    switch.end();
}
