//! Draws the flows of a fabric and the duration of the run.

use super::super::draft::{Draft, FlowDraft, FrameDraft, LoadDraft};
use super::{DrawRng, Mood};

/// Most frames in a fabric, counted at each hop, which keeps runs short.
const BUDGET: u64 = 14_000;
const SHORTEST: u64 = 40_000;

/// Draws the flows, and shortens the duration to fit them.
pub fn draw(rng: &mut DrawRng, mood: &Mood, draft: &mut Draft) {
    draft.duration = rng.between(50_000, if mood.is_stuck { 400_000 } else { 250_000 });
    let hosts: Vec<usize> = draft.hosts.iter().map(|host| host.id).collect();
    for _ in 0..rng.between(1, 3) {
        group(rng, mood, draft, &hosts);
    }
    if draft.flows.is_empty() {
        let flow = flow(rng, mood, draft, (hosts[0], hosts[1]), 3);
        draft.flows.push(flow);
    }
    let frames = frames(draft).max(1);
    if frames > BUDGET {
        draft.duration = (draft.duration * BUDGET / frames).max(SHORTEST);
    }
    shorten(draft);
    for flow in &mut draft.flows {
        flow.start = flow.start.min(draft.duration / 2);
        flow.stop = flow.stop.filter(|stop| *stop > flow.start);
    }
}

/// Draws a group of flows: an incast, all to all, or pairs.
fn group(rng: &mut DrawRng, mood: &Mood, draft: &mut Draft, hosts: &[usize]) {
    let class = if rng.percent(75) { rng.pick(&draft.lossless) } else { rng.pick(&[0, 0, 1, 2, 5, 6, 7]) };
    let last = hosts.len() as u64 - 1;
    let pairs: Vec<(usize, usize)> = match rng.between(0, 99) {
        0..70 if draft.switches.len() > 4 && draft.links.len() == draft.switches.len() => around(draft),
        0..50 => {
            let to = rng.pick(hosts);
            let most = rng.between(2, 8) as usize;
            let mut from: Vec<usize> = hosts.iter().copied().filter(|host| *host != to).collect();
            while from.len() > most {
                from.remove(rng.between(0, from.len() as u64 - 1) as usize);
            }
            from.into_iter().map(|from| (from, to)).collect()
        }
        50..60 => {
            let some: Vec<usize> = hosts.iter().copied().filter(|_| rng.percent(60)).take(6).collect();
            some.iter().flat_map(|&from| some.iter().map(move |&to| (from, to))).collect()
        }
        _ => (0..rng.between(1, last.max(2)))
            .map(|_| (hosts[rng.between(0, last) as usize], hosts[rng.between(0, last) as usize]))
            .collect(),
    };
    let shape = flow(rng, mood, draft, (hosts[0], hosts[0]), class);
    let alike = rng.percent(60);
    for pair in pairs.into_iter().filter(|(from, to)| from != to) {
        let own = flow(rng, mood, draft, pair, class);
        let is_slower = shape.rate.is_some_and(|rate| rate > draft.host(pair.0).rate);
        let flow = if alike && !is_slower { FlowDraft { from: pair.0, to: pair.1, ..shape.clone() } } else { own };
        draft.flows.push(flow);
    }
}

/// Returns a flow from a host at each switch to a host two switches further on.
fn around(draft: &Draft) -> Vec<(usize, usize)> {
    let count = draft.switches.len();
    let first =
        |switch: usize| draft.hosts.iter().filter(|host| host.switch == switch % count).map(|host| host.id).min();
    (0..count).filter_map(|switch| Some((first(switch)?, first(switch + 2)?))).collect()
}

fn flow(rng: &mut DrawRng, mood: &Mood, draft: &Draft, pair: (usize, usize), class: u8) -> FlowDraft {
    let (from, to) = pair;
    let ecn = rng.percent(60);
    let link = draft.host(from).rate;
    FlowDraft {
        from,
        to,
        class,
        rate: rng.maybe(30, |rng| link * rng.between(1, 99) / 100).map(|rate| rate.max(1)),
        frame: frame(rng, mood, link),
        ecn,
        start: if rng.percent(50) { 10_000 } else { rng.between(0, draft.duration / 2) },
        stop: rng.maybe(15, |rng| rng.between(draft.duration / 2, draft.duration)),
        load: load(rng),
        dcqcn: ecn && rng.percent(35),
        control: None,
        transport: None,
    }
}

fn frame(rng: &mut DrawRng, mood: &Mood, rate: u64) -> FrameDraft {
    let most = mood.mtu + 14;
    let least = if rate >= 100_000 && !mood.is_busy { 500 } else { 80 };
    match rng.between(0, 99) {
        // The shortest frames overload a core most.
        _ if mood.is_busy && rng.percent(40) => FrameDraft::Fixed(80),
        0..35 => FrameDraft::Fixed(1078),
        35..50 => FrameDraft::Fixed(most),
        50..65 => FrameDraft::Fixed(rng.spread(least, most.into()) as u16),
        65..85 => {
            let from = rng.spread(least, most.into());
            FrameDraft::Uniform(from as u16, rng.between(from, most.into()) as u16)
        }
        85..93 => FrameDraft::Imix,
        _ => FrameDraft::Fixed(80),
    }
}

fn load(rng: &mut DrawRng) -> LoadDraft {
    match rng.between(0, 99) {
        0..55 => LoadDraft::Steady,
        55..75 => LoadDraft::OnOff(rng.between(2_000, 40_000), rng.between(1_000, 40_000)),
        _ => {
            let from = rng.spread(1_000, 50_000);
            LoadDraft::Messages(from, rng.between(from, 4 * from), rng.spread(2_000, 40_000))
        }
    }
}

/// Estimates the number of frames, counted at each hop.
fn frames(draft: &Draft) -> u64 {
    let of_host = |host: usize| {
        let flows: Vec<&FlowDraft> = draft.flows.iter().filter(|flow| flow.from == host).collect();
        let link = draft.host(host).rate;
        let asked: u64 = flows.iter().map(|flow| flow.rate.unwrap_or(link)).sum();
        let bits: u64 = flows.iter().map(|flow| (length(flow.frame) + 24) * 8).sum();
        let mean = bits / (flows.len() as u64).max(1);
        draft.duration * asked.min(link) / 1000 / mean.max(1)
    };
    let sum: u64 = draft.hosts.iter().map(|host| of_host(host.id)).sum();
    sum * (1 + draft.switches.len() as u64 / 3)
}

/// Makes frames longer if there would still be too many.
fn shorten(draft: &mut Draft) {
    let number = draft.flows.len();
    for at in 0..number {
        if frames(draft) <= 2 * BUDGET {
            return;
        }
        if length(draft.flows[at].frame) < 1000 {
            draft.flows[at].frame = FrameDraft::Fixed(1078);
        }
    }
}

fn length(frame: FrameDraft) -> u64 {
    match frame {
        FrameDraft::Fixed(length) => length.into(),
        FrameDraft::Uniform(from, to) => u64::from(from + to) / 2,
        FrameDraft::Imix => 360,
    }
}
