//! Draws the topology of a fabric, with the rates and lengths of its cables.

use super::super::draft::{Draft, HostDraft, LinkDraft, PortDraft, Receiver, SwitchDraft};
use super::{Dice, Mood, switch};

/// Most hosts of a fabric: more would only cost time.
const MOST_HOSTS: usize = 14;
const SHAPES: [&str; 6] = ["line", "star", "tree", "tree", "ring", "mesh"];

/// Draws switches, links and hosts.
pub fn draw(dice: &mut Dice, mood: &Mood, seed: u64) -> Draft {
    let count = match dice.between(0, 99) {
        _ if mood.watches => 1,
        0..45 => 1,
        45..68 => 2,
        68..92 => dice.between(3, 4) as usize,
        _ => dice.between(5, 8) as usize,
    };
    let pairs = pairs(dice, count);
    let is_tree = pairs.len() < count;
    let lossless = lossless(dice);
    let switches: Vec<SwitchDraft> = (0..count).map(|id| switch::blank(id, mood.mtu)).collect();
    let per_switch = (MOST_HOSTS / count).clamp(2, 6) as u64;
    let mut hosts = Vec::new();
    for switch in 0..count {
        let least = if count == 1 { 3.min(per_switch) } else { 2 };
        for _ in 0..dice.between(least, per_switch) {
            hosts.push(host(dice, mood, hosts.len(), switch));
        }
    }
    let links = pairs.into_iter().enumerate().map(|(id, ends)| link(dice, mood, id, ends)).collect();
    let learns = is_tree && dice.percent(20);
    if learns && dice.percent(30) {
        let silent = dice.between(0, hosts.len() as u64 - 1) as usize;
        hosts[silent].known = false;
    }
    Draft { seed, duration: 0, drain: None, learns, lossless, switches, hosts, links, flows: vec![], faults: vec![] }
}

/// Draws the links of a shape.
fn pairs(dice: &mut Dice, count: usize) -> Vec<[usize; 2]> {
    let shape = match count {
        0..3 => "line",
        // Shorter rings have no path around them on which lossless traffic could deadlock.
        5.. if dice.percent(40) => "ring",
        _ => dice.pick(&SHAPES),
    };
    let before = |dice: &mut Dice, switch: usize| match shape {
        "line" | "ring" => switch - 1,
        "star" => 0,
        _ => dice.between(0, switch as u64 - 1) as usize,
    };
    let mut pairs: Vec<[usize; 2]> = (1..count).map(|switch| [before(dice, switch), switch]).collect();
    match shape {
        "ring" => pairs.push([0, count - 1]),
        "mesh" => {
            // Links beyond those of a tree; two switches may have two links.
            for _ in 0..dice.between(1, count as u64) {
                let a = dice.between(0, count as u64 - 2) as usize;
                pairs.push([a, dice.between(a as u64 + 1, count as u64 - 1) as usize]);
            }
        }
        _ => {}
    }
    pairs
}

fn lossless(dice: &mut Dice) -> Vec<u8> {
    let sets: [&[u8]; 8] = [&[3], &[3], &[3], &[3], &[3, 4], &[1, 3], &[3, 4, 5], &[2, 3, 7]];
    dice.pick(&sets).to_vec()
}

fn host(dice: &mut Dice, mood: &Mood, id: usize, switch: usize) -> HostDraft {
    let rate = dice.pick(&mood.rates);
    let longest = if dice.percent(80) { 20 } else { 300 };
    let receiver = dice.maybe(if mood.is_stuck { 25 } else { 4 }, |dice| receiver(dice, rate));
    HostDraft {
        id,
        switch,
        rate,
        length: dice.spread(1, longest),
        port: port(dice, mood),
        obeys: mood.promises || !dice.percent(8),
        known: true,
        response: dice.maybe(15, |dice| {
            // Headroom allows 60 quanta at 10G, and more at higher speeds. A slower response voids the guarantee.
            let most = if mood.promises { 60 * 512 * 1000 / rate } else { 20_000 };
            dice.between(0, most)
        }),
        receiver,
    }
}

/// Draws a receiver with a tenth to nine tenths of the link's rate.
pub fn receiver(dice: &mut Dice, rate: u64) -> Receiver {
    let slow = rate * dice.pick(&[1, 1, 2, 5, 9]) / 10;
    Receiver { rate: slow.max(500), bytes: dice.spread(4_000, 200_000) }
}

fn link(dice: &mut Dice, mood: &Mood, id: usize, ends: [usize; 2]) -> LinkDraft {
    let rates = [mood.rates[0], mood.rates[1], mood.rates[0].max(mood.rates[1]), 100_000];
    LinkDraft { id, ends, rate: dice.pick(&rates), length: dice.spread(1, 300), port: port(dice, mood) }
}

fn port(dice: &mut Dice, mood: &Mood) -> PortDraft {
    let pfc = match dice.between(0, 99) {
        0..12 => "asymmetric",
        12..13 if !mood.promises => "off",
        _ => "software",
    };
    let few = !mood.promises && dice.percent(20);
    PortDraft {
        pfc,
        claims: if mood.promises { None } else { dice.maybe(10, |_| 1) },
        // 0 stands for as many as the headroom holds in shortest frames; the headroom is known later.
        rx_descriptors: if few { dice.pick(&[64, 128, 256, 512, 1024]) } else { 0 },
    }
}
