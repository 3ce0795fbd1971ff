//! Instructions and simulated cache misses of the benchmark by address, counted by `valgrind --tool=callgrind`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{output, rows};

/// The simulated caches: a usual first level, and as last level the private cache of a core. The level behind is not
/// simulated, because a core shares it with other programs.
const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,8,64"];

/// The counts of an address.
#[derive(Default, Clone, Copy)]
pub struct Counts {
    pub instructions: u64,
    pub l1_misses: u64,
    pub ll_misses: u64,
}

/// Counts by address in the benchmark's file; address 0 stands for all other files.
pub type Part = HashMap<u64, Counts>;

/// Counts each part of a run; `rows` rows end one part each.
///
/// # Errors
/// If Valgrind is missing, or the run had another number of parts.
pub fn count(program: &Path, rows: usize) -> Result<Vec<Part>, String> {
    let directory = std::env::temp_dir().join(format!("holdfast-stages-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let parts = run(program, rows, &directory);
    let _ = std::fs::remove_dir_all(&directory);
    parts
}

fn run(program: &Path, rows: usize, directory: &Path) -> Result<Vec<Part>, String> {
    let (file, log) = (directory.join("profile"), directory.join("log"));
    let mut child = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--dump-instr=yes"])
        .args(CACHES)
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(format!("--log-file={}", log.display()))
        .arg(program)
        // Valgrind leaves no address space for the mapping of hugepages.
        .arg("--small-pages")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("valgrind: {error}; docker/install-packages test installs it"))?;
    let pid = child.id().to_string();
    // A dump begins a new part, so one is made at the end of each part.
    let counted = rows::read(child.stdout.take().expect("piped"), |_| {
        output(Command::new("callgrind_control").args(["--dump", &pid])).map(drop)
    })?;
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() || counted.len() != rows {
        let log = std::fs::read_to_string(log).unwrap_or_default();
        return Err(format!("valgrind: {status}, {} of {rows} parts\n{log}", counted.len()));
    }
    (1..=rows).map(|part| read(&PathBuf::from(format!("{}.{part}", file.display())), program)).collect()
}

/// Reads a profile of callgrind: addresses and lines are relative to the last ones, costs follow.
fn read(path: &Path, program: &Path) -> Result<Part, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (mut part, mut names, mut events) = (Part::new(), HashMap::new(), Vec::new());
    let (mut is_ours, mut address, mut is_call) = (false, 0_u64, false);
    for line in text.lines() {
        if let Some(list) = line.strip_prefix("events: ") {
            events = list.split_whitespace().collect();
        } else if let Some(object) = line.strip_prefix("ob=").or_else(|| line.strip_prefix("cob=")) {
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if !name.is_empty() {
                names.insert(number, Path::new(name) == program);
            }
            if line.starts_with("ob=") {
                is_ours = names.get(number).copied().unwrap_or(false);
            }
        } else if line.starts_with("calls=") {
            is_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let mut words = line.split_whitespace();
            address = position(address, words.next().unwrap_or("*"));
            // The line after `calls=` has the cost inside the call, which is counted there.
            if !std::mem::take(&mut is_call) {
                let counts = part.entry(if is_ours { address } else { 0 }).or_default();
                words.skip(1).zip(&events).for_each(|(count, event)| add(counts, event, count.parse().unwrap_or(0)));
            }
        }
    }
    Ok(part)
}

fn position(last: u64, word: &str) -> u64 {
    let hex = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap_or(0);
    // Absolute addresses are hexadecimal, differences are decimal.
    let difference = |digits: &str| digits.parse().unwrap_or(0);
    match word.split_at(1) {
        ("+", digits) => last.wrapping_add(difference(digits)),
        ("-", digits) => last.wrapping_sub(difference(digits)),
        ("*", _) => last,
        _ => hex(word),
    }
}

fn add(counts: &mut Counts, event: &str, count: u64) {
    match event {
        "Ir" => counts.instructions += count,
        "I1mr" | "D1mr" | "D1mw" => counts.l1_misses += count,
        "ILmr" | "DLmr" | "DLmw" => counts.ll_misses += count,
        _ => {}
    }
}
