//! Rings between lcores: admitted frames on their way to a queue.
//!
//! The lcore that owns the ingress port admits a frame. The lcore that owns the egress port queues, schedules and
//! releases it. Each pair of lcores has a ring in each direction. It has a slot for each cell of the buffer, so an
//! admitted frame always finds room.

use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::frame::meta::Meta;
use crate::mmu::QueueRequest;
use crate::plan::ring::{Consumer, Producer, lcore_pairs, ring};
use crate::plan::spec::SwitchSpec;
use crate::sets::{BURST, MAX_PORTS};

/// An admitted frame on its way to its queue, on this lcore or on another.
#[derive(Debug)]
pub(crate) struct HandoffFrame<P> {
    pub packet: P,
    pub desc: FrameDesc,
    /// Egress port of the frame.
    pub egress: u8,
    /// Whether its queue must accept it: the frame is lossless, or its group had the cells guaranteed.
    pub must_accept: bool,
    /// Whether WRED drops it instead of marking it: an IP packet that is not ECN-capable.
    pub droppable: bool,
}

impl<P> HandoffFrame<P> {
    /// The frame's request to its queue.
    #[inline]
    pub fn request(&self) -> QueueRequest {
        QueueRequest { cells: self.desc.cells(), must_accept: self.must_accept, droppable: self.droppable }
    }

    /// Creates a frame for a queue of port `egress`.
    #[inline]
    pub fn new(packet: P, meta: &Meta, egress: u8, must_accept: bool) -> Self {
        Self { packet, desc: meta.desc, egress, must_accept, droppable: meta.is_droppable() }
    }
}

/// Another lcore: this lcore's ends of the rings to and from it.
pub(crate) struct PeerLcore<P> {
    pub frames_out: Producer<HandoffFrame<P>>,
    pub frames_in: Consumer<HandoffFrame<P>>,
}

impl<P> std::fmt::Debug for PeerLcore<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerLcore").finish_non_exhaustive()
    }
}

/// The other lcores of the switch, as one lcore sees them.
#[derive(Debug)]
pub(crate) struct Mesh<P> {
    /// The other lcores by number; `None` at this lcore's number.
    pub peers: Vec<Option<Box<PeerLcore<P>>>>,
    /// The lcore that owns each port.
    owners: [u8; MAX_PORTS],
}

impl<P: Send> Mesh<P> {
    /// Creates the meshes of all lcores of `spec`. A ring holds as many frames as the buffer has cells, plus one burst.
    /// No frame crosses to an lcore that owns joint ports only.
    pub fn fleet(spec: &SwitchSpec) -> Vec<Self> {
        let (lcores, joint) = (usize::from(spec.lcores), spec.joint_ports());
        let has_others = |to: usize| {
            let ports = spec.ports.iter().enumerate();
            ports.filter(|(port, _)| !joint.contains(*port)).any(|(_, port)| usize::from(port.lcore) == to)
        };
        let frames = |to: usize| if has_others(to) { spec.buffer.total.0 as usize + BURST } else { 1 };
        let owners = std::array::from_fn(|port| spec.ports.get(port).map_or(0, |port| port.lcore));
        let without_peers = |_| Self { peers: (0..lcores).map(|_| None).collect(), owners };
        let mut fleet: Vec<Self> = (0..lcores).map(without_peers).collect();
        for (one, other) in lcore_pairs(lcores) {
            let ((there, received), (back, returned)) = (ring(frames(other)), ring(frames(one)));
            fleet[one].peers[other] = Some(Box::new(PeerLcore { frames_out: there, frames_in: returned }));
            fleet[other].peers[one] = Some(Box::new(PeerLcore { frames_out: back, frames_in: received }));
        }
        fleet
    }
}

impl<P> Mesh<P> {
    /// Whether the switch has other lcores.
    pub fn has_peers(&self) -> bool {
        self.peers.len() > 1
    }

    /// The lcore that owns `port`.
    #[inline]
    pub fn owner(&self, port: u8) -> usize {
        self.owners[usize::from(port) % MAX_PORTS].into()
    }

    /// Hands `frame` to the lcore that owns its egress port.
    ///
    /// # Errors
    /// The frame, if the ring is full: a ring holds a frame for each cell of the buffer, so this is a fault.
    #[inline]
    pub fn push(&mut self, frame: HandoffFrame<P>) -> Result<(), HandoffFrame<P>> {
        let owner = self.owner(frame.egress);
        let Some(peer) = self.peers.get_mut(owner).and_then(Option::as_mut) else {
            unreachable!("a port belongs to an lcore of the switch");
        };
        peer.frames_out.push(frame)
    }

    /// Makes pushed frames visible to their lcores. Returns their number.
    #[inline]
    pub fn publish(&mut self) -> usize {
        self.peers.iter_mut().flatten().map(|peer| peer.frames_out.publish()).sum()
    }
}
