//! Pages for developers name files and functions: each of them exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arrows::{files, repository, roots};

fn page(name: &str) -> String {
    fs::read_to_string(repository(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Sources of all crates, by their path in the repository, with their text.
fn sources() -> Vec<(String, String)> {
    let root = repository("");
    let name = |path: &Path| path.strip_prefix(&root).expect("below the repository").to_string_lossy().into_owned();
    let paths = roots().iter().flat_map(|root| files(root)).collect::<Vec<_>>();
    let paths = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    paths.map(|path: PathBuf| (name(&path), fs::read_to_string(&path).expect("a source"))).collect()
}

/// The words between backquotes of `text`, without its blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// Whether a line of code has a block, function or implementation that is unsafe.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|form| code.contains(form))
}

/// The rows of docs/unsafe.md: a place, and its number of lines with unsafe code.
fn unsafe_places() -> BTreeMap<String, usize> {
    let text = page("docs/unsafe.md");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells[2].trim_matches('`').to_owned(), cells[3].parse().expect("a number of lines"))
    };
    rows.map(row).collect()
}

#[test]
fn unsafe_code_is_where_its_page_says() {
    let listed = unsafe_places();
    let of = |path: &str| listed.keys().find(|place| path == *place || path.starts_with(&format!("{place}/")));
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in sources().iter().filter(|(_, text)| text.lines().any(is_unsafe)) {
        let place = of(path).unwrap_or_else(|| panic!("{path}: unsafe code that docs/unsafe.md does not list"));
        *found.entry(place.clone()).or_default() += text.lines().filter(|line| is_unsafe(line)).count();
    }
    assert_eq!(found, listed, "lines with unsafe code, and those of docs/unsafe.md");
}

#[test]
fn crates_without_unsafe_code_forbid_it() {
    let listed = unsafe_places();
    for root in roots() {
        let name = root.strip_prefix(repository("")).expect("below the repository").to_string_lossy().into_owned();
        let has_unsafe = listed.keys().any(|place| place.starts_with(&format!("{name}/")));
        for file in ["lib.rs", "main.rs"].iter().filter(|file| root.join(file).exists()) {
            let text = fs::read_to_string(root.join(file)).expect("a source");
            assert!(
                has_unsafe || text.contains("#![forbid(unsafe_code)]"),
                "{name}/{file} does not forbid unsafe code"
            );
        }
    }
}

/// Files that the recipes of docs/extending.md add: if one exists, the recipe shows what is there already.
const ADDED: [&str; 1] = ["src/cli/drops.rs"];

/// Whether `name` is a word of `text`.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// The names of types, functions and fields among quoted words: each part of a path, in order.
fn names<'a>(quoted: &[&'a str]) -> Vec<Vec<&'a str>> {
    let is_name = |word: &&str| {
        let is_word = !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || "_:!".contains(letter));
        is_word && word.chars().any(|letter| letter == '_' || letter == ':' || letter.is_uppercase())
    };
    let parts = |word: &'a str| word.trim_end_matches('!').split("::").collect();
    quoted.iter().copied().filter(is_name).map(parts).collect()
}

/// Whether some file of `code` defines the last of `parts`, and names its owner if it has one.
fn is_defined(code: &[String], parts: &[&str]) -> bool {
    let (name, owner) = (parts[parts.len() - 1], parts.len().checked_sub(2).map(|at| parts[at]));
    let forms = ["fn ", "struct ", "enum ", "trait ", "type ", "macro_rules! "].map(|form| format!("{form}{name}"));
    let is_defined = |text: &String| {
        // A field, a parameter, or the name of a metric.
        let others = [format!("{name}:"), format!("\"{name}\"")];
        let by_word = forms.iter().chain(&others).any(|form| text.contains(form.as_str()) && has_word(text, name));
        // A constant, or a variant in a list.
        let by_case = name.starts_with(char::is_uppercase) && has_word(text, name);
        by_word || by_case
    };
    code.iter().any(|text| is_defined(text) && owner.is_none_or(|owner| has_word(text, owner)))
}

#[test]
fn recipes_name_what_exists() {
    let text = page("docs/extending.md");
    let quoted = quoted(&text);
    let paths = quoted.iter().filter(|word| word.contains('/') && !word.contains(' ') && !word.contains('='));
    for path in paths {
        let exists = [path.to_string(), format!("src/{path}")].iter().any(|path| repository(path).exists());
        assert_eq!(exists, !ADDED.contains(path), "docs/extending.md: {path}");
    }
    let without_comments = |text: String| {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let tests = files(&repository("tests")).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let tests = tests.filter(|path| !path.starts_with(repository("tests/architecture")));
    let texts = tests.map(|path| fs::read_to_string(path).expect("a test"));
    let code: Vec<String> = sources().into_iter().map(|(_, text)| text).chain(texts).map(without_comments).collect();
    for parts in names(&quoted) {
        assert!(is_defined(&code, &parts), "docs/extending.md: {}", parts.join("::"));
    }
}

#[test]
fn quoted_words_and_unsafe_lines_are_found() {
    assert_eq!(quoted("a `b::C` and\n```rust\n`no` d\n```\n`e_f`"), ["b::C", "e_f"]);
    assert_eq!(names(&["b::C", "e_f!", "word", "a b", "src/x.rs"]), [vec!["b", "C"], vec!["e_f"]]);
    let code = ["impl Bridge {\n    fn learn(port: u8) {}".to_owned()];
    assert!(is_defined(&code, &["Bridge", "learn"]) && !is_defined(&code, &["Router", "learn"]));
    assert!(!is_defined(&code, &["bridge_all"]) && is_defined(&code, &["port"]));
    assert!(has_word("(read_port(", "read_port") && !has_word("read_ports", "read_port"));
    assert!(is_unsafe("    return unsafe { f() };") && !is_unsafe("is_unsafe(x) // unsafe {"));
}
