//! Frames made by hand from the layouts of the standards, and round trips.

use proptest::prelude::*;

use super::*;
use crate::sets::ClassSet;
use crate::wire::MacAddr;

const SOURCE: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x01]);

/// Destination, source and EtherType (802.1AB clause 7).
const HEADER: [u8; 14] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e, 0x02, 0, 0, 0, 0, 0x01, 0x88, 0xcc];
/// Chassis ID of subtype 4, port ID of subtype 5 with `p1`, TTL 121 (clauses 8.5.2 to 8.5.4).
const MANDATORY: [u8; 18] =
    [0x02, 0x07, 0x04, 0x02, 0, 0, 0, 0, 0x01, 0x04, 0x03, 0x05, b'p', b'1', 0x06, 0x02, 0x00, 0x79];

/// A frame of the mandatory TLVs, then `optional`.
fn frame(optional: &[u8]) -> Vec<u8> {
    [&HEADER[..], &MANDATORY, optional].concat()
}

fn minimal() -> Lldpdu {
    Lldpdu::new(ChassisId::mac(SOURCE), PortId::name("p1"), 121)
}

/// The data unit of a frame without errors and unknown TLVs.
#[track_caller]
fn clean(frame: &[u8]) -> Lldpdu {
    let parsed = parse(frame).unwrap();
    assert_eq!((parsed.discarded, parsed.unrecognized, parsed.source), (0, 0, SOURCE));
    parsed.pdu
}

/// Discarded and unrecognized TLVs of `optional`.
#[track_caller]
fn counts(optional: &[u8]) -> (u32, u32) {
    let parsed = parse(&frame(optional)).unwrap();
    (parsed.discarded, parsed.unrecognized)
}

#[test]
fn mandatory_tlvs_have_the_bytes_of_clause_8() {
    let emitted = minimal().emit(SOURCE);
    let expected = frame(&[0, 0]);
    assert_eq!(emitted.frame[..expected.len()], expected);
    assert_eq!((emitted.frame.len(), emitted.omitted), (60, 0), "padded to the shortest frame");
    assert_eq!(clean(&emitted.frame), minimal());
}

#[test]
fn basic_tlvs_have_the_bytes_of_clause_8_5() {
    let mut pdu = minimal();
    pdu.port_description = Some(Text::new("to h1"));
    pdu.system_name = Some(Text::new("tor"));
    pdu.system_description = Some(Text::new("x"));
    let both = Capabilities::BRIDGE | Capabilities::ROUTER;
    pdu.capabilities = Some(Capabilities { supported: both, enabled: Capabilities::BRIDGE });
    pdu.management = vec![ManagementAddress::of("10.0.0.1".parse().unwrap())];
    let expected = [
        0x08, 0x05, b't', b'o', b' ', b'h', b'1', // port description
        0x0a, 0x03, b't', b'o', b'r', // system name
        0x0c, 0x01, b'x', // system description
        0x0e, 0x04, 0x00, 0x14, 0x00, 0x04, // capabilities
        0x10, 0x0c, 0x05, 0x01, 10, 0, 0, 1, 0x01, 0, 0, 0, 0, 0x00, // management address
        0x00, 0x00, // end
    ];
    let sent = pdu.emit(SOURCE).frame;
    assert_eq!(sent, frame(&expected));
    assert_eq!(clean(&sent), pdu);
}

fn ets_table() -> EtsTable {
    let mut algorithm = [Algorithm::ETS; 8];
    algorithm[6] = Algorithm::STRICT;
    EtsTable { class_of: [0, 1, 2, 3, 4, 5, 6, 7], bandwidth: [14, 14, 14, 15, 14, 14, 0, 15], algorithm }
}

/// A data unit with every TLV that the switch sends.
fn full() -> Lldpdu {
    let mut pdu = minimal();
    pdu.dot1 = Dot1 {
        port_vlan: Some(10),
        vlan_names: Vec::new(),
        aggregation: Some(Aggregation { is_capable: true, is_enabled: false, port: 0 }),
        congestion: Some(CongestionNotification { priorities: ClassSet::only(3), ready: ClassSet::only(3) }),
        ets: Some(EtsConfiguration { is_willing: false, has_credit_based: false, classes: 8, table: ets_table() }),
        ets_recommendation: Some(EtsRecommendation(ets_table())),
        pfc: Some(PfcConfiguration { capability: 8, enabled: ClassSet::from_bits(0x18), ..Default::default() }),
        applications: Some(vec![
            Application { priority: 3, selector: Selector::DATAGRAM, protocol: 4791 },
            Application { priority: 4, selector: Selector::DSCP, protocol: 34 },
        ]),
    };
    pdu.dot3 = Dot3 { max_frame: Some(9238), aggregation: pdu.dot1.aggregation, ..Dot3::default() };
    pdu
}

#[test]
fn organisational_tlvs_have_the_bytes_of_802_1q_annex_d_and_802_3_clause_79() {
    let tables = [
        0x01, 0x23, 0x45, 0x67, 14, 14, 14, 15, 14, 14, 0, 15, 2, 2, 2, 2, 2, 2, 0, 2, // classes, bandwidth, TSA
    ];
    let expected = [
        &[0xfe, 0x06, 0x00, 0x80, 0xc2, 0x01, 0x00, 0x0a][..], // D.2.1
        &[0xfe, 0x09, 0x00, 0x80, 0xc2, 0x07, 0x01, 0, 0, 0, 0],
        &[0xfe, 0x06, 0x00, 0x80, 0xc2, 0x08, 0x08, 0x08], // D.2.7
        &[0xfe, 0x19, 0x00, 0x80, 0xc2, 0x09, 0x00],       // D.2.8: not willing, no CBS, eight classes
        &tables,
        &[0xfe, 0x19, 0x00, 0x80, 0xc2, 0x0a, 0x00], // D.2.9
        &tables,
        &[0xfe, 0x06, 0x00, 0x80, 0xc2, 0x0b, 0x08, 0x18], // D.2.10: not willing, no MBC, capability 8
        // D.2.11: priority in bits 8 to 6, selector in bits 3 to 1; UDP 4791 and DSCP 34.
        &[0xfe, 0x0b, 0x00, 0x80, 0xc2, 0x0c, 0x00, 0x63, 0x12, 0xb7, 0x85, 0x00, 0x22],
        &[0xfe, 0x09, 0x00, 0x12, 0x0f, 0x03, 0x01, 0, 0, 0, 0], // 79.3.3
        &[0xfe, 0x06, 0x00, 0x12, 0x0f, 0x04, 0x24, 0x16],       // 79.3.4
        &[0x00, 0x00],
    ]
    .concat();
    let sent = full().emit(SOURCE).frame;
    assert_eq!(sent, frame(&expected));
    assert_eq!(clean(&sent), full());
}

#[test]
fn tlvs_that_are_only_parsed_are_read() {
    let optional = [
        &[0xfe, 0x0b, 0x00, 0x80, 0xc2, 0x03, 0x00, 0x14, 0x04, b'r', b'o', b'c', b'e'][..],
        &[0xfe, 0x09, 0x00, 0x12, 0x0f, 0x01, 0x03, 0x80, 0x01, 0x00, 0x1e],
        &[0xfe, 0x05, 0x00, 0x1b, 0x21, 0x02, 0xff],
    ]
    .concat();
    let pdu = clean(&frame(&optional));
    assert_eq!(pdu.dot1.vlan_names, [VlanName { vlan: 20, name: Text::new("roce") }]);
    let mac_phy = MacPhy { has_autonegotiation: true, autonegotiates: true, advertised: 0x8001, mau: 0x1e };
    assert_eq!(pdu.dot3.mac_phy, Some(mac_phy));
    assert!(pdu.speaks_cee, "OUI 00-1B-21, subtype 2");
}

#[test]
fn ets_and_pfc_of_a_willing_host_are_read() {
    // Two classes: the number of classes, priority 3 alone in class 1.
    let ets = [
        0xfe, 0x19, 0x00, 0x80, 0xc2, 0x09, 0xc2, 0x00, 0x01, 0x00, 0x00, 50, 50, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0,
        0, 255,
    ];
    let pfc = [0xfe, 0x06, 0x00, 0x80, 0xc2, 0x0b, 0xc1, 0x08];
    let dot1 = clean(&frame(&[&ets[..], &pfc].concat())).dot1;
    let ets = dot1.ets.unwrap();
    assert!(ets.is_willing && ets.has_credit_based && ets.classes == 2);
    assert_eq!((ets.table.class(3), ets.table.companions(3)), (1, ClassSet::only(3)));
    assert_eq!((ets.table.companions(0), ets.table.algorithm[7]), (!ClassSet::only(3), Algorithm::VENDOR));
    let pfc = PfcConfiguration { is_willing: true, bypasses_macsec: true, capability: 1, enabled: ClassSet::only(3) };
    assert_eq!(dot1.pfc, Some(pfc));
}

#[test]
fn data_unit_without_the_mandatory_tlvs_in_order_is_refused() {
    let [chassis, port, ttl] = [&MANDATORY[..9], &MANDATORY[9..14], &MANDATORY[14..]];
    let refusal = |parts: &[&[u8]]| parse(&[&[&HEADER[..]], parts].concat().concat()).unwrap_err();
    for (parts, expected) in [
        (&[][..], Refusal::ChassisId),
        (&[port, chassis, ttl], Refusal::ChassisId),
        (&[&[0x02, 0x01, 0x04], port, ttl], Refusal::ChassisId),
        (&[chassis], Refusal::PortId),
        (&[chassis, ttl, port], Refusal::PortId),
        (&[chassis, &[0x04, 0x01, 0x05], ttl], Refusal::PortId),
        (&[chassis, &[&[0x05, 0x01, 0x05][..], &[b'p'; 256]].concat(), ttl], Refusal::PortId),
        (&[chassis, port], Refusal::Ttl),
        (&[chassis, port, &[0x06, 0x01, 0x79]], Refusal::Ttl),
        (&[chassis, port, &[0x06, 0x02, 0x00]], Refusal::Ttl),
        (&[chassis, port, &[0x00, 0x00]], Refusal::Ttl),
        (&[chassis, port, ttl, ttl], Refusal::Repeated),
        (&[chassis, port, ttl, &[0x0a, 0x01, b'x'], chassis], Refusal::Repeated),
        (&[chassis, port, ttl, port], Refusal::Repeated),
    ] {
        assert_eq!(refusal(parts), expected, "{parts:02x?}");
    }
    let longest = [&[0x03, 0x00, 0x07][..], &[b'c'; 255]].concat();
    assert!(parse(&[&HEADER[..], &longest, port, ttl].concat()).is_ok(), "255 bytes are allowed");
    assert!(parse(&frame(&[0, 0, 0x02, 0x07])).is_ok(), "bytes behind the end are padding");
    assert!(parse(&frame(&[])).is_ok(), "the end TLV is optional");
}

#[test]
fn frame_that_is_not_lldp_is_refused_without_a_defect() {
    let good = frame(&[0, 0]);
    for (at, byte) in [(0, 0x00), (5, 0x00), (5, 0x03), (12, 0x81), (13, 0xcd)] {
        let mut frame = good.clone();
        frame[at] = byte;
        assert_eq!(parse(&frame), Err(Refusal::NotLldp), "byte {at}");
    }
    for length in 0..14 {
        assert_eq!(parse(&good[..length]), Err(Refusal::NotLldp));
    }
}

#[test]
fn ttl_zero_is_a_shutdown_without_other_tlvs() {
    let mut shutdown = full();
    shutdown.ttl = 0;
    let sent = shutdown.emit(SOURCE).frame;
    assert_eq!(sent[14..34], [&MANDATORY[..16], &[0, 0, 0, 0]].concat());
    assert_eq!(clean(&sent), Lldpdu { ttl: 0, ..minimal() });
    let mut frame = frame(&[0x0a, 0x01, b'x', 0xfe]);
    frame[31] = 0;
    assert_eq!(clean(&frame), Lldpdu { ttl: 0, ..minimal() }, "further TLVs are not read");
}

#[test]
fn defective_tlv_is_discarded_alone() {
    for (defect, tlv) in [
        ("capabilities too short", &[0x0e, 0x03, 0, 4, 0][..]),
        ("address string of one byte", &[0x10, 0x09, 1, 1, 1, 0, 0, 0, 0, 0, 0]),
        ("address string past its TLV", &[0x10, 0x09, 5, 1, 10, 0, 0, 1, 1, 0, 0]),
        ("object identifier past its TLV", &[0x10, 0x0c, 5, 1, 10, 0, 0, 1, 1, 0, 0, 0, 0, 1]),
        ("organisation without subtype", &[0xfe, 0x03, 0x00, 0x80, 0xc2]),
        ("PVID of one byte", &[0xfe, 0x05, 0x00, 0x80, 0xc2, 0x01, 0x00]),
        ("VLAN name past its TLV", &[0xfe, 0x07, 0x00, 0x80, 0xc2, 0x03, 0, 1, 1]),
        ("PFC of one byte", &[0xfe, 0x05, 0x00, 0x80, 0xc2, 0x0b, 8]),
        ("ETS without TSA", &[0xfe, 0x07, 0x00, 0x80, 0xc2, 0x09, 0, 1, 2]),
        ("application TLV without its reserved byte", &[0xfe, 0x04, 0x00, 0x80, 0xc2, 0x0c]),
        ("aggregation too short", &[0xfe, 0x08, 0x00, 0x12, 0x0f, 0x03, 0, 0, 0, 0]),
        ("maximum frame of one byte", &[0xfe, 0x05, 0x00, 0x12, 0x0f, 0x04, 5]),
    ] {
        let parsed = parse(&frame(&[tlv, &[0x0a, 0x01, b'x']].concat())).unwrap();
        assert_eq!((parsed.discarded, parsed.unrecognized), (1, 0), "{defect}");
        assert_eq!(parsed.pdu.system_name, Some(Text::new("x")), "{defect}: the next TLV is read");
    }
    let long = [&[0x0b, 0x00][..], &[b'n'; 256]].concat();
    assert_eq!(counts(&long), (1, 0), "a name of 256 bytes");
    assert_eq!(counts(&[0x0a, 0x05, b'x']), (1, 0), "a TLV past the end of the frame");
    assert_eq!(counts(&[0x0a]), (1, 0), "half a header");
    assert_eq!(counts(&[0x00, 0x01, 0x00, 0x0a]), (1, 0), "an end with information");
    assert_eq!(counts(&[0x0a, 0x01, b'x', 0x0a, 0x01, b'y']), (1, 0), "a second name");
    let pfc = [0xfe, 0x06, 0x00, 0x80, 0xc2, 0x0b, 0x08, 0x18];
    assert_eq!(counts(&[pfc, pfc].concat()), (1, 0), "a second PFC TLV");
}

#[test]
fn unknown_tlvs_are_counted_and_skipped() {
    let unknown = [
        &[0x12, 0x00][..],                                 // type 9, reserved
        &[0xfc, 0x01, 0x00],                               // type 126, reserved
        &[0xfe, 0x04, 0x00, 0x12, 0xbb, 0x01],             // TIA
        &[0xfe, 0x06, 0x00, 0x80, 0xc2, 0x06, 0x00, 0x01], // management VID
        &[0xfe, 0x05, 0x00, 0x1b, 0x21, 0x01, 0x00],       // another subtype of CEE's OUI
        &[0x0a, 0x01, b'x'],
    ]
    .concat();
    let parsed = parse(&frame(&unknown)).unwrap();
    assert_eq!((parsed.discarded, parsed.unrecognized), (0, 5));
    assert_eq!(parsed.pdu.system_name, Some(Text::new("x")));
}

#[test]
fn bytes_behind_known_fields_are_ignored() {
    assert_eq!(counts(&[0xfe, 0x07, 0x00, 0x80, 0xc2, 0x0b, 0x08, 0x18, 0xff]), (0, 0));
    let rows = clean(&frame(&[0xfe, 0x0a, 0x00, 0x80, 0xc2, 0x0c, 0, 0x63, 0x12, 0xb7, 0x85, 0x00]));
    assert_eq!(rows.dot1.applications.unwrap().len(), 1, "an incomplete row");
}

#[test]
fn lists_of_a_peer_are_bounded() {
    let address = [0x10, 0x0c, 5, 1, 10, 0, 0, 1, 1, 0, 0, 0, 0, 0];
    let vlan = [0xfe, 0x08, 0x00, 0x80, 0xc2, 0x03, 0, 1, 1, b'v'];
    let pdu = clean(&frame(&[address.repeat(40), vlan.repeat(40)].concat()));
    assert_eq!((pdu.management.len(), pdu.dot1.vlan_names.len()), (MOST_ADDRESSES, MOST_VLANS));
}

#[test]
fn tlvs_without_room_are_omitted_and_counted() {
    let mut pdu = minimal();
    pdu.management = vec![ManagementAddress { oid: vec![1; 128], ..ManagementAddress::of([10, 0, 0, 1].into()) }; 20];
    let emitted = pdu.emit(SOURCE);
    assert!(emitted.frame.len() <= 1514 && emitted.omitted == 10, "{}, {}", emitted.frame.len(), emitted.omitted);
    assert_eq!(clean(&emitted.frame).management.len(), MOST_ADDRESSES);
}

fn text() -> impl Strategy<Value = Option<Text>> {
    prop::option::of("[ -~\u{e4}\u{3b1}\u{1f600}]{0,60}".prop_map(|text| Text::new(&text)))
}

fn table() -> impl Strategy<Value = EtsTable> {
    (prop::array::uniform8(0_u8..16), any::<[u8; 8]>(), any::<[u8; 8]>()).prop_map(
        |(class_of, bandwidth, algorithm)| EtsTable { class_of, bandwidth, algorithm: algorithm.map(Algorithm) },
    )
}

prop_compose! {
    fn dot1()(
        port_vlan: Option<u16>,
        aggregation in prop::option::of(aggregation()),
        congestion: Option<(u8, u8)>,
        ets in prop::option::of((any::<bool>(), any::<bool>(), 1_u8..=8, table())),
        recommendation in prop::option::of(table()),
        pfc in prop::option::of((any::<bool>(), any::<bool>(), 0_u8..16, any::<u8>())),
        rows in prop::option::of(prop::collection::vec((0_u8..8, 0_u8..8, any::<u16>()), 0..80)),
    ) -> Dot1 {
        Dot1 {
            port_vlan,
            vlan_names: Vec::new(),
            aggregation,
            congestion: congestion.map(|(priorities, ready)| CongestionNotification {
                priorities: ClassSet::from_bits(priorities),
                ready: ClassSet::from_bits(ready),
            }),
            ets: ets.map(|(is_willing, has_credit_based, classes, table)| {
                EtsConfiguration { is_willing, has_credit_based, classes, table }
            }),
            ets_recommendation: recommendation.map(EtsRecommendation),
            pfc: pfc.map(|(is_willing, bypasses_macsec, capability, enabled)| {
                PfcConfiguration { is_willing, bypasses_macsec, capability, enabled: ClassSet::from_bits(enabled) }
            }),
            applications: rows.map(|rows| {
                let row = |(priority, selector, protocol)| Application { priority, selector: Selector(selector), protocol };
                rows.into_iter().map(row).collect()
            }),
        }
    }
}

fn aggregation() -> impl Strategy<Value = Aggregation> {
    let parts = (any::<bool>(), any::<bool>(), any::<u32>());
    parts.prop_map(|(is_capable, is_enabled, port)| Aggregation { is_capable, is_enabled, port })
}

fn management() -> impl Strategy<Value = Vec<ManagementAddress>> {
    let address = prop::collection::vec(any::<u8>(), 1..=31);
    let oid = prop::collection::vec(any::<u8>(), 0..=20);
    let one = (any::<u8>(), address, any::<u8>(), any::<u32>(), oid).prop_map(
        |(family, address, interface_subtype, interface, oid)| ManagementAddress {
            family,
            address,
            interface_subtype,
            interface,
            oid,
        },
    );
    prop::collection::vec(one, 0..4)
}

prop_compose! {
    fn pdu()(
        chassis in (any::<u8>(), prop::collection::vec(any::<u8>(), 1..=100)),
        port in (any::<u8>(), prop::collection::vec(any::<u8>(), 1..=100)),
        ttl in 1_u16..,
        texts in (text(), text(), text()),
        capabilities: Option<(u16, u16)>,
        management in management(),
        dot1 in dot1(),
        dot3 in (prop::option::of(aggregation()), any::<Option<u16>>()),
        instance: Option<u64>,
    ) -> Lldpdu {
        Lldpdu {
            chassis: ChassisId { subtype: chassis.0, id: chassis.1 },
            port: PortId { subtype: port.0, id: port.1 },
            ttl,
            port_description: texts.0,
            system_name: texts.1,
            system_description: texts.2,
            capabilities: capabilities.map(|(supported, enabled)| Capabilities { supported, enabled }),
            management,
            dot1,
            dot3: Dot3 { mac_phy: None, aggregation: dot3.0, max_frame: dot3.1 },
            instance,
            speaks_cee: false,
        }
    }
}

proptest! {
    #[test]
    fn emitted_data_unit_is_parsed_back(pdu in pdu()) {
        let emitted = pdu.emit(SOURCE);
        prop_assert_eq!(emitted.omitted, 0);
        prop_assert_eq!(clean(&emitted.frame), pdu);
    }

    #[test]
    fn any_prefix_of_a_data_unit_is_read_or_refused(pdu in pdu(), length in 0_usize..1514) {
        let frame = pdu.emit(SOURCE).frame;
        let _ = parse(&frame[..length.min(frame.len())]);
    }
}
