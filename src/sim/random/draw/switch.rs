//! Draws the buffer, the classes and the cores of each switch.

use super::super::draft::{ClassDraft, Draft, HeadroomDraft, LimitDraft, LinkDraft, SwitchDraft};
use super::{Dice, Mood};
use crate::mmu::headroom::PACING_SLACK;

const ALPHAS: [&str; 11] = ["1/128", "1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8"];
/// Frames of a burst.
const BURST: u64 = 32;
/// Most bursts that a poll receives and sends at each port.
const MOST_BURSTS: u64 = 16;
/// Longest cable, in metres, that a configuration accepts.
const LONGEST_CABLE: u64 = 100_000;

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
        poll_gap: 20_000,
        every: 1000,
        frame: 0,
        jitter: 0,
        backlog: true,
        watchdog: None,
    }
}

/// Draws all switches of `draft`.
pub fn draw(dice: &mut Dice, mood: &Mood, draft: &mut Draft) {
    let alike = dice.percent(40);
    let mut switches = std::mem::take(&mut draft.switches);
    for number in 0..switches.len() {
        if alike && number > 0 {
            // A copy of the first switch, except for the cables at its ports.
            switches[number] = SwitchDraft { id: switches[number].id, ..switches[0].clone() };
            continue;
        }
        one(dice, mood, draft, &mut switches[number]);
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

fn one(dice: &mut Dice, mood: &Mood, draft: &Draft, switch: &mut SwitchDraft) {
    let lossless = &draft.lossless;
    switch.headroom = match dice.between(0, 99) {
        0..45 => HeadroomDraft::Independent,
        45..70 => HeadroomDraft::Dynamic,
        _ if mood.promises => HeadroomDraft::SharedPool(10),
        _ => HeadroomDraft::SharedPool(dice.between(10, 60) as u8),
    };
    switch.cell = dice.pick(&[208, 208, 208, 64, 100, 256, 1024]);
    switch.lossy = dice.pick(&[25, 25, 10, 50, 80]);
    switch.spare = match dice.between(0, 99) {
        0..30 => dice.spread(10_000, 60_000),
        30..80 => dice.spread(60_000, 600_000),
        _ => dice.spread(600_000, 4_000_000),
    };
    switch.lcores = dice.pick(&[1, 1, 1, 2, 2, 3]).min(draft.ports(switch.id) as u8);
    switch.port_reserve = dice.maybe(20, |dice| (dice.spread(2_000, 20_000), dice.spread(2_000, 20_000)));
    switch.watchdog = mood.watches.then(|| dice.pick(&["drop", "forward", "alert"]));
    // Without `backlog_xoff` a core that is too slow loses frames before it can send XOFF.
    switch.backlog = mood.promises || !dice.percent(10);
    cores(dice, mood, draft, switch);
    let is_dynamic = switch.headroom == HeadroomDraft::Dynamic;
    switch.classes = lossless.iter().map(|&class| lossless_class(dice, mood, class, switch.mtu, is_dynamic)).collect();
    for class in 0..8 {
        if !lossless.contains(&class) && dice.percent(35) {
            switch.classes.push(lossy_class(dice, class, switch.mtu));
        }
    }
}

/// Draws how often the switch polls, and how long a poll takes.
fn cores(dice: &mut Dice, mood: &Mood, draft: &Draft, switch: &mut SwitchDraft) {
    let fastest = mood.rates[0].max(mood.rates[1]);
    switch.every = match fastest {
        _ if mood.watches => dice.pick(&[4_000, 5_000]),
        0..=1_000 => dice.pick(&[2_000, 4_000]),
        1_001..=40_000 => dice.pick(&[1_000, 1_000, 2_000, 3_000]),
        100_000 => dice.pick(&[500, 700, 1_000, 1_500]),
        _ => dice.pick(&[300, 400, 600]),
    };
    switch.jitter = if dice.percent(50) { 0 } else { dice.between(1, 2 * switch.every) };
    if mood.is_busy {
        switch.frame = match fastest {
            0..=40_000 => dice.spread(5, 100),
            100_000 => dice.spread(2, 20),
            _ => dice.spread(1, 4),
        };
    }
    let longest = gap(switch, draft);
    switch.poll_gap = match dice.between(0, 99) {
        0..40 => longest,
        40..60 => longest + dice.between(0, 5_000),
        60..90 if !mood.is_busy || longest < 20_000 => longest.max(20_000),
        _ if mood.promises => longest,
        _ => dice.between(longest / 4, longest).max(1),
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

fn lossless_class(dice: &mut Dice, mood: &Mood, class: u8, mtu: u16, is_dynamic: bool) -> ClassDraft {
    let frame = u64::from(mtu) + 22;
    ClassDraft {
        class,
        lossless: true,
        // With `dynamic`, the limit must exceed the headroom, and the buffer must be large enough for that.
        limit: if is_dynamic {
            dice.maybe(70, |dice| LimitDraft::Alpha(dice.pick(&ALPHAS[5..])))
        } else {
            dice.maybe(70, |dice| limit(dice, 20_000, 300_000))
        },
        reserve: dice.maybe(30, |dice| dice.between(0, 4) * frame),
        xon_offset: dice
            .maybe(40, |dice| if mood.is_stuck { dice.spread(frame, 400_000) } else { dice.between(0, 20) * frame }),
        xon_floor: dice.maybe(25, |dice| dice.between(0, 3 * frame)),
        headroom: if mood.promises || is_dynamic {
            None
        } else {
            dice.maybe(25, |dice| dice.spread(2 * frame, 100_000))
        },
        weight: dice.maybe(50, weight),
        ecn: dice.maybe(50, ecn),
        ..ClassDraft::default()
    }
}

fn lossy_class(dice: &mut Dice, class: u8, mtu: u16) -> ClassDraft {
    ClassDraft {
        class,
        limit: dice.maybe(40, |dice| limit(dice, 4_000, 100_000)),
        reserve: dice.maybe(20, |dice| dice.between(0, 4) * u64::from(mtu)),
        queue_limit: dice.maybe(40, |dice| limit(dice, 4_000, 100_000)),
        queue_reserve: dice.maybe(20, |dice| dice.between(0, 2_000)),
        weight: dice.maybe(50, weight),
        ecn: dice.maybe(30, ecn),
        ..ClassDraft::default()
    }
}

fn limit(dice: &mut Dice, low: u64, high: u64) -> LimitDraft {
    if dice.percent(75) { LimitDraft::Alpha(dice.pick(&ALPHAS)) } else { LimitDraft::Bytes(dice.spread(low, high)) }
}

fn weight(dice: &mut Dice) -> u8 {
    if dice.percent(25) { 0 } else { dice.spread(1, 100) as u8 }
}

fn ecn(dice: &mut Dice) -> (u64, u64, u8) {
    let kmin = dice.spread(2_000, 100_000);
    (kmin, kmin + dice.between(1, 4 * kmin), dice.between(1, 100) as u8)
}
