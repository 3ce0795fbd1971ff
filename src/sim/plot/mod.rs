//! Pictures of a run, as SVG written by hand: the same bytes for the same run, on any machine.
//!
//! `svg` writes elements, `axis` chooses ticks and thins lines out, `figure` puts panels under each other; the rest
//! says what is in them.

mod axis;
mod bars;
mod figure;
mod flows;
mod port;
mod svg;

use std::collections::HashSet;

pub use bars::bars;

use super::outcome::Outcome;
use super::spec::Scenario;

/// All pictures of a run, each with the name of its file, which no other has: a class of a switch's port each, the throughput of flows and
/// the completion times of messages; what has nothing to show is not there.
#[must_use]
pub fn plots(scenario: &Scenario, outcome: &Outcome) -> Vec<(String, String)> {
    let mut plots = Vec::new();
    for port in &outcome.samples.ports {
        let figures = port.classes.iter().filter_map(|class| port::figure(scenario, outcome, port, class));
        plots.extend(figures.map(|(name, figure)| (file_name(&name), figure.draw())));
    }
    plots.extend(flows::figure(scenario, outcome).map(|figure| ("throughput".to_owned(), figure.draw())));
    plots.extend(bars::completion(scenario, outcome).map(|picture| ("completion".to_owned(), picture)));
    name_files(&mut plots);
    plots
}

/// Makes names files, and numbers those that others have too: a switch may have ports `1/1` and `1_1`.
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

/// What is under every title: which run it was.
fn subtitle(scenario: &Scenario) -> String {
    scenario.title()
}

/// A name without what a file's name may not have.
fn file_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests;
