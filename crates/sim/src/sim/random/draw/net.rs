//! Draws the topology of a fabric, with the rates and lengths of its cables.

use super::super::draft::{Draft, HostDraft, LinkDraft, PortDraft, SlowReceiver, SwitchDraft};
use super::{DrawRng, Mood, switch};

/// Most hosts of a fabric: more would only cost time.
const MOST_HOSTS: usize = 14;
const SHAPES: [&str; 6] = ["line", "star", "tree", "tree", "ring", "mesh"];

/// Draws switches, links and hosts.
pub fn draw(rng: &mut DrawRng, mood: &Mood, seed: u64) -> Draft {
    let count = match rng.between(0, 99) {
        _ if mood.watches => 1,
        0..45 => 1,
        45..68 => 2,
        68..92 => rng.between(3, 4) as usize,
        _ => rng.between(5, 8) as usize,
    };
    let pairs = pairs(rng, count);
    let is_tree = pairs.len() < count;
    let lossless = lossless(rng);
    let switches: Vec<SwitchDraft> = (0..count).map(|id| switch::blank(id, mood.mtu)).collect();
    let per_switch = (MOST_HOSTS / count).clamp(2, 6) as u64;
    let mut hosts = Vec::new();
    for switch in 0..count {
        let least = if count == 1 { 3.min(per_switch) } else { 2 };
        for _ in 0..rng.between(least, per_switch) {
            hosts.push(host(rng, mood, hosts.len(), switch));
        }
    }
    let links = pairs.into_iter().enumerate().map(|(id, ends)| link(rng, mood, id, ends)).collect();
    let learns = is_tree && rng.percent(20);
    if learns && rng.percent(30) {
        let silent = rng.between(0, hosts.len() as u64 - 1) as usize;
        hosts[silent].known = false;
    }
    Draft {
        seed,
        duration: 0,
        drain: None,
        learns,
        lossless,
        switches,
        hosts,
        links,
        flows: vec![],
        workloads: vec![],
        faults: vec![],
    }
}

/// Draws the links of a shape.
fn pairs(rng: &mut DrawRng, count: usize) -> Vec<[usize; 2]> {
    let shape = match count {
        0..3 => "line",
        // Shorter rings have no path around them on which lossless traffic could deadlock.
        5.. if rng.percent(40) => "ring",
        _ => rng.pick(&SHAPES),
    };
    let before = |rng: &mut DrawRng, switch: usize| match shape {
        "line" | "ring" => switch - 1,
        "star" => 0,
        _ => rng.between(0, switch as u64 - 1) as usize,
    };
    let mut pairs: Vec<[usize; 2]> = (1..count).map(|switch| [before(rng, switch), switch]).collect();
    match shape {
        "ring" => pairs.push([0, count - 1]),
        "mesh" => {
            // Links beyond those of a tree; two switches may have two links.
            for _ in 0..rng.between(1, count as u64) {
                let a = rng.between(0, count as u64 - 2) as usize;
                pairs.push([a, rng.between(a as u64 + 1, count as u64 - 1) as usize]);
            }
        }
        _ => {}
    }
    pairs
}

fn lossless(rng: &mut DrawRng) -> Vec<u8> {
    let sets: [&[u8]; 8] = [&[3], &[3], &[3], &[3], &[3, 4], &[1, 3], &[3, 4, 5], &[2, 3, 7]];
    rng.pick(&sets).to_vec()
}

fn host(rng: &mut DrawRng, mood: &Mood, id: usize, switch: usize) -> HostDraft {
    let rate = rng.pick(&mood.rates);
    let longest = if rng.percent(80) { 20 } else { 300 };
    let receiver = rng.maybe(if mood.is_stuck { 25 } else { 4 }, |rng| receiver(rng, rate));
    HostDraft {
        id,
        switch,
        rate,
        length: rng.spread(1, longest),
        port: port(rng, mood),
        obeys: mood.promises || !rng.percent(8),
        known: true,
        response: rng.maybe(15, |rng| {
            // Headroom allows 60 quanta at 10G, and more at higher speeds. A slower response voids the guarantee.
            let most = if mood.promises { 60 * 512 * 1000 / rate } else { 20_000 };
            rng.between(0, most)
        }),
        receiver,
    }
}

/// Draws a receiver with a tenth to nine tenths of the link's rate.
pub fn receiver(rng: &mut DrawRng, rate: u64) -> SlowReceiver {
    let slow = rate * rng.pick(&[1, 1, 2, 5, 9]) / 10;
    SlowReceiver { rate: slow.max(500), bytes: rng.spread(4_000, 200_000) }
}

fn link(rng: &mut DrawRng, mood: &Mood, id: usize, ends: [usize; 2]) -> LinkDraft {
    let rates = [mood.rates[0], mood.rates[1], mood.rates[0].max(mood.rates[1]), 100_000];
    LinkDraft { id, ends, rate: rng.pick(&rates), length: rng.spread(1, 300), port: port(rng, mood) }
}

fn port(rng: &mut DrawRng, mood: &Mood) -> PortDraft {
    let pfc = match rng.between(0, 99) {
        0..12 => "asymmetric",
        12..13 if !mood.promises => "off",
        _ => "software",
    };
    let few = !mood.promises && rng.percent(20);
    PortDraft {
        pfc,
        claims: if mood.promises { None } else { rng.maybe(10, |_| 1) },
        // 0 stands for as many as the headroom holds in shortest frames; the headroom is known later.
        rx_descriptors: if few { rng.pick(&[64, 128, 256, 512, 1024]) } else { 0 },
    }
}
