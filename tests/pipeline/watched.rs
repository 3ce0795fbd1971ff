//! Ports in memory that a test watches, and whose time it keeps.

use std::ops::{Deref, DerefMut};

use holdfast::io::memory::{MemPacket, MemPorts};
use holdfast::io::{Burst, Ports};
use holdfast::sets::{ClassSet, FrameSet};
use holdfast::units::Ticks;

/// The view of a test on the calls of the switch. Each method is called before the ports act.
pub trait Watch {
    /// The time; `None` if it stands still during a poll.
    fn time(&self) -> Option<Ticks>;

    /// The switch has received `frames` frames.
    fn received(&mut self, io: &mut MemPorts, frames: usize) {
        let _ = (io, frames);
    }

    /// The switch begins with a burst of `port`.
    fn begins(&mut self, io: &mut MemPorts, port: usize) {
        let _ = (io, port);
    }

    /// The switch sheds `frames` frames.
    fn sheds(&mut self, frames: usize) {
        let _ = frames;
    }

    /// The switch sends `packets` by `port`.
    fn sends(&mut self, io: &mut MemPorts, port: usize, packets: &Burst<MemPacket>);
}

/// Ports in memory, and the one who watches them.
pub struct Watched<W> {
    pub io: MemPorts,
    watch: W,
}

impl<W> Watched<W> {
    pub fn new(ports: usize, watch: W) -> Self {
        Self { io: MemPorts::new(ports), watch }
    }
}

impl<W> Deref for Watched<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.watch
    }
}

impl<W> DerefMut for Watched<W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.watch
    }
}

impl<W: Watch> Ports for Watched<W> {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let before = out.len();
        self.io.rx(port, most, out);
        self.watch.received(&mut self.io, out.len() - before);
    }

    fn rx_queue(&mut self, port: usize, queue: usize, most: usize, out: &mut Burst<MemPacket>) {
        let before = out.len();
        self.io.rx_queue(port, queue, most, out);
        self.watch.received(&mut self.io, out.len() - before);
    }

    fn begin(&mut self, port: usize) {
        self.watch.begins(&mut self.io, port);
    }

    fn backlog(&mut self, port: usize, queues: ClassSet) -> Option<usize> {
        self.io.backlog(port, queues)
    }

    fn time(&mut self) -> Option<Ticks> {
        self.watch.time()
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        self.watch.sends(&mut self.io, port, packets);
        self.io.tx(port, packets);
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        self.io.free(packets);
    }

    fn shed(&mut self, packets: &mut Burst<MemPacket>, frames: FrameSet) {
        self.watch.sheds(frames.len());
        holdfast::io::shed(self, packets, frames);
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        self.io.copy(packet)
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        self.io.make(frame)
    }
}
