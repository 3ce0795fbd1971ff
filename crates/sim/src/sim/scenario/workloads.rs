//! Reads `workloads:`.

use std::path::{Path, PathBuf};

use super::cables::Cables;
use super::flows::{Hosts, read_hosts, read_sender};
use super::net::Net;
use super::patterns::{self, Ends};
use super::timing::Timing;
use super::{read_name, signals, transport};
use crate::config::yaml::names::Unique;
use crate::config::yaml::read::{Fields, Item, Report};
use crate::sim::spec::{FlowNode, FrameSizes, Load, MessageSize};
use crate::sim::workload::WorkloadNode;
use crate::units::{Bytes, Nanos};

/// Keys of the flows of a workload, which are those of flows.
const KEYS: &[&str] = &[
    "name",
    "sizes",
    "incast",
    "all_to_all",
    "all_reduce",
    "load",
    "size",
    "every",
    "times",
    "gap",
    "hosts",
    "from",
    "to",
    "kind",
    "rate",
    "frame",
    "dscp",
    "vlan",
    "pcp",
    "ecn",
    "start",
    "stop",
    "dcqcn",
    "cc",
    "base_rtt",
    "transport",
];
const EXAMPLE: &str = "`- {sizes: web-search, load: 50%}` for each workload";
const MOST: usize = 64;
/// Most senders of all workloads together: a bound of memory.
const MOST_SENDERS: usize = 65_536;

/// The parts of the scenario that workloads refer to.
pub struct Context<'a, 'b> {
    pub net: &'b Net<'a>,
    pub cables: &'b Cables,
    pub timing: &'b Timing,
    /// Directory of files; `None`: the scenario may name none.
    pub dir: Option<&'b Path>,
}

/// Reads all workloads.
pub fn read(item: Option<Item<'_>>, context: &Context<'_, '_>, report: &Report) -> Vec<WorkloadNode> {
    let is_whole = report.errors() == 0 && !context.net.has_unnamed;
    let items = item.as_ref().and_then(|item| item.list(EXAMPLE)).unwrap_or_default();
    if let Some(item) = item.filter(|_| items.len() > MOST) {
        item.fail(format!("{} workloads are too many; write at most {MOST}", items.len()));
        return Vec::new();
    }
    let (mut names, mut senders) = (Unique::new("name"), 0);
    let mut workloads = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let Some(fields) = item.fields_beside(KEYS, transport::NAME, transport::KEYS) else { continue };
        let Some(workload) = read_one(&fields, context, number, is_whole) else { continue };
        names.claim(&fields.get("name").unwrap_or_else(|| item.clone()), &workload.name);
        senders += workload.senders.len();
        if senders > MOST_SENDERS {
            item.fail(format!("the workloads have more than {MOST_SENDERS} senders together; remove some"));
            break;
        }
        workloads.push(workload);
    }
    workloads
}

/// Returns the files with tables of sizes that workloads name.
pub fn files(item: Option<Item<'_>>, dir: Option<&Path>) -> Vec<PathBuf> {
    let items = item.filter(Item::is_list).and_then(|item| item.list(EXAMPLE)).unwrap_or_default();
    let named = items.iter().filter(|item| item.has("sizes")).map(|item| item.child("sizes"));
    let named = named.filter(|sizes| sizes.has("file")).map(|sizes| sizes.child("file").shown());
    dir.map(|dir| named.map(|name| dir.join(name)).collect()).unwrap_or_default()
}

fn read_one(fields: &Fields<'_>, context: &Context<'_, '_>, number: usize, is_whole: bool) -> Option<WorkloadNode> {
    let kind = patterns::kind(fields)?;
    let name = match fields.get("name") {
        Some(item) => read_name(&item),
        None => Some(format!("{}-{}", kind.name(), number + 1)),
    };
    let ends = read_ends(fields, context.net, kind.has_hosts())?;
    let mut senders = ends.from.clone();
    senders.sort_unstable();
    // The last frame of a flow may be short, as that of any message.
    let load = Load::Messages { size: MessageSize::Fixed(Bytes(1)), every: Nanos(1), poisson: false, count: Some(1) };
    let read = |from| Some(FlowNode { load, ..read_sender(fields, context.net, context.timing, from)? });
    let senders: Option<Vec<FlowNode>> = senders.into_iter().map(read).collect();
    let senders = senders?;
    let first = senders.first()?;
    check_frames(fields, first)?;
    check_class(fields, &senders)?;
    let between = signals::Between { from: &ends.from, to: &ends.to };
    signals::check(fields, context.net, context.cables, between, first);
    if is_whole {
        check_paths(fields, context, &ends)?;
    }
    let (start, stop) = (first.start, first.stop);
    let pattern = kind.read(fields, context, &ends);
    Some(WorkloadNode { name: name?, pattern: pattern?, start, stop, senders })
}

/// Reads the senders and the receivers, which are the same for a pattern of `hosts`. All hosts are the default.
fn read_ends(fields: &Fields<'_>, net: &Net<'_>, has_hosts: bool) -> Option<Ends> {
    let (own, foreign): (&[&str], &[&str]) =
        if has_hosts { (&["hosts"], &["from", "to"]) } else { (&["from", "to"], &["hosts"]) };
    for item in foreign.iter().filter_map(|key| fields.get(key)) {
        item.fail(format!("has no effect on this pattern; write `{}` instead", own.join("` and `")));
    }
    let read = |key: &str| match fields.get(key) {
        None => Some((0..net.hosts.len()).collect()),
        Some(item) => read_hosts(&item, net).map(|Hosts { hosts, .. }| hosts),
    };
    let ends = if has_hosts {
        let hosts: Vec<usize> = read("hosts")?;
        Ends { from: hosts.clone(), to: hosts }
    } else {
        Ends { from: read("from")?, to: read("to")? }
    };
    let has_pair = ends.from.iter().any(|from| ends.to.iter().any(|to| from != to));
    has_pair.then_some(ends).or_else(|| {
        let item = fields.get(own[0]).unwrap_or_else(|| fields.owner().clone());
        item.refuse("a workload needs two hosts, of which one sends to the other; write more hosts")
    })
}

/// Checks that the frames have one length, with room for data.
fn check_frames(fields: &Fields<'_>, flow: &FlowNode) -> Option<()> {
    let item = fields.get("frame").unwrap_or_else(|| fields.owner().clone());
    let FrameSizes::Fixed(len) = flow.frames else {
        return item.refuse("flows of a workload have frames of one length; write e.g. `frame: 1078`");
    };
    let headers = flow.header_bytes();
    if u64::from(len) > headers {
        return Some(());
    }
    item.refuse(format!("a frame of {len} B has no room behind {headers} B of headers; write at least {}", headers + 1))
}

/// Checks that the class of the frames is lossless for all senders or for none, so that the sums have one verdict.
fn check_class(fields: &Fields<'_>, senders: &[FlowNode]) -> Option<()> {
    if senders.iter().all(|flow| flow.lossless == senders[0].lossless) {
        return Some(());
    }
    let item = fields.get("dscp").unwrap_or_else(|| fields.owner().clone());
    item.refuse("the class is lossless for some senders and lossy for others; write a workload for each kind")
}

/// Checks that cables lead from each sender to each receiver.
fn check_paths(fields: &Fields<'_>, context: &Context<'_, '_>, ends: &Ends) -> Option<()> {
    let net = context.net;
    let switch = |host: usize| net.hosts[host].at.map(|at| at.switch);
    let first = ends.from[0];
    let is_apart = |host: &&usize| match (switch(first), switch(**host)) {
        (Some(a), Some(b)) => !context.cables.connect(a, b),
        _ => false,
    };
    match ends.from.iter().chain(&ends.to).find(is_apart) {
        None => Some(()),
        Some(&host) => {
            let [a, b] = [first, host].map(|host| net.hosts[host].node.name.as_str());
            fields.owner().refuse(format!("no cable leads from {a} to {b}; write one under `links`"))
        }
    }
}
