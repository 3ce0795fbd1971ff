//! Checks NICs: their drivers and VFIO groups, and the known facts about PFC through them.

use super::{
    Access, DeviceNeed, Facts, Family, Finding, FlowControlKnown, KERNEL_LINE, Level, Needs, PciNic, PfcKnown, fix,
    peers,
};
use crate::pfc::Observed;

/// Kernel drivers that give a PCI device to a program.
const USERSPACE: &[&str] = &["vfio-pci", "uio_pci_generic", "igb_uio"];

pub fn findings(facts: &Facts, needs: Option<&Needs>) -> Vec<Finding> {
    let Some(needs) = needs else {
        let mut all: Vec<Finding> = facts.nics.iter().flat_map(|nic| seen(facts, nic)).collect();
        if all.is_empty() {
            all.push(Finding::ok("nics", "none on PCI; virtual ports need none"));
        }
        return all;
    };
    let mut all = Vec::new();
    if needs.devices.iter().any(|device| wants_vfio(facts, device)) {
        all.extend(iommu(facts));
    }
    for device in &needs.devices {
        let Some(address) = device.pci() else { continue };
        match facts.nics.iter().find(|nic| nic.address == address) {
            Some(nic) => all.extend(wanted(facts, needs, device, nic)),
            None => {
                let what = format!("{address} is not a PCI network device of this machine");
                all.push(Finding::bad(
                    format!("port {}", device.port),
                    what,
                    "see `lspci -D | grep -i net` for the address, and write it as the port's `device`",
                ));
            }
        }
    }
    all
}

/// Reports a NIC when no configuration is given, so that its use is not known.
fn seen(facts: &Facts, nic: &PciNic) -> Vec<Finding> {
    let family = Family::of(nic);
    let place = format!("nic {}", nic.address);
    let node = nic.node.map(|node| format!(", node {node}")).unwrap_or_default();
    let interfaces = interfaces(nic);
    let has = nic.driver.as_deref().map_or("no driver".to_owned(), |driver| format!("driver {driver}"));
    let what = format!("{:04x}:{:04x}, {has}{interfaces}{node}; PFC {}", nic.vendor, nic.device, known(family.pfc()));
    let mut all = vec![Finding { remedy: free(facts, nic, family), ..Finding::ok(&place, what) }];
    all.extend(lldp(nic, family, &place).filter(|_| is_userspace(nic)));
    all.extend(group(facts, nic, &place).map(|finding| Finding { level: finding.level.min(Level::Warn), ..finding }));
    all
}

fn interfaces(nic: &PciNic) -> String {
    if nic.interfaces.is_empty() { String::new() } else { format!(" ({})", nic.interfaces.join(", ")) }
}

/// The uses of the machine that end when the NIC leaves the kernel.
fn uses(facts: &Facts, nic: &PciNic) -> Vec<String> {
    facts.reach.uses(&[&nic.interfaces[..], &nic.uppers[..]].concat())
}

/// Whether the kernel routes by the NIC, or other interfaces stand on it.
fn is_carrying(facts: &Facts, nic: &PciNic) -> bool {
    let has_route = facts.reach.routes.iter().any(|route| nic.interfaces.contains(&route.interface));
    has_route || !nic.uppers.is_empty()
}

fn is_userspace(nic: &PciNic) -> bool {
    nic.driver.as_deref().is_some_and(|driver| USERSPACE.contains(&driver))
}

/// The command that gives the NIC to a switch; `None` if that is not needed.
fn free(facts: &Facts, nic: &PciNic, family: Family) -> Option<String> {
    if is_userspace(nic) || family.is_bifurcated() {
        return None;
    }
    Some(match uses(facts, nic).join(" and ") {
        uses if uses.is_empty() => format!("to give it to the switch: {}", bind(nic)),
        uses => format!("it has {uses}: give another NIC to the switch ({})", others(facts, None, nic)),
    })
}

/// NICs that a switch can have in place of `nic`: they carry nothing, no program has them, and no port.
fn others(facts: &Facts, needs: Option<&Needs>, nic: &PciNic) -> String {
    let is_taken = |other: &PciNic| {
        let mut devices = needs.into_iter().flat_map(|needs| &needs.devices);
        devices.any(|device| device.pci().as_ref() == Some(&other.address))
    };
    let is_free = |other: &&PciNic| {
        other.address != nic.address && !is_taken(other) && !is_userspace(other) && !is_carrying(facts, other)
    };
    let free: Vec<&str> = facts.nics.iter().filter(is_free).map(|other| other.address.as_str()).collect();
    if free.is_empty() { "none here is free".to_owned() } else { format!("free: {}", free.join(", ")) }
}

/// The commands that bind a NIC to vfio-pci, also after a reboot.
fn bind(nic: &PciNic) -> String {
    format!(
        "`modprobe vfio-pci`, `driverctl set-override {} vfio-pci` (package driverctl), as root; the kernel then loses \
         the NIC",
        nic.address
    )
}

fn known(pfc: PfcKnown) -> &'static str {
    match pfc {
        PfcKnown::Likely => "likely works, but is untested",
        PfcKnown::Discarded => "does not work: its DPDK driver discards PFC frames that software sends",
        PfcKnown::Unknown => "is not known to work",
    }
}

/// Whether the device is a NIC that needs VFIO, as far as is known.
fn wants_vfio(facts: &Facts, device: &DeviceNeed) -> bool {
    let Some(address) = device.pci() else { return false };
    let nic = facts.nics.iter().find(|nic| nic.address == address);
    nic.is_none_or(|nic| !Family::of(nic).is_bifurcated() && !is_on_uio(nic))
}

/// Whether the NIC is bound to a kernel driver that uses no IOMMU.
fn is_on_uio(nic: &PciNic) -> bool {
    is_userspace(nic) && nic.driver.as_deref() != Some("vfio-pci")
}

fn iommu(facts: &Facts) -> Option<Finding> {
    let place = "iommu";
    match (facts.has_iommu, facts.noiommu) {
        (true, _) => Some(Finding::ok(place, "the kernel uses it")),
        (false, true) => Some(Finding::warn(
            place,
            "none; vfio works without it here, but a NIC may write anywhere in memory",
            iommu_on(facts),
        )
        .fixed_by(iommu_fix(facts))),
        (false, false) => Some(Finding::bad(
            place,
            "none, but vfio needs one",
            format!(
                "{}; on a machine without one bind the NIC to uio_pci_generic in place of vfio-pci: it may then write anywhere in \
                 memory",
                iommu_on(facts)
            ),
        )
        .fixed_by(iommu_fix(facts))),
    }
}

/// Arguments of the kernel. Linux turns AMD's IOMMU on by itself, and Intel's only when it is told to.
fn iommu_words(facts: &Facts) -> &'static str {
    match facts.cpus.vendor.as_deref() {
        Some("AuthenticAMD" | "HygonGenuine") => "iommu=pt",
        _ => "intel_iommu=on iommu=pt",
    }
}

fn iommu_on(facts: &Facts) -> String {
    format!("turn it on in the firmware and boot with `{}` {KERNEL_LINE}", iommu_words(facts))
}

fn iommu_fix(facts: &Facts) -> Vec<String> {
    let mut fix = fix::boot("iommu", iommu_words(facts));
    fix.insert(0, "# Turn it on in the firmware too.".to_owned());
    fix
}

/// Checks a NIC of the configuration.
fn wanted(facts: &Facts, needs: &Needs, device: &DeviceNeed, nic: &PciNic) -> Vec<Finding> {
    let family = Family::of(nic);
    let place = format!("port {}", device.port);
    let mut all = vec![binding(facts, needs, nic, &place)];
    all.extend(group(facts, nic, &place));
    if let Some(driver) = family.driver()
        && !facts.drivers.is_empty()
        && !facts.drivers.iter().any(|have| have == driver)
    {
        all.push(match facts.drivers_are_linked {
            true => {
                let what = format!("this program was linked without DPDK's driver {driver}");
                Finding::bad(&place, what, "use a program with shared DPDK")
            }
            false => {
                let what = format!("DPDK's driver {driver} is not installed");
                let package = facts.package(driver);
                Finding::bad(&place, what, format!("`apt-get install {package}`")).fixed_by(fix::package(&package))
            }
        });
    }
    all.extend(pfc(device, family, &place, peers::observed(facts, &device.port)));
    all.extend(flow_control(device, family, &place));
    all.extend(lldp(nic, family, &place));
    all
}

fn binding(facts: &Facts, needs: &Needs, nic: &PciNic, place: &str) -> Finding {
    let (address, family) = (&nic.address, Family::of(nic));
    match nic.driver.as_deref() {
        Some(driver) if is_userspace(nic) => Finding::ok(place, format!("{address} is bound to {driver}")),
        Some(driver) if family.is_bifurcated() => {
            Finding::ok(place, format!("{address} stays with {driver}, as DPDK needs"))
        }
        driver => {
            let what = driver.map_or("no driver".to_owned(), |driver| format!("the kernel's {driver}"));
            let what = format!("{address} is bound to {what}{}", interfaces(nic));
            let uses = uses(facts, nic).join(" and ");
            if uses.is_empty() {
                // Routes, and what stands on its interfaces, may carry sessions that are not seen here.
                let fix = if is_carrying(facts, nic) { Vec::new() } else { fix::bind(address) };
                return Finding::bad(place, what, bind(nic)).fixed_by(fix);
            }
            // No command of a script may cut off the one who runs it.
            let others = others(facts, Some(needs), nic);
            let remedy = format!(
                "write another NIC as the port's `device` ({others}); or, from a console, since {uses} will end: {}",
                bind(nic)
            );
            Finding::bad(place, format!("{what} and has {uses}"), remedy)
        }
    }
}

/// Checks that this process may open the VFIO group of a NIC that is bound to vfio-pci.
fn group(facts: &Facts, nic: &PciNic, place: &str) -> Option<Finding> {
    let group = nic.group.as_ref().filter(|_| nic.driver.as_deref() == Some("vfio-pci"))?;
    let file = format!("/dev/vfio/{group}");
    match facts.vfio.get(group).copied().unwrap_or_default() {
        Access::Open => Some(Finding::ok(place, format!("{file} may be opened"))),
        Access::Denied => {
            let what = format!("{file} may not be opened");
            let gid = facts.process.gids.last().copied().unwrap_or_default();
            let remedy = format!(
                "run as root, or give it to this user's group: `chgrp {gid} {file}`, `chmod 0660 {file}`, as root"
            );
            Some(Finding::bad(place, what, remedy).fixed_by(fix::vfio_group(gid)))
        }
        Access::Absent => {
            let what = format!("{file} does not exist");
            Some(Finding::bad(place, what, format!("for a container `--device {file} --device /dev/vfio/vfio`")))
        }
    }
}

/// Checks PFC of a port; `None`: a running switch has measured that its peer disobeys, which is a finding of its own.
fn pfc(device: &DeviceNeed, family: Family, place: &str, observed: Observed) -> Option<Finding> {
    let prove = "prove it as in docs/nics.md and write `pfc_proven: true`, or write `pfc: off`";
    Some(match (device.lossless, family.pfc(), device.proven) {
        (false, ..) => Finding::ok(place, "this port needs no PFC"),
        (true, PfcKnown::Discarded, _) => Finding::bad(
            place,
            "PFC does not work: the DPDK driver discards PFC frames that software sends, so no peer is ever paused",
            "use another NIC for this port, or write `pfc: off` and accept losses in its lossless classes",
        ),
        _ if observed == Observed::Disobeys => return None,
        _ if observed == Observed::Obeys => {
            Finding::ok(place, "PFC works: a running switch has measured that the peer stops at XOFF")
        }
        (true, PfcKnown::Likely, true) => {
            Finding::ok(place, "PFC works according to the operator (`pfc_proven`), and no measurement is at hand")
        }
        (true, PfcKnown::Likely, false) => Finding::warn(place, "PFC likely works, but is untested", prove),
        (true, PfcKnown::Unknown, true) => Finding::warn(
            place,
            "PFC works according to the operator (`pfc_proven`), but nothing is known about this driver",
            prove,
        ),
        (true, PfcKnown::Unknown, false) => Finding::warn(place, "unknown whether PFC passes this driver", prove),
    })
}

/// Reports the device's own flow control; `None` if the port needs no PFC or the device has no flow control.
fn flow_control(device: &DeviceNeed, family: Family, place: &str) -> Option<Finding> {
    if !device.lossless {
        return None;
    }
    let place = format!("{place} flow control");
    let look = "see `flow control` in `holdfast show ports` once it runs (docs/nics.md)";
    Some(match family.flow_control() {
        FlowControlKnown::None => return None,
        FlowControlKnown::TakesBothFromOn => Finding {
            remedy: Some(look.to_owned()),
            ..Finding::ok(
                place,
                "the device starts with PAUSE on; the switch turns it off and lets MAC control frames pass",
            )
        },
        FlowControlKnown::TakesBoth => Finding {
            remedy: Some(look.to_owned()),
            ..Finding::ok(place, "the switch turns PAUSE off and lets MAC control frames pass")
        },
        FlowControlKnown::OffOnly => Finding::warn(
            place,
            "the switch turns PAUSE off, but the driver cannot let MAC control frames pass: the device may drop PFC \
             frames",
            look,
        ),
        FlowControlKnown::Cannot => Finding::warn(
            place,
            "the DPDK driver cannot set flow control: the device may send PAUSE by itself or drop PFC frames",
            "turn it off while the kernel has the interface, `ethtool -A IFACE rx off tx off`, and watch the peer's \
             counters of PAUSE frames",
        ),
        FlowControlKnown::Unread => Finding::warn(place, "flow control through this driver was not examined", look),
    })
}

/// Warns of an LLDP agent in the firmware, whose state is in no file.
fn lldp(nic: &PciNic, family: Family, place: &str) -> Option<Finding> {
    let (flag, off) = family.lldp_flag()?;
    let what = "an LLDP agent in its firmware may consume LLDP frames and change queue maps; only its kernel driver \
                can show it";
    let interface = nic.interfaces.first().map_or("IFACE", String::as_str);
    let back = if is_userspace(nic) { "bind it to the kernel's driver for a moment: " } else { "" };
    let remedy = format!(
        "{back}`ethtool --show-priv-flags {interface}`, `ethtool --set-priv-flags {interface} {flag} {off}`, before \
         binding it to vfio-pci"
    );
    Some(Finding::warn(place, what, remedy))
}
