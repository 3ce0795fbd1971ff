//! Probes of loops: each port sends frames that bridges flood. One that comes back has found a loop, also by bridges
//! that do not relay LLDP.
//!
//! Like the agent of LLDP it has no clock, input or output.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use super::agent::Outgoing;
use crate::forward::VlanMode;
use crate::sets::PortSet;
use crate::units::Nanos;
use crate::wire::MacAddr;
use crate::wire::loop_probe::{LoopProbe, ReceivedProbe, RecentRounds};

/// VLANs that a port probes in a round. A port with more takes turns.
const MOST_VLANS: usize = 16;
/// VLANs of these that are probed in each round, because a probe has returned in them.
const MOST_WATCHED: usize = 8;
/// Intervals without a probe after which a loop has ended, and the time on top: those of LLDP.
const HOLD: u64 = 4;
const SECOND: u64 = 1_000_000_000;

/// A port that sends probes: it bridges, and its peer may be a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPort {
    /// Its address.
    pub mac: MacAddr,
    /// Its VLANs.
    pub vlan: VlanMode,
}

/// An own probe that has come back lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// The port that has received it.
    pub port: usize,
    /// The port that has sent it.
    pub from: usize,
    /// Whether it came back in the VLAN in which it was sent: any frame then circulates.
    pub circulates: bool,
}

/// The last probe that has returned from one port to another.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The VLAN in which it was sent.
    vlan: u16,
    /// End of its effect.
    until: Nanos,
}

/// The probes of all ports.
#[derive(Debug)]
pub struct Prober {
    /// Ports by index; `None`: the port sends and takes no probes.
    ports: Vec<Option<ProbedPort>>,
    /// Time between two rounds; `None`: no probes are sent.
    interval: Option<Nanos>,
    /// The key of the seals and of the identity.
    secret: RandomState,
    /// Ports that send now, and ports whose frames are forwarded now.
    senders: PortSet,
    receivers: PortSet,
    /// Number of the present round, and instant of the next.
    round: u32,
    next: Nanos,
    /// The VLAN with which each port goes on, as an index into its VLANs.
    turns: Vec<usize>,
    /// Probes that have returned, by receiving port, sending port, and whether they circulate.
    seen: BTreeMap<(usize, usize, bool), Seen>,
    outgoing: VecDeque<Outgoing>,
}

/// The identity of the probes of a switch with this secret.
#[must_use]
pub fn identity(secret: &RandomState) -> u64 {
    secret.hash_one("identity of loop probes")
}

impl Prober {
    /// The prober of `ports`, of which none sends yet.
    #[must_use]
    pub fn new(ports: Vec<Option<ProbedPort>>, interval: Option<Nanos>, secret: RandomState) -> Self {
        Self {
            turns: vec![0; ports.len()],
            ports,
            interval,
            secret,
            senders: PortSet::EMPTY,
            receivers: PortSet::EMPTY,
            round: 0,
            next: Nanos(0),
            seen: BTreeMap::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// Replaces the time between two rounds; `None` ends the probes and the loops that they have shown.
    pub fn set_interval(&mut self, interval: Option<Nanos>) {
        if self.interval == interval {
            return;
        }
        (self.interval, self.next) = (interval, Nanos(0));
        if interval.is_none() {
            self.seen.clear();
            self.outgoing.clear();
        }
    }

    /// Replaces the VLANs of the ports. Loops of a port with other ones are forgotten until they show again.
    pub fn set_probed(&mut self, ports: Vec<Option<ProbedPort>>) {
        let before = std::mem::replace(&mut self.ports, ports);
        let stays = |port: usize| before.get(port) == self.ports.get(port);
        self.seen.retain(|&(port, from, _), _| stays(port) && stays(from));
    }

    /// Ports that have probes.
    #[must_use]
    pub fn ports(&self) -> PortSet {
        let has_probes = |port: &usize| self.interval.is_some() && self.ports[*port].is_some();
        (0..self.ports.len()).filter(has_probes).collect()
    }

    /// Takes the ports that send probes now, one of each link aggregation group, and the `receivers` whose frames are
    /// forwarded. A new sender sends at once. Loops of ports that receive no more are forgotten.
    pub fn set_ports(&mut self, senders: PortSet, receivers: PortSet) {
        let is_probed = |port: &usize| self.ports.get(*port).is_some_and(Option::is_some);
        let senders: PortSet = senders.iter().filter(is_probed).collect();
        if self.receivers != receivers {
            self.receivers = receivers;
            self.seen.retain(|&(port, from, _), _| receivers.contains(port) && receivers.contains(from));
        }
        if self.senders != senders {
            let new = senders - self.senders;
            self.senders = senders;
            if self.interval.is_some() {
                new.iter().for_each(|port| self.probe(port));
            }
        }
    }

    /// Takes a punted frame, whatever its bytes.
    pub fn received(&mut self, port: usize, frame: &[u8], now: Nanos) {
        let Some(interval) = self.interval else { return };
        let Some(ReceivedProbe { tag, probe }) = ReceivedProbe::parse(frame) else { return };
        let is_ours = probe.identity == identity(&self.secret)
            && probe.seal == self.seal(probe.port, probe.vlan, probe.sequence)
            && self.recent_rounds().contains(probe.sequence);
        if !is_ours {
            return;
        }
        // Without its seal a probe may name a port that no switch has.
        let from = usize::from(probe.port);
        let Some(Some(at)) = self.ports.get(port) else { return };
        if !self.receivers.contains(port) || !self.receivers.contains(from) {
            return;
        }
        // A frame of a VLAN that the port does not carry is not forwarded, and finds no loop.
        let vlan = match tag {
            None => at.vlan.untagged(),
            Some(tag) => Some(tag).filter(|_| at.vlan.carries(Some(tag))),
        };
        if let Some(vlan) = vlan {
            let seen = Seen { vlan: probe.vlan, until: Nanos(now.0.saturating_add(hold(interval))) };
            self.seen.insert((port, from, vlan == probe.vlan), seen);
        }
    }

    /// The rounds whose probes count; none while no probes are sent.
    #[must_use]
    pub fn recent_rounds(&self) -> RecentRounds {
        let count = self.interval.map_or(0, |interval| rounds_of_hold(interval) + 1);
        RecentRounds { newest: self.round, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Acts on the time: begins a round, and forgets loops that have ended.
    pub fn tick(&mut self, now: Nanos) {
        self.seen.retain(|_, seen| seen.until > now);
        let Some(interval) = self.interval.filter(|_| now >= self.next) else { return };
        self.round = self.round.wrapping_add(1);
        // Two switches of one loop must not find it at the same instants for ever: both would block a port, hear no
        // probe any more, and release it together.
        let jitter = self.secret.hash_one(self.round) % (interval.0 / 5 + 1);
        self.next = Nanos(now.0.saturating_add(interval.0 - jitter));
        self.outgoing.clear();
        self.senders.iter().for_each(|port| self.probe(port));
    }

    /// Sends the probes of a round at `port`.
    fn probe(&mut self, port: usize) {
        let Some(Some(ProbedPort { mac, vlan: mode })) = self.ports.get(port).cloned() else { return };
        for vlan in self.vlans(port, &mode) {
            let (number, sequence) = (port as u16, self.round);
            let seal = self.seal(number, vlan, sequence);
            let probe = LoopProbe { identity: identity(&self.secret), port: number, vlan, sequence, seal };
            let tag = Some(vlan).filter(|_| mode.untagged() != Some(vlan));
            self.outgoing.push_back(Outgoing { port, frame: probe.emit(mac, tag) });
        }
    }

    /// The VLANs that `port` probes in this round: those in which probes have returned, and others by turns.
    fn vlans(&mut self, port: usize, mode: &VlanMode) -> Vec<u16> {
        let all: Vec<u16> = mode.untagged().into_iter().chain(mode.tagged().iter().copied()).collect();
        let mut chosen: Vec<u16> = Vec::new();
        for vlan in self.seen.iter().filter(|((_, from, _), _)| *from == port).map(|(_, seen)| seen.vlan) {
            if chosen.len() < MOST_WATCHED && !chosen.contains(&vlan) {
                chosen.push(vlan);
            }
        }
        let turn = &mut self.turns[port];
        for _ in 0..all.len() {
            if chosen.len() == MOST_VLANS {
                break;
            }
            let vlan = all[*turn % all.len()];
            *turn = (*turn + 1) % all.len();
            if !chosen.contains(&vlan) {
                chosen.push(vlan);
            }
        }
        chosen
    }

    /// The seal of a probe. A peer knows the seals that it was sent, and cannot guess those of other ports.
    fn seal(&self, port: u16, vlan: u16, sequence: u32) -> u64 {
        self.secret.hash_one(("seal of a loop probe", port, vlan, sequence))
    }

    /// The probes that have come back.
    pub fn returned(&self) -> impl Iterator<Item = Returned> {
        self.seen.keys().map(|&(port, from, circulates)| Returned { port, from, circulates })
    }

    /// Takes up to `most` frames to send.
    #[must_use]
    pub fn take_frames(&mut self, most: usize) -> Vec<Outgoing> {
        self.outgoing.drain(..most.min(self.outgoing.len())).collect()
    }
}

/// Time for which a returned probe counts.
fn hold(interval: Nanos) -> u64 {
    interval.0.saturating_mul(HOLD).saturating_add(SECOND)
}

/// Most rounds that begin within that time, with the jitter of rounds.
fn rounds_of_hold(interval: Nanos) -> u64 {
    hold(interval) / (interval.0 - interval.0 / 5).max(1) + 1
}
