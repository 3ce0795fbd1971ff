//! From the wire to a verdict: receive, parse, control, classify, forward.

use super::drops::DropReason;
use super::pipeline::{Pipeline, bits};
use crate::forward::fdb::{Learned, Spot};
use crate::forward::vlan::PortMask;
use crate::packet::{BURST, Burst, Packet, Ports};
use crate::units::Ticks;
use crate::wire::mac_control::{self, MacControl};
use crate::wire::{Headers, parse_into};

/// What is to become of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Out of one port.
    Send(u8),
    /// A copy out of each of these ports.
    Flood(PortMask),
    /// Nothing.
    Drop(DropReason),
    /// It was for the switch itself, which has acted on it.
    Consumed,
}

/// What the stages know of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub headers: Headers,
    pub verdict: Verdict,
    /// Bytes of the frame.
    pub len: u16,
    pub vlan: u16,
    /// `None` until it has one.
    pub class: Option<u8>,
    pub group: u8,
    pub queue: u8,
    pub lossless: bool,
}

impl Meta {
    const EMPTY: Meta = Meta {
        headers: Headers::NONE,
        verdict: Verdict::Consumed,
        len: 0,
        vlan: 0,
        class: None,
        group: 0,
        queue: 0,
        lossless: false,
    };
}

/// Frames of a burst that have no verdict yet, as a mask.
type Undecided = u32;

const _: () = assert!(BURST <= Undecided::BITS as usize);

impl<P: Packet> Pipeline<P> {
    /// Takes one burst from `port` as far as a queue, or its end. Returns its length.
    pub(super) fn receive<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) -> usize {
        // Out of self, so that the stages may use the rest of it; an ArrayVec moves for free when it is empty.
        let mut burst: Burst<P> = std::mem::take(&mut self.burst);
        io.rx(port, &mut burst);
        let received = burst.len();
        if received > 0 {
            let mut metas = [Meta::EMPTY; BURST];
            let undecided = self.parse(port, &burst, &mut metas);
            let undecided = self.control(port, &burst, &mut metas, undecided, now);
            self.classify(port, &mut metas, undecided);
            self.forward(port, &mut metas, undecided);
            for (packet, meta) in burst.drain(..).zip(&metas) {
                self.dispatch(io, port, packet, meta);
            }
            self.touched |= 1 << port;
        }
        self.burst = burst;
        received
    }

    /// Reads the headers; malformed and oversized frames end here.
    #[inline]
    fn parse(&self, port: usize, burst: &Burst<P>, metas: &mut [Meta; BURST]) -> Undecided {
        let mtu = self.ports[port].mtu as usize;
        let mut undecided = 0;
        for (index, (packet, meta)) in burst.iter().zip(metas).enumerate() {
            let bytes = packet.bytes();
            // An mbuf holds no longer frame; one that did would be cut here and be oversize.
            meta.len = bytes.len().min(usize::from(u16::MAX)) as u16;
            match parse_into(bytes, &mut meta.headers) {
                Err(error) => meta.verdict = Verdict::Drop(error.into()),
                Ok(()) if bytes.len() > mtu + usize::from(meta.headers.l3_offset) => {
                    meta.verdict = Verdict::Drop(DropReason::Oversize);
                }
                Ok(()) => undecided |= 1 << index,
            }
        }
        undecided
    }

    /// MAC control frames end here and are never forwarded (IEEE 802.3 annex 31A).
    #[inline]
    fn control(
        &mut self,
        port: usize,
        burst: &Burst<P>,
        metas: &mut [Meta; BURST],
        mut undecided: Undecided,
        now: Ticks,
    ) -> Undecided {
        for (index, meta) in metas.iter_mut().enumerate() {
            if undecided >> index & 1 == 1 && meta.headers.ethertype == mac_control::ETHERTYPE {
                meta.verdict = self.mac_control(port, burst[index].bytes(), meta.headers.tags, now);
                undecided &= !(1 << index);
            }
        }
        undecided
    }

    #[cold]
    fn mac_control(&mut self, port: usize, frame: &[u8], tags: u8, now: Ticks) -> Verdict {
        let counters = &self.counters.ports[port];
        match mac_control::parse(frame) {
            // A tagged one is none (802.1Qbb: always untagged), and what it looks like was read at the wrong offset.
            Some(MacControl::Pfc(pfc)) if tags == 0 => {
                counters.pfc_rx_frames.add(1);
                for priority in bits(u64::from(pfc.enabled)) {
                    let xoff = pfc.quanta[priority].0 > 0;
                    (if xoff { &counters.pfc_rx_xoff } else { &counters.pfc_rx_xon })[priority].add(1);
                }
                let state = &mut self.ports[port];
                if let Some(watchdog) = &state.watchdog {
                    let ignored = state.priorities.priorities_of(watchdog.ignoring()) & state.obeyed & pfc.enabled;
                    for priority in bits(u64::from(ignored)) {
                        counters.pfc_rx_ignored[priority].add(1);
                    }
                }
                // A pause of a priority that is not obeyed here is counted, its time too, and has no effect.
                // Nor has one that was in the ring when the link went down.
                if self.up >> port & 1 == 1 {
                    state.receive_pause(&pfc, now);
                }
                Verdict::Consumed
            }
            // Where PFC is on, classic PAUSE is ignored; this switch never obeys it.
            Some(MacControl::Pause(_)) if tags == 0 => {
                counters.pause_rx_frames.add(1);
                Verdict::Consumed
            }
            _ => Verdict::Drop(DropReason::MacControl),
        }
    }

    /// Finds the traffic class, the priority group at this port and the queue at any other.
    #[inline]
    fn classify(&mut self, port: usize, metas: &mut [Meta; BURST], undecided: Undecided) {
        let state = &self.ports[port];
        let counters = &self.counters.ports[port];
        for (index, meta) in metas.iter_mut().enumerate() {
            if undecided >> index & 1 == 0 {
                continue;
            }
            let headers = &meta.headers;
            let class = state.marks.class(state.trust, state.port_class, headers.dscp(), headers.pcp());
            meta.class = Some(class);
            meta.group = self.classes.tc_to_group[usize::from(class & 7)];
            meta.queue = self.classes.tc_to_queue[usize::from(class & 7)];
            meta.lossless = state.lossless >> (meta.group & 7) & 1 == 1;
            counters.rx_frames[usize::from(class & 7)].add(1);
            counters.rx_bytes[usize::from(class & 7)].add(u64::from(meta.len));
        }
    }

    /// Finds the way out: VLAN, learning, the forwarding database.
    #[inline]
    fn forward(&mut self, port: usize, metas: &mut [Meta; BURST], undecided: Undecided) {
        let mut spots = [[Spot::default(); 2]; BURST];
        let mut touched = 0;
        for (index, (meta, spots)) in metas.iter_mut().zip(&mut spots).enumerate() {
            if undecided >> index & 1 == 0 {
                continue;
            }
            // VLAN 0 is nobody's, and refused when it comes to a decision.
            meta.vlan = self.vlans.ingress(port, meta.headers.vlan()).unwrap_or(0);
            *spots = [meta.headers.src, meta.headers.dst].map(|mac| self.fdb.locate(meta.vlan, mac));
            touched ^= self.fdb.touch(spots[0]) ^ self.fdb.touch(spots[1]);
        }
        std::hint::black_box(touched);
        for (index, (meta, spots)) in metas.iter_mut().zip(&spots).enumerate() {
            if undecided >> index & 1 == 1 {
                meta.verdict = self.decide(port, meta, *spots);
            }
        }
    }

    #[inline]
    fn decide(&mut self, port: usize, meta: &Meta, [source, destination]: [Spot; 2]) -> Verdict {
        let headers = &meta.headers;
        if headers.src.is_group() || headers.src.is_zero() {
            return Verdict::Drop(DropReason::SourceInvalid);
        }
        let vlan = meta.vlan;
        if vlan == 0 {
            return Verdict::Drop(DropReason::VlanNotAllowed);
        }
        // A port that went down may still have frames in its ring: their sources are not to be found there.
        if self.up >> port & 1 == 1 {
            match self.learn_source(vlan, headers.src, source, port) {
                Learned::Known | Learned::Refreshed => {}
                Learned::New => self.counters.lcores[self.lcore].fdb_learned.add(1),
                Learned::Full => self.counters.lcores[self.lcore].fdb_full.add(1),
            }
        }
        if headers.dst.is_group() {
            if headers.dst.is_link_local() {
                return Verdict::Drop(DropReason::LinkLocal);
            }
            return self.flood(port, vlan, meta.lossless.then_some(DropReason::LosslessGroup));
        }
        match self.fdb.lookup(destination) {
            Some(egress) if egress == port => Verdict::Drop(DropReason::SamePort),
            Some(egress) if self.up >> egress & 1 == 0 => Verdict::Drop(DropReason::EgressDown),
            // A static entry may name a port outside of the frame's VLAN.
            Some(egress) if self.vlans.members(vlan) >> egress & 1 == 0 => Verdict::Drop(DropReason::VlanNotAllowed),
            Some(egress) => Verdict::Send(egress as u8),
            None => self.flood(port, vlan, meta.lossless.then_some(DropReason::LosslessUnknown)),
        }
    }

    /// To everybody else in the VLAN, but never in a lossless class: a flooded lossless frame waits in queues it has
    /// no business in, and a circle of those is a deadlock (Guo et al. 2016). The simulator may want to see one.
    fn flood(&self, port: usize, vlan: u16, lossless: Option<DropReason>) -> Verdict {
        if let Some(reason) = lossless.filter(|_| !self.floods_lossless) {
            return Verdict::Drop(reason);
        }
        let members = self.vlans.members(vlan) & self.up & !(1 << port);
        if members == 0 { Verdict::Drop(DropReason::NoMember) } else { Verdict::Flood(members) }
    }
}
