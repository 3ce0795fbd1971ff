//! `lags:` and `lag_hash:` of the configuration: link aggregation groups.

use super::draft::Port;
use crate::config::keys::Key;
use crate::config::model::{DeviceKind, LacpConfig};
use crate::config::overrides::Overrides;
use crate::config::yaml::names::{self, Unique};
use crate::config::yaml::read::{Fields, Item};
use crate::forward::lag::MAX_MEMBERS;
use crate::forward::{LagSpec, LagsSpec};
use crate::sets::PortSet;

pub const KEYS: &[Key] = &[
    Key::new("name", "required", "as of ports", "stands for the group where a port is named"),
    Key::new("ports", "required", "1 to 8", "members"),
    Key::new("lacp", "`active`", "`active` `passive` `off`", ""),
    Key::new("rate", "`fast`", "`fast` `slow`", "not with `lacp: off`"),
    Key::new("min_links", "1", "1 to the ports", "fewest active members"),
];
pub const HASH_KEYS: &[Key] = &[
    Key::new("seed", "from the first port's MAC address", "0 to 2^64 - 1", ""),
    Key::new("symmetric", "`false`", "", "both directions of a flow have one member"),
];
const EXAMPLE: &str = "`- {name: bond0, ports: [p1, p2]}` for each group";

/// The groups, with LACP of each.
#[derive(Debug, Default)]
pub struct Lags {
    pub spec: LagsSpec,
    /// LACP by group; `None`: it is static.
    pub lacp: Vec<Option<LacpConfig>>,
    /// Whether the seed of the hash is written.
    pub has_seed: bool,
}

/// The words of `lacp`: none for a static group, or whether its ports speak first.
const MODES: [(&str, Option<bool>); 3] = [("active", Some(true)), ("passive", Some(false)), ("off", None)];
const RATES: [(&str, bool); 2] = [("fast", true), ("slow", false)];

/// Reads `lags:` and `lag_hash:`, and makes `ports` members of their groups.
pub fn read(item: Option<Item<'_>>, hash: Option<Item<'_>>, ports: &mut [Port<'_>], overrides: &Overrides) -> Lags {
    let mut lags = Lags::default();
    if let Some(hash) = &hash {
        read_hash(hash, item.is_some(), &mut lags);
    }
    let mut seen = Unique::new("name");
    let mut groups = Vec::new();
    for item in item.and_then(|item| item.list(EXAMPLE)).unwrap_or_default() {
        groups.extend(read_group(&item, ports, &mut seen, overrides));
    }
    groups.sort_by_key(|(group, _)| group.ports.lowest());
    let (specs, lacp): (Vec<LagSpec>, _) = groups.into_iter().unzip();
    lags.spec.groups = specs;
    lags.lacp = lacp;
    lags
}

fn read_hash(item: &Item<'_>, has_groups: bool, lags: &mut Lags) {
    if !has_groups {
        item.warn("there are no groups; remove it, or write `lags`");
    }
    let Some(fields) = item.fields(HASH_KEYS) else { return };
    let seed = fields.get("seed").and_then(|item| item.number("a seed", 0..=u64::MAX));
    lags.has_seed = seed.is_some();
    lags.spec.hash_seed = seed.unwrap_or_default();
    lags.spec.is_symmetric = fields.get("symmetric").and_then(|item| item.flag()).unwrap_or(false);
}

fn read_group(
    item: &Item<'_>,
    ports: &mut [Port<'_>],
    seen: &mut Unique,
    overrides: &Overrides,
) -> Option<(LagSpec, Option<LacpConfig>)> {
    let fields = item.fields(KEYS)?;
    let name = names::read(&fields, "name: bond0", seen)?;
    if ports.iter().any(|port| port.name == name) {
        return fields.get("name")?.refuse(format!("`{name}` is the name of a port; write another"));
    }
    let members = read_members(&fields, &name, ports, overrides);
    let mode = fields.get("lacp").map_or(Some(Some(true)), |item| item.choice(&MODES))?;
    let rate = fields.get("rate");
    if let Some(rate) = rate.as_ref().filter(|_| mode.is_none()) {
        rate.fail("a group without LACP has no rate; remove it, or write `lacp: active`");
    }
    let is_fast = rate.map_or(Some(true), |item| item.choice(&RATES))?;
    let members = members?;
    let links = 1..=members.len() as u64;
    let min_links = fields.get("min_links").map_or(Some(1), |item| item.number("a number of links", links))?;
    let lacp = mode.map(|is_active| LacpConfig { is_active, is_fast });
    // No control plane runs in the simulator: members are active while they have a link.
    let is_negotiated = lacp.is_some() && !overrides.simulated;
    let first = members.lowest()?;
    members.iter().for_each(|index| ports[index].lag = Some((name.clone(), first)));
    Some((LagSpec { name, ports: members, min_links, is_negotiated }, lacp))
}

/// Reads the members of group `name`; `None` if one is wrong.
fn read_members(fields: &Fields<'_>, name: &str, ports: &[Port<'_>], overrides: &Overrides) -> Option<PortSet> {
    let list = fields.required("ports", "ports: [p1, p2]")?;
    let items = list.list("a port, e.g. [p1, p2]")?;
    if items.is_empty() || items.len() > MAX_MEMBERS {
        return list.refuse(format!("a group has 1 to {MAX_MEMBERS} ports, not {}", items.len()));
    }
    let (mut members, mut is_right) = (PortSet::EMPTY, true);
    for item in &items {
        let Some(index) = read_member(item, ports, overrides) else {
            is_right = false;
            continue;
        };
        if members.contains(index) {
            item.fail(format!("`{}` stands twice in `{name}`; remove one", item.shown()));
            is_right = false;
        }
        members.insert(index);
    }
    let first = &ports[members.lowest()?];
    for index in members.iter() {
        is_right &= check_equal(&ports[index], first, name);
    }
    is_right.then_some(members)
}

fn read_member(item: &Item<'_>, ports: &[Port<'_>], overrides: &Overrides) -> Option<usize> {
    let name = item.shown();
    let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let Some(index) = known.iter().position(|known| *known == name) else {
        return item.refuse(format!("there is no port `{name}`; {}", names::suggest(&name, &known)));
    };
    let port = &ports[index];
    if let Some((group, _)) = &port.lag {
        return item.refuse(format!("port `{name}` is a member of `{group}` already; remove it in one of the two"));
    }
    if port.has_device && port.device.kind == DeviceKind::Ring && !overrides.simulated {
        return item.refuse(format!("port `{name}` has a virtual host, which has one link; remove it here"));
    }
    Some(index)
}

/// Checks that a member has the settings of the first one that flows must not meet a difference in. Returns whether it
/// has.
fn check_equal(port: &Port<'_>, first: &Port<'_>, group: &str) -> bool {
    let keys = [
        ("speed", port.rate == first.rate),
        ("mtu", port.mtu == first.mtu),
        ("vlan", port.vlan == first.vlan),
        ("trust", port.live.trust == first.live.trust),
        ("class", port.live.port_class == first.live.port_class),
        ("maps", port.live.marks == first.live.marks),
        ("rewrite", port.live.rewrite == first.live.rewrite),
        ("pfc", port.pfc == first.pfc),
        ("fdb_limit", port.fdb_limit == first.fdb_limit),
    ];
    let mut is_equal = true;
    for (key, _) in keys.iter().filter(|(_, is_same)| !is_same) {
        is_equal = false;
        port.item.child(key).fail(format!(
            "port `{}` differs in `{key}` from `{}`, and both are members of `{group}`; write one value at both",
            port.name, first.name
        ));
    }
    is_equal
}
