//! Warnings of a scenario. Those that differ only in their numbers are one line with their count.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use holdfast::config::Warning;

/// Prints the warnings as [`lines`] merges them.
pub fn print<'a>(warnings: impl Iterator<Item = &'a Warning>, all: bool) {
    lines(warnings, all).iter().for_each(|warning| print_line(warning));
}

/// Prints one warning.
pub fn print_line(warning: &str) {
    // A failed write cannot be reported, and `eprintln!` would panic on it.
    let _ = writeln!(io::stderr(), "warning: {warning}");
}

/// The lines: each distinct warning once with `all`, otherwise each kind once. They keep their order.
fn lines<'a>(warnings: impl Iterator<Item = &'a Warning>, all: bool) -> Vec<String> {
    let mut shown = HashSet::new();
    // Variants of a scenario mostly have the same warnings.
    let distinct: Vec<&Warning> = warnings.filter(|warning| shown.insert(*warning)).collect();
    if all {
        return distinct.into_iter().map(ToString::to_string).collect();
    }
    let mut counts: HashMap<_, usize> = HashMap::new();
    distinct.iter().for_each(|warning| *counts.entry(warning.kind()).or_default() += 1);
    let first = |warning: &Warning| match counts.remove(&warning.kind())? {
        1 => Some(warning.to_string()),
        count => Some(format!("{warning} (and {} more of this kind; --all shows each)", count - 1)),
    };
    distinct.into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use holdfast::config::{ConfigError, Place};

    use super::*;

    fn warning(line: u64, path: &str, message: &str) -> Warning {
        let place = Some(Place { line, column: 9 });
        let (source, path, message) = ("x.yaml".to_owned(), path.to_owned(), message.to_owned());
        ConfigError { source, place, path, message }.into()
    }

    fn warnings() -> [Warning; 5] {
        [
            warning(4, "switches[0].floods", "it floods"),
            warning(5, "hosts[3].length", "headroom of tor.p4 is computed for 3m"),
            warning(4, "switches[1].floods", "it floods"),
            warning(4, "switches[0].floods", "it floods"),
            warning(40, "switches[0].floods", "it floods"),
        ]
    }

    #[test]
    fn warnings_of_one_kind_are_merged_with_a_count() {
        assert_eq!(
            lines(warnings().iter(), false),
            [
                "x.yaml:4:9: switches[0].floods: it floods (and 2 more of this kind; --all shows each)",
                "x.yaml:5:9: hosts[3].length: headroom of tor.p4 is computed for 3m",
            ]
        );
    }

    #[test]
    fn warnings_of_several_variants_are_merged_behind_the_first() {
        let of = |variant: &str| Warning { variant: Some(variant.to_owned()), ..warnings()[0].clone() };
        let merged = format!("{} (and 1 more of this kind; --all shows each)", of("no point"));
        assert_eq!(lines([of("no point"), of("other")].iter(), false), [merged]);
    }

    #[test]
    fn all_option_lists_each_distinct_warning_once() {
        let [first, second, third, _, last] = warnings().map(|warning| warning.to_string());
        assert_eq!(lines(warnings().iter(), true), [first, second, third, last]);
    }
}
