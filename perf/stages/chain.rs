//! The functions that were inlined at an address, read by addr2line of binutils.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::callgrind::Part;
use crate::stage::{self, Stage};

/// A function that contains an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Name without path and type parameters.
    pub function: String,
    /// File, relative to the repository's root if it is inside.
    pub file: String,
    /// Line.
    line: String,
}

/// The functions that contain each address, the innermost first.
pub struct Chains(HashMap<u64, Vec<Frame>>);

impl Chains {
    /// Looks up the functions of all addresses.
    ///
    /// # Errors
    /// If addr2line is missing or fails.
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
        // A thread writes the addresses, since answers arrive before all are written.
        let asking = std::thread::spawn(move || questions_to.write_all(questions.as_bytes()));
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        asking.join().expect("no panic").map_err(|error| format!("addr2line: {error}"))?;
        Ok(Self(parse(&String::from_utf8_lossy(&output.stdout))))
    }

    /// The stage to which an address belongs.
    pub fn stage(&self, address: u64) -> Stage {
        self.0.get(&address).map_or(Stage::Outside, |chain| stage::of(chain))
    }

    /// Number of packets that the generator wrote in `part`. Its function has no branches, so most of its instructions
    /// ran once per packet. The most frequent count is taken at each place where the function was inlined, and the
    /// counts are added.
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

/// Parses the answers: an address, then alternating lines of a function and its place.
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

/// The base name of a function: `receive_all` for both `holdfast::a::<impl b::C<P>>::receive_all` and
/// `receive_all<holdfast::dpdk::Mbuf, I>`.
fn base_name(name: &str) -> &str {
    let plain = name.split('<').next().unwrap_or(name);
    if plain.contains("::") || plain.is_empty() { name.rsplit("::").next().unwrap_or(name) } else { plain }
}
