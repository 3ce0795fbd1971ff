//! Sections as they were read, before they are checked together and planned. Readers and checks use these; these read
//! nothing.

use crate::config::model::{LcoreConfig, PortDevice};
use crate::config::yaml::read::Item;
use crate::forward::VlanMode;
use crate::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets, largest_frame, posting_gap};
use crate::mirror::SflowConfig;
use crate::mmu::Threshold;
use crate::pfc::{PfcMode, WatchdogSpec};
use crate::plan::PortLive;
use crate::qos::{CongestionPointSpec, QueueDiscipline, WredProfile};
use crate::sets::CLASSES;
use crate::units::{Alpha, BitRate, Bytes, Cells, Nanos};
use crate::wire::MacAddr;

/// A maximum rate as it is written.
#[derive(Debug, Clone, Copy)]
pub struct WrittenMax {
    pub rate: BitRate,
    /// `None`: by rate, weight and MTU.
    pub burst: Option<Bytes>,
}

/// `max_rate` of a port by class: the item of the value, and `None` in it for `off`. A class that is not written has
/// the setting of the switch.
pub type WrittenMaxes<'a> = [Option<(Item<'a>, Option<WrittenMax>)>; CLASSES];

/// An amount in bytes, or in largest frames of a port, since ports differ in MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Frames(u32),
    Bytes(Bytes),
}

impl Amount {
    /// The amount in cells, for a port with this MTU.
    pub fn cells(self, mtu: u16, cell: Bytes) -> Cells {
        match self {
            Amount::Frames(frames) => Cells(frames.saturating_mul(largest_frame(mtu).to_cells_ceil(cell).0)),
            Amount::Bytes(bytes) => bytes.to_cells_ceil(cell),
        }
    }
}

/// Limit of a group or queue in its pool, before it is converted to cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Alpha(Alpha),
    Static(Bytes),
}

impl Limit {
    /// The limit in cells.
    pub fn threshold(self, cell: Bytes) -> Threshold {
        match self {
            Limit::Alpha(alpha) => Threshold::Dynamic(alpha),
            Limit::Static(bytes) => Threshold::Static(bytes.to_cells_floor(cell)),
        }
    }
}

/// Settings of one traffic class, and so of its group, queue and PFC priority.
#[derive(Debug, Clone, Copy)]
pub struct ClassSettings {
    pub lossless: bool,
    pub reserve: Amount,
    pub limit: Limit,
    pub xon_offset: Amount,
    pub xon_floor: Amount,
    /// Headroom of each group; `None`: calculated from each port's cable, rate and MTU.
    pub headroom: Option<Bytes>,
    pub scheduler: QueueDiscipline,
    /// Maximum rate of each queue; `None`: only the rate of its port.
    pub max_rate: Option<WrittenMax>,
    pub wred: Option<WredProfile>,
    /// Whether marked packets get notes of in-band telemetry.
    pub telemetry: bool,
    /// Congestion point of each queue.
    pub qcn: Option<CongestionPointSpec>,
    /// For lossy classes: the queue's limit in the lossy pool, and the part of the pool that is reserved for each such
    /// queue.
    pub queue_limit: Limit,
    pub queue_reserve: Bytes,
}

/// The settings of one class, and its item in the file, if there is one.
pub struct Class<'a> {
    pub settings: ClassSettings,
    pub item: Option<Item<'a>>,
}

/// A watchdog as written.
#[derive(Clone)]
pub struct Watchdog<'a> {
    pub spec: WatchdogSpec,
    /// The item of `detection`, if it is written.
    pub detection: Option<Item<'a>>,
}

/// `lcores:` as written.
pub struct Lcores<'a> {
    pub item: Option<Item<'a>>,
    pub config: LcoreConfig,
    pub count: u8,
    /// Whether the command line sets the lcore count; `lcore` of a port is then ignored.
    pub respread: bool,
    pub backlog_xoff: bool,
}

/// When the lossless groups of a port go XOFF because of frames that wait in its receive ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// The setting of the switch, `lcores.backlog_xoff`.
    Default,
    Never,
    From(u16),
}

/// The terms of the headroom formula that all ports have in common.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    pub cell: Bytes,
    pub poll_gap: Nanos,
    pub small_packets: SmallPackets,
    pub has_congestion_points: bool,
}

/// A port before its share of the buffer is calculated.
pub struct Port<'a> {
    pub item: Item<'a>,
    pub name: String,
    /// Whether the device was read without error. Without it `device` is a placeholder that needs no host.
    pub has_device: bool,
    pub device: PortDevice,
    pub mac: MacAddr,
    pub rate: BitRate,
    pub mtu: u16,
    /// Its maximum rates and its watchdog are known once classes are; `max_rates` and `watchdog` are as written.
    pub live: PortLive,
    pub vlan: VlanMode,
    pub pfc: PfcMode,
    pub watchdog: Option<Watchdog<'a>>,
    pub checks_l4: bool,
    /// Most stations that are learned at the port; known once `fdb` was read.
    pub fdb_limit: Option<u32>,
    /// Reserve of the port's lossy and lossless groups, if it is written; indexed by `lossless as usize`.
    pub reserve: [Option<Bytes>; 2],
    pub max_rates: WrittenMaxes<'a>,
    pub lcore: u8,
    pub backlog: Backlog,
    /// Whether the port speaks LLDP, if it is written.
    pub lldp: Option<bool>,
    /// The name of its link aggregation group, and the index of its first port.
    pub lag: Option<(String, usize)>,
    /// Whether the port sends copies of `mirrors` and nothing else except frames of its link.
    pub is_output: bool,
}

impl Port<'_> {
    /// Whether frames with this VLAN tag, or without one, belong to a VLAN of the port. An output of mirrors has none.
    pub fn carries(&self, tag: Option<u16>) -> bool {
        !self.is_output && self.vlan.carries(tag)
    }

    /// Frames that a poll may leave in the receive ring without XOFF. If the backlog never causes XOFF, only the ring
    /// bounds them, and headroom does not cover that.
    fn left_behind(&self) -> u32 {
        match self.backlog {
            Backlog::From(mark) => u32::from(mark).saturating_sub(1),
            Backlog::Default | Backlog::Never => LEFT_BEHIND,
        }
    }

    /// The input of the headroom formula for the port's lossless groups.
    pub fn headroom_input(&self, common: &Common) -> HeadroomInput {
        HeadroomInput {
            rate: self.rate,
            cable: self.device.cable,
            mtu: self.mtu,
            poll_gap: common.poll_gap,
            posted: {
                let gap = posting_gap(common.poll_gap, self.device.tx_queues);
                HeadroomInput::posted(self.rate, gap, common.has_congestion_points)
            },
            cell: common.cell,
            peer_response: self.device.peer_response.map(|time| self.rate.bytes_in(time)),
            stops_queues: if self.pfc == PfcMode::Queue { self.device.queues } else { 0 },
            other_rings: if self.pfc == PfcMode::Nic { CLASSES as u8 - 1 } else { 0 },
            left: self.left_behind(),
            small_packets: common.small_packets,
        }
    }
}

/// The agent, and the bytes of headers that it reports.
#[derive(Debug)]
pub struct Sflow {
    pub config: SflowConfig,
    pub bytes: u16,
}
