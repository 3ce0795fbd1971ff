//! Files of the dataplane, and those of the configuration's sections, use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::arrows::sources;

/// The files of a room, each with those that it uses. A file is named by its module, such as `egress::queue`; `egress`
/// is `egress/mod.rs`.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the modules that lead to a file, from its room on.
fn module(path: &Path) -> Vec<String> {
    let path = path.with_extension("");
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.filter(|part| part != "mod").collect()
}

/// Returns the paths below its room that the code of `module` names: the modules of each, and perhaps an item.
fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let (mut found, room) = (Vec::new(), format!("crate::{}::", module[0]));
    for line in text.lines() {
        for (at, root) in line.match_indices("super::").chain(line.match_indices(&*room)) {
            let inside = |letter: char| letter.is_alphanumeric() || "_:".contains(letter);
            if line[..at].ends_with(inside) {
                continue;
            }
            let depth = line[at..].split("::").take_while(|word| *word == "super").count();
            let start = if depth == 0 { &module[..1] } else { &module[..module.len().saturating_sub(depth)] };
            let remaining = &line[at + root.len() * depth.max(1)..];
            let list = remaining.strip_prefix('{').and_then(|list| list.split('}').next());
            let names = list.map_or_else(|| vec![remaining], |list| list.split(", ").collect());
            for name in names.into_iter().filter(|_| start.first() == module.first()) {
                let words = name.split(|letter| !inside(letter)).next().unwrap_or_default();
                let words = words.split("::").filter(|word| !word.is_empty()).map(str::to_owned);
                found.push(start.iter().cloned().chain(words).collect());
            }
        }
    }
    found
}

/// Reads the uses of the files of a room.
fn uses(room: &str) -> Uses {
    let sources: Vec<_> = sources().into_iter().filter(|(other, ..)| other == room).collect();
    let names: BTreeSet<String> =
        sources.iter().map(|(_, path, _)| module(path)[1..].join("::")).filter(|name| !name.is_empty()).collect();
    let mut uses = Uses::new();
    for (_, path, text) in &sources {
        let module = module(path);
        let name = module[1..].join("::");
        if !names.contains(&name) {
            continue;
        }
        let file = |path: Vec<String>| {
            let tails = (1..=path.len()).rev().map(|end| path[1..end].join("::"));
            tails.into_iter().find(|tail| names.contains(tail))
        };
        let used = paths(text, &module).into_iter().filter_map(file).filter(|other| *other != name).collect();
        uses.insert(name, used);
    }
    uses
}

/// Files that use each other in a circle, and files that use those: the files that remain when those that use no other
/// are removed again and again.
fn circle(mut uses: Uses) -> Vec<String> {
    loop {
        let free: Vec<String> = uses.iter().filter(|(_, used)| used.is_empty()).map(|(name, _)| name.clone()).collect();
        if free.is_empty() {
            return uses.into_keys().collect();
        }
        uses.retain(|name, _| !free.contains(name));
        uses.values_mut().for_each(|used| used.retain(|name| !free.contains(name)));
    }
}

#[test]
fn dataplane_files_use_each_other_without_a_circle() {
    let uses = uses("dataplane");
    assert!(
        uses.len() > 30 && uses["poll"].contains("pipeline") && uses["egress::enqueue"].contains("egress"),
        "{uses:?}"
    );
    check(&uses);
}

/// Sections are drafts, readers of them, and the checks that combine them.
#[test]
fn configuration_sections_use_each_other_without_a_circle() {
    let mut uses = uses("config");
    uses.retain(|name, _| name.starts_with("sections::"));
    uses.values_mut().for_each(|used| used.retain(|name| name.starts_with("sections::")));
    assert!(uses.len() > 20 && uses["sections::ports"].contains("sections::draft"), "{uses:?}");
    check(&uses);
}

fn check(uses: &Uses) {
    let circle = circle(uses.clone());
    let shown: Vec<String> = circle.iter().map(|name| format!("{name} uses {:?}", uses[name])).collect();
    assert!(circle.is_empty(), "in a circle, or above one:\n{}", shown.join("\n"));
}

#[test]
fn circle_check_finds_paths_of_all_forms() {
    let module = ["dataplane", "egress", "queue"].map(str::to_owned);
    let text = "use super::links::{Links, X};\nuse super::Egress;\nuse crate::dataplane::frame::desc::Run;\n\
                let x = super::super::port::f(crate::units::g);\nuse super::super::super::io::Burst;\nuse super::{a, b::C};";
    let found: Vec<String> = paths(text, &module).iter().map(|path| path[1..].join("::")).collect();
    assert_eq!(found, ["egress::links", "egress::Egress", "frame::desc::Run", "port::f", "egress::a", "egress::b::C"]);
}

#[test]
fn dependency_cycle_is_detected_with_its_dependents() {
    let used = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let uses =
        |last: &[&str]| Uses::from([("a".into(), used(&["b"])), ("b".into(), used(&["c"])), ("c".into(), used(last))]);
    assert_eq!(circle(uses(&[])), Vec::<String>::new());
    assert_eq!(circle(uses(&["b"])), ["a", "b", "c"]);
}
