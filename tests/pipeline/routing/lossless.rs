//! Lossless traffic over a routed hop: the buffer holds it, and its sender is paused in time.

use holdfast::mmu::GroupProfile;
use holdfast::plan::DropReason;
use holdfast::sets::ClassSet;

use super::bed::*;
use super::packet::Packet;
use crate::harness::*;

/// A lossless packet of one cell from port `port` to `hop`.
fn cell(port: usize, hop: usize, is_v6: bool) -> Packet {
    let payload = CELL - 14 - if is_v6 { 48 } else { 28 };
    Packet { dscp: LOSSLESS_DSCP, payload, ..packet_at(port, None, hop, is_v6) }
}

/// The group of [`lossless_group`] has 10 cells of reserve, 20 shared and 5 of headroom.
const GROUP: GroupProfile = lossless_group();

#[test]
fn xoff_and_xon_are_sent_where_routed_traffic_arrives() {
    // Ingress port, next hop and egress port.
    for (port, hop, egress) in [(0, 1, 1), (2, 1, 1), (0, 4, 4), (2, 4, 4), (0, 0, 0)] {
        for is_v6 in [false, true] {
            let mut bed = RoutingBed::new();
            bed.pause(egress, ClassSet::only(LOSSLESS), 0xffff);
            bed.poll();
            let packet = cell(port, hop, is_v6);
            (0..30).for_each(|_| bed.io.inject(port, &packet.frame()));
            bed.run(2_000);
            assert_eq!(bed.pfcs(port), [], "the group is not full");
            (0..5).for_each(|_| bed.io.inject(port, &packet.frame()));
            bed.run(2_000);
            let [pfc] = bed.pfcs(port)[..] else { panic!("one XOFF") };
            assert_eq!((pfc.enabled, pfc.quanta[LOSSLESS].0), (ClassSet::only(LOSSLESS), 0xffff));
            assert_eq!(bed.counters.ports[port].group_headroom_cells[LOSSLESS].get(), u64::from(GROUP.headroom.0));
            assert_eq!((bed.switch.held_cells(), bed.all_drops()), (35, vec![]), "the headroom holds the rest");
            bed.pause(egress, ClassSet::only(LOSSLESS), 0);
            bed.run(50_000);
            let frames = bed.io.sent_all(port);
            let [xon] = frames.iter().filter_map(|frame| pfc_of(frame)).collect::<Vec<_>>()[..] else {
                panic!("one XON")
            };
            assert_eq!((xon.enabled, xon.quanta[LOSSLESS].0), (ClassSet::only(LOSSLESS), 0));
            let data = frames.into_iter().filter(|frame| pfc_of(frame).is_none());
            let data = if port == egress { data.collect() } else { bed.data(egress) };
            assert_eq!(data, vec![at_next_hop(&packet, hop).frame(); 35]);
            assert_eq!(bed.all_drops(), []);
            bed.assert_empty();
        }
    }
}

/// A peer that does not stop loses frames at its own port, by the reason that names it.
#[test]
fn only_a_peer_that_ignores_xoff_loses_routed_frames() {
    let mut bed = RoutingBed::new();
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    (0..40).for_each(|_| bed.io.inject(0, &cell(0, 1, false).frame()));
    (0..20).for_each(|_| bed.io.inject(2, &cell(2, 1, false).frame()));
    bed.run(5_000);
    assert_eq!(bed.all_drops(), [(0, DropReason::HeadroomFull, 5)]);
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    assert_eq!(bed.data(1).len(), 55);
    bed.assert_empty();
}

/// A tag makes the frame longer, maybe by a cell. It is charged at the length with which it waits.
#[test]
fn packet_is_charged_with_the_tag_of_its_next_hop() {
    let mut bed = RoutingBed::new();
    bed.pause(3, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    bed.receive(0, &cell(0, 3, false).frame());
    assert_eq!(bed.switch.held_cells(), 2, "a cell and four bytes");
    bed.pause(3, ClassSet::only(LOSSLESS), 0);
    bed.run(50_000);
    assert_eq!(bed.data(3).len(), 1);
    bed.assert_empty();
}

/// Lossy frames that wait for a paused class do not delay others, as without routing.
#[test]
fn paused_class_stops_no_other_class() {
    let mut bed = RoutingBed::new();
    bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    bed.io.inject(0, &cell(0, 1, false).frame());
    let other = Packet { dscp: 0, ..cell(0, 1, false) };
    bed.receive(0, &other.frame());
    assert_eq!(bed.sent(), [(1, at_next_hop(&other, 1).frame())]);
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 1);
    bed.assert_empty();
}

/// The answer of a virtual router has another source address than it names, so the forwarding database lacks it.
#[test]
fn lossless_packet_leaves_by_the_port_of_the_answer_if_the_database_lacks_its_next_hop() {
    for (answered_by, is_v6) in [(5, false), (5, true), (4, false)] {
        let mut tables = Tables::default();
        tables.answered_by = Some(answered_by);
        let mut bed = RoutingBed::with(&routing_spec(), tables);
        let packet = cell(0, 6, is_v6);
        (0..20).for_each(|_| bed.io.inject(0, &packet.frame()));
        bed.run(50_000);
        let is_member = answered_by == 5;
        let expected = if is_member { vec![at_next_hop(&packet, 6).frame(); 20] } else { vec![] };
        assert_eq!(bed.data(answered_by.into()), expected);
        let drops = if is_member { vec![] } else { vec![(0, DropReason::NeighbourIncomplete, 20)] };
        assert_eq!(bed.all_drops(), drops, "port 4 is not in the VLAN");
        // The database knows better.
        bed.switch.learn(10, mac(77), 2);
        bed.run(2_000);
        bed.receive(0, &packet.frame());
        assert_eq!(bed.data(2), [at_next_hop(&packet, 6).frame()]);
        bed.assert_empty();
    }
}
