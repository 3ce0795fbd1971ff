//! `watchdog:` of the switch and of a port.

use super::draft::{Port, Watchdog};
use super::preset::Preset;
use crate::config::keys::Key;
use crate::config::yaml::read::Item;
use crate::pfc::{WatchdogAction, WatchdogSpec};
use crate::units::{BitRate, Nanos};

pub const KEYS: &[Key] = &[
    Key::new(
        "detection",
        "`200ms`",
        "`10ms` to `60s`",
        "paused this long, with frames waiting and none sent, a queue is in a [storm](pfc.md#watchdog)",
    ),
    Key::new("restoration", "`200ms`", "`10ms` to `60s`", "the storm ends after this time without pause"),
    Key::new("action", "`drop`", "`drop` `forward` `alert`", "[action](pfc.md#actions) during a storm"),
];

const MS: u64 = 1_000_000;
/// The defaults of SONiC.
const DEFAULT: WatchdogSpec =
    WatchdogSpec { detection: Nanos(200 * MS), restoration: Nanos(200 * MS), action: WatchdogAction::Drop };
const SHORTEST: Nanos = Nanos(10 * MS);
const LONGEST: Nanos = Nanos(60_000 * MS);

/// The longest pause that one PFC frame can request, in bits: 65535 quanta of 512 bit.
const LONGEST_PAUSE_BITS: u128 = 65_535 * 512;

/// Reads `watchdog:` of the switch; the preset `roce` has a watchdog by default.
pub fn read<'a>(item: Option<Item<'a>>, preset: Preset) -> Option<Watchdog<'a>> {
    let default = (preset == Preset::Roce).then_some(Watchdog { spec: DEFAULT, detection: None });
    read_over(item, default)
}

/// Reads `watchdog:` of a port; `over` is the switch's.
pub fn read_over<'a>(item: Option<Item<'a>>, over: Option<Watchdog<'a>>) -> Option<Watchdog<'a>> {
    let Some(item) = item else { return over };
    let base = over.unwrap_or(Watchdog { spec: DEFAULT, detection: None });
    if !item.is_map() {
        if item.is("off") {
            return None;
        }
        let remedy = "write `{detection: 200ms, restoration: 200ms, action: drop}` or `off`";
        return item.refuse(format!("`{}` is not a watchdog; {remedy}", item.shown()));
    }
    let fields = item.fields(KEYS)?;
    let time = |key| fields.get(key).and_then(|item| read_time(&item));
    let spec = WatchdogSpec {
        detection: time("detection").unwrap_or(base.spec.detection),
        restoration: time("restoration").unwrap_or(base.spec.restoration),
        action: fields.get("action").and_then(|item| item.choice(&WatchdogAction::WORDS)).unwrap_or(base.spec.action),
    };
    Some(Watchdog { spec, detection: fields.get("detection").or(base.detection) })
}

fn read_time(item: &Item<'_>) -> Option<Nanos> {
    let time = item.parse::<Nanos>()?;
    if (SHORTEST..=LONGEST).contains(&time) {
        return Some(time);
    }
    item.refuse(format!("`{}` is out of range; write from {SHORTEST} to {LONGEST}", item.shown()))
}

/// The longest single pause at `rate`, and the shortest longer detection time, in whole hundredths of a second.
fn longest_pause(rate: BitRate) -> (Nanos, Nanos) {
    let nanos = (LONGEST_PAUSE_BITS * 1_000_000_000).div_ceil(u128::from(rate.0.max(1)));
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    (Nanos(nanos), Nanos((nanos / SHORTEST.0 + 1).saturating_mul(SHORTEST.0)))
}

/// The watchdog of each port. A single legitimate pause must not look like a storm. So a default detection time is
/// extended for the port if necessary, and a written one that is too short causes a warning.
pub fn of_ports<'a>(ports: &[Port<'a>]) -> Vec<Option<WatchdogSpec>> {
    let detection = |port: &Port<'a>| port.watchdog.as_ref()?.detection.clone().filter(|_| port.pfc.sends_frames());
    for port in ports {
        let (Some(item), Some(watchdog)) = (detection(port), &port.watchdog) else { continue };
        let (pause, enough) = longest_pause(port.rate);
        // One key may apply to several ports; only the slowest of them reports.
        let same = ports.iter().filter(|other| detection(other).is_some_and(|other| other.is_same(&item)));
        let speaks = same.min_by_key(|other| other.rate).is_some_and(|slowest| std::ptr::eq(slowest, port));
        if watchdog.spec.detection <= pause && speaks {
            item.warn(format!(
                "`{}` is not longer than the longest single pause at the {} of port {} ({pause}), which would count as \
                 a storm; write {} or more",
                item.shown(),
                port.rate,
                port.name,
                written(enough)
            ));
        }
    }
    ports
        .iter()
        .map(|port| {
            let watchdog = port.watchdog.as_ref().filter(|_| port.pfc.sends_frames())?;
            let detection = match &watchdog.detection {
                Some(_) => watchdog.spec.detection,
                None => watchdog.spec.detection.max(longest_pause(port.rate).1),
            };
            Some(WatchdogSpec { detection, ..watchdog.spec })
        })
        .collect()
}

/// The time in milliseconds, in the syntax of the configuration.
fn written(time: Nanos) -> String {
    format!("{}ms", time.0 / MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_pause_matches_hand_computation() {
        // 65535 * 512 / 10^7 s
        assert_eq!(longest_pause("10M".parse().unwrap()), (Nanos(3_355_392_000), Nanos(3_360 * MS)));
        assert_eq!(longest_pause("10G".parse().unwrap()), (Nanos(3_355_392), Nanos(10 * MS)));
    }
}
