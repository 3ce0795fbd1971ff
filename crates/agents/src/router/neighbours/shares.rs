//! The shares of ports and interfaces in the table of neighbours.
//!
//! The port that pays for an entry is that of the neighbour's last message, or of the packet that asks for it. A port
//! has at most half of the room of each kind. When the table is full, the port with most entries gives one; of its
//! interfaces, the one with most. So each port keeps at least an equal part. Unknown neighbours go first, then those
//! that no packet uses, oldest first; used ones go only if the port has no others. Static neighbours and next hops of
//! routes belong to no share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::Key;
use crate::route::MAX_ADJACENCIES;
use crate::sets::MAX_PORTS;
use crate::units::Nanos;

/// The payer of entries that no frame has caused.
pub const NO_PORT: u8 = MAX_PORTS as u8;

/// Most neighbours of one port.
pub const PORT_LIMIT: usize = MAX_ADJACENCIES / 2;

/// Number of payers: ports, and [`NO_PORT`].
const PAYERS: usize = MAX_PORTS + 1;

/// The kind of a neighbour by the room that it takes in the forwarding table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An IPv4 host.
    V4,
    /// An IPv6 host.
    V6,
    /// An IPv6 host by its link-local address. It has no route.
    LinkLocal,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 3;

    /// The kind of the neighbour with this address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// The value of a neighbour for the switch. Those of the lowest value give way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// It has not answered.
    Unknown,
    /// No packet uses it.
    Idle,
    /// Packets use it.
    Used,
}

/// The place of an entry in the shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    /// The port that pays for it.
    pub payer: u8,
    pub key: Key,
    pub worth: Worth,
    /// Instant from which on it is so old.
    pub since: Nanos,
}

/// A bound that a new entry exceeds: of one payer or of all, of one kind or of all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    payer: Option<u8>,
    kind: Option<Kind>,
}

impl Full {
    /// The bound of the whole table.
    pub const TABLE: Self = Self { payer: None, kind: None };
}

/// Size of an interface's entries at a port. Those with an entry that no packet uses are the larger.
type Size = (bool, usize, u16);

/// Entries of one interface, the first to give way first.
type Queue = BTreeSet<(Worth, Nanos, IpAddr)>;

/// The entries of one payer.
#[derive(Debug, Default)]
struct Share {
    queues: [BTreeMap<u16, Queue>; Kind::COUNT],
    sizes: [BTreeSet<Size>; Kind::COUNT],
    entries: [usize; Kind::COUNT],
    evicted: u64,
}

impl Share {
    /// Adds an entry to the queue of its interface, or takes it away.
    fn change(&mut self, rank: Rank, is_added: bool) {
        let (interface, address) = rank.key;
        let kind = Kind::of(address) as usize;
        let queue = self.queues[kind].entry(interface).or_default();
        let before = size(interface, queue);
        let entry = (rank.worth, rank.since, address);
        if is_added {
            queue.insert(entry);
            self.entries[kind] += 1;
        } else {
            queue.remove(&entry);
            self.entries[kind] -= 1;
        }
        let after = size(interface, queue);
        self.sizes[kind].remove(&before);
        if after.1 > 0 {
            self.sizes[kind].insert(after);
        } else {
            self.queues[kind].remove(&interface);
        }
    }

    /// The largest interface and its kind.
    fn largest(&self, kind: Option<Kind>) -> Option<(Size, usize)> {
        let kinds = (0..Kind::COUNT).filter(|&index| kind.is_none_or(|kind| kind as usize == index));
        kinds.filter_map(|kind| self.sizes[kind].last().map(|size| (*size, kind))).max()
    }

    fn total(&self, kind: Option<Kind>) -> usize {
        kind.map_or_else(|| self.entries.iter().sum(), |kind| self.entries[kind as usize])
    }
}

fn size(interface: u16, queue: &Queue) -> Size {
    (queue.first().is_some_and(|first| first.0 < Worth::Used), queue.len(), interface)
}

/// The entries of one port, for observers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PortShare {
    /// Entries now.
    pub entries: usize,
    /// Entries that gave way to others.
    pub evicted: u64,
}

/// All shares.
#[derive(Debug)]
pub struct Shares {
    payers: [Share; PAYERS],
    /// Most entries of each kind, and entries now.
    limits: [usize; Kind::COUNT],
    entries: [usize; Kind::COUNT],
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            payers: std::array::from_fn(|_| Share::default()),
            limits: [MAX_ADJACENCIES; Kind::COUNT],
            entries: [0; Kind::COUNT],
        }
    }
}

impl Shares {
    /// Sets the most hosts with routes, IPv4 and IPv6.
    pub fn set_limits(&mut self, hosts: [usize; 2]) {
        let [ipv4, ipv6] = hosts;
        self.limits = [ipv4, ipv6, MAX_ADJACENCIES].map(|limit| limit.min(MAX_ADJACENCIES));
    }

    pub fn insert(&mut self, rank: Rank) {
        self.entries[Kind::of(rank.key.1) as usize] += 1;
        self.payers[usize::from(rank.payer)].change(rank, true);
    }

    pub fn remove(&mut self, rank: Rank) {
        self.entries[Kind::of(rank.key.1) as usize] -= 1;
        self.payers[usize::from(rank.payer)].change(rank, false);
    }

    /// The bound of `payer` that `more` entries of this kind exceed.
    pub fn full_at(&self, payer: u8, kind: Kind, more: usize) -> Option<Full> {
        let share = &self.payers[usize::from(payer)];
        let payer = Some(payer);
        if share.total(Some(kind)) + more > self.limits[kind as usize].div_ceil(2) {
            return Some(Full { payer, kind: Some(kind) });
        }
        (share.total(None) + more > PORT_LIMIT).then_some(Full { payer, kind: None })
    }

    /// The bound of the kind that `more` entries exceed.
    pub fn full_of(&self, kind: Kind, more: usize) -> Option<Full> {
        let is_full = self.entries[kind as usize] + more > self.limits[kind as usize];
        is_full.then_some(Full { payer: None, kind: Some(kind) })
    }

    /// Every bound that is exceeded now.
    pub fn exceeded(&self) -> Option<Full> {
        let kinds = [Kind::V4, Kind::V6, Kind::LinkLocal];
        let at_ports = (0..=NO_PORT).flat_map(|payer| kinds.map(|kind| self.full_at(payer, kind, 0)));
        at_ports.chain(kinds.map(|kind| self.full_of(kind, 0))).flatten().next()
    }

    /// The entry that gives way because a bound is reached. A port with more than an equal part comes first, then one
    /// with entries that no packet uses, then the one that has most.
    pub fn victim(&self, full: Full) -> Option<Key> {
        let total = |at: usize| self.payers[at].total(full.kind);
        let holders = (0..PAYERS).filter(|&at| total(at) > 0).count().max(1);
        let equal_part = (0..PAYERS).map(total).sum::<usize>() / holders;
        let payers = (0..PAYERS).filter(|&at| full.payer.is_none_or(|payer| usize::from(payer) == at));
        let largest = payers.filter_map(|at| {
            self.payers[at].largest(full.kind).map(|found| (total(at) > equal_part, found.0.0, total(at), at, found))
        });
        let (.., at, ((_, _, interface), kind)) = largest.max()?;
        let (_, _, address) = self.payers[at].queues[kind].get(&interface)?.first()?;
        Some((interface, *address))
    }

    /// Counts an entry of `payer` that gave way.
    pub fn count_evicted(&mut self, payer: u8) {
        self.payers[usize::from(payer)].evicted += 1;
    }

    /// The share of `port`.
    pub fn of_port(&self, port: u8) -> PortShare {
        let share = &self.payers[usize::from(port)];
        PortShare { entries: share.total(None), evicted: share.evicted }
    }
}
