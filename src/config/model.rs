//! The configuration once it is known to be right: what the rest of the program is built from.

use std::fmt;
use std::net::SocketAddr;

use super::api::Socket;
use crate::dataplane::SwitchSpec;
use crate::hosts::HostSpec;
use crate::mmu::headroom::SmallPackets;
use crate::units::{Bytes, Length, Nanos};

/// A whole, validated configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it came from, for messages: a path, or `<embedded>`.
    pub source: String,
    /// Its text, as it was read; empty where it is part of something else, as a switch of a scenario.
    pub text: String,
    /// What the command line says over it, as it was typed, for those who ask what runs.
    pub overrides: Vec<String>,
    /// The switch itself.
    pub switch: SwitchSpec,
    /// Per port of the switch, what is behind it.
    pub devices: Vec<PortDevice>,
    /// DPDK's environment.
    pub eal: EalConfig,
    /// Which CPUs do what.
    pub lcores: LcoreConfig,
    /// Where `/metrics` is served; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    /// Where the API is served, and to whom.
    pub api: ApiConfig,
    /// Virtual hosts.
    pub hosts: Vec<HostSpec>,
    /// What follows from it.
    pub outlook: Outlook,
    /// What works, but hardly as it was meant; each with file, line and key.
    pub warnings: Vec<String>,
}

impl Config {
    /// How lcore `lcore` rests; `None` if it never does, as by default one does not that polls a port which must not lose.
    #[must_use]
    pub fn idle_of(&self, lcore: usize) -> Option<&IdleConfig> {
        self.lcores.idle.as_ref().filter(|idle| idle.lossless || !self.has_lossless(lcore))
    }

    /// Whether lcore `lcore` polls a port with PFC and a lossless group.
    #[must_use]
    pub fn has_lossless(&self, lcore: usize) -> bool {
        let mut ports = self.switch.ports.iter().filter(|port| usize::from(port.lcore) == lcore);
        ports.any(|port| port.pfc.is_on() && port.lossless_groups() != 0)
    }
}

/// The API of a running switch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ApiConfig {
    /// Where.
    pub socket: Socket,
    /// Group that may ask too, by name or number.
    pub group: Option<String>,
    /// Whether requests may change anything.
    pub writes: bool,
}

/// What follows from the division of the buffer, for who chooses classes and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Most lossless classes that fit: each with the reserve and headroom that the first one has, on every port, by the
    /// headroom policy, while a largest frame of each port fits the pool that they share.
    pub lossless_fit: u8,
    /// The largest share of small packets that headroom is for.
    pub small_packets: SmallPackets,
    /// Headroom that no small packets at all would save; `None` where headroom is given and no share changes it.
    pub small_packets_cost: Option<Bytes>,
    /// For each lossless class that has ECN, which comes first.
    pub ecn: Vec<EcnOrder>,
}

/// Whether a class is marked before it is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnOrder {
    /// The class whose settings the queue has.
    pub class: u8,
    /// Depth of a queue from which frames are marked.
    pub kmin: Bytes,
    /// Depth below which no XOFF comes, whatever the other queues of the class hold up to it.
    pub xoff: Bytes,
}

impl EcnOrder {
    /// Whether ECN is sure to be first.
    #[must_use]
    pub fn is_before(&self) -> bool {
        self.kmin < self.xoff
    }
}

/// The device behind a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortDevice {
    /// Which device.
    pub kind: DeviceKind,
    /// Whether the configuration gives the port its address; else a NIC's own counts.
    pub has_mac: bool,
    /// Whether the operator says that PFC works here, both ways, as far as the peer.
    pub pfc_proven: bool,
    /// Cable to the peer.
    pub cable: Length,
    /// Time that the peer takes to obey PFC; `None`: what the standard lets it at this speed.
    pub peer_response: Option<Nanos>,
    /// Receive descriptors.
    pub rx_descriptors: u16,
    /// Transmit descriptors.
    pub tx_descriptors: u16,
}

/// Kinds of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceKind {
    /// A PCI function bound to a userspace driver, by address (`0000:3b:00.0`).
    Pci(String),
    /// Any DPDK virtual device, by its devargs (`net_tap0,iface=hf0`).
    Vdev(String),
    /// An in-process link with a virtual host at its other end.
    Ring,
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceKind::Pci(device) | DeviceKind::Vdev(device) => f.write_str(device),
            DeviceKind::Ring => f.write_str("ring"),
        }
    }
}

/// Memory that DPDK takes.
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

/// Which CPUs do what. What is not given is chosen from those the process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LcoreConfig {
    /// CPU of the control thread, which sleeps.
    pub control: Option<u16>,
    /// CPUs of the dataplane, which never does, by lcore; empty: chosen, as many as [`SwitchSpec::lcores`].
    pub dataplane: Vec<u16>,
    /// How late a poll may come: part of what headroom is computed from.
    pub poll_gap: Nanos,
    /// Time that an lcore waits after each poll, to be slower than its load on purpose; zero: it does not.
    pub poll_delay: Nanos,
    /// Where the virtual hosts run.
    pub hosts: HostsLcore,
    /// How dataplane lcores rest when nothing comes; `None`: they never do. [`Config::idle_of`] says which.
    pub idle: Option<IdleConfig>,
}

/// How dataplane lcores rest when nothing comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleConfig {
    /// What the CPU does meanwhile.
    pub wait: IdleWait,
    /// Nothing must have come for so long.
    pub after: Nanos,
    /// The longest rest, from the poll before it.
    pub longest: Nanos,
    /// How much later it may end.
    pub wake: Nanos,
    /// Whether lcores that poll a lossless port rest too.
    pub lossless: bool,
}

impl IdleConfig {
    /// How far apart two polls may be with a rest between them.
    #[must_use]
    pub fn gap(&self) -> Nanos {
        Nanos(self.longest.0.saturating_add(self.wake.0))
    }
}

/// What a CPU does while its lcore rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleWait {
    /// It spins, and leaves its units to the thread beside it on the core.
    Pause,
    /// It halts in a light sleep that the program itself asks for (WAITPKG).
    Umwait,
    /// It is the kernel's, for others to use, or to halt.
    Sleep,
}

impl IdleWait {
    /// As it is written.
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
    /// That of the port, of each host: what stalls the switch stalls its hosts, which never send more than it takes.
    WithSwitch,
    /// One of their own, on a CPU that is chosen or given: they send whatever the switch does, as over a wire.
    Own(Option<u16>),
}
