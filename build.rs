//! Sets `HOLDFAST_VERSION` to the version of the package and, in a checkout, the commit.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // If cargo watched a path that does not exist, it would run this script on every build.
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

/// Describes this commit with git. Returns `None` outside a checkout of this project, without git or before the first
/// commit.
fn commit() -> Option<String> {
    // If this source is unpacked inside another project's checkout, git would describe that project.
    if !Path::new(".git").exists() {
        return None;
    }
    let output = Command::new("git").args(["describe", "--tags", "--always", "--dirty"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}
