//! `faults:` of the configuration, and the faults that the API is given.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::config::error::ConfigErrors;
use crate::config::keys::Key;
use crate::config::model::FaultsConfig;
use crate::config::yaml::read::{Fields, Item, Report, one_of};
use crate::config::yaml::share::Chance;
use crate::config::yaml::{Bound, bounds, parse_within};
use crate::faults::{Fault, FaultKind, FaultVerb, Flow, MOST_FAULTS, Share, Toward, What};
use crate::plan::SwitchSpec;
use crate::sets::ClassSet;
use crate::units::Nanos;

pub const KEYS: &[Key] = &[
    Key::new("seed", "1", "64 bits", "of the random numbers"),
    Key::new("list", "none", "up to 64", "[faults](faults.md#keys) from the start on"),
];

/// Keys of a fault.
pub const FAULT_KEYS: &[Key] = &[
    Key::new("at", "at once", "up to `86400s`", "begin, counted from the start, the reload or the request"),
    Key::new("for", "no end", "up to 30 days", "duration"),
    Key::new("lose", "", "a port", "frames are lost"),
    Key::new("delay", "", "a port", "frames arrive later"),
    Key::new("duplicate", "", "a port", "frames arrive twice, the copy at once"),
    Key::new("reorder", "", "a port", "frames arrive behind later ones of the same direction, or after 10 ms"),
    Key::new(
        "corrupt",
        "",
        "a port",
        "one bit behind the headers is wrong; never one of the padding behind an IP packet",
    ),
    Key::new("mark", "", "a port", "packets with ECT(0) or ECT(1) get CE, with a right IPv4 checksum"),
    Key::new("storm", "", "a port", "the host seems to repeat XOFF; at the end it sends XON"),
    Key::new("late", "", "a port", "PFC frames take effect later"),
    Key::new("ignore", "", "a port", "PFC frames have no effect"),
    Key::new("what", "`any`", "`data` `pfc` `any`", "of `lose`: the frames"),
    Key::new("by", "required", "up to `1s`", "of `delay`"),
    Key::new("behind", "1", "1 to 64", "of `reorder`: frames"),
    Key::new("priorities", "the lossless ones", "a number or list", "of `storm`"),
    Key::new("response", "required", "up to `1s`", "of `late`"),
    Key::new(
        "toward",
        "both; `late`, `ignore`: `host`",
        "`host` `switch`",
        "`host`: frames that the switch sends; `switch`: frames that it receives",
    ),
    Key::new("chance", "", "`0.0001%` to `100%`", "random share of the selected frames"),
    Key::new("one_in", "", "1 to 1,000,000,000", "one of so many selected frames, by count: exactly every Nth"),
    Key::new("burst", "1", "at most `one_in`", "so many selected frames in a row, each time"),
    Key::new("class", "all frames", "0 to 7, one or a list", "traffic class"),
    Key::new(
        "flow",
        "all frames",
        "a mapping",
        "of `source`, `destination` (address or prefix), `protocol` (`udp`, `tcp`, `icmp`, `icmpv6` or number), \
         `source_port`, `destination_port`, `queue_pair`, `dscp`",
    ),
];
const FLOW_KEYS: &[&str] =
    &["source", "destination", "protocol", "source_port", "destination_port", "queue_pair", "dscp"];
const SELECTION: &[&str] = &["toward", "chance", "one_in", "burst", "class", "flow"];
const OF_PFC: &[&str] = &["toward", "chance", "one_in", "burst"];
const EXAMPLE: &str = "`- {lose: p1, one_in: 1000}` for each fault";
const LATEST: Nanos = Nanos(86_400_000_000_000);
const LONGEST: Nanos = Nanos(30 * 86_400_000_000_000);
const LONGEST_HELD: Nanos = Nanos(1_000_000_000);
const MOST_BEHIND: u64 = 64;
const MOST_FRAMES: u64 = 1_000_000_000;
const MOST_QUEUE_PAIR: u64 = 0xff_ffff;

/// The keys beside `at` and `for` that a kind of faults has: its own, and those that select frames.
fn keys(verb: FaultVerb) -> (&'static [&'static str], &'static [&'static str]) {
    match verb {
        FaultVerb::Lose => (&["what"], SELECTION),
        FaultVerb::Delay => (&["by"], SELECTION),
        FaultVerb::Reorder => (&["behind"], SELECTION),
        FaultVerb::Duplicate | FaultVerb::Corrupt | FaultVerb::Mark => (&[], SELECTION),
        FaultVerb::Storm => (&["priorities"], &[]),
        FaultVerb::Late => (&["response"], OF_PFC),
        FaultVerb::Ignore => (&[], OF_PFC),
    }
}

/// The ports that faults may name, by index.
#[derive(Debug)]
pub struct FaultPorts<'a> {
    pub names: Vec<&'a str>,
    /// Priorities that are lossless.
    pub priorities: ClassSet,
}

impl<'a> FaultPorts<'a> {
    /// The ports of a running switch.
    #[must_use]
    pub fn of(switch: &'a SwitchSpec) -> Self {
        Self {
            names: switch.ports.iter().map(|port| port.name.as_str()).collect(),
            priorities: switch.lossless_groups(),
        }
    }
}

/// Reads `faults:`; `None`: the switch has no faults, and the API can order none.
pub fn read(item: Option<Item<'_>>, ports: &FaultPorts<'_>) -> Option<FaultsConfig> {
    let item = item.filter(|item| !item.is("off"))?;
    let default = FaultsConfig::default();
    if item.is("allowed") {
        return Some(default);
    }
    if item.is_list() {
        return Some(FaultsConfig { list: read_list(&item, ports), ..default });
    }
    if !item.is_map() {
        return item.refuse(format!("`{}` is not faults; write `allowed`, `off` or a list", item.shown()));
    }
    let fields = item.fields(KEYS)?;
    let seed = fields.get("seed").and_then(|item| item.number("a seed", 0..=u64::MAX));
    let list = fields.get("list").map(|item| read_list(&item, ports));
    Some(FaultsConfig { seed: seed.unwrap_or(default.seed), list: list.unwrap_or_default() })
}

/// Reads the faults of a request to the API: a fault, or a list of them.
///
/// # Errors
/// All errors, each with line and column of the request.
pub fn read_request(text: &str, switch: &SwitchSpec) -> Result<Vec<Fault>, ConfigErrors> {
    const SOURCE: &str = "request";
    let node = parse_within(SOURCE, text, Bound::REQUEST)?;
    let report = Report::new(SOURCE);
    let (item, ports) = (Item::root(&node, &report), FaultPorts::of(switch));
    let faults =
        if item.is_list() { read_list(&item, &ports) } else { read_fault(&item, &ports).into_iter().collect() };
    if faults.is_empty() && report.errors() == 0 {
        item.fail(format!("there is no fault in the request; write {EXAMPLE}"));
    }
    report.finish().map(|_| faults)
}

/// Checks that `text` is YAML; `source` names it in errors.
///
/// # Errors
/// The error with line and column in `text`.
pub fn check_syntax(source: &str, text: &str) -> Result<(), ConfigErrors> {
    parse_within(source, text, Bound::REQUEST).map(drop)
}

fn read_list(item: &Item<'_>, ports: &FaultPorts<'_>) -> Vec<Fault> {
    let items = item.list(EXAMPLE).unwrap_or_default();
    if items.len() > MOST_FAULTS {
        item.fail(format!("{} faults are too many; write at most {MOST_FAULTS}", items.len()));
        return Vec::new();
    }
    items.iter().filter_map(|item| read_fault(item, ports)).collect()
}

fn read_fault(item: &Item<'_>, ports: &FaultPorts<'_>) -> Option<Fault> {
    let fields = item.fields(FAULT_KEYS)?;
    let (verb, named) = kind(&fields)?;
    let port = port(&named, ports);
    let kind = match verb {
        FaultVerb::Lose => Some(FaultKind::Lose),
        FaultVerb::Delay => {
            let by = bounds::required(&fields, "by", "by: 1ms", Nanos(1)..=LONGEST_HELD);
            by.map(|by| FaultKind::Delay { by })
        }
        FaultVerb::Duplicate => Some(FaultKind::Duplicate),
        FaultVerb::Reorder => {
            let behind =
                fields.get("behind").map_or(Some(1), |item| item.number("a number of frames", 1..=MOST_BEHIND));
            behind.map(|behind| FaultKind::Reorder { behind })
        }
        FaultVerb::Corrupt => Some(FaultKind::Corrupt),
        FaultVerb::Mark => Some(FaultKind::Mark),
        FaultVerb::Storm => priorities(&fields, ports).map(|priorities| FaultKind::Storm { priorities }),
        FaultVerb::Late => {
            let response = bounds::required(&fields, "response", "response: 10us", Nanos(1)..=LONGEST_HELD);
            response.map(|response| FaultKind::Late { response })
        }
        FaultVerb::Ignore => Some(FaultKind::Ignore),
    };
    let default = Fault::new(port.unwrap_or(0), kind.unwrap_or(FaultKind::Lose));
    let at = optional(&fields, "at", Nanos(0)..=LATEST).map(|at| at.unwrap_or(Nanos(0)));
    let time = optional(&fields, "for", Nanos(1)..=LONGEST);
    let toward = fields.get("toward").map_or(Some(default.toward), |item| item.choice(&Toward::TABLE).map(Some));
    let selection = selection(&fields, default.what);
    let share = share(&fields);
    let ((share, burst), (what, classes, flow)) = (share?, selection?);
    port?;
    kind?;
    Some(Fault { toward: toward?, what, share, burst, classes, flow, at: at?, time: time?, ..default })
}

/// The kind of a fault, and the value that names its port. Reports keys that belong to other kinds.
fn kind<'a>(fields: &Fields<'a>) -> Option<(FaultVerb, Item<'a>)> {
    let mut written = FaultVerb::TABLE.iter().filter_map(|(verb, word, _)| Some((*verb, *word, fields.get(word)?)));
    let Some((verb, word, named)) = written.next() else {
        let words = FaultVerb::TABLE.map(|(_, word, _)| word);
        return fields.owner().refuse(format!("the fault has no kind; write {}", one_of(&words)));
    };
    if let Some((_, _, other)) = written.next() {
        return other.refuse(format!("`{word}` is given too; write one fault for each"));
    }
    let (own, selecting) = keys(verb);
    let is_known = |key: &str| own.contains(&key) || selecting.contains(&key) || ["at", "for", word].contains(&key);
    let mut is_right = true;
    for key in FAULT_KEYS.iter().map(|key| key.name) {
        if let Some(item) = fields.get(key).filter(|_| !is_known(key)) {
            item.fail(format!("`{word}` has no `{key}`; remove it"));
            is_right = false;
        }
    }
    is_right.then_some((verb, named))
}

fn port(named: &Item<'_>, ports: &FaultPorts<'_>) -> Option<usize> {
    let name = named.text("a port; write the name of one")?;
    match ports.names.iter().position(|other| *other == name) {
        Some(port) => Some(port),
        // Without ports, an error was reported before.
        None if ports.names.is_empty() => Some(0),
        None => named.refuse(format!("there is no port `{}`; write {}", named.shown(), one_of(&ports.names))),
    }
}

fn priorities(fields: &Fields<'_>, ports: &FaultPorts<'_>) -> Option<ClassSet> {
    let Some(item) = fields.get("priorities") else {
        if ports.priorities.is_empty() {
            return fields.owner().refuse("the switch has no lossless class; write e.g. `priorities: [3]`");
        }
        return Some(ports.priorities);
    };
    numbers(&item, "a priority")
}

/// Reads a number from 0 to 7, or a list of them.
pub(super) fn numbers(item: &Item<'_>, what: &str) -> Option<ClassSet> {
    if !item.is_list() {
        return item.number::<usize>(what, 0..=7).map(ClassSet::only);
    }
    let items = item.list("e.g. [3]")?;
    if items.is_empty() {
        return item.refuse("the list is empty; write e.g. `[3]`");
    }
    let all: Vec<Option<usize>> = items.iter().map(|item| item.number(what, 0..=7)).collect();
    all.into_iter().collect()
}

/// Reads the quantity under `key`: `None` if it is wrong, and `Some(None)` if it is absent.
fn optional(fields: &Fields<'_>, key: &str, range: RangeInclusive<Nanos>) -> Option<Option<Nanos>> {
    fields.get(key).map_or(Some(None), |item| bounds::within(&item, range).map(Some))
}

fn share(fields: &Fields<'_>) -> Option<(Share, u32)> {
    let (chance, one_in) = (fields.get("chance"), fields.get("one_in"));
    let share = match (&chance, &one_in) {
        (Some(_), Some(item)) => item.refuse("`chance` is given too; write one of the two"),
        (Some(item), None) => item.parse::<Chance>().map(|chance| Share::Chance(chance.0)),
        (None, Some(item)) => item.number("a number of frames", 1..=MOST_FRAMES).map(Share::OneIn),
        (None, None) => Some(Share::All),
    };
    let Some(item) = fields.get("burst") else { return Some((share?, 1)) };
    let burst: u32 = item.number("a number of frames", 1..=MOST_FRAMES)?;
    match share? {
        Share::All => item.refuse("without `chance` or `one_in` all frames are hit; write one of them, or no `burst`"),
        Share::OneIn(count) if burst > count => {
            item.refuse(format!("a burst of {burst} does not fit one in {count} frames; write at most {count}"))
        }
        share => Some((share, burst)),
    }
}

fn selection(fields: &Fields<'_>, default: What) -> Option<(What, Option<ClassSet>, Flow)> {
    let classes = match fields.get("class") {
        Some(item) => Some(numbers(&item, "a class")?),
        None => None,
    };
    let flow = fields.get("flow").map_or(Some(Flow::default()), |item| read_flow(&item))?;
    let is_data = classes.is_some() || !flow.is_any();
    let Some(item) = fields.get("what") else {
        return Some((if is_data { What::Data } else { default }, classes, flow));
    };
    let what = item.choice(&What::TABLE)?;
    if is_data && what != What::Data {
        return item.refuse("PFC frames have neither class nor flow; write `data`, or no `class` and no `flow`");
    }
    Some((what, classes, flow))
}

fn read_flow(item: &Item<'_>) -> Option<Flow> {
    let fields = item.fields(FLOW_KEYS)?;
    let address = |key| match fields.get(key) {
        Some(item) => read_address(&item).map(Some),
        None => Some(None),
    };
    let protocol = match fields.get("protocol") {
        Some(item) => Some(read_protocol(&item)?),
        None => None,
    };
    let port = |key| match fields.get(key) {
        Some(item) => item.number::<u16>("a port", 0..=65_535).map(Some),
        None => Some(None),
    };
    let queue_pair = match fields.get("queue_pair") {
        Some(item) => Some(item.number("a queue pair", 0..=MOST_QUEUE_PAIR)?),
        None => None,
    };
    let dscp = match fields.get("dscp") {
        Some(item) => Some(item.number("a DSCP", 0..=63)?),
        None => None,
    };
    let flow = Flow {
        source: address("source")?,
        destination: address("destination")?,
        protocol,
        source_port: port("source_port")?,
        destination_port: port("destination_port")?,
        queue_pair,
        dscp,
    };
    if flow.is_any() {
        return item.refuse(format!("the flow is empty; write {}", one_of(FLOW_KEYS)));
    }
    Some(flow)
}

fn read_address(item: &Item<'_>) -> Option<IpNet> {
    let text = item.shown();
    let net = text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse::<IpNet>()).ok();
    match net {
        Some(net) => Some(net.trunc()),
        None => item.refuse(format!("`{text}` is not an address or prefix; write e.g. 10.0.0.1 or 10.0.0.0/24")),
    }
}

fn read_protocol(item: &Item<'_>) -> Option<u8> {
    let known = [("icmp", 1), ("tcp", 6), ("udp", 17), ("icmpv6", 58)];
    if let Some((_, number)) = known.iter().find(|(word, _)| item.is(word)) {
        return Some(*number);
    }
    match item.shown().parse() {
        Ok(number) => Some(number),
        Err(_) => {
            item.refuse(format!("`{}` is not a protocol; write udp, tcp, icmp, icmpv6 or a number", item.shown()))
        }
    }
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
