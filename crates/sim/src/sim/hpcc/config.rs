//! The configuration: a line for each key.

use std::collections::HashSet;

use crate::config::error::{ConfigErrors, Place, Warning};
use crate::config::yaml::read::nearest;
use crate::sim::tokens::Words;
use crate::units::BitRate;

/// ECN thresholds of ports of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ecn {
    pub rate: u64,
    pub kmin_kb: u64,
    pub kmax_kb: u64,
    pub pmax: f64,
}

/// Largest payload: with headers it fits the largest MTU of a port.
const LARGEST_PAYLOAD: u64 = 9000;
const LARGEST_BUFFER_MIB: u64 = 16_384;
/// Longest time in microseconds, and latest end in seconds.
const LONGEST_US: f64 = 1e9;
const LATEST_SECONDS: f64 = 1e4;
const LATEST_NS: u64 = 10_000_000_000_000;
/// Highest rate of an increase.
pub(super) const FASTEST: BitRate = BitRate(800_000_000_000);
/// Most packets that one ACK acknowledges.
const MOST_UNACKED: u64 = 1024;

/// The congestion control of `CC_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CcMode {
    Dcqcn,
    Hpcc,
    Timely,
    Dctcp,
}

impl CcMode {
    /// Bytes of a packet's notes in HPCC's simulator: telemetry of five hops, or a time.
    pub fn published_notes(self) -> u64 {
        match self {
            Self::Hpcc => 42,
            Self::Timely => 8,
            Self::Dcqcn | Self::Dctcp => 0,
        }
    }
}

/// The settings that have an effect. Times without a unit in their name are in microseconds, as in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The file that they are from.
    pub source: String,
    pub ecn_enabled: bool,
    pub payload_bytes: u64,
    pub topology: String,
    pub flows: String,
    pub fct: String,
    pub pfc: String,
    /// File of queue lengths; empty: none is written.
    pub qlen: String,
    pub qlen_start_ns: u64,
    pub qlen_end_ns: u64,
    pub stop_seconds: f64,
    pub cc_mode: CcMode,
    pub alpha_interval: f64,
    pub decrease_interval: f64,
    pub clamp_target: bool,
    pub increase_timer: f64,
    pub gain: f64,
    pub fast_recovery: u32,
    pub rate_ai: u64,
    pub rate_hai: u64,
    pub dctcp_rate_ai: u64,
    pub rate_min: u64,
    pub error_rate: f64,
    pub ack_interval: u32,
    pub back_to_zero: bool,
    pub has_window: bool,
    pub global_rtt: bool,
    pub scales_window: bool,
    pub target: f64,
    pub most_stages: u32,
    pub ack_first: bool,
    /// Time in microseconds after the second second, and two nodes.
    pub link_down: Option<(u64, usize, usize)>,
    pub ecn: Vec<Ecn>,
    pub buffer_mib: u64,
}

impl Default for Settings {
    /// The defaults of HPCC's `third.cc`.
    fn default() -> Self {
        Self {
            source: String::new(),
            ecn_enabled: true,
            payload_bytes: 1000,
            topology: String::new(),
            flows: String::new(),
            fct: "fct.txt".to_owned(),
            pfc: "pfc.txt".to_owned(),
            qlen: String::new(),
            qlen_start_ns: 2_000_000_000,
            qlen_end_ns: 2_100_000_000,
            stop_seconds: 3.01,
            cc_mode: CcMode::Dcqcn,
            alpha_interval: 55.0,
            decrease_interval: 4.0,
            clamp_target: false,
            increase_timer: 1500.0,
            gain: 1.0 / 16.0,
            fast_recovery: 5,
            rate_ai: 5_000_000,
            rate_hai: 50_000_000,
            dctcp_rate_ai: 1_000_000_000,
            rate_min: 100_000_000,
            error_rate: 0.0,
            ack_interval: 1,
            back_to_zero: false,
            has_window: true,
            global_rtt: true,
            scales_window: false,
            target: 0.95,
            most_stages: 5,
            ack_first: false,
            link_down: None,
            ecn: Vec::new(),
            buffer_mib: 16,
        }
    }
}

/// A key without effect here: the values that are worth a warning.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ignored {
    /// None: the key describes what Holdfast decides otherwise.
    Silently,
    /// All: the user asks for something that is missing.
    WithWarning,
    /// All but this one, with which every run goes.
    RunsAs(&'static str),
}

pub(super) const IGNORED: &[(&str, Ignored)] = &[
    ("USE_DYNAMIC_PFC_THRESHOLD", Ignored::RunsAs("1")),
    ("PAUSE_TIME", Ignored::Silently),
    ("DATA_RATE", Ignored::Silently),
    ("LINK_DELAY", Ignored::Silently),
    ("TRACE_FILE", Ignored::WithWarning),
    ("TRACE_OUTPUT_FILE", Ignored::WithWarning),
    ("ENABLE_TRACE", Ignored::RunsAs("0")),
    ("L2_CHUNK_SIZE", Ignored::Silently),
    ("FAST_REACT", Ignored::RunsAs("1")),
    ("INT_MULTI", Ignored::Silently),
    ("MULTI_RATE", Ignored::RunsAs("0")),
    ("SAMPLE_FEEDBACK", Ignored::RunsAs("0")),
    ("PINT_LOG_BASE", Ignored::Silently),
    ("PINT_PROB", Ignored::Silently),
    ("RATE_BOUND", Ignored::RunsAs("1")),
];

/// Reads a configuration. Returns warnings about keys whose value has no effect.
pub fn parse(source: &str, text: &str) -> Result<(Settings, Vec<Warning>), ConfigErrors> {
    let mut settings = Settings { source: source.to_owned(), ..Settings::default() };
    let (mut warnings, mut maps) = (Vec::new(), Maps::default());
    let mut seen = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        // Explanations in braces, as in config_doc.txt, and behind a number sign, which ns-3 skips as an unknown key.
        let line = line.split(['{', '#']).next().unwrap_or_default();
        let mut words = Words::new(source, line, number as u64 + 1);
        let Some(key) = words.next() else { continue };
        if !seen.insert(key.text) {
            let message = format!("{} is written again; this line replaces the earlier one", key.text);
            warnings.push(Warning::of_text(source, Some(key.place), message));
        }
        if let Some((name, ignored)) = IGNORED.iter().find(|(name, _)| *name == key.text) {
            let value = words.word("a value")?.text;
            words.end(name)?;
            let warning = match *ignored {
                Ignored::WithWarning => format!("{name} has no effect here"),
                Ignored::RunsAs(fixed) if fixed != value => {
                    format!("{name} has no effect here; the run is as with {fixed}")
                }
                Ignored::Silently | Ignored::RunsAs(_) => continue,
            };
            warnings.push(Warning::of_text(source, Some(key.place), warning));
            continue;
        }
        read_key(key.text, key.place, &mut words, &mut settings, &mut maps)?;
        words.end(key.text)?;
    }
    settings.ecn = maps.join();
    if let Some(ecn) = settings.ecn.iter().find(|ecn| ecn.kmin_kb > ecn.kmax_kb) {
        let Ecn { rate, kmin_kb, kmax_kb, .. } = ecn;
        return Err(ConfigErrors::one(
            source,
            None,
            format!("at {rate} bit/s KMIN_MAP has {kmin_kb} and KMAX_MAP {kmax_kb}; write no more than KMAX_MAP has"),
        ));
    }
    for (key, value) in [("TOPOLOGY_FILE", &settings.topology), ("FLOW_FILE", &settings.flows)] {
        if value.is_empty() {
            return Err(ConfigErrors::one(source, None, format!("{key} is missing; write e.g. `{key} mix/x.txt`")));
        }
    }
    Ok((settings, warnings))
}

/// The maps of ECN thresholds by rate.
#[derive(Debug, Default)]
struct Maps {
    kmin: Vec<(u64, u64)>,
    kmax: Vec<(u64, u64)>,
    pmax: Vec<(u64, f64)>,
}

impl Maps {
    fn join(&self) -> Vec<Ecn> {
        let of = |map: &[(u64, u64)], rate| map.iter().find(|(of, _)| *of == rate).map(|(_, value)| *value);
        let ecn = |&(rate, pmax): &(u64, f64)| {
            Some(Ecn { rate, kmin_kb: of(&self.kmin, rate)?, kmax_kb: of(&self.kmax, rate)?, pmax })
        };
        self.pmax.iter().filter_map(ecn).collect()
    }
}

fn read_map<T>(
    words: &mut Words<'_>,
    value: impl Fn(&mut Words<'_>) -> Result<T, ConfigErrors>,
) -> Result<Vec<(u64, T)>, ConfigErrors> {
    let count: u64 = words.take("a number of rates")?;
    let mut map: Vec<(u64, T)> = Vec::new();
    for _ in 0..count {
        let word = words.word("a rate in bit/s")?;
        let message = |what: &str| format!("`{}` {what}; write each rate in bit/s once", word.text);
        let rate = word.text.parse().map_err(|_| words.error(word.place, message("is not a rate in bit/s")))?;
        if map.iter().any(|(other, _)| *other == rate) {
            return Err(words.error(word.place, message("is there twice")));
        }
        map.push((rate, value(words)?));
    }
    Ok(map)
}

fn read_mode(words: &mut Words<'_>) -> Result<CcMode, ConfigErrors> {
    let word = words.word("a number")?;
    match word.text {
        "1" => Ok(CcMode::Dcqcn),
        "3" => Ok(CcMode::Hpcc),
        "7" => Ok(CcMode::Timely),
        "8" => Ok(CcMode::Dctcp),
        mode => Err(words.error(
            word.place,
            format!("CC_MODE {mode} is not supported; write 1 (DCQCN), 3 (HPCC), 7 (TIMELY) or 8 (DCTCP)"),
        )),
    }
}

/// The keys that have an effect.
pub(super) const KEYS: &[&str] = &[
    "ENABLE_QCN",
    "PACKET_PAYLOAD_SIZE",
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "SIMULATOR_STOP_TIME",
    "CC_MODE",
    "ALPHA_RESUME_INTERVAL",
    "RATE_DECREASE_INTERVAL",
    "CLAMP_TARGET_RATE",
    "RP_TIMER",
    "EWMA_GAIN",
    "FAST_RECOVERY_TIMES",
    "RATE_AI",
    "RATE_HAI",
    "DCTCP_RATE_AI",
    "MIN_RATE",
    "ERROR_RATE_PER_LINK",
    "L2_ACK_INTERVAL",
    "L2_BACK_TO_ZERO",
    "HAS_WIN",
    "GLOBAL_T",
    "VAR_WIN",
    "U_TARGET",
    "MI_THRESH",
    "ACK_HIGH_PRIO",
    "LINK_DOWN",
    "KMIN_MAP",
    "KMAX_MAP",
    "PMAX_MAP",
    "BUFFER_SIZE",
];

/// Returns the message about an unknown key.
fn unknown(key: &str) -> String {
    let known: Vec<&str> = KEYS.iter().copied().chain(IGNORED.iter().map(|(name, _)| *name)).collect();
    match nearest(key, &known) {
        Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
        None => format!("unknown key `{key}`; remove it: HPCC's configuration has no such key"),
    }
}

fn read_key(
    key: &str,
    place: Place,
    words: &mut Words<'_>,
    settings: &mut Settings,
    maps: &mut Maps,
) -> Result<(), ConfigErrors> {
    let flag = |words: &mut Words<'_>| words.within("0 or 1", 0..=1).map(|value| value != 0);
    let rate = |words: &mut Words<'_>| {
        let rate = words.take::<BitRate>("a rate, e.g. 50Mb/s")?;
        let too_fast = || words.error(place, format!("{rate} is too fast; write at most {FASTEST}"));
        if rate <= FASTEST { Ok(rate.0) } else { Err(too_fast()) }
    };
    let time = |words: &mut Words<'_>| words.decimal("a time in microseconds", 0.0..=LONGEST_US);
    let kilobytes = |words: &mut Words<'_>| words.take::<u64>("a number of kilobytes");
    let path = |words: &mut Words<'_>| words.word("a path").map(|word| word.text.to_owned());
    match key {
        "ENABLE_QCN" => settings.ecn_enabled = flag(words)?,
        "PACKET_PAYLOAD_SIZE" => settings.payload_bytes = words.within("a number of bytes", 1..=LARGEST_PAYLOAD)?,
        "TOPOLOGY_FILE" => settings.topology = path(words)?,
        "FLOW_FILE" => settings.flows = path(words)?,
        "FCT_OUTPUT_FILE" => settings.fct = path(words)?,
        "PFC_OUTPUT_FILE" => settings.pfc = path(words)?,
        "QLEN_MON_FILE" => settings.qlen = path(words)?,
        "QLEN_MON_START" => settings.qlen_start_ns = words.within("a time in nanoseconds", 0..=LATEST_NS)?,
        "QLEN_MON_END" => settings.qlen_end_ns = words.within("a time in nanoseconds", 0..=LATEST_NS)?,
        "SIMULATOR_STOP_TIME" => settings.stop_seconds = words.decimal("a time in seconds", 0.0..=LATEST_SECONDS)?,
        "CC_MODE" => settings.cc_mode = read_mode(words)?,
        "ALPHA_RESUME_INTERVAL" => settings.alpha_interval = time(words)?,
        "RATE_DECREASE_INTERVAL" => settings.decrease_interval = time(words)?,
        "CLAMP_TARGET_RATE" => settings.clamp_target = flag(words)?,
        "RP_TIMER" => settings.increase_timer = time(words)?,
        "EWMA_GAIN" => settings.gain = words.decimal("a gain", 0.0..=1.0)?,
        "FAST_RECOVERY_TIMES" => settings.fast_recovery = words.take("a count")?,
        "RATE_AI" => settings.rate_ai = rate(words)?,
        "RATE_HAI" => settings.rate_hai = rate(words)?,
        "DCTCP_RATE_AI" => settings.dctcp_rate_ai = rate(words)?,
        "MIN_RATE" => settings.rate_min = rate(words)?,
        "ERROR_RATE_PER_LINK" => settings.error_rate = words.decimal("a probability", 0.0..=1.0)?,
        "L2_ACK_INTERVAL" => settings.ack_interval = words.within("a count of packets", 0..=MOST_UNACKED)? as u32,
        "L2_BACK_TO_ZERO" => settings.back_to_zero = flag(words)?,
        "HAS_WIN" => settings.has_window = flag(words)?,
        "GLOBAL_T" => settings.global_rtt = flag(words)?,
        "VAR_WIN" => settings.scales_window = flag(words)?,
        "U_TARGET" => settings.target = words.decimal("a utilization", 0.01..=1.0)?,
        "MI_THRESH" => settings.most_stages = words.take("a count")?,
        "ACK_HIGH_PRIO" => settings.ack_first = flag(words)?,
        "LINK_DOWN" => {
            let us = words.within("a time in microseconds", 0..=LONGEST_US as u64)?;
            let down = (us, words.take("a node")?, words.take("a node")?);
            settings.link_down = (down.0 > 0).then_some(down);
        }
        "KMIN_MAP" => maps.kmin = read_map(words, kilobytes)?,
        "KMAX_MAP" => maps.kmax = read_map(words, kilobytes)?,
        "PMAX_MAP" => maps.pmax = read_map(words, |words| words.decimal("a probability", 0.0..=1.0))?,
        "BUFFER_SIZE" => settings.buffer_mib = words.within("a number of MiB", 1..=LARGEST_BUFFER_MIB)?,
        _ => return Err(words.error(place, unknown(key))),
    }
    Ok(())
}
