//! Tests with the plots of a made-up run: which plots exist, that they are well-formed XML, and which texts they
//! contain.

use super::*;
use crate::sim::report::fixture;

/// Checks that every element is closed in order, every attribute is quoted, and every number is finite.
fn check_xml(name: &str, svg: &str) {
    let mut open = Vec::new();
    let mut remaining = svg;
    while let Some(start) = remaining.find('<') {
        let text = &remaining[..start];
        assert!(!text.contains('>'), "{name}: a stray > in {text:?}");
        let end = start + remaining[start..].find('>').expect("a tag ends");
        let tag = &remaining[start + 1..end];
        assert!(tag.matches('"').count().is_multiple_of(2) && !tag.contains('<'), "{name}: <{tag}>");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        remaining = &remaining[end + 1..];
    }
    assert!(open.is_empty() && remaining.trim().is_empty(), "{name}: {open:?}");
    let mut entities = svg.split('&').skip(1);
    assert!(
        entities
            .all(|remaining| ["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| remaining.starts_with(known)))
    );
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
}

#[test]
fn plots_of_a_run_are_valid_and_deterministic_svg() {
    let (scenario, outcome) = fixture::run();
    let pictures = plots(&scenario, &outcome);
    let names: Vec<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tor.p1-class3.svg", "tor.p3-class3.svg", "throughput.svg", "completion.svg"]);
    for (name, svg) in &pictures {
        check_xml(name, svg);
        assert!(svg.contains("incast &lt;2 &amp; 1&gt;, seed 7"), "{name}");
        assert!(svg.len() < 200_000, "{name}: {} bytes", svg.len());
    }
    assert_eq!(pictures, plots(&scenario, &outcome), "the same bytes each time");
}

#[test]
fn no_two_pictures_have_one_file() {
    let mut plots = ["a", "a", "b", "a-2", "a"].map(|name| (name.to_owned(), String::new()));
    name_files(&mut plots);
    assert_eq!(plots.map(|(name, _)| name), ["a.svg", "a-2.svg", "b.svg", "a-2-2.svg", "a-3.svg"]);
}

/// Returns the texts of a picture, in order.
fn texts(svg: &str) -> Vec<&str> {
    let inner = |line: &'_ str| -> Option<(usize, usize)> { Some((line.find('>')? + 1, line.rfind("</text>")?)) };
    svg.lines().filter_map(|line| inner(line).map(|(from, to)| &line[from..to])).collect()
}

#[test]
fn plots_of_ports_and_flows_label_their_series() {
    let (scenario, outcome) = fixture::run();
    let pictures = plots(&scenario, &outcome);
    let has = |picture: usize, text: &str| texts(&pictures[picture].1).contains(&text);
    for text in
        ["lossless priority group", "shared pool", "headroom on top", "threshold T", "held by XOFF", "h1 by tor p1"]
    {
        assert!(has(0, text), "{text}: {:?}", texts(&pictures[0].1));
    }
    for text in ["egress queue", "queue", "marked CE, each sample", "tor p3", "depth (KiB)", "time (us)"] {
        assert!(has(1, text), "{text}: {:?}", texts(&pictures[1].1));
    }
    assert!(!has(1, "lossless priority group") && !has(0, "egress queue"), "nothing without data");
    assert!(has(2, "h1-h3, class 3") && has(2, "dashed: rate allowed by DCQCN"), "{:?}", texts(&pictures[2].1));
    assert!(has(3, "p50") && has(3, "h1-h3, class 3") && !has(3, "h2-h3, class 3"), "{:?}", texts(&pictures[3].1));
}

#[test]
fn run_without_samples_has_no_plots() {
    let (scenario, mut outcome) = fixture::run();
    outcome.samples = Default::default();
    outcome.flows[0].completion = Default::default();
    assert_eq!(plots(&scenario, &outcome), []);
}

#[test]
fn many_flows_are_shown_by_receiver_and_class() {
    let (mut scenario, mut outcome) = fixture::run();
    for _ in 0..20 {
        scenario.flows.push(scenario.flows[0].clone());
        outcome.flows.push(outcome.flows[0].clone());
        outcome.samples.flow_bytes.push(outcome.samples.flow_bytes[0].clone());
        outcome.samples.flow_rate_mbps.push(Vec::new());
    }
    let pictures = plots(&scenario, &outcome);
    let [.., (_, throughput), (_, completion)] = &pictures[..] else { panic!("two pictures at the end") };
    assert!(texts(throughput).contains(&"&gt; h3 (22 flows), class 3"), "{:?}", texts(throughput));
    assert!(texts(completion).contains(&"p99 of the worst flow"), "{:?}", texts(completion));
}

#[test]
fn bar_chart_labels_each_variant_and_value() {
    let labels = ["PFC <only>", "with ECN", "broken"].map(str::to_owned);
    let series = [("lost".to_owned(), vec![0.0, 12.5, f64::NAN]), ("late".to_owned(), vec![1234.5, 3.25, 16.0])];
    let svg = bars("frames & such", "frames", &labels, &series);
    check_xml("bars", &svg);
    for text in ["frames &amp; such", "PFC &lt;only&gt;", "12.5", "1,235", "3.25", "16", "0"] {
        assert!(texts(&svg).contains(&text), "{text}: {:?}", texts(&svg));
    }
    check_xml("nothing", &bars("", "", &[], &[]));
}

#[test]
fn names_that_do_not_fit_beside_each_other_take_another_line() {
    let series = |names: usize| (0..names).map(|n| (format!("a name of thirty characters, {n}"), vec![1.0]));
    // Returns the left and the top coordinate of each name.
    let places = |names: usize| {
        let svg = bars("", "", &["one".to_owned()], &series(names).collect::<Vec<_>>());
        check_xml("names", &svg);
        let of = |line: &str, key: &str| -> f64 {
            let (_, remaining) = line.split_once(&format!(" {key}=\"")).unwrap();
            remaining.split_once('"').unwrap().0.parse().unwrap()
        };
        let named = svg.lines().filter(|line| line.contains(">a name"));
        named.map(|line| (of(line, "x"), of(line, "y"))).collect::<Vec<(f64, f64)>>()
    };
    let (few, many) = (places(3), places(5));
    assert!(few.iter().all(|place| place.1 == few[0].1), "{few:?}");
    assert!(many.iter().all(|place| place.0 < 900.0 - 150.0), "{many:?}");
    assert_eq!((many[3].0, many[3].1 - many[0].1), (many[0].0, 18.0), "{many:?}");
}
