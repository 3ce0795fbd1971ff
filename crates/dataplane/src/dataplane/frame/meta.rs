//! Metadata of a frame at ingress: half a cache line, which accompanies it through a burst.

use super::class_bits::ClassBits;
use super::desc::FrameDesc;
use crate::dataplane::ingress::port_classifier::Classification;
use crate::forward::fdb::StationPair;
use crate::plan::drops::DropReason;
use crate::sets::MAX_PORTS;
use crate::wire::parse::L3;
use crate::wire::{Headers, Plain, Usual, ecn};

/// The forwarding decision on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwarding {
    /// The frame leaves by one port.
    Send(u8),
    /// A copy leaves by each port of the VLAN except the ingress port.
    Flood,
    /// The frame belongs to the link: it is for the control plane, and no port sends it.
    Link,
    /// The frame is dropped for this reason.
    Drop(DropReason),
    /// The frame was for the switch itself, which has processed it.
    Consumed,
}

/// A [`Forwarding`] in one byte, which is one store: a port below 64, one of three constants, or a reason above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedForwarding(u8);

impl PackedForwarding {
    const FLOOD: Self = Self(MAX_PORTS as u8);
    const CONSUMED: Self = Self(MAX_PORTS as u8 + 1);
    const LINK: Self = Self(MAX_PORTS as u8 + 2);
    const FIRST_REASON: u8 = MAX_PORTS as u8 + 3;

    #[inline]
    fn new(forwarding: Forwarding) -> Self {
        match forwarding {
            Forwarding::Send(port) => {
                debug_assert!(usize::from(port) < MAX_PORTS, "a port");
                Self(port % MAX_PORTS as u8)
            }
            Forwarding::Flood => Self::FLOOD,
            Forwarding::Link => Self::LINK,
            Forwarding::Consumed => Self::CONSUMED,
            Forwarding::Drop(reason) => Self(Self::FIRST_REASON + reason as u8),
        }
    }

    #[inline]
    fn unpack(self) -> Forwarding {
        match self {
            Self(port) if usize::from(port) < MAX_PORTS => Forwarding::Send(port),
            Self::FLOOD => Forwarding::Flood,
            Self::LINK => Forwarding::Link,
            Self::CONSUMED => Forwarding::Consumed,
            Self(reason) => Forwarding::Drop(DropReason::TABLE[usize::from(reason - Self::FIRST_REASON)].0),
        }
    }
}

const _: () = assert!(DropReason::COUNT + MAX_PORTS + 3 <= 1 << 8, "a byte has room for all");

/// Metadata of a frame, written and read by the ingress stages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    /// Destination and source station in the frame's VLAN; VLAN 0 is not a VLAN. A routed frame is in the VLAN of its
    /// next hop, and the addresses here are those with which it came.
    pub stations: StationPair,
    /// Descriptor of the frame in its present form; its queue gets it unchanged.
    pub desc: FrameDesc,
    pub class_bits: ClassBits,
    /// See [`Meta::forwarding()`].
    pub forwarding: PackedForwarding,
}

const _: () = assert!(size_of::<Meta>() == 32);

impl Meta {
    pub const EMPTY: Meta = Meta {
        stations: StationPair::new(0, 0, 0),
        desc: FrameDesc::NONE,
        class_bits: ClassBits::NONE,
        forwarding: PackedForwarding::CONSUMED,
    };

    /// Metadata of a usual frame between `stations`. `desc` has its length and cells; `classification` has its ingress
    /// port, and all that depends on its DSCP and ECN.
    #[inline]
    pub fn usual(stations: StationPair, desc: FrameDesc, classification: Classification) -> Self {
        let Classification { desc: classified, class_bits, .. } = classification;
        // Replaced by `Forwarder::forward`.
        Self { stations, desc: desc.with(classified), class_bits, forwarding: PackedForwarding::CONSUMED }
    }

    /// Metadata of a plain frame in `vlan`. `desc` has its length, cells and ingress port; `classification` its class.
    #[inline]
    pub fn plain(plain: &Plain, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let class_bits =
            classification.class_bits.with_tags(plain.is_tagged.into(), plain.is_tagged & (plain.vlan == 0));
        Self::ip(plain.usual, desc.with(classification.desc), vlan, class_bits, plain.l3, plain.l3_offset)
    }

    /// Metadata of any other frame; arguments as for [`Meta::plain`].
    pub fn other(headers: &Headers, desc: FrameDesc, vlan: u16, classification: Classification) -> Self {
        let Headers { dst, src, l3, l3_offset, traffic_class, tags, .. } = *headers;
        let usual = Usual { dst: dst.to_number() << 16, src: src.to_number() << 16, traffic_class };
        let class_bits = classification.class_bits.with_tags(tags, headers.vlan() == Some(0)).with_oddity();
        let class_bits = class_bits.with_l4_error(headers.l4_error.is_some());
        Self::ip(usual, desc.with(classification.desc), vlan, class_bits, l3, l3_offset)
    }

    #[inline]
    fn ip(usual: Usual, desc: FrameDesc, vlan: u16, class_bits: ClassBits, l3: L3, offset: u8) -> Self {
        let Usual { dst, src, traffic_class } = usual;
        Self {
            stations: StationPair::from_words(vlan, dst, src),
            desc: desc.with(FrameDesc::ip(l3, offset, ecn::is_ect(traffic_class))),
            class_bits: class_bits.with_ip(l3, traffic_class),
            // Replaced by `Forwarder::forward`.
            forwarding: PackedForwarding::CONSUMED,
        }
    }

    /// Metadata of a frame without a class that is dropped.
    pub fn dropped(reason: DropReason) -> Self {
        Self { forwarding: PackedForwarding::new(Forwarding::Drop(reason)), ..Self::EMPTY }
    }

    /// Metadata of a MAC control frame with `tags` VLAN tags.
    pub fn control(tags: u8) -> Self {
        Self { class_bits: ClassBits::NONE.with_tags(tags, false), ..Self::EMPTY }
    }

    /// The forwarding decision. [`Forwarding::Consumed`] before there is one.
    #[inline]
    pub fn forwarding(&self) -> Forwarding {
        self.forwarding.unpack()
    }

    /// Sets the forwarding decision.
    #[inline]
    pub fn set_forwarding(&mut self, forwarding: Forwarding) {
        self.forwarding = PackedForwarding::new(forwarding);
    }

    /// Decides that the frame leaves by `egress`.
    #[inline]
    pub fn send(&mut self, egress: u8) {
        debug_assert!(usize::from(egress) < MAX_PORTS, "a port");
        self.forwarding = PackedForwarding(egress);
    }

    /// Decides that the frame leaves by `egress`. A number from 64 on stands for a cache miss, which must be decided.
    #[inline]
    pub fn send_or_miss(&mut self, egress: u8) {
        self.forwarding = PackedForwarding(egress);
    }

    /// Traffic class; `None` if the frame has none.
    #[inline]
    pub fn class(&self) -> Option<u8> {
        self.class_bits.is_classified().then_some(self.class_bits.class())
    }

    /// Whether the frame's group is lossless.
    #[inline]
    pub fn is_lossless(&self) -> bool {
        self.class_bits.lossy_queue().is_empty()
    }

    /// VLAN of the frame.
    #[inline]
    pub fn vlan(&self) -> u16 {
        self.stations.vlan()
    }

    /// Whether WRED drops the frame instead of marking it: an IP packet that is not ECN-capable.
    ///
    /// RFC 3168 section 5: when a CE packet is received, "the CE codepoint is left unchanged, and the packet is
    /// transmitted as usual."
    #[inline]
    pub fn is_droppable(&self) -> bool {
        (self.class_bits.l3() != L3::Other) & (self.class_bits.dscp_ecn() & 3 == ecn::NOT_ECT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_returns_each_forwarding_decision_it_stores() {
        let ports = (0..MAX_PORTS as u8).map(Forwarding::Send);
        let reasons = DropReason::TABLE.iter().map(|&(reason, ..)| Forwarding::Drop(reason));
        let all: Vec<Forwarding> =
            ports.chain([Forwarding::Flood, Forwarding::Link, Forwarding::Consumed]).chain(reasons).collect();
        assert_eq!(Meta::EMPTY.forwarding(), Forwarding::Consumed);
        for forwarding in all {
            let mut meta = Meta::EMPTY;
            meta.set_forwarding(forwarding);
            assert_eq!(meta.forwarding(), forwarding);
        }
    }
}
