//! Plots of a run as SVG. The same run gives the same bytes on any machine.
//!
//! `svg` writes elements, `axis` chooses ticks and thins out lines, and `figure` stacks panels. The other modules
//! define the contents of the plots.

mod axis;
mod bars;
mod figure;
mod flows;
mod port;
mod svg;
mod workloads;

use std::collections::HashSet;

pub use bars::bars;

use super::outcome::Outcome;
use super::spec::Scenario;

/// Draws all plots of a run, each with a unique file name. There is one for each class of a switch port, one for the
/// throughput of flows, and one for message completion times. Workloads add slowdowns, PFC time and queue lengths.
/// Plots without content are left out.
#[must_use]
pub fn plots(scenario: &Scenario, outcome: &Outcome) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for port in &outcome.samples.ports {
        let figures = port.classes.iter().filter_map(|class| port::figure(scenario, outcome, port, class));
        plots.extend(figures.map(|(name, figure)| (file_name(&name), figure.draw())));
    }
    plots.extend(flows::figure(scenario, outcome).map(|figure| ("throughput".to_owned(), figure.draw())));
    plots.extend(bars::completion(scenario, outcome).map(|picture| ("completion".to_owned(), picture)));
    plots.extend(workloads::plots(scenario, outcome));
    name_files(&mut plots);
    plots
}

/// Turns names into file names, and numbers duplicates: a switch may have ports `1/1` and `1_1`.
fn name_files(plots: &mut [(String, String)]) {
    let mut taken = HashSet::new();
    for (name, _) in plots {
        let stem = name.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            *name = format!("{stem}-{number}");
        }
        name.push_str(".svg");
    }
}

/// Returns the subtitle of every plot, which identifies the run.
fn subtitle(scenario: &Scenario) -> String {
    scenario.title()
}

/// Replaces the characters of a name that a file name may not contain.
fn file_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests;
