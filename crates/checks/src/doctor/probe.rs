//! Reads the facts from `/sys`, `/proc` and `/dev` under a root.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Reach;
use super::facts::{Access, Cpus, Facts, Pages, PciNic, Process};
use crate::cpus::{ISOLATED, ONLINE, parse_list, usable};
use crate::router::kernel::KernelLimits;

/// Prefix of the PCI class of network controllers.
const NETWORK_CLASS: &str = "0x02";
/// Number of CAP_DAC_OVERRIDE, with which a process may open any file.
const DAC_OVERRIDE: u32 = 1;

/// Reads the facts of the machine whose `/sys`, `/proc` and `/dev` are under `root`.
#[must_use]
pub fn probe(root: &Path) -> Facts {
    let root = Root(root);
    let process = process(root);
    let (drivers, abi) = drivers(root);
    Facts {
        cpus: cpus(root),
        pages: pages(root),
        huge_mounts: huge_mounts(root),
        available_kib: root.field("proc/meminfo", "MemAvailable:").and_then(|value| first_number(&value)),
        nics: nics(root),
        has_iommu: !root.list("sys/kernel/iommu_groups").is_empty(),
        noiommu: root.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode").is_some_and(|text| text == "Y"),
        reach: Reach::read(|name| root.text(&format!("proc/net/{name}"))),
        neighbours: KernelLimits { ipv4: neighbours(root, "ipv4"), ipv6: neighbours(root, "ipv6") },
        tun: access(&root.at("dev/net/tun"), &process),
        vfio: vfio(root, &process),
        process,
        drivers,
        abi,
        drivers_are_linked: false,
        dpdk: None,
        has_switch: false,
        peers: Vec::new(),
    }
}

fn neighbours(root: Root<'_>, family: &str) -> Option<usize> {
    root.text(&format!("proc/sys/net/{family}/neigh/default/gc_thresh3"))?.parse().ok()
}

#[derive(Clone, Copy)]
struct Root<'a>(&'a Path);

impl Root<'_> {
    fn at(self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The text of a file without leading and trailing whitespace.
    fn text(self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok().map(|text| text.trim().to_owned())
    }

    fn number(self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The text after `name` in the first line that begins with it.
    fn field(self, path: &str, name: &str) -> Option<String> {
        let text = self.text(path)?;
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    }

    /// Names in a directory, in alphabetical order.
    fn list(self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The last component of the target of a symbolic link.
    fn link(self, path: &str) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    fn cpus(self, path: &str) -> Vec<u16> {
        self.text(path).map(|text| parse_list(&text)).unwrap_or_default()
    }
}

fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The number after `prefix` in names such as `node1` and `cpu3`.
fn numbered(name: &str, prefix: &str) -> Option<u16> {
    name.strip_prefix(prefix)?.parse().ok()
}

fn cpus(root: Root<'_>) -> Cpus {
    let system = "sys/devices/system/cpu";
    let (online, isolated) = (root.cpus(ONLINE), root.cpus(ISOLATED));
    let mask = root.field("proc/self/status", "Cpus_allowed_list:").map(|text| parse_list(&text)).unwrap_or_default();
    let mut cpus = Cpus {
        allowed: usable(&mask, &isolated, &online),
        online,
        isolated,
        nohz_full: root.cpus(&format!("{system}/nohz_full")),
        clocksource: root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ..Cpus::default()
    };
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    let of =
        |key: &str| info.lines().find(|line| line.starts_with(key))?.split_once(':').map(|(_, value)| value.trim());
    cpus.vendor = of("vendor_id").map(str::to_owned);
    cpus.flags = of("flags").map(|flags| flags.split_whitespace().map(str::to_owned).collect()).unwrap_or_default();
    for cpu in cpus.online.clone() {
        if let Some(governor) = root.text(&format!("{system}/cpu{cpu}/cpufreq/scaling_governor")) {
            cpus.governors.insert(cpu, governor);
        }
        if let Some(first) = root.cpus(&format!("{system}/cpu{cpu}/topology/thread_siblings_list")).first() {
            cpus.cores.insert(cpu, *first);
        }
    }
    for name in root.list("sys/devices/system/node") {
        let Some(node) = numbered(&name, "node") else { continue };
        let here = root.cpus(&format!("sys/devices/system/node/{name}/cpulist"));
        cpus.nodes.extend(here.into_iter().map(|cpu| (cpu, node)));
    }
    cpus
}

fn pages(root: Root<'_>) -> Vec<Pages> {
    let nodes = root.list("sys/devices/system/node");
    let mut places: Vec<(u16, String)> = nodes
        .iter()
        .filter_map(|name| Some((numbered(name, "node")?, format!("sys/devices/system/node/{name}/hugepages"))))
        .collect();
    if places.is_empty() {
        places.push((0, "sys/kernel/mm/hugepages".to_owned()));
    }
    places.sort();
    let mut pages = Vec::new();
    for (node, place) in places {
        for name in root.list(&place) {
            let kib = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB")?.parse().ok());
            let Some(kib) = kib else { continue };
            let read = |file: &str| root.number(&format!("{place}/{name}/{file}")).unwrap_or(0);
            pages.push(Pages { node, kib, total: read("nr_hugepages"), free: read("free_hugepages") });
        }
    }
    pages
}

fn huge_mounts(root: Root<'_>) -> Vec<String> {
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let words = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.get(2) == Some(&"hugetlbfs")).map(|words| words[1].to_owned()).collect()
}

fn nics(root: Root<'_>) -> Vec<PciNic> {
    let place = "sys/bus/pci/devices";
    let hex = |path: &str| u16::from_str_radix(root.text(path)?.trim_start_matches("0x"), 16).ok();
    let of = |address: String| {
        let at = |file: &str| format!("{place}/{address}/{file}");
        root.text(&at("class")).filter(|class| class.starts_with(NETWORK_CLASS))?;
        Some(PciNic {
            vendor: hex(&at("vendor"))?,
            device: hex(&at("device"))?,
            driver: root.link(&at("driver")),
            // The kernel reports -1 for an unknown node, which does not parse.
            node: root.text(&at("numa_node")).and_then(|node| node.parse().ok()),
            group: root.link(&at("iommu_group")),
            uppers: uppers(root, &root.list(&at("net"))),
            interfaces: root.list(&at("net")),
            address,
        })
    };
    root.list(place).into_iter().filter_map(of).collect()
}

/// Interfaces on top of others, and those on top of them.
fn uppers(root: Root<'_>, interfaces: &[String]) -> Vec<String> {
    let mut known = interfaces.to_vec();
    let mut next = 0;
    while let Some(name) = known.get(next) {
        let entries = root.list(&format!("sys/class/net/{name}"));
        for upper in entries.iter().filter_map(|entry| entry.strip_prefix("upper_")) {
            if !known.iter().any(|name| name == upper) {
                known.push(upper.to_owned());
            }
        }
        next += 1;
    }
    known.split_off(interfaces.len())
}

fn process(root: Root<'_>) -> Process {
    let status = |name| root.field("proc/self/status", name);
    let numbers = |text: String| text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>();
    let mask = |name| status(name).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    let mut gids = status("Groups:").map(numbers).unwrap_or_default();
    gids.extend(status("Gid:").map(numbers).and_then(|gids| gids.get(1).copied()));
    let uid = status("Uid:").map(numbers).and_then(|uids| uids.get(1).copied()).unwrap_or_default();
    let locked = root.field("proc/self/limits", "Max locked memory");
    Process {
        uid,
        gids,
        capabilities: mask("CapEff:"),
        // Ambient capabilities come from a systemd unit. Root has all capabilities permitted because it is root.
        of_file: if uid == 0 { 0 } else { mask("CapPrm:").unwrap_or(0) & !mask("CapAmb:").unwrap_or(0) },
        is_for_all: fs::metadata(root.at("proc/self/exe")).is_ok_and(|file| file.mode() & 1 != 0),
        // `unlimited` does not parse as a number.
        memlock: locked.and_then(|limits| first_number(&limits)),
    }
}

fn vfio(root: Root<'_>, process: &Process) -> BTreeMap<String, Access> {
    let names = root.list("dev/vfio").into_iter();
    names.map(|name| (name.clone(), access(&root.at(&format!("dev/vfio/{name}")), process))).collect()
}

/// Checks the mode of the file instead of opening it: an opened VFIO group would be busy.
fn access(path: &Path, process: &Process) -> Access {
    let Ok(file) = fs::metadata(path) else { return Access::Absent };
    let bits = match () {
        () if process.has(DAC_OVERRIDE) => 6,
        () if file.uid() == process.uid => file.mode() >> 6,
        () if process.gids.contains(&file.gid()) => file.mode() >> 3,
        () => file.mode(),
    };
    if bits & 6 == 6 { Access::Open } else { Access::Denied }
}

/// Reads the names of installed drivers and the newest number of their ABI: `pmds-25.0/librte_net_tap.so` is `net_tap`,
/// 25. The directory is Debian's or that of a build from source.
fn drivers(root: Root<'_>) -> (Vec<String>, u16) {
    let mut places = Vec::new();
    for base in ["usr/lib", "usr/local/lib"] {
        for name in root.list(base) {
            let dpdk = if name == "dpdk" { format!("{base}/dpdk") } else { format!("{base}/{name}/dpdk") };
            places.extend(root.list(&dpdk).into_iter().map(|pmds| format!("{dpdk}/{pmds}")));
        }
    }
    places.retain(|place| place.contains("/pmds-"));
    let abi = |place: &String| place.rsplit_once("/pmds-")?.1.split('.').next()?.parse().ok();
    let newest = places.iter().filter_map(abi).max().unwrap_or_default();
    let files = places.iter().flat_map(|place| root.list(place));
    let name = |file: String| Some(file.strip_prefix("librte_")?.split_once(".so")?.0.to_owned());
    let mut drivers: Vec<String> = files.filter_map(name).collect();
    drivers.sort();
    drivers.dedup();
    (drivers, newest)
}

#[cfg(test)]
mod tests {
    #[test]
    fn list_of_cpus_is_written_as_linux_writes_it() {
        assert_eq!(crate::doctor::ranges(&[2, 3, 4, 7]), "2-4,7");
        assert_eq!(crate::doctor::ranges(&[]), "none");
    }
}
