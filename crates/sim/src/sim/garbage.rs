//! Malformed and strange frames, as from a broken NIC, a wrong driver or a fuzzer. Each has a shape drawn from a list;
//! the fields that the shape leaves open are drawn too.

use super::rng::Rng;
use super::routes::Cables;
use super::spec::{PortRef, Scenario};
use crate::qos::shaper::MIN_FRAME;
use crate::units::{BitRate, WIRE_OVERHEAD};
use crate::wire::MacAddr;
use crate::wire::mac_control;
use crate::wire::parse::{ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_SVLAN, ETHERTYPE_VLAN};

/// Stream of random numbers of the first garbage fault; fault number n uses the stream n further.
const GARBAGE_STREAM: u64 = 1 << 41;
const PAUSE: u16 = 0x0001;
const PFC: u16 = 0x0101;
const UDP: u8 = 17;
/// Ethertypes that the switch does not parse: ARP, MPLS, LLDP, an experimental type, and length values, which some take
/// for types.
const UNKNOWN: [u16; 7] = [0x0806, 0x8847, 0x88cc, 0x88b5, 0x0005, 0x05dc, 0xffff];
/// Destination address of LLDP, which no bridge relays.
const LINK_LOCAL: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);

/// A function that makes frames with one specific defect.
type Shape = fn(&mut Garbage) -> Vec<u8>;

/// Shapes that a switch never forwards, independent of its configuration.
const REFUSED: [Shape; 14] = [
    runt,
    cut_tag,
    reserved_vlan,
    oversize,
    bad_source,
    link_local,
    cut_ip,
    longer_ip,
    impossible_ipv4,
    impossible_ipv6,
    cut_control,
    cut_pause,
    unknown_control,
    tagged_control,
];
/// Shapes that a switch may forward.
const STRANGE: [Shape; 5] = [unknown_type, priority_tag, two_tags, cut_udp, impossible_udp];

/// The garbage that a host sends.
#[derive(Debug)]
pub struct Garbage {
    rng: Rng,
    rate: BitRate,
    /// Earliest time of the next frame.
    next_ps: u64,
    from: MacAddr,
    /// Other hosts that switches know in the VLAN of the port. Frames to them are not flooded; a flooded frame would
    /// circulate for ever in a loop of switches.
    to: Vec<MacAddr>,
    /// MTU of the host's switch port.
    mtu: usize,
}

impl Garbage {
    /// Returns the garbage of `host`, at `rate` on the wire, with the random numbers of fault number `fault`.
    #[must_use]
    pub fn new(scenario: &Scenario, host: usize, rate: BitRate, fault: usize) -> Self {
        let cables = Cables::new(scenario);
        let spec = |PortRef { switch, port }| &scenario.switches[switch].config.switch.ports[port];
        let vlan = |host: usize| cables.port_of(host).and_then(|port| spec(port).vlan.untagged());
        // Routers know only the hosts at their own switch by MAC address.
        let switch = |host: usize| cables.port_of(host).filter(|_| scenario.routed.is_some()).map(|port| port.switch);
        let others = scenario.hosts.iter().enumerate().filter(|(other, node)| *other != host && node.known);
        Self {
            rng: Rng::new(scenario.seed, GARBAGE_STREAM + fault as u64),
            rate,
            next_ps: 0,
            from: scenario.hosts[host].mac,
            to: others
                .filter(|&(other, _)| vlan(other) == vlan(host) && switch(other) == switch(host))
                .map(|(_, node)| node.mac)
                .collect(),
            mtu: cables.port_of(host).map_or(0, |port| spec(port).mtu.into()),
        }
    }

    /// Returns when the next frame is ready, `now` at the earliest.
    #[must_use]
    pub fn ready_at(&self, now: u64) -> u64 {
        self.next_ps.max(now)
    }

    /// Returns the frame that leaves at `now`. A frame that a switch may forward uses a class in which the host may be
    /// paused. None is drawn while the host `is_held` in any class.
    pub fn frame(&mut self, now: u64, is_held: bool) -> Vec<u8> {
        let may_forward = !is_held && !self.to.is_empty();
        let shapes = REFUSED.len() + if may_forward { STRANGE.len() } else { 0 };
        let shape = self.rng.below(shapes as u64) as usize;
        let frame = REFUSED.iter().chain(&STRANGE).nth(shape).map_or_else(Vec::new, |shape| shape(self));
        let bits = (frame.len().max(MIN_FRAME as usize) as u64 + u64::from(WIRE_OVERHEAD)) * 8;
        self.next_ps = now + (bits * 1_000_000_000_000).div_ceil(self.rate.0.max(1));
        frame
    }

    /// Draws a number from `low` to `high`, both included.
    fn between(&mut self, low: usize, high: usize) -> usize {
        self.rng.between(low as u64, high as u64) as usize
    }

    /// Returns `low` to `high` random bytes.
    fn noise(&mut self, low: usize, high: usize) -> Vec<u8> {
        (0..self.between(low, high)).map(|_| self.rng.next() as u8).collect()
    }

    /// Draws the address of another host; the own address if there is none.
    fn station(&mut self) -> MacAddr {
        if self.to.is_empty() { self.from } else { *self.rng.pick(&self.to) }
    }

    /// Returns a frame for a drawn other host.
    fn frame_of(&mut self, ethertype: u16, body: &[u8]) -> Vec<u8> {
        let (to, from) = (self.station(), self.from);
        frame(to, from, ethertype, body)
    }

    fn unknown(&mut self) -> u16 {
        *self.rng.pick(&UNKNOWN)
    }
}

fn frame(to: MacAddr, from: MacAddr, ethertype: u16, body: &[u8]) -> Vec<u8> {
    [&to.0[..], &from.0, &ethertype.to_be_bytes(), body].concat()
}

/// A frame that ends within its Ethernet header.
fn runt(of: &mut Garbage) -> Vec<u8> {
    of.noise(1, 13)
}

fn cut_tag(of: &mut Garbage) -> Vec<u8> {
    let body = of.noise(0, 3);
    of.frame_of(ETHERTYPE_VLAN, &body)
}

/// VLAN 4095, which 802.1Q reserves.
fn reserved_vlan(of: &mut Garbage) -> Vec<u8> {
    let body = [&[0x0f, 0xff][..], &of.unknown().to_be_bytes(), &of.noise(40, 200)].concat();
    of.frame_of(ETHERTYPE_VLAN, &body)
}

/// A frame longer than the port accepts, even with two tags.
fn oversize(of: &mut Garbage) -> Vec<u8> {
    let (ethertype, least) = (of.unknown(), of.mtu + 9);
    let body = of.noise(least, least + 500);
    of.frame_of(ethertype, &body)
}

/// A source address that is a group address or all zeros.
fn bad_source(of: &mut Garbage) -> Vec<u8> {
    let (to, from) = (of.station(), *of.rng.pick(&[MacAddr::BROADCAST, LINK_LOCAL, MacAddr([0; 6])]));
    frame(to, from, of.unknown(), &of.noise(46, 200))
}

fn link_local(of: &mut Garbage) -> Vec<u8> {
    frame(LINK_LOCAL, of.from, of.unknown(), &of.noise(46, 200))
}

/// A frame that ends within its IP header.
fn cut_ip(of: &mut Garbage) -> Vec<u8> {
    let (ethertype, most) = *of.rng.pick(&[(ETHERTYPE_IPV4, 19), (ETHERTYPE_IPV6, 39)]);
    let body = of.noise(0, most);
    of.frame_of(ethertype, &body)
}

/// A frame that ends before its IP packet does.
fn longer_ip(of: &mut Garbage) -> Vec<u8> {
    let (ethertype, first, at) = *of.rng.pick(&[(ETHERTYPE_IPV4, 0x45, 2), (ETHERTYPE_IPV6, 0x60, 4)]);
    let mut body = of.noise(40, 200);
    let length = (body.len() + of.between(1, 1000)) as u16;
    body[0] = first;
    body[at..at + 2].copy_from_slice(&length.to_be_bytes());
    of.frame_of(ethertype, &body)
}

/// An IPv4 header with a wrong version, or with a length shorter than the header.
fn impossible_ipv4(of: &mut Garbage) -> Vec<u8> {
    let mut body = of.noise(20, 200);
    let (first, length) = *of.rng.pick(&[(0x55, 20), (0x44, 20), (0x45, 19)]);
    (body[0], body[2], body[3]) = (first, 0, length);
    of.frame_of(ETHERTYPE_IPV4, &body)
}

fn impossible_ipv6(of: &mut Garbage) -> Vec<u8> {
    let mut body = of.noise(40, 200);
    body[0] = 0x45;
    of.frame_of(ETHERTYPE_IPV6, &body)
}

/// A valid IPv4 header in front of `segment`.
fn ipv4(of: &mut Garbage, segment: &[u8]) -> Vec<u8> {
    let length = (20 + segment.len()) as u16;
    let mut body = of.noise(20, 20);
    // The class of frames without a mark: none of lossless ones.
    (body[0], body[1]) = (0x45, 0);
    body[2..4].copy_from_slice(&length.to_be_bytes());
    // Not a fragment.
    (body[6], body[7], body[9]) = (0, 0, UDP);
    body.extend(segment);
    of.frame_of(ETHERTYPE_IPV4, &body)
}

/// A frame that ends within its UDP header.
fn cut_udp(of: &mut Garbage) -> Vec<u8> {
    let segment = of.noise(0, 7);
    ipv4(of, &segment)
}

/// A UDP length shorter than the UDP header.
fn impossible_udp(of: &mut Garbage) -> Vec<u8> {
    let mut segment = of.noise(8, 100);
    (segment[4], segment[5]) = (0, of.between(0, 7) as u8);
    ipv4(of, &segment)
}

fn control(of: &Garbage, to: MacAddr, opcode: u16, payload: &[u8]) -> Vec<u8> {
    let body = [&opcode.to_be_bytes()[..], payload].concat();
    frame(to, of.from, mac_control::ETHERTYPE, &body)
}

/// A MAC control frame that ends before or within its opcode.
fn cut_control(of: &mut Garbage) -> Vec<u8> {
    let body = of.noise(0, 1);
    frame(MacAddr::MAC_CONTROL, of.from, mac_control::ETHERTYPE, &body)
}

/// A PFC or PAUSE frame that ends before its pause times do.
fn cut_pause(of: &mut Garbage) -> Vec<u8> {
    let (opcode, most) = *of.rng.pick(&[(PAUSE, 1), (PFC, 17)]);
    let payload = of.noise(0, most);
    control(of, MacAddr::MAC_CONTROL, opcode, &payload)
}

/// An opcode that bridges do not know or, in half of the cases, PFC to an address other than the MAC control address.
fn unknown_control(of: &mut Garbage) -> Vec<u8> {
    // One draw serves all choices, so that the later draws of a seed stay unchanged.
    let draw = of.rng.next();
    let payload = of.noise(44, 44);
    if draw >> 63 == 1 {
        let to = if draw >> 62 & 1 == 1 { LINK_LOCAL } else { MacAddr::BROADCAST };
        return control(of, to, PFC, &payload);
    }
    let opcode = match draw as u16 {
        PAUSE | PFC => 0,
        opcode => opcode,
    };
    control(of, MacAddr::MAC_CONTROL, opcode, &payload)
}

/// A PFC frame with a tag; PFC frames are never tagged.
fn tagged_control(of: &mut Garbage) -> Vec<u8> {
    let tag = of.noise(2, 2);
    let body = [&tag[..], &mac_control::ETHERTYPE.to_be_bytes(), &PFC.to_be_bytes(), &of.noise(40, 40)].concat();
    frame(MacAddr::MAC_CONTROL, of.from, ETHERTYPE_VLAN, &body)
}

/// An unknown ethertype. The frame may be shorter than Ethernet's minimum.
fn unknown_type(of: &mut Garbage) -> Vec<u8> {
    let (ethertype, body) = (of.unknown(), of.noise(0, 1000));
    of.frame_of(ethertype, &body)
}

/// A tag with VLAN 0 and any priority.
fn priority_tag(of: &mut Garbage) -> Vec<u8> {
    let tag = [(of.between(0, 15) << 4) as u8, 0];
    let body = [&tag[..], &of.unknown().to_be_bytes(), &of.noise(0, 1000)].concat();
    of.frame_of(ETHERTYPE_VLAN, &body)
}

/// Two tags: VLAN 0 outside, any VLAN inside.
fn two_tags(of: &mut Garbage) -> Vec<u8> {
    let inner = [&ETHERTYPE_VLAN.to_be_bytes()[..], &of.noise(2, 2), &of.unknown().to_be_bytes()].concat();
    let body = [&[0, 0][..], &inner, &of.noise(0, 1000)].concat();
    of.frame_of(ETHERTYPE_SVLAN, &body)
}
