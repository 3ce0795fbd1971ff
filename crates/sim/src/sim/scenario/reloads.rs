//! Reads `switches[].reloads`: settings that a switch takes while it runs, as by `holdfast reload`.

use super::faults::LATEST;
use super::mmu;
use super::variants::merge;
use crate::config::settings::{self, Difference};
use crate::config::yaml::bounds;
use crate::config::yaml::read::{Fields, Item};
use crate::config::{self, Config, Overrides};
use crate::sim::spec::SwitchReload;
use crate::units::Nanos;

const EXAMPLE: &str = "`- {at: 1ms, set: {ports: [{name: p1, cable: 300m}]}}`";
/// Most reloads of a switch.
const MOST: usize = 64;
/// Settings for which a port is taken out and put in again.
const TAKEN_OUT: [&str; 4] = ["device", "mac", "mtu", "pfc"];

/// Reads the reloads of a switch. `written` is its configuration as written, and `first` as read. Each `set` has the
/// settings that differ from the first configuration.
pub fn read(fields: &Fields<'_>, written: &Item<'_>, overrides: &Overrides, first: &Config) -> Vec<SwitchReload> {
    let Some(item) = fields.get("reloads") else { return Vec::new() };
    let items = item.list(EXAMPLE).unwrap_or_default();
    if items.len() > MOST {
        item.fail(format!("{} reloads are too many; write at most {MOST}", items.len()));
        return Vec::new();
    }
    let mut reloads: Vec<SwitchReload> =
        items.iter().filter_map(|item| one(item, fields, written, overrides, first)).collect();
    reloads.sort_by_key(|reload| reload.at);
    reloads
}

fn one(
    item: &Item<'_>,
    switch: &Fields<'_>,
    written: &Item<'_>,
    overrides: &Overrides,
    first: &Config,
) -> Option<SwitchReload> {
    let fields = item.fields(&["at", "set"])?;
    let at = bounds::required(&fields, "at", "at: 1ms", Nanos(0)..=LATEST);
    let Some(set) = fields.get("set") else {
        return item.refuse(format!("`set` is missing; write e.g. {EXAMPLE}"));
    };
    let merged = merge(written.node(), &set, false);
    // Most of it may be in another file.
    let is_here = std::ptr::eq(written.report(), set.report());
    let root = if is_here { set.with_node(&merged) } else { Item::root(&merged, written.report()) };
    let mut wanted = config::build(&root, overrides);
    mmu::read(switch, wanted.as_mut());
    let wanted = wanted?;
    let differences = settings::differences(&settings::all(first), &settings::all(&wanted));
    // The device of a simulated port is its cable, which keeps its rate.
    let can_leave = |found: &Difference| {
        let ports = first.switch.ports.iter().enumerate();
        let mut named = ports.filter(|(_, port)| found.ports.contains(&port.name)).map(|(number, _)| number);
        let may_leave = |port: usize| first.switch.obstacle(port).or(wanted.switch.obstacle(port)).is_none();
        TAKEN_OUT.contains(&found.key.as_str()) && named.all(may_leave)
    };
    let mut fixed = differences.iter().filter(|found| if found.is_out { !can_leave(found) } else { !found.is_live });
    if let Some(fixed) = fixed.next() {
        return set.refuse(format!("{fixed}: a simulated switch does not take it while it runs; remove it"));
    }
    let switch = first.switch.with_live_of(&wanted.switch);
    Some(SwitchReload { at: at?, switch })
}
