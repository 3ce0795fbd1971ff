//! Files of `src/dataplane` use each other in one direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::arrows::{names_below, sources};

/// The files (or folders) of `src/dataplane`, each with those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Reads the uses of `src/dataplane`.
fn uses() -> Uses {
    let mut uses = Uses::new();
    for (room, path, text) in sources().into_iter().filter(|(room, ..)| room == "dataplane") {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let [_, file, inner @ ..] = &parts[..] else { panic!("{} is in {room}", path.display()) };
        if *file == "mod.rs" {
            continue;
        }
        let name = file.trim_end_matches(".rs").to_owned();
        // A `super::` for each folder below src/dataplane, and one more unless the file is the folder's mod.rs.
        let depth = 1 + inner.len() - usize::from(inner.last() == Some(&"mod.rs"));
        uses.entry(name).or_default().extend(names_below(&text, depth).map(str::to_owned));
    }
    let names: BTreeSet<String> = uses.keys().cloned().collect();
    for (name, used) in &mut uses {
        used.retain(|other| other != name && names.contains(other));
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
    let uses = uses();
    assert!(uses.len() > 30 && uses["poll"].contains("pipeline"), "{uses:?}");
    let circle = circle(uses.clone());
    let shown: Vec<String> = circle.iter().map(|name| format!("{name} uses {:?}", uses[name])).collect();
    assert!(circle.is_empty(), "in a circle, or above one:\n{}", shown.join("\n"));
}

#[test]
fn dependency_cycle_is_detected_with_its_dependents() {
    let used = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let uses =
        |last: &[&str]| Uses::from([("a".into(), used(&["b"])), ("b".into(), used(&["c"])), ("c".into(), used(last))]);
    assert_eq!(circle(uses(&[])), Vec::<String>::new());
    assert_eq!(circle(uses(&["b"])), ["a", "b", "c"]);
}
