//! Checks pages at the root, in `perf` and `docs`, and those beside tests, configurations and packaging: no dead
//! relative link, no dead anchor, no name of a missing page. The index `docs/README.md` lists each page of `docs` once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages of `directory` as repository paths. For `docs` it includes subdirectories.
fn pages(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(repository(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_name().expect("a name").to_string_lossy();
        let inside = if directory.is_empty() { name.to_string() } else { format!("{directory}/{name}") };
        if path.is_dir() && inside.starts_with("docs/") {
            found.extend(pages(&inside));
        } else if inside.ends_with(".md") {
            found.push(inside);
        }
    }
    found.sort();
    found
}

/// Returns the lines outside code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of links and pictures with their lines. Inline code is skipped.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line: String = line.split('`').step_by(2).collect();
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        found.extend(targets.map(|target| (number, target.to_owned())));
    }
    found
}

/// Returns the pages that a text names by path, such as `docs/testing.md`, with their lines. `NAME` is a placeholder.
fn named(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.split(|letter: char| !(letter.is_ascii_alphanumeric() || "/-_.".contains(letter)));
        let is_page = |word: &&str| word.starts_with("docs/") && word.ends_with(".md") && !word.contains("NAME");
        found.extend(words.map(|word| word.trim_end_matches('.')).filter(is_page).map(|page| (number, page.into())));
    }
    found
}

/// Returns the anchors of headings: lower case, no punctuation, hyphens for spaces, and a number for repeated headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let is_kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let slug = heading.chars().filter(is_kept).collect::<String>().replace(' ', "-");
        let mut numbered = (0..).map(|n| if n == 0 { slug.clone() } else { format!("{slug}-{n}") });
        found.extend(numbered.find(|anchor| !found.contains(anchor)));
    }
    found
}

/// Returns one sentence for each dead link of a page.
fn dead(page: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, target) in links(text).into_iter().filter(|(_, target)| !target.contains(':')) {
        let (path, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
        let file = repository(page).with_file_name(path);
        let there = || if path.is_empty() { text.to_owned() } else { read(&file) };
        if !path.is_empty() && !file.exists() {
            found.push(format!("{page}:{line}: `{target}`: there is no such file"));
        } else if !anchor.is_empty() && !anchors(&there()).contains(anchor) {
            found.push(format!("{page}:{line}: `{target}`: there is no such heading"));
        }
    }
    let missing = named(text).into_iter().filter(|(_, name)| !repository(name).exists());
    found.extend(missing.map(|(line, name)| format!("{page}:{line}: `{name}`: there is no such page")));
    found
}

#[test]
fn links_lead_to_files_and_headings() {
    let directories = [
        "",
        "perf",
        "docs",
        "conf/golden",
        "conf/sonic",
        "packaging",
        "tests",
        "tests/config",
        "tests/fuzz",
        "tests/loom",
    ];
    let pages: Vec<String> = directories.into_iter().flat_map(pages).collect();
    let found: Vec<String> = pages.iter().flat_map(|page| dead(page, &read(&repository(page)))).collect();
    assert!(found.is_empty(), "dead links:\n{}", found.join("\n"));
}

#[test]
fn dead_links_are_found_with_their_lines() {
    let text = "# A: `b`\n# A: `b`\n[1](docs/top.md#keys) [2](#a-b-1) [3](gone.md)\n```\n[4](gone)\n# No\n```\n\
                [5](docs/top.md#gone) `[6](gone)` [7](#no) ![8](https://gone)\ndocs/gone.md. docs/top.md\n";
    let found = dead("x.md", text).into_iter().filter_map(|sentence| sentence.split("`: ").next().map(str::to_owned));
    let expected = ["x.md:3: `gone.md", "x.md:8: `docs/top.md#gone", "x.md:8: `#no", "x.md:9: `docs/gone.md"];
    assert_eq!(found.collect::<Vec<String>>(), expected);
}

#[test]
fn the_index_lists_each_page_once() {
    let listed = links(&read(&repository("docs/README.md")));
    for page in pages("docs").iter().filter_map(|page| page.strip_prefix("docs/")) {
        let count = listed.iter().filter(|(_, target)| target == page).count();
        assert!(count == usize::from(page != "README.md"), "docs/README.md lists {page} {count} times");
    }
}
