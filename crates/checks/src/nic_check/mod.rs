//! Checks whether two ports, connected by a cable, can be lossless ports of the switch. docs/nics.md tells how.
//!
//! The checks run over any [`crate::io::Ports`], so tests connect two ports in memory and give them faults.
//!
//! # Example
//!
//! ```
//! use holdfast_base::io::memory::MemPorts;
//! use holdfast_checks::nic_check::Cable;
//! use holdfast_base::units::{BitRate, Nanos, Ticks};
//! use holdfast_wire::wire::MacAddr;
//!
//! let macs = [MacAddr::local(0, 1), MacAddr::local(0, 2)];
//! let rate = BitRate(10_000_000_000);
//! let cable = Cable { io: MemPorts::new(2), clock: || Ticks(0), hz: 1_000_000_000, rate, macs };
//! assert_eq!(cable.longest_pause(), Nanos(3_355_392));
//! ```

mod cable;
mod frames;
mod passing;
mod response;
#[cfg(test)]
mod tests;

pub use cable::Cable;
pub use passing::Passed;
pub use response::Response;

use crate::io::Ports;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Nanos, Quanta, Ticks};
use crate::wire::mac_control::{PauseFrame, PfcFrame};

/// Data frames of each length in each direction.
const FRAMES: u64 = 10_000;
/// Attempts to see whether a device stops by itself: a late refresh of a short pause could let a frame pass.
const ATTEMPTS: usize = 3;

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
        Direction { data, pfc, holds, responses }
    })
}

impl Direction {
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
            faults.extend(response.fault().map(|fault| format!("priority {priority}: {fault}")));
        }
        faults
    }
}
