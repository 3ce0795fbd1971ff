//! The environment that all programs share: two CPUs, the kind of memory, the generator, and a directory for files.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::counts::CountsFile;
use super::plan::{Feed, PORTS, Point};

const HUGEPAGES: &str = "/proc/sys/vm/nr_hugepages";
/// Hugepages of 2 MiB: enough for the pool of Open vSwitch, and for Holdfast with 16,384 posted descriptors per port.
const PAGES_WANTED: u64 = 640;
/// MiB of memory without hugepages.
const NO_HUGE_MIB: &str = "1024";

/// The environment of all runs.
pub struct Lab {
    /// Directory of the generator, of DPDK's examples and of all files of a run.
    pub directory: PathBuf,
    /// The CPU of all threads that sleep.
    pub control: usize,
    /// The CPU of the program that polls.
    pub core: usize,
    pub memory: Memory,
}

/// The kind of memory that DPDK uses, the same for all programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Huge { before: u64 },
    Ordinary,
}

impl Lab {
    /// Builds the missing programs, and selects two CPUs and the memory.
    pub fn open(core: Option<usize>) -> Result<Self> {
        // Beside the measured program, in cargo's target directory.
        let release = Path::new(env!("CARGO_BIN_EXE_holdfast")).parent().and_then(Path::parent);
        let directory = release.context("the build directory has no parent")?.join("perf");
        fs::create_dir_all(directory.join("run"))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("perf/generator/build.sh");
        let built = Command::new(&script).arg(&directory).stdin(Stdio::null()).status();
        if !built.with_context(|| format!("cannot start {}", script.display()))?.success() {
            bail!("the generator cannot be built, and without it nothing can be measured; the reason is above");
        }
        let cpus = allowed_cpus()?;
        let core = core.or(cpus.last().copied()).unwrap_or_default();
        let Some(&control) = cpus.iter().find(|&&cpu| cpu != core).filter(|_| cpus.contains(&core)) else {
            bail!("a CPU to poll on and another for all else are needed, and of {cpus:?} core {core} was asked for");
        };
        Ok(Self { directory, control, core, memory: Memory::acquire() })
    }

    /// The CPUs as a list for taskset and EAL.
    pub fn cpus(&self) -> String {
        format!("{},{}", self.control, self.core)
    }

    /// The path of a file of a run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join("run").join(name)
    }

    /// Creates a file for the counters of a run, filled with zeros.
    pub fn counts(&self) -> Result<CountsFile> {
        CountsFile::create(&self.file("counts"))
    }

    /// The devices of a point, as arguments for `--vdev`.
    pub fn devices(&self, point: &Point, feed: Feed, counts: &CountsFile) -> Vec<String> {
        let speed_mb = feed.speed_mb;
        let load = if point.timed { 0 } else { feed.load };
        let device = |port| {
            let drain = point.drain_mb(port).map(|drain| format!(",drain={drain}")).unwrap_or_default();
            format!(
                "net_hfgen{port},index={port},ports={PORTS},size={},flows={},posted={},classes={},pattern={},pfc={},\
                 routed={},timed={},speed={speed_mb},load={load}{drain},stats={}",
                point.size,
                point.flows,
                point.posted,
                point.classes,
                point.pattern,
                u8::from(point.pfc),
                u8::from(point.routed),
                u8::from(point.timed),
                counts.path().display(),
            )
        };
        (0..PORTS).map(device).collect()
    }

    /// EAL's arguments that load the generator. They contain a name instead of a path: EAL refuses paths through
    /// world-writable directories, and a target directory may be below /tmp.
    pub fn generator_args() -> [&'static str; 2] {
        ["-d", "libhfgen.so"]
    }

    /// The environment variable with which the dynamic linker finds the generator.
    pub fn library_path(&self) -> (&'static str, OsString) {
        let mut path = self.directory.clone().into_os_string();
        if let Some(others) = env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(others);
        }
        ("LD_LIBRARY_PATH", path)
    }

    /// EAL's arguments for memory.
    pub fn memory_args(&self) -> &'static [&'static str] {
        match self.memory {
            Memory::Huge { .. } => &["--in-memory"],
            Memory::Ordinary => &["--no-huge", "-m", NO_HUGE_MIB, "--no-shconf"],
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Memory::Huge { before } = self.memory
            && pages() != Some(before)
        {
            let _ = fs::write(HUGEPAGES, before.to_string());
        }
    }
}

impl Memory {
    /// Uses hugepages if enough are free or can be allocated, otherwise ordinary pages.
    fn acquire() -> Self {
        let Some(before) = pages() else { return Self::Ordinary };
        if free_pages() >= PAGES_WANTED {
            return Self::Huge { before };
        }
        let wanted = before + PAGES_WANTED - free_pages();
        if fs::write(HUGEPAGES, wanted.to_string()).is_ok() && free_pages() >= PAGES_WANTED {
            return Self::Huge { before };
        }
        let _ = fs::write(HUGEPAGES, before.to_string());
        Self::Ordinary
    }

    /// The description in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Huge { .. } => "hugepages of 2 MiB",
            Self::Ordinary => "ordinary pages (--no-huge)",
        }
    }
}

fn pages() -> Option<u64> {
    fs::read_to_string(HUGEPAGES).ok()?.trim().parse().ok()
}

/// Free hugepages of 2 MiB; 0 if the machine's default size is another.
fn free_pages() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let value = |key| text.lines().find_map(|line: &str| line.strip_prefix(key)?.split_whitespace().next());
    if value("Hugepagesize:") != Some("2048") {
        return 0;
    }
    value("HugePages_Free:").and_then(|free| free.parse().ok()).unwrap_or_default()
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let mut cpus = Vec::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<usize>()?..=last.parse()?);
    }
    Ok(cpus)
}
