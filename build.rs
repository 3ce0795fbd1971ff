//! Sets the variables that say what the program was built from: `src/build.rs` reads them.
//!
//! In a checkout, git names the commit and its date. Elsewhere `HOLDFAST_COMMIT` and `SOURCE_DATE_EPOCH` may name them;
//! both also precede git. Nothing else of the machine or the time enters the program.

use std::env;
use std::path::Path;
use std::process::Command;

#[path = "ffi/surround.rs"]
mod surround;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HOLDFAST_COMMIT");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    if variable("CARGO_FEATURE_DPDK").is_some() {
        surround::interrupts(variable("CARGO_FEATURE_STATIC").is_some());
    }
    // In a work tree of git these files are elsewhere. If cargo watched a path that does not exist, it would run this
    // script on every build.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let package = env!("CARGO_PKG_VERSION");
    let commit = variable("HOLDFAST_COMMIT").or_else(|| git(&["describe", "--tags", "--always", "--dirty"]));
    let version = commit.as_ref().map_or(package.to_owned(), |commit| format!("{package} ({commit})"));
    let epoch = variable("SOURCE_DATE_EPOCH").or_else(|| git(&["log", "-1", "--format=%ct"]));
    let date = epoch.and_then(|epoch| epoch.parse().ok()).map_or("unknown".to_owned(), date);
    for (name, value) in [
        ("VERSION", version),
        ("COMMIT", commit.unwrap_or_else(|| "unknown".to_owned())),
        ("DATE", date),
        ("RUSTC", rustc()),
        ("TARGET", variable("TARGET").unwrap_or_default()),
        ("PROFILE", variable("PROFILE").unwrap_or_default()),
        // The build script of dpdk-sys reports these.
        ("DPDK", variable("DEP_DPDK_VERSION").unwrap_or_else(|| "none".to_owned())),
        ("DRIVERS", variable("DEP_DPDK_DRIVERS").unwrap_or_default()),
        ("WITHOUT", variable("DEP_DPDK_WITHOUT").unwrap_or_default()),
    ] {
        println!("cargo:rustc-env=HOLDFAST_{name}={value}");
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the output of git in this checkout. Returns `None` outside a checkout of this project, without git or before
/// the first commit.
fn git(arguments: &[&str]) -> Option<String> {
    // If this source is unpacked inside another project's checkout, git would describe that project.
    if !Path::new(".git").exists() {
        return None;
    }
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// Returns the version of the compiler, e.g. `1.95.0`.
fn rustc() -> String {
    let output = variable("RUSTC").and_then(|rustc| Command::new(rustc).arg("--version").output().ok());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("unknown").to_owned()
}

/// Returns the day, in UTC, of a time in seconds since 1970.
fn date(epoch: i64) -> String {
    // Days since 1 March of year 0, in eras of 400 years: years that begin in March have their leap day at the end.
    let days = epoch.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i64::from(month <= 2))
}
