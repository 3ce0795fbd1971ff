//! Reports of a made-up run, as text, JSON and CSV.

use super::fixture;
use super::*;
use crate::plan::DropReason;
use crate::sim::outcome::{Ending, Outcome, Violation};
use crate::sim::spec::Scenario;

/// Returns the made-up run with every kind of failure.
fn trouble() -> (Scenario, Outcome) {
    let (scenario, mut outcome) = fixture::run();
    outcome.flows[1].received_frames -= 20;
    outcome.flows[1].late_frames = 3;
    outcome.links[0].lost_frames = [1, 6];
    outcome.links[0].lost_pfc_frames = [1, 0];
    outcome.hosts[2].pfc_tx_frames = 9;
    outcome.waivers = vec!["h1 does not obey PFC".to_owned(), "tor.p1 loses PFC frames".to_owned()];
    let switch = &mut outcome.switches[0];
    switch.ports[1].classes[3].drops = vec![(DropReason::HeadroomFull, 7), (DropReason::Watchdog, 1)];
    switch.ports[1].missed_frames = 4;
    switch.ports[1].missed_lossless_frames = 2;
    switch.ports[1].unclassified_drops = vec![(DropReason::LinkLocal, 2)];
    outcome.ending = Ending::Undrained { frames: 4 };
    (scenario, outcome)
}

#[test]
fn table_shows_flows_ports_hosts_and_verdict() {
    let (scenario, outcome) = fixture::run();
    insta::assert_snapshot!(table(&scenario, &outcome, false), @r#"
    incast <2 & 1>, seed 7: 2.15ms of simulated time, 2.00ms of it sending; 123,456 events

    flow     class   sent  received  lost  Gb/s  marked  CNPs  latency p50     p99     max
    h1-h3    3*     1,000     1,000     0  3.90    5.0%    12       12.0us  32.0us  36.0us
    h2-h3    3*     1,200     1,200     0  4.70    2.5%     0       15.0us  40.0us  45.0us
    h2-h3.2  0        300       290    10  1.19       -     0       18.0us  48.0us  54.0us

    messages of  class  begun  complete  time p50      p99      max
    h1-h3        3*        10        10   300.0us  800.0us  900.0us

    port    class      queue      group  headroom        of  pauses  held peer  was held  marked  dropped
    tor.p1  3*             -     325KiB  18.28KiB  40.62KiB       2    300.0us         -       -  -
    tor.p2  0              -  182.81KiB         -         -       -          -         -       -  10 threshold
    tor.p2  3*             -     325KiB  18.28KiB  40.62KiB       2    300.0us         -       -  -
    tor.p3  3*     589.06KiB          -         -         -       -          -    40.0us      80  -

    host  priority  was held  of the time  PFC received
    h1    3          300.0us        13.9%             7
    h2    3          300.0us        13.9%             7

    switch  lossless pool       of  lossy pool       of  poll gap
    tor         629.68KiB  8.68MiB   182.81KiB  2.89MiB     650ns

    lossless: KEPT - 0 of 2,200 lossless frames lost
    ending: drained - every frame has arrived or is counted as lost
    4,000 invariant checks, all held
    "#);
}

#[test]
fn table_heading_names_the_variant() {
    let (mut scenario, outcome) = fixture::run();
    scenario.variant = "no PFC".to_owned();
    assert!(table(&scenario, &outcome, false).starts_with("incast <2 & 1>: no PFC, seed 7: 2.15ms of simulated time"));
}

#[test]
fn table_of_a_troubled_run_shows_losses_waivers_and_violation() {
    let (scenario, mut outcome) = trouble();
    insta::assert_snapshot!(table(&scenario, &outcome, false), @r#"
    incast <2 & 1>, seed 7: 2.15ms of simulated time, 2.00ms of it sending; 123,456 events

    flow     class   sent  received  lost  late  Gb/s  marked  CNPs  latency p50     p99     max
    h1-h3    3*     1,000     1,000     0     0  3.90    5.0%    12       12.0us  32.0us  36.0us
    h2-h3    3*     1,200     1,180    20     3  4.70    2.5%     0       15.0us  40.0us  45.0us
    h2-h3.2  0        300       290    10     0  1.19       -     0       18.0us  48.0us  54.0us

    messages of  class  begun  complete  time p50      p99      max
    h1-h3        3*        10        10   300.0us  800.0us  900.0us

    port    class      queue      group  headroom        of  pauses  held peer  was held  marked  dropped
    tor.p1  3*             -     325KiB  18.28KiB  40.62KiB       2    300.0us         -       -  -
    tor.p2  0              -  182.81KiB         -         -       -          -         -       -  10 threshold
    tor.p2  3*             -     325KiB  18.28KiB  40.62KiB       2    300.0us         -       -  7 headroom_full, 1 watchdog
    tor.p2  none           -          -         -         -       -          -         -       -  2 link_local
    tor.p3  3*     589.06KiB          -         -         -       -          -    40.0us      80  -

    host  priority  was held  of the time  PFC received  PFC sent
    h1    3          300.0us        13.9%             7         0
    h2    3          300.0us        13.9%             7         0
    h3    -                -            -             0         9

    switch  lossless pool       of  lossy pool       of  poll gap  missed
    tor         629.68KiB  8.68MiB   182.81KiB  2.89MiB     650ns       4

    link       toward  lost  PFC among them
    tor.p1-h1  tor.p1     1               1
    tor.p1-h1  h1         6               0

    not promised: h1 does not obey PFC
    not promised: tor.p1 loses PFC frames
    lossless: BROKEN - 20 of 2,200 lossless frames lost: 7 headroom_full, 6 lost on a faulty wire (any class), 4 still under way (any class), 2 missed by a full receive ring, 1 watchdog
    ending: undrained - 4 frames under way at the end of the drain time (`drain`)
    4,000 invariant checks, all held
    "#);
    let verdict = verdict(&scenario, &outcome);
    assert_eq!(verdict, FlowVerdict { lossless_lost: 20, lossless_sent: 2_200, starved: false, kept: false });

    outcome.ending = Ending::Violated;
    outcome.violation = Some(Violation {
        invariant: "cells_conserved",
        at_ps: 12_345_678,
        event: 1_234,
        what: "tor p1 group 3 holds 7 cells of 6".to_owned(),
    });
    let text = table(&scenario, &outcome, false);
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    insta::assert_snapshot!(last.join("\n"), @r#"
    4,000 invariant checks held before
    VIOLATED: cells_conserved at 12.3us, after event 1,234: tor p1 group 3 holds 7 cells of 6
    ending: stopped at the violation
    "#);
    outcome.ending = Ending::TooManyEvents;
    assert!(table(&scenario, &outcome, false).contains("\nending: given up after 123,456 events\n"));
}

#[test]
fn many_flows_are_told_by_receiver_and_class() {
    let (mut scenario, mut outcome) = fixture::run();
    for _ in 0..20 {
        scenario.flows.push(scenario.flows[1].clone());
        outcome.flows.push(outcome.flows[1].clone());
    }
    let text = table(&scenario, &outcome, false);
    let first: Vec<&str> = text.lines().skip(2).take(5).collect();
    insta::assert_snapshot!(first.join("\n"), @r#"
    flow             class    sent  received  lost    Gb/s  marked  CNPs  latency p50     p99     max
    > h3 (22 flows)  3*     26,200    26,200     0  102.68    2.5%    12       15.0us  40.0us  45.0us
    > h3 (1 flow)    0         300       290    10    1.19       -     0       18.0us  48.0us  54.0us
    (23 flows by receiver and class: p50 of the median flow, p99 of the worst flow;
     --all shows each)
    "#);
    let all = table(&scenario, &outcome, true);
    assert_eq!(all.lines().filter(|line| line.starts_with("h2-h3 ")).count(), 21);
    assert!(!all.contains("--all"));
}

#[test]
fn flows_are_lines_of_csv() {
    let (mut scenario, outcome) = fixture::run();
    scenario.hosts[2].name = "h3, \"the sink\"".to_owned();
    insta::assert_snapshot!(csv(&scenario, &outcome), @r#"
    flow,from,to,class,lossless,sent_frames,sent_bytes,received_frames,received_bytes,lost_frames,received_bits_per_second,marked_frames,cnps,late_frames,duplicate_frames,latency_mean_ps,latency_p50_ps,latency_p99_ps,latency_max_ps,messages,completions,completion_mean_ps,completion_p50_ps,completion_p99_ps,completion_max_ps,rate_at_end_bits_per_second,repeated_frames,discarded_frames,naks,timeouts,failed,acknowledged_mean_ps,acknowledged_p50_ps,acknowledged_p99_ps,acknowledged_max_ps
    h1-h3,h1,"h3, ""the sink""",3,true,1000,1000000,1000,1000000,0,3900952381,50,12,0,0,12000000,12000000,32000000,36000000,10,10,300000000,300000000,800000000,900000000,4000000000,0,0,0,0,0,0,0,0,0
    h2-h3,h2,"h3, ""the sink""",3,true,1200,1200000,1200,1200000,0,4703540670,30,0,0,0,15000000,15000000,40000000,45000000,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
    h2-h3.2,h2,"h3, ""the sink""",0,false,300,300000,290,290000,10,1187840000,0,0,0,0,18000000,18000000,48000000,54000000,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
    "#);
    let text = csv(&scenario, &outcome);
    let commas: Vec<usize> = text.lines().map(|line| line.matches(',').count()).collect();
    assert_eq!(commas, [34, 35, 35, 35], "one more in the quotes");
}

#[test]
fn samples_are_lines_of_csv() {
    let (scenario, outcome) = fixture::run();
    let text = samples_csv(&scenario, &outcome);
    assert_eq!(text.lines().count(), 1 + 2 * 2_150);
    let some: Vec<&str> = [0, 1, 497, 2_500].into_iter().filter_map(|line| text.lines().nth(line)).collect();
    insta::assert_snapshot!(some.join("\n"), @r#"
    time_ns,switch,port,class,queue_bytes,shared_cells,headroom_cells,threshold_cells,xoff,marked
    0,tor,p1,3,0,0,0,2600,false,0
    496000,tor,p1,3,0,1608,125,1608,true,0
    349000,tor,p3,3,558400,0,0,3000,false,2
    "#);
}

#[test]
fn json_shows_verdict_flows_ports_links_and_samples() {
    let (scenario, outcome) = trouble();
    let value = json(&scenario, &outcome, false);
    insta::assert_snapshot!(value["verdict"], @r#"{"kept":false,"lossless_lost_frames":20,"lossless_sent_frames":2200,"starved":false}"#);
    insta::assert_snapshot!(value["flows"][0], @r#"{"acknowledged":{"count":0,"max_ps":0,"mean_ps":0,"min_ps":0,"p50_ps":0,"p99_ps":0},"class":3,"cnps":12,"completion":{"count":10,"max_ps":900000000,"mean_ps":300000000,"min_ps":100000000,"p50_ps":300000000,"p99_ps":800000000},"discarded_frames":0,"duplicate_frames":0,"from":"h1","has_failed":false,"last_arrival_ps":2100000000,"late_frames":0,"latency":{"count":1000,"max_ps":36000000,"mean_ps":12000000,"min_ps":4000000,"p50_ps":12000000,"p99_ps":32000000},"lossless":true,"lost_frames":0,"marked_frames":50,"messages":10,"naks":0,"name":"h1-h3","priority":3,"rate_at_end_bits_per_second":4000000000,"received_bits_per_second":3900952381,"received_bytes":1000000,"received_frames":1000,"repeated_frames":0,"sent_bytes":1000000,"sent_frames":1000,"timeouts":0,"to":"h3"}"#);
    insta::assert_snapshot!(value["switches"][0]["ports"][1], @r#"{"backlog_held_ps":0,"backlog_xoffs":0,"classes":[{"class":0,"cnms_made":0,"dropped_frames":10,"drops":{"threshold":10},"group_at_stop_cells":0,"group_highest_cells":900,"headroom_cells":0,"headroom_highest_cells":0,"held_ps":0,"lossless":false,"marked_frames":0,"pauses_sent":0,"peer_held_ps":0,"pfc_received_xoff":0,"pfc_sent_xoff":0,"pfc_sent_xon":0,"queue_at_stop_bytes":0,"queue_highest_cells":0,"received_frames":300,"sent_bytes":0,"sent_frames":0},{"class":3,"cnms_made":0,"dropped_frames":8,"drops":{"headroom_full":7,"watchdog":1},"group_at_stop_cells":0,"group_highest_cells":1600,"headroom_cells":200,"headroom_highest_cells":90,"held_ps":0,"lossless":true,"marked_frames":0,"pauses_sent":2,"peer_held_ps":300000000,"pfc_received_xoff":0,"pfc_sent_xoff":5,"pfc_sent_xon":2,"queue_at_stop_bytes":0,"queue_highest_cells":0,"received_frames":1000,"sent_bytes":0,"sent_frames":0}],"insurance_highest_cells":0,"missed_frames":4,"missed_lossless_frames":2,"name":"p2","pfc_received_frames":0,"pfc_sent_frames":0,"ring_highest_frames":12,"unclassified_drops":{"link_local":2},"watchdog_restores":0,"watchdog_storms":0}"#);
    insta::assert_snapshot!(value["links"][0], @r#"{"name":"tor.p1-h1","ways":[{"lost_frames":1,"lost_pfc_frames":1,"toward":"tor.p1"},{"lost_frames":6,"lost_pfc_frames":0,"toward":"h1"}]}"#);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    insta::assert_snapshot!(keys(&value), @r#"end_ps ending events flows format hosts invariant_checks links not_promised pauses scenario seed sending_ps source switches under_way_frames verdict violation"#);

    let long = json(&scenario, &outcome, true);
    insta::assert_snapshot!(long["pause_list"][0], @r#"{"from_ps":430000000,"held":"h1","link":"tor.p1-h1","priority":3,"to_ps":510000000}"#);
    assert_eq!(long["samples"]["ports"][1]["port"], "tor.p3");
    assert_eq!(long["samples"]["ports"][1]["classes"][0]["queue_bytes"].as_array().unwrap().len(), 2_150);
}

/// Returns the table of these variants, each serialized, read again and appended on its own.
fn comparison(rows: &[(String, &Scenario, &Outcome)]) -> String {
    let first = &rows[0].1.columns;
    let whole = Comparison::new(first, rows);
    let mut parts = Comparison::new(first, &[]);
    for row in rows.chunks(1) {
        let part = serde_json::to_string(&Comparison::new(first, row)).unwrap();
        parts.append(serde_json::from_str(&part).unwrap());
    }
    assert_eq!((&parts, parts.len()), (&whole, rows.len()));
    parts.to_string()
}

#[test]
fn comparison_has_a_row_and_a_verdict_for_each_variant() {
    let (scenario, outcome) = fixture::run();
    let (_, other) = trouble();
    let rows = [("pfc".to_owned(), &scenario, &outcome), ("no, pfc".to_owned(), &scenario, &other)];
    insta::assert_snapshot!(comparison(&rows), @r#"
    variant  lossless Gb/s  lossy Gb/s  lossless lost  lossy lost  pauses     held  marked  CNPs  headroom  lossless pool  lossy pool  message p50      p99      max  ending
    pfc               8.60        1.19              0          10       4  600.0us    3.2%    12  36.56KiB      629.68KiB   182.81KiB      300.0us  800.0us  900.0us  drained
    no, pfc           8.60        1.19             20          10       4  600.0us    3.2%    12  36.56KiB      629.68KiB   182.81KiB      300.0us  800.0us  900.0us  undrained, 4 frames under way, not promised

    lossless: BROKEN in `no, pfc` - 20 of 2,200 lossless frames lost: 7 headroom_full, 6 lost on a faulty wire (any class), 4 still under way (any class), 2 missed by a full receive ring, 1 watchdog
      not promised: h1 does not obey PFC (and 1 more)
    "#);
    let kept = comparison(&rows[..1]);
    assert!(kept.ends_with("  drained\n\nlossless: KEPT in all variants\n"), "{kept}");
    // A run that lost nothing without a guarantee is reported in its row and below the table.
    let mut seen = outcome.clone();
    seen.waivers = vec!["tor.p1 class 3 has less headroom".to_owned(), "tor.p2 too".to_owned()];
    let seen = [("pfc".to_owned(), &scenario, &outcome), ("short".to_owned(), &scenario, &seen)];
    let text = comparison(&seen);
    let expected = "  drained, not promised\n\nlossless: KEPT in all variants; not promised in these:\n  `short`: \
                    tor.p1 class 3 has less headroom (and 1 more)\n";
    assert!(text.ends_with(expected), "{text}");
    let text = comparison(&[rows[1].clone(), seen[1].clone()]);
    assert!(text.contains("\nlossless: KEPT in others; not promised in these:\n  `short`: tor.p1"), "{text}");
    let (_, _, short) = &seen[1];
    let text = super::verdict::lines(&scenario, short);
    assert!(text.starts_with("lossless: KEPT, not promised - 0 of 2,200 lossless frames lost\n"), "{text}");
    insta::assert_snapshot!(comparison_csv_header() + &comparison_csv_lines(&rows).concat(), @r#"
    variant,seed,lossless_received_bits_per_second,lossy_received_bits_per_second,lossless_lost_frames,lossy_lost_frames,pauses_sent,peers_held_ps,marked_per_million,cnps,headroom_highest_bytes,lossless_shared_highest_bytes,lossy_shared_highest_bytes,completion_p50_ps,completion_p99_ps,completion_max_ps,repeated_frames,timeouts,failed_flows,completions,lossless_slowest_bits_per_second,lossless_fastest_bits_per_second,lossless_fairness_per_million,lossless_latency_p50_ps,lossless_latency_p99_ps,lossless_queue_highest_bytes,xoffs_sent,hosts_held_ps,insurance_highest_bytes,headroom_set_aside_bytes,lossless_pool_bytes,lossless_group_at_stop_least_cells,lossless_group_at_stop_most_cells,lossless_pool_at_stop_cells,lossless_pool_free_at_stop_cells,busiest_uplink_bits_per_second,idlest_uplink_bits_per_second,cnms_made,watchdog_storms,watchdog_dropped_frames,lossless_unknown_dropped_frames,late_received_bits_per_second,late_slowest_bits_per_second,late_fastest_bits_per_second,late_fairness_per_million,late_queue_p50_bytes,late_queue_p99_bytes,slowdown_p50_per_million,slowdown_p95_per_million,slowdown_p99_per_million,not_promised_reasons,ending
    pfc,7,8604493051,1187840000,0,10,4,600000000,32128,12,37440,644800,187200,300000000,800000000,900000000,0,0,0,10,3900952381,4703540670,991375,12000000,40000000,603200,10,600000000,0,428064,9104784,0,0,2000,41773,0,0,0,0,0,0,5073088000,485568000,2547712000,683909,372800,633600,0,0,0,0,drained
    "no, pfc",7,8602655730,1187840000,20,10,4,600000000,32388,12,37440,644800,187200,300000000,800000000,900000000,0,0,0,10,3900952381,4701703349,991410,12000000,40000000,603200,10,600000000,0,428064,9104784,0,0,2000,41773,0,0,0,0,1,0,5071936000,485568000,2546560000,683987,372800,633600,0,0,0,2,undrained
    "#);
    let value = comparison_json(&rows);
    assert_eq!((&value[1]["variant"], &value[1]["lossless_lost_frames"]), (&"no, pfc".into(), &20.into()));
    assert_eq!(value[0].as_object().unwrap().len(), 52);
    assert_eq!(
        (&value[0]["not_promised"], value[1]["not_promised"][0].as_str()),
        (&serde_json::json!([]), Some("h1 does not obey PFC"))
    );
}

#[test]
fn comparison_shows_the_columns_of_the_scenario() {
    let (mut scenario, mut outcome) = fixture::run();
    let titles = ["h2-h3", "fairness", "slowest", "fastest", "least group, cells", "most group, cells"];
    let more = ["pool used, cells", "pool free, cells", "queue", "XOFFs", "storms", "lossy lost", "h9-h1"];
    scenario.columns = titles.into_iter().chain(more).map(str::to_owned).collect();
    outcome.switches[0].ports[0].classes[3].used_at_stop_cells = 1_200;
    outcome.switches[0].ports[1].classes[3].used_at_stop_cells = 800;
    outcome.switches[0].ports[1].watchdog = (2, 1);
    let rows = [("one".to_owned(), &scenario, &outcome)];
    insta::assert_snapshot!(comparison(&rows), @r#"
    variant  h2-h3 Gb/s  fairness  slowest  fastest  least group, cells  most group, cells  pool used, cells  pool free, cells      queue  XOFFs  storms  lossy lost  h9-h1 Gb/s  ending
    one            4.70     0.991     3.90     4.70                 800              1,200             2,000            41,773  589.06KiB     10       2          10           -  drained

    lossless: KEPT in all variants
    "#);
    let series = comparison_series(&rows);
    let shown: Vec<(&str, &str)> = series.iter().map(|series| (series.title.as_str(), series.unit)).collect();
    assert_eq!(shown[..3], [("h2-h3 Gb/s", "Gb/s"), ("fairness", ""), ("slowest", "Gb/s")]);
    assert_eq!(shown.len(), 12, "a flow that there is not has no picture: {shown:?}");
    assert!((series[4].values[0] - 800.0).abs() < 1e-9);
}
