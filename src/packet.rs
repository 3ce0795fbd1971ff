//! What the switch asks of packets and ports, so that one pipeline runs on DPDK, in memory and in simulation.
//!
//! Generic code over these traits measured the same as code written by hand for mbufs; `dyn` did not.

use arrayvec::ArrayVec;

use crate::sets::{BURST, FrameSet};
use crate::units::Ticks;

/// Up to [`BURST`] packets.
pub type Burst<P> = ArrayVec<P, BURST>;

/// One frame in one contiguous buffer, from the destination address on, without the frame check sequence.
///
/// Dropping a packet does not return its buffer: a guard per packet costs on the fast path, so buffers go back
/// with [`Ports::free`] or leave with [`Ports::tx`], and tests count them.
pub trait Packet: Send {
    /// The frame.
    fn bytes(&self) -> &[u8];
    /// The frame, to rewrite fields in place.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Length of the frame in bytes.
    fn len(&self) -> usize;
    /// Grows the frame by `n` bytes in front, whose values are unspecified; false if the buffer has no room there.
    fn push_front(&mut self, n: usize) -> bool;
    /// Cuts `n` bytes off the front; false if the frame is shorter.
    fn pull_front(&mut self, n: usize) -> bool;
    /// Asks for the memory of the packet itself, not of its bytes, ahead of its use.
    #[inline]
    fn prefetch(&self) {}
    /// Asks for the first bytes ahead of their use; waits for the packet itself, which says where they are.
    #[inline]
    fn prefetch_bytes(&self) {}
    /// Asks for the packet and for where its first bytes most likely are, far ahead and waiting for neither.
    #[inline]
    fn prefetch_ahead(&self) {}
    /// Whether the frame has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<I: Ports> Ports for &mut I {
    type Pkt = I::Pkt;

    #[inline]
    fn rx(&mut self, port: usize, out: &mut Burst<I::Pkt>) {
        (**self).rx(port, out);
    }

    #[inline]
    fn begin(&mut self, port: usize) {
        (**self).begin(port);
    }

    #[inline]
    fn backlog(&mut self, port: usize) -> Option<usize> {
        (**self).backlog(port)
    }

    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        (**self).time()
    }

    #[inline]
    fn tx(&mut self, port: usize, packets: &mut Burst<I::Pkt>) {
        (**self).tx(port, packets);
    }

    #[inline]
    fn free(&mut self, packets: &mut Burst<I::Pkt>) {
        (**self).free(packets);
    }

    #[inline]
    fn shed(&mut self, packets: &mut Burst<I::Pkt>, frames: FrameSet) {
        (**self).shed(packets, frames);
    }

    #[inline]
    fn copy(&mut self, packet: &I::Pkt) -> Option<I::Pkt> {
        (**self).copy(packet)
    }

    #[inline]
    fn make(&mut self, frame: &[u8]) -> Option<I::Pkt> {
        (**self).make(frame)
    }
}

/// As [`Ports::shed`], for ports that do more than that.
#[inline]
pub fn shed<I: Ports + ?Sized>(io: &mut I, packets: &mut Burst<I::Pkt>, frames: FrameSet) {
    if frames.len() == packets.len() {
        return io.free(packets);
    }
    let mut freed = Burst::new();
    let all = std::mem::take(packets);
    for (index, packet) in all.into_iter().enumerate() {
        if frames.contains(index) { freed.push(packet) } else { packets.push(packet) }
    }
    io.free(&mut freed);
}

/// The ports that one lcore polls, by index from zero, and the buffers behind them.
pub trait Ports {
    /// What they carry.
    type Pkt: Packet;

    /// Takes what `port` has received, up to the room in `out`.
    fn rx(&mut self, port: usize, out: &mut Burst<Self::Pkt>);

    /// Work on the burst that was taken first of those not begun yet, `port`'s, begins: bursts are taken one ahead, so that
    /// their headers come near the core while others are worked on. For who must know in which order things are decided.
    #[inline]
    fn begin(&mut self, port: usize) {
        let _ = port;
    }

    /// Frames that `port` has received and nobody has taken yet; `None` if the device cannot tell.
    fn backlog(&mut self, port: usize) -> Option<usize> {
        let _ = port;
        None
    }

    /// The time, on the clock by which polls are told theirs; `None` if none passes while a poll works.
    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        None
    }

    /// Hands `packets` to `port`, in order; those taken are removed from the front, the rest stay with the caller.
    fn tx(&mut self, port: usize, packets: &mut Burst<Self::Pkt>);

    /// Returns the buffers of all `packets`, which is empty afterwards.
    fn free(&mut self, packets: &mut Burst<Self::Pkt>);

    /// Returns the buffers of those of `packets` that `frames` names, a mask; the others keep their order. `packets` are of
    /// the burst that begins next: the switch has looked at their marks and no further.
    #[inline]
    fn shed(&mut self, packets: &mut Burst<Self::Pkt>, frames: FrameSet) {
        shed(self, packets, frames);
    }

    /// A second buffer with the same frame; `None` when the pool is empty.
    fn copy(&mut self, packet: &Self::Pkt) -> Option<Self::Pkt>;

    /// A buffer with `frame`, from a pool of its own, so that control frames leave when data has taken every buffer.
    fn make(&mut self, frame: &[u8]) -> Option<Self::Pkt>;
}
