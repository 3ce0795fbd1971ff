//! The blocks of commands on the pages, each with the comment that says which test runs it.

use std::fs;
use std::path::{Path, PathBuf};

/// Begins the comment above a block of commands.
const MARK: &str = "<!-- commands: ";

/// A block of shell commands on a page.
pub struct Block {
    /// The page, as a path in the repository.
    pub page: String,
    /// Number of the line that opens the block.
    pub line: usize,
    /// The text of the comment above it, if there is one.
    pub mark: Option<String>,
    /// Its commands, without outputs and prompts.
    pub commands: Vec<String>,
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the pages with commands that a reader may copy: those at the root, in `docs`, and beside what they
/// describe.
pub fn pages() -> Vec<String> {
    let mut found = Vec::new();
    for directory in ["", "docs/", "docs/sim/", "perf/", "tests/", "tests/fuzz/", "conf/sonic/", "packaging/"] {
        let entries = fs::read_dir(repository(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        found.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{directory}{name}")));
    }
    found.sort();
    found
}

/// Returns the commands of a block: all lines of a block of `sh`, and of other blocks those after a prompt.
fn commands(language: &str, lines: &[&str]) -> Vec<String> {
    if language == "sh" {
        return lines.iter().map(|line| (*line).to_owned()).collect();
    }
    lines.iter().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect()
}

/// Returns the blocks of commands in `text`, the text of `page`.
pub fn blocks_of(page: &str, text: &str) -> Vec<Block> {
    let (mut found, mut open, mut mark) = (Vec::new(), None, None);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        match (line.trim().strip_prefix("```"), open) {
            (Some(language), None) => open = Some((at, language)),
            (Some(_), Some((start, language))) => {
                let commands = commands(language, &lines[start + 1..at]);
                if !commands.is_empty() {
                    found.push(Block { page: page.to_owned(), line: start + 1, mark: mark.take(), commands });
                }
                (open, mark) = (None, None);
            }
            (None, None) => {
                mark = line.strip_prefix(MARK).and_then(|remaining| remaining.strip_suffix(" -->")).map(str::to_owned);
            }
            (None, Some(_)) => {}
        }
    }
    found
}

/// Returns the blocks of commands of all pages.
pub fn blocks() -> Vec<Block> {
    let read = |page: &String| fs::read_to_string(repository(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    pages().iter().flat_map(|page| blocks_of(page, &read(page))).collect()
}
