//! Threads of a run. They divide the parts of the network until the next event that concerns all of it, and meet after
//! each window.
//!
//! The first thread has the hosts, and perhaps switches; each other thread has switches only. A part never sees what
//! another does in the same window, whichever thread has it. So all results have the same bytes with any number of
//! threads.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::Scope;

use super::barrier::{Exchange, Frames, Summary};
use super::engine::Engine;
use super::events::Events;
use super::net::{Net, Share};
use super::parts::Parts;
use super::spec::{End, Scenario};

/// Polls for the next piece of work before a thread sleeps: about 50 us.
const SPINS: u32 = 25_000;

/// The parts of each thread.
#[derive(Debug)]
pub struct Teams {
    threads: usize,
    /// Thread of each switch.
    switches: Vec<usize>,
    /// Parts of each thread.
    parts: Vec<Vec<usize>>,
    /// Wires with an end at another thread than the first: wire, thread of the sender, thread of the receiver.
    wires: Vec<(usize, usize, usize)>,
}

impl Teams {
    /// Divides the parts of `scenario` among `threads`, by the rates of their ports. Returns `None` if one thread has
    /// all.
    #[must_use]
    pub fn new(scenario: &Scenario, parts: &Parts, threads: usize) -> Option<Self> {
        if parts.count() < 2 {
            return None;
        }
        // The first thread needs no switch, but each other thread needs a part that may leave the hosts.
        let movable = (0..parts.count()).filter(|part| !parts.is_pinned(*part)).count();
        let threads = threads.min(movable + 1);
        let mut loads = vec![0_u64; parts.count()];
        let mut team_loads = vec![0_u64; threads];
        for link in &scenario.links {
            for end in [link.a, link.b] {
                match end {
                    End::Port(port) => loads[parts.of_switch(port.switch)] += link.rate.0,
                    End::Host(_) => team_loads[0] += link.rate.0,
                }
            }
        }
        let mut order: Vec<usize> = (0..parts.count()).collect();
        order.sort_by_key(|&part| (!parts.is_pinned(part), std::cmp::Reverse(loads[part])));
        let (mut team_of, mut teams) = (vec![0; parts.count()], vec![Vec::new(); threads]);
        for part in order {
            let least = (0..threads).min_by_key(|&team| team_loads[team]).unwrap_or(0);
            let team = if parts.is_pinned(part) { 0 } else { least };
            team_of[part] = team;
            team_loads[team] += loads[part];
            teams[team].push(part);
        }
        teams.iter_mut().for_each(|parts| parts.sort_unstable());
        let switches: Vec<usize> =
            (0..scenario.switches.len()).map(|switch| team_of[parts.of_switch(switch)]).collect();
        let team = |end: End| if let End::Port(port) = end { switches[port.switch] } else { 0 };
        let both = |(number, link): (usize, &super::spec::LinkNode)| {
            let (a, b) = (team(link.a), team(link.b));
            [(2 * number, a, b), (2 * number + 1, b, a)]
        };
        let wires = scenario.links.iter().enumerate().flat_map(both);
        let wires: Vec<_> = wires.filter(|(_, from, to)| (*from, *to) != (0, 0)).collect();
        (threads > 1).then_some(Self { threads, switches, parts: teams, wires })
    }
}

impl Teams {
    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn switches_of(&self, own: usize) -> impl Iterator<Item = usize> {
        self.switches.iter().enumerate().filter(move |(_, team)| **team == own).map(|(switch, _)| switch)
    }
}

/// The threads of a run besides the first, as the first sees them.
#[derive(Debug)]
pub struct Crew<'a, 'scope> {
    teams: &'scope Teams,
    exchange: &'scope Exchange,
    /// Number of the last meeting.
    round: u64,
    /// By thread from the second one on: its switches, unless it works, and the channels to and from it.
    others: Vec<Other<'a>>,
}

#[derive(Debug)]
struct Other<'a> {
    net: Option<Box<Net<'a>>>,
    to: Sender<Work<'a>>,
    from: Receiver<Box<Net<'a>>>,
}

/// A thread of the run, and where it meets the others.
#[derive(Debug, Clone, Copy)]
struct Member<'t> {
    /// Number of the thread.
    own: usize,
    teams: &'t Teams,
    exchange: &'t Exchange,
}

/// A piece of work: the switches, the time until which they are simulated, and the number of the last meeting.
#[derive(Debug)]
struct Work<'a> {
    net: Box<Net<'a>>,
    until: u64,
    round: u64,
}

impl<'a, 'scope> Crew<'a, 'scope> {
    /// Starts the threads.
    pub fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        scenario: &'a Scenario,
        parts: &Parts,
        teams: &'scope Teams,
        exchange: &'scope Exchange,
    ) -> Self
    where
        'a: 'scope,
    {
        let start = |own: usize| {
            let (to, work) = channel();
            let (done, from) = channel();
            scope.spawn(move || serve(Member { own, teams, exchange }, &work, &done));
            let mut net = Net::absent(scenario, Events::new(parts.clone()));
            net.parts.clone_from(&teams.parts[own]);
            Other { net: Some(Box::new(net)), to, from }
        };
        Self { teams, exchange, round: 0, others: (1..teams.threads).map(start).collect() }
    }
}

/// Works until the first thread has ended.
fn serve<'a>(member: Member<'_>, work: &Receiver<Work<'a>>, done: &Sender<Box<Net<'a>>>) {
    let _guard = member.exchange.guard();
    while let Some(Work { mut net, until, mut round }) = next(work) {
        cross(&mut *net, member, &mut round, until);
        if done.send(net).is_err() {
            return;
        }
    }
}

/// Returns the next message; `None` if there will be none. The next message mostly comes soon.
fn next<T>(receiver: &Receiver<T>) -> Option<T> {
    for _ in 0..SPINS {
        match receiver.try_recv() {
            Ok(message) => return Some(message),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    receiver.recv().ok()
}

/// Handles the windows before `until` of thread `member`. All threads end together: there, after a violation, or at the
/// limit of events.
fn cross<'a>(share: &mut impl Share<'a>, member: Member<'_>, round: &mut u64, until: u64) {
    let Member { own, teams, exchange } = member;
    let most_events = share.net().scenario.most_events;
    let mut letters: Vec<Vec<Frames>> = (0..teams.threads).map(|_| Vec::new()).collect();
    let mut sent_ps = u64::MAX;
    loop {
        *round += 1;
        let net = share.net();
        for (to, frames) in letters.iter_mut().enumerate().filter(|(_, frames)| !frames.is_empty()) {
            exchange.leave(*round, own, to, frames);
        }
        let next_ps = net.events.next_ps(&net.parts).min(sent_ps);
        let facts = Summary { next_ps, handled: net.handled, is_broken: net.violation.is_some() };
        let all = exchange.meet(*round, own, facts);
        exchange.take(*round, own, |wire, mut frames| {
            net.wires[wire].deliver(&mut frames);
            net.arrivals.update(&net.wires[wire]);
            net.frame_sent(wire);
        });
        if all.next_ps >= until || all.is_broken || all.handled >= most_events {
            return;
        }
        let end = share.net().events.window_end(all.next_ps);
        share.window(until.min(end));
        sent_ps = collect(share.net(), teams, &mut letters);
    }
}

/// Puts the frames for other threads into their letters. Returns the time of the first arrival.
fn collect(net: &mut Net<'_>, teams: &Teams, letters: &mut [Vec<Frames>]) -> u64 {
    let mut first_ps = u64::MAX;
    let mut crossed = std::mem::take(&mut net.crossed);
    for wire in crossed.drain(..) {
        let state = &mut net.wires[wire];
        let Some(at) = state.next_arrival() else { continue };
        first_ps = first_ps.min(at);
        let to = if let End::Port(port) = state.to { teams.switches[port.switch] } else { 0 };
        letters[to].push((wire, state.take_flying()));
    }
    net.crossed = crossed;
    first_ps
}

impl<'a> Engine<'a> {
    /// Handles all events before the next one that concerns the whole network, with all threads.
    pub(super) fn cross_together(&mut self, crew: &mut Crew<'a, '_>) {
        let until = self.net.events.whole_ps();
        let mut nets: Vec<Box<Net<'a>>> = crew.others.iter_mut().filter_map(|other| other.net.take()).collect();
        nets.iter_mut().zip(1..).for_each(|(net, own)| self.net.lend_sending_ends(net, own, crew.teams));
        nets.iter_mut().zip(1..).for_each(|(net, own)| self.net.lend(net, own, crew.teams));
        for (net, other) in nets.into_iter().zip(&crew.others) {
            let sent = other.to.send(Work { net, until, round: crew.round });
            assert!(sent.is_ok(), "another thread of the run has panicked");
        }
        let parts = std::mem::replace(&mut self.net.parts, crew.teams.parts[0].clone());
        let member = Member { own: 0, teams: crew.teams, exchange: crew.exchange };
        cross(self, member, &mut crew.round, until);
        self.net.parts = parts;
        let nets = crew.others.iter().map(|other| next(&other.from));
        let nets: Option<Vec<Box<Net<'a>>>> = nets.collect();
        let Some(mut nets) = nets else { panic!("another thread of the run has panicked") };
        nets.iter_mut().zip(1..).for_each(|(net, own)| self.net.take_back(net, own, crew.teams));
        nets.iter_mut().zip(1..).for_each(|(net, own)| self.net.take_back_sending_ends(net, own, crew.teams));
        crew.others.iter_mut().zip(nets).for_each(|(other, net)| other.net = Some(net));
    }
}

impl<'a> Net<'a> {
    /// Gives thread `own` the sending ends of the wires from its switches to others.
    fn lend_sending_ends(&mut self, to: &mut Net<'a>, own: usize, teams: &Teams) {
        for &(wire, ..) in teams.wires.iter().filter(|(_, from, receiver)| *from == own && *receiver != own) {
            let sending = self.wires[wire].split();
            to.wires.put(wire, sending);
        }
    }

    /// Takes back the sending ends of the wires of thread `own`.
    fn take_back_sending_ends(&mut self, from: &mut Net<'a>, own: usize, teams: &Teams) {
        for &(wire, ..) in teams.wires.iter().filter(|(_, from, receiver)| *from == own && *receiver != own) {
            let sending = from.wires.take(wire);
            self.wires[wire].unite(sending);
        }
    }

    /// Gives thread `own` its switches, and the wires to them.
    fn lend(&mut self, to: &mut Net<'a>, own: usize, teams: &Teams) {
        to.now = self.now;
        self.pool.share(&mut to.pool);
        for switch in teams.switches_of(own) {
            self.nodes.give(switch, &mut to.nodes);
            self.arrivals.give(switch, &mut to.arrivals);
        }
        for &part in &teams.parts[own] {
            self.events.give(part, &mut to.events);
        }
        for &(wire, from, _) in teams.wires.iter().filter(|(.., receiver)| *receiver == own) {
            let sending = (from == 0).then(|| self.wires[wire].split());
            self.wires.give(wire, &mut to.wires);
            sending.into_iter().for_each(|sending| self.wires.put(wire, sending));
            self.watch.give(wire, &mut to.watch);
        }
    }

    /// Takes back what thread `own` was lent, and adds up its counts.
    fn take_back(&mut self, from: &mut Net<'a>, own: usize, teams: &Teams) {
        for switch in teams.switches_of(own) {
            from.nodes.give(switch, &mut self.nodes);
            from.arrivals.give(switch, &mut self.arrivals);
        }
        for &part in &teams.parts[own] {
            from.events.give(part, &mut self.events);
        }
        for &(wire, sender, _) in teams.wires.iter().filter(|(.., receiver)| *receiver == own) {
            let sending = (sender == 0).then(|| self.wires.take(wire));
            from.wires.give(wire, &mut self.wires);
            sending.into_iter().for_each(|sending| self.wires[wire].unite(sending));
            from.watch.give(wire, &mut self.watch);
        }
        self.now = self.now.max(from.now);
        self.handled += std::mem::take(&mut from.handled);
        self.steps.done += std::mem::take(&mut from.steps.done);
        self.pool.absorb(&mut from.pool);
        self.watch.take_recent(&mut from.watch);
        self.waivers.append(&mut from.waivers);
        if let Some(violation) = from.violation.take() {
            self.found(violation);
        }
    }
}
