//! Traits of packets and ports, so that one pipeline runs on DPDK, in memory and in simulation.
//!
//! Generic code over these traits measured as fast as code written by hand for mbufs; `dyn` measured slower.
//!
//! # Example
//!
//! ```
//! use holdfast_base::io::memory::MemPorts;
//! use holdfast_base::io::{Burst, Packet, Ports};
//!
//! let mut ports = MemPorts::new(2);
//! ports.inject(0, &[0xff; 60]);
//! let mut burst = Burst::new();
//! ports.rx(0, burst.capacity(), &mut burst);
//! assert_eq!(burst[0].bytes().len(), 60);
//! ports.tx(1, &mut burst);
//! assert_eq!(ports.sent_all(1).len(), 1);
//! ```

pub mod memory;

use arrayvec::ArrayVec;

use crate::sets::{BURST, ClassSet, FrameSet, PortSet};
use crate::units::Ticks;

/// Up to [`BURST`] packets.
pub type Burst<P> = ArrayVec<P, BURST>;

/// One frame in one contiguous buffer, from the destination address on, without the frame check sequence.
///
/// Dropping a packet does not return its buffer, because a guard per packet costs time on the fast path. Buffers return
/// with [`Ports::free`] or leave with [`Ports::tx`]; tests count them.
pub trait Packet: Send {
    /// Whether a switch of such packets may decide by rules of another simulator
    /// (`SwitchSpec::hpcc`). With false, its packet path has no branch for them.
    const EMULATES: bool = false;
    /// Returns the bytes of the frame.
    fn bytes(&self) -> &[u8];
    /// Returns the bytes of the frame, to rewrite fields in place.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Returns the length of the frame in bytes.
    fn len(&self) -> usize;
    /// Grows the frame by `n` bytes of unspecified value in front. Returns false if the buffer has no room there.
    fn push_front(&mut self, n: usize) -> bool;
    /// Cuts `n` bytes off the front. Returns false if the frame is shorter.
    fn pull_front(&mut self, n: usize) -> bool;
    /// Prefetches the memory of the packet itself, not its bytes.
    #[inline]
    fn prefetch(&self) {}
    /// Prefetches the first bytes of the frame. Waits for the memory of the packet, which holds their address.
    #[inline]
    fn prefetch_bytes(&self) {}
    /// Prefetches the packet and the most likely address of its first bytes. Waits for neither; called long before use.
    #[inline]
    fn prefetch_ahead(&self) {}
    /// Whether the frame has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<I: Ports> Ports for &mut I {
    type Pkt = I::Pkt;
    const KNOWS_FILLED: bool = I::KNOWS_FILLED;

    #[inline]
    fn filled(&self) -> PortSet {
        (**self).filled()
    }

    #[inline]
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<I::Pkt>) {
        (**self).rx(port, most, out);
    }

    #[inline]
    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<I::Pkt>) {
        (**self).rx_queue(port, queue, most, out);
    }

    #[inline]
    fn begin(&mut self, port: usize) {
        (**self).begin(port);
    }

    #[inline]
    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        (**self).backlog(port, queues)
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
    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<I::Pkt>) {
        (**self).tx_queue(port, queue, packets);
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

    #[inline]
    fn build(&mut self, frame: &[u8]) -> Option<I::Pkt> {
        (**self).build(frame)
    }

    fn is_busy(&self, until: Ticks) -> bool {
        (**self).is_busy(until)
    }

    fn settle(&mut self) -> bool {
        (**self).settle()
    }
}

/// Implements [`Ports::shed`]. Implementations that override the method call this function.
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

/// The ports that one lcore polls, indexed from zero, and their buffers.
pub trait Ports {
    /// Packet type of the ports.
    type Pkt: Packet;
    /// Whether [`Ports::filled`] says more than that all ports may have frames. With false, a poll has no instruction
    /// for it.
    const KNOWS_FILLED: bool = false;

    /// Ports that may have received frames; the others have none. A device would have to be polled for that, but a
    /// simulator knows.
    #[inline]
    fn filled(&self) -> PortSet {
        PortSet::ALL
    }

    /// Receives up to `most` frames of `port` into `out`, up to its free room. A port with several receive queues
    /// receives from all of them in turn.
    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Self::Pkt>);

    /// Receives up to `most` frames of receive queue `queue` of `port` into `out`, up to its free room. Implementations
    /// whose ports have one queue need not override this method.
    #[inline]
    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<Self::Pkt>) {
        debug_assert!(queue == 0, "these ports have one queue");
        let _ = queue;
        self.rx(port, most, out);
    }

    /// Marks the beginning of work on the oldest burst not begun yet, which is a burst of `port`. The switch receives
    /// bursts one ahead, to prefetch their headers during other work. Recorders override this method to learn the order
    /// of decisions.
    #[inline]
    fn begin(&mut self, port: usize) {
        let _ = port;
    }

    /// Returns the number of frames in the receive rings `queues` of `port`; `None` if the device cannot count them.
    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        let _ = (port, queues);
        None
    }

    /// Returns the current time, on the clock of `now` in each poll. Returns `None` if time stands still during a poll.
    #[inline]
    fn time(&mut self) -> Option<Ticks> {
        None
    }

    /// Passes `packets` to `port` in order. Frames that the port accepts leave the front of `packets`; the rest stay
    /// there.
    fn tx(&mut self, port: usize, packets: &mut Burst<Self::Pkt>);

    /// Passes `packets` to transmit queue `queue` of `port`, like [`Ports::tx`]. The switch sends by the lcore's own
    /// queue, except at a port whose device stops the queue of a paused priority. Virtual hosts may send each priority
    /// by a queue of its own.
    #[inline]
    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<Self::Pkt>) {
        debug_assert_eq!(queue, 0, "these ports have one queue");
        let _ = queue;
        self.tx(port, packets);
    }

    /// Returns the buffers of all `packets` to their pool and empties `packets`.
    fn free(&mut self, packets: &mut Burst<Self::Pkt>);

    /// Returns the buffers of those `packets` that are in `frames`; the others keep their order. `packets` belong to
    /// the burst that begins next. The switch has read only their marks.
    #[inline]
    fn shed(&mut self, packets: &mut Burst<Self::Pkt>, frames: FrameSet) {
        shed(self, packets, frames);
    }

    /// Copies a frame into a second buffer; `None` when the pool is empty.
    fn copy(&mut self, packet: &Self::Pkt) -> Option<Self::Pkt>;

    /// Allocates a buffer with `frame` from a separate pool, so that control frames leave even when data uses every
    /// data buffer.
    fn make(&mut self, frame: &[u8]) -> Option<Self::Pkt>;

    /// Allocates a buffer with `frame` from the pool of received frames; `None` when it is empty. The frame is charged
    /// to the shared buffer like a received one.
    fn build(&mut self, frame: &[u8]) -> Option<Self::Pkt> {
        self.make(frame)
    }

    /// Whether the ports themselves need polls before `until`, so that the lcore must not rest. Only injected faults
    /// do.
    fn is_busy(&self, until: Ticks) -> bool {
        let _ = until;
        false
    }

    /// Ends all injected faults, because the switch drains and will end. Returns whether no frame is held by them. The
    /// switch repeats the call after each poll.
    fn settle(&mut self) -> bool {
        true
    }
}
