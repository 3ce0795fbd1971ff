//! Checks the dependencies of rooms in one crate: the list of docs/architecture.md matches the sources, and they have
//! no cycle. Atomic types come from `crates/base/src/sync.rs` alone, where loom can replace them.
//!
//! The tests read `crate::` paths, `super::` paths that reach the root of the crate. Comments and tests are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that every other room may use. The table omits the arrows to them.
const COMMON: [&str; 5] = ["mutant", "prefetch", "sets", "sync", "text"];

/// The only atomics of the program itself: a flag for a received signal. No lcore shares it, and the program cannot use
/// `sync`.
const ATOMICS_OF_ITS_OWN: &str = "cli/sim/interrupt.rs";

/// The rooms that each room uses.
type Arrows = BTreeMap<String, BTreeSet<String>>;

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns all files below `directory`.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns `text` without comments.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether this file is compiled for tests only, by its own name or by a `#[cfg(test)]` in its parent.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
    if name.ends_with("tests") || path.components().any(|part| part.as_os_str() == "tests") {
        return true;
    }
    let directory = path.parent().expect("it is below src");
    [directory.join("mod.rs"), directory.join("lib.rs")].iter().filter(|parent| *parent != path).any(|parent| {
        let text = code(&fs::read_to_string(parent).unwrap_or_default());
        test_only(&text).any(|remaining| {
            let declared = remaining.split(';').next().unwrap_or_default();
            declared.ends_with(&format!("mod {name}"))
        })
    })
}

/// Attributes of code that only tests compile: those of its crate, and those of others.
const ONLY_TESTS: [&str; 2] = ["#[cfg(test)]", "#[cfg(any(test, feature = \"testing\"))]"];

/// Returns the text after each attribute of code for tests.
fn test_only(text: &str) -> impl Iterator<Item = &str> {
    let texts = ONLY_TESTS.iter().flat_map(|attribute| text.split(attribute).skip(1));
    texts.map(|remaining| remaining.trim_start().trim_start_matches("#[doc(hidden)]").trim_start())
}

/// Returns the code of a file up to its first inline module of tests.
fn before_tests(text: &str) -> &str {
    let inline = test_only(text).find(|remaining| {
        let head = remaining.split(['{', ';']).next().unwrap_or_default();
        head.contains("mod ") && remaining[head.len()..].starts_with('{')
    });
    inline.map_or(text, |remaining| &text[..text.len() - remaining.len()])
}

/// Returns the first words of the paths that begin with `root`, such as `crate::`. A list in braces gives each of its
/// words.
fn first_words<'a>(text: &'a str, root: &str) -> Vec<&'a str> {
    let word =
        |text: &'a str| text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("");
    let mut words = Vec::new();
    for (at, _) in text.match_indices(root) {
        let remaining = &text[at + root.len()..];
        let Some(list) = remaining.strip_prefix('{') else {
            words.push(word(remaining));
            continue;
        };
        let (mut depth, mut is_first) = (0, true);
        for (at, letter) in list.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => is_first = true,
                _ if is_first && letter.is_alphanumeric() => {
                    words.push(word(&list[at..]));
                    is_first = false;
                }
                _ => {}
            }
        }
    }
    words
}

/// The roots of the sources: `src`, and that of each crate.
pub fn roots() -> Vec<PathBuf> {
    let crates = fs::read_dir(repository("crates")).expect("crates").map(|entry| entry.expect("an entry").path());
    let mut roots: Vec<PathBuf> = crates.map(|path| path.join("src")).chain([repository("src")]).collect();
    roots.sort();
    roots
}

/// Returns the room, the path in its crate and the code of each source file below `root` that is no test.
pub fn sources_of(root: &Path) -> Vec<(String, PathBuf, String)> {
    let mut sources = Vec::new();
    for path in files(root) {
        let inside = path.strip_prefix(root).expect("it is in the root");
        if path.extension().is_none_or(|extension| extension != "rs") || is_test(&path) {
            continue;
        }
        let first = inside.iter().next().and_then(|part| part.to_str()).expect("a name");
        let room = first.trim_end_matches(".rs").to_owned();
        let text = code(&fs::read_to_string(&path).expect("a source"));
        sources.push((room, inside.to_owned(), before_tests(&text).to_owned()));
    }
    sources
}

/// Returns the room, the path in its crate and the code of each source file that is no test.
pub fn sources() -> Vec<(String, PathBuf, String)> {
    let sources: Vec<_> = roots().iter().flat_map(|root| sources_of(root)).collect();
    assert!(sources.len() > 100, "{} files", sources.len());
    sources
}

/// Returns the path prefix by which the file `inside` src reaches the crate root: one `super::` for each enclosing
/// module.
fn to_root(inside: &Path) -> String {
    let is_top = inside.file_name().is_some_and(|name| name == "mod.rs");
    "super::".repeat(inside.components().count() - usize::from(is_top))
}

/// Returns the rooms of its own crate that each room uses, as read from the sources.
fn arrows() -> Arrows {
    roots().iter().flat_map(|root| arrows_of(&sources_of(root))).collect()
}

/// Returns the rooms that each room of a crate uses.
fn arrows_of(sources: &[(String, PathBuf, String)]) -> Arrows {
    let rooms: BTreeSet<&str> = sources.iter().map(|(room, ..)| room.as_str()).collect();
    let mut arrows = Arrows::new();
    for (room, path, text) in sources.iter().filter(|(room, ..)| !["lib", "main", "build"].contains(&room.as_str())) {
        let uses = arrows.entry(room.clone()).or_default();
        for word in ["crate::", &to_root(path)].iter().flat_map(|root| first_words(text, root)) {
            if word != room && rooms.contains(word) && !COMMON.contains(&word) {
                uses.insert(word.to_owned());
            }
        }
    }
    arrows
}

/// Returns the rows of the document's list in order: a room, and the rooms of its crate that it uses.
fn table() -> Vec<(String, BTreeSet<String>)> {
    let text = fs::read_to_string(repository("docs/architecture.md")).expect("docs/architecture.md");
    let list = text.split("a room uses only rooms above its own:\n\n").nth(1).expect("a list of what each room uses");
    let names = |part: &str| -> Vec<String> { part.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut rows = Vec::new();
    for line in list.lines().take_while(|line| line.starts_with("- ")) {
        let (rooms, uses) = line.split_once(" uses ").unwrap_or((line, ""));
        let uses: BTreeSet<String> = names(uses).into_iter().collect();
        rows.extend(names(rooms).into_iter().map(|room| (room, uses.clone())));
    }
    rows
}

#[test]
fn dependency_table_matches_the_sources() {
    let (found, told) = (arrows(), table());
    let rooms: Vec<&String> = told.iter().map(|(room, _)| room).collect();
    let missing: Vec<&String> = found.keys().filter(|room| !rooms.contains(room)).collect();
    assert!(missing.is_empty(), "docs/architecture.md has no row for {missing:?}");
    for (room, told) in &told {
        let found =
            found.get(room).unwrap_or_else(|| panic!("docs/architecture.md has `{room}`, and the sources have not"));
        let unknown: Vec<_> = found.difference(told).collect();
        let unused: Vec<_> = told.difference(found).collect();
        assert!(
            unknown.is_empty() && unused.is_empty(),
            "`{room}` uses {unknown:?}, which docs/architecture.md does not say, and not {unused:?}, which it does"
        );
    }
}

#[test]
fn module_depends_only_on_modules_above_it_in_the_table() {
    let mut above = BTreeSet::new();
    for (room, uses) in table() {
        let beside: Vec<_> = uses.difference(&above).collect();
        assert!(beside.is_empty(), "`{room}` uses {beside:?}, which stand beside or below it: that may be a circle");
        above.insert(room);
    }
}

#[test]
fn atomic_types_come_from_sync_alone() {
    for (_, path, text) in sources() {
        if path == Path::new("sync.rs") || path == Path::new(ATOMICS_OF_ITS_OWN) {
            continue;
        }
        for name in ["sync::atomic", "loom::"] {
            assert!(!text.contains(name), "{}: `{name}`; take it from crate::sync", path.display());
        }
    }
}

#[test]
fn path_scan_finds_crate_paths_and_skips_tests() {
    let text =
        "use crate::mmu::Pool;\nuse crate::{api::v1, qos::{self, Wred}, units};\nlet x = crate::prefetch::fetch(y);";
    assert_eq!(first_words(text, "crate::"), ["mmu", "api", "qos", "units", "prefetch"]);
    let roots = ["sets.rs", "mmu/mod.rs", "mmu/pool.rs", "mmu/queue/reserves.rs"].map(|path| to_root(Path::new(path)));
    assert_eq!(roots, ["super::", "super::", "super::super::", "super::super::super::"]);
    assert_eq!(first_words("use super::stats::SwitchView;", &roots[1]), ["stats"], "a room beside it");
    assert_eq!(code("use crate::a; // crate::b\n/// crate::c\nfn d() {}"), "use crate::a; \n\nfn d() {}");
    let text =
        "use crate::a;\n#[cfg(test)]\nmod fixture;\nuse crate::b;\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n";
    assert_eq!(first_words(before_tests(text), "crate::"), ["a", "b"]);
    assert!(
        is_test(&repository("crates/observe/src/stats/fixture.rs"))
            && !is_test(&repository("crates/observe/src/stats/report.rs"))
    );
}
