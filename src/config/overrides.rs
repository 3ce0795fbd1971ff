//! What the command line says over the file, known before the file is checked: sums, spread and warnings are then those
//! of what runs.

use std::path::Path;

use super::error::{ConfigErrors, Place};
use super::model::Config;
use crate::mmu::HeadroomPolicy;
use crate::pfc::PfcMode;
use crate::units::Bytes;

/// No configuration of 64 ports comes near it.
const LARGEST_FILE: usize = 1 << 20;

const EMBEDDED_SOURCE: &str = "<embedded>";

/// What holds whatever the file says. The default overrides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// PFC of all ports. [`PfcMode::Symmetric`] leaves asymmetric ports as they are. [`PfcMode::Off`] is not warned of:
    /// whoever asks for it knows.
    pub pfc: Option<PfcMode>,
    /// Size of the buffer, within what a file may say.
    pub buffer: Option<Bytes>,
    /// Headroom policy; of a shared pool the file's ratio or size, if it has one.
    pub headroom: Option<HeadroomPolicy>,
    /// Dataplane lcores, 1 to 16: ports are spread over them anew. CPUs named in the file are taken in their order if
    /// they are enough, and otherwise chosen.
    pub lcores: Option<u8>,
    /// Whether the switch is one of the simulator's: ports need neither a device nor, at a ring, a host.
    pub simulated: bool,
}

impl Overrides {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// All that is wrong with it, or that it cannot be read.
    pub fn load(&self, path: &Path) -> Result<Config, ConfigErrors> {
        self.parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Checks a configuration that is at hand; `source` stands for the file in errors.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(&self, source: &str, text: &str) -> Result<Config, ConfigErrors> {
        check_len(source, text)?;
        super::check(source, text, self)
    }

    /// The configuration inside the program: an incast over in-process ports.
    ///
    /// # Errors
    /// If it does not go together with these overrides, e.g. more headroom than its buffer has.
    pub fn embedded(&self) -> Result<Config, ConfigErrors> {
        self.parse(EMBEDDED_SOURCE, include_str!("../../conf/incast.yaml"))
    }
}

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, ConfigErrors> {
    let source = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| {
        let remedy = if path.is_dir() { "name a file" } else { "check the path and its permissions" };
        ConfigErrors::one(&source, None, format!("cannot be read: {}; {remedy}", reason(&error)))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let place = place_after(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        ConfigErrors::one(&source, Some(place), "not UTF-8 text; save the file as UTF-8".to_owned())
    })
}

/// Refuses what no configuration is long enough for.
pub(crate) fn check_len(source: &str, text: &str) -> Result<(), ConfigErrors> {
    if text.len() > LARGEST_FILE {
        let message = format!("{} bytes are more than a configuration needs; write at most 1MiB", text.len());
        return Err(ConfigErrors::one(source, Some(Place { line: 1, column: 1 }), message));
    }
    Ok(())
}

/// An error of the operating system without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

fn place_after(valid: &[u8]) -> Place {
    let text = String::from_utf8_lossy(valid);
    let last = text.rsplit('\n').next().unwrap_or_default();
    let line = 1 + text.matches('\n').count();
    Place { line: line as u64, column: 1 + last.chars().count() as u64 }
}
