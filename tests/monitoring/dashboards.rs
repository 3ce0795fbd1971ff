//! Dashboards as Grafana reads them, generated from their sources.
//!
//! The commands of docs/monitoring.md are run here.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tools::{files, has, repository, skip, succeed, text};

/// A query of a panel or of an annotation.
pub struct Query {
    /// Dashboard and panel.
    pub place: String,
    /// The expression, with Grafana variables.
    pub expression: String,
    /// Whether the query must return data. An annotation that marks events may return none.
    pub is_panel: bool,
}

/// Returns all dashboards with their files.
#[track_caller]
pub fn dashboards() -> Vec<(PathBuf, Value)> {
    let read = |path: &Path| serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
    files("conf/grafana/dashboards", "json").into_iter().map(|path| (path.clone(), read(&path))).collect()
}

/// Returns all queries of all dashboards.
#[track_caller]
pub fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    for (_, dashboard) in dashboards() {
        let title = dashboard["title"].as_str().expect("a title");
        let mut add = |name: &Value, query: &Value, is_panel| {
            let place = format!("{title}: {}", name.as_str().unwrap_or("?"));
            let expression = query["expr"].as_str().unwrap_or_else(|| panic!("{place}: no query")).to_owned();
            queries.push(Query { place, expression, is_panel });
        };
        for panel in dashboard["panels"].as_array().expect("panels") {
            panel["targets"].as_array().into_iter().flatten().for_each(|query| add(&panel["title"], query, true));
        }
        for event in dashboard["annotations"]["list"].as_array().expect("annotations") {
            add(&event["name"], event, false);
        }
    }
    assert!(queries.len() > 100, "{}", queries.len());
    queries
}

#[test]
fn dashboards_match_their_sources() {
    if has("node") {
        succeed(Command::new("node").arg(repository("conf/grafana/build.mjs")).arg("--check"));
    }
}

/// Each dashboard has its own `uid`, since one would overwrite another of the same `uid`. Links lead to dashboards that
/// exist.
#[test]
fn dashboard_uids_are_unique_and_links_resolve() {
    let dashboards = dashboards();
    let uids: Vec<&str> = dashboards.iter().map(|(_, dashboard)| dashboard["uid"].as_str().expect("a uid")).collect();
    assert_eq!(
        uids,
        [
            "holdfast-buffer",
            "holdfast-lcores",
            "holdfast-neighbours",
            "holdfast-overview",
            "holdfast-pfc-ecn",
            "holdfast-port",
            "holdfast-routing"
        ]
    );
    for (path, dashboard) in &dashboards {
        let text = dashboard.to_string();
        for link in text.match_indices("\"/d/").map(|(start, _)| &text[start + 4..]) {
            let uid = link.split(['?', '"']).next().expect("a part");
            assert!(uids.contains(&uid), "{}: no dashboard {uid}", path.display());
        }
        assert_eq!(dashboard["tags"][0], "holdfast", "{}: links go by this tag", path.display());
    }
}

#[test]
fn dashboards_fit_the_schema_that_grafana_publishes() {
    if !has("node") || !has("npm") {
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("grafana");
    std::fs::create_dir_all(&place).expect("a directory");
    for file in ["package.json", "package-lock.json", ".npmrc", "check.mjs"] {
        std::fs::copy(repository("tests/grafana").join(file), place.join(file)).expect("a file copied");
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&place);
    let installed = install.output().expect("npm runs");
    if !installed.status.success() {
        let error = String::from_utf8_lossy(&installed.stderr).into_owned();
        return skip(&format!("npm cannot install what checks dashboards: {error}"));
    }
    let files = files("conf/grafana/dashboards", "json");
    succeed(Command::new("node").arg("check.mjs").args(files).current_dir(&place));
}

#[test]
fn the_lock_file_names_no_registry() {
    let lock = text("tests/grafana/package-lock.json");
    assert!(lock.contains("\"integrity\"") && !lock.contains("\"resolved\""), "npm would ask that place and no other");
}
