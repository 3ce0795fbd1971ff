//! Families of metrics, built by hand: name, help, type, and a value for each set of labels.

use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

/// Families in the making.
#[derive(Debug, Default)]
pub(super) struct Families(Vec<Family>);

/// One family.
#[derive(Debug)]
pub(super) struct Family {
    family: MetricFamily,
    kind: MetricType,
    metrics: Vec<Metric>,
}

impl Families {
    /// Begins a family of counters, whose name ends in `_total`.
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
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        self.0.push(Family { family, kind, metrics: Vec::new() });
        self.0.last_mut().expect("one was just pushed")
    }

    /// The families that have any metric.
    pub fn done(self) -> Vec<MetricFamily> {
        let filled = self.0.into_iter().filter(|family| !family.metrics.is_empty());
        filled
            .map(|Family { mut family, metrics, .. }| {
                family.set_metric(metrics);
                family
            })
            .collect()
    }
}

impl Family {
    /// Adds a whole number.
    pub fn add(&mut self, labels: &[(&str, &str)], value: u64) {
        self.add_real(labels, value as f64);
    }

    /// Adds a real number.
    pub fn add_real(&mut self, labels: &[(&str, &str)], value: f64) {
        let mut metric = Metric::from_label(pairs(labels));
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        self.metrics.push(metric);
    }

    /// Adds a histogram: for each bucket its upper bound and what is in it alone; what is beyond the last bound; and
    /// the sum of all values.
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
        let mut metric = Metric::from_label(pairs(labels));
        metric.set_histogram(histogram);
        self.metrics.push(metric);
    }
}

/// Labels in the order of their names.
fn pairs(labels: &[(&str, &str)]) -> Vec<LabelPair> {
    let pairs = labels.iter().map(|(name, value)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    });
    let mut pairs: Vec<LabelPair> = pairs.collect();
    pairs.sort_by(|a, b| a.name().cmp(b.name()));
    pairs
}
