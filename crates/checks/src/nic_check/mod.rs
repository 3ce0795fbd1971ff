//! Checks whether two ports, connected by a cable, can be lossless ports of the switch. docs/nics.md tells how.
//!
//! The checks run over any [`crate::io::Ports`], so tests connect two ports in memory and give them faults.
//!
//! # Example
//!
//! ```
//! use holdfast_base::io::memory::MemPorts;
//! use holdfast_checks::nic_check::{Cable, reaction};
//! use holdfast_base::units::{BitRate, Nanos, Ticks};
//! use holdfast_wire::wire::MacAddr;
//!
//! let macs = [MacAddr::local(0, 1), MacAddr::local(0, 2)];
//! let rate = BitRate(10_000_000_000);
//! let (io, reaction) = (MemPorts::new(2), reaction(rate, 1500, true));
//! let cable = Cable { io, clock: || Ticks(0), hz: 1_000_000_000, rate, macs, reaction };
//! assert_eq!(cable.longest_pause(), Nanos(3_355_392));
//! ```

mod by_device;
mod cable;
mod frames;
mod passing;
mod response;
#[cfg(test)]
mod tests;

pub use by_device::{ByDevice, check_by_device};
pub use cable::Cable;
pub use passing::Passed;
pub use response::{Obeying, Response};

use crate::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets, reaction_over};
use crate::io::Ports;
use crate::pfc::Observed;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{BitRate, Bytes, Length, Nanos, Quanta, Ticks};
use crate::wire::mac_control::{PauseFrame, PfcFrame};

/// Data frames of each length in each direction.
const FRAMES: u64 = 10_000;
/// Attempts to see whether a device stops by itself: a late refresh of a short pause could let a frame pass.
const ATTEMPTS: usize = 3;
/// The longest cable between two ports of one server.
const CABLE: Length = Length { mm: 100_000 };
/// The default of `lcores.poll_gap`.
const POLL_GAP: Nanos = Nanos(20_000);

/// The results in one direction: port `from` sends data, and obeys the other port's PFC frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Direction {
    /// Lengths of data frames and their results.
    pub data: Vec<(usize, Passed)>,
    /// Priorities whose PFC frames arrived byte by byte, sent by this port.
    pub pfc: ClassSet,
    /// Whether the device of this port stopped by itself: for PAUSE, and for PFC.
    pub holds: [Held; 2],
    /// Responses to PFC frames of the other port, by priority.
    pub responses: [Response; CLASSES],
    /// Time that the port had to stop.
    pub reaction: Nanos,
}

/// Whether a device stops sending by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// It sends during the pause.
    No,
    /// It sends after the pause only.
    ByItself,
    /// No frame arrived.
    Silent,
}

/// Runs all checks in both directions. The result at index `n` is that of port `n` as the sender of data.
pub fn check<I: Ports, C: FnMut() -> Ticks>(cable: &mut Cable<I, C>, longest_frame: usize) -> [Direction; 2] {
    cable.drain(Nanos(1_000_000));
    [0, 1].map(|from| {
        let lengths = [frames::SHORTEST, longest_frame.min(512), longest_frame];
        let data = lengths.map(|len| (len, passing::pass_data(cable, from, FRAMES, len))).to_vec();
        let pfc = passing::pass_pfc(cable, from);
        let source = cable.macs[1 - from];
        let pause = |quanta| PauseFrame { quanta: Quanta(quanta) }.emit(source);
        let all = |quanta| PfcFrame { enabled: ClassSet::ALL, quanta: [Quanta(quanta); CLASSES] }.emit(source);
        let holds = [[pause(u16::MAX), pause(0)], [all(u16::MAX), all(0)]].map(|[stop, resume]| {
            let mut attempts = (0..ATTEMPTS).map(|_| {
                let held = passing::hold(cable, from, &stop, &resume);
                cable.drain(Nanos(1_000_000));
                held
            });
            attempts.find(|held| *held != Held::No).unwrap_or(Held::No)
        });
        let len = longest_frame.min(response::LEN);
        let responses = std::array::from_fn(|priority| response::measure(cable, from, priority as u8, len));
        Direction { data, pfc, holds, responses, reaction: cable.reaction }
    })
}

/// Time that a port of `rate` and `mtu` has to stop when it gets XOFF: that of the headroom formula, as a switch with
/// these ports gives it. `is_wire`: neither port is a device of software.
#[must_use]
pub fn reaction(rate: BitRate, mtu: u16, is_wire: bool) -> Nanos {
    let input = HeadroomInput {
        rate,
        cable: CABLE,
        mtu,
        poll_gap: POLL_GAP,
        posted: HeadroomInput::posted(rate, POLL_GAP, false),
        cell: Bytes(1),
        peer_response: None,
        left: LEFT_BEHIND,
        small_packets: SmallPackets::ALL,
        stops_queues: 0,
        other_rings: 0,
    };
    reaction_over(&input, is_wire)
}

impl Direction {
    /// Priorities in which the port stopped in its time.
    #[must_use]
    pub fn stops(&self) -> u32 {
        self.responses.iter().filter(|response| response.is_timely).count() as u32
    }

    /// The standing that a running switch would give the port as its peer, from one XOFF of each priority.
    #[must_use]
    pub fn observed(&self) -> Observed {
        let late = self.responses.iter().filter(|response| response.late_frames > 0).count();
        Observed::from_pauses(late as u32, self.stops())
    }

    /// Whether all data frames arrived, once and in order.
    #[must_use]
    pub fn passes_data(&self) -> bool {
        self.data.iter().all(|(_, passed)| passed.received == FRAMES && passed.damaged + passed.disordered == 0)
    }

    /// The reasons why a port with these results cannot be lossless; empty if it can.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (len, passed) in &self.data {
            if passed.received < FRAMES || passed.damaged + passed.disordered > 0 {
                faults.push(format!(
                    "of {FRAMES} data frames of {len} B {} were sent and {} arrived, {} damaged and {} late or twice",
                    passed.sent, passed.received, passed.damaged, passed.disordered
                ));
            }
        }
        if self.pfc != ClassSet::ALL {
            let missing: Vec<String> = (!self.pfc).iter().map(|priority| priority.to_string()).collect();
            faults.push(format!("PFC frames of priority {} do not arrive at the other port", missing.join(", ")));
        }
        for (held, what) in self.holds.iter().zip(["PAUSE", "PFC"]) {
            match held {
                Held::No => {}
                Held::ByItself => faults.push(format!("the device obeys {what} by itself, for all classes")),
                Held::Silent => faults.push(format!("no data arrived after {what}")),
            }
        }
        for (priority, response) in self.responses.iter().enumerate() {
            faults.extend(response.fault(Obeying::Software).map(|fault| format!("priority {priority}: {fault}")));
        }
        let is_explained = self.responses.iter().any(|response| response.fault(Obeying::Software).is_some());
        if self.observed() == Observed::Disobeys && !is_explained {
            let late: u64 = self.responses.iter().map(|response| response.late_frames).sum();
            let given = self.reaction;
            faults.push(format!("{late} frames came later than {given} after XOFF: its peers need `peer_response`"));
        }
        faults
    }
}
