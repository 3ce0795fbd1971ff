//! The program under test, its configuration, and the files it leaves.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::process::Ended;

/// The program under test.
pub const HOLDFAST: &str = env!("CARGO_BIN_EXE_holdfast");

/// Longest time for a switch to start or to end, even on a machine that runs other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns more arguments for `holdfast run`, so the same tests can run with other flags: the words of
/// `HOLDFAST_TEST_ARGS`.
pub fn run_arguments() -> Vec<String> {
    let words = std::env::var("HOLDFAST_TEST_ARGS").unwrap_or_default();
    words.split_whitespace().map(str::to_owned).collect()
}

/// Returns the report that `--json` printed.
#[track_caller]
pub fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// Returns the sum of `field` over all ports and classes of a report, or over its lossless classes if `lossless`.
pub fn sum(report: &Value, field: &str, lossless: bool) -> u64 {
    let ports = report["ports"].as_array().expect("ports");
    let classes = ports.iter().flat_map(|port| port["classes"].as_array().expect("classes"));
    let counted = classes.filter(|class| !lossless || class["lossless"] == true);
    counted.map(|class| class[field].as_u64().unwrap_or_else(|| panic!("no {field}: {class}"))).sum()
}

/// A configuration in its own directory, which is removed with this value.
pub struct Config {
    directory: tempfile::TempDir,
}

impl Config {
    /// Writes `text` as the configuration.
    pub fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let config = Self { directory };
        std::fs::write(config.file(), text).expect("a configuration written");
        config
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("switch.yaml")
    }

    /// Returns the path as an argument.
    pub fn path(&self) -> String {
        self.file().display().to_string()
    }
}

/// Returns the DPDK directories that the switch with this process number left. Their names contain the number, because
/// other switches may run on this machine.
pub fn dpdk_leftovers(pid: u32) -> Vec<String> {
    let runtime = std::env::var("XDG_RUNTIME_DIR").unwrap_or_default();
    let directories = ["/run/dpdk", "/tmp/dpdk", &format!("{runtime}/dpdk")].map(|path| Path::new(path).read_dir());
    let entries = directories.into_iter().flatten().flatten().flatten();
    let left = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(&format!("-{pid}")));
    left.map(|entry| entry.path().display().to_string()).collect()
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    uids.split_whitespace().nth(1) == Some("0")
}
