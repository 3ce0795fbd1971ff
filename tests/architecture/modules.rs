//! One convention for modules: a folder has a `mod.rs`, and long unit tests have a file of their own beside the code.

use std::path::{Path, PathBuf};

use crate::arrows::{files, roots};

/// Returns the mistakes among these source files.
fn mistakes(paths: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let folder = path.parent().expect("a folder");
        let is_root = folder.file_name().is_some_and(|name| name == "src");
        let has = |file: &Path| paths.iter().any(|path| path == file);
        if !is_root && !has(&folder.join("mod.rs")) {
            found.push(format!("{} is in a folder without mod.rs", path.display()));
        }
        if paths.iter().any(|other| other.starts_with(path.with_extension("")) && other != path) {
            found.push(format!("{} has a folder of its name; move it there as mod.rs", path.display()));
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if name.ends_with("_test") || name.starts_with("test_") {
            found.push(format!("{} is not named NAME_tests.rs or tests.rs", path.display()));
        }
    }
    found
}

#[test]
fn modules_follow_one_convention() {
    let paths: Vec<PathBuf> = roots().iter().flat_map(|root| files(root)).collect();
    let paths: Vec<PathBuf> =
        paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    assert_eq!(mistakes(&paths), Vec::<String>::new());
}

/// Rooms that are public for the crates of Holdfast alone.
const WITHOUT_EXAMPLE: [&str; 3] = ["mutant", "prefetch", "sync"];

/// Each public room has an example on its front page, which the tests of the documentation compile and run.
#[test]
fn every_public_room_has_an_example() {
    let mut without = Vec::new();
    for src in roots() {
        let library = std::fs::read_to_string(src.join("lib.rs")).expect("a library");
        for room in library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')) {
            let files = [format!("{room}/mod.rs"), format!("{room}.rs")].map(|file| src.join(file));
            let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).expect("a front page");
            if !text.contains("\n//! ```") && !WITHOUT_EXAMPLE.contains(&room) {
                without.push(room.to_owned());
            }
        }
    }
    assert_eq!(without, Vec::<String>::new(), "rooms without an example in the documentation of their module");
}

#[test]
fn module_layout_violations_are_reported() {
    let paths = |names: &[&str]| names.iter().map(|name| Path::new("src").join(name)).collect::<Vec<_>>();
    assert_eq!(mistakes(&paths(&["lib.rs", "a/mod.rs", "a/b.rs", "a/b_tests.rs", "a/tests.rs"])), Vec::<String>::new());
    assert_eq!(mistakes(&paths(&["a.rs", "a/b.rs"])).len(), 2);
    assert_eq!(mistakes(&paths(&["a/mod.rs", "a/test_b.rs"])).len(), 1);
}
