//! `lldp:` of the configuration: whether ports speak LLDP, and the name and interval of the switch. The loop guard.

use super::draft::Port;
use crate::config::keys::Key;
use crate::config::model::{DeviceKind, LldpConfig, LoopGuard};
use crate::config::yaml::read::Item;
use crate::route::RoutingSpec;
use crate::units::Nanos;
use crate::wire::lldp::Text;

pub const KEYS: &[Key] = &[
    Key::new("name", "host name", "1 to 255 bytes", "name of the system"),
    Key::new("interval", "`30s`", "`1s` to `3600s`", "time between two frames"),
];

/// Seconds between two frames (802.1AB clause 9.2.5.7), and their default.
const INTERVALS: std::ops::RangeInclusive<u64> = 1..=3600;
const DEFAULT_INTERVAL: u16 = 30;
/// Time between two probes of a port, and its default.
const PROBES: std::ops::RangeInclusive<Nanos> = Nanos(100_000_000)..=Nanos(60_000_000_000);
const DEFAULT_PROBE: Nanos = Nanos(1_000_000_000);
/// Longest name in bytes (802.1AB clause 8.5.7).
const MOST_NAME: usize = 255;

/// `lldp:` of the switch.
#[derive(Debug)]
pub struct Lldp {
    /// Whether ports speak LLDP that do not say it themselves.
    is_on: bool,
    pub config: LldpConfig,
}

/// Reads `lldp:`, `loop_guard:` and `loop_probe:` of the switch. A switch without LLDP is silent: it sends no probes
/// either, unless `loop_probe` names their interval.
pub fn read(item: Option<Item<'_>>, guard: Option<Item<'_>>, probe: Option<Item<'_>>) -> Lldp {
    let is_off = item.as_ref().is_some_and(|item| item.is("off"));
    let answer = guard.as_ref().and_then(|item| item.choice(&LoopGuard::TABLE));
    let loop_guard = answer.unwrap_or(LoopGuard::Block);
    let sends = |item: &Item<'_>| !item.is("off");
    let loop_probe = match &probe {
        Some(item) => read_probe(item),
        None if is_off => None,
        None => Some(DEFAULT_PROBE),
    };
    match (&guard, &probe) {
        (Some(guard), _) if is_off && sends(guard) && loop_probe.is_none() => guard.warn(
            "with `lldp: off` no loop is seen, except at ports with `lldp: on`; add `loop_probe: 1s`, or remove this",
        ),
        (_, Some(probe)) if loop_guard == LoopGuard::Off && sends(probe) => {
            probe.warn("with `loop_guard: off` no port sends probes; remove one of the two");
        }
        _ => {}
    }
    let loop_probe = loop_probe.filter(|_| loop_guard != LoopGuard::Off);
    let default = LldpConfig { name: None, interval_s: DEFAULT_INTERVAL, loop_guard, loop_probe };
    let Some(item) = item else { return Lldp { is_on: true, config: default } };
    if is_off {
        return Lldp { is_on: false, config: default };
    }
    let fields = item.fields(KEYS);
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let name = get("name").and_then(|item| read_name(&item));
    let interval_s = get("interval").and_then(|item| read_interval(&item)).unwrap_or(DEFAULT_INTERVAL);
    Lldp { is_on: true, config: LldpConfig { name, interval_s, ..default } }
}

/// Reads the time between two probes of a port; `None`: it sends none.
fn read_probe(item: &Item<'_>) -> Option<Nanos> {
    if item.is("off") {
        return None;
    }
    let interval = item.parse::<Nanos>()?;
    if PROBES.contains(&interval) {
        return Some(interval);
    }
    let (shortest, longest) = (PROBES.start(), PROBES.end());
    item.refuse(format!("`{}` is out of range; write from {shortest} to {longest}, or `off`", item.shown()))
}

fn read_name(item: &Item<'_>) -> Option<String> {
    let name = item.text("a name; write e.g. tor1")?;
    if name.is_empty() || name.len() > MOST_NAME {
        return item.refuse(format!("the name has {} bytes; write 1 to {MOST_NAME}", name.len()));
    }
    if Text::new(name).as_str() != name {
        return item.refuse("the name has control or invisible characters; write one line of plain text");
    }
    Some(name.to_owned())
}

fn read_interval(item: &Item<'_>) -> Option<u16> {
    let interval: Nanos = item.parse()?;
    let seconds = interval.0 / 1_000_000_000;
    let is_whole = interval.0.is_multiple_of(1_000_000_000);
    match u16::try_from(seconds) {
        Ok(short) if is_whole && INTERVALS.contains(&seconds) => Some(short),
        _ => {
            item.refuse(format!("`{}` is not an interval of LLDP; write whole seconds from 1s to 3600s", item.shown()))
        }
    }
}

/// Reads `lldp:` of a port; `None`: as the switch says.
pub fn read_of_port(item: Option<Item<'_>>, device: &DeviceKind) -> Option<bool> {
    let item = item?;
    if item.is("off") {
        return Some(false);
    }
    if !item.is("on") {
        return item.refuse(format!("`{}` is neither on nor off", item.shown()));
    }
    if *device == DeviceKind::Ring {
        return item.refuse("a virtual host knows no LLDP; remove `lldp`");
    }
    Some(true)
}

/// Whether each port speaks LLDP. By default it does, unless its peer is a virtual host, or Linux answers for it.
pub fn of_ports(lldp: &Lldp, ports: &mut [Port<'_>], routing: Option<&RoutingSpec>) {
    let has_linux = routing.is_some_and(|routing| routing.linux.is_some());
    for port in ports {
        let is_of_linux = has_linux && matches!(port.vlan, crate::forward::VlanMode::Routed(_));
        let default = lldp.is_on && !matches!(port.device.kind, DeviceKind::Ring | DeviceKind::Absent) && !is_of_linux;
        port.device.lldp = port.lldp.unwrap_or(default);
    }
}
