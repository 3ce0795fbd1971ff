//! docs/metrics.md shows the labels and help texts of all metrics; its rows name them in the order for readers.
//! `UPDATE_DOCS=1 cargo test -p holdfast-observe metrics_page` writes them again.

use super::*;
use crate::plan::DropReason;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
/// Ends of the help texts of a watermark, which has two metrics in one row.
const SINCE: [&str; 2] = [" since watermarks were cleared", " since the start"];

/// The help texts, with the links of the page, and the labels of every metric.
#[derive(Default)]
struct Known {
    helps: BTreeMap<String, String>,
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    fn scrape(&mut self, switch_view: &SwitchView) {
        let mut families = Families::default();
        let snapshot = Snapshot::take(switch_view, std::time::Duration::from_secs(1));
        let text = collect(&mut families, switch_view, &snapshot);
        self.helps.extend(families.helps);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, labels)) = line.rsplit_once(' ').and_then(|(key, _)| key.split_once('{')) else { continue };
            let name = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end).filter(|name| self.helps.contains_key(*name)))
                .unwrap_or(name);
            let names = labels.trim_end_matches('}').split("\",").filter_map(|label| label.split_once('='));
            let names = names.map(|(name, _)| name.to_owned()).filter(|label| label != "le");
            self.labels.entry(name.to_owned()).or_default().extend(names);
        }
    }

    /// A switch with every feature that has metrics of its own.
    fn all() -> Self {
        let mut known = Self::default();
        let (mut with_faults, (routed, mut router)) = (quiet(), routing());
        let board =
            crate::faults::FaultBoard::new(&with_faults.spec, &[], 1, || crate::units::Ticks(0), 1_000_000_000).0;
        with_faults.faults = Some(board);
        router.leave_answers_to_kernel(Default::default());
        routed.router.as_ref().unwrap().publish(&router, |_| 0);
        for view in [run(), trouble(), bonded(), mirroring(), neighbours(), with_faults, routed, various()] {
            known.scrape(&view);
        }
        known
    }

    /// The text of a row: that of its first metric. A watermark has the same text for both.
    #[track_caller]
    fn text(&self, names: &[&str]) -> String {
        let help = |name: &str| self.helps.get(name).unwrap_or_else(|| panic!("no switch has {name}"));
        // The reasons of drops have a table of their own.
        let first = help(names[0]).split(" Reasons: ").next().unwrap_or_default().trim_end_matches('.');
        let Some(second) = names.get(1) else { return phrase(first) };
        let both = [first, help(second).trim_end_matches('.')];
        let [cleared, ever] = [0, 1].map(|at| both[at].strip_suffix(SINCE[at]));
        assert!(cleared.is_some() && cleared == ever, "{names:?}: {both:?}");
        phrase(cleared.unwrap_or_default())
    }
}

/// A sentence as the part of a row: without its capital, unless a name has it.
fn phrase(text: &str) -> String {
    let (before, text) = text.split_at(usize::from(text.starts_with('[')));
    let mut letters = text.chars();
    match letters.next() {
        Some(first)
            if !letters.clone().next().is_some_and(char::is_uppercase) && !text.starts_with("Dynamic Threshold") =>
        {
            format!("{before}{}{}", first.to_lowercase(), letters.as_str())
        }
        _ => format!("{before}{text}"),
    }
}

/// The row of a metric with labels and text of the code; other lines as they are.
fn fresh(line: &str, known: &Known) -> String {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let names: Vec<&str> = cells[0].split('`').skip(1).step_by(2).collect();
    match names.first() {
        Some(name) if line.starts_with("| `holdfast_") => {
            // Some labels and series exist only with features that no switch here has.
            let is_told = |label: &String| cells[1].contains(&format!("`{label}`"));
            let told = known.labels.get(*name).filter(|labels| !labels.iter().all(is_told));
            let quoted =
                |labels: &BTreeSet<String>| labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>();
            let labels = told.map_or_else(|| cells[1].to_owned(), |labels| quoted(labels).join(" "));
            let middle = if cells.len() == 3 { format!(" {labels} |") } else { String::new() };
            format!("| {} |{middle} {} |", cells[0], known.text(&names))
        }
        _ => line.to_owned(),
    }
}

#[test]
fn metrics_page_has_the_texts_of_the_code_and_every_metric() {
    let (page, known) = (std::fs::read_to_string(PAGE).expect("a page"), Known::all());
    let fresh: String = page.lines().map(|line| fresh(line, &known) + "\n").collect();
    let rows = page.lines().filter(|line| line.starts_with("| `holdfast_"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let named: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing: Vec<&String> = known.helps.keys().filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/metrics.md has no row for {missing:?}: write their names, then UPDATE_DOCS=1");
    for (_, label, _) in DropReason::TABLE {
        assert_eq!(page.matches(&format!("| `{label}` |")).count(), 1, "rows of docs/metrics.md for drops by {label}");
    }
    if fresh != page {
        assert!(
            std::env::var_os("UPDATE_DOCS").is_some(),
            "docs/metrics.md differs from the code: UPDATE_DOCS=1 cargo test -p holdfast-observe metrics_page"
        );
        std::fs::write(PAGE, fresh).expect("the page written");
    }
}
