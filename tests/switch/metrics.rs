//! A strict reader of Prometheus' text format, version 0.0.4: unexpected text is an error.

use std::collections::{BTreeMap, BTreeSet};

/// The result of one scrape.
#[derive(Debug)]
pub struct Exposition {
    /// Type of each family, by name.
    pub families: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

/// One line with a value.
#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Exposition {
    /// Parses `text`; panics at the first line that violates the format.
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut families = BTreeMap::new();
        let (mut samples, mut seen) = (Vec::new(), BTreeSet::new());
        // The family of the current lines. All lines of a family stand together, after its help and type.
        let (mut helped, mut family) = (String::new(), (String::new(), String::new()));
        for line in text.lines() {
            if let Some(remaining) = line.strip_prefix("# HELP ") {
                let (name, help) = remaining.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(is_name(name) && !help.trim().is_empty(), "{line}");
                helped = name.to_owned();
            } else if let Some(remaining) = line.strip_prefix("# TYPE ") {
                let (name, kind) = remaining.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
                assert_eq!(name, helped, "HELP comes before TYPE: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "only counters end in _total: {line}");
                assert!(families.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
                family = (name.to_owned(), kind.to_owned());
            } else {
                let sample = Sample::parse(line);
                let base = if family.1 == "histogram" { without_suffix(&sample.name) } else { sample.name.as_str() };
                assert_eq!(base, family.0, "outside of its family: {line}");
                assert!(family.1 != "counter" || sample.value >= 0.0, "{line}");
                let series = line.rsplit_once(' ').expect("it was read").0;
                assert!(seen.insert(series.to_owned()), "twice: {line}");
                samples.push(sample);
            }
        }
        Self { families, samples }
    }

    /// Returns the sum of a family's samples with these labels; panics if there are none.
    #[track_caller]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Sample| {
            sample.name == name && labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|v| v == value))
        };
        let mut values = self.samples.iter().filter(has).map(|sample| sample.value).peekable();
        assert!(values.peek().is_some(), "no {name} with {labels:?}");
        values.sum()
    }

    /// Returns the nonzero samples of a family, for messages.
    pub fn nonzero(&self, name: &str) -> Vec<String> {
        let nonzero = self.samples.iter().filter(|sample| sample.name == name && sample.value != 0.0);
        nonzero.map(|sample| format!("{:?} {}", sample.labels.values().collect::<Vec<_>>(), sample.value)).collect()
    }

    /// Returns the values of a label among the nonzero samples of a family.
    pub fn labels_of_nonzero(&self, name: &str, label: &str) -> Vec<String> {
        let nonzero = self.samples.iter().filter(|sample| sample.name == name && sample.value != 0.0);
        nonzero.filter_map(|sample| sample.labels.get(label).cloned()).collect()
    }

    /// Asserts that no series of `before` is missing here, and that no counter is lower.
    #[track_caller]
    pub fn assert_no_counter_fell_since(&self, before: &Exposition) {
        let by_series: BTreeMap<_, _> =
            self.samples.iter().map(|sample| ((&sample.name, &sample.labels), sample.value)).collect();
        for sample in &before.samples {
            let now = by_series.get(&(&sample.name, &sample.labels)).unwrap_or_else(|| panic!("gone: {sample:?}"));
            let counts = self.families.get(&sample.name).is_some_and(|kind| kind == "counter");
            assert!(!counts || *now >= sample.value, "{sample:?} fell to {now}");
        }
    }
}

impl Sample {
    #[track_caller]
    fn parse(line: &str) -> Self {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let value = match value {
            "+Inf" => f64::INFINITY,
            value => value.parse().unwrap_or_else(|error| panic!("{error}: {line}")),
        };
        let (name, labels) = match series.split_once('{') {
            None => (series, BTreeMap::new()),
            Some((name, remaining)) => {
                let remaining = remaining.strip_suffix('}').unwrap_or_else(|| panic!("open labels: {line}"));
                (name, remaining.split("\",").map(|pair| label(pair, line)).collect())
            }
        };
        assert!(is_name(name), "{line}");
        Self { name: name.to_owned(), labels, value }
    }
}

/// Parses `key="value`; only the last label still has its closing quote. Values here need no escapes, so none is
/// accepted.
#[track_caller]
fn label(pair: &str, line: &str) -> (String, String) {
    let (key, value) = pair.split_once("=\"").unwrap_or_else(|| panic!("a label without value: {line}"));
    let value = value.strip_suffix('"').unwrap_or(value);
    assert!(is_name(key) && !value.contains(['"', '\\', '\n']), "{line}");
    (key.to_owned(), value.to_owned())
}

fn is_name(name: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(word)
}

/// Returns the family of a histogram's sample.
fn without_suffix(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
