//! Frames between an lcore and a thread: copies out, injected frames in. The control plane has one such channel to each
//! lcore, for punted frames, and the thread of mirrors another, for copies.
//!
//! The lcore neither allocates nor frees. It copies a frame into an empty buffer that the thread has given it, and
//! returns the buffer of an injected frame. The number of buffers bounds both directions.

use super::ring::{Consumer, Producer, ring};
use crate::route::{InjectFrame, InjectTo, PuntCause, PuntFrame};

/// Frames that may be under way in each direction.
pub const EXCEPTION_FRAMES: usize = 256;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// A frame that an lcore copies for a thread.
pub trait Buffered: Send {
    /// Creates an empty frame with room for `longest` bytes.
    fn with_room(longest: usize) -> Self;
    /// The bytes of the frame.
    fn bytes_mut(&mut self) -> &mut Vec<u8>;
}

impl Buffered for PuntFrame {
    fn with_room(longest: usize) -> Self {
        let bytes = Vec::with_capacity(longest);
        Self { bytes, port: 0, vlan: 0, l3_offset: 0, cause: PuntCause::Local, may_wait: false }
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// The lcore's end.
pub struct ExceptionPort<F = PuntFrame> {
    empty: Consumer<Box<F>>,
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
    let port = ExceptionPort { empty: taken, punted, injected: sent, spent };
    (port, ExceptionLink { empty, punted: received, injected, spent: returned, idle: idle.collect() })
}

impl<F: Buffered> ExceptionPort<F> {
    /// Gives the thread a copy of `bytes`, which `fill` describes. Returns false if every buffer is in use.
    pub(crate) fn punt(&mut self, bytes: &[u8], fill: impl FnOnce(&mut F)) -> bool {
        let Some(mut frame) = self.copy(bytes) else { return false };
        fill(&mut frame);
        self.give(frame)
    }

    /// Copies `bytes` into an empty buffer, which must be given to the thread. `None` if every buffer is in use.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Option<Box<F>> {
        if self.empty.refresh() == 0 {
            return None;
        }
        let mut frame = self.empty.pop()?;
        self.empty.release();
        let to = frame.bytes_mut();
        to.clear();
        // No frame is longer than the buffer, whose capacity therefore never grows: `longest` is that of all ports.
        to.extend_from_slice(&bytes[..bytes.len().min(to.capacity())]);
        Some(frame)
    }

    /// Gives the thread a frame. Returns whether it was given: there is a slot for every buffer.
    pub(crate) fn give(&mut self, frame: Box<F>) -> bool {
        let is_given = self.punted.push(frame).is_ok();
        self.punted.publish();
        is_given
    }

    /// Number of injected frames that wait.
    #[inline]
    pub(crate) fn waiting(&mut self) -> usize {
        self.injected.refresh()
    }

    /// Takes the next injected frame.
    pub(crate) fn take(&mut self) -> Option<Box<InjectFrame>> {
        self.injected.pop()
    }

    /// Returns the buffer of an injected frame.
    pub(crate) fn give_back(&mut self, frame: Box<InjectFrame>) {
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
            let given = (0..EXCEPTION_FRAMES + 5).filter(|_| port.punt(&[round; 64], |frame| frame.port = round));
            assert_eq!(given.count(), EXCEPTION_FRAMES);
            let mut taken = 0;
            while let Some(frame) = link.receive() {
                assert_eq!((frame.port, frame.bytes.as_slice(), frame.bytes.capacity()), (round, &[round; 64][..], 64));
                link.give_back(frame);
                taken += 1;
            }
            assert_eq!(taken, EXCEPTION_FRAMES);
        }
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
