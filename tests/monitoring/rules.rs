//! Recording rules and alerts: promtool accepts them, each alert is tested firing and silent, and each is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde::Deserialize;

use crate::tools::{files, has, repository, succeed, text};

/// A file of rules.
#[derive(Deserialize)]
pub struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

/// A recording rule or an alert.
#[derive(Deserialize)]
pub struct Rule {
    pub record: Option<String>,
    pub alert: Option<String>,
    pub expr: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// Returns the rules of a file in conf/prometheus.
#[track_caller]
pub fn rules(file: &str) -> Vec<Rule> {
    let rules: Rules = serde_saphyr::from_str(&text(&format!("conf/prometheus/{file}"))).expect("rules");
    rules.groups.into_iter().flat_map(|group| group.rules).collect()
}

#[derive(Deserialize)]
struct Cases {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    alert_rule_test: Vec<AlertCase>,
}

#[derive(Deserialize)]
struct AlertCase {
    alertname: String,
    exp_alerts: Vec<serde_json::Value>,
}

#[test]
fn promtool_accepts_configuration_and_rules_and_their_tests_pass() {
    if !has("promtool") {
        return;
    }
    succeed(Command::new("promtool").arg("check").arg("config").arg(repository("conf/prometheus/prometheus.yaml")));
    let tests = files("conf/prometheus/tests", "yaml");
    assert!(tests.len() >= 4, "{tests:?}");
    let said = succeed(Command::new("promtool").args(["test", "rules"]).args(&tests));
    assert_eq!(said.matches("SUCCESS").count(), tests.len(), "{said}");
}

#[test]
fn every_alert_has_firing_and_silent_test_cases() {
    let (mut fires, mut rests) = (BTreeSet::new(), BTreeSet::new());
    for file in files("conf/prometheus/tests", "yaml") {
        let cases: Cases = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).expect("cases");
        for case in cases.tests.into_iter().flat_map(|case| case.alert_rule_test) {
            if case.exp_alerts.is_empty() { &mut rests } else { &mut fires }.insert(case.alertname);
        }
    }
    let alerts: BTreeSet<String> = rules("alerts.yaml").into_iter().filter_map(|rule| rule.alert).collect();
    assert!(alerts.len() >= 15, "{alerts:?}");
    assert_eq!(fires, alerts, "cases that fire");
    assert_eq!(rests, alerts, "cases that do not");
}

#[test]
fn every_alert_has_severity_description_and_runbook_entry() {
    let runbook = text("docs/runbook.md");
    let mut headings: BTreeSet<&str> = runbook.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for rule in rules("alerts.yaml") {
        let name = rule.alert.expect("a file of alerts alone");
        assert!(["critical", "warning", "info"].contains(&rule.labels["severity"].as_str()), "{name}");
        assert!(rule.annotations["summary"].contains("{{ $labels.instance }}"), "{name}: which switch?");
        assert!(!rule.annotations["description"].is_empty(), "{name}");
        assert_eq!(rule.annotations["runbook_url"], format!("docs/runbook.md#{}", name.to_lowercase()));
        assert!(headings.remove(name.as_str()), "docs/runbook.md has nothing on {name}");
    }
    assert!(headings.is_empty(), "no alert leads to {headings:?}");
}

#[test]
fn recording_rules_are_named_by_level_metric_and_operation() {
    for rule in rules("rules.yaml") {
        let name = rule.record.expect("a file of recording rules alone");
        let parts: Vec<&str> = name.split(':').collect();
        assert!(parts.len() == 3 && parts[1].starts_with("holdfast_") && !parts[2].is_empty(), "{name}");
    }
}
