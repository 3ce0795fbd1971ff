//! Families of metrics in Prometheus' text format, version 0.0.4, written as they come: name, help, type, and a value for
//! each set of labels.
//!
//! A ToR has some 13,000 series, and whoever scrapes waits for them in the control thread. Written straight into one
//! text they take no allocation each (docs/metrics.md has what a scrape costs).

use std::fmt::{Display, Write};

use arrayvec::ArrayVec;

/// Labels that a series may have.
const MAX_LABELS: usize = 6;

/// Families in the making.
#[derive(Debug, Default)]
pub(super) struct Families(Family);

/// One family: the last that was begun.
#[derive(Debug, Default)]
pub(super) struct Family {
    text: String,
    name: String,
    /// Its help and type, until the first series: a family without any is left out.
    head: Option<(String, &'static str)>,
}

impl Families {
    /// None yet, with room for `bytes` of text.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Family { text: String::with_capacity(bytes), ..Family::default() })
    }

    /// Begins a family of counters, whose name ends in `_total`.
    pub fn counter(&mut self, name: &str, help: &str) -> &mut Family {
        debug_assert!(name.ends_with("_total"), "{name} is a counter");
        self.begin(name, help, "counter")
    }

    /// Begins a family of gauges.
    pub fn gauge(&mut self, name: &str, help: &str) -> &mut Family {
        self.begin(name, help, "gauge")
    }

    /// Begins a family of histograms.
    pub fn histogram(&mut self, name: &str, help: &str) -> &mut Family {
        self.begin(name, help, "histogram")
    }

    fn begin(&mut self, name: &str, help: &str, kind: &'static str) -> &mut Family {
        name.clone_into(&mut self.0.name);
        self.0.head = Some((help.to_owned(), kind));
        &mut self.0
    }

    /// All families that have any series.
    pub fn done(self) -> String {
        self.0.text
    }
}

impl Family {
    /// Adds a whole number.
    pub fn add(&mut self, labels: &[(&str, &str)], value: u64) {
        self.sample("", labels, value);
    }

    /// Adds a real number.
    pub fn add_real(&mut self, labels: &[(&str, &str)], value: f64) {
        self.sample("", labels, value);
    }

    /// Adds a histogram: for each bucket its upper bound and what is in it alone; what is beyond the last bound; and
    /// the sum of all values.
    pub fn add_histogram(&mut self, labels: &[(&str, &str)], buckets: &[(f64, u64)], beyond: u64, sum: f64) {
        let mut count = 0;
        for &(bound, inside) in buckets {
            count += inside;
            let bound = bound.to_string();
            self.sample("_bucket", &with(labels, ("le", &bound)), count);
        }
        count += beyond;
        self.sample("_bucket", &with(labels, ("le", "+Inf")), count);
        self.sample("_sum", labels, sum);
        self.sample("_count", labels, count);
    }

    /// One line, with its labels in the order of their names.
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let (name, text) = (&self.name, &mut self.text);
        // Writing to a text cannot fail.
        if let Some((help, kind)) = self.head.take() {
            let help = help.replace('\\', r"\\").replace('\n', r"\n");
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        text.push_str(name);
        text.push_str(suffix);
        let mut labels: ArrayVec<_, MAX_LABELS> = labels.iter().copied().collect();
        labels.sort_unstable();
        for (index, (label, value)) in labels.iter().enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            text.push_str(label);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
        }
        text.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = writeln!(text, "{value}");
    }
}

fn with<'a>(labels: &[(&'a str, &'a str)], more: (&'a str, &'a str)) -> ArrayVec<(&'a str, &'a str), MAX_LABELS> {
    labels.iter().copied().chain([more]).collect()
}

/// A label's value: names of ports and hosts are whatever somebody has called them.
fn push_escaped(text: &mut String, value: &str) {
    if !value.contains(['\\', '"', '\n']) {
        return text.push_str(value);
    }
    for character in value.chars() {
        match character {
            '\\' => text.push_str(r"\\"),
            '"' => text.push_str(r#"\""#),
            '\n' => text.push_str(r"\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_as_the_format_has_it() {
        let mut families = Families::default();
        families.gauge("left_out", "Nothing of it.");
        families.counter("x_total", "Back\\slash\nand line.").add(&[("b", "a \"b\"\\\n"), ("a", "1")], 7);
        families.gauge("y", "Real.").add_real(&[], 0.25);
        let expected = "# HELP x_total Back\\\\slash\\nand line.\n# TYPE x_total counter\n\
                        x_total{a=\"1\",b=\"a \\\"b\\\"\\\\\\n\"} 7\n# HELP y Real.\n# TYPE y gauge\ny 0.25\n";
        assert_eq!(families.done(), expected);
    }

    #[test]
    fn buckets_add_up() {
        let mut families = Families::default();
        families.histogram("h", "Times.").add_histogram(&[("l", "0")], &[(0.5, 2), (1.0, 3)], 4, 9.5);
        let lines = families.done();
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
}
