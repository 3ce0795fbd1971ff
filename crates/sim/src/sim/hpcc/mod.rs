//! Reads the input files of HPCC's simulator (Li et al., SIGCOMM 2019) and writes its output files.
//!
//! The inputs are a configuration of keys and values, a topology and a list of flows; docs/hpcc.md describes them. They
//! become a [`Scenario`], so the switches are Holdfast and not ns-3's.

mod config;
mod convert;
#[cfg(test)]
mod drain_tests;
mod equal_paths;
mod flows;
#[cfg(test)]
mod format_tests;
mod path;
mod qlen;
mod sizes;
mod slowdown;
#[cfg(test)]
mod tests;
mod topology;
mod traffic;
mod windows;
mod write;

pub use self::sizes::MmuSizes;
pub use self::write::Outputs;

use std::path::{Path, PathBuf};

use self::config::Settings;
use self::flows::FlowLine;
use self::path::BaseTimes;
use self::topology::Topology;
use super::spec::Scenario;
use crate::config::error::{ConfigErrors, Warning};
use crate::config::overrides::{read_text, read_text_up_to};
use crate::mmu::HpccRules;

/// Largest topology, and largest list of flows.
const LARGEST_FILE: usize = 1 << 30;

/// The inputs of a run.
#[derive(Debug)]
pub struct Inputs {
    settings: Settings,
    topology: Topology,
    flows: Vec<FlowLine>,
    /// Directory to which the paths in the configuration are relative.
    base: PathBuf,
    /// The files that were read beside the configuration.
    files: Vec<PathBuf>,
    /// Warnings about keys without effect.
    warnings: Vec<Warning>,
}

/// A run that is ready: its scenario, and what the outputs need to know of the inputs.
#[derive(Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    flows: Vec<FlowLine>,
    times: BaseTimes,
    payload_bytes: u64,
    /// Nodes of the topology, by index of the scenario's hosts and switches.
    hosts: Vec<usize>,
    switches: Vec<usize>,
    /// Time of the inputs at which the scenario begins.
    epoch_ns: u64,
    fct: PathBuf,
    pfc: PathBuf,
    /// File of queue lengths, if it is written.
    qlen: Option<PathBuf>,
}

impl Inputs {
    /// Reads the configuration at `path` and the files that it names.
    ///
    /// # Errors
    /// Everything that is wrong with a file, with its line, or the reason for which it cannot be read.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        let source = path.display().to_string();
        let (settings, mut warnings) = config::parse(&source, &read_text(path)?)?;
        let base = base_of(path, &settings.topology);
        let open = |name: &str| {
            let path = base.join(name);
            read_text_up_to(&path, LARGEST_FILE, "a list").map(|text| (path.display().to_string(), text))
        };
        let (source, text) = open(&settings.topology)?;
        let (topology, beyond) = topology::parse(&source, &text)?;
        let (source, text) = open(&settings.flows)?;
        let (flows, ignored) = flows::parse(&source, &text, &topology)?;
        warnings.extend(beyond.into_iter().chain(ignored));
        let files = vec![base.join(&settings.topology), base.join(&settings.flows)];
        Ok(Self { settings, topology, flows, base, files, warnings })
    }

    /// Reads configuration, topology and flows from texts. Outputs are relative to the working directory.
    ///
    /// # Errors
    /// Everything that is wrong with a text, with its line.
    pub fn of(texts: [&str; 3]) -> Result<Self, ConfigErrors> {
        let [config, topology, flows] = texts;
        let (settings, warnings) = config::parse("config", config)?;
        let (topology, _) = topology::parse("topology", topology)?;
        let (flows, _) = flows::parse("flows", flows, &topology)?;
        Ok(Self { settings, topology, flows, base: PathBuf::from("."), files: Vec::new(), warnings })
    }

    /// The topology and the flows, as files.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Translates the inputs. `seed` replaces the default seed. Switches decide by the rules `mmu` and have the given
    /// sizes; without rules they have Holdfast's.
    ///
    /// # Errors
    /// The reason for which Holdfast has no such switch.
    pub fn prepare(self, seed: Option<u64>, mmu: (HpccRules, MmuSizes)) -> Result<Prepared, ConfigErrors> {
        let (rules, sizes) = mmu;
        convert::prepare(self, seed, (rules, if rules.is_empty() { MmuSizes::Holdfast } else { sizes }))
    }
}

/// Returns the directory to which paths are relative. ns-3 runs in the parent of the configuration's directory.
fn base_of(config: &Path, topology: &str) -> PathBuf {
    let own = config.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    let parent = own.join("..");
    let candidates = [PathBuf::from("."), parent, own];
    let found = candidates.iter().find(|dir| dir.join(topology).exists());
    found.unwrap_or(&candidates[0]).clone()
}
