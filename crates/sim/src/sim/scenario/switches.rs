//! Reads `switches:`.

use std::path::Path;

use super::{mmu, reloads};
use crate::config::overrides::{check_len, read_text};
use crate::config::yaml::Node;
use crate::config::yaml::bounds;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item, Report};
use crate::config::{self, Config, ConfigErrors, MAX_LCORES, Overrides};
use crate::config::{LARGEST_SIZE, SMALLEST_SIZE};
use crate::mmu::HeadroomPolicy;
use crate::sets::ClassSet;
use crate::sim::spec::{PollSpec, SwitchNode, SwitchReload};
use crate::units::Nanos;

const KEYS: &[&str] =
    &["name", "config", "file", "buffer", "headroom", "lcores", "poll", "floods_lossless", "mmu", "reloads"];
const EXAMPLE: &str = "`- {name: tor, file: tor.yaml}` for each switch";
const MOST: usize = 1024;

const SHORTEST_POLL: Nanos = Nanos(10);
const LONGEST_POLL: Nanos = Nanos(10_000_000);
const LONGEST_FRAME: Nanos = Nanos(1_000_000);
const DEFAULT_POLL: PollSpec = PollSpec { every: Nanos(1_000), frame: Nanos(0), shed: Nanos(0), jitter: Nanos(0) };
/// Divisor of the time of a frame that gives the time to shed one: docs/overload.md has the measurement.
const SHED_PART: u64 = 3;

/// The file with a switch's configuration.
pub struct Document {
    /// Errors in the file.
    pub report: Report,
    root: Node,
}

/// A switch as read. Invalid switches are kept, so that other parts can refer to them.
pub struct Switch<'a> {
    /// Name; `None`: there is none, which is reported.
    pub name: Option<String>,
    /// Configuration; `None`: it is invalid, which is reported.
    pub config: Option<Config>,
    /// The item with the configuration, for errors in it.
    pub written: Option<Item<'a>>,
    poll: PollSpec,
    floods_lossless: bool,
    reloads: Vec<SwitchReload>,
}

impl Switch<'_> {
    /// Traffic classes that a reload makes lossless or lossy.
    pub fn changed_classes(&self) -> ClassSet {
        let Some(config) = &self.config else { return ClassSet::EMPTY };
        let first = config.switch.lossless_classes();
        self.reloads.iter().fold(ClassSet::EMPTY, |all, reload| all | first ^ reload.switch.lossless_classes())
    }

    /// Returns the switch for the simulation; `None` if it is invalid.
    pub fn finish(self) -> Option<SwitchNode> {
        let config = Config { hosts: Vec::new(), ..self.config? };
        let Self { poll, floods_lossless, reloads, .. } = self;
        Some(SwitchNode { name: self.name?, config, poll, floods_lossless, reloads })
    }
}

/// Returns the items of the list.
pub fn list<'a>(item: &Item<'a>) -> Option<Vec<Item<'a>>> {
    let items = item.list(EXAMPLE)?;
    if (1..=MOST).contains(&items.len()) {
        return Some(items);
    }
    item.refuse(format!("{} switches are out of range; write from 1 to {MOST}", items.len()))
}

/// Reads the files that the switches name, by switch.
pub fn documents(items: &[Item<'_>], dir: Option<&Path>) -> Vec<Option<Document>> {
    let names = |item: &Item<'_>| item.has("file") && !item.has("config");
    items.iter().map(|item| if names(item) { open(&item.child("file"), dir) } else { None }).collect()
}

fn open(item: &Item<'_>, dir: Option<&Path>) -> Option<Document> {
    let name = item.text("a path; write e.g. `tor.yaml`")?;
    let Some(dir) = dir else {
        return item.refuse("a scenario that is not in a file cannot refer to files; write `config:` instead");
    };
    match read_file(&dir.join(name)) {
        Ok((source, root)) => Some(Document { report: Report::new(&source), root }),
        Err(errors) => complain(item, &errors),
    }
}

/// Reads a file. Returns its name for errors, and its content.
pub fn read_file(path: &Path) -> Result<(String, Node), ConfigErrors> {
    let source = path.display().to_string();
    let text = read_text(path)?;
    check_len(&source, &text)?;
    config::tree(&source, &text).map(|root| (source, root))
}

/// Reports the errors of a file: at `item` if the file could not be read at all.
fn complain<T>(item: &Item<'_>, errors: &ConfigErrors) -> Option<T> {
    match errors.iter().find(|error| error.place.is_none()) {
        Some(unread) => item.refuse(format!("`{}` {}", item.shown(), unread.message)),
        None => {
            item.report().fail(errors);
            None
        }
    }
}

/// Reads all switches.
pub fn read<'a>(items: &[Item<'a>], documents: &'a [Option<Document>], names: &mut Unique) -> Vec<Switch<'a>> {
    items.iter().zip(documents).map(|(item, document)| read_one(item, document.as_ref(), names)).collect()
}

fn read_one<'a>(item: &Item<'a>, document: Option<&'a Document>, names: &mut Unique) -> Switch<'a> {
    let Some(fields) = item.fields(KEYS) else {
        return Switch {
            name: None,
            config: None,
            written: None,
            poll: DEFAULT_POLL,
            floods_lossless: false,
            reloads: Vec::new(),
        };
    };
    let name = names::read_undotted(&fields, "name: tor", names);
    let written = written(&fields, document);
    let overrides = read_overrides(&fields);
    let mut config = written.as_ref().and_then(|root| config::build(root, &overrides));
    mmu::read(&fields, config.as_mut());
    let poll = read_poll(&fields);
    if let Some(config) = &config {
        warn_of_gap(fields.get("poll").as_ref().unwrap_or(item), poll, config.switch.poll_gap);
    }
    let floods = fields.get("floods_lossless");
    let floods_lossless = floods.as_ref().and_then(Item::flag).unwrap_or(false);
    if let Some(item) = floods.filter(|_| floods_lossless) {
        item.warn(
            "lossless frames to unknown stations are flooded, which can end in a deadlock; remove it unless the \
             scenario tests that",
        );
    }
    let reloads = match (&written, &config) {
        (Some(written), Some(config)) => reloads::read(&fields, written, &overrides, config),
        _ => Vec::new(),
    };
    Switch { name, config, written, poll, floods_lossless, reloads }
}

/// Returns the item with the configuration, in the scenario or in a file.
fn written<'a>(fields: &Fields<'a>, document: Option<&'a Document>) -> Option<Item<'a>> {
    match (fields.get("config"), fields.get("file")) {
        (Some(config), None) => Some(config),
        (None, Some(_)) => document.map(|document| Item::root(&document.root, &document.report)),
        (Some(_), Some(file)) => file.refuse("`config` is given too; keep one of the two"),
        (None, None) => fields.owner().refuse(
            "`config` or `file` is missing; write e.g. `file: tor.yaml`, or `config: {preset: roce, ports: [...]}`",
        ),
    }
}

/// Reads the settings that override the configuration, so that variants of a scenario can use one file in several ways.
fn read_overrides(fields: &Fields<'_>) -> Overrides {
    let lcores = fields.get("lcores").and_then(|item| item.number("a count of lcores", 1..=MAX_LCORES.into()));
    Overrides {
        pfc: None,
        buffer: bounds::get(fields, "buffer", SMALLEST_SIZE..=LARGEST_SIZE),
        headroom: fields.get("headroom").and_then(|item| item.choice(&HeadroomPolicy::WORDS)),
        lcores,
        simulated: true,
    }
}

fn read_poll(fields: &Fields<'_>) -> PollSpec {
    let Some(fields) = fields.get("poll").and_then(|item| item.fields(&["every", "frame", "shed", "jitter"])) else {
        return DEFAULT_POLL;
    };
    let frame = bounds::get(&fields, "frame", Nanos(0)..=LONGEST_FRAME).unwrap_or(DEFAULT_POLL.frame);
    PollSpec {
        every: bounds::get(&fields, "every", SHORTEST_POLL..=LONGEST_POLL).unwrap_or(DEFAULT_POLL.every),
        frame,
        shed: bounds::get(&fields, "shed", Nanos(0)..=frame).unwrap_or(Nanos(frame.0.div_ceil(SHED_PART))),
        jitter: bounds::get(&fields, "jitter", Nanos(0)..=LONGEST_POLL).unwrap_or(DEFAULT_POLL.jitter),
    }
}

/// Warns if polls can be further apart than the gap for which headroom is computed.
fn warn_of_gap(item: &Item<'_>, poll: PollSpec, gap: Nanos) {
    let latest = Nanos(poll.every.0.saturating_add(poll.jitter.0));
    if latest > gap {
        item.warn(format!(
            "polls come up to {latest} apart, and headroom is computed for {gap}; write `lcores: {{poll_gap: {latest}}}` in \
             the switch's configuration, or poll more often"
        ));
    }
}
