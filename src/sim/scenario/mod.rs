//! A scenario from YAML: one file to a [`Scenario`] for each of its variants, or to every reason why it is none.
//!
//! It is read as a configuration is, with the same machinery: a tree with places, read by key. What a switch has in
//! `config` or `file` is what `holdfast run` takes.

mod bounds;
mod cables;
mod dcqcn;
mod faults;
mod flows;
mod hosts;
mod load;
mod marks;
mod net;
mod switches;
#[cfg(test)]
mod tests;
mod timing;
mod variants;
mod written;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use self::written::Written;

use self::cables::Cables;
use self::variants::Variants;
use super::report::{column_titles, is_column};
use super::spec::{FlowNode, Learning, Scenario};
use crate::config::error::{ConfigError, ConfigErrors, Place};
use crate::config::names::{self, Unique};
use crate::config::overrides::check_len;
use crate::config::read::{Item, Report};
use crate::config::yaml::Shape;
use crate::config::{self};

const KEYS: &[&str] = &[
    "name", "seed", "duration", "drain", "sample", "events", "learning", "watch", "switches", "hosts", "flows",
    "links", "faults", "columns",
];

const LONGEST_NAME: usize = 64;
const DEFAULT_SEED: u64 = 1;
/// Of all variants together: they are all in memory, and a short file can make many.
const MOST_PARTS: usize = 1 << 20;
const SWITCHES_EXAMPLE: &str = "switches: [{name: tor, file: tor.yaml}]";

/// What the command line says over the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Seed of every variant.
    pub seed: Option<u64>,
}

/// Reads a file: each variant's name and the scenario; one without a name if there are no variants.
///
/// # Errors
/// All that is wrong with it, or that it cannot be read.
pub fn load(path: &Path, options: &Options) -> Result<Vec<(String, Scenario)>, ConfigErrors> {
    Written::read(path)?.parse(options)
}

/// Reads a scenario that is at hand. `source` stands for the file in errors; `dir` is where its files are, `None` if it
/// may name none.
///
/// # Errors
/// All that is wrong with it.
pub fn parse(
    source: &str,
    text: &str,
    dir: Option<&Path>,
    options: &Options,
) -> Result<Vec<(String, Scenario)>, ConfigErrors> {
    check_len(source, text)?;
    let root = config::tree(source, text)?;
    if matches!(root.shape, Shape::Null) {
        let message = format!("there is nothing in it; write at least `duration: 1ms` and `{SWITCHES_EXAMPLE}`");
        return Err(ConfigErrors::one(source, Some(Place { line: 1, column: 1 }), message));
    }
    let report = Report::new(source);
    refuse_configuration(&Item::root(&root, &report));
    if report.errors() > 0 {
        return report.finish().map(|_| Vec::new());
    }
    let variants = Variants::read(&Item::root(&root, &report));
    let (mut scenarios, mut findings, mut parts) = (Vec::new(), Findings::default(), 0);
    for (name, tree) in variants.iter() {
        let own = Report::new(source);
        let scenario = read(&Item::root(&tree, &own), &own, dir, options);
        match (scenario, own.finish()) {
            (Some(scenario), Ok(warnings)) => {
                parts += parts_of(&scenario);
                let scenario = Scenario { variant: name.clone(), warnings: once(warnings), ..scenario };
                scenarios.push((name, scenario));
            }
            (None, Ok(_)) => {}
            (_, Err(errors)) => findings.add(&name, &errors),
        }
        if parts > MOST_PARTS {
            let item = Item::root(&root, &report).child("variants");
            item.fail("the variants have too many ports and flows for one run; write fewer, or some in another file");
            break;
        }
    }
    let read = variants.len();
    drop(variants);
    // What is wrong with the variants themselves comes first: the rest may follow from it.
    report.finish()?;
    findings.finish(read)?;
    Ok(scenarios)
}

/// Complains of what `holdfast run` takes, of which nothing else need be said.
fn refuse_configuration(root: &Item<'_>) {
    if root.has("ports") && !root.has("switches") {
        let file = root.report().source();
        let name = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
        root.fail(format!(
            "this is the configuration of a switch and no scenario; write one beside it, with `duration: 5ms` and \
             `switches: [{{name: tor, file: {name}}}]`"
        ));
    }
}

/// What a scenario takes in memory, in flows: a port is about four.
fn parts_of(scenario: &Scenario) -> usize {
    let ports: usize = scenario.switches.iter().map(|switch| switch.config.switch.ports.len()).sum();
    scenario.flows.len() + 4 * ports
}

/// The same warnings, each once: two switches may have one file.
fn once(warnings: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    warnings.into_iter().filter(|warning| seen.insert(warning.clone())).collect()
}

/// What is wrong in any variant.
#[derive(Default)]
struct Findings {
    /// In how many variants, and the first of them.
    found: HashMap<ConfigError, (usize, String)>,
}

impl Findings {
    fn add(&mut self, variant: &str, errors: &ConfigErrors) {
        let distinct: HashSet<&ConfigError> = errors.iter().collect();
        for error in distinct {
            self.found.entry(error.clone()).or_insert((0, variant.to_owned())).0 += 1;
        }
    }

    /// All of it; an error that not every variant has names the first that has it.
    fn finish(self, variants: usize) -> Result<(), ConfigErrors> {
        if self.found.is_empty() {
            return Ok(());
        }
        let tell = |(error, (times, variant)): (ConfigError, (usize, String))| {
            let message = if times < variants {
                format!("{} (in variant `{variant}`)", error.message)
            } else {
                error.message.clone()
            };
            ConfigError { message, ..error }
        };
        let mut errors: Vec<ConfigError> = self.found.into_iter().map(tell).collect();
        // The map has no order, and errors at the same place must always come in the same.
        errors.sort_by(|a, b| (&a.path, &a.message).cmp(&(&b.path, &b.message)));
        Err(ConfigErrors::new(errors))
    }
}

/// One variant. `None`, and errors, if it is wrong.
fn read(root: &Item<'_>, report: &Report, dir: Option<&Path>, options: &Options) -> Option<Scenario> {
    let top = root.fields(KEYS)?;
    let timing = timing::read(&top);
    let list = top.required("switches", SWITCHES_EXAMPLE).and_then(|item| switches::list(&item)).unwrap_or_default();
    let documents = switches::documents(&list, dir);
    let scenario = {
        let mut names = Unique::new("name");
        let switches = switches::read(&list, &documents, &mut names);
        let net = hosts::read(top.get("hosts"), switches, &mut names);
        let cables = Cables::read(&net, top.get("links"));
        let flows = flows::read(top.get("flows"), &net, &cables, &timing, report);
        let faults = faults::read(top.get("faults"), &net, &cables, &timing);
        let watch = top.get("watch").map(|item| net.ports(&item)).unwrap_or_default();
        let choices = [("routes", Learning::Routes), ("frames", Learning::Frames)];
        let learning = top.get("learning").and_then(|item| item.choice(&choices)).unwrap_or_default();
        if let (Learning::Frames, Some(item), true) = (learning, top.get("learning"), cables.circle) {
            item.fail("frames go round for ever in a circle of switches; write `routes`, or remove a link");
        }
        let columns = top.get("columns").map(|item| read_columns(&item, &flows)).unwrap_or_default();
        let seed = top.get("seed").and_then(|item| item.number("a seed", 0..=u64::MAX));
        Scenario {
            source: report.source().to_owned(),
            files: documents.iter().flatten().map(|document| document.report.source().into()).collect(),
            name: top.get("name").map_or(stem(report.source()), |item| read_name(&item).unwrap_or_default()),
            variant: String::new(),
            seed: options.seed.or(seed).unwrap_or(DEFAULT_SEED),
            duration: timing.duration,
            drain: timing.drain,
            sample: timing.sample,
            most_events: timing.most_events,
            learning,
            links: cables.links,
            flows,
            faults,
            watch,
            columns,
            warnings: Vec::new(),
            hosts: net.hosts.into_iter().map(|host| host.node).collect(),
            switches: net.switches.into_iter().filter_map(switches::Switch::finish).collect(),
        }
    };
    documents.into_iter().flatten().for_each(|document| report.absorb(document.report));
    (report.errors() == 0).then_some(scenario)
}

/// What the table that compares variants shows. A flow that no variant has is found when all are read: here it must only
/// look like one, two names with a line between them.
fn read_columns(item: &Item<'_>, flows: &[FlowNode]) -> Vec<String> {
    let items = item.list("e.g. `[pauses, held, h1-h2]`").unwrap_or_default();
    let mut columns = Vec::new();
    for item in items {
        let Some(title) = item.text("a column; write e.g. `pauses`, or the name of a flow for its rate") else {
            continue;
        };
        let is_flow = flows.iter().any(|flow| flow.name == title);
        if columns.iter().any(|known| known == title) {
            item.fail(format!("`{title}` is there twice; remove one"));
        } else if is_flow || is_column(title) || title.contains('-') {
            columns.push(title.to_owned());
        } else {
            let known: Vec<&str> = column_titles().collect();
            item.fail(format!("there is no column `{title}`; {}", names::suggest(title, &known)));
        }
    }
    columns
}

/// The file's name without directory and ending.
fn stem(source: &str) -> String {
    Path::new(source).file_stem().map_or(source.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The name of a scenario or a variant, for tables and plots.
fn read_name(item: &Item<'_>) -> Option<String> {
    let name = item.text("a name; write e.g. `incast`")?;
    if (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.contains(char::is_control) {
        return Some(name.to_owned());
    }
    item.refuse(format!("`{}` is not a name; write from 1 to {LONGEST_NAME} characters on one line", item.shown()))
}
