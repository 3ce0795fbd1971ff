//! Neighbours are asked for and confirmed: by packets, routes, messages and the configuration.

use super::messages::{self, Address, Flags, Outcome};
use super::shares::{Kind, NO_PORT};
use super::{DELAY, Effect, FRESH, Key, Neighbours, State, WAIT, WAITING_ALL, WAITING_EACH, WAITING_PORT};
use crate::units::Nanos;
use crate::wire::MacAddr;

/// A message about a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Its kind.
    pub kind: MessageKind,
    /// The MAC address of the neighbour, if the message has it.
    pub mac: Option<MacAddr>,
    /// The port of the message; `None`: it came by no port.
    pub port: Option<u8>,
}

/// The kind of a message about a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// ARP, or the word of the administrator.
    Arp,
    /// A neighbour solicitation, or an entry of Linux.
    Solicitation,
    /// A neighbour advertisement.
    Advertisement(Flags),
}

/// A packet whose next hop is not known.
#[derive(Debug, Clone, Copy)]
pub struct Unresolved<'a> {
    /// The IP packet, if it may wait.
    pub packet: Option<&'a [u8]>,
    /// The port of the packet.
    pub port: u8,
}

/// The statement of a message that is taken at an instant, and the state that follows from it.
#[derive(Debug, Clone, Copy)]
struct Taken {
    mac: MacAddr,
    port: Option<u8>,
    state: State,
    now: Nanos,
}

impl Neighbours {
    /// Configures the MAC address of a neighbour.
    pub fn set_static(&mut self, key: Key, mac: MacAddr, now: Nanos, effect: &mut Effect) {
        if self.admit(key, None, now, effect) {
            self.take(key, Taken { mac, port: None, state: State::Static, now }, effect);
        }
    }

    /// Ends the configuration of a neighbour's MAC address: from now on it must answer.
    pub fn unset_static(&mut self, key: Key, now: Nanos) {
        if self.table.get(&key).is_some_and(|neighbour| neighbour.state.is_static()) {
            self.edit(key, |neighbour| {
                (neighbour.state, neighbour.due, neighbour.probes) = (State::Probing, now, 0);
            });
        }
    }

    /// A group needs the neighbour as its next hop, from now on.
    pub fn hold(&mut self, key: Key, now: Nanos, effect: &mut Effect) {
        if self.admit(key, None, now, effect) {
            self.edit(key, |neighbour| neighbour.uses += 1);
        }
    }

    /// A group needs the neighbour no longer.
    pub fn unhold(&mut self, key: Key) {
        self.edit(key, |neighbour| neighbour.uses = neighbour.uses.saturating_sub(1));
    }

    /// Asks for the neighbour of a packet, which waits for it if there is room.
    pub fn resolve(&mut self, key: Key, of: Unresolved<'_>, now: Nanos, effect: &mut Effect) {
        if !self.admit(key, Some(of.port), now, effect) {
            self.counts.unresolved_packets += u64::from(of.packet.is_some());
            return;
        }
        let Some(neighbour) = self.table.get(&key) else { return };
        let is_asked = neighbour.state.is_static() && neighbour.probes > 0;
        let asks = match neighbour.state {
            State::Failed | State::Silent if neighbour.due.0 > now.0 && !is_asked => {
                if let Some(packet) = of.packet {
                    self.counts.unresolved_packets += 1;
                    effect.given_up.push((key, packet.to_vec()));
                }
                return;
            }
            State::Failed => Some(State::Incomplete),
            // The forwarding database has lost it: its answer teaches the database its port.
            State::Reachable | State::Stale => Some(State::Probing),
            State::Static | State::Silent => {
                if !is_asked {
                    self.ask_static(key, now, effect);
                }
                None
            }
            State::Incomplete | State::Probing => None,
        };
        if let Some(state) = asks {
            self.edit(key, |neighbour| (neighbour.state, neighbour.due, neighbour.probes) = (state, now, 0));
        }
        if let Some(packet) = of.packet {
            self.wait(key, packet, now);
        }
    }

    /// Lets a packet wait for a neighbour, if there is room.
    fn wait(&mut self, key: Key, packet: &[u8], now: Nanos) {
        let Some(neighbour) = self.table.get(&key) else { return };
        let at_port = &mut self.waiting_at[usize::from(neighbour.payer)];
        if self.waiting >= WAITING_ALL || *at_port >= WAITING_PORT || neighbour.waiting.len() >= WAITING_EACH {
            self.counts.unresolved_packets += 1;
            return;
        }
        self.waiting += 1;
        *at_port += 1;
        self.edit(key, |neighbour| {
            if neighbour.waiting.is_empty() {
                neighbour.waits_until = Nanos(now.0 + WAIT.0);
            }
            neighbour.waiting.push(packet.to_vec());
        });
    }

    /// Takes a message about a neighbour, and creates the entry if the message is one that may.
    pub fn hear(&mut self, key: Key, message: Message, now: Nanos, effect: &mut Effect) {
        let Message { kind, mac, port } = message;
        let entry = self.table.get(&key);
        let (state, known) = (entry.map(|neighbour| neighbour.state), entry.map(|neighbour| neighbour.mac));
        let address = match mac {
            None => Address::Missing,
            Some(_) if mac == known => Address::Same,
            Some(_) => Address::Other,
        };
        let outcome = match kind {
            MessageKind::Arp => messages::arp(state, address),
            MessageKind::Solicitation => messages::solicitation(state, address),
            MessageKind::Advertisement(flags) => messages::advertisement(state, address, flags),
        };
        let state = match outcome {
            Outcome::Ignored => return,
            Outcome::Located => {
                effect.released.extend(self.take_waiting(key));
                if state.is_some_and(State::is_static) {
                    self.edit(key, |one| (one.state, one.due, one.probes) = (State::Static, now, 0));
                }
                return self.locate(key, port, effect);
            }
            Outcome::Doubted => {
                self.edit(key, |neighbour| {
                    (neighbour.state, neighbour.due, neighbour.probes) = (State::Stale, Nanos(now.0 + DELAY.0), 0);
                });
                return;
            }
            Outcome::Taken => State::Stale,
            Outcome::Confirmed => State::Reachable,
        };
        let Some(mac) = mac.or(known) else { return };
        if self.admit(key, Some(port.unwrap_or(NO_PORT)), now, effect) {
            self.take(key, Taken { mac, port, state, now }, effect);
        }
    }

    /// Gives a neighbour the address and port of a message, and a state that is usable.
    fn take(&mut self, key: Key, taken: Taken, effect: &mut Effect) {
        let Taken { mac, port, state, now } = taken;
        let released = self.take_waiting(key);
        let is_used = !released.is_empty();
        effect.released.extend(released);
        self.locate(key, port, effect);
        // A different phase for each neighbour: they are not all asked at the same instant.
        let phase = mac.to_number().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let due = match state {
            State::Reachable => Nanos(now.0 + FRESH.0 - phase * 10_000_000),
            State::Stale => Nanos(now.0 + DELAY.0),
            _ => now,
        };
        let Some(before) = self.table.get(&key).map(|neighbour| neighbour.mac) else { return };
        self.edit(key, |neighbour| {
            (neighbour.state, neighbour.mac) = (state, mac);
            (neighbour.due, neighbour.probes) = (due, 0);
            if state != State::Stale {
                neighbour.confirmed = now;
            }
            if is_used {
                (neighbour.is_used, neighbour.since) = (true, now);
            }
        });
        let Some(neighbour) = self.table.get(&key) else { return };
        if neighbour.adjacency.is_some() {
            if before != mac {
                effect.is_changed = true;
                self.counts.flaps += 1;
            }
            if is_used {
                self.note_used(key, now);
            }
            return;
        }
        effect.is_changed = true;
        effect.gained.push(key);
        self.allocate(key, now);
        if is_used {
            self.note_used(key, now);
        }
    }

    /// Notes the port of a neighbour's message, which pays for it from now on.
    fn locate(&mut self, key: Key, port: Option<u8>, effect: &mut Effect) {
        let (Some(port), Some(neighbour)) = (port, self.table.get(&key)) else { return };
        if neighbour.port == Some(port) {
            return;
        }
        effect.is_changed = true;
        if neighbour.payer != port && neighbour.rank(key).is_some() {
            while let Some(victim) =
                self.shares.full_at(port, Kind::of(key.1), 1).and_then(|full| self.shares.victim(full))
            {
                self.evict(victim, effect);
            }
        }
        let moved = self.edit(key, |neighbour| {
            let before = std::mem::replace(&mut neighbour.payer, port);
            neighbour.port = Some(port);
            (before, neighbour.waiting.len())
        });
        let (before, waiting) = moved.unwrap_or((port, 0));
        self.waiting_at[usize::from(before)] -= waiting;
        self.waiting_at[usize::from(port)] += waiting;
    }
}
