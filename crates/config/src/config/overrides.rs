//! Settings of the command line that override the file. They apply before the file is checked, so that sums, lcore
//! assignment and warnings match the running switch.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::error::{ConfigErrors, Place};
use super::model::Config;
use crate::mmu::HeadroomPolicy;
use crate::pfc::PfcMode;
use crate::units::Bytes;

/// Largest configuration in bytes; one for 64 ports is far smaller.
const LARGEST_FILE: usize = 1 << 20;

const EMBEDDED_SOURCE: &str = "<embedded>";

/// Settings that override the file. The default overrides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    /// PFC of all ports. [`PfcMode::Symmetric`] leaves asymmetric ports as they are. [`PfcMode::Off`] causes no
    /// warnings, since the user chose it explicitly.
    pub pfc: Option<PfcMode>,
    /// Size of the buffer, within the bounds for a file.
    pub buffer: Option<Bytes>,
    /// Headroom policy. A shared pool keeps the ratio or size in the file, if there is one.
    pub headroom: Option<HeadroomPolicy>,
    /// Dataplane lcores, 1 to 16; the ports are assigned to them anew. The CPUs in the file are used in their order if
    /// there are enough of them, and otherwise chosen.
    pub lcores: Option<u8>,
    /// Whether the switch runs in the simulator: ports need no device, and ring ports need no host.
    pub simulated: bool,
}

impl Overrides {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// All errors in the file, or the reason why it cannot be read.
    pub fn load(&self, path: &Path) -> Result<Config, ConfigErrors> {
        self.parse(&path.display().to_string(), &read_text(path)?)
    }

    /// Checks a configuration text; `source` stands for the file in errors.
    ///
    /// # Errors
    /// All errors in the text.
    pub fn parse(&self, source: &str, text: &str) -> Result<Config, ConfigErrors> {
        check_len(source, text)?;
        super::check(source, text, self)
    }

    /// The configuration built into the program: an incast over in-process ports.
    ///
    /// # Errors
    /// If it conflicts with these overrides, e.g. if its buffer cannot hold the headroom.
    pub fn embedded(&self) -> Result<Config, ConfigErrors> {
        self.parse(EMBEDDED_SOURCE, include_str!("../../incast.yaml"))
    }
}

/// Reads the text of a file.
pub fn read_text(path: &Path) -> Result<String, ConfigErrors> {
    read_text_up_to(path, LARGEST_FILE, "a configuration")
}

/// Reads a text of at most `most` bytes, since a device may have no end. `what` names it in the error.
pub fn read_text_up_to(path: &Path, most: usize, what: &str) -> Result<String, ConfigErrors> {
    let source = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let remedy = if path.is_dir() { "name a file" } else { "check the path and its permissions" };
        ConfigErrors::one(&source, None, format!("cannot be read: {}; {remedy}", reason(&error)))
    })?;
    if bytes.len() > most {
        let size = Bytes(most as u64);
        let message = format!("more than {most} bytes are too many for {what}; write at most {size}");
        return Err(ConfigErrors::one(&source, Some(Place { line: 1, column: 1 }), message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = place_after(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
        ConfigErrors::one(&source, Some(place), "not UTF-8 text; save the file as UTF-8".to_owned())
    })
}

/// Refuses a text that is longer than any reasonable configuration.
pub fn check_len(source: &str, text: &str) -> Result<(), ConfigErrors> {
    if text.len() > LARGEST_FILE {
        let message = format!("{} bytes are too many for a configuration; write at most 1MiB", text.len());
        return Err(ConfigErrors::one(source, Some(Place { line: 1, column: 1 }), message));
    }
    Ok(())
}

/// The message of an operating system error without its number.
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
