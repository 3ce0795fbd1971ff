//! NICs, their drivers, and their support of PFC.

use holdfast::doctor::Level::{Bad, Ok as Fine, Warn};
use holdfast::doctor::{Family, Finding, PciNic, Peer, script};
use holdfast::pfc::Observed;

use crate::server::{NICS, Server, at};

const A: &str = "0000:3b:00.0";
/// The configuration `NICS` without any port whose PFC is proven.
fn unproven() -> String {
    NICS.replace(", pfc_proven: true", "")
}

#[test]
fn nic_bound_to_kernel_driver_or_to_none_is_bad() {
    let server = Server::new();
    server.nic(A, "0x8086", "0x10fb", Some("ixgbe"), "1", "40");
    let text = at(&server.examine(NICS, None), Bad, "port a");
    let commands = "`modprobe vfio-pci`, `driverctl set-override 0000:3b:00.0 vfio-pci` (package driverctl), as root";
    assert!(text.contains("bound to the kernel's ixgbe") && text.contains(commands), "{text}");
    server.nic(A, "0x8086", "0x10fb", None, "1", "40");
    let text = at(&server.examine(NICS, None), Bad, "port a");
    assert!(text.contains("bound to no driver") && text.contains(commands), "{text}");
}

#[test]
fn a_nic_that_is_not_there_is_bad() {
    let server = Server::new();
    server.remove("sys/bus/pci/devices/0000:3b:00.1");
    assert!(at(&server.examine(NICS, None), Bad, "port b").starts_with("0000:3b:00.1 is not a PCI network device"));
}

#[test]
fn mlx5_stays_with_its_kernel_driver() {
    let server = Server::new();
    server.nic(A, "0x15b3", "0x1017", Some("mlx5_core"), "1", "40");
    let findings = server.examine(NICS, None);
    assert!(findings.iter().any(|finding| finding.level == Fine && finding.what.contains("stays with mlx5_core")));
    // Only the operator's statement vouches for PFC there: the program does not know the driver.
    assert!(at(&findings, Warn, "port a").contains("nothing is known about this driver"));
}

#[test]
fn vfio_without_iommu_is_bad() {
    let server = Server::new();
    server.remove("sys/kernel/iommu_groups");
    assert!(at(&server.examine(NICS, None), Bad, "iommu").contains("intel_iommu=on"));
    server.file("sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    assert!(at(&server.examine(NICS, None), Warn, "iommu").contains("may write anywhere"));
    // AMD's is on where the firmware has it on, and Linux does not know `amd_iommu=on`.
    server.file("proc/cpuinfo", "vendor_id\t: AuthenticAMD\nflags\t\t: fpu\n");
    let (findings, remedy) = (server.examine(NICS, None), "boot with `iommu=pt`");
    let is_amd = |finding: &Finding| finding.remedy.as_deref().is_some_and(|text| text.contains(remedy));
    assert!(findings.iter().any(|finding| finding.place == "iommu" && is_amd(finding)), "{findings:?}");
    let script = script(&findings);
    assert!(script.contains(" iommu=pt\"'") && !script.contains("intel_iommu"), "{script}");
    // NICs on uio or on their kernel driver need no IOMMU.
    server.nic(A, "0x8086", "0x10fb", Some("uio_pci_generic"), "1", "40");
    server.nic("0000:3b:00.1", "0x8086", "0x10fb", Some("igb_uio"), "1", "41");
    assert!(server.examine(NICS, None).iter().all(|finding| finding.place != "iommu"));
    server.nic(A, "0x15b3", "0x1017", Some("mlx5_core"), "1", "40");
    server.nic("0000:3b:00.1", "0x15b3", "0x1017", Some("mlx5_core"), "1", "41");
    assert!(server.examine(NICS, None).iter().all(|finding| finding.place != "iommu"));
}

#[test]
fn measured_peer_overrules_the_word_of_the_operator() {
    let server = Server::new();
    let peer = |port: &str, observed| Peer {
        port: port.to_owned(),
        priority: 3,
        observed,
        stops: 1234,
        late_xoffs: 7,
        late_frames: 5678,
    };
    let peers = vec![peer("a", Observed::Disobeys), peer("b", Observed::Obeys), peer("c", Observed::Unseen)];
    let findings = server.examine_with(NICS, peers);
    let of = |level, place: &str| {
        let chosen = findings.iter().filter(|finding| finding.level == level && finding.place == place);
        chosen.map(|finding| finding.what.as_str()).collect::<Vec<_>>().join("\n")
    };
    let bad = findings.iter().find(|finding| finding.level == Bad && finding.place == "port a").expect("a finding");
    assert_eq!(bad.what, "its peer does not stop at XOFF of priority 3: 5,678 frames came too late after 7 XOFFs");
    assert!(
        bad.remedy.as_ref().is_some_and(|text| text.starts_with("enable PFC for priority 3 at the peer")),
        "{bad:?}"
    );
    assert!(!of(Fine, "port a").contains("PFC works"), "{findings:?}");
    let obeys = of(Fine, "port b");
    assert!(
        obeys.contains("PFC works: a running switch has measured") && obeys.contains("stopped 1,234 times"),
        "{obeys}"
    );
    assert!(findings.iter().all(|finding| finding.place != "port c"), "an unseen peer is no finding");
}

#[test]
fn pfc_support_is_reported_for_each_nic_family() {
    let server = Server::new();
    assert!(at(&server.examine(&unproven(), None), Warn, "port a").contains("likely works"));

    server.nic(A, "0x8086", "0x1572", Some("vfio-pci"), "1", "40");
    assert!(at(&server.examine(NICS, None), Bad, "port a").contains("discards PFC frames"), "no word makes it work");
    let off = NICS.replacen("pfc_proven: true", "pfc: \"off\"", 1);
    assert!(!server.faults(&off, None).iter().any(|(level, _)| *level == Bad));

    server.nic(A, "0x8086", "0x1234", Some("vfio-pci"), "1", "40");
    assert!(at(&server.examine(&unproven(), None), Warn, "port a").starts_with("unknown whether PFC passes"));
}

#[test]
fn flow_control_is_reported_for_each_nic_family() {
    let server = Server::new();
    let said = |level| at(&server.examine(NICS, None), level, "port a flow control");
    for (device, what) in [
        ("0x10fb", "the switch turns PAUSE off"),
        ("0x1521", "starts with PAUSE on"),
        ("0x15f3", "starts with PAUSE on"),
    ] {
        server.nic(A, "0x8086", device, Some("vfio-pci"), "1", "40");
        let text = said(Fine);
        assert!(text.contains(what) && text.contains("holdfast show ports"), "{text}");
    }
    server.nic(A, "0x8086", "0x1592", Some("vfio-pci"), "1", "40");
    assert!(said(Warn).contains("cannot set flow control") && said(Warn).contains("ethtool -A IFACE rx off tx off"));
    server.nic(A, "0x15b3", "0x1017", Some("mlx5_core"), "1", "40");
    assert!(said(Warn).contains("may drop PFC frames"));
    server.nic(A, "0x8086", "0x1234", Some("vfio-pci"), "1", "40");
    assert!(said(Warn).contains("was not examined"));
    let off = NICS.replacen("pfc_proven: true", "pfc: \"off\"", 1);
    assert!(
        !server.examine(&off, None).iter().any(|finding| finding.place == "port a flow control"),
        "no PFC, no word"
    );
}

#[test]
fn firmware_lldp_agent_is_warned_of_with_its_driver_flag() {
    let server = Server::new();
    let off = NICS.replacen("pfc_proven: true", "pfc: \"off\"", 1);
    for (device, flag) in [("0x1572", "disable-fw-lldp on"), ("0x1592", "fw-lldp-agent off")] {
        server.nic(A, "0x8086", device, Some("vfio-pci"), "1", "40");
        let text = at(&server.examine(&off, None), Warn, "port a");
        assert!(text.contains(flag) && text.contains("only its kernel driver can show it"), "{text}");
    }
}

#[test]
fn a_driver_of_a_nic_that_is_not_installed_is_bad() {
    let server = Server::new();
    server.remove(&Server::driver("net_ixgbe"));
    assert!(at(&server.examine(NICS, None), Bad, "port a").contains("apt-get install librte-net-ixgbe25`"));
    // Debian separates a digit from the number of the ABI, which is that of the newest drivers.
    server.file("usr/lib/x86_64-linux-gnu/dpdk/pmds-26.1/librte_net_tap.so.26.1", "");
    server.nic(A, "0x8086", "0x1521", Some("vfio-pci"), "1", "40");
    assert!(at(&server.examine(NICS, None), Bad, "port a").contains("apt-get install librte-net-e1000-26`"));
}

#[test]
fn nics_without_configuration_are_listed_without_bad_finding() {
    let server = Server::new();
    server.nic("0000:01:00.0", "0x8086", "0x1521", Some("igb"), "0", "12");
    server.file("sys/bus/pci/devices/0000:01:00.0/net/eth0/mtu", "1500\n");
    // A PCI device that is not a network device.
    server.file("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    let findings = server.look();
    let text = at(&findings, Fine, "nic 0000:01:00.0");
    assert!(text.starts_with("8086:1521, driver igb (eth0), node 0; PFC likely works"), "{text}");
    assert!(text.contains("driverctl") && text.ends_with("as root; the kernel then loses the NIC"), "{text}");
    assert!(!findings.iter().any(|finding| finding.place.contains("00:02.0") || finding.level == Bad), "{findings:#?}");
}

#[test]
fn nic_family_follows_pci_id_or_driver_if_id_is_unknown() {
    let of = |vendor, device, driver: Option<&str>| {
        Family::of(&PciNic { vendor, device, driver: driver.map(str::to_owned), ..PciNic::default() })
    };
    assert_eq!(of(0x8086, 0x158b, Some("vfio-pci")), Family::I40e);
    assert_eq!(of(0x8086, 0x159b, None), Family::Ice);
    assert_eq!(of(0x8086, 0x15f3, None), Family::Igc);
    assert_eq!(of(0x8086, 0x1533, None), Family::E1000);
    assert_eq!(of(0x15b3, 0x1007, Some("mlx4_core")), Family::Other);
    assert_eq!(of(0x8086, 0xffff, Some("ixgbe")), Family::Ixgbe);
    assert_eq!(of(0x1af4, 0x1041, Some("virtio-pci")), Family::Virtio);
    assert_eq!(of(0x15ad, 0x07b0, Some("vfio-pci")), Family::Vmxnet3);
    assert_eq!(of(0x14e4, 0x16d7, Some("bnxt_en")), Family::Other);
}
