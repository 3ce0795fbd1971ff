//! Unusual VLAN tags: a service tag, a tag on an access port, more tags than the parser reads.

use holdfast::forward::VlanMode;
use holdfast::plan::DropReason;

use crate::harness::*;

/// Inserts a tag of this TPID into a frame.
fn tagged(mut frame: Vec<u8>, tpid: u16, tci: u16) -> Vec<u8> {
    frame.splice(12..12, [tpid.to_be_bytes(), tci.to_be_bytes()].concat());
    frame
}

const CUSTOMER: u16 = 0x8100;
const SERVICE: u16 = 0x88a8;

/// Returns the frames of `class` that `port` received.
fn received(bed: &Bed, port: usize, class: usize) -> u64 {
    bed.counters.ports[port].rx_frames[class].get()
}

#[test]
fn service_tag_selects_vlan_and_is_kept_between_trunks() {
    let mut spec = spec(4);
    spec.ports[0].vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    spec.ports[1].vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    spec.ports[2].vlan = VlanMode::Access(10);
    spec.ports[3].vlan = VlanMode::Access(20);
    let mut bed = Bed::new(&spec);
    let plain = frame(0, 0xffff, 0, 100);
    let service = tagged(plain.clone(), SERVICE, 10);
    bed.io.inject(0, &service);
    bed.run(10_000);
    assert_eq!(bed.data(1), [service], "the TPID is kept from trunk to trunk");
    assert_eq!(bed.data(2), std::slice::from_ref(&plain), "and the tag goes at an access port");
    assert!(bed.data(3).is_empty());
    // The switch itself inserts customer tags.
    let plain = frame(2, 0xffff, 0, 100);
    bed.io.inject(2, &plain);
    bed.run(10_000);
    assert_eq!(bed.data(1), [tagged(plain, CUSTOMER, 10)]);
    bed.assert_empty();
}

#[test]
fn access_port_accepts_only_tags_of_its_vlan_and_priority_tags() {
    let mut spec = spec(2);
    for port in &mut spec.ports {
        port.vlan = VlanMode::Access(10);
    }
    let mut bed = Bed::new(&spec);
    let plain = frame(0, 0xffff, 0, 100);
    for tci in [10, 5 << 13 | 10, 0, 5 << 13] {
        for tpid in [CUSTOMER, SERVICE] {
            bed.io.inject(0, &tagged(plain.clone(), tpid, tci));
            bed.run(10_000);
            assert_eq!(bed.data(1), std::slice::from_ref(&plain), "{tpid:x} {tci:x}: it leaves untagged");
        }
    }
    bed.io.inject(0, &tagged(plain.clone(), CUSTOMER, 11));
    bed.io.inject(0, &tagged(plain, CUSTOMER, 4095));
    bed.run(10_000);
    assert_eq!(bed.drops(0, DropReason::VlanNotAllowed), 2);
    assert!(bed.data(1).is_empty());
    bed.assert_empty();
}

#[test]
fn a_packet_behind_three_tags_has_the_class_of_the_port() {
    let mut spec = spec(2);
    spec.ports[0].live.port_class = 1;
    for port in &mut spec.ports {
        port.vlan = VlanMode::Trunk { tagged: vec![10], native: None };
    }
    let mut bed = Bed::new(&spec);
    let plain = frame(0, 0xffff, 8 * 2, 100);
    let two = tagged(tagged(plain, CUSTOMER, 7), CUSTOMER, 10);
    let inner = tagged(frame(0, 0xffff, 8 * 2, 100), CUSTOMER, 6);
    let three = tagged(tagged(inner, CUSTOMER, 7), CUSTOMER, 10);
    bed.io.inject(0, &two);
    bed.run(10_000);
    assert_eq!((received(&bed, 0, 2), received(&bed, 0, 1)), (1, 0), "behind two tags the DSCP is read");
    bed.io.inject(0, &three);
    bed.run(10_000);
    assert_eq!((received(&bed, 0, 2), received(&bed, 0, 1)), (1, 1), "behind three it is not");
    assert_eq!(bed.data(1), [two, three], "both pass untouched");
    bed.assert_empty();
}
