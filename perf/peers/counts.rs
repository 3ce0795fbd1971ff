//! Reads the counters that the generator's ports publish; `perf/generator/counts.h` defines the format.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Number of slots in the file, one per port.
const SLOTS: usize = 16;
const SLOT_BYTES: usize = 256;
/// Offset in a slot of the rate that the harness sets.
const WANTED_AT: usize = 17 * 8;
const MAGIC: u64 = 0x3167_6668;
/// Readings of a slot that is being written. If all fail, the port has died during a publication.
const ATTEMPTS: usize = 100;

/// The counters of one port at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time of the publication and ticks per second. `cpu_ns` is the CPU time of the polling thread until then.
    pub tsc: u64,
    pub hz: u64,
    pub cpu_ns: u64,
    /// Frames handed out by rx, and (`taken`) frames taken by tx.
    pub handed: u64,
    pub taken: u64,
    /// Frames that tx refused for lack of room.
    pub refused: u64,
    /// PFC frames taken, which `taken` does not include.
    pub pfc: u64,
    /// Polls without frames because the program's pool was empty.
    pub no_mbuf: u64,
    /// Frames that came by the clock; `missed` of them found no descriptor, and `held` did not come for a pause.
    pub offered: u64,
    pub missed: u64,
    pub held: u64,
    /// Lossless frames among `taken`, if frames come by the clock.
    pub lossless: u64,
}

/// The file that all ports of a program map into memory.
pub struct CountsFile(PathBuf);

impl CountsFile {
    /// Creates the file, filled with zeros.
    pub fn create(path: &Path) -> Result<Self> {
        fs::write(path, [0; SLOTS * SLOT_BYTES]).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path.to_owned()))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The counters of the first `ports` ports; `None` until all of them have published.
    pub fn read(&self, ports: usize) -> Option<Vec<Counts>> {
        (0..ports).map(|port| self.read_slot(port)).collect()
    }

    /// Sets the rate at which frames come by the clock to each of the first `ports` ports.
    pub fn offer(&self, ports: usize, frames_per_second: u64) -> Result<()> {
        let file = fs::OpenOptions::new().write(true).open(&self.0);
        let file = file.with_context(|| format!("cannot open {}", self.0.display()))?;
        for port in 0..ports {
            file.write_all_at(&frames_per_second.to_le_bytes(), (port * SLOT_BYTES + WANTED_AT) as u64)?;
        }
        Ok(())
    }

    fn read_slot(&self, port: usize) -> Option<Counts> {
        (0..ATTEMPTS).find_map(|_| {
            // A read of a shared mapping can return half of a publication. Equal, even sequence numbers show that it
            // did not.
            let words = [self.words(port)?, self.words(port)?];
            let is_whole = words[0][1] == words[1][1] && words[0][1].is_multiple_of(2);
            is_whole.then(|| Counts::new(&words[0])).flatten()
        })
    }

    fn words(&self, port: usize) -> Option<[u64; SLOT_BYTES / 8]> {
        let file = fs::read(&self.0).ok()?;
        let slot = file.get(port * SLOT_BYTES..(port + 1) * SLOT_BYTES)?;
        let mut words = [0; SLOT_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(slot.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        Some(words)
    }
}

impl Counts {
    fn new(words: &[u64; SLOT_BYTES / 8]) -> Option<Self> {
        let [magic, sequence, tsc, hz, handed, _, taken, _, refused, pfc, no_mbuf, _, cpu_ns, remaining @ ..] = *words;
        let [offered, missed, held, lossless, ..] = remaining;
        let has_published = magic as u32 == MAGIC as u32 && sequence > 0;
        has_published.then_some(Self {
            tsc,
            hz,
            cpu_ns,
            handed,
            taken,
            refused,
            pfc,
            no_mbuf,
            offered,
            missed,
            held,
            lossless,
        })
    }
}
