//! Commands that mend a difference on the peer.
//!
//! An administrator may paste them into a root shell, so that nothing of the peer's texts enters a command, except an
//! interface name of harmless characters.

use super::compare::{Difference, DscpRow};
use crate::sets::{CLASSES, ClassSet};
use crate::wire::lldp::{EtsTable, Lldpdu, PortId};

/// The longest name of an interface of Linux.
const MOST_DEVICE: usize = 15;
/// Stands for an interface whose name is not known.
const UNKNOWN_DEVICE: &str = "DEV";
/// Bytes that `*JumboPacket` of Windows counts on top of the MTU.
const JUMBO_OVERHEAD: u16 = 14;

/// The tools of a peer's operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tools {
    /// `dcb` of iproute2, and `ip`.
    Linux,
    /// `mlnx_qos` of the drivers of NVIDIA Mellanox NICs for Linux.
    Mellanox,
    /// PowerShell of Windows.
    Windows,
}

impl Tools {
    /// Chooses by the system description of the peer; Linux if it says nothing.
    #[must_use]
    pub fn of(peer: &Lldpdu) -> Self {
        let description = peer.system_description.as_ref().map_or("", |text| text.as_str()).to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| description.contains(word));
        if has(&["windows"]) {
            Self::Windows
        } else if has(&["mellanox", "mlnx", "connectx", "bluefield"]) {
            Self::Mellanox
        } else {
            Self::Linux
        }
    }

    /// Label in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Mellanox => "Mellanox NIC",
            Self::Windows => "Windows",
        }
    }
}

/// A command for the peer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Remedy {
    /// The command, in the shell of the peer's system.
    pub command: String,
    /// The command of `mlnx_qos`, where the first one is that of Linux and the NIC may be of Mellanox.
    pub mellanox: Option<String>,
}

/// The command that mends `difference` on `peer`.
#[must_use]
pub fn remedy(difference: &Difference, peer: &Lldpdu) -> Remedy {
    let device = device(peer);
    let mellanox = mellanox(difference, &device);
    match Tools::of(peer) {
        Tools::Windows => Remedy { command: windows(difference), mellanox: None },
        Tools::Mellanox => {
            let command = mellanox.unwrap_or_else(|| linux(difference, &device));
            Remedy { command, mellanox: None }
        }
        Tools::Linux => Remedy { command: linux(difference, &device), mellanox },
    }
}

/// The name of the peer's interface: its port ID, or else its port description, where many agents have it.
fn device(peer: &Lldpdu) -> String {
    let id = str::from_utf8(&peer.port.id).ok().filter(|_| peer.port.subtype == PortId::INTERFACE_NAME);
    let description = peer.port_description.as_ref().map(|text| text.as_str());
    let names = [id, description];
    let name = names.into_iter().flatten().find(|name| is_device(name));
    name.unwrap_or(UNKNOWN_DEVICE).to_owned()
}

/// Whether a text can be the name of an interface, and means nothing to a shell.
fn is_device(name: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-@".contains(&byte);
    (1..=MOST_DEVICE).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_harmless)
}

/// Eight values, each as `index:value`.
fn pairs(value: impl Fn(usize) -> String) -> String {
    let parts: Vec<String> = (0..CLASSES).map(|index| format!("{index}:{}", value(index))).collect();
    parts.join(" ")
}

/// Eight values with commas.
fn commas(value: impl Fn(usize) -> String) -> String {
    let parts: Vec<String> = (0..CLASSES).map(value).collect();
    parts.join(",")
}

fn members(set: ClassSet, separator: &str) -> String {
    let parts: Vec<String> = set.iter().map(|member| member.to_string()).collect();
    parts.join(separator)
}

/// DSCP and priority.
type Mapping = (u16, u8);

/// Mappings to set because they are others here, and mappings to remove because their DSCP is lossy here.
fn split(rows: &[DscpRow]) -> (Vec<Mapping>, Vec<Mapping>) {
    let moved = rows.iter().filter_map(|row| Some((row.dscp, row.ours?))).collect();
    let removed = rows.iter().filter(|row| row.ours.is_none()).map(|row| (row.dscp, row.theirs)).collect();
    (moved, removed)
}

/// Commands of dcb(8), ip-link(8), bridge(8) and lldptool-pfc(8).
fn linux(difference: &Difference, device: &str) -> String {
    let rows = |rows: &[Mapping]| {
        let parts: Vec<String> = rows.iter().map(|(dscp, priority)| format!("{dscp}:{priority}")).collect();
        parts.join(" ")
    };
    match difference {
        Difference::PfcAbsent { ours, .. } => {
            format!("lldptool -T -i {device} -V PFC enableTx=yes willing=no enabled={}", members(*ours, ","))
        }
        Difference::PfcPriorities { ours, .. } => {
            let on: Vec<String> = ours.iter().map(|priority| format!(" {priority}:on")).collect();
            format!("dcb pfc set dev {device} prio-pfc all:off{}", on.concat())
        }
        Difference::MaxFrame { mtu, .. } => format!("ip link set dev {device} mtu {mtu}"),
        Difference::RocePriority { ours, .. } => {
            format!("dcb app replace dev {device} dgram-port-prio {}:{ours}", crate::wire::roce::PORT)
        }
        Difference::DscpPriority { rows: differing } => {
            let (moved, removed) = split(differing);
            let replace = format!("dcb app replace dev {device} dscp-prio {}", rows(&moved));
            let delete = format!("dcb app del dev {device} dscp-prio {}", rows(&removed));
            let parts = [(replace, moved.is_empty()), (delete, removed.is_empty())];
            let parts: Vec<String> =
                parts.into_iter().filter(|(_, is_empty)| !is_empty).map(|(part, _)| part).collect();
            parts.join("; ")
        }
        Difference::EtsAlgorithm { ours, .. }
        | Difference::EtsBandwidth { ours, .. }
        | Difference::EtsShared { ours, .. } => {
            format!(
                "dcb ets set dev {device} prio-tc {} tc-tsa {} tc-bw {}",
                pairs(|priority| ours.class(priority).to_string()),
                pairs(|class| ours.algorithm[class].label().to_owned()),
                pairs(|class| ours.bandwidth[class].to_string())
            )
        }
        Difference::PortVlan { ours, .. } => format!("bridge vlan add dev {device} vid {ours} pvid untagged"),
    }
}

/// Commands of `mlnx_qos`; `None`: it has none for this difference.
fn mellanox(difference: &Difference, device: &str) -> Option<String> {
    match difference {
        Difference::PfcAbsent { ours, .. } | Difference::PfcPriorities { ours, .. } => {
            let bit = |priority| u8::from(ours.contains(priority)).to_string();
            Some(format!("mlnx_qos -i {device} --pfc {}", commas(bit)))
        }
        Difference::DscpPriority { rows } => {
            let (moved, removed) = split(rows);
            let set = moved.iter().map(|(dscp, priority)| format!("--dscp2prio set,{dscp},{priority}"));
            let del = removed.iter().map(|(dscp, priority)| format!("--dscp2prio del,{dscp},{priority}"));
            let commands: Vec<String> = set.chain(del).map(|option| format!("mlnx_qos -i {device} {option}")).collect();
            Some(commands.join("; "))
        }
        Difference::EtsAlgorithm { ours, .. }
        | Difference::EtsBandwidth { ours, .. }
        | Difference::EtsShared { ours, .. } => Some(mellanox_ets(ours, device)),
        Difference::MaxFrame { .. } | Difference::RocePriority { .. } | Difference::PortVlan { .. } => None,
    }
}

fn mellanox_ets(ours: &EtsTable, device: &str) -> String {
    format!(
        "mlnx_qos -i {device} --prio_tc {} --tsa {} --tcbw {}",
        commas(|priority| ours.class(priority).to_string()),
        commas(|class| ours.algorithm[class].label().to_owned()),
        commas(|class| ours.bandwidth[class].to_string())
    )
}

/// Cmdlets of the modules DcbQos, NetQos and NetAdapter. `NIC` stands for the adapter.
fn windows(difference: &Difference) -> String {
    match difference {
        Difference::PfcAbsent { ours, .. } => {
            format!("Enable-NetAdapterQos -Name \"NIC\"; Enable-NetQosFlowControl -Priority {}", members(*ours, ","))
        }
        Difference::PfcPriorities { ours, .. } => {
            let on = (!ours.is_empty()).then(|| format!("Enable-NetQosFlowControl -Priority {}", members(*ours, ",")));
            let off = !*ours;
            let off = (!off.is_empty()).then(|| format!("Disable-NetQosFlowControl -Priority {}", members(off, ",")));
            on.into_iter().chain(off).collect::<Vec<String>>().join("; ")
        }
        Difference::MaxFrame { mtu, .. } => {
            let value = mtu.saturating_add(JUMBO_OVERHEAD);
            format!(
                "Set-NetAdapterAdvancedProperty -Name \"NIC\" -RegistryKeyword \"*JumboPacket\" -RegistryValue {value}"
            )
        }
        Difference::RocePriority { ours, .. } => network_direct(*ours),
        Difference::DscpPriority { rows } => {
            // NICs map the priority to a DSCP by a property of their driver.
            let priority = rows.iter().find_map(|row| row.ours);
            priority.map_or_else(|| "Get-NetQosPolicy".to_owned(), network_direct)
        }
        Difference::EtsAlgorithm { rows, ours } => windows_classes(rows.iter().map(|row| row.0), ours),
        Difference::EtsBandwidth { rows, ours } => windows_classes(rows.iter().map(|row| row.0), ours),
        Difference::EtsShared { rows, ours } => windows_classes(rows.iter().map(|row| row.0), ours),
        Difference::PortVlan { ours, .. } => format!("Set-NetAdapter -Name \"NIC\" -VlanID {ours}"),
    }
}

/// Puts SMB Direct, the usual RDMA of Windows, into a priority.
fn network_direct(priority: u8) -> String {
    format!("New-NetQosPolicy -Name \"RDMA\" -NetDirectPortMatchCondition 445 -PriorityValue8021Action {priority}")
}

fn windows_classes(priorities: impl Iterator<Item = usize>, ours: &EtsTable) -> String {
    let class = |priority: usize| {
        let class = ours.class(priority);
        let share = ours.bandwidth[class];
        let algorithm = if share > 0 {
            format!("-Algorithm ETS -BandwidthPercentage {share}")
        } else {
            "-Algorithm Strict".to_owned()
        };
        format!("New-NetQosTrafficClass -Name \"P{priority}\" -Priority {priority} {algorithm}")
    };
    priorities.map(class).collect::<Vec<String>>().join("; ")
}
