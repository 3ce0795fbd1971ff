//! The checked configuration, from which the rest of the program is built.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::sections::api::Socket;
use crate::faults::Fault;
use crate::headroom::SmallPackets;
use crate::hosts::HostSpec;
use crate::mirror::MirrorConfig;
use crate::plan::SwitchSpec;
use crate::route::{Attachment, RoutingSpec};
use crate::units::{Bytes, Length, Nanos};

/// A whole, validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// The origin of the configuration, for messages: a path, or `<embedded>`.
    pub source: String,
    /// The text as it was read; empty if the configuration is part of another file, such as a switch of a scenario.
    pub text: String,
    /// The options of the command line that override the file, as they were typed, for display.
    pub overrides: Vec<String>,
    /// The switch itself.
    pub switch: SwitchSpec,
    /// The device behind each port, by port index.
    pub devices: Vec<PortDevice>,
    /// DPDK's environment.
    pub eal: EalConfig,
    /// The CPUs of the control thread and of the dataplane.
    pub lcores: LcoreConfig,
    /// The address at which `/metrics` is served; `None` if it is not served.
    pub metrics: Option<SocketAddr>,
    /// The socket at which the API is served, and the group that may use it.
    pub api: ApiConfig,
    /// The settings of LLDP that all ports share.
    pub lldp: LldpConfig,
    /// Injected faults; `None`: there are none, and the API can order none.
    pub faults: Option<FaultsConfig>,
    /// Destinations of the sessions of [`SwitchSpec::mirror`], and the agent of sFlow.
    pub mirror: MirrorConfig,
    /// LACP of each link aggregation group, in the order of [`SwitchSpec::lags`]; `None`: the group is static.
    pub lacp: Vec<Option<LacpConfig>>,
    /// Whether the configuration sets the seed of the hash of link aggregation groups.
    pub has_lag_seed: bool,
    /// Virtual hosts.
    pub hosts: Vec<HostSpec>,
    /// The router's settings that the configuration leaves to the ports.
    pub router_defaults: RouterDefaults,
    /// The consequences of the division of the buffer.
    pub summary: BufferSummary,
    /// Warnings: settings that work, but probably not as intended. Each has file, line and key.
    pub warnings: Vec<String>,
}

impl Config {
    /// Derives the router's MAC addresses and the seeds of the hashes from the addresses of the ports, unless they are
    /// written. A routed port has its own address; all VLAN interfaces have that of the first port.
    pub fn follow_ports(&mut self) {
        let Some(first) = self.switch.ports.first() else { return };
        if !self.has_lag_seed {
            self.switch.lags.hash_seed = RoutingSpec::default_seed(first.mac);
        }
        let Some(routing) = &mut self.switch.routing else { return };
        let written = self.router_defaults.has_mac.iter().copied().chain(std::iter::repeat(false));
        for (interface, has_mac) in routing.interfaces.iter_mut().zip(written) {
            let port = match interface.attachment {
                Attachment::Port(port) => self.switch.ports.get(usize::from(port)),
                Attachment::Vlan => Some(first),
            };
            if let Some(port) = port.filter(|_| !has_mac) {
                interface.mac = port.mac;
            }
        }
        if !self.router_defaults.has_seed {
            routing.hash_seed = RoutingSpec::default_seed(first.mac);
        }
    }

    /// How lcore `lcore` rests; `None` if it never does. By default an lcore that polls a lossless port never rests.
    #[must_use]
    pub fn idle_of(&self, lcore: usize) -> Option<&IdleConfig> {
        self.lcores.idle.as_ref().filter(|idle| idle.lossless || !self.has_lossless(lcore))
    }

    /// Whether the switch has a control plane: it routes, or a port has a peer that may speak LLDP or LACP. A virtual
    /// host does not.
    #[must_use]
    pub fn has_control_plane(&self) -> bool {
        self.switch.routing.is_some() || self.devices.iter().any(|device| device.kind != DeviceKind::Ring)
    }

    /// Whether lcore `lcore` polls a port with PFC frames and a lossless group. With `pfc: queue` a late poll is
    /// harmless.
    #[must_use]
    pub fn has_lossless(&self, lcore: usize) -> bool {
        let mut ports = self.switch.ports.iter().filter(|port| usize::from(port.lcore) == lcore);
        ports.any(|port| port.pfc.sends_frames() && !port.lossless_groups().is_empty())
    }
}

/// Settings of the router that the configuration gives. All others follow the addresses of the ports.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RouterDefaults {
    /// Whether the MAC address is written, by interface.
    pub has_mac: Vec<bool>,
    /// Whether the seed of the flow hash is written.
    pub has_seed: bool,
}

/// LACP of a link aggregation group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LacpConfig {
    /// Whether its ports speak first.
    pub is_active: bool,
    /// Whether it wants a data unit each second.
    pub is_fast: bool,
}

/// LLDP of the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LldpConfig {
    /// Name of the system; `None`: the host name.
    pub name: Option<String>,
    /// Seconds between two frames of a port.
    pub interval_s: u16,
    /// The answer to own data units or probes that come back.
    pub loop_guard: LoopGuard,
    /// Time between two probes of loops at a port; `None`: no port sends any.
    pub loop_probe: Option<Nanos>,
}

/// The answer to own data units or probes that come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopGuard {
    /// One port of the loop forwards nothing.
    Block,
    /// Only an event tells it.
    Alert,
    /// They are not looked for.
    Off,
}

impl LoopGuard {
    /// Every answer with its word in the configuration.
    pub const TABLE: [(&str, Self); 3] = [("block", Self::Block), ("alert", Self::Alert), ("off", Self::Off)];

    /// The word in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::TABLE[self as usize].0
    }
}

/// Injected faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultsConfig {
    /// Seed of their random numbers.
    pub seed: u64,
    /// Faults from the start on.
    pub list: Vec<Fault>,
}

impl Default for FaultsConfig {
    fn default() -> Self {
        Self { seed: 1, list: Vec::new() }
    }
}

/// The API of a running switch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ApiConfig {
    /// The socket.
    pub socket: Socket,
    /// A group whose members may use the API too, by name or number.
    pub group: Option<String>,
    /// Whether requests may change anything.
    pub writes: bool,
    /// Groups whose members may read; with these or `admins`, all others but root and the switch's user are refused.
    pub readers: Vec<String>,
    /// Groups whose members may read and change.
    pub admins: Vec<String>,
}

impl ApiConfig {
    /// Whether each request is judged by the groups of its user.
    #[must_use]
    pub fn has_roles(&self) -> bool {
        !self.readers.is_empty() || !self.admins.is_empty()
    }
}

/// The consequences of the division of the buffer, to help people choose classes and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferSummary {
    /// The largest number of lossless classes that fit. Each class has the reserve and headroom of the first one on
    /// every port, by the headroom policy. Their shared pool must also hold one largest frame of each port.
    pub lossless_fit: u8,
    /// The largest share of small packets that headroom allows for.
    pub small_packets: SmallPackets,
    /// Headroom that would be saved without any small packets; `None` if headroom is given and no share changes it.
    pub small_packets_cost: Option<Bytes>,
    /// For each lossless class with ECN, whether it is marked before it is paused.
    pub ecn: Vec<EcnOrder>,
}

/// Whether a class is marked before it is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EcnOrder {
    /// The class whose settings the queue has.
    pub class: u8,
    /// Depth of a queue from which frames are marked.
    pub kmin: Bytes,
    /// Depth of a queue below which no XOFF is sent, even if the other queues of the class are as deep.
    pub xoff: Bytes,
}

impl EcnOrder {
    /// Whether ECN is certain to mark before XOFF is sent.
    #[must_use]
    pub fn is_before(&self) -> bool {
        self.kmin < self.xoff
    }
}

/// The device behind a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortDevice {
    /// The kind of the device, with its address.
    pub kind: DeviceKind,
    /// Access rights of the socket of a [`DeviceKind::Vhost`].
    pub socket: SocketAccess,
    /// Receive queues, one to eight.
    pub queues: u8,
    /// Transmit queues: one, or one for each lcore if the device has so many.
    pub tx_queues: u8,
    /// Whether the configuration sets `tx_queues`: a device that has fewer is then an error.
    pub needs_tx_queues: bool,
    /// Whether the configuration sets the MAC address of the port; otherwise it is the NIC's own.
    pub has_mac: bool,
    /// Whether the operator asserts that PFC works in both directions between this port and its peer.
    pub pfc_proven: bool,
    /// Length of the cable to the peer.
    pub cable: Length,
    /// Time that the peer takes to obey PFC; `None`: the time that the standard allows at this speed.
    pub peer_response: Option<Nanos>,
    /// Receive descriptors.
    pub rx_descriptors: u16,
    /// Transmit descriptors.
    pub tx_descriptors: u16,
    /// Whether the port speaks LLDP.
    pub lldp: bool,
}

/// Access rights of a socket. A user with write access can connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketAccess {
    /// Owner, by name or number; `None`: the user of the switch.
    pub owner: Option<String>,
    /// Group, by name or number; `None`: the group of the switch.
    pub group: Option<String>,
    /// Mode of the file.
    pub mode: u32,
}

impl fmt::Display for SocketAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, account) in [("owner", &self.owner), ("group", &self.group)] {
            if let Some(account) = account {
                write!(f, "{key} {account}, ")?;
            }
        }
        write!(f, "mode {:04o}", self.mode)
    }
}

impl Default for SocketAccess {
    fn default() -> Self {
        Self { owner: None, group: None, mode: 0o600 }
    }
}

/// Kinds of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceKind {
    /// A PCI function bound to a userspace driver, by address (`0000:3b:00.0`).
    Pci(String),
    /// Any DPDK virtual device, by its devargs (`net_tap0,iface=hf0`).
    Vdev(String),
    /// A socket at which a virtual machine connects, by its path.
    Vhost(PathBuf),
    /// An in-process link with a virtual host at its other end.
    Ring,
    /// None until a reload gives the port one.
    Absent,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKind::Pci(device) | DeviceKind::Vdev(device) => f.write_str(device),
            DeviceKind::Vhost(path) => write!(f, "vhost:{}", path.display()),
            DeviceKind::Ring => f.write_str("ring"),
            DeviceKind::Absent => f.write_str("none"),
        }
    }
}

/// The kind of memory that DPDK uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryMode {
    /// Hugepages if any port is a PCI device, ordinary memory otherwise.
    Auto,
    /// Hugepages.
    Huge,
    /// Ordinary memory: no PCI device can use it.
    NoHuge,
}

/// DPDK's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EalConfig {
    /// Memory.
    pub memory: MemoryMode,
    /// Arguments passed to EAL as they are.
    pub args: Vec<String>,
}

/// The CPUs of the switch's threads. CPUs that are not given are chosen from those that the process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LcoreConfig {
    /// CPU of the control thread, which sleeps.
    pub control: Option<u16>,
    /// CPUs of the dataplane, by lcore; they never sleep. Empty: chosen, as many as [`SwitchSpec::lcores`].
    pub dataplane: Vec<u16>,
    /// The longest time between two polls: a term of the headroom formula.
    pub poll_gap: Nanos,
    /// Time that an lcore waits after each poll, to slow the switch down on purpose; zero: it does not wait.
    pub poll_delay: Nanos,
    /// The lcore on which the virtual hosts run.
    pub hosts: HostsLcore,
    /// How dataplane lcores rest without traffic; `None`: they never do. [`Config::idle_of`] returns the setting of one
    /// lcore.
    pub idle: Option<IdleConfig>,
}

/// How dataplane lcores rest without traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleConfig {
    /// The way in which the CPU waits during a rest.
    pub wait: IdleWait,
    /// Time without traffic before the first rest.
    pub after: Nanos,
    /// The longest rest, counted from the poll before it.
    pub longest: Nanos,
    /// The longest delay between the end of a rest and the next poll.
    pub wake: Nanos,
    /// Whether lcores that poll a lossless port rest too.
    pub lossless: bool,
}

impl IdleConfig {
    /// The longest time between two polls with a rest between them.
    #[must_use]
    pub fn gap(&self) -> Nanos {
        Nanos(self.longest.0.saturating_add(self.wake.0))
    }
}

/// How a CPU waits while its lcore rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleWait {
    /// Spins with `pause`, which leaves the execution units to the sibling thread of the core.
    Pause,
    /// Halts in a light sleep that the program itself requests (WAITPKG).
    Umwait,
    /// Returns the CPU to the kernel, which runs other threads or halts it.
    Sleep,
}

impl IdleWait {
    /// The word for it in the configuration.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Umwait => "umwait",
            Self::Sleep => "sleep",
        }
    }
}

/// The lcore that polls the virtual hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostsLcore {
    /// The lcore of each host's port. A stall of the switch also stalls its hosts, so they never send more than it can
    /// take.
    WithSwitch,
    /// A separate lcore, on a chosen or given CPU. The hosts send independently of the switch, as over a wire.
    Own(Option<u16>),
}
