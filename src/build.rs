//! Facts about the build, from the build scripts: for `holdfast --version` and `holdfast_build_info`.
//!
//! # Example
//!
//! ```
//! use holdfast::build;
//!
//! assert!(build::VERSION.starts_with(env!("CARGO_PKG_VERSION")));
//! println!("{}", build::table());
//! ```

use crate::plan::BuildFacts;

/// All facts that the switch itself states.
pub const FACTS: BuildFacts = BuildFacts {
    program: concat!("Holdfast ", env!("HOLDFAST_VERSION")),
    version: VERSION,
    commit: COMMIT,
    date: DATE,
    dpdk: DPDK,
    linkage: LINKAGE,
    rustc: RUSTC,
    target: TARGET,
    features: FEATURES,
};

/// The version of the package and, if it is known, the commit: `0.1.0 (1a2b3c4)`.
pub const VERSION: &str = env!("HOLDFAST_VERSION");

/// The commit as git describes it; `-dirty` marks changes that were not committed. `unknown` without git.
pub const COMMIT: &str = env!("HOLDFAST_COMMIT");

/// The day of the commit or of `SOURCE_DATE_EPOCH`, in UTC; `unknown` without both.
pub const DATE: &str = env!("HOLDFAST_DATE");

/// The version of the Rust compiler.
pub const RUSTC: &str = env!("HOLDFAST_RUSTC");

/// The target of the compiler.
pub const TARGET: &str = env!("HOLDFAST_TARGET");

/// The profile of cargo, `release` or `debug`.
pub const PROFILE: &str = env!("HOLDFAST_PROFILE");

/// The version of the DPDK whose headers were compiled; `none` without DPDK.
pub const DPDK: &str = env!("HOLDFAST_DPDK");

/// How DPDK is linked: `static`, `shared`, or `none`.
pub const LINKAGE: &str = match (cfg!(feature = "dpdk"), cfg!(feature = "static")) {
    (false, _) => "none",
    (true, true) => "static",
    (true, false) => "shared",
};

/// The features of cargo that were enabled.
pub const FEATURES: &str = match (cfg!(feature = "dpdk"), cfg!(feature = "static")) {
    (false, _) => "none",
    (true, true) => "dpdk,static",
    (true, false) => "dpdk",
};

/// Returns the drivers of DPDK that are part of the program, e.g. `net_tap`; none unless DPDK is linked statically.
#[must_use]
pub fn drivers() -> Vec<&'static str> {
    env!("HOLDFAST_DRIVERS").split(',').filter(|driver| driver.starts_with("net_")).collect()
}

/// Returns a line for each fact: those after the first of `holdfast --version`.
#[must_use]
pub fn table() -> String {
    let dpdk = if LINKAGE == "none" { "none".to_owned() } else { format!("{DPDK}, {LINKAGE}") };
    let mut lines = vec![
        format!("commit: {COMMIT}"),
        format!("date: {DATE}"),
        format!("DPDK: {dpdk}"),
        format!("rustc: {RUSTC}"),
        format!("target: {TARGET}"),
        format!("profile: {PROFILE}"),
        format!("features: {FEATURES}"),
    ];
    let drivers = drivers();
    if !drivers.is_empty() {
        lines.push(format!("drivers: {}", drivers.join(" ")));
    }
    let without = env!("HOLDFAST_WITHOUT");
    if !without.is_empty() {
        lines.push(format!("without: {without}, which the archives of the system of the build do not link"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_table_names_commit_dpdk_and_compiler() {
        let table = table();
        let value = |name: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("no {name}: {table}")).to_owned()
        };
        for name in ["commit", "date", "rustc", "target", "profile", "features", "DPDK"] {
            assert!(!value(name).is_empty(), "{name}");
        }
        assert!(value("rustc").starts_with(|first: char| first.is_ascii_digit()), "{table}");
        assert!(VERSION.starts_with(env!("CARGO_PKG_VERSION")) && (COMMIT == "unknown" || VERSION.contains(COMMIT)));
        // A day, unless the source was unpacked without git.
        assert!(DATE == "unknown" || DATE.len() == 10 && DATE.starts_with("20"), "{DATE}");
        assert_eq!(LINKAGE == "none", value("DPDK") == "none");
        assert_eq!(drivers().contains(&"net_tap"), LINKAGE == "static");
    }
}
