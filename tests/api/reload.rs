//! Reload of the configuration while the switch runs.
//!
//! The commands of docs/reload.md are run here.

use serde_json::Value;

use crate::process::wait_for;
use crate::rig::{PATIENCE, Switch, sum};

/// The embedded incast, with API writes permitted.
fn incast() -> String {
    format!("api: {{writes: true}}\n{}", include_str!("../../conf/incast.yaml"))
}

/// Returns the priority group 3 of the first port.
fn group(switch: &Switch) -> Value {
    let groups = switch.get("groups")["groups"].as_array().expect("groups").clone();
    groups.into_iter().find(|group| group["port"] == "p1" && group["group"] == 3).expect("the group")
}

fn lossless_drops(switch: &Switch) -> u64 {
    sum(&switch.get("ports")["ports"], "lossless_dropped_frames")
}

fn reload(switch: &Switch, status: u16) -> Value {
    let (got, body) = switch.ask("POST /v1/reload");
    assert_eq!(got, status, "{body}");
    serde_json::from_str::<Value>(&body).expect("JSON")["reload"].clone()
}

#[test]
fn reload_under_full_load_applies_new_alpha_without_loss() {
    let switch = Switch::configured(&incast());
    let before = wait_for("a group that holds its share", PATIENCE, || {
        let group = group(&switch);
        (group["used_bytes"].as_u64() > Some(800_000)).then_some(group)
    });
    let hash = switch.get("version")["version"]["config_hash"].clone();
    switch.configure(&format!("{}\nclasses: {{3: {{alpha: 1/16}}}}\n", incast()));
    let told = &switch.get("reload")["reload"];
    assert_eq!((&told["outcome"], group(&switch)["alpha"].as_f64()), (&"applicable".into(), before["alpha"].as_f64()));
    let done = reload(&switch, 200);
    assert_eq!(
        (&done["outcome"], done["differences"].as_array().map(Vec::len)),
        (&"applied".into(), Some(1)),
        "{done}"
    );
    assert_eq!(group(&switch)["alpha"].as_f64(), Some(1.0 / 16.0));
    // The ledger applies the new limit: the cells above it have left, and the group receives no more than it permits.
    let limit = before["used_bytes"].as_u64().expect("a number") / 2;
    wait_for("a group within its new limit", PATIENCE, || {
        let used = group(&switch)["used_bytes"].as_u64().expect("a number");
        (0 < used && used < limit).then_some(())
    });
    assert_ne!(switch.get("version")["version"]["config_hash"], hash);
    assert!(switch.get("config")["config"]["text"].as_str().expect("a text").ends_with("alpha: 1/16}}\n"));
    assert_eq!(reload(&switch, 200)["outcome"], "unchanged");
    assert_eq!(lossless_drops(&switch), 0);
    switch.end();
}

/// The buffer of 4 MiB has room for both. Class 0 keeps its part of the pool.
#[test]
fn longer_cable_under_full_load_gets_its_headroom_without_loss() {
    let switch = Switch::configured(&incast());
    wait_for("a group that is XOFF now and then", PATIENCE, || {
        let pfc = switch.get("pfc")["pfc"].clone();
        let sent = pfc.as_array()?.iter().map(|port| sum(&port["priorities"], "sent_xoff_frames")).sum::<u64>();
        (sent > 10).then_some(())
    });
    let size = |switch: &Switch| group(switch)["headroom_size_bytes"].as_u64().expect("a size");
    let before = size(&switch);
    let long = incast().replace("cable: 5m", "cable: 3km");
    for (text, grows) in [(&long, true), (&incast(), false), (&long, true)] {
        switch.configure(text);
        let done = reload(&switch, 200);
        assert_eq!(done["outcome"], "applied", "{done}");
        assert_eq!(size(&switch) > before, grows, "2 x 3 km x 5 ns/m at 10G are 37,500 bytes");
        wait_for("a buffer that is divided as configured", PATIENCE, || {
            let buffers = &switch.get("buffers")["buffers"];
            let pools = buffers["pools"].as_array()?.iter().all(|pool| pool["pending_bytes"] == 0);
            let ports = buffers["ports"].as_array()?.iter().all(|port| port["pending"] == false);
            (pools && ports).then_some(())
        });
    }
    assert_eq!(lossless_drops(&switch), 0);
    switch.end();
}

/// Class 0 of the incast drops frames while it is lossy, and none while it is lossless.
#[test]
fn class_becomes_lossless_and_lossy_again_under_full_load() {
    let first = incast().replacen("rate: 1G, frame: 1000", "rate: 8G, frame: 1000", 1);
    assert_ne!(first, incast(), "more than the share of its class");
    let switch = Switch::configured(&first);
    let dropped = |switch: &Switch| sum(&switch.get("ports")["ports"], "dropped_frames");
    wait_for("drops of the lossy class", PATIENCE, || (dropped(&switch) > 0).then_some(()));
    let set = |text: &str, is_lossless: bool| {
        switch.configure(text);
        let done = reload(&switch, 200);
        assert_eq!(done["outcome"], "applied", "{done}");
        wait_for("the class", PATIENCE, || {
            let classes = switch.get("classes")["classes"].as_array().expect("classes").clone();
            let class = classes.into_iter().find(|class| class["class"] == 0).expect("class 0");
            (class["lossless"] == is_lossless).then_some(())
        });
    };
    set(&format!("{first}\nclasses: {{0: {{lossless: true}}}}\n"), true);
    let before = dropped(&switch);
    let sent = |switch: &Switch| {
        let pfc = switch.get("pfc")["pfc"].clone();
        let of = |port: &Value| {
            port["priorities"].as_array().expect("rows").iter().find(|row| row["priority"] == 0).cloned()
        };
        pfc.as_array()
            .expect("ports")
            .iter()
            .filter_map(of)
            .filter_map(|row| row["sent_xoff_frames"].as_u64())
            .sum::<u64>()
    };
    wait_for("a pause of the class", PATIENCE, || (sent(&switch) > 10).then_some(()));
    assert_eq!((dropped(&switch), lossless_drops(&switch)), (before, 0));
    set(&first, false);
    wait_for("drops of the lossy class", PATIENCE, || (dropped(&switch) > before).then_some(()));
    assert_eq!(lossless_drops(&switch), 0);
    let ended = switch.end();
    assert!(ended.stdout.contains("lossless: KEPT"), "{}", ended.stdout);
}

#[test]
fn division_that_does_not_fit_is_refused_whole() {
    let switch = Switch::configured(&incast());
    switch.configure(&incast().replace("cable: 5m", "cable: 100km"));
    let refused = reload(&switch, 422);
    assert_eq!(refused["outcome"], "invalid");
    let error = refused["errors"][0].as_str().expect("an error");
    assert!(error.contains("headroom") && error.contains("buffer"), "{error}");
    switch.end();
}

/// Ports and settings agree on it.
#[test]
fn description_of_a_port_changes_without_a_restart() {
    let switch = Switch::configured(&incast());
    let described = incast().replacen("name: p1,", "name: p1, description: \"rack 7\",", 1);
    assert_ne!(described, incast(), "the port is in the file");
    switch.configure(&described);
    let done = reload(&switch, 200);
    assert_eq!(done["differences"][0]["text"], "p1: description: none -> rack 7", "{done}");
    assert_eq!(switch.get("ports")["ports"][0]["description"], "rack 7");
    let settings = &switch.get("settings")["settings"];
    let is_it = |row: &&Value| row["port"] == "p1" && row["key"] == "description";
    let setting = settings.as_array().and_then(|rows| rows.iter().find(is_it)).expect("a setting");
    assert_eq!((&setting["value"], &setting["live"]), (&"rack 7".into(), &true.into()));
    switch.end();
}

/// Ports and origins of the stations with these addresses, in the forwarding database.
fn stations(switch: &Switch, macs: &[&str]) -> Vec<Option<(String, String)>> {
    let entries = switch.get("fdb")["fdb"]["entries"].as_array().expect("entries").clone();
    let text = |entry: &Value, key: &str| entry[key].as_str().expect("a text").to_owned();
    let of = |mac: &&str| entries.iter().find(|entry| entry["mac"] == **mac);
    macs.iter().map(|mac| of(mac).map(|entry| (text(entry, "port"), text(entry, "origin")))).collect()
}

/// An lcore takes the three thousand entries in many polls.
#[test]
fn static_entries_change_under_full_load_without_loss() {
    let switch = Switch::configured(&format!("{}\nfdb: {{capacity: 32768}}\n", incast()));
    wait_for("a group that is XOFF now and then", PATIENCE, || {
        let pfc = switch.get("pfc")["pfc"].clone();
        let sent = pfc.as_array()?.iter().map(|port| sum(&port["priorities"], "sent_xoff_frames")).sum::<u64>();
        (sent > 10).then_some(())
    });
    let entries = |first: &str, count: u32| -> String {
        let mac = |number: u32| format!("02:00:00:01:{:02x}:{:02x}", number >> 8, number & 0xff);
        let fill = (1..count).map(|number| format!("{{mac: \"{}\", port: p2}}", mac(number)));
        let all = std::iter::once(format!("{{mac: \"02:00:00:01:00:00\", port: {first}}}")).chain(fill);
        format!("{}\nfdb: {{capacity: 32768, static: [{}]}}\n", incast(), all.collect::<Vec<_>>().join(", "))
    };
    let fixed = |port: &str| Some((port.to_owned(), "static".to_owned()));
    let ends = ["02:00:00:01:00:00", "02:00:00:01:0b:b7"];
    for (text, expected) in [
        (entries("p1", 1), [fixed("p1"), None]),
        (entries("p2", 3_000), [fixed("p2"), fixed("p2")]),
        (entries("p1", 1), [fixed("p1"), None]),
        (format!("{}\nfdb: {{capacity: 32768}}\n", incast()), [None, None]),
    ] {
        switch.configure(&text);
        wait_for("a reload", PATIENCE, || {
            let (_, body) = switch.ask("POST /v1/reload");
            let answer: Value = serde_json::from_str(&body).expect("JSON");
            ["applied", "unchanged"].contains(&answer["reload"]["outcome"].as_str()?).then_some(())
        });
        wait_for("the static entries", PATIENCE, || (stations(&switch, &ends) == expected).then_some(()));
    }
    assert_eq!(lossless_drops(&switch), 0);
    switch.end();
}

#[test]
fn reload_of_restart_only_or_invalid_key_is_refused_and_applies_nothing() {
    let switch = Switch::configured(&incast());
    let alpha = group(&switch)["alpha"].clone();
    switch.configure(&format!("{}\nclasses: {{3: {{alpha: 1/16}}}}\nlcores: {{poll_gap: 30us}}\n", incast()));
    let refused = reload(&switch, 409);
    assert_eq!(refused["outcome"], "needs_restart");
    let errors = refused["errors"].as_array().expect("errors");
    assert!(errors.iter().any(|error| error == "lcores.poll_gap: 20us -> 30us: needs a restart"), "{errors:?}");
    switch.configure(&format!("{}\nclasses: {{3: {{alpha: 3/16}}}}\n", incast()));
    let wrong = reload(&switch, 422);
    assert_eq!(wrong["outcome"], "invalid");
    assert!(wrong["errors"][0].as_str().expect("a text").contains("switch.yaml:"), "{wrong}");
    assert_eq!(group(&switch)["alpha"], alpha);
    let events = switch.get("events")["events"].as_array().expect("events").clone();
    assert!(
        events.iter().any(|event| event["text"].as_str().is_some_and(|text| text.contains("refused"))),
        "{events:?}"
    );
    switch.end();
}

#[test]
fn sighup_reloads_configuration_without_api_write_permission() {
    let switch = Switch::configured(include_str!("../../conf/incast.yaml"));
    let (status, body) = switch.ask("POST /v1/reload");
    assert_eq!((status, body.contains("kill -HUP")), (403, true), "{body}");
    switch.configure(&format!("{}\nclasses: {{3: {{scheduler: strict}}}}\n", include_str!("../../conf/incast.yaml")));
    switch.process.signal("HUP");
    wait_for("a reload", PATIENCE, || {
        let queues = switch.get("queues")["queues"].as_array().expect("queues").clone();
        let queue = queues.into_iter().find(|queue| queue["queue"] == 3).expect("the queue");
        queue["weight"].is_null().then_some(())
    });
    assert!(switch.process.stderr().contains("classes.3.scheduler: weight 4 -> strict"), "{}", switch.process.stderr());
    switch.end();
}
