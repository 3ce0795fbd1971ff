//! Reads a scenario from YAML. One file gives a [`Scenario`] for each of its variants, or every error in it.
//!
//! The reader uses the same machinery as that of configurations: a tree with places, read by key. The `config` or
//! `file` of a switch is a configuration as for `holdfast run`.

mod cables;
mod control;
mod dcqcn;
mod faults;
mod flows;
mod hosts;
mod load;
mod marks;
pub(super) mod mmu;
mod net;
mod patterns;
mod reloads;
mod routed;
mod signals;
mod switches;
#[cfg(test)]
mod tests;
mod timing;
mod transport;
mod variants;
mod workloads;
mod written;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub use self::written::Written;

use self::cables::Cables;
use self::variants::Variants;
use super::report::{column_titles, is_column};
use super::routing;
use super::spec::{FlowNode, Learning, Scenario};
use crate::config::error::{ConfigError, ConfigErrors, Place};
use crate::config::overrides::check_len;
use crate::config::yaml::Shape;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Item, Report};
use crate::config::{self, Warning};
use crate::units::Nanos;

const KEYS: &[&str] = &[
    "name",
    "seed",
    "duration",
    "drain",
    "sample",
    "events",
    "learning",
    "forwarding",
    "hash_seed",
    "reroute",
    "watch",
    "switches",
    "hosts",
    "flows",
    "workloads",
    "links",
    "faults",
    "columns",
];

const LONGEST_NAME: usize = 64;
const DEFAULT_SEED: u64 = 1;
/// Limit for all variants together: they are all in memory, and a short file can produce many.
const MOST_PARTS: usize = 1 << 20;
const SWITCHES_EXAMPLE: &str = "switches: [{name: tor, file: tor.yaml}]";

/// Settings of the command line that override the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Seed of every variant.
    pub seed: Option<u64>,
}

/// Reads a file. Returns each variant's name and scenario; without variants, one scenario with an empty name.
///
/// # Errors
/// Everything that is wrong with the file, or the reason for which it cannot be read.
pub fn load(path: &Path, options: &Options) -> Result<Vec<(String, Scenario)>, ConfigErrors> {
    Written::read(path)?.parse(options)
}

/// Reads a scenario from `text`. `source` names the text in errors. `dir` is the directory of files that the text
/// names, `None` if it may name none.
///
/// # Errors
/// Everything that is wrong with the text.
pub fn parse(
    source: &str,
    text: &str,
    dir: Option<&Path>,
    options: &Options,
) -> Result<Vec<(String, Scenario)>, ConfigErrors> {
    check_len(source, text)?;
    let root = config::tree(source, text)?;
    if matches!(root.shape, Shape::Null) {
        let message = format!("the scenario is empty; write at least `duration: 1ms` and `{SWITCHES_EXAMPLE}`");
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
            item.fail(
                "the variants have too many ports and flows for one run; write fewer variants, or split the scenario \
                 into several files",
            );
            break;
        }
    }
    let read = variants.len();
    drop(variants);
    // Errors of the variants themselves come first: other errors may follow from them.
    report.finish()?;
    findings.finish(read)?;
    name_variants(&mut scenarios);
    Ok(scenarios)
}

/// Names the first variant in each warning that not every variant has.
fn name_variants(scenarios: &mut [(String, Scenario)]) {
    let mut found: HashMap<Warning, (usize, String)> = HashMap::new();
    for (name, scenario) in scenarios.iter() {
        for warning in &scenario.warnings {
            found.entry(warning.clone()).or_insert_with(|| (0, name.clone())).0 += 1;
        }
    }
    let variants = scenarios.len();
    for warning in scenarios.iter_mut().flat_map(|(_, scenario)| &mut scenario.warnings) {
        let (count, first) = &found[warning];
        warning.variant = (*count < variants).then(|| first.clone());
    }
}

/// Reports one error, and nothing else, if the text is a configuration for `holdfast run`.
fn refuse_configuration(root: &Item<'_>) {
    if root.has("ports") && !root.has("switches") {
        let file = root.report().source();
        let name = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
        root.fail(format!(
            "this is the configuration of a switch, not a scenario; write a scenario beside it, with `duration: 5ms` \
             and `switches: [{{name: tor, file: {name}}}]`"
        ));
    }
}

/// Estimates the memory of a scenario, in flows: a port takes about as much as four flows, the sender of a workload as
/// much as one.
fn parts_of(scenario: &Scenario) -> usize {
    let ports: usize = scenario.switches.iter().map(|switch| switch.config.switch.ports.len()).sum();
    let senders: usize = scenario.workloads.iter().map(|workload| workload.senders.len()).sum();
    scenario.flows.len() + senders + 4 * ports
}

/// Removes duplicate warnings: two switches may share one file.
fn once(warnings: Vec<Warning>) -> Vec<Warning> {
    let mut seen = HashSet::new();
    warnings.into_iter().filter(|warning| seen.insert(warning.clone())).collect()
}

/// Errors of all variants.
#[derive(Default)]
struct Findings {
    /// By error, the number of variants that have it, and the first of them.
    found: HashMap<ConfigError, (usize, String)>,
}

impl Findings {
    fn add(&mut self, variant: &str, errors: &ConfigErrors) {
        let distinct: HashSet<&ConfigError> = errors.iter().collect();
        for error in distinct {
            self.found.entry(error.clone()).or_insert((0, variant.to_owned())).0 += 1;
        }
    }

    /// Returns all errors. An error that only some variants have names the first one that has it.
    fn finish(self, variants: usize) -> Result<(), ConfigErrors> {
        if self.found.is_empty() {
            return Ok(());
        }
        let locate = |(error, (times, variant)): (ConfigError, (usize, String))| {
            let message = if times < variants {
                format!("{} (in variant `{variant}`)", error.message)
            } else {
                error.message.clone()
            };
            ConfigError { message, ..error }
        };
        let mut errors: Vec<ConfigError> = self.found.into_iter().map(locate).collect();
        // The map has no order, but errors at the same place must always come in the same order.
        errors.sort_by(|a, b| (&a.path, &a.message).cmp(&(&b.path, &b.message)));
        Err(ConfigErrors::new(errors))
    }
}

/// Reads one variant. Returns `None`, and reports errors, if it is invalid.
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
        let context = workloads::Context { net: &net, cables: &cables, timing: &timing, dir };
        let workloads = workloads::read(top.get("workloads"), &context, report);
        let faults = faults::read(top.get("faults"), &net, &cables, &timing);
        let watch = top.get("watch").map(|item| net.ports(&item)).unwrap_or_default();
        let choices = [("routes", Learning::Routes), ("frames", Learning::Frames)];
        let learning = top.get("learning").and_then(|item| item.choice(&choices)).unwrap_or_default();
        if let (Learning::Frames, Some(item), true) = (learning, top.get("learning"), cables.circle) {
            item.fail("frames circulate for ever in a loop of switches; write `routes`, or remove a link");
        }
        let columns = top.get("columns").map(|item| read_columns(&item, &flows)).unwrap_or_default();
        let seed = top.get("seed").and_then(|item| item.number("a seed", 0..=u64::MAX));
        let seed = options.seed.or(seed).unwrap_or(DEFAULT_SEED);
        let routed = routed::read(&top, seed);
        if let (Some(item), Some(_)) = (top.get("forwarding"), routed) {
            let traffic = routed::Traffic { flows: &flows, workloads: &workloads };
            routed::check(&item, &net, &cables, traffic, learning);
        }
        Scenario {
            source: report.source().to_owned(),
            files: (documents.iter().flatten().map(|document| document.report.source().into()))
                .chain(workloads::files(top.get("workloads"), dir))
                .collect(),
            name: top.get("name").map_or(stem(report.source()), |item| read_name(&item).unwrap_or_default()),
            variant: String::new(),
            seed,
            duration: timing.duration,
            drain: timing.drain,
            sample: timing.sample,
            queues: if workloads.is_empty() { Nanos(0) } else { timing.sample },
            monitor: None,
            most_events: timing.most_events,
            learning,
            routed,
            links: cables.links,
            flows,
            workloads,
            faults,
            watch,
            columns,
            warnings: Vec::new(),
            hosts: net.hosts.into_iter().map(|host| host.node).collect(),
            switches: net.switches.into_iter().filter_map(switches::Switch::finish).collect(),
        }
    };
    documents.into_iter().flatten().for_each(|document| report.absorb(document.report));
    (report.errors() == 0).then(|| match scenario.routed {
        Some(routed) => routing::apply(scenario, routed),
        None => scenario,
    })
}

/// Reads the columns of the table that compares variants. A flow that no variant has is found after all variants are
/// read. Here a flow's name must only have the form of one: two names with a hyphen between them.
fn read_columns(item: &Item<'_>, flows: &[FlowNode]) -> Vec<String> {
    let items = item.list("e.g. `[pauses, held, h1-h2]`").unwrap_or_default();
    let mut columns = Vec::new();
    for item in items {
        let Some(title) = item.text("a column; write e.g. `pauses`, or the name of a flow for its rate") else {
            continue;
        };
        let is_flow = flows.iter().any(|flow| flow.name == title);
        if columns.iter().any(|known| known == title) {
            item.fail(format!("`{title}` is listed twice; remove one"));
        } else if is_flow || is_column(title) || title.contains('-') {
            columns.push(title.to_owned());
        } else {
            let known: Vec<&str> = column_titles().collect();
            item.fail(format!("there is no column `{title}`; {}", names::suggest(title, &known)));
        }
    }
    columns
}

/// Returns the file name without directory and extension.
fn stem(source: &str) -> String {
    Path::new(source).file_stem().map_or(source.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Reads the name of a scenario or a variant, for tables and plots.
fn read_name(item: &Item<'_>) -> Option<String> {
    let name = item.text("a name; write e.g. `incast`")?;
    if (1..=LONGEST_NAME).contains(&name.chars().count()) && !name.contains(char::is_control) {
        return Some(name.to_owned());
    }
    item.refuse(format!("`{}` is not a name; write from 1 to {LONGEST_NAME} characters on one line", item.shown()))
}
