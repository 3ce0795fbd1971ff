//! `mirrors:` of the configuration: copies of dropped, marked and sampled frames to ports and files.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::draft::{Class, Port, Sflow};
use super::faults::numbers;
use crate::config::keys::Key;
use crate::config::yaml::bounds;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::forward::VlanMode;
use crate::mirror::{Destination, Failing, FileConfig, MOST_FILES, MirrorConfig, Target};
use crate::plan::drops::DropReason;
use crate::plan::mirror::{MirrorSession, MirrorSpec, ReasonSet};
use crate::sets::{CLASSES, ClassSet, PortSet};
use crate::units::Bytes;

pub const KEYS: &[Key] = &[
    Key::new("name", "required", "as of ports; not `sflow-drops`, `sflow-marks`, `sflow-samples`", "of the session"),
    Key::new("copy", "none", "`dropped` `marked`, or a list", "events; this, `sample` or both are necessary"),
    Key::new("sample", "none", "1 to 1,000,000,000", "one of so many received frames"),
    Key::new("reasons", "all", "[labels](metrics.md#drops), one or a list", "of dropped frames; needs `copy: dropped`"),
    Key::new("ports", "all but outputs", "one or a list", "ports or groups that received the frame"),
    Key::new("classes", "all", "0 to 7, one or a list", "traffic classes"),
    Key::new("bytes", "file: 128; port: the largest MTU + 18", "64 to 9216", "bytes of each frame"),
    Key::new("rate", "1000", "1 to 100,000", "most copies in a second, by each lcore for each kind of event and class"),
    Key::new("to", "required", "`port` or `file`", "destination"),
];
pub const TO_KEYS: &[Key] = &[
    Key::new(
        "port",
        "",
        "a port in no group, without `vlan` and interface",
        "sends copies only; without `pfc`, its PFC is off",
    ),
    Key::new("trailer", "`true`", "`true` `false`", "a line with event and state follows the frame"),
    Key::new("file", "", "absolute path without `.` and `..`, e.g. `/var/log/holdfast/drops.pcapng`", "pcapng file"),
    Key::new("size", "`64MiB`", "`64KiB` to `1024GiB`", "size at which the next file begins"),
    Key::new("files", "2", "1 to 100", "files kept"),
];
const EXAMPLE: &str = "`- {name: losses, copy: dropped, to: {file: /var/log/holdfast/drops.pcapng}}` for each mirror";
const TO_EXAMPLE: &str = "{port: mon} or {file: /var/log/holdfast/drops.pcapng}";

/// Most mirrors. Sessions of sFlow come beside them.
const MOST_MIRRORS: usize = 8;
/// Largest `sample`.
pub(super) const MOST_FRAMES: u64 = 1_000_000_000;
/// Highest rate of copies of an lcore.
pub(super) const MOST_COPIES: u64 = 100_000;
/// Bytes of a frame that a file gets.
const FILE_BYTES: u16 = 128;
/// Bytes of a frame beside its MTU: Ethernet header and a tag.
const AROUND: u16 = 18;
const SIZES: std::ops::RangeInclusive<Bytes> = Bytes(64 << 10)..=Bytes(1 << 40);
const DEFAULT_SIZE: Bytes = Bytes(64 << 20);
const DEFAULT_FILES: u8 = 2;
/// Longest path in bytes. The kernel allows 4,095, with the number of an older file.
const LONGEST_PATH: usize = 4_000;

/// Names of the sessions that sFlow adds, in their order.
pub(super) const SFLOW_NAMES: [&str; 3] = ["sflow-drops", "sflow-marks", "sflow-samples"];

/// The mirrors, and the ports that they send to.
#[derive(Debug, Default)]
pub struct Mirrors {
    sessions: Vec<(MirrorSession, Target)>,
    outputs: PortSet,
}

impl Mirrors {
    /// Refuses outputs of a switch whose classes are all lossless: copies must not hold up such classes.
    pub fn check(&self, item: Option<Item<'_>>, classes: &[Class<'_>; CLASSES]) {
        if let Some(item) = item.filter(|_| !self.outputs.is_empty())
            && classes.iter().all(|class| class.settings.lossless)
        {
            item.fail("all classes are lossless, and copies need a lossy one at a port; write copies to a file");
        }
    }
}

/// The paths of files so far, each with the mirror that writes it.
type Paths = HashMap<PathBuf, String>;

/// Reads `mirrors:`, and makes the ports that they name outputs.
pub fn read(item: Option<Item<'_>>, ports: &mut [Port<'_>]) -> Mirrors {
    let Some((list, items)) = item.and_then(|list| Some((list.clone(), list.list(EXAMPLE)?))) else {
        return Mirrors::default();
    };
    if items.len() > MOST_MIRRORS {
        list.fail(format!("{} mirrors are too many; write at most {MOST_MIRRORS}", items.len()));
        return Mirrors::default();
    }
    let (mut seen, mut paths, mut outputs) = (Unique::new("name"), Paths::new(), PortSet::EMPTY);
    let mut drafts = Vec::new();
    for fields in items.iter().filter_map(|item| item.fields(KEYS)) {
        let name = read_name(&fields, &mut seen);
        let to = read_to(&fields, ports, &mut paths);
        if let Some(Destination::Port { port, .. }) = &to {
            outputs.insert(usize::from(*port));
        }
        drafts.push((fields, name, to));
    }
    outputs.iter().for_each(|index| make_output(&mut ports[index]));
    let sessions = drafts.into_iter().filter_map(|(fields, name, to)| {
        let session = read_session(&fields, to.as_ref(), ports, outputs);
        Some((session?, Target { name: name?, to: to? }))
    });
    Mirrors { sessions: sessions.collect(), outputs }
}

fn read_name(fields: &Fields<'_>, seen: &mut Unique) -> Option<String> {
    let name = names::read(fields, "name: losses", seen)?;
    if SFLOW_NAMES.contains(&name.as_str()) || name == Failing::SFLOW {
        return fields.get("name")?.refuse(format!("`{name}` stands for a part of `sflow`; write another"));
    }
    Some(name)
}

/// A port that sends copies has no VLAN, and no PFC unless it is written: it is lossy, so that its peer holds nothing.
fn make_output(port: &mut Port<'_>) {
    port.is_output = true;
    if port.item.has("vlan") {
        port.item.child("vlan").fail(format!("port `{}` sends copies only (`mirrors`); remove `vlan`", port.name));
    }
    port.vlan = VlanMode::Trunk { tagged: Vec::new(), native: None };
    if !port.item.has("pfc") && port.pfc.sends_frames() {
        port.pfc = crate::pfc::PfcMode::Off;
    }
}

fn read_to(fields: &Fields<'_>, ports: &[Port<'_>], paths: &mut Paths) -> Option<Destination> {
    let item = fields.required("to", "to: {file: /var/log/holdfast/drops.pcapng}")?;
    if !item.is_map() {
        return item.refuse(format!("`{}` is not a destination; write {TO_EXAMPLE}", item.shown()));
    }
    let to = item.fields(TO_KEYS)?;
    let (kind, others) = match (to.get("port"), to.get("file")) {
        (None, None) => return item.refuse(format!("`to` names neither port nor file; write {TO_EXAMPLE}")),
        (Some(_), Some(file)) => return file.refuse("`port` is given too; write a mirror for each of the two"),
        (Some(_), None) => ("port", ["size", "files"].as_slice()),
        (None, Some(_)) => ("file", ["trailer"].as_slice()),
    };
    for (key, other) in others.iter().filter_map(|key| Some((*key, to.get(key)?))) {
        other.fail(format!("a {kind} has no `{key}`; remove it"));
    }
    match kind {
        "port" => {
            let has_trailer = to.get("trailer").map_or(Some(true), |item| item.flag());
            let port = read_output(&to.get("port")?, ports)?;
            Some(Destination::Port { port, has_trailer: has_trailer? })
        }
        _ => read_file(&to, fields, paths).map(Destination::File),
    }
}

/// The port that sends the copies.
fn read_output(item: &Item<'_>, ports: &[Port<'_>]) -> Option<u8> {
    let name = item.shown();
    let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let Some(index) = known.iter().position(|known| *known == name) else {
        if ports.iter().filter_map(|port| port.lag.as_ref()).any(|(group, _)| *group == name) {
            return item.refuse(format!("`{name}` is a link aggregation group; write a port that is in no group"));
        }
        return item.refuse(format!("there is no port `{name}`; {}", names::suggest(&name, &known)));
    };
    if let Some((group, _)) = &ports[index].lag {
        return item.refuse(format!("port `{name}` is a member of `{group}`; write another port, or remove it there"));
    }
    u8::try_from(index).ok()
}

fn read_file(to: &Fields<'_>, mirror: &Fields<'_>, paths: &mut Paths) -> Option<FileConfig> {
    let item = to.get("file")?;
    let path = read_path(&item);
    let size = to.get("size").map_or(Some(DEFAULT_SIZE), |item| bounds::within(&item, SIZES));
    let files =
        to.get("files").map_or(Some(DEFAULT_FILES), |item| item.number("a number of files", 1..=MOST_FILES.into()));
    let file = FileConfig { path: path?, size: size?, files: files? };
    let owner = mirror.owner().child("name").owner_path();
    for path in file.paths() {
        if let Some(other) = paths.get(&path) {
            let shown = path.display();
            return item.refuse(format!("`{shown}` is a file of {other} already; write another path"));
        }
        paths.insert(path, owner.clone());
    }
    Some(file)
}

fn read_path(item: &Item<'_>) -> Option<PathBuf> {
    let text = item.text("a path; write e.g. /var/log/holdfast/drops.pcapng")?;
    let path = Path::new(text);
    if !path.is_absolute() {
        let shown = item.shown();
        return item.refuse(format!("`{shown}` is not an absolute path; write e.g. /var/log/holdfast/drops.pcapng"));
    }
    if text.len() > LONGEST_PATH {
        return item.refuse(format!("the path has {} bytes; write at most {LONGEST_PATH}", text.len()));
    }
    let is_folder = path.file_name().is_none() || text.ends_with('/') || text.ends_with("/.");
    if is_folder || text.contains(char::is_control) {
        let shown = item.shown();
        return item.refuse(format!("`{shown}` is not the path of a file; write e.g. /var/log/holdfast/drops.pcapng"));
    }
    if text.split('/').any(|part| part == "." || part == "..") {
        return item.refuse(format!("`{}` has a part `.` or `..`; write the path without it", item.shown()));
    }
    Some(path.to_owned())
}

/// Reads the frames that a mirror copies.
fn read_session(
    fields: &Fields<'_>,
    to: Option<&Destination>,
    ports: &[Port<'_>],
    outputs: PortSet,
) -> Option<MirrorSession> {
    let (copy, sample) = (fields.get("copy"), fields.get("sample"));
    if copy.is_none() && sample.is_none() {
        return fields.owner().refuse("the mirror copies nothing; write e.g. `copy: dropped`, or `sample: 1000`");
    }
    let copied = copy.as_ref().map_or(Some((false, false)), read_copy);
    let sample = sample.map_or(Some(0), |item| item.number("a number of frames", 1..=MOST_FRAMES));
    let reasons = fields.get("reasons");
    if let (Some(item), Some((false, _))) = (&reasons, copied) {
        item.fail("without `dropped` in `copy` no frame has a reason; remove it, or write `copy: dropped`");
    }
    let reasons = reasons.map_or(Some(ReasonSet::ALL), |item| read_reasons(&item));
    let from = fields.get("ports").map_or(Some(!outputs), |item| read_ports(&item, ports));
    let classes = fields.get("classes").map_or(Some(ClassSet::ALL), |item| numbers(&item, "a class"));
    let rate = fields.get("rate").map_or(Some(1000), |item| item.number("a rate of copies", 1..=MOST_COPIES));
    let written = fields.get("bytes");
    let bytes = match &written {
        Some(item) => item.number("a number of bytes", 64..=9216),
        None => Some(default_bytes(to, ports)),
    };
    if let (Some(Destination::Port { port, .. }), Some(bytes)) = (to, bytes) {
        warn_of_mtu(written.as_ref().unwrap_or(fields.owner()), &ports[usize::from(*port)], bytes, ports);
    }
    let (dropped, marked) = copied?;
    Some(MirrorSession {
        dropped,
        marked,
        sample: sample?,
        reasons: reasons?,
        ports: from?,
        classes: classes?,
        bytes: bytes?,
        rate: rate?,
    })
}

/// The longest frame of the ports that are no outputs.
fn longest(ports: &[Port<'_>]) -> u16 {
    ports.iter().filter(|port| !port.is_output).map(|port| port.mtu).max().unwrap_or(0) + AROUND
}

/// A port gets whole frames, a file their headers.
fn default_bytes(to: Option<&Destination>, ports: &[Port<'_>]) -> u16 {
    if matches!(to, Some(Destination::Port { .. })) { longest(ports).max(64) } else { FILE_BYTES }
}

/// Warns of copies that are longer than the frames that their output may send.
fn warn_of_mtu(item: &Item<'_>, output: &Port<'_>, bytes: u16, ports: &[Port<'_>]) {
    let most = longest(ports);
    if bytes.min(most) > output.mtu + AROUND {
        item.warn(format!(
            "port `{}` has an MTU of {}, so copies of longer frames do not fit; write `mtu: {}` there, or `bytes: {}` \
             here",
            output.name,
            output.mtu,
            most - AROUND,
            output.mtu + AROUND
        ));
    }
}

/// The items of a list, or the value itself as its only one. `example` is a list.
fn each<'a>(item: &Item<'a>, example: &str) -> Option<Vec<Item<'a>>> {
    if !item.is_list() {
        return Some(vec![item.clone()]);
    }
    let items = item.list(example)?;
    if items.is_empty() { item.refuse(format!("the list is empty; write e.g. `{example}`")) } else { Some(items) }
}

/// Whether dropped and marked frames are copied.
fn read_copy(item: &Item<'_>) -> Option<(bool, bool)> {
    let words: Vec<Option<usize>> = each(item, "[dropped, marked]")?
        .iter()
        .map(|item| {
            if item.is("sampled") {
                return item.refuse("`sampled` is no event to copy; write `sample: 1000` for one of so many frames");
            }
            item.choice(&[("dropped", 0), ("marked", 1)])
        })
        .collect();
    let words: Vec<usize> = words.into_iter().collect::<Option<_>>()?;
    Some((words.contains(&0), words.contains(&1)))
}

fn read_reasons(item: &Item<'_>) -> Option<ReasonSet> {
    let labels: Vec<&str> = DropReason::TABLE.iter().map(|(_, label, _)| *label).collect();
    let read = |item: &Item<'_>| {
        let text = item.shown();
        let found = DropReason::TABLE.iter().find(|(_, label, _)| *label == text);
        match found {
            Some((reason, ..)) => Some(*reason),
            None => item.refuse(format!("`{text}` is not a drop reason; {}", names::suggest(&text, &labels))),
        }
    };
    let reasons: Vec<Option<DropReason>> = each(item, "[threshold, pool_empty]")?.iter().map(read).collect();
    let mut set = ReasonSet::EMPTY;
    for reason in reasons {
        set.insert(reason?);
    }
    Some(set)
}

/// The ports that received the frames. A group stands for its members.
fn read_ports(item: &Item<'_>, ports: &[Port<'_>]) -> Option<PortSet> {
    let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let read = |item: &Item<'_>| -> Option<PortSet> {
        let name = item.shown();
        let is_named =
            |port: &Port<'_>| port.name == name || port.lag.as_ref().is_some_and(|(group, _)| *group == name);
        let named: PortSet = (0..ports.len()).filter(|&index| is_named(&ports[index])).collect();
        if named.is_empty() {
            return item.refuse(format!("there is no port `{name}`; {}", names::suggest(&name, &known)));
        }
        if named.iter().any(|index| ports[index].is_output) {
            return item.refuse(format!("port `{name}` sends copies only, and receives no frame to copy; remove it"));
        }
        Some(named)
    };
    let sets: Vec<Option<PortSet>> = each(item, "[p1, p2]")?.iter().map(read).collect();
    let mut all = PortSet::EMPTY;
    for set in sets {
        all |= set?;
    }
    Some(all)
}

/// The sessions of the switch and their destinations: the mirrors, and behind them those of sFlow. A simulated switch
/// has none, and its outputs forward nothing either.
pub fn assemble(mirrors: Mirrors, sflow: Option<Sflow>, is_simulated: bool) -> (MirrorSpec, MirrorConfig) {
    let outputs = mirrors.outputs;
    if is_simulated {
        return (MirrorSpec { outputs, ..MirrorSpec::default() }, MirrorConfig::default());
    }
    let (mut spec, mut config) = (MirrorSpec { outputs, ..MirrorSpec::default() }, MirrorConfig::default());
    let own = sflow.as_ref().map(|sflow| sflow.sessions(!outputs)).into_iter().flatten();
    for (session, target) in mirrors.sessions.into_iter().chain(own) {
        if target.to == Destination::Sflow {
            spec.sflow.insert(spec.sessions.len());
        }
        spec.sessions.push(session);
        config.targets.push(target);
    }
    config.sflow = sflow.map(|sflow| sflow.config);
    if !spec.sessions.is_empty() {
        spec.id = id(&spec, &config);
    }
    (spec, config)
}

/// A number that differs between sessions or destinations that differ; never zero.
fn id(spec: &MirrorSpec, config: &MirrorConfig) -> u32 {
    let mut hasher = DefaultHasher::new();
    (&spec.sessions, config).hash(&mut hasher);
    let hash = hasher.finish();
    ((hash ^ (hash >> 32)) as u32).max(1)
}
