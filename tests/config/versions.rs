//! The names that docs/versions.md promises still exist: keys, metrics with labels, resources of the API, commands and
//! options. `stable.txt` lists them.

use std::collections::BTreeMap;
use std::fs;

use assert_cmd::Command;
use holdfast::api::operations::OPERATIONS;
use holdfast::stats::NoticeKind;

use super::features::{is_unknown, text};
use super::*;

/// The lines of one kind, without that word.
fn listed(kind: &str) -> Vec<String> {
    let list = text("tests/config/stable.txt");
    let lines = list.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' '));
    lines.map(str::to_owned).collect()
}

#[test]
fn every_line_of_the_list_has_a_known_kind() {
    let list = text("tests/config/stable.txt");
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let kind = line.split(' ').next().unwrap_or_default();
        assert!(["key", "metric", "api", "command", "event"].contains(&kind), "{line}");
    }
}

#[test]
fn promised_keys_are_accepted_by_their_name_or_as_aliases() {
    let keys = listed("key");
    assert!(keys.len() > 100, "{}", keys.len());
    for key in keys {
        assert!(!is_unknown(&key), "`{key}` is gone; give it an entry in crates/config/src/config/yaml/renamed.rs");
    }
}

/// A documented family has its labels in the second cell of its row.
#[test]
fn promised_metrics_exist_with_their_labels() {
    let mut sources = String::new();
    for directory in ["crates/observe/src/stats/collector", "crates/config/src/config/settings"] {
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(directory)).expect("a directory") {
            sources += &fs::read_to_string(entry.expect("a file").path()).expect("a source");
        }
    }
    let documented = text("docs/metrics.md");
    let mut labels = BTreeMap::new();
    for row in documented.lines().filter(|line| line.starts_with("| `holdfast_")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        for name in cells[0].split('`').skip(1).step_by(2) {
            labels.insert(name.to_owned(), cells[1].to_owned());
        }
    }
    let metrics = listed("metric");
    assert!(metrics.len() > 150, "{}", metrics.len());
    for metric in metrics {
        let mut words = metric.split(' ');
        let name = words.next().unwrap_or_default();
        // A watermark since the start has its name from the one that can be cleared.
        let written = name.replacen("highest_since_start", "highest", 1);
        assert!(sources.contains(&format!("\"{written}\"")), "{name} is not exported");
        let cell = labels.get(name).unwrap_or_else(|| panic!("docs/metrics.md has no {name}"));
        for label in words {
            assert!(cell.contains(&format!("`{label}`")), "{name} has no label {label}: {cell}");
        }
    }
}

/// docs/api.md and the router have the operations of the table.
#[test]
fn promised_resources_of_the_api_are_served_and_documented() {
    let served: Vec<String> = OPERATIONS.iter().map(|of| format!("{} {}", of.method.word(), of.path)).collect();
    let resources = listed("api");
    assert!(resources.len() > 20, "{}", resources.len());
    for resource in resources {
        assert!(served.contains(&resource), "{resource} is not served");
    }
}

#[test]
fn kinds_of_events_are_promised_and_documented_with_their_severity() {
    let (promised, page) = (listed("event"), text("docs/api.md"));
    let kinds: Vec<String> = NoticeKind::TABLE.iter().map(|(_, name, ..)| (*name).to_owned()).collect();
    for name in &promised {
        assert!(kinds.contains(name), "the event {name} is gone");
    }
    for (_, name, severity, _) in NoticeKind::TABLE {
        assert!(promised.iter().any(|other| other == name), "tests/config/stable.txt has no `event {name}`");
        let row = format!("- `{}`:", severity.label());
        let kinds = page.split("### Kinds of events").nth(1).expect("a section of kinds");
        let row = kinds.lines().find(|line| line.starts_with(&row)).expect("a line of the severity");
        assert!(row.contains(&format!("`{name}`")), "docs/api.md: `{name}` is missing at {}", severity.label());
    }
}

#[test]
fn promised_commands_and_options_exist() {
    let mut helps = BTreeMap::new();
    let commands = listed("command");
    assert!(commands.len() > 80, "{}", commands.len());
    for line in commands {
        let (command, option) = line.split_once(' ').unwrap_or((&line, "--help"));
        let help = helps.entry(command.to_owned()).or_insert_with(|| {
            let output = Command::cargo_bin("holdfast").unwrap().args([command, "--help"]).output().unwrap();
            assert!(output.status.success(), "{command}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        });
        let words = help.split(|c: char| c.is_whitespace() || c == ',');
        assert!({ words }.any(|word| word == option), "{command} has no {option}");
    }
}
