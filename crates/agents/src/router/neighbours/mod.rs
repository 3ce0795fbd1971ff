//! The neighbours of the router: their MAC addresses by interface and IP address, resolved by ARP and neighbour
//! discovery.
//!
//! A neighbour is confirmed by its answers, and by ARP. After [`FRESH`] it is asked again, to itself alone; its answer
//! also keeps its entry in the forwarding database alive. One that solicits is stale: packets use it at once, and it
//! is asked after [`DELAY`]. After [`PROBES`] questions without an answer it is lost. So a neighbour lives for at most
//! 48 s without a sign of life, less than the ageing time of the forwarding database.
//!
//! Ports and interfaces have shares of the table (`shares`). Neighbours that packets use are asked before others (RFC
//! 6583 section 6), whose questions have a rate for each port.

mod clock;
mod learn;
pub mod messages;
mod shares;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;

pub use self::learn::{Message, MessageKind, Unresolved};
use self::shares::{Full, Kind, Rank, Shares, Worth};
pub use self::shares::{NO_PORT, PORT_LIMIT, PortShare};
use crate::route::{AdjacencyId, MAX_ADJACENCIES};
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Time after a confirmation at which a neighbour is asked again.
pub const FRESH: Nanos = Nanos(45_000_000_000);
/// Time between two questions (RFC 4861 section 10: RETRANS_TIMER).
pub const RETRANSMIT: Nanos = Nanos(1_000_000_000);
/// Time for which packets use a stale neighbour before it is asked (RFC 4861 section 10: DELAY_FIRST_PROBE_TIME).
pub const DELAY: Nanos = Nanos(5_000_000_000);
/// Questions without an answer after which a neighbour is lost (RFC 4861 section 10: MAX_MULTICAST_SOLICIT).
pub const PROBES: u8 = 3;
/// Longest time for which a packet waits: that of all questions.
pub const WAIT: Nanos = Nanos(PROBES as u64 * RETRANSMIT.0);
/// Time for which a lost neighbour is not asked for again because of a packet.
pub const FAILED: Nanos = Nanos(5_000_000_000);
/// Packets that may wait for one neighbour.
pub const WAITING_EACH: usize = 3;
/// Packets that may wait for all neighbours together. Each is at most as long as a jumbo frame.
pub const WAITING_ALL: usize = 256;
/// Packets that may wait for the neighbours of one port, or of the packets of one port.
pub const WAITING_PORT: usize = 64;
/// Time after the last packet for which a neighbour counts as used.
pub const USED: Nanos = Nanos(60_000_000_000);
/// Questions a second, for each port, for neighbours that no packet uses. So many may go out at once.
pub const QUESTIONS: u64 = 500;

/// Interface and address of a neighbour.
pub type Key = (u16, IpAddr);

/// The state of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its MAC address is configured.
    Static,
    /// It was confirmed not long ago.
    Reachable,
    /// It is usable, but not confirmed: it has sent a message that answers nothing. It will be asked.
    Stale,
    /// It is usable, and asked again.
    Probing,
    /// It is asked for the first time.
    Incomplete,
    /// It does not answer.
    Failed,
    /// Its MAC address is configured, the forwarding database lacks its port, and it does not answer.
    Silent,
}

impl State {
    /// Every state with its label in metrics and tables.
    pub const TABLE: [(Self, &'static str); 7] = [
        (Self::Static, "static"),
        (Self::Reachable, "reachable"),
        (Self::Stale, "stale"),
        (Self::Probing, "probing"),
        (Self::Incomplete, "incomplete"),
        (Self::Failed, "failed"),
        (Self::Silent, "silent"),
    ];

    /// Label in metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    fn is_usable(self) -> bool {
        self.is_static() || matches!(self, Self::Reachable | Self::Stale | Self::Probing)
    }

    fn is_static(self) -> bool {
        matches!(self, Self::Static | Self::Silent)
    }
}

/// One neighbour.
#[derive(Debug, Clone)]
pub struct Neighbour {
    /// Its state.
    pub state: State,
    /// Its MAC address, as far as it was ever known.
    pub mac: MacAddr,
    /// Its number among the adjacencies; it has one while it is usable.
    pub adjacency: Option<AdjacencyId>,
    /// Instant of the last confirmation.
    pub confirmed: Nanos,
    /// The port of its last message, if the port has had a link since. Packets leave there while the forwarding
    /// database lacks its MAC address: an answer may have another source (RFC 826, RFC 5798 section 8.1.2).
    pub port: Option<u8>,
    /// Instant of the next action, and questions asked since the last answer.
    due: Nanos,
    probes: u8,
    /// Next-hop groups of routes beside its own that need it.
    pub uses: u32,
    /// Packets that wait for it, as IP packets, and the instant until which they do.
    waiting: Vec<Vec<u8>>,
    waits_until: Nanos,
    /// The port in whose share it is.
    payer: u8,
    /// Instant of its first message or question, or of its last packet.
    since: Nanos,
    /// Whether packets use it.
    is_used: bool,
}

impl Neighbour {
    /// Its place in the shares; `None`: it never gives way.
    fn rank(&self, key: Key) -> Option<Rank> {
        let worth = match self.state.is_usable() {
            false => Worth::Unknown,
            true if self.is_used => Worth::Used,
            true => Worth::Idle,
        };
        let is_fixed = self.state.is_static() || self.uses > 0;
        (!is_fixed).then_some(Rank { payer: self.payer, key, worth, since: self.since })
    }

    /// Instant at which it wants to act.
    fn wakes(&self) -> Option<Nanos> {
        // A static one acts while it is asked.
        let acts = (!self.state.is_static() || self.probes > 0).then_some(self.due);
        acts.into_iter().chain((!self.waiting.is_empty()).then_some(self.waits_until)).min()
    }

    /// Whether it is asked before others.
    fn is_wanted(&self) -> bool {
        self.uses > 0 || self.is_used || self.state.is_usable() && !self.waiting.is_empty()
    }
}

/// A question that must be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The neighbour.
    pub key: Key,
    /// The address to which the question goes; `None`: to all.
    pub mac: Option<MacAddr>,
}

/// The effect of a message, an event or the time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Whether some neighbour became usable or unusable, or has another MAC address.
    pub is_changed: bool,
    /// Packets that may leave now, each with its neighbour.
    pub released: Vec<(Key, Vec<u8>)>,
    /// Packets whose neighbour does not answer: their senders get an error.
    pub given_up: Vec<(Key, Vec<u8>)>,
    /// Questions to send.
    pub questions: Vec<Question>,
    /// Neighbours that became usable.
    pub gained: Vec<Key>,
    /// Neighbours that are no longer usable.
    pub lost: Vec<Key>,
}

/// Counters of neighbours.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourCounts {
    /// Usable neighbours that were lost, or whose MAC address changed.
    pub flaps: u64,
    /// Packets not held because too many waited, or dropped because the neighbour or its link was not there.
    pub unresolved_packets: u64,
    /// Neighbours refused because the table is full of static ones and next hops.
    pub refused: u64,
    /// Neighbours that gave way to others.
    pub evicted: u64,
}

/// The use of an adjacency.
#[derive(Debug, Clone, Copy)]
struct Use {
    key: Key,
    /// Its frames at the last look.
    frames: Option<u64>,
    /// Whether the neighbour counts as used, and since when.
    is_used: bool,
    since: Nanos,
}

/// The questions that a port may cause now.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// Questions, each of so many parts as a second has nanoseconds.
    tokens: u64,
    at: Nanos,
}

/// All neighbours.
#[derive(Debug)]
pub struct Neighbours {
    table: BTreeMap<Key, Neighbour>,
    /// Neighbours by the instant of their next action.
    due: BTreeSet<(Nanos, Key)>,
    shares: Shares,
    /// Neighbours by adjacency.
    uses: Vec<Option<Use>>,
    allowances: [Allowance; NO_PORT as usize + 1],
    free: Vec<AdjacencyId>,
    waiting: usize,
    waiting_at: [usize; NO_PORT as usize + 1],
    /// Instant of the last look at the counters of adjacencies.
    noted: Nanos,
    /// Counters.
    pub counts: NeighbourCounts,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self {
            table: BTreeMap::new(),
            due: BTreeSet::new(),
            shares: Shares::default(),
            uses: Vec::new(),
            allowances: [Allowance::FULL; NO_PORT as usize + 1],
            free: Vec::new(),
            waiting: 0,
            waiting_at: [0; NO_PORT as usize + 1],
            noted: Nanos(0),
            counts: NeighbourCounts::default(),
        }
    }
}

/// The places of a neighbour in the indices.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Places {
    rank: Option<Rank>,
    wakes: Option<Nanos>,
}

impl Places {
    fn of(neighbour: &Neighbour, key: Key) -> Self {
        Self { rank: neighbour.rank(key), wakes: neighbour.wakes() }
    }
}

impl Neighbours {
    /// The neighbour with this key.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&Neighbour> {
        self.table.get(&key)
    }

    /// All neighbours, by interface and address.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &Neighbour)> {
        self.table.iter().map(|(&key, neighbour)| (key, neighbour))
    }

    /// The adjacency of a usable neighbour.
    #[must_use]
    pub fn adjacency(&self, key: Key) -> Option<AdjacencyId> {
        self.table.get(&key)?.adjacency
    }

    /// Addresses of the usable neighbours of `interface` that are in `prefix`.
    #[must_use]
    pub fn usable_in(&self, interface: u16, prefix: IpNet) -> Vec<IpAddr> {
        let keys = (interface, prefix.network())..=(interface, prefix.broadcast());
        let usable = self.table.range(keys).filter(|(_, neighbour)| neighbour.adjacency.is_some());
        usable.map(|(&(_, address), _)| address).collect()
    }

    /// Number of adjacency numbers in use, the free ones below the highest included.
    #[must_use]
    pub fn adjacencies(&self) -> usize {
        self.uses.len()
    }

    /// Sets the most hosts that may take room of the forwarding table, IPv4 and IPv6.
    pub fn set_limits(&mut self, limits: [usize; 2]) {
        self.shares.set_limits(limits);
    }

    /// The share of `port`; that of [`NO_PORT`] has neighbours without a port.
    #[must_use]
    pub fn share(&self, port: u8) -> PortShare {
        self.shares.of_port(port)
    }

    /// Changes a neighbour, and its places with it.
    fn edit<T>(&mut self, key: Key, change: impl FnOnce(&mut Neighbour) -> T) -> Option<T> {
        let neighbour = self.table.get_mut(&key)?;
        let before = Places::of(neighbour, key);
        let result = change(neighbour);
        let after = Places::of(neighbour, key);
        self.place(key, before, after);
        Some(result)
    }

    fn place(&mut self, key: Key, before: Places, after: Places) {
        if before.rank != after.rank {
            before.rank.into_iter().for_each(|rank| self.shares.remove(rank));
            after.rank.into_iter().for_each(|rank| self.shares.insert(rank));
        }
        if before.wakes != after.wakes {
            before.wakes.into_iter().for_each(|due| _ = self.due.remove(&(due, key)));
            after.wakes.into_iter().for_each(|due| _ = self.due.insert((due, key)));
        }
    }

    /// Makes the entry of `key` in the share of `payer`, if there is none. One without a payer is about to be static or
    /// a next hop. Returns whether there is one: the table may be full of entries that cannot give way.
    fn admit(&mut self, key: Key, payer: Option<u8>, now: Nanos, effect: &mut Effect) -> bool {
        if self.table.contains_key(&key) {
            return true;
        }
        let kind = Kind::of(key.1);
        let full_for = |shares: &Shares, len: usize| {
            let of_share = payer.and_then(|payer| shares.full_at(payer, kind, 1).or(shares.full_of(kind, 1)));
            of_share.or((len >= MAX_ADJACENCIES).then_some(Full::TABLE))
        };
        while let Some(full) = full_for(&self.shares, self.table.len()) {
            let Some(victim) = self.shares.victim(full) else {
                self.counts.refused += 1;
                return false;
            };
            self.evict(victim, effect);
        }
        let neighbour = Neighbour {
            state: State::Incomplete,
            mac: MacAddr::default(),
            adjacency: None,
            confirmed: Nanos(0),
            port: None,
            due: now,
            probes: 0,
            uses: 0,
            waiting: Vec::new(),
            waits_until: Nanos(0),
            payer: payer.unwrap_or(NO_PORT),
            since: now,
            is_used: false,
        };
        self.place(key, Places::default(), Places::of(&neighbour, key));
        self.table.insert(key, neighbour);
        true
    }

    /// Removes a neighbour to make room.
    fn evict(&mut self, key: Key, effect: &mut Effect) {
        if let Some(neighbour) = self.table.get(&key) {
            self.shares.count_evicted(neighbour.payer);
            self.counts.evicted += 1;
            self.disuse(key, effect);
            self.remove(key);
        }
    }

    /// Ends the use of a neighbour as an adjacency, if it is usable.
    fn disuse(&mut self, key: Key, effect: &mut Effect) {
        if let Some(id) = self.table.get_mut(&key).and_then(|neighbour| neighbour.adjacency.take()) {
            self.uses[usize::from(id.0)] = None;
            self.free.push(id);
            effect.lost.push(key);
            effect.is_changed = true;
        }
    }

    fn remove(&mut self, key: Key) {
        self.counts.unresolved_packets += self.take_waiting(key).len() as u64;
        if let Some(neighbour) = self.table.remove(&key) {
            self.place(key, Places::of(&neighbour, key), Places::default());
        }
    }

    /// Gives the neighbour the number of an adjacency.
    fn allocate(&mut self, key: Key, now: Nanos) {
        let id = self.free.pop().unwrap_or(AdjacencyId(self.uses.len() as u16));
        if usize::from(id.0) == self.uses.len() {
            self.uses.push(None);
        }
        self.uses[usize::from(id.0)] = Some(Use { key, frames: None, is_used: false, since: now });
        if let Some(neighbour) = self.table.get_mut(&key) {
            neighbour.adjacency = Some(id);
        }
    }

    /// Takes the packets that wait for a neighbour.
    fn take_waiting(&mut self, key: Key) -> Vec<(Key, Vec<u8>)> {
        let taken = self.edit(key, |neighbour| (neighbour.payer, std::mem::take(&mut neighbour.waiting)));
        let Some((payer, packets)) = taken else { return Vec::new() };
        self.waiting -= packets.len();
        self.waiting_at[usize::from(payer)] -= packets.len();
        packets.into_iter().map(|packet| (key, packet)).collect()
    }

    /// Gives up the packets that wait for a neighbour.
    fn drop_waiting(&mut self, key: Key, effect: &mut Effect) {
        let dropped = self.take_waiting(key);
        self.counts.unresolved_packets += dropped.len() as u64;
        effect.given_up.extend(dropped);
    }

    /// Whether the neighbour is known, so that a message about it is of interest.
    #[must_use]
    pub fn is_known(&self, key: Key) -> bool {
        self.table.contains_key(&key)
    }

    /// Number of neighbours by state, in the order of [`State::TABLE`].
    #[must_use]
    pub fn by_state(&self) -> [usize; State::TABLE.len()] {
        let mut counts = [0; State::TABLE.len()];
        self.table.values().for_each(|neighbour| counts[neighbour.state as usize] += 1);
        counts
    }

    /// Packets that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}
