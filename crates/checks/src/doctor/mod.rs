//! Checks a machine before a switch runs on it, and suggests remedies.
//!
//! [`probe()`] reads `/sys`, `/proc` and `/dev` under a root and returns [`Facts`]. [`findings()`] is a pure function
//! of these facts and of the [`Needs`] of a configuration. Neither requires DPDK or any privilege.
//!
//! # Example
//!
//! ```
//! use std::path::Path;
//!
//! use holdfast_checks::doctor::{findings, probe};
//!
//! let facts = probe(Path::new("/"));
//! for finding in findings(&facts, None) {
//!     println!("{finding:?}");
//! }
//! ```

use crate::router::kernel::{Shortage, WANTED_LIMIT};

mod cpus;
mod facts;
mod fix;
mod memory;
mod needs;
mod nic;
mod nics;
mod peers;
mod privileges;
mod probe;
mod reach;

pub use facts::{Access, Cpus, Facts, Pages, PciNic, Process};
pub use fix::script;
pub use needs::{DeviceNeed, LcoreNeed, Needs};
pub use nic::{Family, FlowControlKnown, PfcKnown};
pub use peers::Peer;
pub use probe::probe;
pub use reach::{Reach, Route};

/// The place where kernel command line options are configured.
const KERNEL_LINE: &str = "(GRUB_CMDLINE_LINUX in /etc/default/grub, then `update-grub`)";

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The state is right, or has no consequence.
    Ok,
    /// The switch works, but worse than it could, or it is not proven that it works.
    Warn,
    /// A switch does not start, or loses lossless frames.
    Bad,
}

impl Level {
    /// The word that is printed.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub level: Level,
    /// The object of the finding: a device, a CPU, a node, a port.
    pub place: String,
    /// The observed state.
    pub what: String,
    /// The remedy; `None` if nothing needs to be done.
    pub remedy: Option<String>,
    /// Shell commands that mend it for good; empty if that needs a decision, or nothing needs to be done.
    pub fix: Vec<String>,
}

impl Finding {
    fn ok(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { level: Level::Ok, place: place.into(), what: what.into(), remedy: None, fix: Vec::new() }
    }

    fn of(level: Level, place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), level, ..Self::ok(place, what) }
    }

    fn fixed_by(self, fix: Vec<String>) -> Self {
        Self { fix, ..self }
    }

    fn warn(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::of(Level::Warn, place, what, remedy)
    }

    fn bad(place: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::of(Level::Bad, place, what, remedy)
    }
}

/// Checks a machine with these facts; with needs, it checks that a switch with these needs can run there.
#[must_use]
pub fn findings(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let mut all = dpdk(facts);
    all.extend(memory::findings(facts, needs));
    all.extend(cpus::findings(facts, needs));
    all.extend(privileges::findings(facts, needs));
    all.extend(nics::findings(facts, needs));
    all.extend(neighbours(facts, needs));
    all.extend(peers::findings(facts));
    all
}

/// Checks the kernel's tables of neighbours for a switch with `routing.linux`.
fn neighbours(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let ports = needs.map_or(0, |needs| needs.linux_ports);
    let shortages = facts.neighbours.shortages(ports).into_iter().filter(|_| ports > 0);
    let finding = |short: Shortage| {
        let fix = fix::sysctl(&short.key, WANTED_LIMIT);
        Finding::warn(short.key, short.state, short.remedy).fixed_by(fix)
    };
    shortages.map(finding).collect()
}

fn dpdk(facts: &Facts) -> Vec<Finding> {
    let place = "dpdk";
    let version = match &facts.dpdk {
        Some(version) => Finding::ok(place, version.clone()),
        None => Finding::warn(
            place,
            "this holdfast was built without DPDK: all commands work except `run`",
            "build it with libdpdk-dev installed and without `--no-default-features`",
        ),
    };
    vec![version]
}

/// Formats `[2, 3, 4, 7]` in the syntax of Linux: `2-4,7`.
pub(crate) fn ranges(cpus: &[u16]) -> String {
    let mut text = String::new();
    let mut remaining = cpus;
    while let [first, ..] = remaining {
        let run = remaining.iter().zip(*first..).take_while(|(cpu, expected)| *cpu == expected).count();
        let separator = if text.is_empty() { "" } else { "," };
        let last = remaining[run - 1];
        text += &if run == 1 { format!("{separator}{first}") } else { format!("{separator}{first}-{last}") };
        remaining = &remaining[run..];
    }
    if text.is_empty() { "none".to_owned() } else { text }
}
