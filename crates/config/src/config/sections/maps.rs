//! `maps:` of the switch and of a port, `rewrite` of a port, and the check that PFC works with them.

use super::classes::{GROUP_KEYS, QUEUE_KEYS};
use super::draft::{Class, Port};
use crate::config::keys::Key;
use crate::config::yaml::range::IdRange;
use crate::config::yaml::read::{Fields, Item};
use crate::qos::{ClassMap, MarkMap, Rewrite, RoceMap, Trust};
use crate::sets::{CLASSES, ClassSet};

pub const KEYS: &[Key] = &[
    Key::new("dscp", "DSCP / 8", "", "DSCP to class: `{26: 3, 46-47: 5}`"),
    Key::new("pcp", "same number", "", "PCP to class: `{4: 5}`"),
    Key::new("tc_to_group", "same number", "", "class to priority group, its PFC priority: `{4: 3}`"),
    Key::new("tc_to_queue", "same number", "", "class to queue: `{4: 3}`"),
    Key::new("pfc_to_queue", "same number", "", "received PFC priority to stopped queue: `{4: 3}`"),
    Key::new("tc_to_dscp", "none", "", "class to DSCP, for `rewrite: dscp`: `{3: 26}`"),
    Key::new("tc_to_pcp", "none", "", "class to PCP of tagged frames, for `rewrite: pcp`: `{3: 3}`"),
    Key::new(
        "roce",
        "none",
        "",
        "class of [RoCE packets without data](#rocev2-acknowledgements-and-cnps): `{ack: 6, cnp: 6}`; `off` for one \
         of them, or for both (`roce: off`)",
    ),
];
const PORT_KEYS: &[&str] = &["dscp", "pcp", "roce"];
const ROCE_KEYS: &[&str] = &["ack", "cnp"];

/// A kind of number: its name in error messages, and its highest value.
type MapKind = (&'static str, u16);

const DSCP: MapKind = ("a DSCP", 63);
const PCP: MapKind = ("a PCP", 7);
const CLASS: MapKind = ("a class", 7);
const GROUP: MapKind = ("a group", 7);
const QUEUE: MapKind = ("a queue", 7);
const PRIORITY: MapKind = ("a priority", 7);

/// The items in the file of the eight entries of a map.
type Items<'a> = [Option<Item<'a>>; CLASSES];

/// `maps:` as written; entries that are not written are one to one, and DSCPs map by their class selectors.
pub struct Maps<'a> {
    pub marks: MarkMap,
    pub classes: ClassMap,
    /// The tables that `rewrite` of a port chooses from.
    tables: Rewrite,
    fields: Option<Fields<'a>>,
    groups: Items<'a>,
    queues: Items<'a>,
    pauses: Items<'a>,
}

/// Reads `maps:` of the switch.
pub fn read(item: Option<Item<'_>>) -> Maps<'_> {
    let fields = item.and_then(|item| item.fields(KEYS));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let mut classes = ClassMap::identity();
    let mut tables = Rewrite::default();
    for (class, dscp, _) in read_map(get("tc_to_dscp"), "e.g. `{3: 26}`", CLASS, DSCP) {
        tables.dscp[class] = Some(dscp);
    }
    for (class, pcp, _) in read_map(get("tc_to_pcp"), "e.g. `{3: 3}`", CLASS, PCP) {
        tables.pcp[class] = Some(pcp);
    }
    Maps {
        groups: read_eight(get("tc_to_group"), CLASS, GROUP, &mut classes.tc_to_group),
        queues: read_eight(get("tc_to_queue"), CLASS, QUEUE, &mut classes.tc_to_queue),
        pauses: read_eight(get("pfc_to_queue"), PRIORITY, QUEUE, &mut classes.pfc_to_queue),
        marks: read_marks(fields.as_ref(), &MarkMap::identity()),
        classes,
        tables,
        fields,
    }
}

/// Reads `maps:` of a port; entries that are not written are those of the switch.
pub fn read_of_port(item: Option<Item<'_>>, maps: &Maps<'_>) -> MarkMap {
    read_marks(item.and_then(|item| item.fields(PORT_KEYS)).as_ref(), &maps.marks)
}

fn read_marks(fields: Option<&Fields<'_>>, over: &MarkMap) -> MarkMap {
    let get = |key| fields.and_then(|fields| fields.get(key));
    let mut marks = over.clone();
    for (dscp, class, _) in read_map(get("dscp"), "e.g. `{26: 3}`", DSCP, CLASS) {
        marks.dscp_to_tc[dscp] = class;
    }
    for (pcp, class, _) in read_map(get("pcp"), "e.g. `{4: 5}`", PCP, CLASS) {
        marks.pcp_to_tc[pcp] = class;
    }
    if get("roce").is_some_and(|item| item.is("off")) {
        marks.roce = RoceMap::default();
    } else if let Some(fields) = get("roce").and_then(|item| read_roce(&item)) {
        for (key, class) in ROCE_KEYS.iter().zip([&mut marks.roce.ack, &mut marks.roce.cnp]) {
            if let Some(item) = fields.get(key) {
                *class = if item.is("off") { None } else { item.number(CLASS.0, 0..=u64::from(CLASS.1)) };
            }
        }
    }
    marks
}

fn read_roce<'a>(item: &Item<'a>) -> Option<Fields<'a>> {
    if !item.is_map() {
        let remedy = "write e.g. `{ack: 6, cnp: 6}`, or `off` for both";
        return item.refuse(format!("`{}` has no classes of RoCE packets; {remedy}", item.shown()));
    }
    item.fields(ROCE_KEYS)
}

fn read_eight<'a>(item: Option<Item<'a>>, from: MapKind, to: MapKind, table: &mut [u8; CLASSES]) -> Items<'a> {
    let mut items = Items::default();
    for (index, number, item) in read_map(item, "e.g. `{4: 3}`", from, to) {
        (table[index], items[index]) = (number, Some(item));
    }
    items
}

/// The entries of a map in their order, one for each number of a range, with the item of the value. A number that two
/// keys name is refused: otherwise the order of the file would decide which one applies.
fn read_map<'a>(item: Option<Item<'a>>, example: &str, from: MapKind, to: MapKind) -> Vec<(usize, u8, Item<'a>)> {
    let mut entries = Vec::new();
    let mut named: Vec<(IdRange, String)> = Vec::new();
    for (key, value) in item.and_then(|item| item.entries(example)).unwrap_or_default() {
        let range = IdRange::read(&key, from.0, 0..=from.1);
        let earlier =
            range.and_then(|range| named.iter().find_map(|(other, text)| Some((range.common(*other)?, text))));
        if let Some((number, text)) = earlier {
            let shown = key.shown();
            key.fail(format!(
                "`{shown}` and `{text}` both contain {number}; write each number once, e.g. by splitting the range"
            ));
            continue;
        }
        named.extend(range.map(|range| (range, key.shown())));
        if let (Some(range), Some(number)) = (range, value.number(to.0, 0..=u64::from(to.1))) {
            entries.extend(range.indices().map(|index| (index, number, value.clone())));
        }
    }
    entries
}

/// Reads `rewrite` of a port: which of the switch's tables it uses.
pub fn read_rewrite(item: Option<Item<'_>>, maps: &Maps<'_>) -> Rewrite {
    let Some(item) = item else { return Rewrite::default() };
    let mut rewrite = Rewrite::default();
    let words = [("dscp", Some(Trust::Dscp)), ("pcp", Some(Trust::Pcp)), ("off", None)];
    let items = if item.is_list() { item.list("[dscp, pcp]").unwrap_or_default() } else { vec![item.clone()] };
    for one in items {
        let choices = if item.is_list() { &words[..2] } else { &words[..] };
        let (table, wanted, key, example) = match one.choice(choices).flatten() {
            Some(Trust::Dscp) => (&maps.tables.dscp, &mut rewrite.dscp, "dscp", "tc_to_dscp: {3: 26}"),
            Some(_) => (&maps.tables.pcp, &mut rewrite.pcp, "pcp", "tc_to_pcp: {3: 3}"),
            None => continue,
        };
        if table.iter().all(Option::is_none) {
            one.fail(format!("there is no table for `rewrite: {key}`; write e.g. `maps: {{{example}}}`"));
        }
        *wanted = *table;
    }
    rewrite
}

impl Maps<'_> {
    /// The groups and the queues that have a class.
    pub fn used(&self) -> [ClassSet; 2] {
        [&self.classes.tc_to_group, &self.classes.tc_to_queue].map(|map| map.iter().map(|&to| to.into()).collect())
    }

    fn get(&self, key: &str) -> Option<Item<'_>> {
        self.fields.as_ref().and_then(|fields| fields.get(key))
    }

    /// Checks that no group or queue is lossless for one class and lossy for another, and that PFC pauses the right
    /// queue. IEEE 802.1Q clause 8.6.8 note 2, in substance: PFC and non-PFC priorities should not share a queue.
    pub fn check(&self, classes: &[Class<'_>; CLASSES]) {
        let lossless = |class: u8| classes[usize::from(class)].settings.lossless;
        let mut fits = true;
        for class in 0..CLASSES as u8 {
            let index = usize::from(class);
            let group = "PFC pauses a whole group, so its classes must be all lossless or all lossy";
            let queue = "the classes of a queue must be all lossless or all lossy";
            let maps = [
                ("group", &self.classes.tc_to_group, &self.groups[index], group),
                ("queue", &self.classes.tc_to_queue, &self.queues[index], queue),
            ];
            for (name, map, item, reason) in maps {
                let to = map[index];
                let (true, Some(item)) = (lossless(class) != lossless(to), item) else { continue };
                let (own, other) = if lossless(class) { ("lossless", "lossy") } else { ("lossy", "lossless") };
                fits = false;
                item.fail(if map[usize::from(to)] == to {
                    format!(
                        "class {class} is {own} and would share {name} {to} with class {to}, which is {other}: {reason}; \
                         map class {class} to the {name} of a {own} class, or make both classes {other}"
                    )
                } else {
                    format!(
                        "class {class} is {own}, but {name} {to} has the settings of class {to}, which is {other}; map \
                         class {class} to the {name} of a {own} class, or make both classes {other}"
                    )
                });
            }
        }
        if fits {
            self.check_pauses(classes);
        }
        self.warn_of_idle_settings(classes);
    }

    /// A peer pauses a class by the priority that equals its group. That priority must pause the queue that holds the
    /// class.
    fn check_pauses(&self, classes: &[Class<'_>; CLASSES]) {
        for class in (0..CLASSES).filter(|&class| classes[class].settings.lossless) {
            let (group, queue) = (self.classes.tc_to_group[class], self.classes.tc_to_queue[class]);
            let stopped = self.classes.pfc_to_queue[usize::from(group)];
            let written = [&self.pauses[usize::from(group)], &self.queues[class], &self.groups[class]];
            // One of the three is written: without any of them all maps are one to one.
            if let (true, Some(item)) = (stopped != queue, written.into_iter().flatten().next()) {
                item.fail(format!(
                    "PFC for priority {group} pauses queue {stopped}, but lossless class {class} of group {group} is \
                     in queue {queue}, which would not pause; write `tc_to_queue: {{{class}: {stopped}}}` or \
                     `pfc_to_queue: {{{group}: {queue}}}`"
                ));
            }
        }
    }

    /// Warns of settings without effect: the group or queue of the class has the settings of another class.
    fn warn_of_idle_settings(&self, classes: &[Class<'_>; CLASSES]) {
        let [groups, queues] = self.used();
        for (class, settings) in classes.iter().enumerate() {
            let Some(item) = &settings.item else { continue };
            let kinds = [
                ("group", groups, self.classes.tc_to_group, GROUP_KEYS),
                ("queue", queues, self.classes.tc_to_queue, QUEUE_KEYS),
            ];
            for (name, used, map, keys) in kinds {
                let idle = keys.iter().filter(|key| !used.contains(class) && item.has(key));
                let idle: Vec<String> = idle.map(|key| format!("`{key}`")).collect();
                if !idle.is_empty() {
                    let to = map[class];
                    item.warn(format!(
                        "class {class} is in {name} {to}, which has the settings of class {to}, and no class is in {name} \
                         {class}: {} has no effect; write it under class {to}",
                        idle.join(", ")
                    ));
                }
            }
        }
    }

    /// Checks the effect of the ports' mark maps and rewrites on PFC.
    pub fn check_ports(&self, ports: &[Port<'_>], classes: &[Class<'_>; CLASSES]) {
        let lossless = |class: u8| classes[usize::from(class)].settings.lossless;
        self.warn_of_deaf_senders(ports, &lossless);
        self.check_roce(ports, &lossless);
        for port in ports {
            self.check_rewrite(port, &lossless);
        }
        let used = |of: fn(&Rewrite) -> &[Option<u8>; CLASSES]| {
            ports.iter().any(|port| of(&port.live.rewrite).iter().any(Option::is_some))
        };
        let uses =
            [("tc_to_dscp", "dscp", used(|rewrite| &rewrite.dscp)), ("tc_to_pcp", "pcp", used(|rewrite| &rewrite.pcp))];
        for (key, word, used) in uses {
            if let (false, Some(item)) = (used, self.get(key)) {
                item.warn(format!("no port uses this table; write `rewrite: {word}` at a port, or remove it"));
            }
        }
    }

    /// Warns of PCPs that PFC would not stop: PFC names a priority, and a peer that sends with another PCP does not
    /// stop.
    fn warn_of_deaf_senders(&self, ports: &[Port<'_>], lossless: &impl Fn(u8) -> bool) {
        let warn = |item: &Item<'_>, marks: &MarkMap| {
            for (pcp, &class) in marks.pcp_to_tc.iter().enumerate() {
                let group = self.classes.tc_to_group[usize::from(class)];
                if pcp != usize::from(group) && lossless(class) {
                    item.warn(format!(
                        "PCP {pcp} is in lossless class {class}, but PFC for that class pauses priority {group}, not \
                         {pcp}; map only PCP {group} to it"
                    ));
                }
            }
        };
        let trusted = ports.iter().any(|port| port.live.trust == Trust::Pcp && port.pfc.is_on());
        if let Some(item) = self.get("pcp").or_else(|| self.get("tc_to_group").filter(|_| trusted)) {
            warn(&item, &self.marks);
        }
        for port in ports
            .iter()
            .filter(|port| port.live.trust == Trust::Pcp && port.live.marks.pcp_to_tc != self.marks.pcp_to_tc)
        {
            warn(&port.item.child("maps"), &port.live.marks);
        }
    }

    /// Checks that the classes of RoCEv2 packets without data are lossy. A NIC may mark these packets like its data.
    /// PFC for their class does not stop them then.
    fn check_roce(&self, ports: &[Port<'_>], lossless: &impl Fn(u8) -> bool) {
        let check = |item: &Item<'_>, roce: RoceMap, over: RoceMap| {
            for ((key, class), (_, other)) in roce.entries().into_iter().zip(over.entries()) {
                if let Some(class) = class.filter(|&class| lossless(class) && Some(class) != other) {
                    item.child(key).fail(format!(
                        "class {class} is lossless, but its PFC does not stop packets that their sender marks for \
                         another class; write a lossy class, e.g. a strict one"
                    ));
                }
            }
        };
        if let Some(item) = self.get("roce") {
            check(&item, self.marks.roce, RoceMap::default());
        }
        for port in ports {
            check(&port.item.child("maps").child("roce"), port.live.marks.roce, self.marks.roce);
        }
    }

    /// Checks that a rewritten mark leads the peer to the same class. The peer is assumed to have the maps of this
    /// port. If it finds another class, its PFC names another priority than the one whose frames come too fast.
    fn check_rewrite(&self, port: &Port<'_>, lossless: &impl Fn(u8) -> bool) {
        let item = port.item.child("rewrite");
        if port.live.rewrite.pcp.iter().any(Option::is_some) && port.vlan.tagged().is_empty() {
            item.warn("all frames leave this port untagged, so there is no PCP to rewrite; remove `pcp`");
        }
        let (mark, key, table, back): (_, _, _, &[u8]) = match port.live.trust {
            _ if !port.pfc.is_on() => return,
            Trust::Dscp => ("DSCP", "tc_to_dscp", &port.live.rewrite.dscp, &port.live.marks.dscp_to_tc),
            Trust::Pcp => ("PCP", "tc_to_pcp", &port.live.rewrite.pcp, &port.live.marks.pcp_to_tc),
            Trust::Port => return,
        };
        for (class, number) in (0..CLASSES as u8).zip(table) {
            let Some(number) = number else { continue };
            let there = back[usize::from(*number)];
            if !self.confuses(class, there, lossless) {
                continue;
            }
            let kind = if lossless(class) { "lossless" } else { "lossy" };
            let remedy = match back.iter().position(|&other| other == class) {
                Some(right) => format!("write `{key}: {{{class}: {right}}}`"),
                None => format!("map a {mark} to class {class} and write it in `{key}`"),
            };
            item.fail(format!(
                "class {class}, which is {kind}, leaves with {mark} {number}: that means class {there} to this port \
                 and its peer, whose PFC would pause priority {}, not {}; {remedy}",
                self.classes.tc_to_group[usize::from(there)],
                self.classes.tc_to_group[usize::from(class)],
            ));
        }
    }

    /// Whether PFC fails between a port where frames are in class `here` and a peer where they are in class `there`.
    /// PFC does not distinguish two classes of one group.
    pub fn confuses(&self, here: u8, there: u8, lossless: &impl Fn(u8) -> bool) -> bool {
        let group = |class: u8| self.classes.tc_to_group[usize::from(class)];
        group(here) != group(there) && (lossless(here) || lossless(there))
    }
}
