//! Rings between lcores: admitted frames on their way to a queue, and updates of the forwarding database.
//!
//! A frame is admitted by the lcore that owns the port it came in by, and queued, scheduled and released by the one that
//! owns the port it leaves by. Each pair of lcores has a ring each way that holds as many frames as the buffer has cells,
//! so that what was admitted always finds room.

use super::frame_desc::FrameDesc;
use super::handoff::{Consumer, Producer, ring};
use super::meta::Meta;
use super::pipeline::Pipeline;
use crate::forward::fdb::{Learned, Station};
use crate::packet::{Packet, Ports};
use crate::sets::BURST;

/// Updates that a ring holds. One that finds no room is sent again with the station's next frame.
const UPDATES: usize = 1024;

/// Most frames that a poll takes from one lcore: as many as it receives from a port.
const MOST_HANDOFFS: usize = 16 * BURST;

/// An admitted frame on its way to its queue.
#[derive(Debug)]
pub(super) struct HandoffFrame<P> {
    pub packet: P,
    pub desc: FrameDesc,
    /// Port it leaves by.
    pub egress: u8,
    /// Its queue must not refuse it: the frame is lossless, or its group had the cells guaranteed.
    pub must_accept: bool,
    /// WRED drops it instead of marking it: an IP packet that is not ECN-capable.
    pub droppable: bool,
}

impl<P> HandoffFrame<P> {
    /// A frame for a queue of port `egress`.
    #[inline]
    pub fn new(packet: P, meta: &Meta, egress: u8, must_accept: bool) -> Self {
        Self { packet, desc: meta.desc, egress, must_accept, droppable: meta.is_droppable() }
    }
}

/// A station seen by another lcore.
#[derive(Debug, Clone, Copy)]
pub(super) struct FdbUpdate {
    pub station: Station,
    pub port: u8,
}

/// Another lcore, as one sees it: the own ends of the rings to and from it.
pub(super) struct PeerLcore<P> {
    pub frames_out: Producer<HandoffFrame<P>>,
    pub frames_in: Consumer<HandoffFrame<P>>,
    updates_out: Producer<FdbUpdate>,
    updates_in: Consumer<FdbUpdate>,
}

impl<P> std::fmt::Debug for PeerLcore<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerLcore").finish_non_exhaustive()
    }
}

/// The other lcores of the switch.
#[derive(Debug)]
pub(super) struct Mesh<P> {
    pub peers: PeerLcores<P>,
}

/// The other lcores, by number; `None` at the own one.
pub(super) type PeerLcores<P> = Vec<Option<Box<PeerLcore<P>>>>;

/// The peers of each of `lcores` lcores. A ring takes `frames` frames and a burst.
pub(super) fn peer_lcores<P: Send>(lcores: usize, frames: usize) -> Vec<PeerLcores<P>> {
    let mut all: Vec<PeerLcores<P>> = (0..lcores).map(|_| (0..lcores).map(|_| None).collect()).collect();
    let pairs = (0..lcores).flat_map(|one| (one + 1..lcores).map(move |other| (one, other)));
    for (one, other) in pairs {
        let (one_end, other_end) = link(frames);
        all[one][other] = Some(Box::new(one_end));
        all[other][one] = Some(Box::new(other_end));
    }
    all
}

/// Two lcores as they see each other.
fn link<P: Send>(frames: usize) -> (PeerLcore<P>, PeerLcore<P>) {
    let (frames_there, frames_from_one) = ring(frames + BURST);
    let (frames_back, frames_from_other) = ring(frames + BURST);
    let (updates_there, updates_from_one) = ring(UPDATES);
    let (updates_back, updates_from_other) = ring(UPDATES);
    let one = PeerLcore {
        frames_out: frames_there,
        frames_in: frames_from_other,
        updates_out: updates_there,
        updates_in: updates_from_other,
    };
    let other = PeerLcore {
        frames_out: frames_back,
        frames_in: frames_from_one,
        updates_out: updates_back,
        updates_in: updates_from_one,
    };
    (one, other)
}

impl<P: Packet> Pipeline<P> {
    /// Queues frames that other lcores have handed off. Returns their number.
    #[inline]
    pub(super) fn accept_handoffs<I: Ports<Pkt = P>>(&mut self, io: &mut I) -> usize {
        let mut taken = 0;
        for lcore in 0..self.mesh.peers.len() {
            // Taken out of `self`: its frames go into queues of `self`.
            let Some(mut peer) = self.mesh.peers[lcore].take() else { continue };
            let ready = peer.frames_in.refresh();
            if ready > 0 {
                self.telemetry.counters.lcores[self.lcore].handoff_highest_frames.raise(ready as u64);
            }
            let mut left = ready.min(MOST_HANDOFFS);
            taken += left;
            while left > 0 {
                let frames = left.min(BURST);
                self.enqueue_handoffs(io, &mut peer.frames_in, frames);
                // A ring has room for one burst more than the buffer has cells.
                peer.frames_in.release();
                left -= frames;
            }
            self.mesh.peers[lcore] = Some(peer);
        }
        taken
    }

    /// Makes handed-off frames visible to their lcores. Called once a burst.
    #[inline]
    pub(super) fn publish_handoffs(&mut self) {
        for peer in self.mesh.peers.iter_mut().flatten() {
            let frames = peer.frames_out.publish();
            if frames > 0 {
                self.telemetry.counters.lcores[self.lcore].handed_off_frames.add(frames as u64);
            }
        }
    }

    /// Learns the stations that other lcores have seen.
    #[inline]
    pub(super) fn apply_fdb_updates(&mut self) {
        for peer in self.mesh.peers.iter_mut().flatten() {
            if peer.updates_in.refresh() == 0 {
                continue;
            }
            while let Some(FdbUpdate { station, port }) = peer.updates_in.pop() {
                // The link state of its port is checked when a frame is to leave there.
                if self.forwarder.fdb.learn_remote(station, usize::from(port)) == Learned::Full {
                    self.telemetry.counters.lcores[self.lcore].fdb_full.add(1);
                }
            }
            peer.updates_in.release();
        }
    }

    /// Learns that `station` is at `port`, and sends the other lcores an update if this is new to them.
    pub(super) fn learn_source(&mut self, station: Station, port: usize) -> Learned {
        debug_assert!(!station.mac().is_group() && !station.mac().is_zero(), "no station has such an address");
        let learned = self.forwarder.fdb.learn(station, port);
        if matches!(learned, Learned::New | Learned::Refreshed) && self.mesh.peers.len() > 1 {
            self.send_update(FdbUpdate { station, port: port as u8 });
        }
        learned
    }

    #[cold]
    fn send_update(&mut self, update: FdbUpdate) {
        let mut is_sent = true;
        for peer in self.mesh.peers.iter_mut().flatten() {
            is_sent &= peer.updates_out.push(update).is_ok();
            peer.updates_out.publish();
        }
        if !is_sent {
            self.forwarder.fdb.readvertise(update.station);
        }
    }
}
