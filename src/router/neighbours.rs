//! The neighbours of the router: their MAC addresses by interface and IP address, resolved by ARP and neighbour
//! discovery.
//!
//! A neighbour is confirmed by its own messages. After [`FRESH`] it is asked again, to itself alone, while its address
//! stays in use; its answer also keeps its entry in the forwarding database alive. After [`PROBES`] questions without
//! an answer it is lost. So a neighbour lives for at most 48 s without a sign of life, less than the ageing time of
//! the forwarding database.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::route::{AdjacencyId, MAX_ADJACENCIES};
use crate::units::Nanos;
use crate::wire::MacAddr;

/// Time after a confirmation at which a neighbour is asked again.
pub const FRESH: Nanos = Nanos(45_000_000_000);
/// Time between two questions (RFC 4861 section 10: RETRANS_TIMER).
pub const RETRANSMIT: Nanos = Nanos(1_000_000_000);
/// Questions without an answer after which a neighbour is lost (RFC 4861 section 10: MAX_MULTICAST_SOLICIT).
pub const PROBES: u8 = 3;
/// Time for which a lost neighbour is not asked for again because of a packet.
pub const FAILED: Nanos = Nanos(5_000_000_000);
/// Packets that may wait for one neighbour.
pub const WAITING_EACH: usize = 3;
/// Packets that may wait for all neighbours together. Each is at most as long as a jumbo frame.
pub const WAITING_ALL: usize = 256;

/// Interface and address of a neighbour.
pub type Key = (u16, IpAddr);

/// The state of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its MAC address is configured.
    Static,
    /// It was confirmed not long ago.
    Reachable,
    /// It is usable, and asked again.
    Probing,
    /// It is asked for the first time.
    Incomplete,
    /// It does not answer.
    Failed,
}

impl State {
    /// Every state with its label in metrics and tables.
    pub const TABLE: [(Self, &'static str); 5] = [
        (Self::Static, "static"),
        (Self::Reachable, "reachable"),
        (Self::Probing, "probing"),
        (Self::Incomplete, "incomplete"),
        (Self::Failed, "failed"),
    ];

    /// Label in metrics and tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    fn is_usable(self) -> bool {
        matches!(self, Self::Static | Self::Reachable | Self::Probing)
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
    /// Instant of the next action, and questions asked since the last answer.
    due: Nanos,
    probes: u8,
    /// Next-hop groups that need it.
    pub uses: u32,
    /// Packets that wait for it, as IP packets.
    waiting: Vec<Vec<u8>>,
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
    /// Packets not held because too many waited, or dropped because the neighbour did not answer.
    pub unresolved_packets: u64,
    /// Neighbours refused because the table is full.
    pub refused: u64,
}

/// All neighbours.
#[derive(Debug, Default)]
pub struct Neighbours {
    table: BTreeMap<Key, Neighbour>,
    free: Vec<AdjacencyId>,
    /// Adjacencies ever given.
    given: u16,
    waiting: usize,
    /// Counters.
    pub counts: NeighbourCounts,
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
        usize::from(self.given)
    }

    fn allocate(&mut self) -> Option<AdjacencyId> {
        self.free.pop().or_else(|| {
            let id = AdjacencyId(self.given);
            (usize::from(id.0) < MAX_ADJACENCIES).then(|| {
                self.given += 1;
                id
            })
        })
    }

    /// The entry of `key`; a new one asks at once. `None` if the table is full.
    fn entry(&mut self, key: Key, now: Nanos) -> Option<&mut Neighbour> {
        if !self.table.contains_key(&key) && self.table.len() >= MAX_ADJACENCIES {
            self.counts.refused += 1;
            return None;
        }
        Some(self.table.entry(key).or_insert_with(|| Neighbour {
            state: State::Incomplete,
            mac: MacAddr::default(),
            adjacency: None,
            confirmed: Nanos(0),
            due: now,
            probes: 0,
            uses: 0,
            waiting: Vec::new(),
        }))
    }

    /// Configures the MAC address of a neighbour.
    pub fn set_static(&mut self, key: Key, mac: MacAddr, now: Nanos, effect: &mut Effect) {
        self.confirm(key, mac, now, effect);
        if let Some(neighbour) = self.table.get_mut(&key) {
            neighbour.state = State::Static;
        }
    }

    /// Ends the configuration of a neighbour's MAC address: from now on it must answer.
    pub fn unset_static(&mut self, key: Key, now: Nanos) {
        if let Some(neighbour) = self.table.get_mut(&key)
            && neighbour.state == State::Static
        {
            (neighbour.state, neighbour.due, neighbour.probes) = (State::Probing, now, 0);
        }
    }

    /// A group needs the neighbour as its next hop, from now on.
    pub fn hold(&mut self, key: Key, now: Nanos) {
        if let Some(neighbour) = self.entry(key, now) {
            neighbour.uses += 1;
        }
    }

    /// A group needs the neighbour no longer.
    pub fn unhold(&mut self, key: Key) {
        if let Some(neighbour) = self.table.get_mut(&key) {
            neighbour.uses = neighbour.uses.saturating_sub(1);
        }
    }

    /// Asks for the neighbour of an IP packet, which waits for it if there is room. `stale` tells that the neighbour is
    /// known, but not the port that leads to it.
    pub fn resolve(&mut self, key: Key, packet: Option<&[u8]>, now: Nanos, effect: &mut Effect) {
        let is_room = self.waiting < WAITING_ALL;
        let Some(neighbour) = self.entry(key, now) else { return };
        match neighbour.state {
            State::Failed if neighbour.due.0 > now.0 => {
                if let Some(packet) = packet {
                    self.counts.unresolved_packets += 1;
                    effect.given_up.push((key, packet.to_vec()));
                }
                return;
            }
            State::Failed => (neighbour.state, neighbour.due, neighbour.probes) = (State::Incomplete, now, 0),
            // The forwarding database has lost it: its answer teaches the database its port.
            State::Reachable => (neighbour.state, neighbour.due, neighbour.probes) = (State::Probing, now, 0),
            State::Static => {
                if neighbour.due.0 <= now.0 {
                    neighbour.due = Nanos(now.0 + RETRANSMIT.0);
                    effect.questions.push(Question { key, mac: Some(neighbour.mac) });
                }
            }
            State::Incomplete | State::Probing => {}
        }
        let Some(packet) = packet else { return };
        if is_room && neighbour.waiting.len() < WAITING_EACH {
            neighbour.waiting.push(packet.to_vec());
            self.waiting += 1;
        } else {
            self.counts.unresolved_packets += 1;
        }
    }

    /// A message of the neighbour has its MAC address. Creates the entry if it does not exist.
    pub fn confirm(&mut self, key: Key, mac: MacAddr, now: Nanos, effect: &mut Effect) {
        self.entry(key, now);
        let Some(neighbour) = self.table.get_mut(&key) else { return };
        let (was_usable, before) = (neighbour.state.is_usable(), neighbour.mac);
        if neighbour.state == State::Static {
            effect.released.extend(take_waiting(&mut self.waiting, key, neighbour));
            return;
        }
        (neighbour.state, neighbour.mac, neighbour.confirmed) = (State::Reachable, mac, now);
        // A different phase for each neighbour: they are not all asked at the same instant.
        let phase = mac.to_number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        (neighbour.due, neighbour.probes) = (Nanos(now.0 + FRESH.0 - phase * 10_000_000), 0);
        effect.released.extend(take_waiting(&mut self.waiting, key, neighbour));
        if was_usable && before == mac {
            return;
        }
        effect.is_changed = true;
        if was_usable {
            self.counts.flaps += 1;
            return;
        }
        effect.gained.push(key);
        let id = self.allocate();
        if let Some(neighbour) = self.table.get_mut(&key) {
            neighbour.adjacency = id;
        }
    }

    /// Whether the neighbour is known, so that a message about it is of interest.
    #[must_use]
    pub fn is_known(&self, key: Key) -> bool {
        self.table.contains_key(&key)
    }

    /// Acts on the time: asks, and gives up neighbours that do not answer.
    pub fn tick(&mut self, now: Nanos, effect: &mut Effect) {
        let mut ended = Vec::new();
        for (&key, neighbour) in &mut self.table {
            if neighbour.due.0 > now.0 || neighbour.state == State::Static {
                continue;
            }
            match neighbour.state {
                State::Failed if neighbour.uses > 0 => {
                    (neighbour.state, neighbour.probes) = (State::Incomplete, 0);
                }
                State::Failed => {
                    ended.push(key);
                    continue;
                }
                State::Reachable => neighbour.state = State::Probing,
                _ => {}
            }
            if neighbour.probes < PROBES {
                neighbour.probes += 1;
                neighbour.due = Nanos(now.0 + RETRANSMIT.0);
                let mac = (neighbour.state == State::Probing).then_some(neighbour.mac);
                effect.questions.push(Question { key, mac });
            } else {
                let was_usable = neighbour.state.is_usable();
                (neighbour.state, neighbour.due) = (State::Failed, Nanos(now.0 + FAILED.0));
                let unanswered = take_waiting(&mut self.waiting, key, neighbour);
                self.counts.unresolved_packets += unanswered.len() as u64;
                effect.given_up.extend(unanswered);
                if was_usable {
                    self.counts.flaps += 1;
                    self.free.extend(neighbour.adjacency.take());
                    effect.lost.push(key);
                    effect.is_changed = true;
                }
            }
        }
        for key in ended {
            self.table.remove(&key);
        }
    }

    /// Forgets the learned neighbours of `interface`, whose link went down. Those that are next hops are asked for
    /// again at once when it is up. Static ones stay.
    pub fn interface_down(&mut self, interface: u16, now: Nanos, effect: &mut Effect) {
        let mut ended = Vec::new();
        for (&key, neighbour) in self.table.iter_mut().filter(|(key, _)| key.0 == interface) {
            if neighbour.state == State::Static {
                continue;
            }
            self.waiting -= neighbour.waiting.len();
            self.counts.unresolved_packets += neighbour.waiting.len() as u64;
            neighbour.waiting.clear();
            if neighbour.state.is_usable() {
                self.free.extend(neighbour.adjacency.take());
                effect.lost.push(key);
                effect.is_changed = true;
            }
            (neighbour.state, neighbour.due, neighbour.probes) = (State::Incomplete, now, 0);
            if neighbour.uses == 0 {
                ended.push(key);
            }
        }
        for key in ended {
            self.table.remove(&key);
        }
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

fn take_waiting(all: &mut usize, key: Key, neighbour: &mut Neighbour) -> Vec<(Key, Vec<u8>)> {
    *all -= neighbour.waiting.len();
    neighbour.waiting.drain(..).map(|packet| (key, packet)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = (0, IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)));
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn seconds(seconds: u64) -> Nanos {
        Nanos(seconds * 1_000_000_000)
    }

    fn tick(neighbours: &mut Neighbours, now: Nanos) -> Effect {
        let mut effect = Effect::default();
        neighbours.tick(now, &mut effect);
        effect
    }

    fn confirmed(neighbours: &mut Neighbours, now: Nanos) -> Effect {
        let mut effect = Effect::default();
        neighbours.confirm(KEY, MAC, now, &mut effect);
        effect
    }

    #[test]
    fn packets_wait_in_order_and_leave_with_the_answer() {
        let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
        for number in 0..5 {
            neighbours.resolve(KEY, Some(&[number]), seconds(1), &mut effect);
        }
        assert_eq!(effect, Effect::default());
        assert_eq!(tick(&mut neighbours, seconds(1)).questions, [Question { key: KEY, mac: None }]);
        assert_eq!((neighbours.waiting(), neighbours.counts.unresolved_packets), (3, 2));
        let effect = confirmed(&mut neighbours, seconds(2));
        assert_eq!(effect.released, [0, 1, 2].map(|number| (KEY, vec![number])));
        assert!(effect.is_changed && effect.gained == [KEY] && neighbours.waiting() == 0);
        assert_eq!(neighbours.adjacency(KEY), Some(AdjacencyId(0)));
    }

    #[test]
    fn neighbour_that_never_answers_fails_after_three_questions() {
        let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
        neighbours.resolve(KEY, Some(&[9]), seconds(1), &mut effect);
        let mut asked = 0;
        for second in 1..=3 {
            asked += tick(&mut neighbours, seconds(second)).questions.len();
        }
        assert_eq!(asked, 3);
        let effect = tick(&mut neighbours, seconds(4));
        assert_eq!((effect.given_up, effect.questions.len()), (vec![(KEY, vec![9])], 0));
        assert_eq!(neighbours.get(KEY).unwrap().state, State::Failed);
        let mut effect = Effect::default();
        neighbours.resolve(KEY, Some(&[1]), seconds(5), &mut effect);
        assert_eq!((effect.given_up.len(), tick(&mut neighbours, seconds(5)).questions.len()), (1, 0));
        tick(&mut neighbours, seconds(9));
        assert!(!neighbours.is_known(KEY), "nothing needs it");
    }

    #[test]
    fn confirmed_neighbour_is_asked_before_it_expires_and_stays_usable() {
        let mut neighbours = Neighbours::default();
        confirmed(&mut neighbours, seconds(1));
        let first = (1..60).find(|&second| !tick(&mut neighbours, seconds(second)).questions.is_empty()).unwrap();
        assert!((35..=46).contains(&first), "asked after {first} s");
        let neighbour = neighbours.get(KEY).unwrap();
        assert_eq!((neighbour.state, neighbour.adjacency.is_some()), (State::Probing, true));
        assert!(!confirmed(&mut neighbours, seconds(first + 1)).is_changed, "the answer changes nothing");
        assert_eq!(neighbours.get(KEY).unwrap().state, State::Reachable);
    }

    #[test]
    fn silent_neighbour_is_lost_and_a_next_hop_is_asked_for_again() {
        let mut neighbours = Neighbours::default();
        confirmed(&mut neighbours, seconds(1));
        neighbours.hold(KEY, seconds(1));
        let mut lost = None;
        for second in 2..60 {
            let effect = tick(&mut neighbours, seconds(second));
            if !effect.lost.is_empty() {
                lost = Some(second);
                break;
            }
        }
        assert!(lost.is_some_and(|second| second <= 49), "{lost:?}");
        assert_eq!((neighbours.adjacency(KEY), neighbours.counts.flaps), (None, 1));
        let again = tick(&mut neighbours, seconds(lost.unwrap() + 5));
        assert_eq!(again.questions, [Question { key: KEY, mac: None }]);
    }

    #[test]
    fn other_mac_address_is_a_flap_and_keeps_the_adjacency() {
        let mut neighbours = Neighbours::default();
        confirmed(&mut neighbours, seconds(1));
        let mut effect = Effect::default();
        neighbours.confirm(KEY, MacAddr([2, 0, 0, 0, 0, 3]), seconds(2), &mut effect);
        assert!(effect.is_changed && effect.gained.is_empty());
        assert_eq!((neighbours.adjacency(KEY), neighbours.counts.flaps), (Some(AdjacencyId(0)), 1));
    }

    #[test]
    fn static_neighbour_ignores_messages_and_time() {
        let (mut neighbours, mut effect) = (Neighbours::default(), Effect::default());
        neighbours.set_static(KEY, MAC, seconds(1), &mut effect);
        neighbours.confirm(KEY, MacAddr([2, 0, 0, 0, 0, 9]), seconds(2), &mut effect);
        assert_eq!(tick(&mut neighbours, seconds(900)), Effect::default());
        let neighbour = neighbours.get(KEY).unwrap();
        assert_eq!((neighbour.state, neighbour.mac), (State::Static, MAC));
        neighbours.unset_static(KEY, seconds(900));
        assert_eq!(tick(&mut neighbours, seconds(900)).questions.len(), 1);
    }

    #[test]
    fn link_that_goes_down_forgets_its_neighbours() {
        let mut neighbours = Neighbours::default();
        confirmed(&mut neighbours, seconds(1));
        let mut effect = Effect::default();
        neighbours.interface_down(1, seconds(2), &mut effect);
        assert_eq!(effect, Effect::default());
        neighbours.interface_down(0, seconds(2), &mut effect);
        assert!(effect.lost == [KEY] && !neighbours.is_known(KEY));
        confirmed(&mut neighbours, seconds(3));
        assert_eq!(neighbours.adjacency(KEY), Some(AdjacencyId(0)), "the number is used again");
    }
}
