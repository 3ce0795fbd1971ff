//! Values of settings as text.
//!
//! A value has one form for people and for comparisons. For people its numbers are rounded; two values are equal only
//! if their exact texts are.

use crate::config::model::IdleConfig;
use crate::forward::VlanMode;
use crate::mmu::{AbmSpec, Threshold};
use crate::pfc::WatchdogSpec;
use crate::qos::{CongestionPointSpec, MaxRate, QueueDiscipline, WredProfile};
use crate::units::{BitRate, Bytes, Cells, Length, Nanos, Probability};

/// The numbers in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Rounded, in units that people read.
    Rounded,
    /// To the last unit.
    Exact,
}

/// A value of a setting.
pub trait Value {
    /// The value as text.
    fn text(&self, precision: Precision) -> String;

    /// The value for people.
    fn shown(&self) -> String {
        self.text(Precision::Rounded)
    }
}

/// Quantities whose display is rounded.
macro_rules! quantities {
    ($($kind:ty: $exact:expr;)+) => {
        $(impl Value for $kind {
            fn text(&self, precision: Precision) -> String {
                let exact: fn(&$kind) -> String = $exact;
                match precision {
                    Precision::Rounded => self.to_string(),
                    Precision::Exact => exact(self),
                }
            }
        })+
    };
}

quantities! {
    Bytes: |size| format!("{}B", size.0);
    Nanos: |time| format!("{}ns", time.0);
    BitRate: |rate| format!("{}b/s", rate.0);
    Length: |length| format!("{}mm", length.mm);
}

/// A part of the buffer: its size for people, its cells in comparisons.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its cells.
    pub cells: Cells,
    /// Size of a cell.
    pub cell: Bytes,
}

impl Value for Part {
    fn text(&self, precision: Precision) -> String {
        match precision {
            Precision::Rounded => self.cells.to_bytes(self.cell).to_string(),
            Precision::Exact => self.cells.to_string(),
        }
    }
}

/// A setting that may be off.
impl<T: Value> Value for Option<T> {
    fn text(&self, precision: Precision) -> String {
        self.as_ref().map_or_else(|| "off".to_owned(), |value| value.text(precision))
    }
}

/// `strict`, or `weight 3`.
impl Value for QueueDiscipline {
    fn text(&self, _: Precision) -> String {
        match self {
            Self::Strict => "strict".to_owned(),
            Self::Dwrr { weight } => format!("weight {weight}"),
        }
    }
}

/// The policy of lossy queues, as the configuration writes it.
impl Value for AbmSpec {
    fn text(&self, precision: Precision) -> String {
        let [interval, congested] = [self.interval.text(precision), self.congested.text(precision)];
        format!("{{policy: abm, interval: {interval}, congested: {congested}}}")
    }
}

impl Value for MaxRate {
    fn text(&self, precision: Precision) -> String {
        format!("{}, burst {}", self.rate.text(precision), self.burst.text(precision))
    }
}

impl Value for CongestionPointSpec {
    fn text(&self, precision: Precision) -> String {
        let [set_point, sample] = [self.set_point, self.sample].map(|size| size.text(precision));
        format!("set point {set_point}, weight {}, sample {sample}", self.weight)
    }
}

impl Value for WatchdogSpec {
    fn text(&self, precision: Precision) -> String {
        let [detection, restoration] = [self.detection, self.restoration].map(|time| time.text(precision));
        format!("{} after {detection}, until {restoration} of quiet", self.action.label())
    }
}

/// The depths from which some and all frames are marked, and the probability just below the latter.
impl Value for WredProfile {
    fn text(&self, precision: Precision) -> String {
        let percent = f64::from(self.pmax.0) * 100.0 / f64::from(Probability::ONE.0);
        let pmax = match precision {
            Precision::Rounded => format!("{percent:.1}%"),
            Precision::Exact => format!("{}/65536", self.pmax.0),
        };
        format!("{} to {}, {pmax}", self.kmin.text(precision), self.kmax.text(precision))
    }
}

impl Value for IdleConfig {
    fn text(&self, precision: Precision) -> String {
        let [after, longest, wake] = [self.after, self.longest, self.wake].map(|time| time.text(precision));
        let (wait, lossless) = (self.wait.label(), self.lossless);
        format!("{{wait: {wait}, after: {after}, longest: {longest}, wake: {wake}, lossless: {lossless}}}")
    }
}

/// The VLANs of a port: `10`, `10,20-30 tagged, 1 native`, or `routed, internal 4094`.
impl Value for VlanMode {
    fn text(&self, _: Precision) -> String {
        let (tagged, native) = match self {
            Self::Access(vlan) => return vlan.to_string(),
            Self::Routed(vlan) => return format!("routed, internal {vlan}"),
            Self::Trunk { tagged, native } => (tagged, native),
        };
        let native = native.map_or(String::new(), |native| format!(", {native} native"));
        format!("{} tagged{native}", ranges(tagged.iter().map(|&vlan| usize::from(vlan))))
    }
}

/// A threshold for people: `alpha 1/4`, or a size.
#[must_use]
pub fn threshold(threshold: Threshold, cell: Bytes) -> String {
    match threshold {
        Threshold::Dynamic(alpha) => format!("alpha {alpha}"),
        Threshold::Static(cells) => cells.to_bytes(cell).to_string(),
    }
}

/// The policy of lossy queues: `dt` without ABM.
#[must_use]
pub fn queue_policy(abm: Option<&AbmSpec>, precision: Precision) -> String {
    abm.map_or_else(|| "dt".to_owned(), |abm| abm.text(precision))
}

/// Ascending numbers as `1,3-5`; `-` without any.
#[must_use]
pub fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let show = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let shown: Vec<String> = ranges.iter().map(show).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(",") }
}
