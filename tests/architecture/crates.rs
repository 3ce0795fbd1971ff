//! Dependencies between crates: the table of docs/architecture.md is what `cargo metadata` says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::arrows::{repository, roots, sources_of};

/// The crates of this workspace that each crate needs to be built, without those of its tests.
fn needs() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(repository("")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON of cargo");
    let mut needs = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let Some(name) = package["name"].as_str().and_then(short) else { continue };
        let all = package["dependencies"].as_array().expect("dependencies").iter();
        let built = all.filter(|dependency| dependency["kind"].is_null());
        let of = built.filter_map(|dependency| short(dependency["name"].as_str()?)).map(str::to_owned).collect();
        needs.insert(name.to_owned(), of);
    }
    needs
}

/// The name of a crate without `holdfast-`; `None`: it is another one, or the program.
fn short(name: &str) -> Option<&str> {
    name.strip_prefix("holdfast-").filter(|name| *name != "loom").or((name == "dpdk-sys").then_some(name))
}

/// The rows of the table: a crate, its rooms, and the crates that it needs.
fn table() -> Vec<[Vec<String>; 3]> {
    let text = fs::read_to_string(repository("docs/architecture.md")).expect("docs/architecture.md");
    let head = "| crate | rooms | needs | knows |\n|---|---|---|---|\n";
    let table = text.split(head).nth(1).expect("a table of crates");
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let cells = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        [1, 2, 3].map(|cell| names(cells[cell]))
    };
    table.lines().take_while(|line| line.starts_with('|')).map(cells).collect()
}

#[test]
fn crates_need_what_the_table_says_and_only_crates_above() {
    let (mut found, mut above) = (needs(), BTreeSet::new());
    found.remove("dpdk-sys");
    for [name, _, told] in table() {
        let name = &name[0];
        let mut needed =
            found.remove(name).unwrap_or_else(|| panic!("docs/architecture.md has crate `{name}`, crates/ not"));
        needed.remove("dpdk-sys");
        assert_eq!(needed, told.into_iter().collect(), "crates that `{name}` needs, and those of docs/architecture.md");
        assert!(needed.is_subset(&above), "`{name}` needs crates below its row: {needed:?}");
        above.insert(name.clone());
    }
    assert!(found.is_empty(), "crates without a row in docs/architecture.md: {:?}", found.keys());
}

#[test]
fn crates_have_the_rooms_of_the_table() {
    for [name, rooms, _] in table() {
        let library = fs::read_to_string(repository(&format!("crates/{}/src/lib.rs", name[0]))).expect("a library");
        let public = library.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let public: BTreeSet<&str> = public.collect();
        assert_eq!(public, rooms.iter().map(String::as_str).collect(), "rooms of `{}`", name[0]);
    }
}

/// Words before the path of a file that a source includes.
const INCLUDES: [&str; 4] = ["include!(\"", "include_bytes!(\"", "include_str!(\"", "#[path = \""];

/// The paths of files that `text`, in a folder `depth` folders below its crate, includes from outside of it.
fn outside(text: &str, depth: usize) -> Vec<&str> {
    let paths = INCLUDES.iter().flat_map(|word| text.split(word).skip(1)).filter_map(|after| after.split('"').next());
    paths.filter(|path| path.starts_with('/') || path.split('/').filter(|part| *part == "..").count() > depth).collect()
}

/// A package holds only what is below its crate; a symbolic link there stands for its file.
#[test]
fn sources_include_only_files_of_their_crate() {
    for root in roots().iter().filter(|root| root.starts_with(repository("crates"))) {
        for (_, path, text) in sources_of(root) {
            // The root is the folder `src` of the crate.
            let found = outside(&text, path.components().count());
            assert!(found.is_empty(), "{}: {}: {found:?}", root.display(), path.display());
        }
    }
    for word in INCLUDES {
        assert_eq!(outside(&format!("x({word}../../y.rs\")"), 2), [""; 0]);
        assert_eq!(outside(&format!("x({word}../../../y.rs\")"), 2), ["../../../y.rs"]);
    }
}

/// Crates that others can use without DPDK need none that touches a machine, not even by others.
#[test]
fn crates_for_others_need_no_device() {
    let needs = needs();
    for name in ["wire", "lossless", "sim"] {
        let (mut all, mut new) = (BTreeSet::new(), BTreeSet::from([name.to_owned()]));
        while let Some(next) = new.pop_first() {
            new.extend(needs[&next].iter().filter(|other| !all.contains(*other)).cloned());
            all.insert(next);
        }
        let touches: Vec<&str> =
            ["dpdk", "dpdk-sys", "control", "observe"].into_iter().filter(|other| all.contains(*other)).collect();
        assert!(touches.is_empty(), "`{name}` needs {touches:?}");
    }
}
