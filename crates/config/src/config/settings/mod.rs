//! The table of settings: the key of each one, the place that has it, whether it can change while the switch runs, how
//! it is shown, and the metrics of groups and queues. Reloads, the hash of a configuration, `check`, the API and the
//! metrics of the configuration read it. Lists and maps, whose keys the file chooses, are added entry by entry.
//!
//! Settings are compared after parsing, not as written: `preset: roce` and the same keys written out are equal.

mod port;
mod program;
mod routing;
mod row;
mod switch;
#[cfg(test)]
mod tests;
pub mod value;

use std::collections::BTreeSet;
use std::fmt;

pub use self::row::{Gauges, Setting, Settings};
use super::model::Config;
use crate::plan::SwitchSpec;
use crate::qos::only_class;
use crate::sets::CLASSES;

/// One setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Names of the ports that it concerns; empty: the whole switch.
    pub ports: Vec<String>,
    /// The setting, by its key in the configuration.
    pub key: String,
    /// The value that runs; `None` if there is no such setting.
    pub before: Option<String>,
    /// The value in the other configuration; `None` if there is no such setting.
    pub after: Option<String>,
    /// Whether it can change while the switch runs.
    pub is_live: bool,
    /// Whether its ports are taken out and put in again for the change.
    pub is_out: bool,
}

impl Difference {
    /// Whether a class becomes lossless or lossy by it.
    #[must_use]
    pub fn is_kind_of_class(&self) -> bool {
        // The reserves of a port have a key of this end too.
        self.key.ends_with(".lossless") && self.key != "reserve.lossless"
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let ports = if self.ports.is_empty() { String::new() } else { format!("{}: ", self.ports.join(", ")) };
        write!(f, "{ports}{}: {} -> {}", self.key, value(&self.before), value(&self.after))
    }
}

/// The differences between the running settings and others. A difference that is equal on several ports is
/// listed once.
#[must_use]
pub fn differences(before: &Settings, after: &Settings) -> Vec<Difference> {
    let places = before.iter().chain(after.iter()).map(|(port, key, _)| (port, key));
    let mut found: Vec<Difference> = Vec::new();
    for (port, key) in places.collect::<BTreeSet<_>>() {
        let (old, new) = (before.get(port, key), after.get(port, key));
        if old.map(|setting| &setting.exact) == new.map(|setting| &setting.exact) {
            continue;
        }
        let is_seen = old.map(|setting| &setting.text) != new.map(|setting| &setting.text);
        let value = |setting: Option<&Setting>| {
            setting.map(|setting| if is_seen { &setting.text } else { &setting.exact }.clone())
        };
        let difference = Difference {
            ports: port.into_iter().map(str::to_owned).collect(),
            key: key.to_owned(),
            before: value(old),
            after: value(new),
            is_live: old.into_iter().chain(new).all(|setting| setting.is_live),
            is_out: old.into_iter().chain(new).any(|setting| setting.is_out),
        };
        let is_same = |other: &&mut Difference| {
            let same =
                |difference: &Difference| (difference.key.clone(), difference.before.clone(), difference.after.clone());
            !difference.ports.is_empty() && !other.ports.is_empty() && same(other) == same(&difference)
        };
        match found.iter_mut().find(is_same) {
            Some(other) => other.ports.extend(difference.ports),
            None => found.push(difference),
        }
    }
    found
}

/// See [`Settings::fingerprint`]: 64-bit FNV-1a over all of them. Neither wording nor the address that a device brings
/// along affects it.
fn fingerprint(config: &Config, settings: &Settings) -> u64 {
    let own = |name: &str| {
        let mut ports = config.switch.ports.iter().zip(&config.devices);
        ports.any(|(port, device)| port.name == name && !device.has_mac)
    };
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for (port, key, setting) in settings.iter() {
        if key == "mac" && port.is_some_and(own) {
            continue;
        }
        // A zero byte, which no text contains, separates the parts.
        for part in [port.unwrap_or_default(), key, &setting.exact] {
            for byte in part.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash
}

/// All settings of a configuration.
#[must_use]
pub fn all(config: &Config) -> Settings {
    let mut settings = Settings::default();
    program::add(config, &mut settings);
    switch::add(&config.switch, &mut settings);
    if let Some(routing) = &config.switch.routing {
        routing::add(routing, &config.router_defaults, &mut settings);
    }
    port::add(config, &mut settings);
    settings.fingerprint = fingerprint(config, &settings);
    settings
}

/// Gives the metrics of the settings of a switch.
pub fn measure(switch: &SwitchSpec, gauges: &mut dyn Gauges) {
    port::measure_all(switch, gauges);
    switch::measure_all(switch, gauges);
}

/// `classes.3` if only that class is mapped to `target`, otherwise kind and number of `target`.
fn class_or(map: &[u8; CLASSES], target: usize, kind: &str) -> String {
    only_class(map, target).map_or_else(|| format!("{kind} {target}"), |class| format!("classes.{class}"))
}

fn on_or_off(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn or_off(value: Option<impl ToString>) -> String {
    value.map_or("off".to_owned(), |value| value.to_string())
}

fn list_or_none(values: &[String]) -> String {
    or_none((!values.is_empty()).then(|| values.join(", ")))
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}
