//! What goes wrong on purpose, when it begins and when it ends.

use super::engine::Engine;
use super::load::PS;
use super::spec::{End, FaultKind, Lost, Way};

/// Fault number `fault` begins.
pub fn begin(engine: &mut Engine<'_>, fault: usize) {
    let (now, fault) = (engine.now, engine.scenario.faults[fault]);
    match fault.kind {
        FaultKind::LinkDown { link } => link_down(engine, link),
        FaultKind::Lose { link, toward, what, per_million } => lose(engine, link, toward, what, per_million),
        FaultKind::Storm { host, priorities } => {
            engine.hosts[host].storm(priorities, now);
            engine.wake(host, now);
        }
        FaultKind::Dead { host } => engine.hosts[host].is_dead = true,
        FaultKind::Late { host, response } => engine.hosts[host].respond_in(Some(response.0 * PS)),
        FaultKind::Slow { host, receiver } => {
            engine.hosts[host].receive_by(Some(receiver), now);
            engine.wake(host, now);
        }
        FaultKind::Stall { switch, lcore } => {
            let until = fault.until.map_or(u64::MAX / 2, |until| until.0 * PS);
            engine.nodes[switch].stall(lcore, until);
        }
    }
}

/// It ends: all is as the scenario has it without.
pub fn end(engine: &mut Engine<'_>, fault: usize) {
    let now = engine.now;
    match engine.scenario.faults[fault].kind {
        FaultKind::LinkDown { link } => link_up(engine, link),
        FaultKind::Lose { link, toward, what, .. } => lose(engine, link, toward, what, 0),
        FaultKind::Storm { host, .. } => {
            engine.hosts[host].storm(0, now);
            engine.wake(host, now);
        }
        FaultKind::Dead { host } => {
            engine.hosts[host].is_dead = false;
            engine.wake(host, now);
        }
        FaultKind::Late { host, .. } => engine.hosts[host].respond_in(None),
        FaultKind::Slow { host, .. } => {
            engine.hosts[host].receive_by(None, now);
            engine.wake(host, now);
        }
        // Until when was said at its beginning.
        FaultKind::Stall { .. } => {}
    }
}

fn link_down(engine: &mut Engine<'_>, link: usize) {
    let now = engine.now;
    for wire in [2 * link, 2 * link + 1] {
        engine.wires[wire].cut(now, &mut engine.pool);
    }
    engine.watch.cut(link, now);
    for end in [engine.scenario.links[link].a, engine.scenario.links[link].b] {
        match end {
            End::Port(port) => engine.nodes[port.switch].set_link(port.port, false),
            End::Host(host) => engine.hosts[host].link_down(now),
        }
    }
}

fn link_up(engine: &mut Engine<'_>, link: usize) {
    let now = engine.now;
    for wire in [2 * link, 2 * link + 1] {
        engine.wires[wire].is_up = true;
    }
    for end in [engine.scenario.links[link].a, engine.scenario.links[link].b] {
        match end {
            End::Port(port) => engine.nodes[port.switch].set_link(port.port, true),
            End::Host(host) => {
                engine.hosts[host].link_up(now);
                engine.wake(host, now);
            }
        }
    }
}

/// A link loses `per_million` of a million frames of some kind.
fn lose(engine: &mut Engine<'_>, link: usize, toward: Option<Way>, what: Lost, per_million: u32) {
    // What end a sends goes toward b.
    let wires = match toward {
        Some(Way::B) => vec![2 * link],
        Some(Way::A) => vec![2 * link + 1],
        None => vec![2 * link, 2 * link + 1],
    };
    for wire in wires {
        let [data, pfc] = &mut engine.wires[wire].loses;
        if what != Lost::Pfc {
            *data = per_million;
        }
        if what != Lost::Data {
            *pfc = per_million;
        }
    }
}
