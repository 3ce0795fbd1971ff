//! External programs, and the test's behaviour without them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of a file in this repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the text of a file in this repository.
#[track_caller]
pub fn text(path: &str) -> String {
    let path = repository(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files with this extension in a directory of this repository, sorted by name.
#[track_caller]
pub fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let directory = repository(directory);
    let entries = directory.read_dir().unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    files.sort();
    files
}

/// Whether `program` runs here. If not, prints the reason to skip the test. In CI it must run, because CI installs
/// docker/packages.txt.
#[track_caller]
pub fn has(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    skip(&format!("there is no {program}: docker/install-packages watch"));
    false
}

/// Prints why a test is skipped. In CI it panics instead.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// Runs a command to its end and returns its output. Panics with the output if it fails.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{command:?}:\n{text}");
    text
}
