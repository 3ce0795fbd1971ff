//! The exposition as Prometheus reads it, through a strict little reader.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prometheus::{Encoder, Registry, TextEncoder};

use super::super::fixture::{quiet, run};
use super::*;

fn scrape(subject: Subject) -> String {
    let registry = Registry::new();
    registry.register(Box::new(SwitchCollector::new(Arc::new(subject)))).unwrap();
    let mut text = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn is_name(name: &str) -> bool {
    let tail = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(tail)
}

/// Series by name and labels. Panics on whatever the format or the conventions forbid.
fn read(text: &str) -> BTreeMap<String, f64> {
    let (mut helped, mut types, mut series) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()), "{name} has two HELP lines");
            assert!(text.ends_with('.'), "{name}: {text}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(helped.contains(name) && types.insert(name.to_owned(), kind.to_owned()).is_none(), "{name}");
        } else {
            let (key, value) = line.rsplit_once(' ').unwrap();
            check_sample(key, &types);
            assert!(series.insert(key.to_owned(), value.parse().unwrap()).is_none(), "{key} twice");
        }
    }
    assert_eq!(helped.len(), types.len());
    series
}

fn check_sample(key: &str, types: &BTreeMap<String, String>) {
    let (name, labels) = key.split_once('{').unwrap_or((key, "}"));
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
        name.strip_suffix(suffix).filter(|base| types.get(*base).is_some_and(|kind| kind == "histogram"))
    });
    let kind = &types[base.unwrap_or(name)];
    assert!(is_name(name) && name.starts_with("holdfast_"), "{name}");
    assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
    for cells in ["cells", "_ns", "_ms", "_bits"] {
        assert!(!name.contains(cells), "{name} is not in base units");
    }
    let labels = labels.strip_suffix('}').unwrap();
    for label in labels.split("\",").filter(|label| !label.is_empty()) {
        let (name, value) = label.split_once("=\"").unwrap();
        assert!(is_name(name) && !value.trim_end_matches('"').is_empty(), "{key}");
    }
}

#[test]
fn prometheus_can_read_it() {
    let series = read(&scrape(run()));
    for (key, value) in [
        (r#"holdfast_port_received_frames_total{port="p1",tc="3"}"#, 6e6),
        (r#"holdfast_port_sent_bytes_total{port="p2",queue="0"}"#, 998_766_000.0),
        (r#"holdfast_port_dropped_frames_total{port="p1",reason="threshold",tc="0"}"#, 1234.0),
        (r#"holdfast_port_dropped_frames_total{port="p1",reason="link_local",tc="any"}"#, 2.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="headroom_full",tc="3"}"#, 0.0),
        (r#"holdfast_pfc_sent_xoff_total{port="p1",priority="3"}"#, 40.0),
        (r#"holdfast_group_used_highest_bytes{port="p1",priority="3"}"#, 500_000.0),
        (r#"holdfast_group_headroom_size_bytes{port="p1",priority="3"}"#, 40_000.0),
        (r#"holdfast_group_alpha{port="p1",priority="3"}"#, 0.5),
        (r#"holdfast_pool_used_highest_bytes{pool="lossy"}"#, 799_800.0),
        (r#"holdfast_poll_gap_seconds_bucket{le="+Inf"}"#, 1000.0),
        ("holdfast_poll_gap_seconds_count", 1000.0),
        (r#"holdfast_poll_gap_seconds_bucket{le="0.000008192"}"#, 998.0),
        ("holdfast_wire_overhead_bytes", 24.0),
        (r#"holdfast_flow_ce_frames_total{flow="0",from="h1",tc="3",to="h2"}"#, 70_000.0),
        (r#"holdfast_pfc_standing{port="p1",standing="proven"}"#, 1.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
}

#[test]
fn what_is_counted_later_is_there_from_the_start() {
    let names = |subject| read(&scrape(subject)).into_keys().collect::<Vec<_>>();
    assert_eq!(names(quiet()), names(run()));
}

#[test]
fn no_drop_is_left_out_or_counted_twice() {
    let subject = quiet();
    for row in &subject.counters.ports[0].drops {
        row.iter().for_each(|counter| counter.add(1));
    }
    let series = read(&scrape(subject));
    let drops = series.iter().filter(|(key, _)| key.starts_with("holdfast_port_dropped_frames_total{port=\"p1\""));
    assert_eq!(drops.map(|(_, value)| value).sum::<f64>(), 9.0 * crate::dataplane::DropReason::COUNT as f64);
}

#[test]
fn a_second_collector_is_refused() {
    let registry = Registry::new();
    let subject = Arc::new(quiet());
    registry.register(Box::new(SwitchCollector::new(subject.clone()))).unwrap();
    assert!(registry.register(Box::new(SwitchCollector::new(subject))).is_err());
}

#[test]
fn a_changed_setting_changes_the_hash() {
    let (before, mut after) = (quiet(), quiet());
    assert_eq!(before.config_hash(), after.config_hash());
    after.spec.ports[1].buffer.groups[3].headroom.0 += 1;
    assert_ne!(before.config_hash(), after.config_hash());
    let snapshot = Snapshot::take(&before, Duration::ZERO);
    assert!(!collect(&before, &snapshot).is_empty());
}
