//! Time passes, packets are counted, and links go down.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    Allowance, Effect, FAILED, Key, Neighbour, Neighbours, PROBES, QUESTIONS, Question, RETRANSMIT, State, USED,
};
use crate::route::AdjacencyId;
use crate::sets::PortSet;
use crate::units::Nanos;

/// Time for which packets of a neighbour do not change its place among the used ones.
const COARSE: Nanos = Nanos(10_000_000_000);

/// Time between two looks at the counters of adjacencies.
const NOTED: Nanos = Nanos(1_000_000_000);

impl Allowance {
    /// Tokens of a question.
    const QUESTION: u64 = 1_000_000_000;

    /// The allowance of a port that has asked nothing for a second.
    pub(super) const FULL: Self = Self { tokens: QUESTIONS * Self::QUESTION, at: Nanos(0) };

    /// Takes a question, if there is one. Half of the allowance is for first questions, so that retries of many
    /// neighbours that do not exist do not keep a new one from being asked (RFC 6583 section 6).
    fn take(&mut self, now: Nanos, is_first: bool) -> bool {
        let gained = now.0.saturating_sub(self.at.0).saturating_mul(QUESTIONS);
        (self.tokens, self.at) = (self.tokens.saturating_add(gained).min(Self::FULL.tokens), now);
        let least = Self::QUESTION + if is_first { 0 } else { Self::FULL.tokens / 2 };
        let is_there = self.tokens >= least;
        if is_there {
            self.tokens -= Self::QUESTION;
        }
        is_there
    }
}

impl Neighbours {
    /// Acts on the time: asks, and gives up neighbours that do not answer. Those that packets use come first.
    pub fn tick(&mut self, now: Nanos, effect: &mut Effect) {
        // A neighbour that is no longer a next hop has come into its share.
        self.fit(effect);
        let due = self.due.iter().take_while(|(due, _)| due.0 <= now.0).map(|(_, key)| *key);
        let (wanted, others): (Vec<Key>, Vec<Key>) = due.partition(|key| self.table[key].is_wanted());
        for key in wanted.into_iter().chain(others) {
            self.act(key, now, effect);
        }
    }

    /// Lets neighbours give way until no bound is exceeded.
    pub fn fit(&mut self, effect: &mut Effect) {
        while let Some(victim) = self.shares.exceeded().and_then(|full| self.shares.victim(full)) {
            self.evict(victim, effect);
        }
    }

    fn act(&mut self, key: Key, now: Nanos, effect: &mut Effect) {
        if self.table.get(&key).is_some_and(|neighbour| neighbour.waits_until.0 <= now.0) {
            self.drop_waiting(key, effect);
        }
        let is_due = |neighbour: &&Neighbour| neighbour.wakes().is_some_and(|due| due.0 <= now.0);
        let Some(neighbour) = self.table.get(&key).filter(is_due) else { return };
        let (state, probes) = match neighbour.state {
            State::Static | State::Silent => return self.ask_static(key, now, effect),
            State::Failed if neighbour.uses == 0 => return self.remove(key),
            State::Failed => (State::Incomplete, 0),
            State::Reachable | State::Stale => (State::Probing, 0),
            State::Incomplete | State::Probing => (neighbour.state, neighbour.probes),
        };
        if probes >= PROBES {
            return self.give_up(key, now, effect);
        }
        let is_first = state == State::Incomplete && probes == 0;
        let may_ask = neighbour.is_wanted() || self.allowances[usize::from(neighbour.payer)].take(now, is_first);
        if may_ask {
            let mac = (state == State::Probing).then_some(neighbour.mac);
            effect.questions.push(Question { key, mac });
        }
        // One that cannot be asked keeps what is known of it.
        let is_counted = may_ask || state == State::Incomplete;
        self.edit(key, |neighbour| {
            (neighbour.state, neighbour.due) = (state, Nanos(now.0 + RETRANSMIT.0));
            neighbour.probes = probes + u8::from(is_counted);
        });
    }

    /// Asks a static neighbour for a sign from which the forwarding database learns its port. After the last question
    /// it is silent. There are no more such neighbours than the configuration has, so that they need no allowance.
    pub(super) fn ask_static(&mut self, key: Key, now: Nanos, effect: &mut Effect) {
        let Some(neighbour) = self.table.get(&key) else { return };
        let has_asked_all = neighbour.probes >= PROBES;
        if has_asked_all {
            self.drop_waiting(key, effect);
        } else {
            effect.questions.push(Question { key, mac: Some(neighbour.mac) });
        }
        self.edit(key, |neighbour| {
            (neighbour.due, neighbour.probes) = (Nanos(now.0 + RETRANSMIT.0), neighbour.probes + 1);
            if has_asked_all {
                (neighbour.state, neighbour.due, neighbour.probes) = (State::Silent, Nanos(now.0 + FAILED.0), 0);
                neighbour.is_used = false;
            }
        });
        if let Some(one) = self.table.get(&key).and_then(|one| one.adjacency).filter(|_| has_asked_all) {
            self.uses[usize::from(one.0)].iter_mut().for_each(|one| one.is_used = false);
        }
    }

    /// Gives up a neighbour that does not answer.
    fn give_up(&mut self, key: Key, now: Nanos, effect: &mut Effect) {
        self.drop_waiting(key, effect);
        let was_usable = self.table.get(&key).is_some_and(|neighbour| neighbour.adjacency.is_some());
        self.counts.flaps += u64::from(was_usable);
        self.disuse(key, effect);
        self.edit(key, |neighbour| {
            (neighbour.state, neighbour.due, neighbour.is_used) = (State::Failed, Nanos(now.0 + FAILED.0), false);
        });
    }

    /// Takes note of the neighbours that packets use. `frames` reads the counter of an adjacency, and is
    /// called once a second at most.
    pub fn note_traffic(&mut self, now: Nanos, frames: impl Fn(AdjacencyId) -> u64) {
        if now.0.saturating_sub(self.noted.0) < NOTED.0 {
            return;
        }
        self.noted = now;
        for index in 0..self.uses.len() {
            let Some(one) = &mut self.uses[index] else { continue };
            let count = frames(AdjacencyId(index as u16));
            let has_more = one.frames.replace(count).is_some_and(|before| before != count);
            let age = now.0.saturating_sub(one.since.0);
            if has_more && (!one.is_used || age >= COARSE.0) {
                let key = one.key;
                self.note_used(key, now);
            } else if !has_more && one.is_used && age >= USED.0 {
                one.is_used = false;
                let key = one.key;
                self.edit(key, |neighbour| neighbour.is_used = false);
            }
        }
    }

    /// Notes that packets use a neighbour, so that its port is known.
    pub(super) fn note_used(&mut self, key: Key, now: Nanos) {
        let id = self.edit(key, |neighbour| {
            (neighbour.is_used, neighbour.since) = (true, now);
            if neighbour.state == State::Silent {
                (neighbour.state, neighbour.probes) = (State::Static, 0);
            }
            neighbour.adjacency
        });
        if let Some(one) = id.flatten().and_then(|id| self.uses[usize::from(id.0)].as_mut()) {
            (one.is_used, one.since) = (true, now);
        }
    }

    /// Forgets the learned neighbours of `interface`, whose link went down. Those that are next hops are asked for
    /// again at once when it is up. Static ones stay. Packets that wait are dropped.
    pub fn interface_down(&mut self, interface: u16, now: Nanos, effect: &mut Effect) {
        let (first, last) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::from_bits(u128::MAX)));
        let keys: Vec<Key> = self.table.range((interface, first)..=(interface, last)).map(|(key, _)| *key).collect();
        for key in keys {
            self.counts.unresolved_packets += self.take_waiting(key).len() as u64;
            if self.table[&key].state.is_static() {
                self.edit(key, |neighbour| {
                    (neighbour.state, neighbour.due, neighbour.probes) = (State::Static, now, 0)
                });
                continue;
            }
            self.disuse(key, effect);
            if self.table[&key].uses == 0 {
                self.remove(key);
                continue;
            }
            self.edit(key, |neighbour| {
                (neighbour.state, neighbour.due, neighbour.probes) = (State::Incomplete, now, 0);
                (neighbour.port, neighbour.is_used) = (None, false);
            });
        }
    }

    /// Forgets that messages of neighbours came by the ports `down`, whose link went down. They are asked at once
    /// whether they are elsewhere.
    pub fn ports_down(&mut self, down: PortSet, now: Nanos, effect: &mut Effect) {
        let was_there = |one: &Neighbour| one.port.is_some_and(|port| down.contains(port.into()));
        let keys: Vec<Key> = self.table.iter().filter(|(_, one)| was_there(one)).map(|(key, _)| *key).collect();
        effect.is_changed |= !keys.is_empty();
        for key in keys {
            self.edit(key, |neighbour| {
                neighbour.port = None;
                if matches!(neighbour.state, State::Reachable | State::Stale) {
                    (neighbour.state, neighbour.due, neighbour.probes) = (State::Probing, now, 0);
                }
            });
        }
    }
}
