//! Figures in prose: each must be in the output that the page shows, so that none is stale when the output changes.

/// Units that a figure may have. Longer ones come first.
const UNITS: [&str; 11] = ["GiB", "MiB", "KiB", "kB", "MB", "us", "ms", "ns", "B", "s", "%"];
/// Text that may stand between two figures of one unit.
const JOINTS: [&str; 6] = [" to ", " and ", " or ", ", ", " of ", " nor "];

/// A number as written.
#[derive(Debug, Clone)]
struct Figure<'a> {
    text: &'a str,
    value: f64,
    decimals: i32,
    unit: Option<&'a str>,
    /// Unit of the next figure, if this one has none: `39.2 to 39.8 %`.
    shared_unit: Option<&'a str>,
}

impl Figure<'_> {
    /// Whether `shown`, rounded to as many digits, equals this figure. Counts are not rounded.
    fn is_rounded(&self, shown: &Figure<'_>) -> bool {
        let is_whole = self.unit.or(self.shared_unit).is_none() && self.decimals == 0;
        let off = if is_whole { 0.0 } else { 0.5 * 10_f64.powi(-self.decimals) };
        let same_unit = shown.unit == self.unit || shown.unit == self.shared_unit;
        same_unit && (shown.value - self.value).abs() <= off + 1e-9
    }
}

/// Returns the figures of `prose` that are nowhere in `shown`, each once, in their order.
pub fn missing(prose: &str, shown: &str) -> Vec<String> {
    let shown = figures(shown, false);
    let mut missing: Vec<String> = Vec::new();
    for figure in figures(prose, true) {
        let text = figure.unit.map_or(figure.text.to_owned(), |unit| format!("{} {unit}", figure.text));
        if !missing.contains(&text) && !shown.iter().any(|shown| figure.is_rounded(shown)) {
            missing.push(text);
        }
    }
    missing
}

/// Returns all figures. With `alone` only those that are words of their own, not part of a name, a rate or a fraction.
fn figures(text: &str, alone: bool) -> Vec<Figure<'_>> {
    let mut found: Vec<(Figure<'_>, usize, usize)> = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(|c: char| c.is_ascii_digit()).map(|start| at + start) {
        let len =
            text[start..].find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(text.len() - start);
        let number = text[start..start + len].trim_end_matches([',', '.']);
        at = start + number.len();
        let remaining = &text[at..];
        let unit = unit(remaining);
        let end = at + unit.map_or(0, |unit| remaining.find(unit).unwrap_or(0) + unit.len());
        let before = text[..start].chars().next_back();
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || "./:#-_=".contains(c))
            || text[end..].starts_with(|c: char| c.is_alphanumeric() || "/_".contains(c));
        let Ok(value) = number.replace(',', "").parse() else { continue };
        if alone && is_part {
            continue;
        }
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
        found.push((Figure { text: number, value, decimals, unit, shared_unit: None }, start, end));
    }
    for next in (1..found.len()).rev() {
        let between = &text[found[next - 1].2..found[next].1];
        if found[next - 1].0.unit.is_none() && JOINTS.contains(&between) {
            found[next - 1].0.shared_unit = found[next].0.unit.or(found[next].0.shared_unit);
        }
    }
    found.into_iter().map(|(figure, ..)| figure).collect()
}

/// Returns the unit that `text` begins with, after an optional space.
fn unit(text: &str) -> Option<&'static str> {
    let text = text.strip_prefix(' ').unwrap_or(text);
    let is_unit = |unit: &&&str| {
        let remaining = text.strip_prefix(**unit);
        remaining.is_some_and(|remaining| !remaining.starts_with(|c: char| c.is_alphanumeric()))
    };
    UNITS.iter().find(is_unit).copied()
}

#[test]
fn figure_with_unit_matches_rounded_and_count_matches_exactly() {
    let shown = "variant  held  pauses\nPFC      12.74ms  1,156  14.5%  2.62MiB";
    let all = "held for 12.7 ms, 1,156 pauses, 13 to 15 %, 2.6 MiB of port p7 at 100G (h1-h5, 1/8)";
    assert_eq!(missing(all, shown), ["13"], "a unit is that of both figures");
    assert_eq!(
        missing("12 ms, 12.8 ms, 1,155 and 13 pauses, 2.62 GiB", shown),
        ["12 ms", "12.8 ms", "1,155", "13", "2.62 GiB"]
    );
}
