//! The script of `holdfast doctor --fix --dry-run`, run with stand-ins of programs that would change the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use holdfast::doctor::{Finding, script};

use crate::server::{NICS, NONE, Server};

const A: &str = "0000:3b:00.0";

/// Runs the script for these findings below a directory in place of `/etc`. Returns the directory, and the commands
/// that the script called.
fn run(findings: &[Finding]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    for name in ["bin", "etc/tmpfiles.d", "etc/sysctl.d", "etc/modules-load.d", "etc/udev/rules.d"] {
        fs::create_dir_all(path(name)).expect("our own directory");
    }
    let note = format!("#!/bin/sh\necho \"${{0##*/}} $*\" >>{}\n", path("notes").display());
    for program in ["systemd-tmpfiles", "sysctl", "update-grub", "modprobe", "driverctl", "apt-get", "udevadm"] {
        fs::write(path("bin").join(program), &note).expect("our own file");
        fs::set_permissions(path("bin").join(program), fs::Permissions::from_mode(0o755)).expect("our own file");
    }
    let text = script(findings).replace("/etc/", &format!("{}/etc/", directory.path().display()));
    // Twice: a file that is there already is no fault, and is replaced.
    for _ in 0..2 {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &text]).env("PATH", format!("{}:/usr/bin:/bin", path("bin").display()));
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{output:?} {text}");
    }
    let notes = fs::read_to_string(path("notes")).unwrap_or_default();
    let notes = notes.replace(&directory.path().display().to_string(), "");
    let half = notes.lines().count() / 2;
    (directory, notes.lines().take(half).map(|line| format!("{line}\n")).collect())
}

#[test]
fn script_mends_a_bare_server_for_good() {
    let server = Server::new();
    server.pages(0, 0, 0);
    server.pages(1, 0, 0);
    server.nic(A, "0x8086", "0x10fb", Some("ixgbe"), "1", "40");
    server.remove("sys/kernel/iommu_groups");
    server.file("sys/devices/system/cpu/isolated", "\n");
    server.file("sys/devices/system/cpu/cpu7/cpufreq/scaling_governor", "schedutil\n");
    let (directory, notes) = run(&server.examine(NICS, Some(200)));
    let file = |name: &str| fs::read_to_string(directory.path().join("etc").join(name)).expect(name);
    let pages = "hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(file("tmpfiles.d/holdfast-hugepages.conf"), format!("w /sys/kernel/mm/{pages} - - - - 100\n"));
    let node = file("tmpfiles.d/holdfast-node1-hugepages.conf");
    assert_eq!(node, format!("w /sys/devices/system/node/node1/{pages} - - - - 100\n"));
    assert!(file("tmpfiles.d/holdfast-cpu7.conf").ends_with("cpu7/cpufreq/scaling_governor - - - - performance\n"));
    assert_eq!(file("modules-load.d/holdfast-vfio-pci.conf"), "vfio-pci\n");
    let line = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=6-7 nohz_full=6-7 rcu_nocbs=6-7\"\n";
    assert_eq!(file("default/grub.d/holdfast-cpus.cfg"), line);
    assert!(file("default/grub.d/holdfast-iommu.cfg").contains(" intel_iommu=on iommu=pt\""));
    // Both files of GRUB are there when it is told of them, once.
    // Without the IOMMU, which comes with the next boot, no NIC can be bound yet.
    let end = "update-grub \ndriverctl --noprobe set-override 0000:3b:00.0 vfio-pci\n";
    assert!(notes.ends_with(end) && notes.matches("update-grub").count() == 1, "{notes}");
    assert!(notes.contains("modprobe vfio-pci\n"), "{notes}");
    assert!(notes.contains("systemd-tmpfiles --create /etc/tmpfiles.d/holdfast-hugepages.conf\n"), "{notes}");
}

#[test]
fn script_gives_vfio_groups_to_the_user_and_installs_drivers() {
    let server = Server::new();
    server.process(65_534, NONE, "8388608");
    server.mode("dev/vfio/40", 0o600);
    server.mode("dev/vfio/41", 0o600);
    server.remove(&Server::driver("net_ixgbe"));
    let findings = server.examine(NICS, Some(200));
    let (directory, notes) = run(&findings);
    let rule = fs::read_to_string(directory.path().join("etc/udev/rules.d/61-holdfast-vfio.rules")).expect("a rule");
    assert_eq!(rule, "SUBSYSTEM==\"vfio\", GROUP=\"65534\", MODE=\"0660\"\n");
    assert!(notes.contains("udevadm control --reload\nudevadm trigger --subsystem-match=vfio\n"), "{notes}");
    assert!(notes.contains("apt-get install -y librte-net-ixgbe25\n"), "{notes}");
    // A finding without a command is a comment with its remedy.
    let text = script(&findings);
    assert!(text.contains("\n# bad, locked memory: ") && text.contains("\n# By hand: `ulimit -l"), "{text}");
}

#[test]
fn script_raises_tables_of_neighbours() {
    let linux = "{preset: roce, ports: [{name: a, device: net_tap0, speed: 1G}], \
                 routing: {linux: {namespace: tor}, interfaces: [{port: a}]}}";
    let (directory, notes) = run(&Server::new().examine(linux, None));
    let name = "etc/sysctl.d/60-holdfast-net.ipv6.neigh.default.gc_thresh3.conf";
    let text = fs::read_to_string(directory.path().join(name)).expect("a file");
    assert_eq!(text, "net.ipv6.neigh.default.gc_thresh3 = 65536\n");
    assert!(notes.contains(&format!("sysctl -p /{name}\n")), "{notes}");
}

#[test]
fn script_for_a_prepared_server_has_no_command() {
    let text = script(&Server::new().examine(NICS, Some(200)));
    let commands: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(commands, ["set -eu"], "{text}");
}
