//! Tests of the exposition with a strict parser.

use super::super::fixture::{bonded, mirroring, neighbours, quiet, routing, run, trouble};
use super::*;
use crate::mmu::{HeadroomPolicy, QueueLimit, Threshold};
use crate::plan::counters::Counter;
use crate::qos::{CongestionPointSpec, MaxRate, QueueDiscipline, WredProfile};
use crate::stats::BufferPool;
use crate::units::{BitRate, Bytes, Cells, Probability};
use std::collections::{BTreeMap, BTreeSet};

#[path = "page_tests.rs"]
mod page;

fn scrape(switch_view: SwitchView) -> String {
    SwitchCollector::new(Current::new(switch_view)).text()
}

fn is_name(name: &str) -> bool {
    let tail = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(tail)
}

/// Reads series by name and labels. Panics if a line violates the format or the conventions.
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
fn scrape_has_the_series_of_a_plain_run() {
    let series = read(&scrape(run()));
    let build_info = r#"holdfast_build_info{commit="unknown",date="unknown",dpdk="unknown",features="unknown",linkage="unknown",rustc="unknown",target="unknown",version="0.0.0"}"#;
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
        (r#"holdfast_poll_gap_seconds_bucket{lcore="0",le="+Inf"}"#, 1000.0),
        (r#"holdfast_poll_gap_seconds_count{lcore="0"}"#, 1000.0),
        (r#"holdfast_poll_gap_seconds_bucket{lcore="0",le="0.000008192"}"#, 998.0),
        ("holdfast_wire_overhead_bytes", 24.0),
        (r#"holdfast_flow_ce_frames_total{flow="0",from="h1",tc="3",to="h2"}"#, 70_000.0),
        (r#"holdfast_pfc_standing{port="p1",standing="proven"}"#, 1.0),
        (r#"holdfast_device_flow_control{port="p1",state="none"}"#, 1.0),
        (r#"holdfast_pfc_sent_paused_seconds_total{port="p1",priority="3"}"#, 3.2),
        (r#"holdfast_pfc_received_paused_seconds_total{port="p1",priority="3"}"#, 0.0),
        (r#"holdfast_pfc_received_ignored_total{port="p2",priority="3"}"#, 0.0),
        (r#"holdfast_pfc_mode_info{mode="software",port="p1"}"#, 1.0),
        (r#"holdfast_port_xoff{port="p2"}"#, 0.0),
        (r#"holdfast_group_shared_highest_bytes{port="p1",priority="3"}"#, 498_000.0),
        (r#"holdfast_group_headroom_needed_bytes{port="p1",priority="3"}"#, 11_000.0),
        (r#"holdfast_group_headroom_is_short{port="p1",priority="3"}"#, 0.0),
        (r#"holdfast_headroom_policy_info{policy="independent"}"#, 1.0),
        (r#"holdfast_class_map_info{group="3",lossless="yes",queue="3",tc="3"}"#, 1.0),
        (r#"holdfast_class_map_info{group="0",lossless="no",queue="0",tc="0"}"#, 1.0),
        (r#"holdfast_queue_reserve_bytes{queue="0"}"#, 0.0),
        (r#"holdfast_port_lcore_info{lcore="0",port="p2"}"#, 1.0),
        ("holdfast_poll_gap_configured_seconds", 0.00002),
        (r#"holdfast_late_polls_total{lcore="0"}"#, 0.0),
        (build_info, 1.0),
        ("holdfast_ready", 0.0),
        (r#"holdfast_group_reserve_highest_bytes{port="p1",priority="3"}"#, 2_000.0),
        (r#"holdfast_group_reserve_used_bytes{port="p1",priority="3"}"#, 0.0),
        (r#"holdfast_group_threshold_bytes{port="p1",priority="3"}"#, 500_000.0),
        (r#"holdfast_group_threshold_bytes{port="p1",priority="0"}"#, 800_000.0),
        (r#"holdfast_group_headroom_highest_since_start_bytes{port="p1",priority="3"}"#, 11_000.0),
        (r#"holdfast_pool_used_highest_since_start_bytes{pool="lossy"}"#, 799_800.0),
        (r#"holdfast_poll_gap_highest_since_start_seconds{lcore="0"}"#, 0.0000215),
        (r#"holdfast_queue_weight{queue="7"}"#, 1.0),
        (r#"holdfast_backlog_xoffs_total{port="p1"}"#, 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
    for absent in [
        "holdfast_watchdog",
        "holdfast_headroom_pool",
        "holdfast_port_insurance",
        "holdfast_backlog_mark",
        "holdfast_rest",
        "holdfast_queue_ecn",
        "holdfast_queue_max",
        "holdfast_port_roce",
        "holdfast_packet_buffers",
    ] {
        assert!(!series.keys().any(|key| key.starts_with(absent)), "{absent}: nothing of the kind is configured");
    }
}

#[test]
fn configured_features_have_their_metric_families() {
    let series = read(&scrape(trouble()));
    for (key, value) in [
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="watchdog",tc="3"}"#, 99.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="watchdog",tc="any"}"#, 0.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="egress_down",tc="3"}"#, 0.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="egress_mtu",tc="3"}"#, 0.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="lossless_unknown",tc="3"}"#, 0.0),
        (r#"holdfast_port_dropped_frames_total{port="p2",reason="lossless_group",tc="3"}"#, 0.0),
        (r#"holdfast_pfc_received_paused_seconds_total{port="p2",priority="3"}"#, 9.0),
        (r#"holdfast_pfc_received_ignored_total{port="p2",priority="3"}"#, 8_000.0),
        (r#"holdfast_pfc_mode_info{mode="asymmetric",port="p2"}"#, 1.0),
        (r#"holdfast_watchdog_info{action="drop",port="p2"}"#, 1.0),
        (r#"holdfast_watchdog_detection_seconds{port="p2"}"#, 0.2),
        (r#"holdfast_watchdog_restoration_seconds{port="p2"}"#, 0.3),
        (r#"holdfast_watchdog_storms_total{port="p2",queue="3"}"#, 2.0),
        (r#"holdfast_watchdog_restores_total{port="p2",queue="3"}"#, 1.0),
        (r#"holdfast_watchdog_storming{port="p2",queue="3"}"#, 1.0),
        (r#"holdfast_watchdog_storming{port="p2",queue="4"}"#, 0.0),
        (r#"holdfast_backlog_mark_frames{port="p1"}"#, 256.0),
        (r#"holdfast_backlog_frames{port="p1"}"#, 300.0),
        (r#"holdfast_backlog_highest_frames{port="p1"}"#, 600.0),
        (r#"holdfast_backlog_xoffs_total{port="p1"}"#, 7.0),
        (r#"holdfast_port_xoff{port="p1"}"#, 1.0),
        (r#"holdfast_port_reserve_bytes{pool="lossy",port="p1"}"#, 6_000.0),
        (r#"holdfast_port_reserve_bytes{pool="lossless",port="p1"}"#, 8_000.0),
        (r#"holdfast_port_reserve_used_bytes{pool="lossless",port="p1"}"#, 8_000.0),
        (r#"holdfast_group_headroom_is_short{port="p1",priority="3"}"#, 1.0),
        (r#"holdfast_headroom_policy_info{policy="shared-pool"}"#, 1.0),
        ("holdfast_headroom_pool_size_bytes", 80_000.0),
        ("holdfast_headroom_pool_used_bytes", 18_200.0),
        ("holdfast_headroom_pool_used_highest_bytes", 70_200.0),
        (r#"holdfast_queue_alpha{queue="0"}"#, 0.25),
        (r#"holdfast_queue_reserve_bytes{queue="0"}"#, 3_000.0),
        (r#"holdfast_polls_total{lcore="1"}"#, 1_000.0),
        (r#"holdfast_busy_polls_total{lcore="1"}"#, 600.0),
        (r#"holdfast_poll_gap_highest_seconds{lcore="0"}"#, 400e-9),
        (r#"holdfast_poll_gap_seconds_count{lcore="1"}"#, 1_000.0),
        (r#"holdfast_handed_off_frames_total{lcore="1"}"#, 5_000.0),
        (r#"holdfast_handoff_highest_frames{lcore="0"}"#, 70.0),
        (r#"holdfast_port_lcore_info{lcore="1",port="p2"}"#, 1.0),
        (r#"holdfast_rest_configured_seconds{lcore="1"}"#, 0.0001),
        (r#"holdfast_rested_seconds_total{lcore="1"}"#, 0.0042),
        (r#"holdfast_rest_overshoot_seconds_count{lcore="1"}"#, 40.0),
        (r#"holdfast_rest_overshoot_seconds_bucket{lcore="1",le="0.000008192"}"#, 30.0),
        (r#"holdfast_rest_overshoot_highest_seconds{lcore="1"}"#, 0.000012),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
    assert!(!series.contains_key(r#"holdfast_rested_seconds_total{lcore="0"}"#), "it continues to poll");
}

/// A switch with dynamic headroom, fixed limits, maximum rates, ECN, QCN, classes of RoCE and packet buffers.
fn various() -> SwitchView {
    let mut switch_view = quiet();
    switch_view.spec.buffer.policy = HeadroomPolicy::Dynamic;
    switch_view.spec.ports[0].buffer.insurance = Cells(50);
    switch_view.spec.queues[1].limit = Some(QueueLimit::from(Threshold::Static(Cells(7))));
    switch_view.spec.queues[2].discipline = QueueDiscipline::Strict;
    let quarter = Probability(Probability::ONE.0 / 4);
    switch_view.spec.queues[3].wred = WredProfile::new(Bytes(1_000), Bytes(4_000), quarter);
    let maximum = MaxRate { rate: BitRate(2_000_000_000), burst: Bytes(30_000) };
    switch_view.spec.ports[0].live.max_rates[5] = Some(maximum);
    switch_view.counters.ports[0].max_rate_held_ns[5].add(1_500_000_000);
    switch_view.spec.ports[0].live.marks.roce.ack = Some(6);
    switch_view.spec.congestion_points[3] = Some(CongestionPointSpec::default());
    switch_view.counters.ports[0].cnms_made[3].add(9);
    switch_view.counters.ports[1].cnms_sent.add(8);
    switch_view.counters.ports[0].roce_frames[0].add(42);
    let pool = BufferPool { name: "data", size: 5_000, in_use: Counter::default() };
    pool.in_use.set(1_200);
    switch_view.pools = [pool].into();
    switch_view
}

#[test]
fn dynamic_headroom_has_insurance_and_a_queue_its_fixed_limit_and_maximum_rate() {
    let series = read(&scrape(various()));
    for (key, value) in [
        (r#"holdfast_port_insurance_bytes{port="p1"}"#, 10_000.0),
        (r#"holdfast_headroom_policy_info{policy="dynamic"}"#, 1.0),
        (r#"holdfast_queue_static_threshold_bytes{queue="1"}"#, 1_400.0),
        (r#"holdfast_queue_ecn_min_bytes{queue="3"}"#, 1_000.0),
        (r#"holdfast_queue_ecn_max_bytes{queue="3"}"#, 4_000.0),
        (r#"holdfast_queue_ecn_probability_ratio{queue="3"}"#, 0.25),
        (r#"holdfast_queue_weight{queue="2"}"#, 0.0),
        (r#"holdfast_queue_max_rate_bytes_per_second{port="p1",queue="5"}"#, 250_000_000.0),
        (r#"holdfast_queue_max_burst_bytes{port="p1",queue="5"}"#, 30_000.0),
        (r#"holdfast_port_roce_class{kind="ack",port="p1"}"#, 6.0),
        (r#"holdfast_port_roce_frames_total{kind="ack",port="p1"}"#, 42.0),
        (r#"holdfast_queue_max_rate_held_seconds_total{port="p1",queue="5"}"#, 1.5),
        (r#"holdfast_qcn_made_messages_total{port="p1",queue="3"}"#, 9.0),
        (r#"holdfast_qcn_sent_messages_total{port="p2"}"#, 8.0),
        (r#"holdfast_packet_buffers{pool="data"}"#, 5_000.0),
        (r#"holdfast_packet_buffers_in_use{pool="data"}"#, 1_200.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
}

#[test]
fn polls_later_than_configured_are_counted_by_buckets() {
    let mut switch_view = run();
    switch_view.spec.poll_gap = crate::units::Nanos(300);
    let late = |switch_view: &SwitchView| read(&scrape(switch_view.clone()))[r#"holdfast_late_polls_total{lcore="0"}"#];
    assert_eq!(late(&switch_view), 20.0, "counted from 512 ns on; the bucket of 256 to 512 ns is ambiguous");
    switch_view.spec.poll_gap = crate::units::Nanos(256);
    assert_eq!(late(&switch_view), 1_000.0);
}

#[test]
fn highest_since_start_survives_clearing_of_a_watermark() {
    let switch_view = run();
    let key = |name: &str| format!(r#"holdfast_group_headroom_{name}bytes{{port="p1",priority="3"}}"#);
    let read = |switch_view: &SwitchView| {
        let series = read(&scrape(switch_view.clone()));
        (series[&key("highest_")], series[&key("highest_since_start_")])
    };
    switch_view.watermarks.remember(&Snapshot::take(&switch_view, std::time::Duration::ZERO));
    switch_view.counters.ports[0].group_headroom_highest_cells[3].set(5);
    assert_eq!(read(&switch_view), (1_000.0, 11_000.0));
}

#[test]
fn series_are_present_before_anything_is_counted() {
    let names = |switch_view| read(&scrape(switch_view)).into_keys().collect::<Vec<_>>();
    assert_eq!(names(quiet()), names(run()));
}

/// The series of drops at the first port.
fn drops_of(switch_view: &SwitchView) -> BTreeMap<String, f64> {
    let series = read(&scrape(switch_view.clone())).into_iter();
    series.filter(|(key, _)| key.starts_with("holdfast_port_dropped_frames_total{port=\"p1\"")).collect()
}

#[test]
fn no_series_of_drops_goes_back_when_a_class_changes() {
    let mut switch_view = quiet();
    for lossless in [0b1000, 0b1_0000, 0b1_1000, 0, 0b1000] {
        switch_view.counters.ports[0].drops.iter().for_each(|row| row.iter().for_each(|counter| counter.add(1)));
        let before = drops_of(&switch_view);
        switch_view = switch_view.with_lossless(crate::sets::ClassSet::from_bits(lossless));
        let after = drops_of(&switch_view);
        let grown = before.iter().find(|(key, count)| after.get(*key).copied().unwrap_or_default() != **count);
        assert_eq!(grown, None, "{lossless:#b}: the change drops nothing");
        assert_eq!(before.values().sum::<f64>(), after.values().sum::<f64>());
    }
}

#[test]
fn no_drop_is_left_out_or_counted_twice() {
    let switch_view = quiet();
    for row in &switch_view.counters.ports[0].drops {
        row.iter().for_each(|counter| counter.add(1));
    }
    assert_eq!(drops_of(&switch_view).values().sum::<f64>(), 9.0 * crate::plan::DropReason::COUNT as f64);
}

#[test]
fn the_hash_of_the_configuration_is_a_label() {
    let settings = crate::config::settings::all(&crate::config::embedded());
    let key = format!("holdfast_config_info{{hash=\"{:016x}\"}}", settings.fingerprint());
    let switch_view = quiet().tuned(quiet().spec, settings.into());
    assert!(read(&scrape(switch_view)).contains_key(&key));
}

#[test]
fn switch_that_routes_has_series_of_routes_neighbours_and_next_hops() {
    let (switch_view, router) = routing();
    let lcore = &switch_view.counters.lcores[0];
    lcore.routed_frames.add(500);
    lcore.adjacency_frames[0].add(400);
    lcore.punted[crate::route::PuntCause::Arp as usize].add(3);
    (0..7).for_each(|_| lcore.count_policed(crate::route::PuntCause::Bgp, 1));
    switch_view.router.as_ref().unwrap().publish(&router, |id| switch_view.counters.adjacency_frames(id));
    let series = read(&scrape(switch_view));
    for (key, value) in [
        (r#"holdfast_routes{family="ipv4",source="static"}"#, 2.0),
        (r#"holdfast_routes{family="ipv6",source="kernel"}"#, 0.0),
        (r#"holdfast_fib_size_prefixes{family="ipv4"}"#, 65_536.0),
        (r#"holdfast_neighbours{state="reachable"}"#, 1.0),
        (r#"holdfast_neighbours{state="incomplete"}"#, 1.0),
        ("holdfast_next_hop_groups", 2.0),
        ("holdfast_next_hop_groups_unresolved", 0.0),
        ("holdfast_route_tables_total", 1.0),
        ("holdfast_fib_refused_total", 0.0),
        ("holdfast_next_hops_omitted", 0.0),
        (r#"holdfast_interface_up{interface="p2"}"#, 1.0),
        (r#"holdfast_next_hop_usable{address="10.0.0.2",interface="p1"}"#, 1.0),
        (r#"holdfast_next_hop_usable{address="10.0.1.2",interface="p2"}"#, 0.0),
        (r#"holdfast_next_hop_frames_total{address="10.0.0.2",interface="p1"}"#, 400.0),
        (r#"holdfast_routed_frames_total{lcore="0"}"#, 500.0),
        (r#"holdfast_punted_frames_total{cause="arp",lcore="0"}"#, 3.0),
        (r#"holdfast_punt_policed_frames_total{cause="bgp",lcore="0"}"#, 7.0),
        (r#"holdfast_port_punt_policed_frames_total{cause="bgp",port="p2"}"#, 7.0),
        (r#"holdfast_port_dropped_frames_total{port="p1",reason="no_route",tc="3"}"#, 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
}

#[test]
fn router_whose_addresses_are_those_of_linux_has_series_of_the_exchange() {
    let (switch_view, mut router) = routing();
    router.leave_answers_to_kernel(Default::default());
    let linux = router.linux_mut();
    (linux.is_synced, linux.dumps, linux.taps[1].to_linux, linux.taps[1].from_linux_drops) = (true, 4, 30, 2);
    linux.withheld[1] = 6;
    switch_view.router.as_ref().unwrap().publish(&router, |_| 0);
    let series = read(&scrape(switch_view));
    for (key, value) in [
        (r#"holdfast_linux_withheld_frames_total{port="p2"}"#, 6.0),
        ("holdfast_linux_synced", 1.0),
        ("holdfast_linux_dumps_total", 4.0),
        ("holdfast_linux_overruns_total", 0.0),
        (r#"holdfast_linux_delivered_frames_total{interface="p2"}"#, 30.0),
        (r#"holdfast_linux_unsent_frames_total{interface="p2"}"#, 2.0),
        (r#"holdfast_linux_sent_frames_total{interface="p1"}"#, 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
}

#[test]
fn metrics_of_lldp_are_those_of_ports_that_have_it() {
    let series = read(&scrape(neighbours()));
    for (key, value) in [
        (r#"holdfast_lldp_neighbours{port="p1"}"#, 1.0),
        (r#"holdfast_lldp_differences{kind="pfc_priorities",port="p1"}"#, 1.0),
        (r#"holdfast_lldp_differences{kind="max_frame",port="p1"}"#, 0.0),
        (r#"holdfast_lldp_received_frames_total{port="p1"}"#, 1.0),
        (r#"holdfast_port_loop{port="p1"}"#, 0.0),
        (r#"holdfast_port_loop_blocked{port="p1"}"#, 0.0),
        (r#"holdfast_punted_frames_total{cause="lldp",lcore="0"}"#, 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
    assert!(!series.keys().any(|key| key.contains("lldp_") && key.contains("p2")), "it has no LLDP");
}

#[test]
fn groups_and_members_have_metrics() {
    let series = read(&scrape(bonded()));
    for (key, value) in [
        (r#"holdfast_lag_up{lag="bond0"}"#, 0.0),
        (r#"holdfast_lag_member_active{lag="bond0",port="p1"}"#, 0.0),
        (r#"holdfast_lacp_sent_frames_total{lag="bond0",port="p1"}"#, 1.0),
        (r#"holdfast_lacp_sent_frames_total{lag="bond0",port="p2"}"#, 0.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
}

#[test]
fn mirrors_and_sflow_have_metrics_only_where_they_are_configured() {
    let series = read(&scrape(mirroring()));
    for (key, value) in [
        (r#"holdfast_mirror_copies_total{event="dropped"}"#, 9.0),
        (r#"holdfast_mirror_policed_total{event="sampled"}"#, 4.0),
        (r#"holdfast_mirror_no_buffer_total{event="dropped"}"#, 2.0),
        (r#"holdfast_mirror_no_buffer_total{event="marked"}"#, 0.0),
        (r#"holdfast_mirror_written_total{session="losses"}"#, 5.0),
        (r#"holdfast_mirror_written_bytes_total{session="losses"}"#, 640.0),
        (r#"holdfast_mirror_lost_total{session="losses"}"#, 4.0),
        (r#"holdfast_mirror_lost_total{session="sflow-samples"}"#, 0.0),
        (r#"holdfast_mirror_failing{session="losses"}"#, 1.0),
        (r#"holdfast_mirror_output_dropped_total{port="p2"}"#, 6.0),
        ("holdfast_mirror_stale_total", 3.0),
        ("holdfast_sflow_datagrams_total", 7.0),
        ("holdfast_sflow_errors_total", 1.0),
    ] {
        assert_eq!(series.get(key), Some(&value), "{key}");
    }
    let is_of_mirrors = |name: &str| name.starts_with("holdfast_mirror_") || name.starts_with("holdfast_sflow_");
    let plain = read(&scrape(quiet()));
    assert!(!plain.keys().any(|key| is_of_mirrors(key)), "nothing is configured");
}

#[test]
fn switch_that_bridges_has_no_series_of_routing() {
    let series = read(&scrape(run()));
    for word in ["route", "neighbour", "fib_", "linux", "next_hop", "punted", "ttl_expired"] {
        // The label of the build's target may contain such a word.
        let others = series.keys().filter(|key| !key.starts_with("holdfast_build_info{"));
        assert!(!{ others }.any(|key| key.contains(word)), "{word}");
    }
}

#[test]
fn dashboard_of_routing_shows_metrics_of_the_page() {
    let read = |path: &str| {
        std::fs::read_to_string(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path))
            .expect("a page")
    };
    let (page, dashboard) = (read("docs/metrics.md"), read("conf/grafana/dashboards/routing.json"));
    let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("holdfast_")).collect();
    assert!(named.len() > 20, "{named:?}");
    for name in named {
        assert!(page.contains(&format!("`{name}`")), "docs/metrics.md has no {name}");
    }
}

#[test]
fn faults_have_metrics_only_where_they_are_allowed() {
    let mut switch_view = quiet();
    let text = |switch_view: &SwitchView| {
        let snapshot = Snapshot::take(switch_view, std::time::Duration::from_secs(1));
        collect(&mut Families::default(), switch_view, &snapshot)
    };
    assert!(!text(&switch_view).contains("holdfast_fault"));
    let lose = crate::faults::Fault::new(1, crate::faults::FaultKind::Lose);
    let clock = || crate::units::Ticks(0);
    let board = crate::faults::FaultBoard::new(&switch_view.spec, &[lose], 1, clock, 1_000_000_000).0;
    board.counters().lcore(0).ports[1].hits[0][1][3].add(7);
    switch_view.faults = Some(board);
    let text = text(&switch_view);
    for line in [
        "holdfast_faults_active{fault=\"lose\",port=\"p2\"} 1\n",
        "holdfast_faults_active{fault=\"lose\",port=\"p1\"} 0\n",
        "holdfast_fault_frames_total{fault=\"lose\",port=\"p2\",toward=\"host\"} 7\n",
        "holdfast_fault_passed_frames_total{port=\"p1\"} 0\n",
        "holdfast_fault_held_frames 0\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn description_of_a_port_is_a_label_with_escapes() {
    let mut spec = quiet().spec;
    spec.ports[1].live.description = "rack \"7\" \\ left".to_owned();
    let text = scrape(quiet().tuned(spec, std::sync::Arc::default()));
    assert!(text.contains("holdfast_port_info{port=\"p1\"} 1\n"), "{text}");
    assert!(text.contains("holdfast_port_info{description=\"rack \\\"7\\\" \\\\ left\",port=\"p2\"} 1\n"), "{text}");
}
