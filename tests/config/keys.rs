//! The tables of keys on the pages show the texts of the readers. `UPDATE_DOCS=1` writes them again.
//!
//! A table stands behind a marker with the path of its section. A section without a marker of its own stands in the
//! table of the mapping that holds it.

use holdfast::config::keys::{Key, Section, sections};

use super::features::{is_unknown, text};
use super::*;

const PAGES: [&str; 2] = ["docs/configuration.md", "docs/faults.md"];
const MARKER: &str = "<!--keys:";
const TOP: &str = "top";

/// A row of a table: the name of a key below the section of the table, and its texts.
type Row = (String, Key);

/// The paths of the markers on a page, in their order.
fn marked(page: &str) -> Vec<String> {
    let path = |line: &str| Some(line.strip_prefix(MARKER)?.strip_suffix("-->")?.to_owned());
    page.lines().filter_map(path).collect()
}

fn find(path: &str) -> Option<Section> {
    sections().into_iter().find(|section| section.path == if path == TOP { "" } else { path })
}

/// The section below `key`, with the name of the key as in its path.
fn inner(section: &Section, key: &Key) -> Option<(String, Section)> {
    let names = [key.name.to_owned(), format!("{}[]", key.name)];
    names.into_iter().find_map(|name| {
        let inner = find(join(section.path, &name).as_str())?;
        Some((name, inner))
    })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The rows of a section. Inner sections without a marker follow their key, which then needs no text.
fn rows(section: &Section, prefix: &str, marked: &[String]) -> Vec<Row> {
    let mut rows = Vec::new();
    for key in section.keys {
        let inner = inner(section, key).filter(|(_, inner)| !marked.iter().any(|path| path == inner.path));
        if inner.is_none() || !key.meaning.is_empty() || !key.range.is_empty() {
            rows.push((format!("{prefix}{}", key.name), *key));
        }
        if let Some((name, inner)) = inner {
            rows.extend(self::rows(&inner, &format!("{prefix}{name}."), marked));
        }
    }
    rows
}

/// The table of `rows`, without columns that are empty.
fn table(rows: &[Row]) -> String {
    let column = |text: fn(&Key) -> &str| rows.iter().map(|(_, key)| text(key).to_owned()).collect::<Vec<_>>();
    let names = rows.iter().map(|(name, _)| format!("`{name}`")).collect();
    let has_kinds = rows.iter().any(|(_, key)| key.lossless_default.is_some());
    let columns = [
        ("key", names),
        (if has_kinds { "lossy default" } else { "default" }, column(|key| key.default)),
        ("lossless default", column(|key| key.lossless_default.unwrap_or_default())),
        ("range", column(|key| key.range)),
        ("meaning", column(|key| key.meaning)),
    ];
    let columns: Vec<_> = columns.into_iter().filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty())).collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.iter().map(|cell| if cell.is_empty() { "| ".to_owned() } else { format!("| {cell} ") });
        cells.collect::<String>() + "|\n"
    };
    let head = line(columns.iter().map(|(head, _)| *head).collect()) + &"|---".repeat(columns.len()) + "|\n";
    let row = |index: usize| line(columns.iter().map(|(_, cells)| cells[index].as_str()).collect());
    head + &(0..rows.len()).map(row).collect::<String>()
}

/// The page with the table of each marker as `table_of` returns it.
fn with_tables(page: &str, table_of: impl Fn(&str) -> String) -> String {
    let (mut fresh, mut is_old) = (String::new(), false);
    for line in page.split_inclusive('\n') {
        is_old &= line.starts_with('|');
        if is_old {
            continue;
        }
        fresh += line;
        if let [path] = marked(line).as_slice() {
            fresh += &table_of(path);
            is_old = true;
        }
    }
    fresh
}

#[test]
fn tables_on_pages_show_the_keys_of_the_parser() {
    let pages = PAGES.map(text);
    let marked = pages.iter().flat_map(|page| marked(page)).collect::<Vec<_>>();
    let rows = |path: &str| rows(&find(path).unwrap_or_else(|| panic!("no section `{path}`")), "", &marked);
    for (name, page) in PAGES.iter().zip(&pages) {
        let fresh = with_tables(page, |path| table(&rows(path)));
        if fresh == *page {
            continue;
        }
        assert!(
            std::env::var_os("UPDATE_DOCS").is_some(),
            "the tables of keys in {name} differ from the texts in crates/config; if those are right: \
             UPDATE_DOCS=1 cargo test --no-default-features --test config keys::"
        );
        std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), fresh).expect("the page written");
    }
    let held: Vec<&str> = sections()
        .iter()
        .flat_map(|section| section.keys.iter().filter_map(|key| Some(inner(section, key)?.1.path)))
        .collect();
    for Section { path, .. } in sections().iter().skip(1) {
        let tables = marked.iter().filter(|marked| marked == path).count();
        assert!(tables == 1 || (tables == 0 && held.contains(path)), "`{path}` has {tables} tables");
    }
}

#[test]
fn keys_of_every_section_are_known_to_the_parser_and_have_a_text() {
    for section in sections() {
        let path = section.path;
        for key in section.keys {
            let path = join(path, key.name);
            assert!(!is_unknown(&path), "`{path}`");
            let has_text = [key.default, key.range, key.meaning].iter().any(|text| !text.is_empty());
            assert!(has_text || inner(&section, key).is_some(), "`{path}` has no text");
        }
        // The flows of a host are read only with its port.
        if path != "hosts[].flows[]" {
            let wrong = join(path, "wrong");
            assert!(is_unknown(&wrong), "`{path}` is nowhere that unknown keys are found");
        }
    }
}
