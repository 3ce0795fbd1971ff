//! Commands that mend a finding for good: their effect outlives a reboot of a Debian system.

use super::{Finding, Level};

/// The last command of all that change the kernel's command line.
const UPDATE_GRUB: &str = "update-grub";

/// Binds a device at the next boot. Comes after all that changes the boot.
const BIND: &str = "driverctl --noprobe set-override";

/// Writes `value` to a file of `/sys` now and at each boot. `name` names the setting.
pub(super) fn setting(name: &str, file: &str, value: impl std::fmt::Display) -> Vec<String> {
    let rule = format!("/etc/tmpfiles.d/holdfast-{name}.conf");
    vec![format!("echo 'w {file} - - - - {value}' > {rule}"), format!("systemd-tmpfiles --create {rule}")]
}

/// Sets a variable of the kernel now and at each boot.
pub(super) fn sysctl(key: &str, value: impl std::fmt::Display) -> Vec<String> {
    let file = format!("/etc/sysctl.d/60-holdfast-{key}.conf");
    vec![format!("echo '{key} = {value}' > {file}"), format!("sysctl -p {file}")]
}

/// Adds arguments to the kernel's command line, of which there is one set for each `name`.
pub(super) fn boot(name: &str, arguments: &str) -> Vec<String> {
    vec![
        "# If GRUB_CMDLINE_LINUX has these arguments already, change them there.".to_owned(),
        "mkdir -p /etc/default/grub.d".to_owned(),
        format!(
            "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {arguments}\"' > /etc/default/grub.d/holdfast-{name}.cfg"
        ),
        UPDATE_GRUB.to_owned(),
    ]
}

/// Loads a module of the kernel now and at each boot.
pub(super) fn module(name: &str) -> Vec<String> {
    vec![format!("echo {name} > /etc/modules-load.d/holdfast-{name}.conf"), format!("modprobe {name}")]
}

/// Takes a NIC from the kernel, and binds it to vfio-pci at the next boot: that may turn on the IOMMU, without which
/// vfio-pci takes no NIC.
pub(super) fn bind(address: &str) -> Vec<String> {
    let mut lines = module("vfio-pci");
    lines.push("command -v driverctl >/dev/null || apt-get install -y driverctl".to_owned());
    lines.push(format!("{BIND} {address} vfio-pci"));
    lines
}

/// Gives all VFIO groups to a group of users now and at each boot.
pub(super) fn vfio_group(gid: u32) -> Vec<String> {
    vec![
        format!(
            "echo 'SUBSYSTEM==\"vfio\", GROUP=\"{gid}\", MODE=\"0660\"' > /etc/udev/rules.d/61-holdfast-vfio.rules"
        ),
        "udevadm control --reload && udevadm trigger --subsystem-match=vfio".to_owned(),
    ]
}

/// Installs a package of Debian. A name with other letters than Debian's has no command.
pub(super) fn package(name: &str) -> Vec<String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if is_plain { vec![format!("apt-get install -y {name}")] } else { Vec::new() }
}

/// The commands of all findings as a shell script. A comment says what each mends, and what must be done by hand.
#[must_use]
pub fn script(findings: &[Finding]) -> String {
    let mut lines: Vec<String> = [
        "#!/bin/sh",
        "# Commands of `holdfast doctor` for this machine. Read them, run them as root, reboot, run the doctor again.",
        "set -eu",
    ]
    .map(str::to_owned)
    .into();
    let (mut changes_boot, mut binds) = (false, Vec::new());
    for finding in findings.iter().filter(|finding| finding.level != Level::Ok) {
        let comment = |text: String| format!("# {}", text.replace('\n', " "));
        lines.push(String::new());
        lines.push(comment(format!("{}, {}: {}", finding.level.label(), finding.place, finding.what)));
        if finding.fix.is_empty() {
            lines.extend(finding.remedy.iter().map(|remedy| comment(format!("By hand: {remedy}"))));
        }
        for line in &finding.fix {
            if line == UPDATE_GRUB {
                changes_boot = true;
            } else if line.starts_with(BIND) {
                binds.push(line.clone());
            } else if !lines.contains(line) {
                lines.push(line.clone());
            }
        }
    }
    if changes_boot {
        lines.push(format!("\n{UPDATE_GRUB}"));
    }
    if !binds.is_empty() {
        lines.push("\n# The kernel loses these NICs at once; vfio-pci has them after the reboot.".to_owned());
        lines.extend(binds);
    }
    lines.join("\n") + "\n"
}
