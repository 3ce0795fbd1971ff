//! A real Prometheus scrapes a running switch, and every query returns data.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::dashboards::queries;
use crate::prometheus::Prometheus;
use crate::rules::rules;
use crate::switch::Switch;
use crate::tools::{has, text};

/// Longest time until all queries return data: rates need two scrapes, and rules on rules two evaluations.
const PATIENCE: Duration = Duration::from_secs(90);

/// Returns a query as Grafana sends it with all values selected.
fn expand(expression: &str) -> String {
    let mut expanded = expression.replace("$__rate_interval", "20s");
    for variable in ["$instance", "$port", "$class", "$lcore", "$interface"] {
        expanded = expanded.replace(variable, ".*");
    }
    assert!(!expanded.contains('$'), "{expanded}: what is that variable?");
    expanded
}

/// Returns the metrics that an expression names.
fn metrics(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| *word == "up" || word.contains("holdfast_")).map(str::to_owned).collect()
}

/// Returns the names that the sections on routing, Linux, LLDP, groups and mirrors of docs/metrics.md list. The switch
/// of these tests bridges between virtual hosts. Unit tests of the collector check that other switches have these
/// metrics.
fn of_routing() -> BTreeSet<String> {
    let page = text("docs/metrics.md");
    let names = ["Routing\n", "Linux\n", "LLDP\n", "Link aggregation\n", "Mirrors\n"];
    let is_of_routing = |section: &&str| names.iter().any(|name| section.starts_with(name));
    let sections: Vec<&str> = page.split("\n## ").filter(is_of_routing).collect();
    assert_eq!(sections.len(), names.len());
    sections.iter().flat_map(|section| metrics(section)).filter(|word| word.starts_with("holdfast_")).collect()
}

#[test]
fn every_query_of_every_panel_and_rule_has_an_answer() {
    if !has("prometheus") {
        return;
    }
    let switch = Switch::start();
    let prometheus = Prometheus::start(switch.address);
    let (panels, events): (Vec<_>, Vec<_>) = queries().into_iter().partition(|query| query.is_panel);
    let mut wanted: Vec<(String, String)> =
        panels.into_iter().map(|query| (query.place, expand(&query.expression))).collect();
    wanted.extend(rules("rules.yaml").into_iter().map(|rule| (rule.record.expect("a name"), rule.expr)));
    // An alert that does not fire returns nothing, but its metrics must exist.
    for alert in rules("alerts.yaml") {
        let name = alert.alert.expect("a name");
        prometheus.series(&alert.expr);
        wanted.extend(metrics(&alert.expr).into_iter().map(|metric| (name.clone(), metric)));
    }
    for event in events {
        let expression = expand(&event.expression);
        prometheus.series(&expression);
        wanted.extend(metrics(&expression).into_iter().map(|metric| (event.place.clone(), metric)));
    }
    let of_routing = of_routing();
    wanted.retain(|(place, expression)| {
        prometheus.series(expression);
        let is_elsewhere =
            ["Holdfast / Routing: ", "Holdfast / Neighbours: "].iter().any(|title| place.starts_with(title));
        !is_elsewhere && metrics(expression).is_disjoint(&of_routing)
    });
    let end = Instant::now() + PATIENCE;
    while !wanted.is_empty() {
        wanted.retain(|(_, expression)| prometheus.series(expression) == 0);
        assert!(wanted.is_empty() || Instant::now() < end, "no data after {PATIENCE:?}: {wanted:#?}");
        sleep(Duration::from_millis(200));
    }
    assert_eq!(prometheus.rule_errors(), Vec::<String>::new());
    // This incast loses no frame, and every port is proven.
    for alert in
        ["HoldfastLosslessDrop", "HoldfastReceiveLoss", "HoldfastPortNotProven", "HoldfastDown", "HoldfastStorm"]
    {
        assert_eq!(prometheus.series(&format!("ALERTS{{alertname=\"{alert}\"}}")), 0, "{alert}");
    }
    switch.stop();
}

/// docs/metrics.md lists the metrics that a switch serves, and no others.
#[test]
fn every_metric_is_documented_and_every_documented_one_is_there() {
    let mut switch = Switch::start();
    let served = switch.metrics();
    switch.stop();
    let served: BTreeSet<&str> =
        served.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let (documented, of_routing) = (text("docs/metrics.md"), of_routing());
    let rows = documented.lines().filter(|line| line.starts_with("| `holdfast_"));
    let (mut known, mut always) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let names = row.split('|').nth(1).expect("a cell").split('`').skip(1).step_by(2);
        for name in names {
            known.insert(name);
            // Metrics that this switch lacks: it does not rest, and has neither dynamic headroom nor
            // static limits nor storm control.
            let is_elsewhere =
                ["_rest", "_insurance", "_static_threshold", "_flood_limit"].iter().any(|part| name.contains(part));
            if !is_elsewhere && !of_routing.contains(name) {
                always.insert(name);
            }
        }
    }
    let undocumented: Vec<_> = served.difference(&known).collect();
    assert!(undocumented.is_empty(), "docs/metrics.md lacks {undocumented:?}");
    let missing: Vec<_> = always.difference(&served).collect();
    assert!(missing.is_empty(), "nobody serves {missing:?}");
}
