//! The functions that were inlined at an address, by binutils' addr2line.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::callgrind::Part;
use crate::stage::{self, Stage};

/// A function that an address is part of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name alone.
    pub function: String,
    /// Its file, from the repository's root on if it is in there.
    pub file: String,
    /// The line.
    line: String,
}

/// By address the functions it is part of, the innermost first.
pub struct Chains(HashMap<u64, Vec<Frame>>);

impl Chains {
    /// # Errors
    /// Addr2line is not there.
    pub fn resolve(program: &Path, addresses: impl Iterator<Item = u64>) -> Result<Self, String> {
        let addresses: BTreeSet<u64> = addresses.filter(|&address| address != 0).collect();
        let questions: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
        let mut child = Command::new("addr2line")
            .args(["--addresses", "--inlines", "--functions", "--demangle", "--exe"])
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("addr2line: {error}; binutils has it"))?;
        let mut questions_to = child.stdin.take().expect("piped");
        // From a thread, since answers come while there are still questions.
        let asking = std::thread::spawn(move || questions_to.write_all(questions.as_bytes()));
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        asking.join().expect("no panic").map_err(|error| format!("addr2line: {error}"))?;
        Ok(Self(parse(&String::from_utf8_lossy(&output.stdout))))
    }

    /// The stage that an address belongs to.
    pub fn stage(&self, address: u64) -> Stage {
        self.0.get(&address).map_or(Stage::Outside, |chain| stage::of(chain))
    }

    /// Packets that the generator has made in `part`: what the instructions of its straight-line function were executed
    /// most often, in each place where that was inlined.
    pub fn packets(&self, part: &Part) -> u64 {
        let mut places: HashMap<&[Frame], HashMap<u64, usize>> = HashMap::new();
        for (address, counts) in part {
            let Some(chain) = self.0.get(address) else { continue };
            if let Some(at) = stage::once_a_packet(chain) {
                *places.entry(&chain[at + 1..]).or_default().entry(counts.instructions).or_default() += 1;
            }
        }
        let most =
            |counts: HashMap<u64, usize>| counts.into_iter().max_by_key(|&(_, times)| times).map(|(count, _)| count);
        places.into_values().filter_map(most).sum()
    }
}

/// Answers: an address, then lines of a function and its place in turn.
fn parse(text: &str) -> HashMap<u64, Vec<Frame>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let mut chains: HashMap<u64, Vec<Frame>> = HashMap::new();
    let (mut address, mut function) = (0, None);
    for line in text.lines() {
        if let Some(hex) = line.strip_prefix("0x").filter(|_| function.is_none()) {
            address = u64::from_str_radix(hex, 16).unwrap_or(0);
        } else if let Some(function) = function.take() {
            let place = line.split(" (discriminator").next().unwrap_or(line);
            let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
            let file = file.strip_prefix(root).unwrap_or(file).to_owned();
            chains.entry(address).or_default().push(Frame { function, file, line: line.to_owned() });
        } else {
            function = Some(base_name(line).to_owned());
        }
    }
    chains
}

/// `receive_all` of `holdfast::a::<impl b::C<P>>::receive_all` and of `receive_all<holdfast::dpdk::Mbuf, I>`.
fn base_name(name: &str) -> &str {
    let plain = name.split('<').next().unwrap_or(name);
    if plain.contains("::") || plain.is_empty() { name.rsplit("::").next().unwrap_or(name) } else { plain }
}
