//! Reads `mmu:` of a switch: the rules by which its buffer decides.

use crate::config::Config;
use crate::config::yaml::read::{Fields, Item};
use crate::mmu::{AbmSpec, GroupProfile, HeadroomPolicy, HpccRule, HpccRules, Threshold};
use crate::plan::SwitchSpec;
use crate::units::Cells;

/// Key of the rules, for mappings.
const HPCC: &str = "hpcc";
const OWN: &str = "holdfast";
const REVERIE: &str = "reverie";

/// Reads `mmu`, and gives the rules to the switch of `config`.
pub fn read(fields: &Fields<'_>, config: Option<&mut Config>) {
    let Some(item) = fields.get("mmu") else { return };
    if item.is(REVERIE) {
        if let Some(config) = config {
            match why_not_reverie(&config.switch) {
                Some(reason) => item.fail(reason),
                None => follow_reverie(&mut config.switch),
            }
        }
        return;
    }
    let Some(rules) = read_rules(&item).filter(|rules| !rules.is_empty()) else { return };
    let Some(switch) = config.map(|config| &mut config.switch) else { return };
    match why_not(switch) {
        Some(reason) => item.fail(reason),
        None => follow(switch, rules),
    }
}

fn read_rules(item: &Item<'_>) -> Option<HpccRules> {
    if item.is(OWN) {
        return Some(HpccRules::NONE);
    }
    if item.is(HPCC) {
        return Some(HpccRules::all());
    }
    if item.is("abm") || item.is_map() && item.has("abm") {
        return item.refuse("ABM is a policy of queues; write `queue_policy: abm` in the switch's `buffer`");
    }
    if item.is_map() && item.has(REVERIE) {
        return item.refuse(format!("Reverie has no parameters; write `mmu: {REVERIE}`"));
    }
    if !item.is_map() {
        return item.refuse(format!(
            "`{}` is not one of the choices; write `{OWN}`, `{HPCC}`, `{REVERIE}` or e.g. `{{{HPCC}: [xoff-at-threshold]}}`",
            item.shown()
        ));
    }
    let list = item.fields(&[HPCC])?.required(HPCC, "hpcc: [xoff-at-threshold]")?;
    let rules = list.list("`[xoff-at-threshold]`")?;
    rules.iter().map(Item::parse::<HpccRule>).collect()
}

/// Returns the reason why the rules of HPCC's simulator do not fit a switch; `None`: they do.
fn why_not(switch: &SwitchSpec) -> Option<&'static str> {
    if switch.buffer.policy != HeadroomPolicy::Independent {
        return Some("HPCC's simulator has headroom of each group only; write `headroom: independent`");
    }
    let has_reserve = switch.ports.iter().any(|port| port.buffer.reserve[1] > Cells(0));
    has_reserve.then_some("HPCC's simulator has no reserve of ports for lossless groups; remove `port_reserve`")
}

/// Returns the reason why Reverie's rules do not fit a switch; `None`: they do.
pub fn why_not_reverie(switch: &SwitchSpec) -> Option<&'static str> {
    if switch.lcores > 1 {
        return Some("Reverie's pool has the counts of one lcore; write `lcores: 1`");
    }
    if switch.buffer.policy != HeadroomPolicy::Independent {
        return Some("Reverie has headroom of each group only; write `headroom: independent`");
    }
    if switch.abm.is_some() {
        return Some("Reverie and ABM exclude each other; remove `queue_policy: abm` from the switch's `buffer`");
    }
    let limits_queue = switch.queues.iter().any(|queue| queue.limit.is_some_and(|limit| is_dynamic(limit.threshold)));
    let groups = || switch.ports.iter().flat_map(|port| &port.buffer.groups);
    let limits_group = groups().any(|group| group.lossless && is_dynamic(group.threshold));
    (!limits_queue && !limits_group)
        .then_some("`reverie` limits classes by a `queue_alpha`, or lossless ones by `alpha`; no class has any")
}

const fn is_dynamic(threshold: Threshold) -> bool {
    matches!(threshold, Threshold::Dynamic(_))
}

/// Lets the buffer of `switch` decide as Reverie: lossy queues and lossless groups, in one pool.
pub fn follow_reverie(switch: &mut SwitchSpec) {
    (switch.abm, switch.reverie) = (Some(AbmSpec::USUAL), true);
    switch.buffer.share_pools();
    for limit in switch.queues.iter_mut().filter_map(|queue| queue.limit.as_mut()) {
        limit.abm = is_dynamic(limit.threshold);
    }
}

/// Lets the buffer of `switch` decide by `rules`.
pub fn follow(switch: &mut SwitchSpec, rules: HpccRules) {
    switch.hpcc = rules;
    if rules.contains(HpccRule::PoolPerPort) {
        let extra = switch.ports.iter().map(|port| counted_once(&port.buffer.groups)).sum();
        let plan = &mut switch.buffer;
        plan.lossless_shared = plan.lossless_shared.saturating_add(extra);
        // Frames beyond the buffer need memory here.
        plan.total = plan.total.saturating_add(extra);
    }
}

/// Returns the cells of reserves and headroom that HPCC's simulator leaves in the pool, because it counts one reserve
/// and one headroom for a port. The largest ones are counted.
fn counted_once(groups: &[GroupProfile]) -> Cells {
    let lossless = || groups.iter().filter(|group| group.lossless);
    let beyond = |part: fn(&GroupProfile) -> Cells| -> Cells {
        let all: Cells = lossless().map(part).sum();
        all - lossless().map(part).max().unwrap_or_default()
    };
    beyond(|group| group.reserve) + beyond(|group| group.headroom)
}
