//! From the wire to a verdict: receive, parse, control, classify, forward.

use super::drops::DropReason;
use super::frame_desc::{BurstSum, FrameDesc};
use super::meta::{Meta, Verdict};
use super::pipeline::{Pipeline, bits};
use super::rewrite::BurstDemand;
use super::ways::{self, Way};
use crate::forward::fdb::{Learned, Station};
use crate::forward::flow_cache::CacheLookup;
use crate::packet::{Burst, Packet, Ports};
use crate::sets::{BURST, CLASSES, FrameSet, MAX_PORTS, PortSet};
use crate::units::Ticks;
use crate::wire::mac_control::{self, MacControl};
use crate::wire::{Usual, parse, parse_plain, parse_usual};

/// What a burst turned out to be.
struct Arrived {
    data: FrameSet,
    /// MAC control. Frames that are neither are dropped.
    control: FrameSet,
    /// Ports by which not all data would leave with the tags that it came with.
    retagged_at: PortSet,
    /// Of data, by class.
    sums: [BurstSum; CLASSES],
}

impl<P: Packet> Pipeline<P> {
    /// Takes a burst that came by `port` as far as a queue, or its end.
    #[inline]
    pub(super) fn receive<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        port: usize,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        now: Ticks,
    ) {
        let asking = self.forwarder.cache.begin(port, burst.len(), &self.forwarder.fdb);
        let arrived = self.parse(port, burst, metas, asking.is_some());
        if !arrived.control.is_empty() {
            self.control(port, burst, metas, arrived.control, now);
        }
        let demand = self.forward(port, burst, metas, &arrived, asking);
        self.dispatch(io, port, burst, metas, &demand);
        self.telemetry.gauges_dirty.insert(port);
    }

    /// Reads the headers and finds the traffic class, the priority group at this port and the queue at any other; malformed
    /// and oversized frames end here. The others are data or MAC control. One loop for all, since what the one finds the
    /// next needs: it stays in registers.
    #[inline]
    fn parse(&self, port: usize, burst: &Burst<P>, metas: &mut [Meta; BURST], uses_cache: bool) -> Arrived {
        let (state, native) = (&self.ports[port], self.forwarder.vlans.ingress(port, None).unwrap_or(0));
        let longest = state.mtu as usize + usize::from(Usual::L3_OFFSET);
        let (mut data, mut control, mut others, mut retagged_at) =
            (FrameSet::EMPTY, FrameSet::EMPTY, FrameSet::EMPTY, PortSet::EMPTY);
        let mut sums = [BurstSum::default(); CLASSES];
        for (index, (packet, meta)) in burst.iter().zip(metas).enumerate() {
            let bytes = packet.bytes();
            // An mbuf holds no longer frame; one that did would be cut here and be oversize.
            let len = bytes.len().min(usize::from(u16::MAX)) as u16;
            let desc = FrameDesc::new(len, self.buffer.cell.cells_of(len).0 as u16, port as u8, 0, 0);
            let (kind, dst, src) = match parse_usual(bytes) {
                Some(usual) if bytes.len() <= longest => {
                    let classification = state.classifier.of_ip(usual.traffic_class >> 2, false, 0);
                    *meta = Meta::usual(usual, desc, native, classification);
                    (classification.kind, Station::new(native, usual.dst), Station::new(native, usual.src))
                }
                _ => {
                    others.insert(index);
                    match self.parse_other(port, bytes, desc, meta) {
                        Some(retagged) => retagged_at |= retagged,
                        None => control.insert(index),
                    }
                    (meta.kind, meta.dst, meta.src)
                }
            };
            if kind.is_classified() {
                data.insert(index);
                sums[usize::from(kind.class())].add(desc);
                if uses_cache {
                    self.forwarder.cache.prefetch(dst, src);
                } else {
                    self.forwarder.fdb.prefetch(dst);
                    self.forwarder.fdb.prefetch(src);
                }
            }
        }
        let counters = &self.telemetry.counters.ports[port];
        for (class, &sum) in sums.iter().enumerate().filter(|(_, sum)| sum.frames() > 0) {
            counters.rx_frames[class].add(sum.frames());
            counters.rx_bytes[class].add(sum.bytes());
        }
        if !(data - others).is_empty() {
            retagged_at |= !self.forwarder.vlans.untagged_at(native);
        }
        Arrived { data, control, retagged_at, sums }
    }

    /// Reads the headers of a frame that is not usual. `None` if it is MAC control; otherwise it has a class or is dropped,
    /// and there are ports by which it would not leave with the tags that it came with.
    #[inline(never)]
    fn parse_other(&self, port: usize, bytes: &[u8], desc: FrameDesc, meta: &mut Meta) -> Option<PortSet> {
        let state = &self.ports[port];
        match parse_plain(bytes) {
            Some(plain) if bytes.len() <= state.mtu as usize + usize::from(plain.l3_offset) => {
                let vlan = self.forwarder.vlans.ingress(port, Some(plain.vlan)).unwrap_or(0);
                let classification = state.classifier.of_ip(plain.usual.traffic_class >> 2, plain.is_tagged, plain.pcp);
                *meta = Meta::plain(&plain, desc, vlan, classification);
                Some(self.retagged_at(meta))
            }
            _ => self.parse_any(port, bytes, desc, meta),
        }
    }

    /// As [`Pipeline::parse_other`], of any frame.
    #[inline(never)]
    fn parse_any(&self, port: usize, bytes: &[u8], desc: FrameDesc, meta: &mut Meta) -> Option<PortSet> {
        let state = &self.ports[port];
        let headers = match parse(bytes) {
            Ok(headers) => headers,
            Err(error) => {
                *meta = Meta::dropped(error.into());
                return Some(PortSet::EMPTY);
            }
        };
        if bytes.len() > state.mtu as usize + usize::from(headers.l3_offset) {
            *meta = Meta::dropped(DropReason::Oversize);
            return Some(PortSet::EMPTY);
        }
        if headers.ethertype == mac_control::ETHERTYPE {
            *meta = Meta::control(headers.tags);
            return None;
        }
        let vlan = self.forwarder.vlans.ingress(port, headers.vlan()).unwrap_or(0);
        *meta = Meta::other(&headers, desc, vlan, state.classifier.of(headers.dscp(), headers.pcp()));
        Some(self.retagged_at(meta))
    }

    /// Ports by which a frame would not leave with the tags that it came with.
    #[inline]
    fn retagged_at(&self, meta: &Meta) -> PortSet {
        let untagged = self.forwarder.vlans.untagged_at(meta.vlan());
        // A priority tag gets its VLAN, or goes.
        let always = if meta.kind.has_priority_tag() { PortSet::ALL } else { PortSet::EMPTY };
        (if meta.kind.tags() > 0 { untagged } else { !untagged }) | always
    }

    /// MAC control frames end here and are never forwarded (IEEE 802.3 annex 31A).
    #[cold]
    fn control(&mut self, port: usize, burst: &Burst<P>, metas: &mut [Meta; BURST], control: FrameSet, now: Ticks) {
        for index in control.iter() {
            metas[index].verdict = self.mac_control(port, burst[index].bytes(), metas[index].kind.tags(), now);
        }
    }

    fn mac_control(&mut self, port: usize, frame: &[u8], tags: u8, now: Ticks) -> Verdict {
        let counters = &self.telemetry.counters.ports[port];
        match mac_control::parse(frame) {
            // IEEE 802.1Qbb: 01-80-C2-00-00-01 and no other destination.
            Some(MacControl::Pfc(_)) if tags == 0 && !mac_control::is_to_link_peer(frame) => {
                Verdict::Drop(DropReason::PfcDestination)
            }
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
                if self.links.up.contains(port) {
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

    /// Finds the way out by VLAN and forwarding database, learns, and makes what leaves by one port fit for it.
    #[inline]
    fn forward(
        &mut self,
        port: usize,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        arrived: &Arrived,
        asking: Option<CacheLookup>,
    ) -> BurstDemand {
        let (mut egresses, mut misses) = (PortSet::EMPTY, arrived.data);
        if let Some(asking) = asking {
            (egresses, misses) = if arrived.data.len() == burst.len() {
                self.forward_hits(asking, metas, 0..burst.len())
            } else {
                self.forward_hits(asking, metas, arrived.data.iter())
            };
        }
        let mut are_sent = true;
        if !misses.is_empty() {
            let others;
            (others, are_sent) = self.forward_misses(port, metas, arrived.data, misses, asking);
            egresses |= others;
        }
        // Where a frame has changed what holds, there are ports too many among these: of frames that were decided anew. What it
        // can change is only where its own station is, which is where it came from, and that sends nothing.
        let changed_at = arrived.retagged_at | self.rewriter.remarking | self.ports[port].smaller_mtu;
        if are_sent && (egresses & changed_at).is_empty() {
            if !arrived.data.is_empty() {
                ways::took(Way::AsItCame);
            }
            return self.demand(port, (arrived.data, false), &arrived.sums, egresses);
        }
        self.rewrite_burst(port, burst, metas, arrived.data, changed_at)
    }

    /// Finds the way out of each of `frames` whose stations have met before. The ports that they leave by, and the others.
    #[inline]
    fn forward_hits(
        &self,
        asking: CacheLookup,
        metas: &mut [Meta; BURST],
        frames: impl Iterator<Item = usize>,
    ) -> (PortSet, FrameSet) {
        let (mut egresses, mut misses) = (PortSet::EMPTY, FrameSet::EMPTY);
        for index in frames {
            let meta = &mut metas[index % BURST];
            let known = self.forwarder.cache.get(asking, meta.dst, meta.src);
            let egress = known.unwrap_or(0);
            misses |= FrameSet::only_if(known.is_none(), index);
            egresses |= PortSet::only_if(known.is_some(), egress);
            meta.verdict = Verdict::Send(egress as u8);
        }
        (egresses, misses)
    }

    /// Finds the way out of those frames of `data` that are `misses`, and learns. What one of them teaches is true for the next:
    /// if it changes what holds, all behind it are misses. The ports that they leave by, and whether each leaves by one.
    #[inline]
    fn forward_misses(
        &mut self,
        port: usize,
        metas: &mut [Meta; BURST],
        data: FrameSet,
        mut misses: FrameSet,
        mut asking: Option<CacheLookup>,
    ) -> (PortSet, bool) {
        if asking.is_some() {
            for index in misses.iter() {
                let meta = &metas[index % BURST];
                self.forwarder.fdb.prefetch(meta.dst);
                self.forwarder.fdb.prefetch(meta.src);
            }
        }
        let (mut egresses, mut are_sent, mut is_first) = (PortSet::EMPTY, true, true);
        while let Some(index) = misses.pop_lowest() {
            let meta = &mut metas[index % BURST];
            // Frames come in trains: the one before may have been of the same pair.
            let known = asking.filter(|_| !std::mem::take(&mut is_first));
            if let Some(egress) = known.and_then(|asking| self.forwarder.cache.get(asking, meta.dst, meta.src)) {
                meta.verdict = Verdict::Send(egress as u8);
                egresses.insert(egress);
                continue;
            }
            meta.verdict = self.look_up(port, meta, asking);
            match meta.verdict {
                Verdict::Send(egress) => egresses.insert(usize::from(egress) % MAX_PORTS),
                _ => are_sent = false,
            }
            if let Some(asked) = asking {
                asking = self.forwarder.cache.miss(asked, &self.forwarder.fdb);
                if asking.is_none() {
                    misses = data - FrameSet::first(index + 1);
                }
            }
        }
        (egresses, are_sent)
    }

    /// Makes those of `data` that leave by one port fit for it, frame by frame; by ports that are not among `changed_at` all
    /// leave as they came.
    #[inline(never)]
    fn rewrite_burst(
        &self,
        port: usize,
        burst: &mut Burst<P>,
        metas: &mut [Meta; BURST],
        data: FrameSet,
        changed_at: PortSet,
    ) -> BurstDemand {
        let (mut sent, mut egresses, mut floods, mut sums) =
            (data, PortSet::EMPTY, false, [BurstSum::default(); CLASSES]);
        for index in data.iter() {
            let meta = &mut metas[index % BURST];
            let Verdict::Send(egress) = meta.verdict else {
                floods |= meta.verdict == Verdict::Flood;
                sent.remove(index);
                continue;
            };
            let egress = usize::from(egress) % MAX_PORTS;
            if changed_at.contains(egress)
                && !self.rewriter.views[egress].sends_unchanged(meta)
                && let Err(reason) = self.rewrite_frame(&mut burst[index], meta, egress)
            {
                meta.verdict = Verdict::Drop(reason);
                sent.remove(index);
                continue;
            }
            egresses.insert(egress);
            sums[usize::from(meta.kind.class())].add(meta.desc);
        }
        self.demand(port, (sent, floods), &sums, egresses)
    }

    /// What the frames `sent` of a burst, of which `sums` are by class, ask for: each leaves by one of `egresses`. There may be
    /// floods besides.
    #[inline]
    fn demand(
        &self,
        port: usize,
        (sent, floods): (FrameSet, bool),
        sums: &[BurstSum; CLASSES],
        egresses: PortSet,
    ) -> BurstDemand {
        let mut demand = BurstDemand { sent, egresses, floods, ..BurstDemand::default() };
        for (class, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.frames() > 0) {
            demand.add(self.ports[port].classifier.of_class(class), sum.cells());
        }
        demand
    }

    /// The way out of a frame, by its two stations.
    #[inline]
    fn look_up(&mut self, port: usize, meta: &Meta, asking: Option<CacheLookup>) -> Verdict {
        let others = self.links.up - PortSet::only(port);
        let (is_up, allowed) = (self.links.up != others, self.forwarder.vlans.members(meta.vlan()) & others);
        // Most frames: the source is known here, the destination somewhere else. What is no station's is in no entry.
        match self.forwarder.fdb.lookup(meta.dst) {
            Some(egress)
                if is_up & (allowed.contains(egress))
                    && self.forwarder.fdb.is_known(meta.src, self.forwarder.fdb.just_seen(port)) =>
            {
                if let Some(asking) = asking {
                    self.forwarder.cache.insert(asking, meta.dst, meta.src, egress);
                }
                Verdict::Send(egress as u8)
            }
            _ => self.decide(port, meta),
        }
    }

    /// The way out of any frame.
    #[inline(never)]
    fn decide(&mut self, port: usize, meta: &Meta) -> Verdict {
        let (src, dst, vlan) = (meta.src.mac(), meta.dst.mac(), meta.vlan());
        if src.is_group() || src.is_zero() {
            return Verdict::Drop(DropReason::SourceInvalid);
        }
        if vlan == 0 {
            return Verdict::Drop(DropReason::VlanNotAllowed);
        }
        // A port that went down may still have frames in its ring: their sources are not to be found there.
        if self.links.up.contains(port) {
            match self.learn_source(meta.src, port) {
                Learned::Known | Learned::Refreshed => {}
                Learned::New => self.telemetry.counters.lcores[self.lcore].fdb_learned.add(1),
                Learned::Full => self.telemetry.counters.lcores[self.lcore].fdb_full.add(1),
            }
        }
        if dst.is_group() {
            if dst.is_link_local() {
                return Verdict::Drop(DropReason::LinkLocal);
            }
            return self.flood(port, vlan, meta.is_lossless().then_some(DropReason::LosslessGroup));
        }
        match self.forwarder.fdb.lookup(meta.dst) {
            Some(egress) if egress == port => Verdict::Drop(DropReason::SamePort),
            Some(egress) if !self.links.up.contains(egress) => Verdict::Drop(DropReason::EgressDown),
            // A static entry may name a port outside of the frame's VLAN.
            Some(egress) if !self.forwarder.vlans.members(vlan).contains(egress) => {
                Verdict::Drop(DropReason::VlanNotAllowed)
            }
            Some(egress) => Verdict::Send(egress as u8),
            None => self.flood(port, vlan, meta.is_lossless().then_some(DropReason::LosslessUnknown)),
        }
    }

    /// To everybody else in the VLAN, but never in a lossless class: a flooded lossless frame waits in queues it has
    /// no business in, and a circle of those is a deadlock (Guo et al. 2016). The simulator may want to see one.
    #[cold]
    fn flood(&self, port: usize, vlan: u16, lossless: Option<DropReason>) -> Verdict {
        if let Some(reason) = lossless.filter(|_| !self.forwarder.floods_lossless) {
            return Verdict::Drop(reason);
        }
        if self.flooded_to(port, vlan).is_empty() { Verdict::Drop(DropReason::NoMember) } else { Verdict::Flood }
    }

    /// The other ports of the VLAN, those that have a link.
    pub(super) fn flooded_to(&self, port: usize, vlan: u16) -> PortSet {
        self.forwarder.vlans.members(vlan) & (self.links.up - PortSet::only(port))
    }
}
