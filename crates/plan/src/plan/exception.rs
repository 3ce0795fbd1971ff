//! Frames between an lcore and a thread: copies out, injected frames in. The control plane has one such channel to each
//! lcore, for punted frames, and the thread of mirrors another, for copies.
//!
//! The lcore neither allocates nor frees. It copies a frame into an empty buffer that the thread has given it, and
//! returns the buffer of an injected frame. The number of buffers bounds both directions. Each ingress
//! port has a buffer of its own. Of the others, its frames hold no more than are free, so that no port takes all.

use super::ring::{Consumer, Producer, ring};
use crate::route::{InjectFrame, InjectTo, PuntCause, PuntFrame};
use crate::sets::MAX_PORTS;

/// Frames that may be under way in each direction.
pub const EXCEPTION_FRAMES: usize = 256;

/// Buffers that any port can use: all but one for each port.
const COMMON_FRAMES: u16 = (EXCEPTION_FRAMES - MAX_PORTS) as u16;

/// Ingress port of a buffer that was never used.
pub const UNUSED: u8 = u8::MAX;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// A frame that an lcore copies for a thread.
pub trait Buffered: Send {
    /// Creates an empty frame of ingress port [`UNUSED`] with room for `longest` bytes.
    fn with_room(longest: usize) -> Self;
    /// The bytes of the frame.
    fn bytes_mut(&mut self) -> &mut Vec<u8>;
    /// The port that received the frame. The thread must not change it.
    fn ingress_mut(&mut self) -> &mut u8;
}

impl Buffered for PuntFrame {
    fn with_room(longest: usize) -> Self {
        let bytes = Vec::with_capacity(longest);
        Self { bytes, port: UNUSED, vlan: 0, l3_offset: 0, cause: PuntCause::Local, may_wait: false }
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn ingress_mut(&mut self) -> &mut u8 {
        &mut self.port
    }
}

/// The lcore's end.
pub struct ExceptionPort<F = PuntFrame> {
    empty: Consumer<Box<F>>,
    /// Free buffers.
    #[allow(clippy::vec_box, reason = "the boxes travel through rings")]
    free: Vec<Box<F>>,
    /// Buffers in use, by ingress port, and those of [`COMMON_FRAMES`] that are free.
    held: Box<[u16; MAX_PORTS]>,
    common: u16,
    punted: Producer<Box<F>>,
    injected: Consumer<Box<InjectFrame>>,
    spent: Producer<Box<InjectFrame>>,
}

impl<F> std::fmt::Debug for ExceptionPort<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExceptionPort").finish_non_exhaustive()
    }
}

/// The thread's end.
pub struct ExceptionLink<F = PuntFrame> {
    empty: Producer<Box<F>>,
    punted: Consumer<Box<F>>,
    injected: Producer<Box<InjectFrame>>,
    spent: Consumer<Box<InjectFrame>>,
    /// Empty buffers for frames to inject.
    #[allow(clippy::vec_box, reason = "the boxes travel through rings")]
    idle: Vec<Box<InjectFrame>>,
}

/// Creates both ends, for frames of at most `longest` bytes.
#[must_use]
pub fn exception_channel<F: Buffered>(longest: usize) -> (ExceptionPort<F>, ExceptionLink<F>) {
    let ((mut empty, taken), (punted, received)) = (ring(EXCEPTION_FRAMES), ring(EXCEPTION_FRAMES));
    let ((injected, sent), (spent, returned)) = (ring(EXCEPTION_FRAMES), ring(EXCEPTION_FRAMES));
    let buffer = || Vec::with_capacity(longest);
    for _ in 0..EXCEPTION_FRAMES {
        // The ring has a slot for each.
        let _ = empty.push(Box::new(F::with_room(longest)));
    }
    empty.publish();
    let idle = (0..EXCEPTION_FRAMES).map(|_| Box::new(InjectFrame { bytes: buffer(), to: InjectTo::Port(0), vlan: 0 }));
    let (free, held) = (Vec::with_capacity(EXCEPTION_FRAMES), Box::new([0; MAX_PORTS]));
    let port = ExceptionPort { empty: taken, free, held, common: COMMON_FRAMES, punted, injected: sent, spent };
    (port, ExceptionLink { empty, punted: received, injected, spent: returned, idle: idle.collect() })
}

impl<F: Buffered> ExceptionPort<F> {
    /// Gives the thread a copy of `bytes` from `ingress`, which `fill` describes. Returns false if there is no buffer.
    pub fn punt(&mut self, bytes: &[u8], ingress: u8, fill: impl FnOnce(&mut F)) -> bool {
        let Some(mut frame) = self.copy(bytes, ingress) else { return false };
        fill(&mut frame);
        self.give(frame)
    }

    /// Copies `bytes` from `ingress` into an empty buffer, which must be given to the thread. `None` if the port has no
    /// further one: beside its own, it holds as many as are free.
    pub fn copy(&mut self, bytes: &[u8], ingress: u8) -> Option<Box<F>> {
        self.collect();
        let held = &mut self.held[usize::from(ingress) % MAX_PORTS];
        let is_common = *held > 0;
        if is_common && *held > self.common {
            return None;
        }
        let mut frame = self.free.pop()?;
        *held += 1;
        self.common -= u16::from(is_common);
        *frame.ingress_mut() = ingress;
        let to = frame.bytes_mut();
        to.clear();
        // No frame is longer than the buffer, whose capacity therefore never grows: `longest` is that of all ports.
        to.extend_from_slice(&bytes[..bytes.len().min(to.capacity())]);
        Some(frame)
    }

    /// Takes the buffers that the thread has given back.
    fn collect(&mut self) {
        if self.empty.refresh() == 0 {
            return;
        }
        while let Some(mut frame) = self.empty.pop() {
            if let Some(held) = self.held.get_mut(usize::from(*frame.ingress_mut())) {
                self.common += u16::from(*held > 1);
                *held = held.saturating_sub(1);
            }
            // There is room for every buffer.
            self.free.push(frame);
        }
        self.empty.release();
    }

    /// Gives the thread a frame. Returns whether it was given: there is a slot for every buffer.
    pub fn give(&mut self, frame: Box<F>) -> bool {
        let is_given = self.punted.push(frame).is_ok();
        self.punted.publish();
        is_given
    }

    /// Number of injected frames that wait.
    #[inline]
    pub fn waiting(&mut self) -> usize {
        self.injected.refresh()
    }

    /// Takes the next injected frame.
    pub fn take(&mut self) -> Option<Box<InjectFrame>> {
        self.injected.pop()
    }

    /// Returns the buffer of an injected frame.
    pub fn give_back(&mut self, frame: Box<InjectFrame>) {
        self.injected.release();
        // There is a slot for every buffer.
        let _ = self.spent.push(frame);
        self.spent.publish();
    }
}

impl<F: Buffered> ExceptionLink<F> {
    /// Takes the next punted frame. Its buffer must come back by [`ExceptionLink::give_back`].
    pub fn receive(&mut self) -> Option<Box<F>> {
        if self.punted.refresh() == 0 {
            return None;
        }
        let frame = self.punted.pop();
        self.punted.release();
        frame
    }

    /// Returns the buffer of a punted frame.
    pub fn give_back(&mut self, frame: Box<F>) {
        let _ = self.empty.push(frame);
        self.empty.publish();
    }

    /// Sends a frame by the lcore. Returns false if every buffer is in use, or the frame is longer than a buffer or
    /// shorter than a header.
    pub fn inject(&mut self, bytes: &[u8], to: InjectTo, vlan: u16) -> bool {
        if bytes.len() < HEADER {
            return false;
        }
        if self.idle.is_empty() {
            self.spent.refresh();
            while let Some(frame) = self.spent.pop() {
                self.idle.push(frame);
            }
            self.spent.release();
        }
        let Some(mut frame) = self.idle.pop() else { return false };
        if bytes.len() > frame.bytes.capacity() {
            self.idle.push(frame);
            return false;
        }
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        (frame.to, frame.vlan) = (to, vlan);
        let is_sent = self.injected.push(frame).is_ok();
        self.injected.publish();
        is_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punted_frames_are_bounded_and_buffers_return() {
        let (mut port, mut link) = exception_channel::<PuntFrame>(64);
        for round in 0..3_u8 {
            let given = (0..EXCEPTION_FRAMES + 5).filter(|_| port.punt(&[round; 64], round, |frame| frame.vlan = 7));
            assert_eq!(given.count(), 97);
            let mut taken = 0;
            while let Some(frame) = link.receive() {
                assert_eq!((frame.port, frame.bytes.as_slice(), frame.bytes.capacity()), (round, &[round; 64][..], 64));
                link.give_back(frame);
                taken += 1;
            }
            assert_eq!(taken, 97);
        }
    }

    #[test]
    fn ports_that_fill_the_ring_leave_a_buffer_to_each_other_port() {
        let (mut port, mut link) = exception_channel::<PuntFrame>(64);
        let mut fill = |ingress: u8| (0..EXCEPTION_FRAMES).filter(|_| port.punt(&[0; 64], ingress, |_| ())).count();
        assert_eq!([0, 1, 2, 0, 3, 1].map(&mut fill), [97, 49, 25, 0, 13, 0]);
        assert!((4..MAX_PORTS as u8).all(|ingress| fill(ingress) > 0));
        // Buffers of the first port come back.
        (0..97).for_each(|_| link.receive().into_iter().for_each(|frame| link.give_back(frame)));
        assert_eq!([1, 0].map(&mut fill), [24, 37]);
    }

    #[test]
    fn injected_frames_arrive_in_order_and_are_bounded() {
        let (mut port, mut link) = exception_channel::<PuntFrame>(64);
        for _ in 0..3 {
            let sent = (0..EXCEPTION_FRAMES + 5).filter(|n| link.inject(&[*n as u8; 60], InjectTo::Vlan(7), 7)).count();
            assert_eq!((sent, port.waiting()), (EXCEPTION_FRAMES, EXCEPTION_FRAMES));
            for n in 0..EXCEPTION_FRAMES {
                let frame = port.take().unwrap();
                assert_eq!((frame.bytes[0], frame.to), (n as u8, InjectTo::Vlan(7)));
                port.give_back(frame);
            }
        }
        assert!(!link.inject(&[0; 65], InjectTo::Port(0), 1), "longer than a buffer");
        assert!(!link.inject(&[0; 13], InjectTo::Port(0), 1), "shorter than a header");
    }
}
