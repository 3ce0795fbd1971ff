//! Checks hugepages, and ordinary memory if they are not used.

use super::{Facts, Finding, Level, Needs, Pages, fix};

/// Size of the pages that can be added while a machine runs, in KiB.
const SMALL_KIB: u64 = 2048;
const ADD: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

pub fn findings(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let is_wanted = needs.is_some_and(|needs| needs.huge);
    let mut all: Vec<Finding> = facts.pages.iter().filter(|pages| pages.total > 0).map(node).collect();
    let free_kib: u64 = facts.pages.iter().map(|pages| pages.free * pages.kib).sum();
    let wanted = needs.and_then(|needs| needs.memory_mib);
    if is_wanted {
        all.push(enough(facts, free_kib, wanted));
        all.extend(nodes_without(facts, needs));
    } else if free_kib == 0 {
        let needed = if needs.is_some() { "this configuration needs none" } else { "only NICs need them" };
        all.push(Finding::ok("hugepages", format!("none are free; {needed}")));
    }
    if facts.huge_mounts.is_empty() && free_kib > 0 {
        // Holdfast starts DPDK with --in-memory.
        all.push(Finding::ok("hugepages", "hugetlbfs is not mounted, and Holdfast does not need it"));
    }
    if let (false, Some(wanted), Some(available)) = (is_wanted, wanted, facts.available_kib) {
        all.push(ordinary(available >> 10, wanted.into()));
    }
    all
}

fn node(pages: &Pages) -> Finding {
    let place = format!("hugepages, node {}", pages.node);
    Finding::ok(place, format!("{} of {} pages of {} KiB are free", pages.free, pages.total, pages.kib))
}

/// Number of 2 MiB pages on the nodes for which `is_here` is true.
fn small_pages(facts: &Facts, is_here: impl Fn(u16) -> bool) -> u64 {
    facts.pages.iter().filter(|pages| pages.kib == SMALL_KIB && is_here(pages.node)).map(|pages| pages.total).sum()
}

fn enough(facts: &Facts, free_kib: u64, wanted: Option<u32>) -> Finding {
    let place = "hugepages";
    let needed_kib = wanted.map_or(1, |mib| u64::from(mib) << 10);
    let free = free_kib >> 10;
    if facts.has_switch {
        return Finding::ok(place, format!("{free} MiB are free beside those of the running switch"));
    }
    if free_kib >= needed_kib {
        return match wanted {
            Some(wanted) => Finding::ok(place, format!("{free} MiB are free, {wanted} MiB are needed")),
            None => Finding::ok(place, format!("{free} MiB are free")),
        };
    }
    let what = match wanted {
        Some(wanted) => format!("{free} MiB are free, but this configuration needs {wanted} MiB"),
        None => "none is free, but this configuration needs them".to_owned(),
    };
    // The existing pages may belong to another program, so the missing ones are added to their total.
    let pages = (needed_kib - free_kib).div_ceil(SMALL_KIB);
    let total = small_pages(facts, |_| true) + pages;
    Finding::bad(place, what, format!("add {pages} pages of 2 MiB or more: `echo {total} > {ADD}`, as root"))
        .fixed_by(fix::setting("hugepages", ADD, total))
}

/// Warns of nodes with a NIC of the configuration but without hugepages: its buffers would be on another node.
fn nodes_without(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for device in needs.into_iter().flat_map(|needs| &needs.devices) {
        let nic = facts.nics.iter().find(|nic| Some(&nic.address) == device.pci().as_ref());
        let Some(node) = nic.and_then(|nic| nic.node) else { continue };
        let has_pages = facts.has_switch || facts.pages.iter().any(|pages| pages.node == node && pages.free > 0);
        let place = format!("hugepages, node {node}");
        if has_pages || all.iter().any(|finding| finding.place == place) {
            continue;
        }
        let file = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
        let what = format!("none is free on the node of port {}: its frames would be on another node", device.port);
        // Counts the whole memory on this node: the part that DPDK takes from each node is not known.
        let wanted =
            needs.and_then(|needs| needs.memory_mib).map_or(1, |mib| (u64::from(mib) << 10).div_ceil(SMALL_KIB));
        let total = small_pages(facts, |other| other == node) + wanted;
        // Its file comes behind that of all nodes, whose number the kernel spreads over them.
        let fix = fix::setting(&format!("node{node}-hugepages"), &file, total);
        let remedy = format!("add them there: `echo {total} > {file}`, as root");
        all.push(Finding::warn(place, what, remedy).fixed_by(fix));
    }
    all
}

fn ordinary(available: u64, wanted: u64) -> Finding {
    let what = format!("{available} MiB are free, {wanted} MiB are needed");
    if available >= wanted {
        return Finding::ok("memory", what);
    }
    Finding::of(Level::Bad, "memory", what, "write a smaller `buffer.size` or fewer ports, or free some memory")
}
