//! Checks features.md and standards.md, which are here, against the sources: each key, metric, item and test that they
//! name exists.

use std::collections::BTreeMap;
use std::fs;

use assert_cmd::Command;

use super::*;

/// Texts of a cell that names nothing.
const NOTHING: [&str; 2] = ["none", "none yet"];

/// Reads a file of the repository.
pub fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the cells of one column of all tables, each with the name of its row.
fn column(index: usize) -> Vec<(String, String)> {
    let document = text("tests/config/features.md");
    let rows: Vec<Vec<&str>> = document
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| feature "))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 80 && rows.iter().all(|row| row.len() == 4), "rows of four cells");
    rows.iter().map(|row| (row[0].to_owned(), row[index].to_owned())).collect()
}

/// Returns the names between backquotes in a column, each with its row. A cell without names must have one of
/// `NOTHING`.
fn named(index: usize) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (row, cell) in column(index) {
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty() || NOTHING.contains(&cell.as_str()), "{row}: `{cell}` names nothing");
        all.extend(names.into_iter().map(|name| (row.clone(), name.to_owned())));
    }
    all
}

/// Returns a configuration in which `path` has no value: `{ports: [{reserve: }]}` for `ports[].reserve`.
fn configuration(path: &str) -> String {
    path.rsplit('.').fold(String::new(), |inside, key| {
        let inside = if inside.is_empty() { " ".to_owned() } else { format!(" {inside}") };
        match key.strip_suffix("[]") {
            Some(list) => format!("{{{list}: [{inside}]}}"),
            // Classes are keyed by number.
            None if key == "classes" && inside != " " => format!("{{classes: {{3:{inside}}}}}"),
            None => format!("{{{key}:{inside}}}"),
        }
    })
}

/// Whether the parser knows no key `path`.
pub fn is_unknown(path: &str) -> bool {
    let errors = config::parse("x.yaml", &configuration(path)).expect_err("no port has all that it must have");
    errors.to_string().contains("unknown key")
}

#[test]
fn feature_table_keys_exist_in_parser_and_documentation() {
    let documented = ["docs/configuration.md", "docs/faults.md"].map(text).concat();
    let mut keys = 0;
    for (row, key) in named(1).iter().filter(|(_, key)| !key.starts_with("--")) {
        assert!(!is_unknown(key), "{row}: there is no key `{key}`");
        assert!(is_unknown(&format!("{key}x")), "{row}: `{key}` is nowhere that unknown keys are found");
        // Tables name a key with or without its section.
        let tails = key.match_indices('.').map(|(dot, _)| &key[dot + 1..]).chain([key.as_str()]);
        assert!({ tails }.any(|key| documented.contains(&format!("| `{key}` |"))), "{row}: `{key}`");
        keys += 1;
    }
    assert!(keys > 80, "{keys}");
}

#[test]
fn feature_table_options_exist_in_help() {
    let help = |command: &str| {
        let output = Command::cargo_bin("holdfast").unwrap().args([command, "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let help = ["run", "headroom", "replay", "sim"].map(help).concat();
    let options: Vec<(String, String)> = named(1).into_iter().filter(|(_, key)| key.starts_with("--")).collect();
    assert!(options.len() > 5);
    for (row, option) in options {
        assert!(help.contains(&format!("{option} ")), "{row}: no command has `{option}`");
    }
}

#[test]
fn feature_table_metrics_exist_in_exporter_and_documentation() {
    let families = [
        "buffer",
        "configured",
        "device",
        "faults",
        "flows",
        "lag",
        "lcore",
        "lldp",
        "mirror",
        "mod",
        "peer",
        "port",
        "routing",
        "watchdog",
    ];
    let exporter = families.map(|file| text(&format!("crates/observe/src/stats/collector/{file}.rs"))).concat();
    let settings = ["port", "switch"].map(|file| text(&format!("crates/config/src/config/settings/{file}.rs")));
    let exporter = exporter + &settings.concat();
    let documented = text("docs/metrics.md");
    for (row, metric) in named(2) {
        assert!(exporter.contains(&format!("\"{metric}\"")), "{row}: nobody exports `{metric}`");
        // The metric is alone in its cell, or its counterpart since the start follows it.
        let is_documented = [" |", ", `"].iter().any(|end| documented.contains(&format!("| `{metric}`{end}")));
        assert!(is_documented, "{row}: docs/metrics.md has no `{metric}`");
    }
}

#[test]
fn feature_table_tests_exist_in_their_files() {
    let mut files = BTreeMap::new();
    for (row, test) in named(3) {
        let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{row}: `{test}` is not file::test"));
        let source = files.entry(file.to_owned()).or_insert_with(|| text(file));
        assert!(source.contains(&format!("fn {name}(")), "{row}: {file} has no test `{name}`");
    }
    assert!(files.len() > 30, "{}", files.len());
}

/// A cell has words beside the names of tests only where a test is missing.
#[test]
fn feature_table_rows_without_test_say_none_yet() {
    for (row, cell) in column(3) {
        let words = cell.split('`').step_by(2).collect::<String>();
        let words = words.trim().trim_start_matches("; ");
        assert!(words.is_empty() || words.ends_with("none yet"), "{row}: {words}");
    }
}

/// Returns one sentence for each row of `document` whose code or test does not exist, and the number of names read.
/// Rows with names have four cells: clause, requirement, code and test.
fn missing(document: &str) -> (Vec<String>, usize) {
    let (mut found, mut names) = (Vec::new(), 0);
    for line in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| clause ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        for (kind, cell) in ["code", "test"].into_iter().zip(cells.iter().skip(2)).filter(|_| cells.len() == 4) {
            let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
            names += named.len();
            if named.is_empty() {
                found.push(format!("{}: no {kind}", cells[0]));
            }
            let absent = named.into_iter().filter(|name| !exists(name, kind));
            found.extend(absent.map(|name| format!("{}: no {kind} `{name}`", cells[0])));
        }
    }
    (found, names)
}

/// Whether `name`, which is file::item, exists. A test is a function behind `#[test]`; code is a function, a type or a
/// constant.
fn exists(name: &str, kind: &str) -> bool {
    let Some((file, item)) = name.split_once("::") else { return false };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let source = if path.is_file() { text(file) } else { return false };
    if kind == "test" {
        let is_test = |before: &str| before.trim_end().ends_with("#[test]");
        return source.split_once(&format!("fn {item}(")).is_some_and(|(before, _)| is_test(before));
    }
    let starts = ["fn", "struct", "enum", "const"].iter().map(|word| format!("{word} {item}"));
    { starts }.any(|start| source.split(&start).skip(1).any(|rest| rest.starts_with(['(', '<', ':', ' '])))
}

#[test]
fn every_clause_has_its_code_and_its_test() {
    let (missing, names) = missing(&text("tests/config/standards.md"));
    assert!(missing.is_empty(), "tests/config/standards.md:\n{}", missing.join("\n"));
    assert!(names > 60, "{names}");
}

#[test]
fn a_clause_without_code_or_test_is_found() {
    let row = |code: &str, test: &str| missing(&format!("| 8.1 | one | {code} | {test} |\n")).0;
    let (code, test) =
        ("`crates/wire/src/wire/ecn.rs::mark_ce`", "`crates/wire/src/wire/addr.rs::mac_address_kinds_are_recognized`");
    assert_eq!(row(code, test), [""; 0]);
    assert_eq!(
        row("`crates/wire/src/wire/ecn.rs::mark_c`", test),
        ["8.1: no code `crates/wire/src/wire/ecn.rs::mark_c`"]
    );
    assert_eq!(
        row("`crates/wire/src/wire/gone.rs::mark_ce`", test),
        ["8.1: no code `crates/wire/src/wire/gone.rs::mark_ce`"]
    );
    assert_eq!(
        row(code, "`crates/wire/src/wire/ecn.rs::mark_ce`"),
        ["8.1: no test `crates/wire/src/wire/ecn.rs::mark_ce`"]
    );
    assert_eq!(row("", test), ["8.1: no code"]);
    assert_eq!(row(code, "none"), ["8.1: no test"]);
}
