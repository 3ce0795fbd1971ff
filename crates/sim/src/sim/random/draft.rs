//! A random fabric as plain numbers. Shrinking can remove them one by one, and the rest can always be written as a
//! scenario.
//!
//! Hosts, links and switches keep their numbers when others are removed, so names, flows and faults stay the same.

use crate::sets::ClassSet;
use crate::units::Nanos;

/// Events of hosts and frames that no drawn run reaches.
const EVENTS_OF_FRAMES: u64 = 50_000_000;
/// Shortest drain time that is meant to suffice for every run that can drain.
pub const LEAST_DRAIN: Nanos = Nanos(1_000_000);

/// A whole scenario. All times are nanoseconds, all rates Mbit/s, all lengths metres.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// Time for which hosts send.
    pub duration: u64,
    /// Time to drain that is deliberately too short; `None`: the computed time.
    pub drain: Option<u64>,
    /// Whether switches learn from frames, instead of from the scenario.
    pub learns: bool,
    /// Lossless classes.
    pub lossless: Vec<u8>,
    pub switches: Vec<SwitchDraft>,
    pub hosts: Vec<HostDraft>,
    pub links: Vec<LinkDraft>,
    pub flows: Vec<FlowDraft>,
    pub workloads: Vec<WorkloadDraft>,
    pub faults: Vec<FaultDraft>,
}

/// A switch, named `s` and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchDraft {
    pub id: usize,
    /// Bytes of the buffer, derived from `spare`.
    pub size: u64,
    /// Bytes of the buffer beyond reserves and headroom, that is, of the shared pools.
    pub spare: u64,
    pub cell: u64,
    pub headroom: HeadroomDraft,
    /// Percentage of `spare` that is lossy.
    pub lossy: u8,
    pub mtu: u16,
    pub classes: Vec<ClassDraft>,
    /// Port reserve in bytes: lossless, lossy.
    pub port_reserve: Option<(u64, u64)>,
    pub lcores: u8,
    pub crossing: CrossingDraft,
    pub poll_gap: u64,
    /// Time from one poll to the next.
    pub every: u64,
    /// Time that a frame takes.
    pub frame: u64,
    pub jitter: u64,
    /// Whether a backlog in the receive ring sends XOFF.
    pub backlog: bool,
    pub watchdog: Option<&'static str>,
    pub reloads: Vec<ReloadDraft>,
}

/// Settings of the buffer that a switch takes while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReloadDraft {
    pub at: u64,
    /// The other sizes; `None`: those of the start again.
    pub sizes: Option<SizesDraft>,
    /// Classes that are lossy instead of lossless, or the other way round.
    pub swapped: ClassSet,
    /// Cable of a port that is out, and its MTU when it is in again; `None`: the port stays absent.
    pub out: Option<(Cable, Option<u16>)>,
}

/// Other sizes of the parts of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizesDraft {
    /// Percentage of the pools that is lossy.
    pub lossy: u8,
    /// Port reserve in bytes: lossless, lossy.
    pub port_reserve: (u64, u64),
    /// Metres of each cable: at least what it has.
    pub cable: u64,
}

/// The ports of a switch with several lcores by which only their own lcore sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossingDraft {
    None,
    EverySecond,
    All,
}

/// A headroom policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadroomDraft {
    Independent,
    /// Shared pool with this ratio, in tenths.
    SharedPool(u8),
    Dynamic,
}

/// Settings of a class in a switch. `None`: the key is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassDraft {
    pub class: u8,
    pub lossless: bool,
    pub limit: Option<LimitDraft>,
    pub reserve: Option<u64>,
    pub xon_offset: Option<u64>,
    pub xon_floor: Option<u64>,
    pub headroom: Option<u64>,
    /// Limit of the queue.
    pub queue_limit: Option<LimitDraft>,
    pub queue_reserve: Option<u64>,
    /// Weight of the queue; 0 is strict.
    pub weight: Option<u8>,
    /// kmin and kmax in bytes, pmax in percent.
    pub ecn: Option<(u64, u64, u8)>,
    /// Set point and sampling interval of a congestion point in bytes.
    pub qcn: Option<(u64, u64)>,
}

/// A limit of a group or a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitDraft {
    Alpha(&'static str),
    Bytes(u64),
}

/// Settings of a port in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortDraft {
    /// Value of the key `pfc`.
    pub pfc: &'static str,
    /// Metres of cable for which the headroom is configured; `None`: the actual length.
    pub claims: Option<u64>,
    pub rx_descriptors: u16,
}

/// A host, named `h` and its number, at the port named `p` and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDraft {
    pub id: usize,
    pub switch: usize,
    pub rate: u64,
    pub length: u64,
    pub port: PortDraft,
    pub obeys: bool,
    /// Whether switches know the port of the host from the beginning.
    pub known: bool,
    pub response: Option<u64>,
    pub receiver: Option<SlowReceiver>,
}

/// A slow receiver: its rate, and the bytes in its buffer from which it sends XOFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowReceiver {
    pub rate: u64,
    pub bytes: u64,
}

/// A link between switches, at the ports named `u` and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDraft {
    pub id: usize,
    pub ends: [usize; 2],
    pub rate: u64,
    pub length: u64,
    pub port: PortDraft,
}

/// A flow between two hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDraft {
    pub from: usize,
    pub to: usize,
    pub class: u8,
    pub rate: Option<u64>,
    pub frame: FrameDraft,
    pub ecn: bool,
    pub start: u64,
    pub stop: Option<u64>,
    pub load: LoadDraft,
    pub dcqcn: bool,
    /// Congestion control other than the paper's DCQCN, by name.
    pub control: Option<&'static str>,
    pub transport: Option<TransportDraft>,
}

/// Reliable transport of a flow: name of the recovery, frames between ACKs, window in bytes, timeout in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportDraft {
    pub recovery: &'static str,
    pub ack_every: u64,
    pub window: Option<u64>,
    pub timeout: u64,
}

/// Frame lengths of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameDraft {
    Fixed(u16),
    Uniform(u16, u16),
    Imix,
}

/// Load of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDraft {
    Steady,
    OnOff(u64, u64),
    /// Smallest and largest size in bytes, mean time from one message to the next.
    Messages(u64, u64, u64),
}

/// A workload among hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadDraft {
    pub pattern: PatternDraft,
    /// Numbers of the hosts, which send and receive. Without two of them there is no workload.
    pub hosts: Vec<usize>,
    pub class: u8,
    pub frame: u16,
    pub ecn: bool,
    pub start: u64,
    pub control: Option<&'static str>,
    pub transport: Option<TransportDraft>,
}

/// Pattern of a workload. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternDraft {
    /// Name of the sizes, and load in millionths.
    Poisson(&'static str, u64),
    /// Size, and time from one incast to the next.
    Incast(u64, u64),
    AllToAll(u64),
    /// Whether it is a tree, size, and rounds.
    AllReduce(bool, u64, u64),
}

/// A cable: of a host, or between switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cable {
    Host(usize),
    Link(usize),
}

/// A fault of a part of the fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultDraft {
    pub at: u64,
    /// Length of the fault; `None`: to the end of the run.
    pub time: Option<u64>,
    pub kind: FaultKindDraft,
}

/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKindDraft {
    Down(Cable),
    /// The port of the first switch at the cable is shut.
    Shut(Cable),
    /// Cable, lost frames (value of the key `what`), loss in thousandths, and whether only frames toward the first
    /// switch are lost.
    Lose(Cable, &'static str, u16, bool),
    /// Host, and its priorities; none: the lossless ones.
    Storm(usize, ClassSet),
    Dead(usize),
    Late(usize, u64),
    Slow(usize, SlowReceiver),
    Stall(usize, Option<u8>),
    /// Host and rate.
    Garbage(usize, u64),
}

impl FaultKindDraft {
    /// Returns the affected host, cable and switch, as three options.
    fn touches(self) -> (Option<usize>, Option<Cable>, Option<usize>) {
        match self {
            Self::Down(cable) | Self::Shut(cable) | Self::Lose(cable, ..) => (None, Some(cable), None),
            Self::Storm(host, _)
            | Self::Dead(host)
            | Self::Late(host, _)
            | Self::Slow(host, _)
            | Self::Garbage(host, _) => (Some(host), None, None),
            Self::Stall(switch, _) => (None, None, Some(switch)),
        }
    }
}

impl Draft {
    /// Returns the host with this number.
    #[must_use]
    pub fn host(&self, id: usize) -> &HostDraft {
        &self.hosts[self.hosts.iter().position(|host| host.id == id).unwrap_or(0)]
    }

    /// Removes the host `id`, with its flows and faults.
    pub fn remove_host(&mut self, id: usize) {
        self.hosts.retain(|host| host.id != id);
        self.flows.retain(|flow| flow.from != id && flow.to != id);
        self.workloads.iter_mut().for_each(|workload| workload.hosts.retain(|host| *host != id));
        self.workloads.retain(|workload| workload.hosts.len() > 1);
        self.faults.retain(|fault| {
            let (host, cable, _) = fault.kind.touches();
            host != Some(id) && cable != Some(Cable::Host(id))
        });
    }

    /// Removes the link `id` with its faults.
    pub fn remove_link(&mut self, id: usize) {
        self.links.retain(|link| link.id != id);
        self.faults.retain(|fault| fault.kind.touches().1 != Some(Cable::Link(id)));
    }

    /// Removes the switch `id` with its hosts, links and faults.
    pub fn remove_switch(&mut self, id: usize) {
        let hosts: Vec<usize> = self.hosts.iter().filter(|host| host.switch == id).map(|host| host.id).collect();
        hosts.into_iter().for_each(|host| self.remove_host(host));
        let links: Vec<usize> = self.links.iter().filter(|link| link.ends.contains(&id)).map(|link| link.id).collect();
        links.into_iter().for_each(|link| self.remove_link(link));
        self.switches.retain(|switch| switch.id != id);
        self.faults.retain(|fault| fault.kind.touches().2 != Some(id));
    }

    /// Returns the number of ports of the switch `id`.
    #[must_use]
    pub fn ports(&self, id: usize) -> usize {
        self.hosts.iter().filter(|host| host.switch == id).count()
            + self.links.iter().filter(|link| link.ends.contains(&id)).count()
    }

    /// Returns the lowest rate of any host, receiver or link.
    #[must_use]
    pub fn slowest(&self) -> u64 {
        let hosts = self.hosts.iter().flat_map(|host| [Some(host.rate), host.receiver.map(|receiver| receiver.rate)]);
        let links = self.links.iter().map(|link| Some(link.rate));
        let faults = self.faults.iter().map(|fault| match fault.kind {
            FaultKindDraft::Slow(_, receiver) => Some(receiver.rate),
            _ => None,
        });
        hosts.chain(links).chain(faults).flatten().min().unwrap_or(1).max(1)
    }

    /// Returns the time to drain. It covers all buffers through the slowest rate, full receive rings through busy
    /// cores, the last fault, and pauses that must expire. A run that needs less ends when it has drained.
    #[must_use]
    pub fn drain(&self) -> u64 {
        if let Some(drain) = self.drain {
            return drain;
        }
        let is_for_good = |fault: &FaultDraft| {
            fault.time.is_none() && matches!(fault.kind, FaultKindDraft::Storm(..) | FaultKindDraft::Stall(..))
        };
        if self.faults.iter().any(is_for_good) {
            // Such a run never drains.
            return LEAST_DRAIN.0;
        }
        let held: u64 = self.switches.iter().map(|switch| switch.size).sum();
        let slowest = self.slowest();
        let links = self.hosts.iter().map(|host| host.rate).chain(self.links.iter().map(|link| link.rate));
        // 65535 quanta of 512 bits, in ns.
        let pause = 65_535 * 512 * 1000 / links.min().unwrap_or(1).max(1);
        let faults = self.faults.iter().map(|fault| fault.at + fault.time.unwrap_or(0)).max().unwrap_or(0);
        let watchdog = if self.switches.iter().any(|switch| switch.watchdog.is_some()) { 50_000_000 } else { 0 };
        (2_000_000 + held * 8 * 1000 / slowest + self.cores() + faults + watchdog + 3 * pause).min(9_000_000_000)
    }

    /// Returns the number of events after which a run is given up: all polls until its end, and many for frames.
    #[must_use]
    pub fn most_events(&self) -> u64 {
        let time = self.duration + self.drain();
        let polls = self.switches.iter().map(|switch| 2 * u64::from(switch.lcores) * time / switch.every.max(1));
        EVENTS_OF_FRAMES + polls.sum::<u64>()
    }

    /// Returns the time that cores take for full receive rings; each frame counts when received and when sent.
    fn cores(&self) -> u64 {
        let of_switch = |switch: &SwitchDraft| {
            let hosts = self.hosts.iter().filter(|host| host.switch == switch.id).map(|host| &host.port);
            let links = self.links.iter().filter(|link| link.ends.contains(&switch.id)).map(|link| &link.port);
            let rings: u64 = hosts.chain(links).map(|port| u64::from(port.rx_descriptors)).sum();
            2 * rings * switch.frame
        };
        self.switches.iter().map(of_switch).sum()
    }
}
