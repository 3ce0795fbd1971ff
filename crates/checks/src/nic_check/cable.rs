//! Two ports and the cable between them, as the checks use them.

use crate::io::{Burst, Packet, Ports};
use crate::pfc::PauseTimers;
use crate::sets::{BURST, CLASSES, ClassSet};
use crate::units::{BitRate, Nanos, Quanta, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::{FRAME_LEN, PfcFrame};

/// The longest time without a frame after which no further one is expected.
pub const SILENCE: Nanos = Nanos(200_000_000);

/// Two ports, numbered 0 and 1, that are connected to each other.
pub struct Cable<I, C> {
    /// The ports.
    pub io: I,
    /// The clock.
    pub clock: C,
    /// Ticks per second of the clock.
    pub hz: u64,
    /// Rate of the link.
    pub rate: BitRate,
    /// Addresses of the ports.
    pub macs: [MacAddr; 2],
    /// Time that each port has to stop when it gets XOFF: see [`super::reaction`].
    pub reaction: Nanos,
}

impl<I: Ports, C: FnMut() -> Ticks> Cable<I, C> {
    /// The present time.
    pub fn now(&mut self) -> Ticks {
        (self.clock)()
    }

    /// Ticks in `time`.
    pub fn ticks(&self, time: Nanos) -> u64 {
        (u128::from(time.0) * u128::from(self.hz) / 1_000_000_000) as u64
    }

    /// Time in `ticks`.
    pub fn nanos(&self, ticks: u64) -> Nanos {
        Nanos((u128::from(ticks) * 1_000_000_000 / u128::from(self.hz)) as u64)
    }

    /// The longest pause at the link's rate: 65,535 quanta of 512 bit times.
    pub fn longest_pause(&self) -> Nanos {
        Nanos((65_535 * 512 * 1_000_000_000_u128 / u128::from(self.rate.0.max(1))) as u64)
    }

    /// Timers of the pauses that a port receives.
    pub fn timers(&self) -> PauseTimers {
        PauseTimers::new(self.rate, self.hz)
    }

    /// Sends one frame by `port`. Returns false if the device does not take it for 200 ms.
    pub fn send(&mut self, port: usize, frame: &[u8]) -> bool {
        let end = self.now().0 + self.ticks(SILENCE);
        loop {
            let mut burst: Burst<I::Pkt> = self.io.make(frame).into_iter().collect();
            let had_buffer = !burst.is_empty();
            self.io.tx(port, &mut burst);
            let is_sent = had_buffer && burst.is_empty();
            self.io.free(&mut burst);
            if is_sent || self.now().0 > end {
                return is_sent;
            }
        }
    }

    /// Receives a burst of `port` and shows each frame to `see`. Returns the number of frames.
    pub fn receive(&mut self, port: usize, mut see: impl FnMut(&[u8])) -> usize {
        let mut burst = Burst::new();
        self.io.rx(port, BURST, &mut burst);
        burst.iter().for_each(|packet| see(packet.bytes()));
        let count = burst.len();
        self.io.free(&mut burst);
        count
    }

    /// Receives and discards frames at both ports until none comes for `quiet`, for a second at most.
    pub fn drain(&mut self, quiet: Nanos) {
        let quiet = self.ticks(quiet);
        let last = self.now().0 + self.hz;
        let mut end = self.now().0 + quiet;
        loop {
            let received = self.receive(0, |_| {}) + self.receive(1, |_| {});
            let now = self.now().0;
            if received > 0 {
                end = now + quiet;
            }
            if now > end.min(last) {
                return;
            }
        }
    }

    /// The PFC frame of `port` for `priorities`: XOFF for the longest time, or XON.
    pub fn pfc(&self, port: usize, priorities: ClassSet, is_xoff: bool) -> [u8; FRAME_LEN] {
        pfc(priorities, is_xoff).emit(self.macs[port])
    }
}

/// The content of a PFC frame for `priorities`: XOFF for the longest time, or XON.
pub fn pfc(priorities: ClassSet, is_xoff: bool) -> PfcFrame {
    PfcFrame { enabled: priorities, quanta: [Quanta(if is_xoff { u16::MAX } else { 0 }); CLASSES] }
}
