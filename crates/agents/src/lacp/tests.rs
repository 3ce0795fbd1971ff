//! Two agents on the ends of cables, and agents that get anything.

use proptest::prelude::*;

use super::*;
use crate::sets::PortSet;
use crate::units::Nanos;
use crate::wire::MacAddr;
use crate::wire::lacp::{Lacpdu, PortState, SlowFrame, parse};

const MS: u64 = 1_000_000;
const ACTIVE: Option<Negotiation> = Some(Negotiation { is_active: true, is_fast: true });
const PASSIVE: Option<Negotiation> = Some(Negotiation { is_active: false, is_fast: true });
const SLOW: Option<Negotiation> = Some(Negotiation { is_active: true, is_fast: false });

fn group(ports: &[usize], negotiation: Option<Negotiation>, min_links: u8) -> GroupSettings {
    GroupSettings { name: "bond".to_owned(), ports: ports.iter().copied().collect(), negotiation, min_links }
}

fn agent(system: u8, groups: Vec<GroupSettings>) -> Agent {
    let macs = (0..4).map(|port| MacAddr::local(system, port)).collect();
    let names = (0..4).map(|port| format!("p{port}")).collect();
    Agent::new(Settings { system: MacAddr::local(system, 0), names, macs, groups })
}

/// Two switches with four cables, of which some carry frames.
struct Pair {
    ends: [Agent; 2],
    /// For each cable, the port of the second end.
    other: [usize; 4],
    /// Cables with a link, and directions that lose all frames.
    up: PortSet,
    deaf: [PortSet; 2],
    now: u64,
    sent: usize,
}

impl Pair {
    fn new(one: Vec<GroupSettings>, other: Vec<GroupSettings>) -> Self {
        Self {
            ends: [agent(1, one), agent(2, other)],
            other: [0, 1, 2, 3],
            up: PortSet::EMPTY,
            deaf: [PortSet::EMPTY; 2],
            now: MS,
            sent: 0,
        }
    }

    fn link(&mut self, cable: usize, is_up: bool) {
        self.up.set(cable, is_up);
        let now = Nanos(self.now);
        self.ends[0].link(cable, is_up, now);
        self.ends[1].link(self.other[cable], is_up, now);
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms / 10 {
            self.now += 10 * MS;
            self.ends.iter_mut().for_each(|end| end.tick(Nanos(self.now)));
            for from in 0..2 {
                for Outgoing { port, frame } in self.ends[from].take_frames() {
                    self.sent += 1;
                    let find = |cable: &usize| if from == 0 { *cable == port } else { self.other[*cable] == port };
                    let Some(cable) = (0..4).find(find) else { continue };
                    let to = if from == 0 { self.other[cable] } else { cable };
                    if self.up.contains(cable) && !self.deaf[1 - from].contains(cable) {
                        self.ends[1 - from].received(to, &frame, Nanos(self.now));
                    }
                }
            }
        }
    }

    fn active(&self) -> [u64; 2] {
        [0, 1].map(|end: usize| {
            let (distributing, collecting) = (self.ends[end].distributing(), self.ends[end].collecting());
            assert!((distributing - collecting).is_empty(), "who sends takes too");
            distributing.bits()
        })
    }

    fn texts(&mut self, end: usize) -> Vec<String> {
        self.ends[end].take_events().iter().map(|event| format!("{} {}", event.who(), event.text())).collect()
    }

    fn obstacle(&self, port: usize) -> Option<Obstacle> {
        let view = self.ends[0].view(PortSet::EMPTY);
        view.groups.iter().flat_map(|group| &group.members).find(|member| member.port == port)?.obstacle
    }
}

#[test]
fn two_switches_agree_within_a_moment_and_lose_and_regain_a_member() {
    for (one, other) in [(ACTIVE, ACTIVE), (ACTIVE, PASSIVE), (PASSIVE, ACTIVE), (SLOW, ACTIVE), (SLOW, SLOW)] {
        let mut pair = Pair::new(vec![group(&[0, 1], one, 1)], vec![group(&[0, 1], other, 1)]);
        (0..2).for_each(|cable| pair.link(cable, true));
        pair.run(500);
        assert_eq!(pair.active(), [0b11, 0b11], "{one:?} {other:?}");
        assert_eq!(pair.texts(0), ["bond p0 is active", "bond carries frames", "bond p1 is active"]);
        pair.link(0, false);
        assert_eq!(pair.active(), [0b10, 0b10], "at once");
        assert_eq!(pair.texts(0), ["bond p0 is not active: it has no link"]);
        pair.run(2_000);
        pair.link(0, true);
        pair.run(500);
        assert_eq!(pair.active(), [0b11, 0b11]);
    }
}

#[test]
fn two_passive_ends_never_speak() {
    let mut pair = Pair::new(vec![group(&[0], PASSIVE, 1)], vec![group(&[0], PASSIVE, 1)]);
    pair.link(0, true);
    pair.run(100_000);
    assert_eq!((pair.active(), pair.sent, pair.obstacle(0)), ([0, 0], 0, Some(Obstacle::SilentToPassive)));
}

#[test]
fn silent_peer_is_given_up_after_three_seconds_by_fast_lacp() {
    let mut pair = Pair::new(vec![group(&[0, 1], ACTIVE, 1)], vec![group(&[0, 1], ACTIVE, 1)]);
    (0..2).for_each(|cable| pair.link(cable, true));
    pair.run(2_000);
    pair.texts(0);
    pair.deaf[0] = PortSet::only(1);
    pair.run(1_900);
    assert_eq!(pair.active(), [0b11, 0b11], "two data units may be lost");
    pair.run(1_300);
    assert_eq!(pair.active(), [0b01, 0b01], "the other end is told");
    let texts = pair.texts(0);
    assert!(texts[0].starts_with("bond p1 is not active: the peer sends no LACP; give its ports"), "{texts:?}");
    pair.run(4_000);
    pair.deaf[0] = PortSet::EMPTY;
    pair.run(1_200);
    assert_eq!(pair.active(), [0b11, 0b11]);
}

#[test]
fn slow_lacp_sends_every_thirty_seconds_and_waits_ninety() {
    let mut pair = Pair::new(vec![group(&[0], SLOW, 1)], vec![group(&[0], SLOW, 1)]);
    pair.link(0, true);
    pair.run(5_000);
    let before = pair.sent;
    pair.run(300_000);
    assert!((18..=22).contains(&(pair.sent - before)), "{} in five minutes by both", pair.sent - before);
    pair.deaf[0] = PortSet::only(0);
    pair.run(58_000);
    assert_eq!(pair.active(), [1, 1]);
    pair.run(36_000);
    assert_eq!(pair.active(), [0, 0]);
}

#[test]
fn cable_to_another_group_or_system_stays_idle_with_its_reason() {
    // The third cable ends at a port of another group.
    let other = vec![group(&[0, 1], ACTIVE, 1), group(&[2], ACTIVE, 1)];
    let mut pair = Pair::new(vec![group(&[0, 1, 2], ACTIVE, 1)], other);
    (0..3).for_each(|cable| pair.link(cable, true));
    pair.run(1_000);
    assert_eq!(pair.active(), [0b011, 0b011]);
    assert_eq!(pair.obstacle(2), Some(Obstacle::OtherPartner));
    // Without the others it is the group.
    (0..2).for_each(|cable| pair.link(cable, false));
    pair.run(1_000);
    assert_eq!((pair.active(), pair.obstacle(2)), ([0b100, 0b100], None));
}

#[test]
fn group_that_has_too_few_members_is_told() {
    let mut pair = Pair::new(vec![group(&[0, 1], ACTIVE, 2)], vec![group(&[0, 1], ACTIVE, 1)]);
    pair.link(0, true);
    pair.run(500);
    assert_eq!((pair.texts(0), pair.obstacle(0)), (Vec::new(), Some(Obstacle::TooFew)));
    assert_eq!((pair.active(), pair.ends[0].collecting()), ([0, 0], PortSet::EMPTY), "the peer sends nothing in vain");
    pair.link(1, true);
    pair.run(500);
    assert_eq!(pair.texts(0), ["bond p1 is active", "bond p0 is active", "bond carries frames"]);
    pair.link(0, false);
    pair.run(500);
    assert_eq!(pair.active(), [0, 0]);
    let idle = "bond p1 is not active: it is ready, and too few others are; mend them, or lower `min_links`";
    let down = "bond carries no frames: it has 0 active members and needs 2";
    assert_eq!(pair.texts(0), ["bond p0 is not active: it has no link", idle, down]);
}

#[test]
fn static_group_follows_its_links_and_says_nothing() {
    let mut pair = Pair::new(vec![group(&[0, 1], None, 1)], vec![group(&[0, 1], ACTIVE, 1)]);
    (0..2).for_each(|cable| pair.link(cable, true));
    pair.run(5_000);
    assert_eq!((pair.active(), pair.ends[0].counts(0).unwrap().sent), ([0b11, 0], 0));
    pair.link(1, false);
    assert_eq!(pair.active(), [0b01, 0]);
    let mut few = agent(1, vec![group(&[0, 1], None, 2)]);
    few.link(0, true, Nanos(1));
    assert!(few.distributing().is_empty() && few.collecting().is_empty());
}

#[test]
fn cable_between_own_ports_is_no_partner() {
    let mut agent = agent(1, vec![group(&[0, 1], ACTIVE, 1)]);
    for step in 1..300 {
        let now = Nanos(step * 10 * MS);
        [0, 1].iter().for_each(|&port| agent.link(port, true, now));
        agent.tick(now);
        for Outgoing { port, frame } in agent.take_frames() {
            agent.received(1 - port, &frame, now);
        }
    }
    let view = agent.view(PortSet::EMPTY);
    assert!(agent.distributing().is_empty());
    assert!(view.groups[0].members.iter().all(|member| member.obstacle == Some(Obstacle::Own)));
}

#[test]
fn stop_tells_the_peer_at_once() {
    let mut pair = Pair::new(vec![group(&[0, 1], ACTIVE, 1)], vec![group(&[0, 1], ACTIVE, 1)]);
    (0..2).for_each(|cable| pair.link(cable, true));
    pair.run(500);
    pair.ends[0].stop(Nanos(pair.now));
    let frames = pair.ends[0].take_frames();
    assert_eq!(frames.len(), 2);
    for Outgoing { port, frame } in frames {
        let Ok(SlowFrame::Lacp(pdu)) = parse(&frame) else { panic!("LACP") };
        assert!(!pdu.actor.state.has(PortState::SYNCHRONIZATION));
        pair.ends[1].received(port, &frame, Nanos(pair.now));
    }
    assert!(pair.ends[1].distributing().is_empty());
    let view = pair.ends[1].view(PortSet::EMPTY);
    let why = view.groups[0].members[0].obstacle.expect("a reason").to_string();
    assert!(why.starts_with("the peer has left the group or "), "{why}");
    pair.ends[0].tick(Nanos(pair.now + 10_000 * MS));
    assert!(pair.ends[0].take_frames().is_empty(), "nothing follows");
}

#[test]
fn marker_is_answered_by_members_of_negotiated_groups() {
    let mut marker = Lacpdu::default().emit(MacAddr::local(5, 5));
    marker[14..18].copy_from_slice(&[2, 1, 1, 16]);
    let mut agent = agent(1, vec![group(&[0], ACTIVE, 1), group(&[1], None, 1)]);
    (0..3).for_each(|port| agent.received(port, &marker, Nanos(1)));
    let frames = agent.take_frames();
    assert_eq!(frames.iter().map(|frame| frame.port).collect::<Vec<_>>(), [0]);
    assert_eq!((parse(&frames[0].frame), agent.counts(0).unwrap().markers), (Ok(SlowFrame::MarkerResponse), 1));
    agent.received(0, &marker[..60], Nanos(2));
    assert_eq!(agent.counts(0).unwrap().malformed, 1);
}

/// `HOLDFAST_FUZZ_FRAMES` frames, most of them data units with a few wrong bytes.
#[test]
fn random_frames_to_lacp_leave_it_bounded() {
    let frames = std::env::var("HOLDFAST_FUZZ_FRAMES").map_or(20_000, |text| text.parse().expect("a number"));
    let mut rng = crate::qos::wred::XorShift::new(0x1ac9);
    let mut agent = agent(1, vec![group(&[0, 1], ACTIVE, 1), group(&[2], PASSIVE, 1)]);
    (0..3).for_each(|port| agent.link(port, true, Nanos(MS)));
    let (mut sent, mut told) = (0_u64, 0_u64);
    for number in 1..=frames {
        let mut pdu = Lacpdu::default();
        pdu.actor.system = MacAddr::local(rng.roll() as u8 % 3, 0);
        (pdu.actor.key, pdu.actor.state) = (rng.roll() as u16 % 2, PortState(rng.roll() as u8));
        (pdu.partner.system, pdu.partner.state) = (MacAddr::local(1, 0), PortState(rng.roll() as u8));
        (pdu.partner.key, pdu.partner.port) = (1, 1 + rng.roll() as u16 % 3);
        (pdu.partner.system_priority, pdu.partner.port_priority) = (0x8000, 0x8000);
        let mut frame = pdu.emit(MacAddr::local(2, 1)).to_vec();
        for _ in 0..rng.roll() % 3 {
            let at = rng.roll() as usize % frame.len();
            frame[at] = rng.roll() as u8;
        }
        frame.truncate(if rng.roll().is_multiple_of(8) { rng.roll() as usize % 124 } else { 124 });
        let now = Nanos(MS + number * MS);
        agent.received(rng.roll() as usize % 4, &frame, now);
        agent.tick(now);
        sent += agent.take_frames().len() as u64;
        told += agent.take_events().len() as u64;
        assert!((agent.distributing() - agent.collecting()).is_empty());
    }
    let counts = [0, 1, 2].map(|port| agent.counts(port).expect("a member"));
    let markers: u64 = counts.iter().map(|counts| counts.markers).sum();
    let seconds = frames / 1000 + 2;
    assert!(sent <= 9 * seconds + markers && told <= 4 * frames, "{sent} frames and {told} events in {seconds} s");
    assert!(counts.iter().all(|counts| counts.malformed > 0 && counts.received > 0), "{counts:?}");
}

/// A frame that is mostly a data unit, of one of few systems.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::collection::vec((0..124_usize, any::<u8>()), 0..4);
    (0..4_u8, any::<u8>(), any::<u8>(), byte, 0..140_usize).prop_map(|(system, state, seen, bytes, len)| {
        let mut pdu = Lacpdu::default();
        pdu.actor.system = MacAddr::local(system, 0);
        (pdu.actor.key, pdu.actor.state) = (1, PortState(state));
        (pdu.partner.system, pdu.partner.state) = (MacAddr::local(1, 0), PortState(seen));
        (pdu.partner.key, pdu.partner.port) = (1, 1);
        (pdu.partner.system_priority, pdu.partner.port_priority) = (0x8000, 0x8000);
        let mut frame = pdu.emit(MacAddr::local(system, 1)).to_vec();
        bytes.into_iter().for_each(|(at, byte)| frame[at] = byte);
        if len < 124 && state % 8 == 0 {
            frame.truncate(len);
        }
        frame
    })
}

proptest! {
    /// The output is bounded, a member sends only if the partner takes, and no more than three data
    /// units leave in a second, besides answers.
    #[test]
    fn any_frames_leave_the_agent_bounded(frames in prop::collection::vec((0..3_usize, any_frame(), 0..400_u64), 1..200)) {
        let mut agent = agent(1, vec![group(&[0, 1], ACTIVE, 1), group(&[2], PASSIVE, 1)]);
        let (mut now, start) = (MS, MS);
        (0..3).for_each(|port| agent.link(port, true, Nanos(now)));
        let mut units = [0_u64; 3];
        for (port, frame, ms) in frames {
            now += ms * MS;
            agent.received(port, &frame, Nanos(now));
            agent.tick(Nanos(now));
            for Outgoing { port, frame } in agent.take_frames() {
                units[port] += u64::from(matches!(parse(&frame), Ok(SlowFrame::Lacp(_))));
            }
            prop_assert!(agent.take_events().len() <= 20);
            prop_assert!((agent.distributing() - agent.collecting()).is_empty());
            for member in agent.view(PortSet::EMPTY).groups.iter().flat_map(|group| &group.members) {
                let takes = |partner: &PartnerView| ["sync", "collecting"].iter().all(|bit| partner.state.contains(bit));
                let is_taken = member.partner.as_ref().is_some_and(takes);
                prop_assert!(is_taken || !member.is_active);
                prop_assert_eq!(member.is_active, member.obstacle.is_none());
            }
        }
        let seconds = (now - start) / 1_000_000_000 + 2;
        prop_assert!(units.iter().all(|&count| count <= 3 * seconds), "{units:?} in {seconds} s");
    }

    /// Agents that lose frames and links agree again soon after it ends.
    #[test]
    fn two_switches_agree_after_any_losses(steps in prop::collection::vec((0..2_usize, 0..4_u8, 10..5_000_u64), 1..20)) {
        let mut pair = Pair::new(vec![group(&[0, 1], ACTIVE, 1)], vec![group(&[0, 1], ACTIVE, 1)]);
        for (cable, what, ms) in steps {
            match what {
                0 => pair.link(cable, false),
                1 => pair.link(cable, true),
                end => pair.deaf[usize::from(end) - 2].set(cable, true),
            }
            pair.run(ms);
        }
        pair.deaf = [PortSet::EMPTY; 2];
        (0..2).for_each(|cable| pair.link(cable, true));
        pair.run(4_000);
        prop_assert_eq!(pair.active(), [0b11, 0b11]);
    }
}
