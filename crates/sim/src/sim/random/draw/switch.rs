//! Draws the buffer, the classes and the cores of each switch.

use super::super::draft::{ClassDraft, CrossingDraft, Draft, HeadroomDraft, LimitDraft, LinkDraft, SwitchDraft};
use super::{DrawRng, Mood};
use crate::headroom::PACING_SLACK;

const ALPHAS: [&str; 11] = ["1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8"];
/// Frames of a burst.
const BURST: u64 = 32;
/// Most bursts that a poll receives and sends at each port.
const MOST_BURSTS: u64 = 16;
/// Longest cable, in metres, that a configuration accepts.
pub const LONGEST_CABLE: u64 = 100_000;

/// Returns a switch with default settings.
#[must_use]
pub fn blank(id: usize, mtu: u16) -> SwitchDraft {
    SwitchDraft {
        id,
        size: 0,
        spare: 0,
        cell: 208,
        headroom: HeadroomDraft::Independent,
        lossy: 25,
        mtu,
        classes: Vec::new(),
        port_reserve: None,
        lcores: 1,
        crossing: CrossingDraft::None,
        poll_gap: 20_000,
        every: 1000,
        frame: 0,
        jitter: 0,
        backlog: true,
        watchdog: None,
        reloads: Vec::new(),
    }
}

/// Draws all switches of `draft`.
pub fn draw(rng: &mut DrawRng, mood: &Mood, draft: &mut Draft) {
    let alike = rng.percent(40);
    let mut switches = std::mem::take(&mut draft.switches);
    for number in 0..switches.len() {
        if alike && number > 0 {
            // A copy of the first switch, except for the cables at its ports.
            switches[number] = SwitchDraft { id: switches[number].id, ..switches[0].clone() };
            continue;
        }
        one(rng, mood, draft, &mut switches[number]);
    }
    if alike {
        switches.iter_mut().for_each(|switch| switch.poll_gap = switch.poll_gap.max(gap(switch, draft)));
    }
    draft.switches = switches;
    if mood.promises {
        for link in &mut draft.links {
            link.port.claims = Some((link.length + lag(&draft.switches, link)).min(LONGEST_CABLE));
        }
    }
}

/// Returns the metres of cable whose delay equals the response time of the slower of two switches. A switch polls
/// first, and then sends the frames that it has posted. The formula assumes peers that respond as the standard demands,
/// which a software switch does not. An operator who knows this configures a longer cable.
fn lag(switches: &[SwitchDraft], link: &LinkDraft) -> u64 {
    let of_one = |switch: &SwitchDraft| match switch.frame {
        0 => switch.every + switch.jitter,
        _ => switch.poll_gap,
    };
    let ends = switches.iter().filter(|switch| link.ends.contains(&switch.id));
    // A round trip at 5 ns per metre.
    (ends.map(of_one).max().unwrap_or(0) + PACING_SLACK.0).div_ceil(10)
}

fn one(rng: &mut DrawRng, mood: &Mood, draft: &Draft, switch: &mut SwitchDraft) {
    let lossless = &draft.lossless;
    switch.headroom = match rng.between(0, 99) {
        0..45 => HeadroomDraft::Independent,
        45..70 => HeadroomDraft::Dynamic,
        _ if mood.promises => HeadroomDraft::SharedPool(10),
        _ => HeadroomDraft::SharedPool(rng.between(10, 60) as u8),
    };
    switch.cell = rng.pick(&[208, 208, 208, 64, 100, 256, 1024]);
    switch.lossy = rng.pick(&[25, 25, 10, 50, 80]);
    switch.spare = match rng.between(0, 99) {
        0..30 => rng.spread(10_000, 60_000),
        30..80 => rng.spread(60_000, 600_000),
        _ => rng.spread(600_000, 4_000_000),
    };
    // Not a draw of its own: seeds keep their fabrics.
    switch.crossing = match switch.spare % 4 {
        0 => CrossingDraft::All,
        1 => CrossingDraft::EverySecond,
        _ => CrossingDraft::None,
    };
    switch.lcores = rng.pick(&[1, 1, 1, 2, 2, 3]).min(draft.ports(switch.id) as u8);
    switch.port_reserve = rng.maybe(20, |rng| (rng.spread(2_000, 20_000), rng.spread(2_000, 20_000)));
    switch.watchdog = mood.watches.then(|| rng.pick(&["drop", "forward", "alert"]));
    // Without `backlog_xoff` a core that is too slow loses frames before it can send XOFF.
    switch.backlog = mood.promises || !rng.percent(10);
    cores(rng, mood, draft, switch);
    let is_dynamic = switch.headroom == HeadroomDraft::Dynamic;
    switch.classes = lossless.iter().map(|&class| lossless_class(rng, mood, class, switch.mtu, is_dynamic)).collect();
    for class in 0..8 {
        if !lossless.contains(&class) && rng.percent(35) {
            switch.classes.push(lossy_class(rng, class, switch.mtu));
        }
    }
}

/// Draws how often the switch polls, and how long a poll takes.
fn cores(rng: &mut DrawRng, mood: &Mood, draft: &Draft, switch: &mut SwitchDraft) {
    let fastest = mood.rates[0].max(mood.rates[1]);
    switch.every = match fastest {
        _ if mood.watches => rng.pick(&[4_000, 5_000]),
        0..=1_000 => rng.pick(&[2_000, 4_000]),
        1_001..=40_000 => rng.pick(&[1_000, 1_000, 2_000, 3_000]),
        100_000 => rng.pick(&[500, 700, 1_000, 1_500]),
        _ => rng.pick(&[300, 400, 600]),
    };
    switch.jitter = if rng.percent(50) { 0 } else { rng.between(1, 2 * switch.every) };
    if mood.is_busy {
        switch.frame = match fastest {
            0..=40_000 => rng.spread(5, 100),
            100_000 => rng.spread(2, 20),
            _ => rng.spread(1, 4),
        };
    }
    let longest = gap(switch, draft);
    switch.poll_gap = match rng.between(0, 99) {
        0..40 => longest,
        40..60 => longest + rng.between(0, 5_000),
        60..90 if !mood.is_busy || longest < 20_000 => longest.max(20_000),
        _ if mood.promises => longest,
        _ => rng.between(longest / 4, longest).max(1),
    };
}

/// Returns the longest time from one poll to the next under any load. A longer gap lets more frames arrive, and so a
/// poll takes more bursts: the loop finds the fixed point.
fn gap(switch: &SwitchDraft, draft: &Draft) -> u64 {
    let frame = u64::from(switch.mtu) + 38;
    let hosts = draft.hosts.iter().filter(|host| host.switch == switch.id).map(|host| host.rate);
    let links = draft.links.iter().filter(|link| link.ends.contains(&switch.id)).map(|link| link.rate);
    let rates: Vec<u64> = hosts.chain(links).collect();
    // A frame takes time when received and when sent. With several lcores, it takes time again when handed over.
    let times = if switch.lcores > 1 { 4 } else { 2 };
    let (least, mut gap) = (switch.every + switch.jitter, 0);
    loop {
        let bursts = rates.iter().map(|rate| (rate * gap / 8000).div_ceil(frame * BURST).clamp(1, MOST_BURSTS));
        // PFC frames are few, but they take time too.
        let next = least + switch.frame * times * (BURST * bursts.sum::<u64>() + 8);
        if next <= gap {
            return gap;
        }
        gap = next;
    }
}

fn lossless_class(rng: &mut DrawRng, mood: &Mood, class: u8, mtu: u16, is_dynamic: bool) -> ClassDraft {
    let frame = u64::from(mtu) + 22;
    ClassDraft {
        class,
        lossless: true,
        // With `dynamic`, the limit must exceed the headroom, and the buffer must be large enough for that.
        limit: if is_dynamic {
            rng.maybe(70, |rng| LimitDraft::Alpha(rng.pick(&ALPHAS[5..])))
        } else {
            rng.maybe(70, |rng| limit(rng, 20_000, 300_000))
        },
        reserve: rng.maybe(30, |rng| rng.between(0, 4) * frame),
        xon_offset: rng
            .maybe(40, |rng| if mood.is_stuck { rng.spread(frame, 400_000) } else { rng.between(0, 20) * frame }),
        xon_floor: rng.maybe(25, |rng| rng.between(0, 3 * frame)),
        headroom: if mood.promises || is_dynamic { None } else { rng.maybe(25, |rng| rng.spread(2 * frame, 100_000)) },
        weight: rng.maybe(50, weight),
        ecn: rng.maybe(50, ecn),
        ..ClassDraft::default()
    }
}

fn lossy_class(rng: &mut DrawRng, class: u8, mtu: u16) -> ClassDraft {
    ClassDraft {
        class,
        limit: rng.maybe(40, |rng| limit(rng, 4_000, 100_000)),
        reserve: rng.maybe(20, |rng| rng.between(0, 4) * u64::from(mtu)),
        queue_limit: rng.maybe(40, |rng| limit(rng, 4_000, 100_000)),
        queue_reserve: rng.maybe(20, |rng| rng.between(0, 2_000)),
        weight: rng.maybe(50, weight),
        ecn: rng.maybe(30, ecn),
        ..ClassDraft::default()
    }
}

fn limit(rng: &mut DrawRng, low: u64, high: u64) -> LimitDraft {
    if rng.percent(75) { LimitDraft::Alpha(rng.pick(&ALPHAS)) } else { LimitDraft::Bytes(rng.spread(low, high)) }
}

fn weight(rng: &mut DrawRng) -> u8 {
    if rng.percent(25) { 0 } else { rng.spread(1, 100) as u8 }
}

fn ecn(rng: &mut DrawRng) -> (u64, u64, u8) {
    let kmin = rng.spread(2_000, 100_000);
    (kmin, kmin + rng.between(1, 4 * kmin), rng.between(1, 100) as u8)
}
