//! Checks that pages and golden files of the simulator show the program's output. Each `$ holdfast sim ...` block of
//! `docs/sim/*.md`, `conf/golden/*.md` and `docs/simulation.md`, and each `$ sed ... | holdfast sim ...`, is run again.
//! The output must match to the byte. All commands of docs/headroom.md are checked in this way too.
//! `UPDATE_DOCS=1` writes the blocks again instead.
//!
//! The prose of these files quotes the blocks: each figure in it must be in a block of the page or in its scenario.
//! Other figures come from a paper, a sum or a run that no block shows. They are listed in a comment at the end of the
//! page, which shows that no test checks them.
//!
//! Each page has its own test, so nextest runs them in parallel. A new page is a line in `pages!`.

mod command;
mod figures;
mod outputs;
mod own_control;
mod sweeps;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use holdfast::sim::scenario::{self, Options};
use holdfast::units;

/// Begins the line of a command whose output follows.
const PROMPT: &str = "$ holdfast sim ";
/// Begins the line of a command that first changes its scenario.
const CHANGED: &str = "$ sed ";
/// Pages with any shell commands. Their output to both streams is compared.
const SHELL_PAGES: [&str; 1] = ["docs/headroom.md"];
/// Begins the comment with the figures that no block of a page has.
const FIGURES: &str = "<!-- figures of no block: ";

/// Directories with the pages of scenarios and with golden files.
const PLACES: [&str; 2] = ["docs/sim", "conf/golden"];

/// Defines a test for each page or golden file, by the name of its scenario.
macro_rules! pages {
    ($($test:ident $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $test() {
                let warnings = check(&page_of($page));
                check_prose($page, &warnings);
            }
        )*
    };
}

pages! {
    abm "abm",
    alpha "alpha",
    buy_400g "buy-400g",
    dcqcn "dcqcn",
    dcqcn_forms "dcqcn-forms",
    dctcp "dctcp",
    deadlock "deadlock",
    dsh "dsh",
    dsh_deadlock "dsh-deadlock",
    dsh_load "dsh-load",
    dt_shares "dt-shares",
    flap "flap",
    flood_sizes "flood-sizes",
    hash_collision "hash-collision",
    hpcc "hpcc",
    incast "incast",
    isolation "isolation",
    lcores "lcores",
    leaf_spine "leaf-spine",
    livelock "livelock",
    long_cable "long-cable",
    lost_pfc "lost-pfc",
    max_load "max-load",
    mixed_speeds "mixed-speeds",
    mmu_hpcc "mmu-hpcc",
    overload "overload",
    parking_lot "parking-lot",
    powertcp "powertcp",
    qcn "qcn",
    reality "reality",
    reverie "reverie",
    rude_host "rude-host",
    scale "scale",
    slow_receiver "slow-receiver",
    stall "stall",
    storm "storm",
    timely "timely",
    victim "victim",
    workloads "workloads",
}

/// Files of `conf/sim` that are no scenarios, but configurations that scenarios refer to.
const CONFIGURATIONS: &[&str] = &["tor-400g"];

#[test]
fn simulation_page_shows_current_output() {
    check("docs/simulation.md");
}

#[test]
fn shell_pages_show_current_output() {
    for page in SHELL_PAGES {
        check_with(page, |line| line.starts_with("$ "), run_shell);
    }
}

#[test]
fn no_other_page_shows_a_run() {
    let pages = stems("docs", "md").into_iter().map(|name| format!("docs/{name}.md")).chain(["README.md".to_owned()]);
    for page in pages.filter(|page| page != "docs/simulation.md") {
        let run = find_prompt(&read(&page), |line| line.starts_with(PROMPT));
        assert!(
            run.is_none(),
            "{page} shows a run of the simulator that no test compares; show it in docs/sim or conf/golden"
        );
    }
}

#[test]
fn every_page_is_tested_and_every_scenario_has_a_page() {
    let names = PLACES.into_iter().flat_map(|place| stems(place, "md")).filter(|name| name != "README");
    let mut pages = BTreeSet::new();
    for name in names {
        assert!(
            pages.insert(name.clone()),
            "{name} has a page in docs/sim and a golden file in conf/golden; remove one"
        );
    }
    let tested: BTreeSet<String> = PAGES.iter().map(|&page| page.to_owned()).collect();
    assert_eq!(pages, tested, "write each page of docs/sim and conf/golden into `pages!` of {}", file!());
    let scenarios: BTreeSet<String> =
        stems("conf/sim", "yaml").into_iter().filter(|name| !CONFIGURATIONS.contains(&name.as_str())).collect();
    assert_eq!(scenarios, pages, "each conf/sim/NAME.yaml has a page or a golden file, and each of them its scenario");
}

#[test]
fn every_scenario_loads_and_its_page_shows_its_run() {
    for name in stems("conf/sim", "yaml") {
        let path = root().join(format!("conf/sim/{name}.yaml"));
        if CONFIGURATIONS.contains(&name.as_str()) {
            holdfast::config::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
            continue;
        }
        scenario::load(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
        let page = page_of(&name);
        let shown = format!("{PROMPT}conf/sim/{name}.yaml");
        assert!(read(&page).contains(&shown), "{page} has no block that begins with `{shown}`");
    }
}

#[test]
fn plots_linked_from_pages_exist_and_are_small() {
    for (place, name) in
        PLACES.into_iter().flat_map(|place| stems(place, "md").into_iter().map(move |name| (place, name)))
    {
        let text = read(&format!("{place}/{name}.md"));
        for plot in text.split("](").filter_map(|remaining| remaining.split_once(')')).map(|(link, _)| link) {
            if !plot.starts_with("plots/") {
                continue;
            }
            let path = root().join(place).join(plot);
            let size = path.metadata().unwrap_or_else(|error| panic!("{name}.md: {}: {error}", path.display())).len();
            assert!(size < 150_000, "{}: {size} bytes are too many to be read in a page", path.display());
        }
    }
}

/// The overview has one row for each scenario. A row has no figure that the page lacks.
#[test]
fn the_overview_quotes_its_pages() {
    let text = read("docs/sim/README.md");
    let rows = text.lines().filter_map(|line| Some((line.strip_prefix("| [")?.split_once(']')?.0, line)));
    let rows: Vec<(&str, &str)> = rows.collect();
    let named: BTreeSet<&str> = rows.iter().map(|&(page, _)| page).collect();
    assert_eq!(
        (named, rows.len()),
        (PAGES.iter().copied().collect(), PAGES.len()),
        "docs/sim/README.md: a row for each"
    );
    let missing = rows.iter().flat_map(|(page, row)| figures::missing(&prose(row), &read(&page_of(page))));
    assert_known("docs/sim/README.md", &text, missing.collect());
}

/// Asserts that the blocks or the scenario contain the figures in the prose of a page. The prose must also name the
/// number of warnings of its first command.
#[track_caller]
fn check_prose(name: &str, warnings: &[usize]) {
    let page = page_of(name);
    let text = read(&page);
    let blocks = text.split("```").skip(1).step_by(2).filter(|block| block.trim_start_matches('\n').starts_with("$ "));
    let shown = blocks.chain([&*read(&format!("conf/sim/{name}.yaml"))]).collect::<Vec<&str>>().join("\n");
    assert_known(&page, &text, figures::missing(&prose(&text), &shown));
    let warns = match warnings[0] {
        0 => return,
        1 => "a warning".to_owned(),
        many => format!("{many} warnings"),
    };
    assert!(text.contains(&warns), "{page}: its first command prints {warns} on standard error; say so");
}

/// Returns the path of the page of a scenario, or of its golden file.
fn page_of(name: &str) -> String {
    let paths = PLACES.map(|place| format!("{place}/{name}.md"));
    paths.iter().find(|path| root().join(path).exists()).unwrap_or(&paths[1]).clone()
}

/// Returns the prose of a page: no blocks, code, links or comments.
fn prose(text: &str) -> String {
    let text = text.split("```").step_by(2).collect::<String>();
    let text = text.split('`').step_by(2).collect::<Vec<&str>>().join(" ");
    without(&without(&text, "](", ")"), "<!--", "-->")
}

/// Returns `text` without its parts from each `begin` to the next `end`.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default();
    let remaining = parts.map(|part| part.split_once(end).map_or(part, |(_, remaining)| remaining));
    std::iter::once(first).chain(remaining).collect::<Vec<_>>().join(" ")
}

#[test]
fn prose_is_text_without_blocks_code_links_and_comments() {
    let text = "First (7 us) of [a page](x.md#y) with `code 8`.\n```\nblock 9\n```\nLast.<!-- note 10 -->\n";
    assert_eq!(prose(text).split_whitespace().collect::<Vec<_>>().join(" "), "First (7 us) of [a page with . Last.");
}

/// Asserts that the comment of the page lists exactly the figures that no block has.
#[track_caller]
fn assert_known(page: &str, text: &str, missing: Vec<String>) {
    let comment =
        text.split_once(FIGURES).and_then(|(_, remaining)| remaining.split_once(" -->")).map_or("", |(list, _)| list);
    let fresh = missing.join("; ");
    assert!(
        comment == fresh,
        "{page}: figures in its prose that no block of it has. Correct them, or show the run that they are of; what is of \
         a paper or a sum goes to the end of the page:\n{FIGURES}{fresh} -->\nthere is\n{FIGURES}{comment} -->"
    );
}

/// Runs every command of a page and compares its output, or writes it into the page. Returns the number of warnings of
/// each command.
#[track_caller]
fn check(page: &str) -> Vec<usize> {
    check_with(page, |line| line.starts_with(PROMPT) || line.starts_with(CHANGED), run)
}

/// Runs the commands of a page like [`check`]. `is_command` selects its lines and `run` runs them.
#[track_caller]
fn check_with(page: &str, is_command: fn(&str) -> bool, run: fn(&str) -> (String, usize)) -> Vec<usize> {
    let text = read(page);
    let (mut fresh, mut differs, mut warnings) = (String::new(), Vec::new(), Vec::new());
    let mut remaining = text.as_str();
    while let Some(start) = find_prompt(remaining, is_command) {
        let (head, tail) = remaining.split_at(start);
        let (line, tail) = tail.split_once('\n').unwrap_or((tail, ""));
        let end = tail.find("```").unwrap_or_else(|| panic!("{page}: the block of `{line}` has no end"));
        let (shown, tail) = tail.split_at(end);
        let (printed, warned) = run(line);
        warnings.push(warned);
        if printed != shown {
            differs.push(format!("`{line}` prints\n{printed}\nand {page} shows\n{shown}"));
        }
        fresh = format!("{fresh}{head}{line}\n{printed}");
        remaining = tail;
    }
    if differs.is_empty() {
        return warnings;
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(page), fresh + remaining).unwrap();
        return warnings;
    }
    let remedy =
        "if what it prints now is right: UPDATE_DOCS=1 cargo test --release --no-default-features --test sim_docs";
    panic!("{}\n{remedy}", differs.join("\n"));
}

/// Returns the position of the first line that is a command.
fn find_prompt(text: &str, is_command: fn(&str) -> bool) -> Option<usize> {
    let begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    begins.into_iter().find(|&at| is_command(&text[at..]))
}

/// Returns the number of warnings that a line stands for: itself, and others of its kind that it counts.
fn warnings_of(line: &str) -> usize {
    if !line.starts_with("warning: ") {
        return 0;
    }
    let more = line
        .rsplit_once("(and ")
        .and_then(|(_, remaining)| remaining.strip_suffix(" more of this kind; --all shows each)"));
    1 + more.map_or(0, |more| more.parse().unwrap())
}

/// Runs a command in a shell and returns its output and its number of warnings. It may exit with 1, if the page shows a
/// loss, but with no other error.
fn run(line: &str) -> (String, usize) {
    let command = line.trim_start_matches("$ ");
    let script = format!("holdfast() {{ '{}' \"$@\" --quiet; }}\n{command}", env!("CARGO_BIN_EXE_holdfast"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(root()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let stderr = text(output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "`{line}` fails: {}\n{stderr}", output.status);
    (text(output.stdout), stderr.lines().map(warnings_of).sum())
}

/// Runs a shell command and returns its output to both streams, including warnings. It may exit with 2, if the page
/// shows a refusal.
fn run_shell(line: &str) -> (String, usize) {
    let command = line.trim_start_matches("$ ");
    let script = format!("exec 2>&1\nholdfast() {{ '{}' \"$@\"; }}\n{command}", env!("CARGO_BIN_EXE_holdfast"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(root()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0..=2)), "`{line}` fails: {}", output.status);
    (String::from_utf8(output.stdout).unwrap(), 0)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of the files in a directory that have this extension, without it.
fn stems(dir: &str, ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(dir)).unwrap_or_else(|error| panic!("{dir}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == ending))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}
