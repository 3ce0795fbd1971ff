//! Reads the pattern of a workload: its kind, and the sizes and times of its flows.

use super::workloads::Context;
use crate::config::error::ConfigErrors;
use crate::config::overrides::read_text;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item, one_of};
use crate::config::yaml::share::per_million;
use crate::sim::workload::sizes::{LARGEST, SizeCdf};
use crate::sim::workload::{AllReduce, AllReduceShape, AllToAll, Distribution, Incast, Pattern, Poisson};
use crate::units::{Bytes, Nanos};

/// Each kind, with the keys that only this kind has beside others that have them too.
const KINDS: &[(&str, Kind, &[&str])] = &[
    ("sizes", Kind::Poisson, &["load"]),
    ("incast", Kind::Incast, &[]),
    ("all_to_all", Kind::AllToAll, &["every", "times"]),
    ("all_reduce", Kind::AllReduce, &["size", "gap", "times"]),
];
const KEYS: &[&str] = &["load", "size", "every", "times", "gap"];
const SHORTEST: Nanos = Nanos(100);
const LONGEST: Nanos = Nanos(10_000_000_000);
const MOST_TIMES: u64 = 1 << 32;
/// Most hosts of an all-to-all, which all send to all others at once.
const MOST_AT_ONCE: usize = 512;
const WHOLE: u128 = 1_000_000;
/// Picoseconds that a bit takes at 1 bit/s, and bits of a byte.
const BYTE_PS: u128 = 8_000_000_000_000;

/// The hosts of a workload: in the order of a ring or a tree.
pub struct Ends {
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

/// Kinds of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Poisson,
    Incast,
    AllToAll,
    AllReduce,
}

/// Reads the kind. Reports keys that belong to another one.
pub fn kind(fields: &Fields<'_>) -> Option<Kind> {
    let mut written = KINDS.iter().filter_map(|(key, kind, own)| Some((*key, *kind, *own, fields.get(key)?)));
    let Some((name, kind, own, _)) = written.next() else {
        let kinds: Vec<&str> = KINDS.iter().map(|(key, ..)| *key).collect();
        return fields.owner().refuse(format!("the workload has no pattern; write {}", one_of(&kinds)));
    };
    if let Some((.., other)) = written.next() {
        return other.refuse(format!("`{name}` is given too; write one workload for each"));
    }
    for item in KEYS.iter().filter(|key| !own.contains(key)).filter_map(|key| fields.get(key)) {
        item.fail(format!("has no effect on `{name}`; remove it"));
    }
    Some(kind)
}

impl Kind {
    /// Name of a workload without one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Incast => "incast",
            Self::AllToAll => "all-to-all",
            Self::AllReduce => "all-reduce",
        }
    }

    /// Whether its senders are its receivers.
    pub fn has_hosts(self) -> bool {
        matches!(self, Self::AllToAll | Self::AllReduce)
    }

    /// Reads the pattern between `ends`.
    pub fn read(self, fields: &Fields<'_>, context: &Context<'_, '_>, ends: &Ends) -> Option<Pattern> {
        match self {
            Self::Poisson => read_poisson(fields, context, ends).map(Pattern::Poisson),
            Self::Incast => read_incast(&fields.get("incast")?, context, ends).map(Pattern::Incast),
            Self::AllToAll => read_all_to_all(fields, ends).map(Pattern::AllToAll),
            Self::AllReduce => read_all_reduce(fields, ends).map(Pattern::AllReduce),
        }
    }
}

/// Returns the mean time between flows of `bytes` that are `load` millionths of `rate` bit/s, in picoseconds.
fn gap_ps(bytes: u64, load: u32, rate: u128) -> u64 {
    let ps = u128::from(bytes) * BYTE_PS * WHOLE / (rate.max(1) * u128::from(load.max(1)));
    u64::try_from(ps).unwrap_or(u64::MAX).max(1)
}

/// Rate of the link of a host, in bit/s.
fn rate(context: &Context<'_, '_>, host: usize) -> u128 {
    let at = context.net.hosts[host].at;
    at.and_then(|at| context.net.spec(at)).map_or(1, |port| port.rate.0.into())
}

fn read_load(item: &Item<'_>) -> Option<u32> {
    per_million(&item.shown()).or_else(|| {
        item.refuse(format!("`{}` is not a load; write a percentage from 0.0001% to 100%, e.g. 50%", item.shown()))
    })
}

fn read_poisson(fields: &Fields<'_>, context: &Context<'_, '_>, ends: &Ends) -> Option<Poisson> {
    let sizes = read_sizes(&fields.get("sizes")?, context);
    let load = fields.required("load", "load: 50%").and_then(|item| read_load(&item));
    let (sizes, load) = (sizes?, load?);
    let mean = sizes.mean();
    // A host that is the only receiver has none itself.
    let sends = |from: &&usize| ends.to.iter().any(|to| to != *from);
    let senders = ends.from.iter().filter(sends).map(|&from| (from, gap_ps(mean, load, rate(context, from))));
    let mut receivers = ends.to.clone();
    receivers.sort_unstable();
    Some(Poisson { sizes, senders: senders.collect(), receivers })
}

/// Reads a distribution: its name, a size, or a table in a file or in place.
fn read_sizes(item: &Item<'_>, context: &Context<'_, '_>) -> Option<SizeCdf> {
    if let Some((_, known)) = Distribution::NAMES.iter().find(|(name, _)| item.is(name)) {
        return Some(known.cdf());
    }
    if !item.is_map() {
        let size = item.shown().parse::<Bytes>().ok().filter(|size| (Bytes(1)..=LARGEST).contains(size));
        return size.map(SizeCdf::fixed).or_else(|| {
            let names: Vec<&str> = Distribution::NAMES.iter().map(|(name, _)| *name).collect();
            let known = one_of(&names);
            item.refuse(format!(
                "`{}` is not a distribution; write {known}, a size like `64kB`, or `{{file: sizes.txt}}`",
                item.shown()
            ))
        });
    }
    let fields = item.fields(&["file", "table"])?;
    match (fields.get("file"), fields.get("table")) {
        (Some(file), None) => read_file(&file, context),
        (None, Some(table)) => {
            let text = table.text("a table; write bytes and percentages, e.g. `0 0 1000 50 9000 100`")?;
            SizeCdf::parse("the table", text).map_err(|errors| refuse(&table, &errors)).ok()
        }
        (Some(_), Some(table)) => table.refuse("`file` is given too; keep one of the two"),
        (None, None) => item.refuse("`file` is missing; write e.g. `file: sizes.txt`"),
    }
}

/// Reads a table of HPCC's traffic generator.
fn read_file(item: &Item<'_>, context: &Context<'_, '_>) -> Option<SizeCdf> {
    let name = item.text("a path; write e.g. `sizes.txt`")?;
    let Some(dir) = context.dir else {
        return item.refuse("a scenario that is not in a file cannot refer to files; write `table:` instead");
    };
    let path = dir.join(name);
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(errors) => {
            let reasons: Vec<String> = errors.iter().map(|error| error.message.clone()).collect();
            return item.refuse(format!("`{}` {}", item.shown(), reasons.join("; ")));
        }
    };
    SizeCdf::parse(&path.display().to_string(), &text).map_err(|errors| item.report().fail(&errors)).ok()
}

/// Reports errors in a table at `item`, which has the text.
fn refuse(item: &Item<'_>, errors: &ConfigErrors) {
    for error in errors.iter() {
        let place = error.place.map_or(String::new(), |place| format!("character {}: ", place.column));
        item.fail(format!("{place}{}", error.message));
    }
}

fn read_incast(item: &Item<'_>, context: &Context<'_, '_>, ends: &Ends) -> Option<Incast> {
    let fields = item.fields(&["senders", "size", "every", "load", "poisson", "times"])?;
    let size = bounds::required(&fields, "size", "size: 64kB", Bytes(1)..=LARGEST);
    let most = ends.from.len() as u64;
    let count = fields.required("senders", "senders: 16").and_then(|item| item.number("a count of senders", 1..=most));
    let times = read_times(&fields);
    let poisson = fields.get("poisson").and_then(|item| item.flag()).unwrap_or(false);
    let (count, bytes): (usize, Bytes) = (count?, size?);
    let every_ps = match (fields.get("every"), fields.get("load")) {
        (Some(every), None) => bounds::within(&every, SHORTEST..=LONGEST)?.0 * 1000,
        (None, Some(load)) => {
            let sum = ends.from.iter().map(|host| rate(context, *host)).sum();
            gap_ps(bytes.0.saturating_mul(count as u64), read_load(&load)?, sum)
        }
        (Some(_), Some(load)) => return load.refuse("`every` is given too; keep one of the two"),
        // A single incast has no next one.
        (None, None) if times == Some(1) => LONGEST.0 * 1000,
        (None, None) => return item.refuse("`every` is missing; write e.g. `every: 500us`, `load: 5%` or `times: 1`"),
    };
    for &to in &ends.to {
        let others = ends.from.iter().filter(|from| **from != to).count();
        if others < count {
            let name = &context.net.hosts[to].node.name;
            let place = fields.get("senders").unwrap_or_else(|| item.clone());
            return place
                .refuse(format!("{others} hosts can send to {name}; write at most {others}, or another `from`"));
        }
    }
    Some(Incast { senders: ends.from.clone(), count, receivers: ends.to.clone(), bytes, every_ps, poisson, times })
}

fn read_times(fields: &Fields<'_>) -> Option<u64> {
    fields.get("times").and_then(|item| item.number("a count of times", 1..=MOST_TIMES))
}

fn read_all_to_all(fields: &Fields<'_>, ends: &Ends) -> Option<AllToAll> {
    let bytes = bounds::required(fields, "all_to_all", "all_to_all: 1MB", Bytes(1)..=LARGEST);
    let every = bounds::get(fields, "every", SHORTEST..=LONGEST);
    let times = read_times(fields).or(every.is_none().then_some(1));
    if let (None, Some(item), Some(2..)) = (every, fields.get("times"), times) {
        return item.refuse("`every` is missing; write e.g. `every: 1ms`, or `times: 1`");
    }
    if ends.from.len() > MOST_AT_ONCE {
        let count = ends.from.len();
        let item = fields.get("hosts").unwrap_or_else(|| fields.owner().clone());
        return item
            .refuse(format!("{count} hosts would all send to each other at once; write at most {MOST_AT_ONCE}"));
    }
    Some(AllToAll { hosts: ends.from.clone(), bytes: bytes?, every: every.unwrap_or(LONGEST), times })
}

fn read_all_reduce(fields: &Fields<'_>, ends: &Ends) -> Option<AllReduce> {
    let choices = [("ring", AllReduceShape::Ring), ("tree", AllReduceShape::Tree)];
    let shape = fields.get("all_reduce").and_then(|item| item.choice(&choices));
    let bytes = bounds::required(fields, "size", "size: 1MB", Bytes(1)..=LARGEST);
    let gap = bounds::get(fields, "gap", Nanos(0)..=LONGEST).unwrap_or(Nanos(0));
    let times = Some(read_times(fields).unwrap_or(1));
    Some(AllReduce { shape: shape?, hosts: ends.from.clone(), bytes: bytes?, gap, times })
}
