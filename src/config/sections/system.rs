//! `fdb:`, `eal:` and `metrics:` of the configuration.

use std::net::{Ipv4Addr, SocketAddr};

use super::ports::Port;
use super::routing::{Routing, SHORTEST_AGEING};
use crate::config::model::{EalConfig, MemoryMode};
use crate::config::yaml::names;
use crate::config::yaml::read::{Fields, Item};
use crate::forward::{Fdb, FdbSpec, StaticEntry};
use crate::units::Nanos;

const DEFAULT_FDB_CAPACITY: u32 = 16_384;
/// Default ageing time of IEEE 802.1Q clause 8.8.3.
const DEFAULT_AGEING: Nanos = Nanos(300_000_000_000);
/// Port 9464 is the default of OpenTelemetry for Prometheus exporters without a port of their own.
const DEFAULT_METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// EAL arguments that other keys determine, with the remedy.
const OWNED_EAL_ARGS: &[(&[&str], &str)] = &[
    (&["-l", "-c", "--lcores", "--main-lcore"], "choose CPUs with `lcores`"),
    (&["-a", "--allow", "--vdev", "--no-pci"], "name devices with `device` of each port"),
    (&["--no-huge", "--in-memory", "-m", "--socket-mem"], "choose memory with `eal.memory`"),
    (&["--file-prefix", "--no-shconf", "--proc-type", "--no-telemetry"], "remove it, because Holdfast sets it"),
];

/// Reads `fdb:`. The stations of the router take places in the database.
pub fn read_fdb(item: Option<Item<'_>>, ports: &[Port<'_>], routing: Option<&Routing<'_>>) -> FdbSpec {
    let fields = item.and_then(|item| item.fields(&["capacity", "ageing", "static"]));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let statics = get("static").and_then(|item| item.list("e.g. `- {vlan: 1, mac: 02:00:00:00:00:01, port: p1}`"));
    let own = routing.map(Routing::stations).unwrap_or_default();
    let mut entries: Vec<StaticEntry> = Vec::new();
    for item in statics.unwrap_or_default() {
        let Some(entry) = item.fields(&["vlan", "mac", "port"]).and_then(|fields| read_static(&fields, ports)) else {
            continue;
        };
        if entries.iter().any(|other| (other.vlan, other.mac) == (entry.vlan, entry.mac)) {
            item.fail(format!("{} in VLAN {} has a static entry already; keep one of the two", entry.mac, entry.vlan));
        }
        if own.iter().any(|own| (own.vlan, own.mac) == (entry.vlan, entry.mac)) {
            item.fail(format!(
                "{} in VLAN {} is the address of this switch, which routes there; remove the entry",
                entry.mac, entry.vlan
            ));
        }
        entries.push(entry);
    }
    // The order has no meaning, so a reload must not find a difference in it.
    entries.sort_by_key(|entry| (entry.vlan, entry.mac));
    let capacity = get("capacity").and_then(|item| item.number("a count of entries", 16..=1 << 20));
    let capacity = capacity.unwrap_or(DEFAULT_FDB_CAPACITY);
    let ageing = get("ageing").and_then(|item| item.parse()).unwrap_or(DEFAULT_AGEING);
    if let Some(item) = get("ageing").filter(|_| routing.is_some_and(Routing::has_vlans)) {
        warn_of_ageing(&item, ageing);
    }
    let spec = FdbSpec { capacity, ageing, entries };
    // An entry has eight possible places in a table of any size. With half of the capacity free, others can be learned.
    let mut all = spec.clone();
    all.entries.extend(own);
    let crowded = all.entries.len() > capacity as usize / 2 || Fdb::try_new(&all, 1).is_err();
    if let Some(item) =
        get("static").or_else(|| get("capacity")).or(routing.map(|routing| routing.item.clone())).filter(|_| crowded)
    {
        let (entries, enough) = (all.entries.len(), 4 * all.entries.len());
        let interfaces = if all.entries.len() > spec.entries.len() { " and interfaces" } else { "" };
        item.fail(format!(
            "{entries} static entries{interfaces} are too many for a capacity of {capacity}; write `capacity: \
             {enough}` or more"
        ));
    }
    spec
}

/// Warns of an ageing time in which the router's neighbours in VLANs are forgotten: packets to them are then dropped
/// until they send again.
fn warn_of_ageing(item: &Item<'_>, ageing: Nanos) {
    if ageing > Nanos(0) && ageing < SHORTEST_AGEING {
        item.warn(format!(
            "`{}` is short for a switch that routes: a silent neighbour in a VLAN is forgotten before the router asks \
             for it again; write `{SHORTEST_AGEING}` or more",
            item.shown()
        ));
    }
}

fn read_static(fields: &Fields<'_>, ports: &[Port<'_>]) -> Option<StaticEntry> {
    let vlan = match fields.get("vlan") {
        Some(item) => item.number("a VLAN", 1..=4094)?,
        None => 1,
    };
    let mac = names::station(&fields.required("mac", "mac: 02:00:00:00:00:01")?)?;
    let item = fields.required("port", "port: p1")?;
    let port = forwarding_port(&item, ports)?;
    if !ports[port].carries(Some(vlan)) {
        item.fail(format!(
            "port {} does not carry VLAN {vlan}; write a VLAN of the port, or another port",
            item.shown()
        ));
    }
    Some(StaticEntry { vlan, mac, port: u8::try_from(port).ok()? })
}

/// Index of the port that `item` names, as [`port_by_name`], unless it forwards nothing.
pub fn forwarding_port(item: &Item<'_>, ports: &[Port<'_>]) -> Option<usize> {
    let index = port_by_name(item, ports)?;
    if ports[index].is_output {
        return item.refuse(format!("port `{}` sends copies only (`mirrors`); write another port", item.shown()));
    }
    Some(index)
}

/// Index of the port that `item` names; of the first member if it names a link aggregation group.
pub fn port_by_name(item: &Item<'_>, ports: &[Port<'_>]) -> Option<usize> {
    let name = item.shown();
    let names = |port: &Port<'_>| port.lag.as_ref().map_or(port.name.clone(), |(group, _)| group.clone());
    let mut groups: Vec<String> = ports.iter().map(names).collect();
    let index = groups.iter().position(|known| *known == name);
    if let Some((group, _)) = ports.iter().find(|port| port.name == name).and_then(|port| port.lag.as_ref()) {
        return item.refuse(format!("port `{name}` is a member of `{group}`; write `{group}`"));
    }
    groups.dedup();
    let known: Vec<&str> = groups.iter().map(String::as_str).collect();
    index.or_else(|| item.refuse(format!("there is no port `{name}`; {}", names::suggest(&name, &known))))
}

/// Reads `eal:`.
pub fn read_eal(item: Option<Item<'_>>) -> EalConfig {
    let fields = item.and_then(|item| item.fields(&["memory", "args"]));
    let get = |key| fields.as_ref().and_then(|fields| fields.get(key));
    let modes = [("auto", MemoryMode::Auto), ("huge", MemoryMode::Huge), ("nohuge", MemoryMode::NoHuge)];
    let memory = get("memory").and_then(|item| item.choice(&modes)).unwrap_or(MemoryMode::Auto);
    let items = get("args").and_then(|item| item.list("e.g. [\"--log-level=8\"]")).unwrap_or_default();
    let args = items.iter().filter_map(read_eal_arg).collect();
    EalConfig { memory, args }
}

fn read_eal_arg(item: &Item<'_>) -> Option<String> {
    let arg = item.text("an argument; write e.g. \"--log-level=8\"")?;
    for (flags, remedy) in OWNED_EAL_ARGS {
        if flags.iter().any(|flag| is_flag(arg, flag)) {
            return item.refuse(format!("`{}` is not allowed in `args`; {remedy}", item.shown()));
        }
    }
    if arg.is_empty() || arg.contains(['\0', '\n']) || (arg.starts_with('-') && arg.contains(' ')) {
        return item.refuse(format!("`{}` is not one argument; write each as an item of its own", item.shown()));
    }
    Some(arg.to_owned())
}

/// Whether `arg` is `flag`, with or without an attached value: `--vdev=x`, `-l0-3`.
fn is_flag(arg: &str, flag: &str) -> bool {
    let Some(rest) = arg.strip_prefix(flag) else { return false };
    rest.is_empty() || rest.starts_with(['=', ' ']) || !flag.starts_with("--")
}

/// Reads `metrics:`.
pub fn read_metrics(item: Option<Item<'_>>) -> Option<SocketAddr> {
    let Some(item) = item else { return Some(DEFAULT_METRICS) };
    match item.shown().parse() {
        _ if item.is("off") => None,
        Ok(address) => Some(address),
        Err(_) => {
            let remedy = "write e.g. 127.0.0.1:9464, 0.0.0.0:9464, [::]:9464 or off";
            item.refuse(format!("`{}` is not an address with a port; {remedy}", item.shown()))
        }
    }
}
