//! Workloads: accepted ones, with their values, and refused ones, with their exact error messages.

use super::*;
use crate::sim::control::Needs;
use crate::sim::workload::sizes::SizeCdf;
use crate::sim::workload::{AllReduce, AllReduceShape, AllToAll, Incast, Pattern, Poisson};

#[test]
fn every_key_of_a_workload_is_read() {
    let workloads = accept(EVERYTHING).workloads;
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(
        names,
        ["web", "incast-2", "incast-3", "all-to-all-4", "all-reduce-5", "all-reduce-6", "table"],
        "a workload without a name has that of its pattern and its place"
    );
    let web = &workloads[0];
    assert_eq!((web.start, web.stop), (Nanos(20_000), Some(Nanos(1_000_000))));
    // 1,665,283 B at half of 25 Gb/s, and at half of 10 Gb/s.
    let senders = vec![(2, 1_065_781_120), (3, 1_065_781_120), (6, 2_664_452_800)];
    let sizes = Distribution::WebSearch.cdf();
    assert_eq!(web.pattern, Pattern::Poisson(Poisson { sizes, senders, receivers: vec![2, 3, 4] }));
    assert_eq!(web.senders.iter().map(|flow| flow.from).collect::<Vec<_>>(), [2, 3, 6]);
    let control = web.sender(6).control.expect("Swift");
    assert!(matches!(control.needs(), Needs { acks: true, telemetry: false, .. }) && web.sender(6).transport.is_some());
}

#[test]
fn every_pattern_of_a_workload_is_read_with_its_values() {
    let workloads = accept(EVERYTHING).workloads;
    let all = (0..7).collect::<Vec<usize>>();
    let incast = Incast {
        senders: all.clone(),
        count: 3,
        receivers: vec![2],
        bytes: Bytes(64_000),
        every_ps: 500_000_000,
        poisson: true,
        times: Some(4),
    };
    assert_eq!(workloads[1].pattern, Pattern::Incast(incast));
    assert_eq!((workloads[1].senders[0].dscp, workloads[1].senders[0].lossless), (0, false));
    // 2,000 B at one percent of the sum of the links: 3 of 10 Gb/s and 4 of 25 Gb/s.
    let Pattern::Incast(by_load) = &workloads[2].pattern else { panic!("an incast") };
    assert_eq!((by_load.every_ps, by_load.times, by_load.poisson), (12_307_692, None, false));
    assert_eq!(by_load.receivers, all);
    let [h1, h2, h3] = [2, 3, 4];
    let bytes = Bytes(1_000_000);
    let to_all = AllToAll { hosts: vec![h1, h2, h3], bytes, every: Nanos(1_000_000), times: Some(2) };
    assert_eq!(workloads[3].pattern, Pattern::AllToAll(to_all));
    assert_eq!(workloads[3].senders[0].frames, FrameSizes::Fixed(500));
    let ring =
        AllReduce { shape: AllReduceShape::Ring, hosts: vec![h3, h1, h2], bytes, gap: Nanos(10_000), times: Some(3) };
    assert_eq!(workloads[4].pattern, Pattern::AllReduce(ring), "in the order of the ring");
    assert_eq!((workloads[4].sender(h1).rate, workloads[4].start), (BitRate(1_000_000_000), Nanos(10_000)));
    let tree = AllReduce { shape: AllReduceShape::Tree, hosts: vec![0, h1], bytes, gap: Nanos(0), times: Some(1) };
    assert_eq!(workloads[5].pattern, Pattern::AllReduce(tree));
    assert_eq!((workloads[5].sender(0).tag, workloads[5].sender(0).ecn), (Some((7, 3)), false));
    let Pattern::Poisson(table) = &workloads[6].pattern else { panic!("Poisson") };
    assert_eq!(table.sizes, SizeCdf::parse("x", "0 0\n1000 50\n9000 100\n").unwrap());
}

#[test]
fn table_of_sizes_is_read_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("web.yaml");
    std::fs::write(&path, format!("{STAR}workloads: [{{sizes: {{file: sizes.txt}}, load: 5%}}]\n")).unwrap();
    std::fs::write(dir.path().join("sizes.txt"), "0 0\n1000 50\n9000 100\n").unwrap();
    let written = Written::read(&path).unwrap();
    let scenario = &written.parse(&Options::default()).unwrap_or_else(|errors| panic!("{errors}"))[0].1;
    assert_eq!(scenario.files, [dir.path().join("sizes.txt")]);
    let tree = written.whole("").expect("the whole scenario");
    let mut yaml = format!("{tree:?}");
    assert!(yaml.contains("0 0 1000 50 9000 100") && !yaml.contains("sizes.txt"), "{yaml}");

    std::fs::write(dir.path().join("sizes.txt"), "0 0\n1000 50\n").unwrap();
    yaml = written.parse(&Options::default()).unwrap_err().to_string();
    let file = dir.path().join("sizes.txt").display().to_string();
    assert_eq!(yaml, format!("{file}: the last percentage is not 100; end with the largest size and 100"));
}

/// The keys of a workload in a star of three hosts, and the errors.
const CASES: &[(&str, &str)] = &[
    ("{}", "workloads[0]: the workload has no pattern; write `sizes`, `incast`, `all_to_all` or `all_reduce`"),
    (
        "{sizes: web-search, incast: {senders: 1, size: 1kB, times: 1}}",
        "workloads[0].incast: `sizes` is given too; write one workload for each",
    ),
    ("{sizes: web-search}", "workloads[0]: `load` is missing; write e.g. `load: 50%`"),
    (
        "{sizes: web-search, load: 0.5}",
        "workloads[0].load: `0.5` is not a load; write a percentage from 0.0001% to 100%, e.g. 50%",
    ),
    (
        "{sizes: web, load: 50%}",
        "workloads[0].sizes: `web` is not a distribution; write `web-search`, `fb-hadoop`, `ali-storage` or \
         `google-rpc`, a size like `64kB`, or `{file: sizes.txt}`",
    ),
    (
        "{sizes: {file: x.txt}, load: 50%}",
        "workloads[0].sizes.file: a scenario that is not in a file cannot refer to files; write `table:` instead",
    ),
    ("{sizes: {}, load: 50%}", "workloads[0].sizes: `file` is missing; write e.g. `file: sizes.txt`"),
    (
        "{sizes: {table: 0 0 10 20 5 100}, load: 50%}",
        "workloads[0].sizes.table: character 11: the size is below the one before; order the lines by size",
    ),
    ("{sizes: 1kB, load: 5%, every: 1ms}", "workloads[0].every: has no effect on `sizes`; remove it"),
    (
        "{sizes: 1kB, load: 5%, hosts: all}",
        "workloads[0].hosts: has no effect on this pattern; write `from` and `to` instead",
    ),
    (
        "{sizes: 1kB, load: 5%, from: h1, to: h1}",
        "workloads[0].from: a workload needs two hosts, of which one sends to the other; write more hosts",
    ),
    (
        "{sizes: 1kB, load: 5%, frame: imix}",
        "workloads[0].frame: flows of a workload have frames of one length; write e.g. `frame: 1078`",
    ),
    (
        "{sizes: 1kB, load: 5%, frame: 80, cc: hpcc}",
        "workloads[0].frame: a frame of 80 B has no room behind 100 B of headers; write at least 101",
    ),
    (
        "{incast: {senders: 3, size: 1kB, every: 1ms}, to: h1}",
        "workloads[0].incast.senders: 2 hosts can send to h1; write at most 2, or another `from`",
    ),
    (
        "{incast: {senders: 1, size: 1kB}}",
        "workloads[0].incast: `every` is missing; write e.g. `every: 500us`, `load: 5%` or `times: 1`",
    ),
    (
        "{incast: {senders: 1, size: 1kB, every: 1ms, load: 5%}}",
        "workloads[0].incast.load: `every` is given too; keep one of the two",
    ),
    ("{all_to_all: 1MB, times: 2}", "workloads[0].times: `every` is missing; write e.g. `every: 1ms`, or `times: 1`"),
    (
        "{all_reduce: star, size: 1MB}",
        "workloads[0].all_reduce: `star` is not one of the choices; write `ring` or `tree`",
    ),
    ("{all_reduce: ring}", "workloads[0]: `size` is missing; write e.g. `size: 1MB`"),
    (
        "{all_reduce: ring, size: 1MB, from: h1}",
        "workloads[0].from: has no effect on this pattern; write `hosts` instead",
    ),
];

#[test]
fn wrong_workloads_are_refused_with_place_and_remedy() {
    for (keys, expected) in CASES {
        let errors = errors_of(&format!("{STAR}workloads: [{keys}]\n"));
        let (place, message) = errors.split_once(": ").expect("a place");
        assert!(place.starts_with("x.yaml:7:"), "{errors}");
        assert_eq!(message, *expected, "{keys}");
    }
}

#[test]
fn workloads_with_one_name_or_apart_hosts_are_refused() {
    let twice = "workloads: [{name: a, sizes: 1kB, load: 5%}, {name: a, sizes: 1kB, load: 5%}]\n";
    assert_eq!(
        errors_of(&format!("{STAR}{twice}")),
        "x.yaml:7:53: workloads[1].name: `a` is already the name of workloads[0]; write another"
    );
    let apart = "\
duration: 1ms
switches:
  - {name: a, config: {preset: roce, ports: [{name: p1, speed: 10G}]}}
  - {name: b, config: {preset: roce, ports: [{name: p1, speed: 10G}]}}
hosts: [{name: h1, at: a.p1}, {name: h2, at: b.p1}]
workloads: [{all_reduce: ring, size: 1MB}]
";
    assert_eq!(errors_of(apart), "x.yaml:6:13: workloads[0]: no cable leads from h1 to h2; write one under `links`");
}
