//! `sflow:` of the configuration: the agent of sFlow version 5.

use std::net::{IpAddr, SocketAddr};

use super::draft::{Port, Sflow};
use super::mirrors::{MOST_COPIES, MOST_FRAMES, SFLOW_NAMES};
use crate::config::keys::Key;
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item};
use crate::mirror::{Destination, SflowConfig, Target};
use crate::plan::mirror::MirrorSession;
use crate::sets::PortSet;
use crate::units::Nanos;

pub const KEYS: &[Key] = &[
    Key::new("collectors", "required", "1 to 4 addresses, one or a list", "default port 6343"),
    Key::new("agent", "required", "IPv4 or IPv6", "address by which collectors know the switch"),
    Key::new(
        "sample",
        "speed of the fastest port in Mb/s, at least 256",
        "up to 1,000,000,000; 0 or `off`: none",
        "one of so many received frames",
    ),
    Key::new("poll", "`20s`", "`1s` to `3600s`, or `off`", "interval of counters"),
    Key::new("drops", "100", "up to 100,000; 0 or `off`: none", "dropped frames of each class and lcore in a second"),
    Key::new("marks", "`off`", "up to 100,000; 0 or `off`: none", "marked frames of each class and lcore in a second"),
    Key::new("bytes", "128", "64 to 512", "bytes of each header"),
];
const MOST_COLLECTORS: usize = 4;
/// Port of collectors (IANA).
const PORT: u16 = 6343;
const DEFAULT_POLL: Nanos = Nanos(20_000_000_000);
const POLLS: std::ops::RangeInclusive<Nanos> = Nanos(1_000_000_000)..=Nanos(3_600_000_000_000);
const DEFAULT_DROPS: u32 = 100;
const DEFAULT_BYTES: u16 = 128;
/// Least default of `sample`.
const LEAST_SAMPLE: u64 = 256;
/// Most samples of an lcore in a second.
const SAMPLE_RATE: u32 = 10_000;

impl Sflow {
    /// The sessions that the agent needs, for frames received by `ports`.
    pub(super) fn sessions(&self, ports: PortSet) -> impl Iterator<Item = (MirrorSession, Target)> + use<> {
        let SflowConfig { drops, marks, sample, .. } = self.config;
        let of = MirrorSession { ports, bytes: self.bytes, ..MirrorSession::default() };
        let sessions = [
            (drops > 0).then_some(MirrorSession { dropped: true, rate: drops, ..of }),
            (marks > 0).then_some(MirrorSession { marked: true, rate: marks, ..of }),
            (sample > 0).then_some(MirrorSession { sample, rate: SAMPLE_RATE, ..of }),
        ];
        sessions
            .into_iter()
            .zip(SFLOW_NAMES)
            .filter_map(|(session, name)| Some((session?, Target { name: name.to_owned(), to: Destination::Sflow })))
    }
}

/// Reads `sflow:`; `None`: the switch sends no sFlow.
pub fn read(item: Option<Item<'_>>, ports: &[Port<'_>]) -> Option<Sflow> {
    let item = item.filter(|item| !item.is("off"))?;
    let fields = item.fields(KEYS)?;
    let collectors = read_collectors(&fields);
    let agent = fields.required("agent", "agent: 10.0.0.1").and_then(|item| read_agent(&item));
    let or_off = |key, what, most, default| match fields.get(key) {
        None => Some(default),
        Some(item) if item.is("off") => Some(0),
        Some(item) => item.number::<u32>(what, 0..=most),
    };
    let sample = or_off("sample", "a number of frames", MOST_FRAMES, default_sample(ports));
    let drops = or_off("drops", "a rate of frames", MOST_COPIES, DEFAULT_DROPS);
    let marks = or_off("marks", "a rate of frames", MOST_COPIES, 0);
    let poll = match fields.get("poll") {
        None => Some(DEFAULT_POLL),
        Some(item) if item.is("off") => Some(Nanos(0)),
        Some(item) => bounds::within(&item, POLLS),
    };
    let bytes = fields.get("bytes").map_or(Some(DEFAULT_BYTES), |item| item.number("a number of bytes", 64..=512));
    let config = SflowConfig {
        collectors: collectors?,
        agent: agent?,
        poll: poll?,
        sample: sample?,
        drops: drops?,
        marks: marks?,
    };
    if (config.sample, config.drops, config.marks, config.poll) == (0, 0, 0, Nanos(0)) {
        item.warn("this agent reports nothing; write e.g. `sample: 4096`, or `sflow: off`");
    }
    Some(Sflow { config, bytes: bytes? })
}

/// One of so many frames, by the speed of the fastest port in Mb/s. sFlow recommends such rates, and SONiC has them.
fn default_sample(ports: &[Port<'_>]) -> u32 {
    let fastest = ports.iter().filter(|port| !port.is_output).map(|port| port.rate.0).max().unwrap_or(0);
    u32::try_from((fastest / 1_000_000).max(LEAST_SAMPLE)).unwrap_or(u32::MAX)
}

fn read_collectors(fields: &Fields<'_>) -> Option<Vec<SocketAddr>> {
    let item = fields.required("collectors", "collectors: [10.0.0.9]")?;
    let items = if item.is_list() { item.list("e.g. [10.0.0.9]")? } else { vec![item.clone()] };
    if items.is_empty() || items.len() > MOST_COLLECTORS {
        return item.refuse(format!("an agent has 1 to {MOST_COLLECTORS} collectors, not {}", items.len()));
    }
    let (mut collectors, mut is_right) = (Vec::new(), true);
    for item in &items {
        match read_collector(item) {
            Some(collector) if collectors.contains(&collector) => {
                item.fail(format!("{collector} is a collector already; remove one"));
                is_right = false;
            }
            Some(collector) => collectors.push(collector),
            None => is_right = false,
        }
    }
    is_right.then_some(collectors)
}

fn read_collector(item: &Item<'_>) -> Option<SocketAddr> {
    let text = item.shown();
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(&text);
    let with_port = || plain.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, PORT));
    match text.parse::<SocketAddr>().ok().or_else(with_port) {
        Some(address) if !address.ip().is_unspecified() && address.port() > 0 => Some(address),
        _ => item.refuse(format!(
            "`{text}` is not the address of a collector; write e.g. 10.0.0.9, 10.0.0.9:6343 or \"[fd00::9]:6343\""
        )),
    }
}

fn read_agent(item: &Item<'_>) -> Option<IpAddr> {
    match item.shown().parse::<IpAddr>() {
        Ok(address) if !address.is_unspecified() => Some(address),
        _ => item.refuse(format!(
            "`{}` is not an address of the switch; write e.g. 10.0.0.1 or \"fd00::1\", by which collectors know it",
            item.shown()
        )),
    }
}
