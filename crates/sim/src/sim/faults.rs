//! Deliberate faults. When a fault begins or ends, the affected part takes the state that all active faults define
//! together. Two faults of the same kind may overlap, and neither ends the other.

use super::engine::Engine;
use super::events::Event;
use super::garbage::Garbage;
use super::load::PS;
use super::spec::{End, FaultKind, Lost, Way};
use crate::sets::ClassSet;

/// Handles the beginning or the end of fault number `fault`.
pub fn change(engine: &mut Engine<'_>, fault: usize) {
    match engine.scenario.faults[fault].kind {
        FaultKind::LinkDown { link } => set_link(engine, link),
        FaultKind::Shut { port } => {
            let is_shut = active(engine).any(|kind| kind == FaultKind::Shut { port });
            engine.net.wake_switch(port.switch);
            engine.net.nodes[port.switch].set_shut(port.port, is_shut);
            engine.divide_soon(port.switch);
        }
        FaultKind::Lose { link, .. } => set_losses(engine, link),
        FaultKind::Storm { host, .. } => {
            let kinds = active(engine);
            let storms = kinds.filter_map(|kind| match kind {
                FaultKind::Storm { host: of, priorities } if of == host => Some(priorities),
                _ => None,
            });
            let priorities = storms.fold(ClassSet::EMPTY, |all, some| all | some);
            engine.hosts[host].storm(priorities, engine.net.now);
            engine.wake(host, engine.net.now);
        }
        FaultKind::Dead { host } => {
            let is_dead = active(engine).any(|kind| kind == FaultKind::Dead { host });
            engine.hosts[host].is_dead = is_dead;
            engine.wake(host, engine.net.now);
        }
        FaultKind::Late { host, .. } => {
            let kinds = active(engine);
            let responses = kinds.filter_map(|kind| match kind {
                FaultKind::Late { host: of, response } if of == host => Some(response.0 * PS),
                _ => None,
            });
            let longest = responses.max();
            engine.hosts[host].respond_in(longest);
        }
        FaultKind::Slow { host, .. } => {
            let kinds = active(engine);
            let receivers = kinds.filter_map(|kind| match kind {
                FaultKind::Slow { host: of, receiver } if of == host => Some(receiver),
                _ => None,
            });
            let slowest = receivers.min_by_key(|receiver| receiver.rate);
            engine.hosts[host].receive_by(slowest, engine.net.now);
            engine.wake(host, engine.net.now);
        }
        FaultKind::Garbage { host, .. } => set_garbage(engine, host, fault),
        FaultKind::Stall { switch, lcore } => stall(engine, fault, switch, lcore),
    }
}

/// Returns the kinds of the active faults.
fn active(engine: &Engine<'_>) -> std::vec::IntoIter<FaultKind> {
    let now = engine.net.now;
    let goes_on = move |at: u64, until: Option<u64>| at <= now && until.is_none_or(|until| now < until);
    let faults = engine.scenario.faults.iter();
    let active = faults.filter(move |fault| goes_on(fault.at.0 * PS, fault.until.map(|until| until.0 * PS)));
    active.map(|fault| fault.kind).collect::<Vec<_>>().into_iter()
}

/// Sets the garbage of `host`. If several garbage faults are active on one host, the highest rate applies.
fn set_garbage(engine: &mut Engine<'_>, host: usize, fault: usize) {
    let kinds = active(engine);
    let rates = kinds.filter_map(|kind| match kind {
        FaultKind::Garbage { host: of, rate } if of == host => Some(rate),
        _ => None,
    });
    let most = rates.max();
    engine.hosts[host].garbage = most.map(|rate| Garbage::new(engine.scenario, host, rate, fault));
    engine.wake(host, engine.net.now);
}

/// Stalls an lcore when the fault begins. The call includes the end of the stall, so the end of the fault needs no
/// work.
fn stall(engine: &mut Engine<'_>, fault: usize, switch: usize, lcore: Option<usize>) {
    let fault = &engine.scenario.faults[fault];
    if fault.until.is_none_or(|until| until.0 * PS > engine.net.now) {
        let until = fault.until.map_or(u64::MAX / 2, |until| until.0 * PS);
        engine.net.wake_switch(switch);
        engine.net.nodes[switch].stall(lcore, until);
    }
}

fn set_link(engine: &mut Engine<'_>, link: usize) {
    let is_up = !active(engine).any(|kind| kind == FaultKind::LinkDown { link });
    if engine.net.wires[2 * link].is_up == is_up {
        return;
    }
    let now = engine.net.now;
    if is_up {
        [2 * link, 2 * link + 1].into_iter().for_each(|wire| engine.net.wires[wire].is_up = true);
    } else {
        // Frames that have arrived by now are in receive rings and survive, even if no lcore has polled them yet.
        engine.net.settle();
        for wire in [2 * link, 2 * link + 1] {
            let wire = &mut engine.net.wires[wire];
            wire.cut(now, &mut engine.net.pool);
            engine.net.arrivals.update(wire);
        }
        engine.net.watch.cut(link, now);
    }
    for end in [engine.scenario.links[link].a, engine.scenario.links[link].b] {
        match end {
            End::Port(port) => {
                engine.net.wake_switch(port.switch);
                engine.net.nodes[port.switch].set_link(port.port, is_up);
            }
            End::Host(host) => engine.host_link(host, is_up),
        }
    }
    if let Some(routed) = engine.scenario.routed {
        engine.net.events.at(now + routed.reroute.0 * PS, Event::Reroute);
    }
}

/// Sets the loss rates of a link. If several faults lose the same frames, the highest rate applies.
fn set_losses(engine: &mut Engine<'_>, link: usize) {
    // Frames that end a sends travel toward b.
    for (wire, way) in [(2 * link, Way::B), (2 * link + 1, Way::A)] {
        let mut loses = [0; 2];
        for kind in active(engine) {
            if let FaultKind::Lose { link: of, toward, what, per_million } = kind
                && of == link
                && toward.is_none_or(|toward| toward == way)
            {
                let [data, pfc] = &mut loses;
                if what != Lost::Pfc {
                    *data = per_million.max(*data);
                }
                if what != Lost::Data {
                    *pfc = per_million.max(*pfc);
                }
            }
        }
        engine.net.wires[wire].loses = loses;
    }
}
