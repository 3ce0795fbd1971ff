//! `holdfast show`.
//!
//! The commands of docs/install.md are run here.

use std::process::Stdio;

use serde_json::Value;

use crate::process::{Process, mortal, wait_for};
use crate::rig::{HOLDFAST, PATIENCE, Switch};

/// Returns the resources that `holdfast show` accepts, from its list of possible values.
fn whats() -> Vec<String> {
    let output = mortal(HOLDFAST).args(["show", "nothing"]).output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let list =
        text.split("[possible values: ").nth(1).and_then(|remaining| remaining.split(']').next()).expect("a list");
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn show_prints_every_resource_as_table_within_132_columns_and_as_json() {
    let switch = Switch::start(&[]);
    let whats = whats();
    assert!(whats.len() > 10, "{whats:?}");
    for what in &whats {
        let text = switch.printed(&["show", what]);
        assert!(!text.trim().is_empty() && text.ends_with('\n'), "{what}: {text}");
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(what == "config" || widest <= 132, "{what} is {widest} wide:\n{text}");
        let json: Value = serde_json::from_str(&switch.printed(&["show", what, "--json"])).expect("JSON");
        assert!(json.get(what).is_some(), "{what}: {json}");
    }
    switch.end();
}

/// Whether each `key` in `value`, at any depth, has the value `wanted`.
fn has_only(value: &Value, keys: &[&str], wanted: &Value) -> bool {
    match value {
        Value::Array(rows) => rows.iter().all(|row| has_only(row, keys, wanted)),
        Value::Object(fields) => fields.iter().all(|(key, field)| match keys.contains(&key.as_str()) {
            true => field == wanted,
            false => has_only(field, keys, wanted),
        }),
        _ => true,
    }
}

/// Each option selects rows of a resource, or the resource refuses it.
#[test]
fn each_option_of_show_selects_rows_or_is_refused() {
    let switch = Switch::start(&[]);
    let options: [(&[&str], &[&str], Value); 7] = [
        (&["--port", "p2"], &["port"], "p2".into()),
        (&["--class", "3"], &["class", "priority", "queue"], 3.into()),
        (&["10.0.0.0/8"], &[], Value::Null),
        (&["--source", "static"], &[], Value::Null),
        (&["--family", "ipv4"], &[], Value::Null),
        (&["--limit", "5"], &[], Value::Null),
        (&["--all"], &[], Value::Null),
    ];
    for what in &whats() {
        for (option, keys, wanted) in &options {
            let args = [&["show", what, "--json"][..], option].concat();
            let output = switch.holdfast(&args);
            if output.status.code() == Some(2) {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(stderr.contains(&format!("`show {what}` does not take ")), "{args:?}: {stderr}");
                assert!(what != "routes" || option[0] == "--class", "{args:?}: {stderr}");
                continue;
            }
            let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{args:?}: {output:?}"));
            assert!(!keys.is_empty() || what == "routes", "{args:?}: selects nothing");
            assert!(has_only(&json[what.as_str()], keys, wanted), "{args:?}: {json}");
        }
    }
    let sent = |args: &[&str]| {
        let text = switch.printed(args);
        let row = text.lines().find(|line| line.starts_with("p1 ")).expect("a row").to_owned();
        row.split_whitespace().nth(5).expect("received").replace(',', "").parse::<u64>().expect("a number")
    };
    let (udp, all) = (sent(&["show", "ports", "--class", "0"]), sent(&["show", "ports"]));
    assert!(0 < udp && udp < all, "{udp} of {all}: the table has the counters of the class");
    switch.end();
}

#[test]
fn rows_are_picked_by_port_and_class() {
    let switch = Switch::start(&[]);
    let text = switch.printed(&["show", "pfc", "--port", "p2", "--class", "3"]);
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('p') && !line.starts_with("port")).collect();
    assert!(rows.len() == 1 && rows[0].starts_with("p2    3*     proven"), "{text}");
    let json: Value =
        serde_json::from_str(&switch.printed(&["show", "groups", "--class", "3", "--json"])).expect("JSON");
    let groups = json["groups"].as_array().expect("groups");
    assert!(groups.len() == 5 && groups.iter().all(|group| group["group"] == 3), "{json}");
    let output = switch.holdfast(&["show", "queues", "--port", "p9"]);
    let expected = "error: there is no port `p9`; write `p1`, `p2`, `p3`, `p4` or `p5`\n";
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(2), expected));
    switch.end();
}

#[test]
fn watching_goes_on_until_the_switch_ends() {
    let switch = Switch::start(&[]);
    let mut command = mortal(HOLDFAST);
    command.args(["show", "ports", "--watch", "0.1", "--socket"]).arg(switch.socket());
    let watch = Process::spawn(command);
    wait_for("rates", PATIENCE, || (watch.stdout().matches("(rates over ").count() > 2).then_some(()));
    let text = watch.stdout();
    assert!(
        text.starts_with("port  state  speed") && text.contains("after the switch began)\n\nport  state"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no codes where there is no terminal");
    switch.end();
    let ended = watch.wait(PATIENCE);
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn show_watch_exits_cleanly_when_reader_closes_pipe() {
    let switch = Switch::start(&[]);
    let mut command = mortal(HOLDFAST);
    command.args(["show", "groups", "--watch", "0.1", "--socket"]).arg(switch.socket());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    switch.end();
}
