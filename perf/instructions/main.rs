//! A guard of the packet path and the simulator: compares their instructions, as counted by callgrind, with
//! perf/instructions.txt.
//!
//! Time is unreliable on a shared machine; instructions are the same in every run. This program runs itself under
//! valgrind once for each count. Collection is on in functions called `measured_*` and off in those called
//! `uncounted_*`.
//!
//! It is a benchmark target, so it is compiled like a release. It does not use libdpdk: valgrind cannot follow its
//! dispatch by CPU everywhere.
//!
//! `cargo bench --no-default-features --bench instructions [-- NAME ...]`; perf/README.md.

mod dir24;
mod frames;
mod golden;
mod pipelines;
mod routed;
mod simulator;
mod stages;
mod valgrind;

use std::path::Path;
use std::process::{Command, ExitCode};

use golden::{Count, GoldenCounts};
use holdfast::isa::Isa;

/// A case: its name, and a function that runs it and returns the number by which the count is divided.
type Case = (&'static str, fn() -> u64);

const CASES: &[Case] = &[
    ("pipeline, 1 flow", pipelines::one_flow),
    ("pipeline, 1024 flows", pipelines::flows_1k),
    ("pipeline, 1024 flows, sampled", pipelines::sampled),
    ("pipeline, 65536 flows", pipelines::flows_64k),
    ("pipeline, TCP", pipelines::tcp),
    ("pipeline, IPv6", pipelines::ipv6),
    ("pipeline, tagged", pipelines::tagged),
    ("pipeline, retagged", pipelines::retagged),
    ("pipeline, incast with PFC", pipelines::incast),
    ("pipeline, flood that is shed", pipelines::flood),
    ("pipeline, flood that is shed and reported", pipelines::reported_flood),
    ("pipeline, two lcores, all crossing", pipelines::crossing),
    ("pipeline, two lcores, all crossing rings", pipelines::crossing_rings),
    ("pipeline, idle poll", pipelines::idle_poll),
    ("pipeline, routed, 1024 flows", routed::usual),
    ("pipeline, routed, one of 64 odd", routed::odd),
    ("pipeline, routed, ECMP", routed::ecmp),
    ("pipeline, routed IPv6", routed::ipv6),
    ("pipeline, routed between VLANs", routed::vlans),
    ("pipeline, routed between VLANs, tagged", routed::tagged_vlans),
    ("stage, parse a usual frame", stages::parse_usual),
    ("stage, parse a plain frame", stages::parse_plain),
    ("stage, parse IPv4", stages::parse_ipv4),
    ("stage, parse tagged IPv4", stages::parse_tagged),
    ("stage, parse IPv6", stages::parse_ipv6),
    ("stage, classify by DSCP", stages::classify),
    ("stage, fdb lookup", stages::fdb_lookup),
    ("stage, fdb known", stages::fdb_known),
    ("stage, fdb learn", stages::fdb_learn),
    ("stage, ledger admit and release, reserve", stages::ledger_reserve),
    ("stage, ledger admit and release, shared", stages::ledger_shared),
    ("stage, ledger admit and release, together", stages::ledger_together),
    ("stage, lease take and give, a burst", stages::lease),
    ("stage, tally, a burst", stages::tally),
    ("stage, queue push and pop", stages::queue),
    ("stage, scheduler, one queue", stages::scheduler_one),
    ("stage, scheduler, seven queues", stages::scheduler_seven),
    ("stage, shaper", stages::shaper),
    ("stage, wred judge", stages::wred),
    ("stage, hand-off ring, a burst", stages::handoff),
    ("simulator, an event", simulator::event),
];

/// The argument that selects one case to run, under valgrind.
const RUN: &str = "--run";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name] = arguments.as_slice()
        && flag == RUN
    {
        let (_, run) = CASES.iter().find(|(other, _)| other == name).expect("a case");
        println!("{}", run());
        return ExitCode::SUCCESS;
    }
    // Cargo adds `--bench`; the other arguments select cases.
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    match guard(&is_wanted) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Counts the selected cases, and compares or updates the committed counts. Returns false if a count differs.
fn guard(is_wanted: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("perf/instructions.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut golden = GoldenCounts::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let (rustc, is_update) = (rustc()?, std::env::var_os("UPDATE_INSTRUCTIONS").is_some());
    if golden.rustc != rustc && !is_update {
        println!("SKIPPED: the counts of perf/instructions.txt belong to {}, and this is {rustc}", golden.rustc);
        return Ok(true);
    }
    // The packet path has a form for each instruction set, and the committed counts are of the best one.
    let isa = Isa::detect();
    if isa.to_string() != "AVX2" && !is_update {
        println!(
            "SKIPPED: the counts of perf/instructions.txt belong to the form for AVX2, and this processor has {isa}"
        );
        return Ok(true);
    }
    let names: Vec<&str> = CASES.iter().map(|&(name, _)| name).collect();
    println!("{:<44} {:>9} {:>9}", "instructions", "committed", "now");
    let mut measured: Vec<Count> = Vec::new();
    for name in names.iter().filter(|name| is_wanted(name)) {
        let now = valgrind::count(RUN, name)?;
        let then = golden.counts.iter().find(|(other, _)| other == name);
        let then = then.map_or_else(|| "-".to_owned(), |(_, then)| format!("{then:.1}"));
        println!("{name:<44} {then:>9} {now:>9.1}");
        measured.push(((*name).to_owned(), now));
    }
    if is_update {
        golden.rustc = rustc;
        golden.update(&names, &measured);
        std::fs::write(&path, golden.text()).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("written to perf/instructions.txt; commit it with the reason");
        return Ok(true);
    }
    let findings = golden.judge(&names, &measured);
    for finding in &findings {
        println!("FAILED: {finding}");
    }
    if !findings.is_empty() {
        println!("If the change is worth it, say why in the commit that has what this writes:");
        println!("    UPDATE_INSTRUCTIONS=1 cargo bench --no-default-features --bench instructions");
    }
    Ok(findings.is_empty())
}

/// The version of the compiler, which has just compiled this program.
fn rustc() -> Result<String, String> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program).arg("--version").current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
