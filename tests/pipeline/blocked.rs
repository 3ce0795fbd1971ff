//! Ports that the loop guard has blocked: they forward nothing in either direction, and are part of their link still.

use holdfast::forward::VlanMode;
use holdfast::plan::DropReason;
use holdfast::route::InjectTo;
use holdfast::sets::PortSet;
use holdfast::wire::MacAddr;

use crate::harness::*;

#[test]
fn blocked_port_forwards_nothing_until_it_is_released() {
    let mut spec = spec(4);
    spec.ports[2].vlan = VlanMode::Trunk { tagged: vec![7], native: Some(1) };
    let mut bed = Bed::learned(&spec);
    bed.switch.set_blocked(PortSet::only(2));
    // From it, to its known station, and flooded.
    bed.io.inject(2, &frame(2, 1, 0, 100));
    bed.io.inject(0, &frame(0, 2, 0, 100));
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.run(10_000);
    let sent: Vec<usize> = (0..4).map(|port| bed.data(port).len()).collect();
    assert_eq!(sent, [0, 2, 0, 2], "its station is unknown now, so that the frame is flooded");
    assert_eq!(bed.drops(2, DropReason::LoopBlocked), 1);

    bed.switch.set_blocked(PortSet::EMPTY);
    bed.io.inject(2, &frame(2, 1, 0, 100));
    bed.run(10_000);
    bed.io.inject(0, &frame(0, 2, 0, 100));
    bed.run(10_000);
    assert_eq!((bed.data(1).len(), bed.data(2).len()), (1, 1));
    bed.assert_empty();
}

#[test]
fn blocked_port_takes_and_sends_lldp_and_obeys_pfc() {
    let mut bed = Bed::learned(&spec(2));
    let mut links = bed.switch.attach_exceptions(1522);
    bed.switch.set_blocked(PortSet::only(1));
    let mut lldp = [&MacAddr::LLDP.0[..], &mac(1).0, &[0x88, 0xcc]].concat();
    lldp.resize(60, 0);
    bed.io.inject(1, &lldp);
    bed.run(10_000);
    let punted = links.iter_mut().filter_map(|link| link.receive()).count();
    assert!(links[0].inject(&lldp, InjectTo::Link(1), 0));
    bed.run(10_000);
    assert_eq!((punted, bed.data(1)), (1, vec![lldp]));
    bed.pause(1, holdfast::sets::ClassSet::only(LOSSLESS), 0xffff);
    bed.run(10_000);
    let paused: u64 = bed.counters.of_port(1).map(|port| port.pfc_rx_frames.get()).sum();
    assert_eq!(paused, 1);
}

/// Two ports on one cable: without the guard one broadcast circulates for ever.
#[test]
fn blocked_port_ends_a_loop() {
    let mut bed = Bed::learned(&spec(3));
    let circulate = |bed: &mut Bed| {
        bed.run(2_000);
        for (from, to) in [(0, 1), (1, 0)] {
            for frame in bed.data(from) {
                bed.io.inject(to, &frame);
            }
        }
        bed.data(2).len()
    };
    bed.io.inject(2, &frame(2, 0xffff, 0, 100));
    let copies: usize = (0..100).map(|_| circulate(&mut bed)).sum();
    assert!(copies > 50, "{copies} copies");
    bed.switch.set_blocked(PortSet::only(1));
    let later: Vec<usize> = (0..100).map(|_| circulate(&mut bed)).collect();
    assert_eq!(later[3..].iter().sum::<usize>(), 0, "only what was under way leaves: {later:?}");
}

/// Sends a frame of `dscp` from station 0 to each of the others. Returns the stations whose port alone got it.
fn known(bed: &mut Bed, dscp: u8) -> Vec<usize> {
    let known = |station: &usize| {
        bed.io.inject(0, &frame(0, *station, dscp, 100));
        bed.run(10_000);
        let sent: Vec<usize> = (0..4).filter(|&port| !bed.data(port).is_empty()).collect();
        sent == [*station]
    };
    (1..4).filter(known).collect()
}

#[test]
fn station_of_another_port_stays_known_when_a_port_is_blocked_and_released() {
    let mut bed = Bed::learned(&spec(4));
    for blocked in [PortSet::only(2), PortSet::EMPTY] {
        bed.switch.set_loops(blocked, blocked);
        assert_eq!(known(&mut bed, LOSSLESS_DSCP), [1, 3], "{blocked:?}");
        assert_eq!(known(&mut bed, 0), [1, 3], "{blocked:?}");
    }
    assert_eq!(bed.drops(0, DropReason::LosslessUnknown), 2, "both to the station of port 2");
    bed.assert_empty();
}

/// A host that is not behind the loop is learned at its ports while frames circulate. After the block these entries
/// would lead its frames into the loop.
#[test]
fn stations_of_all_ports_of_a_loop_are_forgotten_when_its_block_begins_and_ends() {
    let mut bed = Bed::learned(&spec(4));
    let looped = [1, 2].into_iter().collect();
    bed.io.inject(1, &frame(3, 0xffff, 0, 100));
    bed.run(10_000);
    (0..4).for_each(|port| drop(bed.data(port)));
    bed.switch.set_loops(PortSet::only(2), looped);
    assert_eq!(known(&mut bed, 0), vec![0; 0], "flooded, since stations 1 and 3 are unknown");
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    drop(bed.data(0));
    assert_eq!(known(&mut bed, 0), [1]);
    // A block that stays leaves the stations as they are.
    bed.switch.set_loops(PortSet::only(2), looped);
    assert_eq!(known(&mut bed, 0), [1]);
    // So does a loop of other ports that begins and ends meanwhile.
    for (blocked, looped) in
        [(0b1100, 0b1110), (0b0100, 0b0110)].map(|(a, b)| (PortSet::from_bits(a), PortSet::from_bits(b)))
    {
        bed.switch.set_loops(blocked, looped);
        assert_eq!(known(&mut bed, 0), [1], "{blocked:?}");
    }
    bed.switch.set_loops(PortSet::EMPTY, PortSet::EMPTY);
    assert_eq!(known(&mut bed, 0), vec![0; 0], "station 1 may be behind port 2 now");
    bed.assert_empty();
}
