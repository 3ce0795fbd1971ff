//! `lcores.idle:`: how an lcore rests without traffic, and its demands on headroom and receive rings.

use super::draft::{Lcores, Port};
use crate::config::checks::bounds::{LONGEST_POLL_GAP, MOST_DESCRIPTORS};
use crate::config::keys::Key;
use crate::config::model::{DeviceKind, IdleConfig, IdleWait};
use crate::config::yaml::read::Item;
use crate::headroom::SHORTEST_FRAME;
use crate::pfc::PfcMode;
use crate::units::{Nanos, WIRE_OVERHEAD};

pub const KEYS: &[Key] = &[
    Key::new("wait", "required in a mapping", "one of these four", "`umwait` needs WAITPKG"),
    Key::new("after", "`50us`", "up to `1s`", "idle time before the first rest"),
    Key::new("longest", "`pause` `5us`, `umwait` `10us`, `sleep` `100us`", "`1us` to `10ms`", "longest rest"),
    Key::new("wake", "`pause` `1us`, `umwait` `5us`, `sleep` `50us`", "up to `10ms`", "longest allowed wake-up time"),
    Key::new(
        "lossless",
        "`false`",
        "`true` `false`",
        "lcores of lossless ports rest too; `longest` + `wake` must fit in `poll_gap`",
    ),
];

const WAITS: &[(&str, Option<IdleWait>)] = &[
    ("poll", None),
    ("pause", Some(IdleWait::Pause)),
    ("umwait", Some(IdleWait::Umwait)),
    ("sleep", Some(IdleWait::Sleep)),
];

const DEFAULT_AFTER: Nanos = Nanos(50_000);
const LONGEST_AFTER: Nanos = Nanos(1_000_000_000);
const SHORTEST_REST: Nanos = Nanos(1_000);
/// Longest rest and longest wake-up time: a resting lcore delays control orders, link changes and counters.
const LONGEST_REST: Nanos = Nanos(10_000_000);

/// Defaults of `longest` and `wake`: times that each wait can keep on an ordinary machine.
fn defaults(wait: IdleWait) -> (Nanos, Nanos) {
    match wait {
        IdleWait::Pause => (Nanos(5_000), Nanos(1_000)),
        IdleWait::Umwait => (Nanos(10_000), Nanos(5_000)),
        IdleWait::Sleep => (Nanos(100_000), Nanos(50_000)),
    }
}

/// Reads `lcores.idle:`; `None` if lcores always poll.
pub fn read(item: &Item<'_>) -> Option<IdleConfig> {
    if !item.is_map() {
        return item.choice(WAITS).flatten().map(with_defaults);
    }
    let fields = item.fields(KEYS)?;
    let wait = fields.required("wait", "wait: sleep").and_then(|item| item.choice(WAITS));
    let time = |key, what, least: Nanos, most: Nanos| {
        let item = fields.get(key)?;
        let time = item.parse::<Nanos>()?;
        if (least..=most).contains(&time) {
            return Some(time);
        }
        item.refuse(format!("`{}` is not a valid {what}; write from {least} to {most}", item.shown()))
    };
    let after = time("after", "idle time", Nanos(0), LONGEST_AFTER);
    let longest = time("longest", "rest", SHORTEST_REST, LONGEST_REST);
    let wake = time("wake", "wake-up time", Nanos(0), LONGEST_REST);
    let lossless = fields.get("lossless").and_then(|item| item.flag());
    let defaults = with_defaults(wait??);
    Some(IdleConfig {
        wait: defaults.wait,
        after: after.unwrap_or(defaults.after),
        longest: longest.unwrap_or(defaults.longest),
        wake: wake.unwrap_or(defaults.wake),
        lossless: lossless.unwrap_or(defaults.lossless),
    })
}

fn with_defaults(wait: IdleWait) -> IdleConfig {
    let (longest, wake) = defaults(wait);
    IdleConfig { wait, after: DEFAULT_AFTER, longest, wake, lossless: false }
}

impl Lcores<'_> {
    /// Checks the rest times against the poll gap and the receive rings. `is_lossless` holds a flag for each port.
    pub fn check_idle(&self, ports: &[Port<'_>], is_lossless: &[bool]) {
        let (Some(item), Some(idle)) = (&self.item, &self.config.idle) else { return };
        let item = item.child("idle");
        let owned = |lcore: u8| ports.iter().zip(is_lossless).filter(move |(port, _)| port.lcore == lcore);
        let has_lossless = |lcore: u8| owned(lcore).any(|(_, lossless)| *lossless);
        if idle.lossless {
            if let Some((port, _)) = ports.iter().zip(is_lossless).find(|(_, lossless)| **lossless) {
                self.check_gap(&item, idle, port);
            }
        } else if (0..self.count).all(has_lossless) {
            item.warn(
                "every lcore polls a lossless port, and such lcores do not rest: `idle` has no effect; write \
                 `lossless: true` and a `poll_gap` that covers the rests, or remove it",
            );
        }
        let resting = (0..self.count).filter(|&lcore| idle.lossless || !has_lossless(lcore));
        for (port, _) in resting.flat_map(owned).filter(|(_, lossless)| !**lossless) {
            warn_of_ring(port, idle);
        }
    }

    /// Refuses a rest longer than the poll gap. While an lcore rests, frames of a lossless port accumulate as in any
    /// poll gap, and headroom covers only the configured `poll_gap`.
    fn check_gap(&self, item: &Item<'_>, idle: &IdleConfig, port: &Port<'_>) {
        let (gap, allowed) = (idle.gap(), self.config.poll_gap);
        if gap <= allowed {
            return;
        }
        let remedy = if gap <= LONGEST_POLL_GAP {
            format!("write `poll_gap: {gap}` or more, which takes more headroom, or a shorter `longest`")
        } else {
            "write a shorter `longest`".to_owned()
        };
        item.child("longest").fail(format!(
            "a rest of {} and a wake-up time of {} leave lossless port {} without a poll for {gap}, but its headroom \
             covers a poll gap of {allowed}; {remedy}",
            idle.longest, idle.wake, port.name
        ));
    }
}

/// Warns if the receive ring of a lossy port can overflow during a rest. The port needs no headroom, but frames beyond
/// its ring are lost.
fn warn_of_ring(port: &Port<'_>, idle: &IdleConfig) {
    let ring = u64::from(port.device.rx_descriptors);
    let arrivals = port.rate.bytes_in(idle.gap()).0.div_ceil(SHORTEST_FRAME + u64::from(WIRE_OVERHEAD));
    if matches!(port.device.kind, DeviceKind::Ring | DeviceKind::Absent)
        || port.pfc == PfcMode::Queue
        || arrivals <= ring
    {
        return;
    }
    let remedy = match arrivals.checked_next_power_of_two() {
        Some(enough) if enough <= u64::from(MOST_DESCRIPTORS) => {
            format!("write `rx_descriptors: {enough}`, or a shorter `lcores.idle.longest`")
        }
        _ => "write a shorter `lcores.idle.longest`".to_owned(),
    };
    port.item.child("rx_descriptors").warn(format!(
        "while its lcore rests ({}, and {} to wake up), up to {arrivals} frames of 64 B arrive at port {} ({}): a \
         receive ring of {ring} can overflow; {remedy}",
        idle.longest, idle.wake, port.name, port.rate
    ));
}
