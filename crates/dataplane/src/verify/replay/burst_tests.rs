//! Compares a burst in the pipeline with the same frames one by one: all counts must agree, for every fast path that a
//! burst can take. No frame leaves, since all ports are paused.

use std::cell::Cell;

use super::differential_tests::{Bed, EGRESSES, PORTS, bytes, same_parts, spec};
use super::*;
use crate::dataplane::frame::fast_path::{self, FastPath};
use crate::dataplane::pipeline::Pipeline;
use crate::forward::VlanMode;
use crate::io::Packet;
use crate::isa::Isa;
use crate::pfc::PfcMode;
use crate::qos::{Rewrite, Trust};
use crate::sets::PortSet;
use crate::units::Nanos;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Headers of a frame. Most frames of a burst have the same.
#[derive(Debug, Clone, Copy)]
struct Look {
    network: Network,
    is_tcp: bool,
    /// TCI of the tag.
    tci: Option<u16>,
    is_service: bool,
    /// Whether a second tag follows the first.
    is_double: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    /// IPv4 with a protocol that the switch does not parse.
    Unknown,
    V4,
    V6,
}

/// A frame, and its deviations from an ordinary one.
#[derive(Debug, Clone, Copy)]
struct Sent {
    frame: Frame,
    look: Option<Look>,
    is_unknown: bool,
    /// Whether the source was seen behind another port before.
    has_moved: bool,
    /// Bytes by which the frame is shorter than its packet.
    missing_bytes: u16,
}

impl Sent {
    /// Returns the frame without its deviations.
    fn ordinary(self) -> Self {
        let Frame { port, egress, .. } = self.frame;
        let egress = if port == egress { EGRESSES.start + EGRESSES.end - 1 - egress } else { egress };
        Self {
            frame: Frame { egress, ..self.frame },
            look: None,
            is_unknown: false,
            has_moved: false,
            missing_bytes: 0,
        }
    }

    /// Builds the frame for a burst in which most frames look like `usual`.
    fn bytes(self, usual: Look) -> Vec<u8> {
        let look = self.look.unwrap_or(usual);
        // At least the length of the headers. The wire pads frames below 60 bytes.
        let least = match look.network {
            Network::V6 => 80,
            _ if look.is_tcp => 60,
            _ => 46,
        };
        let frame = Frame { bytes: self.frame.bytes.max(least), ..self.frame };
        let mut bytes = bytes(&frame);
        look.put_on(&mut bytes);
        look.lengthen(&mut bytes, self.missing_bytes);
        if self.is_unknown {
            bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 99]);
        }
        if self.has_moved {
            let other = Frame { port: (self.frame.port + 1) % PORTS, ..self.frame };
            bytes[6..12].copy_from_slice(&super::differential_tests::bytes(&other)[6..12]);
        }
        if look.tci.is_some() && look.is_double {
            bytes.splice(12..12, [0x81, 0x00, 0x60, 7]);
        }
        if let Some(tci) = look.tci {
            let ethertype = if look.is_service { [0x88, 0xa8] } else { [0x81, 0x00] };
            bytes.splice(12..12, ethertype.into_iter().chain(tci.to_be_bytes()));
        }
        bytes
    }
}

impl Look {
    fn put_on(self, bytes: &mut [u8]) {
        let (len, class, protocol) = (bytes.len() as u16, bytes[15], if self.is_tcp { 6 } else { 17 });
        let segment = match self.network {
            Network::Unknown => return,
            Network::V4 => {
                bytes[23] = protocol;
                34
            }
            Network::V6 => {
                bytes[12..16].copy_from_slice(&[0x86, 0xdd, 0x60 | class >> 4, class << 4]);
                bytes[16..18].fill(0);
                bytes[18..20].copy_from_slice(&(len - 54).to_be_bytes());
                bytes[20] = protocol;
                54
            }
        };
        if self.is_tcp {
            bytes[segment + 12] = 0x50;
        } else {
            bytes[segment + 4..segment + 6].copy_from_slice(&(len - segment as u16).to_be_bytes());
        }
    }

    /// Makes the packet in a frame state `more` bytes than it has.
    fn lengthen(self, bytes: &mut [u8], more: u16) {
        let at = if self.network == Network::V6 { 18 } else { 16 };
        let len = u16::from_be_bytes([bytes[at], bytes[at + 1]]) + more;
        bytes[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }
}

fn look() -> impl Strategy<Value = Look> {
    let network = prop_oneof![4 => Just(Network::V4), 2 => Just(Network::V6), 1 => Just(Network::Unknown)];
    // Priority tags, tags of two VLANs, and tags of a VLAN without members.
    let tci = (prop_oneof![1 => Just(0_u16), 6 => Just(1), 2 => Just(2), 1 => Just(9)], 0_u16..8);
    let tci = prop::option::of(tci.prop_map(|(vlan, pcp)| pcp << 13 | vlan));
    let odd = (prop::bool::weighted(0.1), prop::bool::weighted(0.2));
    (network, any::<bool>(), tci, odd).prop_map(|(network, is_tcp, tci, (is_service, is_double))| Look {
        network,
        is_tcp,
        tci,
        is_service,
        is_double,
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let ecn = prop_oneof![Just(Ecn::Ect0), Just(Ecn::NotEct)];
    let bytes = prop_oneof![12 => Just(60_u16), 4 => 60_u16..1515, 1 => 46_u16..60];
    let odd = (prop::option::weighted(0.03, look()), prop::bool::weighted(0.05), prop::bool::weighted(0.02));
    let missing = prop_oneof![30 => Just(0_u16), 1 => 1_u16..20];
    (0_u8..3, bytes, EGRESSES, ecn, odd, missing).prop_map(|(class, bytes, egress, ecn, odd, missing_bytes)| Sent {
        frame: Frame { port: 0, class, bytes, egress, ecn },
        look: odd.0,
        is_unknown: odd.1,
        has_moved: odd.2,
        missing_bytes,
    })
}

/// The mode of a port in VLANs 1, in which all stations are, and 2.
fn vlan() -> impl Strategy<Value = VlanMode> {
    prop_oneof![
        3 => Just(VlanMode::Access(1)),
        3 => Just(VlanMode::Trunk { tagged: vec![1, 2], native: None }),
        1 => Just(VlanMode::Trunk { tagged: vec![2], native: Some(1) }),
        1 => Just(VlanMode::Trunk { tagged: vec![1], native: Some(2) }),
    ]
}

fn rewrite() -> impl Strategy<Value = Rewrite> {
    let mark = |most: u8| prop::array::uniform8(prop::option::weighted(0.3, 0..most));
    prop_oneof![4 => Just(Rewrite::default()), 1 => (mark(64), mark(8)).prop_map(|(dscp, pcp)| Rewrite { dscp, pcp })]
}

/// A specification with larger pools than those for single frames, and mostly without a reserve of the port. Otherwise
/// no burst would be admitted at once.
fn roomy(policy: HeadroomPolicy) -> impl Strategy<Value = SwitchSpec> {
    let trust = prop_oneof![3 => Just(Trust::Dscp), 2 => Just(Trust::Pcp), 1 => Just(Trust::Port)];
    let ports = prop::collection::vec((vlan(), rewrite(), trust), PORTS);
    (spec(policy), 1_u32..12, prop::bool::weighted(0.3), ports).prop_map(|(mut spec, times, has_reserve, ports)| {
        for (port, (vlan, rewrite, trust)) in spec.ports.iter_mut().zip(ports) {
            (port.vlan, port.live.rewrite, port.live.trust) = (vlan, rewrite, trust);
        }
        spec.buffer.lossy_shared.0 *= times;
        spec.buffer.lossless_shared.0 *= times;
        spec.buffer.total.0 += 400 * times;
        // Some bursts arrive after XOFF.
        spec.buffer.headroom.0 *= times;
        let groups = spec.ports.iter_mut().flat_map(|port| &mut port.buffer.groups);
        groups.for_each(|group| group.headroom.0 *= times);
        // Floods leave by all ports, so each port must obey the pauses of its peer.
        spec.ports.iter_mut().for_each(|port| port.pfc = PfcMode::Asymmetric);
        spec.ports[2].mtu = if times % 2 == 0 { 600 } else { 1500 };
        // Bursts of 64 frames, or of 32.
        spec.poll_gap = Nanos(if times % 2 == 0 { 0 } else { 1000 });
        if !has_reserve {
            spec.ports.iter_mut().for_each(|port| port.buffer.reserve = [Cells(0); 2]);
            // Frames for a queue with a reserve are queued one by one.
            spec.queues.iter_mut().for_each(|queue| queue.reserve = Cells(0));
        }
        spec
    })
}

/// Disables the fast paths: each frame is looked up, rewritten and admitted separately.
fn take_the_long_ways(bed: &mut Bed) {
    bed.pipeline.isa = Isa::PLAIN;
    bed.pipeline.forwarder.cache.give_up();
    // This disables leaving without a rewrite, and treats every port as if it had a queue in a storm, which none has.
    bed.pipeline.rewriter.views.iter_mut().for_each(|view| *view = view.changing());
    bed.pipeline.rewriter.remarking = PortSet::ALL;
    bed.pipeline.ports.iter_mut().for_each(|port| port.smaller_mtu = PortSet::ALL);
    bed.pipeline.links.refusing = PortSet::ALL;
}

/// The port of a burst, the headers of most of its frames, whether it has frames with deviations, and its frames.
type Sending = (usize, Look, bool, Vec<Sent>);

/// Counts over all cases.
#[derive(Debug, Default)]
struct Happened {
    /// Frames in queues at the end.
    queued: Cell<u64>,
    /// Bursts that left without a rewrite: most frames tagged, or untagged and of IPv6.
    tagged: Cell<u64>,
    plain: Cell<u64>,
}

impl Happened {
    fn add(count: &Cell<u64>, more: u64) {
        count.set(count.get() + more);
    }
}

/// Sends each burst through both switches and compares their state.
fn agree(spec: &SwitchSpec, bursts: &[Sending], happened: &Happened) -> Result<(), TestCaseError> {
    let (mut whole, mut single) = (Bed::new(spec), Bed::new(spec));
    take_the_long_ways(&mut single);
    // Each form in turn.
    let forms: Vec<Isa> = Isa::all().collect();
    whole.pipeline.isa = forms[bursts.len() % forms.len()];
    for (index, (port, look, is_odd, burst)) in bursts.iter().enumerate() {
        for sent in burst {
            let sent = Sent { frame: Frame { port: *port, ..sent.frame }, ..*sent };
            let frame = if *is_odd { sent } else { sent.ordinary() }.bytes(*look);
            whole.io.inject(*port, &frame);
            single.io.inject(*port, &frame);
        }
        let before = fast_path::hits(FastPath::Unchanged);
        (0..2).for_each(|_| whole.poll());
        fast_path::without(&[FastPath::OfKind, FastPath::Usual], || (0..2).for_each(|_| single.poll()));
        let is_plain = look.network == Network::V6;
        let of_kind = [(&happened.tagged, look.tci.is_some()), (&happened.plain, look.tci.is_none() && is_plain)];
        let left = fast_path::hits(FastPath::Unchanged) - before;
        of_kind.into_iter().filter(|(_, is_so)| *is_so).for_each(|(count, _)| Happened::add(count, left));
        prop_assert_eq!(whole.drops(), single.drops(), "drops after burst {}", index);
        same_parts(&whole, &single, index)?;
        same_runs(&whole, &single)?;
    }
    Happened::add(&happened.queued, whole.pipeline.held_frames() as u64);
    prop_assert_eq!(frames(whole), frames(single));
    Ok(())
}

/// A queue that counts as one run is one, with the same charge, if its frames came one by one.
fn same_runs(whole: &Bed, single: &Bed) -> Result<(), TestCaseError> {
    let queues = |bed: &Bed| -> Vec<_> {
        let queues = bed.pipeline.ports.iter().flat_map(|port| &port.queues);
        queues.map(|queue| queue.as_one_run().map(|(run, desc)| (run, desc.ingress(), desc.group()))).collect()
    };
    for (whole, single) in queues(whole).into_iter().zip(queues(single)).filter(|(whole, _)| whole.is_some()) {
        prop_assert_eq!(whole, single);
    }
    Ok(())
}

/// Returns all queued frames: port, queue, descriptor and bytes.
fn frames(mut bed: Bed) -> Vec<(usize, usize, FrameDesc, Vec<u8>)> {
    let Pipeline { ports, egress, .. } = &mut bed.pipeline;
    let mut frames = Vec::new();
    for (port, state) in ports.iter_mut().enumerate() {
        for (number, queue) in state.queues.iter_mut().enumerate() {
            while let Some((packet, desc)) = queue.pop(&mut egress.slab) {
                frames.push((port, number, desc, packet.bytes().to_vec()));
            }
        }
    }
    frames
}

/// Paths that must have been taken.
const PATHS: [FastPath; 10] = [
    FastPath::Admitted,
    FastPath::WhileXoff,
    FastPath::Appended,
    FastPath::OfKind,
    FastPath::Lossless,
    FastPath::LosslessRefused,
    FastPath::InParts,
    FastPath::InVain,
    FastPath::Usual,
    FastPath::Truncated,
];

fn bursts_agree(policy: HeadroomPolicy) {
    let config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::with_cases(3000) };
    let bursts = prop::collection::vec(
        (0..PORTS, look(), prop::bool::weighted(0.4), prop::collection::vec(sent(), 1..65)),
        1..12,
    );
    let happened = Happened::default();
    let before = PATHS.map(fast_path::hits);
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(&(roomy(policy), bursts), |(spec, bursts)| agree(&spec, &bursts, &happened)) {
        panic!("{error}");
    }
    // These limits are for some 18,000 bursts.
    let [together, while_xoff, appended, of_kind, lossless, refused, in_parts, in_vain, usual, truncated] =
        PATHS.map(fast_path::hits);
    assert!(lossless - before[4] > 100, "{} lossless ones near a limit", lossless - before[4]);
    assert!(of_kind - before[3] > 1000, "{} read as one kind", of_kind - before[3]);
    assert!(refused - before[5] > 100, "{} with refused frames", refused - before[5]);
    // Few: large bursts soon fill the pools of the specification.
    assert!(appended - before[2] > 300, "{} queued in runs", appended - before[2]);
    let counts = [&happened.queued, &happened.tagged, &happened.plain].map(Cell::get);
    assert!(counts.iter().all(|&count| count > 100), "{counts:?}");
    assert!(together - before[0] > 1000, "{} admitted at once", together - before[0]);
    assert!(while_xoff - before[1] > 50, "{} while XOFF", while_xoff - before[1]);
    assert!(in_parts - before[6] > 100, "{} parts", in_parts - before[6]);
    assert!(
        usual - before[8] > 1000 && truncated - before[9] > 100,
        "{} read as usual, {} frames truncated",
        usual - before[8],
        truncated - before[9]
    );
    assert!(in_vain - before[7] > 10, "{} with parts tried in vain", in_vain - before[7]);
}

#[test]
fn burst_equals_its_frames_one_by_one_with_independent_headroom() {
    bursts_agree(HeadroomPolicy::Independent);
}

#[test]
fn burst_equals_its_frames_one_by_one_with_a_headroom_pool() {
    bursts_agree(HeadroomPolicy::SharedPool);
}

#[test]
fn burst_equals_its_frames_one_by_one_with_dynamic_headroom() {
    bursts_agree(HeadroomPolicy::Dynamic);
}
