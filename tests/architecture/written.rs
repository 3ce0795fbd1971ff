//! Pages for developers name files and functions: each of them exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arrows::{files, repository};

fn page(name: &str) -> String {
    fs::read_to_string(repository(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Sources below `src`, by their path in the repository, with their text.
fn sources() -> Vec<(String, String)> {
    let root = repository("");
    let name = |path: &Path| path.strip_prefix(&root).expect("below the repository").to_string_lossy().into_owned();
    let paths = files(&repository("src")).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
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

#[test]
fn unsafe_code_is_where_contributing_says() {
    let text = page("CONTRIBUTING.md");
    let line = text.lines().find(|line| line.starts_with("- Unsafe code lives in")).expect("the list");
    let listed: BTreeSet<&str> = quoted(line).into_iter().filter(|place| place.starts_with("src/")).collect();
    let of = |path: &str| listed.iter().copied().find(|place| path == *place || path.starts_with(&format!("{place}/")));
    let mut used = BTreeSet::new();
    for (path, text) in sources().iter().filter(|(_, text)| text.lines().any(is_unsafe)) {
        let line = text.lines().position(is_unsafe).map_or(0, |line| line + 1);
        let place = of(path).unwrap_or_else(|| panic!("{path}:{line}: unsafe code that CONTRIBUTING.md does not list"));
        used.insert(place);
    }
    assert_eq!(used, listed, "places with unsafe code, and those that CONTRIBUTING.md lists");
}

/// Names and files that the recipes of docs/extending.md add: if one exists, the recipe shows what is there already.
const ADDED: [&str; 2] = ["LocalSource", "src/cli/drops.rs"];

/// Whether `name` is a word of `text`.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

/// The names of types, functions and fields among quoted words: the last part of each path.
fn names<'a>(quoted: &[&'a str]) -> Vec<&'a str> {
    let is_name = |word: &&str| {
        let is_word = !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || "_:!".contains(letter));
        is_word && word.chars().any(|letter| letter == '_' || letter == ':' || letter.is_uppercase())
    };
    quoted.iter().copied().filter(is_name).map(|word| word.rsplit("::").next().unwrap_or(word)).collect()
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
    let mut code: String = sources().into_iter().map(|(_, text)| text).collect();
    for path in files(&repository("tests")).iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        code += &fs::read_to_string(path).expect("a test");
    }
    for name in names(&quoted) {
        let name = name.trim_end_matches('!');
        assert_eq!(has_word(&code, name), !ADDED.contains(&name), "docs/extending.md: `{name}`");
    }
}

#[test]
fn quoted_words_and_unsafe_lines_are_found() {
    assert_eq!(quoted("a `b::C` and\n```rust\n`no` d\n```\n`e_f`"), ["b::C", "e_f"]);
    assert_eq!(names(&["b::C", "e_f", "word", "a b", "src/x.rs"]), ["C", "e_f"]);
    assert!(has_word("(read_port(", "read_port") && !has_word("read_ports", "read_port"));
    assert!(is_unsafe("    return unsafe { f() };") && !is_unsafe("is_unsafe(x) // unsafe {"));
}
