//! Pages list what the sources have: each drop reason, and each setting that a reload can change.

use std::fs;

use holdfast::plan::DropReason;

use super::features::text;
use super::*;

#[test]
fn every_drop_reason_has_a_row() {
    let page = text("docs/metrics.md");
    for (_, label, _) in DropReason::TABLE {
        assert!(page.contains(&format!("\n| `{label}` |")), "docs/metrics.md, Drops: no row for `{label}`");
    }
}

#[test]
fn every_live_setting_is_on_the_page_of_reloads() {
    let page = text("docs/reload.md");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/config/src/config/settings");
    let sources = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("a file").path());
    let sources: String = sources.map(|path| fs::read_to_string(path).expect("a source")).collect();
    // The page names the section of `lldp.name`.
    let keys = sources.split("live(\"").skip(1).filter_map(|text| text.split(['"', '.']).next());
    let keys: Vec<&str> = keys.filter(|key| !key.is_empty()).collect();
    assert!(keys.len() > 15, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "docs/reload.md does not say when a changed `{key}` takes effect");
    }
}
