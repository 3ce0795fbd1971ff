//! Reads `dcqcn:` of a flow.

use std::fmt;
use std::str::FromStr;

use crate::config::yaml::bounds;
use crate::config::yaml::read::Item;
use crate::sim::control::dcqcn::DcqcnSpec;
use crate::units::{BitRate, Bytes, Nanos};

const KEYS: &[&str] = &[
    "cnp_interval",
    "alpha_timer",
    "g",
    "increase_timer",
    "byte_counter",
    "fast_recovery",
    "additive",
    "hyper",
    "least",
];

const SHORTEST: Nanos = Nanos(100);
const LONGEST: Nanos = Nanos(1_000_000_000);
const SLOWEST: BitRate = BitRate(1_000);
const FASTEST: BitRate = BitRate(800_000_000_000);
const SMALLEST: Bytes = Bytes(1_000);
const LARGEST: Bytes = Bytes(1 << 34);
const MOST_STEPS: u64 = 1000;
const LARGEST_SHIFT: u8 = 16;

/// Reads the congestion control of a flow; `None`: the flow has none.
pub fn read(item: &Item<'_>) -> Option<DcqcnSpec> {
    if item.is("off") || item.is("false") {
        return None;
    }
    if item.is("true") || item.is("on") {
        return Some(DcqcnSpec::default());
    }
    if !item.is_map() {
        let remedy = "write `true`, `off` or e.g. `{g: 1/256, additive: 40M}`";
        return item.refuse(format!("`{}` is not a DCQCN setting; {remedy}", item.shown()));
    }
    let (fields, default) = (item.fields(KEYS)?, DcqcnSpec::default());
    let time = |key, default| bounds::get(&fields, key, SHORTEST..=LONGEST).unwrap_or(default);
    let rate = |key, default| bounds::get(&fields, key, SLOWEST..=FASTEST).unwrap_or(default);
    let steps = fields.get("fast_recovery").and_then(|item| item.number("a count of increases", 1..=MOST_STEPS));
    Some(DcqcnSpec {
        cnp_interval: time("cnp_interval", default.cnp_interval),
        alpha_timer: time("alpha_timer", default.alpha_timer),
        g_shift: fields.parse::<Gain>("g").map_or(default.g_shift, |gain| gain.0),
        increase_timer: time("increase_timer", default.increase_timer),
        byte_counter: bounds::get(&fields, "byte_counter", SMALLEST..=LARGEST).unwrap_or(default.byte_counter),
        fast_recovery: steps.unwrap_or(default.fast_recovery),
        additive: rate("additive", default.additive),
        hyper: rate("hyper", default.hyper),
        least: rate("least", default.least),
    })
}

/// g, given as n where g = 1/2^n.
struct Gain(u8);

/// A text that is not a gain.
struct GainError(String);

impl fmt::Display for GainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a gain; write 1 over a power of two, from 1/2 to 1/65536, e.g. 1/256", self.0)
    }
}

impl FromStr for Gain {
    type Err = GainError;
    fn from_str(text: &str) -> Result<Self, GainError> {
        let over = text.split_once('/').filter(|(one, _)| one.trim() == "1").map(|(_, over)| over.trim());
        let shift = (1..=LARGEST_SHIFT).find(|shift| over == Some(&(1_u32 << shift).to_string()));
        shift.map(Gain).ok_or_else(|| GainError(text.to_owned()))
    }
}
