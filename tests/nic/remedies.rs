//! `holdfast doctor` in a guest in broken states: it names each, and its remedy works when it is typed.

use serde_json::Value;

use crate::guest::{Guest, Machine};
use crate::nic::Nic;

/// Address of the NIC, behind a root port of NUMA node 1.
const ADDRESS: &str = "0000:81:00.0";
/// An ordinary user of the guest.
const USER: &str = "operator";

/// The guest has no package driverctl: this does by sysfs what `driverctl set-override ADDRESS DRIVER` does at once.
const DRIVERCTL: &str = "set -e; device=/sys/bus/pci/devices/$2; [ $1 = set-override ]
[ ! -e $device/driver ] || echo $2 > $device/driver/unbind
echo $3 > $device/driver_override; echo $2 > /sys/bus/pci/drivers_probe; [ -e $device/driver ]";

/// A machine with two NUMA nodes and an IOMMU, which the kernel uses if `words` on its command line say so.
fn machine(words: &str) -> Machine {
    let more = "-object memory-backend-ram,id=m0,size=384M -object memory-backend-ram,id=m1,size=384M \
                -numa node,nodeid=0,cpus=0,memdev=m0 -numa node,nodeid=1,cpus=1,memdev=m1 \
                -device pxb-pcie,id=pxb,bus_nr=128,numa_node=1,bus=pcie.0 -device pcie-root-port,id=rp,bus=pxb,chassis=1 \
                -device e1000e,bus=rp";
    let more = more.split_whitespace().map(str::to_owned).collect();
    Machine { nic: Nic::E1000e, nics: 0, iommu: true, words: words.to_owned(), more }
}

#[track_caller]
fn start(words: &str) -> Guest {
    let mut guest = Guest::start(&machine(words));
    guest.run(&format!(
        "set -e\ncat > /etc/switch.yaml <<'END'\npreset: roce\nports:\n  - {{name: p0, device: \"{ADDRESS}\", speed: 1G}}\n\
         buffer: {{size: 4MiB, cell: 2KiB}}\nlcores: {{control: 0, dataplane: 1}}\nEND\n\
         echo '{USER}:x:1000:1000::/tmp:/bin/sh' >> /etc/passwd\necho '{USER}:x:1000:' >> /etc/group\n\
         cat > /bin/driverctl <<'END'\n#!/bin/sh\n{DRIVERCTL}\nEND\nchmod +x /bin/driverctl\n\
         modprobe vfio_iommu_type1\nmodprobe e1000e"
    ));
    guest
}

/// The findings of `doctor`, run by a command line with `{}` in its place.
#[track_caller]
fn findings(guest: &mut Guest, by: &str) -> Vec<Value> {
    let (status, shown) = guest.try_run(&by.replace("{}", "holdfast doctor /etc/switch.yaml --json"));
    assert!(status < 2, "{shown}");
    let shown: Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    shown["findings"].as_array().expect("findings").clone()
}

/// The remedy of the finding that is not `ok` and whose text contains `what`.
fn remedy(findings: &[Value], what: &str) -> Option<String> {
    let is_it = |finding: &&Value| finding["level"] != "ok" && finding["what"].as_str().expect("a text").contains(what);
    findings.iter().find(is_it).map(|finding| finding["remedy"].as_str().expect("a remedy").to_owned())
}

/// The commands of a remedy: its words in backticks.
fn commands(remedy: &str) -> Vec<&str> {
    remedy.split('`').skip(1).step_by(2).collect()
}

/// Checks that `doctor` names the state, types its remedy as root, and checks that the state is mended.
#[track_caller]
fn mended_as_told(guest: &mut Guest, by: &str, what: &str) {
    let found = findings(guest, by);
    let told = remedy(&found, what).unwrap_or_else(|| panic!("no word of {what:?}: {found:#?}"));
    for command in commands(&told) {
        guest.run(command);
    }
    let found = findings(guest, by);
    assert_eq!(remedy(&found, what), None, "in spite of {told}: {found:#?}");
}

/// No IOMMU, the wrong driver, no hugepages, none on the NIC's node, no privilege, too little locked memory.
pub fn each_state_is_named_and_mended() {
    let root = "{}";
    let mut guest = start("intel_iommu=off");
    let told = remedy(&findings(&mut guest, root), "none, but vfio needs one").expect("a word of the IOMMU");
    drop(guest);
    let mut guest = start(commands(&told)[0]);
    assert_eq!(remedy(&findings(&mut guest, root), "vfio needs one"), None);

    mended_as_told(&mut guest, root, "bound to the kernel's e1000e");
    mended_as_told(&mut guest, root, "but this configuration needs");
    guest.run("echo 0 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
    mended_as_told(&mut guest, root, "none is free on the node of port p0");

    let user = format!("ulimit -l 64; su {USER} -c '{{}}'");
    mended_as_told(&mut guest, &user, "may not be opened");
    let found = findings(&mut guest, &user);
    let told =
        remedy(&found, "hugepages and NICs need more").unwrap_or_else(|| panic!("no word of memlock: {found:#?}"));
    let raised = format!("ulimit -l 64; {}; su {USER} -c '{{}}'", commands(&told)[0]);
    assert_eq!(remedy(&findings(&mut guest, &raised), "hugepages and NICs need more"), None);

    // Each remedy was typed, so an ordinary user can run the switch on the NIC.
    let run = raised.replace("{}", "HOLDFAST_SOCKET=off holdfast run /etc/switch.yaml --duration 1");
    guest.run(&run);
}
