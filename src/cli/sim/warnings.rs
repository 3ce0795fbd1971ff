//! Warnings of a scenario. Those that differ only in their numbers are one line with their count.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Prints the warnings as [`lines`] merges them.
pub fn print<'a>(warnings: impl Iterator<Item = &'a str>, all: bool) {
    for warning in lines(warnings, all) {
        // A failed write cannot be reported, and `eprintln!` would panic on it.
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
}

/// The lines: each distinct warning once with `all`, otherwise each kind once. They keep their order.
fn lines<'a>(warnings: impl Iterator<Item = &'a str>, all: bool) -> Vec<String> {
    let mut shown = HashSet::new();
    // Variants of a scenario mostly have the same warnings.
    let distinct: Vec<&str> = warnings.filter(|warning| shown.insert(*warning)).collect();
    if all {
        return distinct.into_iter().map(str::to_owned).collect();
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    distinct.iter().for_each(|warning| *counts.entry(kind(warning)).or_default() += 1);
    let first = |warning: &str| match counts.remove(&kind(warning))? {
        1 => Some(warning.to_owned()),
        count => Some(format!("{warning} (and {} more of this kind; --all shows each)", count - 1)),
    };
    distinct.into_iter().filter_map(first).collect()
}

/// The kind of a warning: its text without digits and variant.
fn kind(warning: &str) -> String {
    let text = warning.split_once(" (in variant `").map_or(warning, |(text, _)| text);
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNINGS: [&str; 5] = [
        "x.yaml:4:9: switches[0].floods: it floods",
        "x.yaml:5:22: hosts[3].length: headroom of tor.p4 is computed for 3m",
        "x.yaml:4:9: switches[1].floods: it floods",
        "x.yaml:4:9: switches[0].floods: it floods",
        "x.yaml:40:19: switches[0].floods: it floods",
    ];

    #[test]
    fn warnings_of_one_kind_are_merged_with_a_count() {
        assert_eq!(
            lines(WARNINGS.into_iter(), false),
            [
                "x.yaml:4:9: switches[0].floods: it floods (and 2 more of this kind; --all shows each)",
                "x.yaml:5:22: hosts[3].length: headroom of tor.p4 is computed for 3m",
            ]
        );
    }

    #[test]
    fn warnings_of_several_variants_are_merged_behind_the_first() {
        let of = |variant: &str| format!("{} (in variant `{variant}`)", WARNINGS[0]);
        let (a, b) = (of("no point"), of("other"));
        let merged = format!("{a} (and 1 more of this kind; --all shows each)");
        assert_eq!(lines([a.as_str(), b.as_str()].into_iter(), false), [merged]);
    }

    #[test]
    fn all_option_lists_each_distinct_warning_once() {
        assert_eq!(lines(WARNINGS.into_iter(), true), [WARNINGS[0], WARNINGS[1], WARNINGS[2], WARNINGS[4]]);
    }
}
