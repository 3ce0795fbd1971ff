//! Statements computed from configurations, comparisons as a table, and remedies.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::compare::DscpRow;
use super::*;
use crate::config;
use crate::plan::SwitchSpec;
use crate::sets::ClassSet;
use crate::wire::MacAddr;
use crate::wire::lldp::{
    Aggregation, Algorithm, Application, Capabilities, ChassisId, EtsTable, Lldpdu, PortId, Selector, Text,
};

const PORTS: &str =
    "[{name: p1, device: \"net_af_packet0,iface=a\", speed: 25G, mtu: 9000}, {name: p2, device: net_tap1, speed: 25G}]";

fn spec(text: &str) -> SwitchSpec {
    config::parse("test.yaml", text).unwrap_or_else(|errors| panic!("{errors}")).switch
}

static ROCE: LazyLock<SwitchSpec> = LazyLock::new(|| spec(&format!("{{preset: roce, ports: {PORTS}}}")));

fn roce() -> SwitchSpec {
    ROCE.clone()
}

fn port(spec: &SwitchSpec, index: usize) -> Stated {
    let system =
        System { name: "tor1".to_owned(), description: "Holdfast".to_owned(), management: vec![[10, 0, 0, 1].into()] };
    stated(spec, index, &system, Aggregation::default()).unwrap()
}

/// Rows of a selector as value and priority.
fn rows(stated: &Stated, selector: Selector) -> Vec<(u16, u8)> {
    let rows = stated.pdu.dot1.applications.iter().flatten().filter(|row| row.selector == selector);
    rows.map(|row| (row.protocol, row.priority)).collect()
}

#[test]
fn preset_states_its_lossless_class() {
    let stated = port(&roce(), 0);
    let pdu = &stated.pdu;
    assert_eq!((pdu.chassis.clone(), pdu.port.to_string()), (ChassisId::mac(roce().ports[0].mac), "p1".to_owned()));
    let bridge = Capabilities { supported: Capabilities::BRIDGE, enabled: Capabilities::BRIDGE };
    assert_eq!(pdu.capabilities, Some(bridge));
    let pfc = pdu.dot1.pfc.unwrap();
    assert_eq!(
        (pfc.enabled, pfc.capability, pfc.is_willing, pfc.bypasses_macsec),
        (ClassSet::only(3), 8, false, false)
    );
    let ets = pdu.dot1.ets.unwrap();
    assert!(!ets.is_willing && !ets.has_credit_based && ets.classes == 8);
    assert_eq!(ets.table.class_of, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(ets.table.bandwidth.iter().map(|&share| u32::from(share)).sum::<u32>(), 100);
    assert_eq!((ets.table.algorithm[6], ets.table.bandwidth[6]), (Algorithm::STRICT, 0), "CNPs are strict");
    assert_eq!(pdu.dot1.ets_recommendation.unwrap().0, ets.table);
    assert_eq!(rows(&stated, Selector::DATAGRAM), [(4791, 3)]);
    assert_eq!(rows(&stated, Selector::DSCP), (24..32).map(|dscp| (dscp, 3)).collect::<Vec<_>>());
    assert_eq!(pdu.dot1.congestion.unwrap().priorities, ClassSet::EMPTY, "no congestion points");
    assert_eq!((pdu.dot1.port_vlan, pdu.dot3.max_frame), (Some(1), Some(9022)));
    assert_eq!(pdu.dot1.aggregation, Some(Aggregation::default()), "neither capable nor enabled");
    assert_eq!(pdu.dot3.aggregation, None, "its old form is deprecated");
    assert!(super::stated(&roce(), 2, &System::default(), Aggregation::default()).is_none());
}

#[test]
fn description_of_a_port_is_stated_and_its_name_without_one() {
    let mut spec = roce();
    spec.ports[1].live.description = "rack 7, server 3".to_owned();
    let stated = [0, 1].map(|index| port(&spec, index).pdu.port_description.map(|text| text.as_str().to_owned()));
    assert_eq!(stated, [Some("p1".to_owned()), Some("rack 7, server 3".to_owned())]);
}

#[test]
fn statement_fits_a_frame_whatever_the_names() {
    let text = "{preset: roce, ports: [{name: p1, device: net_tap0, speed: 25G}]}";
    let mut spec = spec(text);
    spec.ports[0].name = "n".repeat(400);
    spec.ports[0].live.marks.dscp_to_tc = [3; 64];
    let system = System {
        name: "s".repeat(400),
        description: "d".repeat(400),
        management: vec![[10, 0, 0, 1].into(), "2001:db8::1".parse().unwrap()],
    };
    let emitted = stated(&spec, 0, &system, Aggregation::default()).unwrap().pdu;
    let emitted = Lldpdu { ttl: 121, instance: Some(u64::MAX), ..emitted }.emit(MacAddr([2; 6]));
    assert_eq!(emitted.omitted, 0, "{} bytes", emitted.frame.len());
}

#[test]
fn port_states_its_vlan_and_frame_size() {
    let text = "{ports: [
        {name: p1, device: net_tap0, speed: 25G, vlan: {tagged: [20], native: 10}},
        {name: p2, device: net_tap1, speed: 25G, vlan: {tagged: [20]}}]}";
    let Ok(config) = config::parse("test.yaml", text) else { panic!("{:?}", config::parse("test.yaml", text)) };
    let spec = config.switch;
    let of = |index: usize| (port(&spec, index).pdu.dot1.port_vlan, port(&spec, index).pdu.dot3.max_frame);
    assert_eq!(of(0), (Some(10), Some(1522)), "MTU, header, tag and frame check sequence");
    assert_eq!(of(1), (Some(0), Some(1522)), "no VLAN of untagged frames");
    let mut routed = spec.clone();
    routed.ports[0].vlan = crate::forward::VlanMode::Routed(4094);
    assert_eq!((port(&routed, 0).pdu.dot1.port_vlan, port(&routed, 0).pdu.dot3.max_frame), (Some(0), Some(1518)));
}

#[test]
fn port_without_pfc_frames_states_none() {
    for (mode, is_application) in [(crate::pfc::PfcMode::Off, false), (crate::pfc::PfcMode::Queue, true)] {
        let mut spec = roce();
        spec.ports[0].pfc = mode;
        let stated = port(&spec, 0);
        assert_eq!(stated.lossless(), ClassSet::EMPTY, "{mode:?}");
        assert_eq!(!rows(&stated, Selector::DATAGRAM).is_empty(), is_application, "{mode:?}");
    }
}

#[test]
fn priorities_follow_the_maps() {
    use crate::qos::Trust;
    let mut spec = roce();
    // Class 3 has group 4: PFC names 4.
    (spec.classes.tc_to_group[3], spec.classes.tc_to_group[4]) = (4, 3);
    spec.classes.pfc_to_queue.swap(3, 4);
    spec.ports[0].buffer.groups.swap(3, 4);
    let stated = port(&spec, 0);
    assert_eq!((stated.lossless(), rows(&stated, Selector::DATAGRAM)), (ClassSet::only(4), vec![(4791, 4)]));
    assert_eq!(stated.pdu.dot1.ets.unwrap().table.class_of, [0, 1, 2, 4, 3, 5, 6, 7]);

    let mut by_pcp = roce();
    by_pcp.ports[0].live.trust = Trust::Pcp;
    let stated = port(&by_pcp, 0);
    assert_eq!((rows(&stated, Selector::DATAGRAM), rows(&stated, Selector::DSCP)), (vec![(4791, 3)], vec![]));
    by_pcp.ports[0].live.marks.pcp_to_tc = [0, 1, 2, 0, 4, 3, 6, 7];
    assert_eq!(rows(&port(&by_pcp, 0), Selector::DATAGRAM), [(4791, 5)], "the PCP that reaches the lossless class");

    let mut by_port = roce();
    (by_port.ports[0].live.trust, by_port.ports[0].live.port_class) = (Trust::Port, 3);
    assert_eq!(rows(&port(&by_port, 0), Selector::DATAGRAM), [(4791, 3)]);
}

#[test]
fn congestion_points_are_stated() {
    let text = format!("{{preset: roce, classes: {{3: {{qcn: on}}}}, ports: {PORTS}}}");
    let congestion = port(&spec(&text), 0).pdu.dot1.congestion.unwrap();
    assert_eq!((congestion.priorities, congestion.ready), (ClassSet::only(3), ClassSet::only(3)));
}

#[test]
fn queues_that_no_priority_uses_have_no_share() {
    let mut spec = roce();
    spec.classes.pfc_to_queue = [0, 0, 0, 3, 0, 0, 0, 0];
    spec.queues[0].discipline = crate::qos::QueueDiscipline::Dwrr { weight: 1 };
    spec.queues[3].discipline = crate::qos::QueueDiscipline::Dwrr { weight: 2 };
    let table = port(&spec, 0).pdu.dot1.ets.unwrap().table;
    assert_eq!(table.bandwidth, [33, 0, 0, 67, 0, 0, 0, 0]);
    assert_eq!(table.algorithm[..4], [Algorithm::ETS, Algorithm::STRICT, Algorithm::STRICT, Algorithm::ETS]);
}

/// A host that states the same as the port.
fn host(stated: &Stated) -> Lldpdu {
    let mut pdu = stated.pdu.clone();
    (pdu.chassis, pdu.port, pdu.ttl) = (ChassisId::mac(MacAddr([2; 6])), PortId::name("ens1f0"), 121);
    pdu.system_description = Some(Text::new("Linux 6.1"));
    pdu
}

/// Differences and notes of a host that `change` has changed.
fn compared(change: impl FnOnce(&mut Lldpdu)) -> (Lldpdu, Comparison) {
    let stated = port(&roce(), 0);
    let mut peer = host(&stated);
    change(&mut peer);
    let comparison = compare(&stated, &peer, false);
    (peer, comparison)
}

/// Changes a host.
type Change = fn(&mut Lldpdu);

fn ets(pdu: &mut Lldpdu) -> &mut EtsTable {
    &mut pdu.dot1.ets.as_mut().unwrap().table
}

fn replace_rows(pdu: &mut Lldpdu, rows: &[(Selector, u16, u8)]) {
    let row = |&(selector, protocol, priority): &_| Application { priority, selector, protocol };
    pdu.dot1.applications = Some(rows.iter().map(row).collect());
}

/// Changes of a host, each with the difference that it makes: name, sentence, command.
const DIFFERENCES: [(Change, &str, &str, &str); 16] = [
    (
        |pdu| pdu.dot1.pfc = None,
        "pfc_absent",
        "the peer states no PFC; this port is lossless for priorities 3",
        "lldptool -T -i ens1f0 -V PFC enableTx=yes willing=no enabled=3",
    ),
    (
        |pdu| (pdu.dot1.pfc, pdu.speaks_cee) = (None, true),
        "pfc_absent",
        "the peer states no PFC, only the pre-standard DCBX of CEE; this port is lossless for priorities 3",
        "lldptool -T -i ens1f0 -V PFC enableTx=yes willing=no enabled=3",
    ),
    (
        |pdu| pdu.dot1.pfc.as_mut().unwrap().enabled = ClassSet::from_bits(0x30),
        "pfc_priorities",
        "the peer has PFC for priorities 4, 5, this port for 3",
        "dcb pfc set dev ens1f0 prio-pfc all:off 3:on",
    ),
    (
        |pdu| {
            let pfc = pdu.dot1.pfc.as_mut().unwrap();
            (pfc.enabled, pfc.is_willing) = (ClassSet::EMPTY, true);
        },
        "pfc_priorities",
        "the peer has PFC for priorities none, this port for 3, although it is willing",
        "dcb pfc set dev ens1f0 prio-pfc all:off 3:on",
    ),
    (
        |pdu| pdu.dot3.max_frame = Some(1518),
        "max_frame",
        "the peer takes frames of 1518 bytes, this port of 9022: the peer may drop longer frames",
        "ip link set dev ens1f0 mtu 9000",
    ),
    (
        |pdu| pdu.dot3.max_frame = Some(9216),
        "max_frame",
        "the peer takes frames of 9216 bytes, this port of 9022: longer frames are dropped here",
        "ip link set dev ens1f0 mtu 9000",
    ),
    (
        |pdu| replace_rows(pdu, &[(Selector::DATAGRAM, 4791, 5)]),
        "roce_priority",
        "the peer sends RoCE (UDP 4791) in priority 5, this port expects 3",
        "dcb app replace dev ens1f0 dgram-port-prio 4791:3",
    ),
    (
        |pdu| replace_rows(pdu, &[(Selector::ANY_PORT, 4791, 0)]),
        "roce_priority",
        "the peer sends RoCE (UDP 4791) in priority 0, this port expects 3",
        "dcb app replace dev ens1f0 dgram-port-prio 4791:3",
    ),
    (
        |pdu| replace_rows(pdu, &[(Selector::DSCP, 26, 4), (Selector::DSCP, 24, 3)]),
        "dscp_priority",
        "the peer has DSCP 26 in priority 4, this port in 3",
        "dcb app replace dev ens1f0 dscp-prio 26:3",
    ),
    (
        |pdu| replace_rows(pdu, &[(Selector::DSCP, 10, 3), (Selector::DSCP, 26, 0)]),
        "dscp_priority",
        "the peer has DSCP 10 in priority 3, for this port it is lossy; DSCP 26 in priority 0, this port in 3",
        "dcb app replace dev ens1f0 dscp-prio 26:3; dcb app del dev ens1f0 dscp-prio 10:3",
    ),
    (
        |pdu| ets(pdu).algorithm[3] = Algorithm::STRICT,
        "ets_algorithm",
        "the peer schedules priority 3 by strict, this port by ets",
        ETS_COMMAND,
    ),
    (
        |pdu| ets(pdu).algorithm[3] = Algorithm(9),
        "ets_algorithm",
        "the peer schedules priority 3 by reserved, this port by ets",
        ETS_COMMAND,
    ),
    (|pdu| ets(pdu).bandwidth[3] += 2, "ets_bandwidth", ETS_SENTENCE, ETS_COMMAND),
    (
        |pdu| ets(pdu).class_of[0] = 3,
        "ets_shared",
        "the peer has lossless priority 3 in one traffic class with 0; this port separates them",
        ETS_COMMAND,
    ),
    (
        |pdu| pdu.dot1.port_vlan = Some(7),
        "port_vlan",
        "untagged frames are in VLAN 7 for the peer, in VLAN 1 for this port",
        "bridge vlan add dev ens1f0 vid 1 pvid untagged",
    ),
    (
        |pdu| {
            pdu.port = PortId { subtype: PortId::MAC, id: vec![2; 6] };
            pdu.port_description = Some(Text::new("eth7"));
            pdu.dot3.max_frame = Some(1500);
        },
        "max_frame",
        "the peer takes frames of 1500 bytes, this port of 9022: the peer may drop longer frames",
        "ip link set dev eth7 mtu 9000",
    ),
];

const ETS_SENTENCE: &str = "the peer gives priority 3 42 % of the bandwidth, this port 40 %";
const ETS_COMMAND: &str = "dcb ets set dev ens1f0 prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 \
     tc-tsa 0:ets 1:ets 2:ets 3:ets 4:ets 5:ets 6:strict 7:ets tc-bw 0:10 1:10 2:10 3:40 4:10 5:10 6:0 7:10";

#[test]
fn each_difference_has_its_name_sentence_and_command() {
    for (change, name, sentence, command) in DIFFERENCES {
        let (peer, comparison) = compared(change);
        let [difference] = &comparison.differences[..] else { panic!("{name}: {:?}", comparison.differences) };
        assert_eq!((difference.name(), difference.sentence().as_str()), (name, sentence));
        assert_eq!(remedy(difference, &peer).command, command, "{name}");
    }
    let names: Vec<&str> = DIFFERENCES.iter().map(|row| row.1).collect();
    assert!(DifferenceKind::TABLE.iter().all(|(kind, name)| names.contains(name) && kind.name() == *name));
}

#[test]
fn host_that_agrees_or_says_nothing_has_no_difference() {
    let agreeing: [(&str, Change); 12] = [
        ("the same", |_| {}),
        ("no TLVs but PFC", |pdu| {
            pdu.dot1 = crate::wire::lldp::Dot1 { pfc: pdu.dot1.pfc, ..Default::default() };
            pdu.dot3 = Default::default();
        }),
        ("lldpd states the MTU", |pdu| pdu.dot3.max_frame = Some(9000)),
        ("MTU and header", |pdu| pdu.dot3.max_frame = Some(9014)),
        ("two tags", |pdu| pdu.dot3.max_frame = Some(9026)),
        ("no VLAN", |pdu| pdu.dot1.port_vlan = Some(0)),
        ("a share of one percent more", |pdu| ets(pdu).bandwidth[3] += 1),
        ("other lossy classes", |pdu| {
            let table = ets(pdu);
            (table.class_of, table.bandwidth[0]) = ([0, 0, 0, 3, 0, 0, 0, 0], 50);
        }),
        ("other lossy DSCPs", |pdu| replace_rows(pdu, &[(Selector::DSCP, 46, 5), (Selector::DSCP, 26, 3)])),
        ("another application", |pdu| replace_rows(pdu, &[(Selector::STREAM, 3260, 4)])),
        ("DSCP beyond six bits", |pdu| replace_rows(pdu, &[(Selector::DSCP, 1026, 3)])),
        ("reserved class numbers", |pdu| ets(pdu).class_of[0] = 8),
    ];
    for (case, change) in agreeing {
        assert_eq!(compared(change).1.differences, [], "{case}");
    }
}

#[test]
fn willing_host_that_has_adopted_is_a_note() {
    let (_, comparison) = compared(|pdu| {
        pdu.dot1.pfc.as_mut().unwrap().is_willing = true;
        pdu.dot1.ets.as_mut().unwrap().is_willing = true;
    });
    assert_eq!((comparison.differences, comparison.notes), (vec![], vec![Note::WillingPfc, Note::WillingEts]));
}

#[test]
fn cee_and_few_classes_are_notes() {
    let (_, comparison) = compared(|pdu| {
        pdu.speaks_cee = true;
        pdu.dot1.pfc.as_mut().unwrap().capability = 0;
    });
    let few = Note::FewPfcClasses { theirs: 0, needed: 1 };
    assert_eq!((comparison.differences, comparison.notes.clone()), (vec![], vec![few, Note::Cee]));
    assert_eq!(comparison.notes.iter().map(|note| note.name()).collect::<Vec<_>>(), ["few_pfc_classes", "cee"]);
}

#[test]
fn peer_of_a_lossy_port_needs_no_pfc() {
    let mut spec = roce();
    spec.ports[0].pfc = crate::pfc::PfcMode::Queue;
    let stated = port(&spec, 0);
    let mut peer = host(&stated);
    peer.dot1.pfc = None;
    assert_eq!(compare(&stated, &peer, false).differences, []);
}

/// The description of a system, and its commands for a difference.
#[track_caller]
fn commands(description: &str, change: Change, first: &str, mellanox: Option<&str>) {
    let (mut peer, comparison) = compared(change);
    peer.system_description = Some(Text::new(description));
    let remedy = remedy(&comparison.differences[0], &peer);
    assert_eq!((remedy.command.as_str(), remedy.mellanox.as_deref()), (first, mellanox));
}

#[test]
fn commands_follow_the_description_of_the_system() {
    let pfc: Change = |pdu| pdu.dot1.pfc.as_mut().unwrap().enabled = ClassSet::from_bits(0x20);
    let mellanox = "mlnx_qos -i ens1f0 --pfc 0,0,0,1,0,0,0,0";
    commands("", pfc, "dcb pfc set dev ens1f0 prio-pfc all:off 3:on", Some(mellanox));
    commands("Mellanox ConnectX-6 firmware", pfc, mellanox, None);
    let windows = "Enable-NetQosFlowControl -Priority 3; Disable-NetQosFlowControl -Priority 0,1,2,4,5,6,7";
    commands("Microsoft Windows Server 2022", pfc, windows, None);
    let ets: Change = |pdu| ets(pdu).bandwidth[3] = 10;
    let mellanox = "mlnx_qos -i ens1f0 --prio_tc 0,1,2,3,4,5,6,7 --tsa ets,ets,ets,ets,ets,ets,strict,ets \
         --tcbw 10,10,10,40,10,10,0,10";
    commands("mlnx", ets, mellanox, None);
    let windows = "New-NetQosTrafficClass -Name \"P3\" -Priority 3 -Algorithm ETS -BandwidthPercentage 40";
    commands("Windows", ets, windows, None);
    let dscp: Change = |pdu| replace_rows(pdu, &[(Selector::DSCP, 26, 4), (Selector::DSCP, 8, 3)]);
    let mellanox = "mlnx_qos -i ens1f0 --dscp2prio set,26,3; mlnx_qos -i ens1f0 --dscp2prio del,8,3";
    commands("BlueField", dscp, mellanox, None);
    let mtu: Change = |pdu| pdu.dot3.max_frame = Some(1522);
    commands("connectx", mtu, "ip link set dev ens1f0 mtu 9000", None);
    let windows = "Set-NetAdapterAdvancedProperty -Name \"NIC\" -RegistryKeyword \"*JumboPacket\" -RegistryValue 9014";
    commands("Windows", mtu, windows, None);
}

#[test]
fn texts_of_peers_do_not_enter_commands() {
    for name in
        ["eth0;reboot", "$(id)", "-f", "a b", "a\nb", "eth0`id`", "../etc", "a|b", "\u{e9}th0", "", "sixteen-byte-dev"]
    {
        let (mut peer, comparison) = compared(|pdu| pdu.dot3.max_frame = Some(1518));
        peer.port = PortId { subtype: PortId::INTERFACE_NAME, id: name.as_bytes().to_vec() };
        peer.port_description = Some(Text::new(name));
        assert_eq!(remedy(&comparison.differences[0], &peer).command, "ip link set dev DEV mtu 9000", "{name:?}");
    }
}

fn any_table() -> impl Strategy<Value = EtsTable> {
    (prop::array::uniform8(0_u8..16), any::<[u8; 8]>(), any::<[u8; 8]>()).prop_map(
        |(class_of, bandwidth, algorithm)| EtsTable { class_of, bandwidth, algorithm: algorithm.map(Algorithm) },
    )
}

proptest! {
    #[test]
    fn any_statements_can_be_compared(
        enabled: Option<u8>,
        table in any_table(),
        rows in prop::collection::vec((0_u8..8, 0_u8..8, any::<u16>()), 0..168),
        max_frame: Option<u16>,
        description in "[a-zA-Z ]{0,20}",
    ) {
        let (peer, comparison) = compared(|pdu| {
            pdu.dot1.pfc = enabled.map(|bits| crate::wire::lldp::PfcConfiguration {
                enabled: ClassSet::from_bits(bits), ..Default::default()
            });
            *ets(pdu) = table;
            let row = |&(priority, selector, protocol): &_| Application { priority, selector: Selector(selector), protocol };
            pdu.dot1.applications = Some(rows.iter().map(row).collect());
            pdu.dot3.max_frame = max_frame;
            pdu.system_description = Some(Text::new(&description));
        });
        let kinds: Vec<DifferenceKind> = comparison.differences.iter().map(Difference::kind).collect();
        prop_assert!(kinds.is_sorted(), "in the order of their table: {kinds:?}");
        for difference in &comparison.differences {
            let remedy = remedy(difference, &peer);
            prop_assert!(!difference.sentence().is_empty() && !remedy.command.is_empty());
            if let Difference::DscpPriority { rows } = difference {
                let is_right = |row: &DscpRow| row.dscp < 64 && row.ours != Some(row.theirs);
                prop_assert!(rows.iter().all(is_right));
            }
        }
    }
}
