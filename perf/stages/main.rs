//! Divides the time of `perf/pipeline.rs` by stage: clock samples, instructions and simulated cache misses.
//!
//! Almost all of the pipeline is inlined into one function, so a profile by function is useless. Each sampled address
//! is resolved into the functions that were inlined there. The innermost one that has a stage names the stage.
//!
//! Most virtual machines have no hardware counters. So clock samples show the time, and callgrind counts instructions
//! and, with simulated caches, misses. Both run the same binary.
//!
//! `cargo bench --bench stages [-- FLOWS ...]`. Needs `perf`, `valgrind` and binutils.

mod callgrind;
mod chain;
mod clock;
mod rows;
mod stage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use chain::Chains;
use rows::Row;
use stage::Stage;

/// The cost of a stage.
#[derive(Default, Clone, Copy)]
struct Cost {
    samples: u64,
    instructions: u64,
    l1_misses: u64,
    ll_misses: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let flows: Vec<u32> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let flows = if flows.is_empty() { vec![1024, 65_536] } else { flows };
    let program = build()?;
    let commit = output(Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]))?;
    println!("commit {}, {}", commit.trim(), output(Command::new("rustc").arg("--version"))?.trim());
    let clock = clock::sample(&program)?;
    let parts = callgrind::count(&program, clock.rows.len())?;
    let addresses = clock.samples.iter().map(|sample| sample.address);
    let addresses = addresses.chain(parts.iter().flat_map(|part| part.keys().copied()));
    let chains = Chains::resolve(&program, addresses)?;
    for flows in flows {
        let index = clock.rows.iter().position(|row| row.flows == flows && row.is_whole);
        let index = index.ok_or_else(|| format!("perf/pipeline.rs measures nothing with {flows} flows"))?;
        let packets = chains.packets(&parts[index]);
        let mut costs: BTreeMap<Stage, Cost> = BTreeMap::new();
        for sample in clock.during(index) {
            costs.entry(chains.stage(sample.address)).or_default().samples += 1;
        }
        for (&address, counts) in &parts[index] {
            let cost = costs.entry(chains.stage(address)).or_default();
            cost.instructions += counts.instructions;
            cost.l1_misses += counts.l1_misses;
            cost.ll_misses += counts.ll_misses;
        }
        print(&clock.rows[index], clock.on_cpu(index), packets, costs);
    }
    Ok(())
}

/// Prints a table, the costliest stage first, without the setup before the measurement.
fn print(row: &Row, on_cpu: f64, packets: u64, mut costs: BTreeMap<Stage, Cost>) {
    costs.remove(&Stage::Setup);
    let samples = costs.values().map(|cost| cost.samples).sum::<u64>().max(1);
    let packets = packets.max(1) as f64;
    let Row { flows, cycles, lowest, highest, .. } = row;
    println!("\n{flows} flows: {cycles:.1} cycles a packet ({lowest:.1} to {highest:.1}), {samples} samples");
    println!("on a CPU {:.0}% of the time, so {:.1} cycles of its own", on_cpu * 100.0, cycles * on_cpu);
    println!("{:<24} {:>7} {:>8} {:>13} {:>9} {:>9}", "stage", "share", "cycles", "instructions", "L1 miss", "LL miss");
    let line = |name: &str, cost: &Cost| {
        let share = cost.samples as f64 / samples as f64;
        let [instructions, l1, ll] =
            [cost.instructions, cost.l1_misses, cost.ll_misses].map(|count| count as f64 / packets);
        let cycles = share * row.cycles * on_cpu;
        println!("{name:<24} {:>6.1}% {cycles:>8.1} {instructions:>13.1} {l1:>9.3} {ll:>9.3}", share * 100.0);
    };
    let mut sorted: Vec<_> = costs.iter().collect();
    sorted.sort_by_key(|(_, cost)| std::cmp::Reverse((cost.samples, cost.instructions)));
    let (mut sum, mut remaining) = (Cost::default(), Cost::default());
    for (stage, cost) in sorted {
        add(&mut sum, cost);
        // Fewer than one sample in a thousand and one instruction per packet is noise.
        if cost.samples * 1000 < samples && (cost.instructions as f64) < packets {
            add(&mut remaining, cost);
        } else {
            line(stage.name(), cost);
        }
    }
    line("less than 0.1% each", &remaining);
    line("all", &sum);
}

fn add(sum: &mut Cost, cost: &Cost) {
    sum.samples += cost.samples;
    sum.instructions += cost.instructions;
    sum.l1_misses += cost.l1_misses;
    sum.ll_misses += cost.ll_misses;
}

/// Builds the benchmark and returns its path.
fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["bench", "--bench", "pipeline", "--no-run", "--quiet", "--message-format", "json"]);
    let messages = output(command.current_dir(env!("CARGO_MANIFEST_DIR")))?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executables = messages.filter(|message| message["target"]["name"] == "pipeline");
    let mut executables = executables.filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next().ok_or_else(|| "cargo built no benchmark".to_owned())
}

/// The output of `command`.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
