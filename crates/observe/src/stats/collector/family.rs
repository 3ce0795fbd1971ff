//! Families of metrics, built without the registry: name, help, type, and a value for each set of labels.
//!
//! A ToR has about 13,000 series, and a scrape is answered in the control thread. So series are reused by the next
//! scrape: a series with unchanged labels receives a new value without an allocation.

use arrayvec::ArrayVec;
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::stats::links::without_links;
use crate::stats::snapshot::Snapshot;

/// Most labels of a series.
const MAX_LABELS: usize = 8;

type Labels<'a> = ArrayVec<(&'a str, &'a str), MAX_LABELS>;

/// The families of the current scrape, written over those of the previous one. Families without series are left out.
#[derive(Debug, Default)]
pub(super) struct Families {
    families: Vec<MetricFamily>,
    /// Number of families in this scrape so far, and of series in the last of them.
    done: usize,
    series: usize,
    /// A family that was begun and has no series yet.
    begun: Option<(String, String, MetricType)>,
    /// Length in bytes of the previous text.
    text_len: usize,
    /// Help texts with their links, for the test of the page.
    #[cfg(test)]
    pub helps: Vec<(String, String)>,
}

/// The family that was begun last.
pub(super) type Family = Families;

/// The two families of a watermark, each with its name, its help text and the snapshot to read. `name` is that of the
/// one that can be cleared; the other counts since the start.
pub(super) fn watermark<'a>(
    name: &str,
    what: &str,
    [now, ever]: [&'a Snapshot; 2],
) -> [(String, String, &'a Snapshot); 2] {
    [
        (name.to_owned(), format!("{what} since watermarks were cleared."), now),
        (name.replacen("highest", "highest_since_start", 1), format!("{what} since the start."), ever),
    ]
}

impl Families {
    /// Begins another scrape.
    pub fn rewind(&mut self) {
        (self.done, self.series, self.begun) = (0, 0, None);
    }

    /// Begins a family of counters, whose name ends in `_total`. The help text of a family is the text of its row in
    /// docs/metrics.md: a scrape has the words of its links alone.
    pub fn counter(&mut self, name: &str, help: &str) -> &mut Family {
        debug_assert!(name.ends_with("_total"), "{name} is a counter");
        self.begin(name, help, MetricType::COUNTER)
    }

    /// Begins a family of gauges.
    pub fn gauge(&mut self, name: &str, help: &str) -> &mut Family {
        self.begin(name, help, MetricType::GAUGE)
    }

    /// Begins a family of histograms.
    pub fn histogram(&mut self, name: &str, help: &str) -> &mut Family {
        self.begin(name, help, MetricType::HISTOGRAM)
    }

    fn begin(&mut self, name: &str, help: &str, kind: MetricType) -> &mut Family {
        self.end();
        #[cfg(test)]
        self.helps.push((name.to_owned(), help.to_owned()));
        self.begun = Some((name.to_owned(), help.to_owned(), kind));
        self
    }

    /// Ends the current family: removes its series that remain from the previous scrape.
    fn end(&mut self) {
        if self.begun.take().is_none()
            && let Some(family) = self.done.checked_sub(1).and_then(|last| self.families.get_mut(last))
        {
            family.mut_metric().truncate(self.series);
        }
    }

    /// The scrape in the text format of Prometheus.
    pub fn text(&mut self) -> String {
        self.end();
        self.families.truncate(self.done);
        // Slightly more than the previous length, since numbers grow.
        let mut text = String::with_capacity(self.text_len + self.text_len / 16);
        // The encoder refuses only families without a name or without series.
        TextEncoder::new().encode_utf8(&self.families, &mut text).expect("each family has a name and series");
        self.text_len = text.len();
        text
    }

    /// Adds a whole number.
    pub fn add(&mut self, labels: &[(&str, &str)], value: u64) {
        self.add_real(labels, value as f64);
    }

    /// Adds a real number.
    pub fn add_real(&mut self, labels: &[(&str, &str)], value: f64) {
        let (kind, metric) = self.next(labels);
        if kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
    }

    /// Adds a histogram. Each bucket has its upper bound and its own count; `beyond` counts values above the last
    /// bound, and `sum` is the sum of all values.
    pub fn add_histogram(&mut self, labels: &[(&str, &str)], buckets: &[(f64, u64)], beyond: u64, sum: f64) {
        let mut count = 0;
        let buckets = buckets.iter().map(|&(bound, inside)| {
            count += inside;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(count + beyond);
        histogram.set_sample_sum(sum);
        self.next(labels).1.set_histogram(histogram);
    }

    /// The next series of the current family, with these labels.
    fn next(&mut self, labels: &[(&str, &str)]) -> (MetricType, &mut Metric) {
        if let Some((name, help, kind)) = self.begun.take() {
            (self.done, self.series) = (self.done + 1, 0);
            self.place(name, help, kind);
        }
        let mut labels: Labels<'_> = labels.iter().copied().collect();
        labels.sort_unstable();
        let family = &mut self.families[self.done - 1];
        let (kind, metrics, at) = (family.get_field_type(), family.mut_metric(), self.series);
        self.series += 1;
        match metrics.get(at) {
            Some(metric) if has_labels(metric, &labels) => {}
            Some(_) => metrics[at] = Metric::from_label(pairs(&labels)),
            None => metrics.push(Metric::from_label(pairs(&labels))),
        }
        (kind, &mut metrics[at])
    }

    /// Places a family of this name at the next position: the one of the previous scrape, or a new one.
    fn place(&mut self, name: String, help: String, kind: MetricType) {
        let at = self.done - 1;
        if self.families.get(at).is_some_and(|family| family.name() == name) {
            return;
        }
        // A family was added or removed: all later families are created again.
        self.families.truncate(at);
        let mut family = MetricFamily::default();
        family.set_name(name);
        family.set_help(without_links(&help));
        family.set_field_type(kind);
        self.families.push(family);
    }
}

fn has_labels(metric: &Metric, labels: &Labels<'_>) -> bool {
    let own = metric.get_label();
    own.len() == labels.len() && own.iter().zip(labels).all(|(pair, label)| (pair.name(), pair.value()) == *label)
}

/// Converts labels, which are sorted by name.
fn pairs(labels: &Labels<'_>) -> Vec<LabelPair> {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    labels.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_text_follows_the_prometheus_format() {
        let mut families = Families::default();
        families.gauge("left_out", "Nothing of it.");
        families.counter("x_total", "Back\\slash\nand line.").add(&[("b", "a \"b\"\\\n"), ("a", "1")], 7);
        families.gauge("y", "Real.").add_real(&[], 0.25);
        let expected = "# HELP x_total Back\\\\slash\\nand line.\n# TYPE x_total counter\n\
                        x_total{a=\"1\",b=\"a \\\"b\\\"\\\\\\n\"} 7\n# HELP y Real.\n# TYPE y gauge\ny 0.25\n";
        assert_eq!(families.text(), expected);
    }

    #[test]
    fn histogram_buckets_are_cumulative() {
        let mut families = Families::default();
        families.histogram("h", "Times.").add_histogram(&[("l", "0")], &[(0.5, 2), (1.0, 3)], 4, 9.5);
        let lines = families.text();
        let lines: Vec<_> = lines.lines().skip(2).collect();
        let expected = [
            r#"h_bucket{l="0",le="0.5"} 2"#,
            r#"h_bucket{l="0",le="1"} 5"#,
            r#"h_bucket{l="0",le="+Inf"} 9"#,
            r#"h_sum{l="0"} 9.5"#,
            r#"h_count{l="0"} 9"#,
        ];
        assert_eq!(lines, expected);
    }

    proptest::proptest! {
        /// The result must not depend on earlier scrapes: families and series appear, disappear and move.
        #[test]
        fn scrape_does_not_depend_on_earlier_scrapes(
            scrapes in proptest::collection::vec(
                proptest::collection::vec((0_u8..5, proptest::collection::vec(0_u8..4, 0..4)), 0..5), 1..6)
        ) {
            let mut kept = Families::default();
            for scrape in scrapes {
                let mut fresh = Families::default();
                kept.rewind();
                for families in [&mut kept, &mut fresh] {
                    for (name, series) in &scrape {
                        families.gauge(&format!("f{name}"), "Help.");
                        for value in series {
                            families.add(&[("label", &value.to_string())], (*value).into());
                        }
                    }
                }
                proptest::prop_assert_eq!(kept.text(), fresh.text());
            }
        }
    }
}
