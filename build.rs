//! Puts the version, with the commit where there is one, into `HOLDFAST_VERSION`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A path that does not exist would make cargo run this script on every build.
    for path in [".git/HEAD", ".git/logs/HEAD"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let package = env!("CARGO_PKG_VERSION");
    let version = match commit() {
        Some(commit) => format!("{package} ({commit})"),
        None => package.to_owned(),
    };
    println!("cargo:rustc-env=HOLDFAST_VERSION={version}");
}

/// What git calls this commit; `None` outside a checkout of this project, without git or before the first commit.
fn commit() -> Option<String> {
    // Unpacked inside another project's checkout, git would describe that one.
    if !Path::new(".git").exists() {
        return None;
    }
    let output = Command::new("git").args(["describe", "--tags", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
