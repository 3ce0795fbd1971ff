//! The agent in time.

use std::sync::LazyLock;

use super::*;
use crate::config;
use crate::lldp::local::{System, stated};
use crate::sets::ClassSet;
use crate::wire::MacAddr;
use crate::wire::lldp::{Aggregation, ChassisId, PortId, Text, parse};

/// Two ports with the preset for RoCE, both with LLDP.
static PORTS: LazyLock<[Option<Stated>; 2]> = LazyLock::new(|| {
    let text =
        "{preset: roce, ports: [{name: p1, device: net_tap0, speed: 25G}, {name: p2, device: net_tap1, speed: 25G}]}";
    let spec = config::parse("test.yaml", text).unwrap().switch;
    [0, 1].map(|port| stated(&spec, port, &System::default(), Aggregation::default()))
});

fn ports() -> Vec<Option<Stated>> {
    PORTS.to_vec()
}

struct Bed {
    agent: Agent,
    now: Nanos,
}

impl Bed {
    /// An agent whose first port is up since time 0, with its first frame taken.
    fn new() -> Self {
        let mut bed = Self { agent: Agent::new(ports(), Timing::default()), now: Nanos(0) };
        bed.agent.link(0, true, bed.now);
        assert_eq!(bed.sent(), [121], "a port that comes up sends at once");
        bed
    }

    /// TTLs of the frames of port 0.
    fn sent(&mut self) -> Vec<u16> {
        let frames = self.agent.take_frames();
        assert!(frames.iter().all(|frame| frame.port == 0));
        frames.iter().map(|frame| parse(&frame.frame).unwrap().pdu.ttl).collect()
    }

    /// Ticks every tenth of a second, and returns the tenths, since time 0, in which a frame left.
    fn run(&mut self, seconds: u64) -> Vec<u64> {
        let mut at = Vec::new();
        for _ in 0..seconds * 10 {
            self.now.0 += SECOND.0 / 10;
            self.agent.tick(self.now);
            at.extend(self.sent().iter().map(|_| self.now.0 / (SECOND.0 / 10)));
        }
        at
    }

    /// Receives a data unit of host `host`, changed by `change`.
    fn hear(&mut self, host: u8, change: impl FnOnce(&mut Lldpdu)) {
        let mut pdu = peer(host);
        change(&mut pdu);
        self.agent.received(0, &pdu.emit(MacAddr([2, 0, 0, 0, 1, host])).frame, self.now);
    }

    /// Names of the events.
    fn events(&mut self) -> Vec<&'static str> {
        self.agent.take_events().iter().map(|event| event.kind.name()).collect()
    }

    fn port(&self) -> PortView {
        self.agent.view(self.now).ports.swap_remove(0)
    }
}

/// A host that agrees with the port: it states the same.
fn peer(host: u8) -> Lldpdu {
    let mut pdu = ports()[0].clone().unwrap().pdu;
    pdu.chassis = ChassisId::mac(MacAddr([2, 0, 0, 0, 1, host]));
    (pdu.port, pdu.ttl, pdu.system_name) = (PortId::name("eth0"), 121, Some(Text::new(&format!("h{host}"))));
    pdu
}

fn tenths(seconds: &[u64]) -> Vec<u64> {
    seconds.iter().map(|second| second * 10).collect()
}

#[test]
fn frames_follow_the_interval() {
    let mut bed = Bed::new();
    assert_eq!(bed.run(100), tenths(&[30, 60, 90]));
    assert_eq!(bed.port().counts.frames_out, 4);
}

#[test]
fn port_without_lldp_or_link_is_silent() {
    let [first, second] = <[Option<Stated>; 2]>::try_from(ports()).unwrap();
    let mut agent = Agent::new(vec![None, second], Timing::default());
    agent.link(0, true, Nanos(0));
    agent.link(7, true, Nanos(0));
    agent.received(0, &peer(1).emit(MacAddr([2; 6])).frame, Nanos(0));
    agent.received(1, &peer(1).emit(MacAddr([2; 6])).frame, Nanos(0));
    agent.tick(after(Nanos(0), 100));
    let view = agent.view(Nanos(0));
    assert_eq!((agent.take_frames(), agent.take_events(), agent.due()), (vec![], vec![], None));
    assert!(view.ports.iter().all(|port| port.counts == LldpCounts::default() && port.neighbours.is_empty()));
    agent.configure(vec![first, None], after(Nanos(0), 100));
    assert_eq!(agent.take_frames().len(), 1, "LLDP begins");
}

#[test]
fn new_neighbour_gets_four_fast_frames() {
    let mut bed = Bed::new();
    assert_eq!(bed.run(10), tenths(&[]));
    bed.hear(1, |_| {});
    assert_eq!(bed.sent().len(), 1, "the first one at once");
    assert_eq!(bed.run(50), tenths(&[11, 12, 13, 43]), "then the interval counts from the last one");
    bed.hear(1, |pdu| pdu.dot1.port_vlan = Some(7));
    assert_eq!(bed.run(20), tenths(&[73]), "a known neighbour that changes gets none");
}

#[test]
fn credit_limits_frames_to_one_a_second_after_five() {
    let mut bed = Bed::new();
    for host in 0..8 {
        bed.hear(host, |_| {});
    }
    assert_eq!(bed.sent().len(), 4, "five with the first frame of the port");
    let times = bed.run(30);
    assert!(times.iter().zip(times.iter().skip(1)).all(|(one, next)| next - one >= 10), "{times:?}");
    assert_eq!(bed.port().counts.frames_out, 5 + times.len() as u64);
}

#[test]
fn changes_of_the_settings_share_a_frame_a_second_later() {
    let mut bed = Bed::new();
    assert_eq!(bed.run(5), tenths(&[]));
    for mtu in [2000, 3000, 4000] {
        let mut changed = ports();
        changed[0].as_mut().unwrap().pdu.dot3.max_frame = Some(mtu);
        bed.agent.configure(changed, bed.now);
        assert_eq!(bed.run(0), tenths(&[]));
    }
    assert_eq!(bed.run(40), tenths(&[6, 36]), "one frame, from which the interval counts");
}

#[test]
fn equal_settings_cause_no_frame() {
    let mut bed = Bed::new();
    bed.agent.configure(ports(), bed.now);
    assert_eq!(bed.run(20), tenths(&[]));
}

#[test]
fn end_is_told_by_ttl_zero_and_the_next_begin_waits() {
    let mut bed = Bed::new();
    assert_eq!(bed.run(10), tenths(&[]));
    bed.hear(1, |_| {});
    bed.sent();
    bed.events();
    bed.agent.stop(bed.now);
    assert_eq!(bed.sent(), [0]);
    assert_eq!(bed.events(), ["lldp_removed"]);
    assert_eq!((bed.port().neighbours.len(), bed.agent.due()), (0, None));
    bed.agent.configure(ports(), bed.now);
    assert_eq!(bed.run(40), tenths(&[12, 42]), "two seconds after the end");
}

#[test]
fn renamed_port_ends_its_old_name() {
    let mut bed = Bed::new();
    let mut renamed = ports();
    renamed[0].as_mut().unwrap().pdu.port = PortId::name("other");
    bed.agent.configure(renamed, bed.now);
    let frames = bed.agent.take_frames();
    let last = parse(&frames[0].frame).unwrap().pdu;
    assert_eq!((frames.len(), last.ttl, last.port), (1, 0, PortId::name("p1")));
    assert_eq!(bed.run(2), [10]);
}

#[test]
fn neighbour_ages_by_its_ttl_also_without_a_link() {
    let mut bed = Bed::new();
    bed.hear(1, |pdu| pdu.ttl = 20);
    bed.hear(2, |pdu| pdu.ttl = 50);
    bed.agent.link(0, false, bed.now);
    bed.events();
    bed.sent();
    assert_eq!((bed.run(19), bed.events(), bed.port().neighbours.len()), (vec![], vec![], 2));
    assert_eq!(bed.port().neighbours[0].expires_seconds, 1);
    assert_eq!(bed.agent.due(), Some(after(Nanos(0), 20)));
    bed.run(1);
    assert_eq!((bed.events(), bed.port().counts.ageouts), (vec!["lldp_aged_out"], 1));
    bed.agent.link(0, true, bed.now);
    assert_eq!((bed.events(), bed.port().neighbours.len()), (vec!["lldp_removed"], 0), "the peer may be another");
    let counts = bed.port().counts;
    assert_eq!((counts.inserts, counts.deletes, counts.ageouts), (2, 2, 1));
    assert_eq!(bed.sent(), [121]);
}

#[test]
fn repeated_data_unit_extends_the_life_without_an_event() {
    let mut bed = Bed::new();
    bed.hear(1, |pdu| pdu.ttl = 20);
    bed.events();
    bed.run(15);
    bed.hear(1, |pdu| pdu.ttl = 30);
    bed.run(29);
    assert_eq!((bed.events(), bed.port().neighbours.len()), (vec![], 1));
    let neighbour = &bed.port().neighbours[0];
    assert_eq!((neighbour.age_seconds, neighbour.heard_seconds, neighbour.expires_seconds), (44, 29, 1));
}

#[test]
fn shutdown_of_a_neighbour_removes_it_at_once() {
    let mut bed = Bed::new();
    bed.hear(1, |_| {});
    bed.events();
    bed.hear(1, |pdu| pdu.ttl = 0);
    bed.hear(9, |pdu| pdu.ttl = 0);
    assert_eq!((bed.events(), bed.port().neighbours.len()), (vec!["lldp_shut_down"], 0));
    let counts = bed.port().counts;
    assert_eq!((counts.inserts, counts.deletes, counts.ageouts, counts.frames_discarded), (1, 1, 0, 0));
}

#[test]
fn ninth_neighbour_is_refused_until_there_is_room() {
    let mut bed = Bed::new();
    for host in 0..10 {
        bed.hear(host, |pdu| pdu.ttl = if host == 0 { 50 } else { 200 });
    }
    let port = bed.port();
    assert_eq!((port.neighbours.len(), port.counts.drops, port.counts.frames_discarded), (MOST_NEIGHBOURS, 2, 2));
    assert_eq!((port.neighbours[0].system_name.as_deref(), port.is_too_many), (Some("h0"), true), "oldest are kept");
    assert_eq!(bed.events().into_iter().filter(|name| *name == "lldp_too_many").count(), 1);
    bed.run(60);
    bed.hear(8, |pdu| pdu.ttl = 200);
    assert!(bed.port().is_too_many, "while the refused data unit would have held");
    assert_eq!(bed.port().neighbours.len(), MOST_NEIGHBOURS);
    bed.run(141);
    assert!(!bed.port().is_too_many);
}

#[test]
fn errors_are_counted_by_frame_and_by_tlv() {
    let mut bed = Bed::new();
    let good = peer(1).emit(MacAddr([2; 6])).frame;
    let mut refused = good.clone();
    refused[14] = 0x04;
    let mut defective = good[..good.len() - 2].to_vec();
    // Two names too many, two reserved types, and a TLV past the end.
    defective.extend([0x0a, 0x01, b'x', 0x0a, 0x01, b'y', 0x12, 0x00, 0x14, 0x00, 0xfe, 0x40]);
    let mut other = good.clone();
    other[13] = 0xcd;
    for frame in [&good, &refused, &defective, &other] {
        bed.agent.received(0, frame, bed.now);
    }
    let counts = bed.port().counts;
    assert_eq!((counts.frames_in, counts.frames_discarded, counts.frames_in_errors), (3, 1, 2));
    assert_eq!((counts.tlvs_discarded, counts.tlvs_unrecognized), (3, 2));
    assert_eq!(bed.port().neighbours.len(), 1);
}

#[test]
fn difference_is_told_once_and_again_when_it_ends() {
    let mut bed = Bed::new();
    let with_pfc = |priorities: u8| {
        move |pdu: &mut Lldpdu| pdu.dot1.pfc.as_mut().unwrap().enabled = ClassSet::from_bits(priorities)
    };
    bed.hear(1, with_pfc(0x10));
    assert_eq!(bed.events(), ["lldp_new", "lldp_differs"]);
    let found = &bed.port().neighbours[0].differences;
    assert_eq!((found.len(), found[0].name), (1, "pfc_priorities"));
    bed.hear(1, with_pfc(0x10));
    assert_eq!(bed.events(), [""; 0]);
    bed.hear(1, with_pfc(0x20));
    assert_eq!(bed.events(), ["lldp_changed", "lldp_differs"], "other values are told");
    bed.hear(1, with_pfc(0x08));
    assert_eq!(bed.events(), ["lldp_changed", "lldp_agrees"]);
    let mut changed = ports();
    changed[0].as_mut().unwrap().pdu.dot1.pfc.as_mut().unwrap().enabled = ClassSet::only(5);
    bed.agent.configure(changed, bed.now);
    assert_eq!(bed.events(), ["lldp_differs"], "settings of the port are compared too");
}

#[test]
fn pfc_may_be_stated_by_another_agent_of_the_host() {
    let mut bed = Bed::new();
    bed.hear(1, |pdu| pdu.dot1.pfc = None);
    assert_eq!(bed.events(), ["lldp_new", "lldp_differs"], "no PFC");
    bed.hear(2, |_| {});
    assert_eq!(bed.events(), ["lldp_new", "lldp_agrees"], "the firmware states it");
    bed.hear(2, |pdu| pdu.ttl = 0);
    assert_eq!(bed.events(), ["lldp_shut_down", "lldp_differs"]);
}

#[test]
fn ticks_at_due_instants_send_as_frequent_ticks_do() {
    let run = |is_lazy: bool| {
        let (mut bed, mut sent) = (Bed::new(), Vec::new());
        let end = after(Nanos(0), 200);
        let mut hosts = [(3, 1_u8), (3, 2), (40, 3), (150, 1)].into_iter().peekable();
        while bed.now < end {
            let next = if is_lazy { bed.agent.due().unwrap_or(end) } else { Nanos(bed.now.0 + SECOND.0 / 4) };
            let host = hosts.peek().map(|(second, _)| after(Nanos(0), *second)).filter(|at| *at <= next);
            bed.now = host.unwrap_or(next).min(end);
            if host.is_some() {
                let (_, host) = hosts.next().unwrap();
                bed.hear(host, |pdu| pdu.ttl = 60);
            } else {
                bed.agent.tick(bed.now);
            }
            sent.extend(bed.sent().iter().map(|_| bed.now));
        }
        (sent, bed.port().counts)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn output_that_is_not_taken_is_bounded() {
    let mut agent = Agent::new(ports(), Timing::default());
    agent.link(0, true, Nanos(0));
    for second in 0..60_000 {
        let mut pdu = peer(1);
        pdu.dot1.port_vlan = Some(second);
        let frame = pdu.emit(MacAddr([2; 6])).frame;
        agent.received(0, &frame, after(Nanos(0), second));
        agent.tick(after(Nanos(0), second));
    }
    let view = agent.view(Nanos(0));
    assert_eq!((agent.take_frames().len(), agent.take_events().len()), (MOST_OUTPUT, MOST_OUTPUT));
    assert!(view.output_dropped > 1000 && view.ports[0].counts.frames_out == MOST_OUTPUT as u64);
}

#[test]
fn random_frames_leave_the_agent_bounded() {
    use crate::wire::lldp::fuzz::{Dice, any_frame, setting};
    let mut dice = Dice(setting("HOLDFAST_FUZZ_SEED", 0x0a9e_4717));
    let mut bed = Bed::new();
    let (mut frames, mut longest) = (1, 0);
    for _ in 0..setting("HOLDFAST_FUZZ_FRAMES", 10_000) {
        bed.now.0 += dice.next() % SECOND.0;
        bed.agent.received(0, &any_frame(&mut dice), bed.now);
        match dice.below(64) {
            0 => bed.agent.link(0, dice.below(4) > 0, bed.now),
            1 => bed.agent.configure(if dice.below(8) == 0 { vec![None, None] } else { ports() }, bed.now),
            _ => bed.agent.tick(bed.now),
        }
        frames += bed.sent().len() as u64;
        assert!(bed.agent.take_events().len() < 200);
        let port = bed.port();
        assert!(port.neighbours.len() <= MOST_NEIGHBOURS);
        let commands = port.neighbours.iter().flat_map(|neighbour| &neighbour.differences);
        longest = commands.map(|one| one.command.len()).max().unwrap_or(0).max(longest);
        let counts = port.counts;
        assert_eq!(counts.inserts - counts.deletes, port.neighbours.len() as u64);
        assert!(counts.frames_in_errors >= counts.frames_discarded - counts.drops);
    }
    let counts = bed.port().counts;
    println!("{counts:?}; the longest command has {longest} bytes");
    assert_eq!(counts.frames_out, frames);
    assert!(longest < 10_000 && counts.frames_in > 1000);
}

#[test]
fn events_are_sentences_and_differences_have_their_own_subject() {
    let mut bed = Bed::new();
    bed.hear(1, |pdu| pdu.dot1.pfc.as_mut().expect("it states PFC").enabled = ClassSet::only(4));
    let events = bed.agent.take_events();
    let [appeared, differs] = &events[..] else { panic!("{events:?}") };
    assert!(appeared.text().ends_with(" has appeared"), "{}", appeared.text());
    let text = differs.text();
    let expected = " differs: the peer has PFC for priorities 4, this port for 3; run there: dcb pfc set dev ";
    assert!(text.contains(expected), "{text}");
    assert_eq!(differs.kind.subject(), ("lldp_differs", Some("pfc_priorities")));
    assert_eq!(appeared.kind.subject(), ("lldp_new", None));
}

/// Two ports of one switch: by their numbers they recognize each other's data units.
fn looped() -> Agent {
    let mut stated = ports();
    for (number, stated) in stated.iter_mut().flatten().enumerate() {
        stated.pdu.instance = Some(7 + number as u64);
    }
    Agent::new(stated, Timing::default())
}

#[test]
fn own_data_units_are_a_loop_for_their_life_and_no_neighbour() {
    let mut agent = looped();
    agent.link(0, true, Nanos(0));
    agent.link(1, true, Nanos(0));
    let [first, second] = &agent.take_frames()[..] else { panic!("each port has sent one") };
    agent.received(1, &first.frame, Nanos(0));
    agent.received(0, &second.frame, SECOND);
    assert_eq!(agent.loops().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    let view = agent.view(SECOND);
    assert_eq!((view.ports[1].loop_with, view.ports[1].neighbours.len()), (Some(0), 0));
    assert_eq!(agent.take_events(), []);
    agent.tick(after(Nanos(0), 121));
    assert_eq!(agent.loops().collect::<Vec<_>>(), [(0, 1)]);
    agent.link(1, false, after(Nanos(0), 121));
    assert_eq!(agent.loops().count(), 0, "without the link there is no loop");
}

#[test]
fn switch_with_the_same_addresses_and_names_is_a_neighbour() {
    let (mut agent, mut other) = (looped(), Agent::new(ports(), Timing::default()));
    agent.link(0, true, Nanos(0));
    other.link(0, true, Nanos(0));
    agent.received(0, &other.take_frames()[0].frame, Nanos(0));
    assert_eq!((agent.loops().count(), agent.view(Nanos(0)).ports[0].neighbours.len()), (0, 1));
}

#[test]
fn forged_name_of_another_port_does_not_make_a_loop_with_it() {
    let mut agent = looped();
    agent.link(0, true, Nanos(0));
    let mut forged = parse(&agent.take_frames()[0].frame).unwrap().pdu;
    forged.port = PortId::name("p2");
    agent.received(0, &forged.emit(MacAddr([2; 6])).frame, Nanos(0));
    assert_eq!(agent.loops().collect::<Vec<_>>(), [(0, 0)], "the number is that of the port itself");
}
