//! Whether a device obeys PFC by itself, as `pfc: nic` needs: it stops a priority, no other, and generates no PFC.

use super::cable::{Cable, SILENCE};
use super::frames::Flow;
use super::response::{self, Obeying, Response};
use crate::io::{Burst, Ports};
use crate::sets::ClassSet;
use crate::units::Nanos;

/// Frames that no receive ring and no FIFO of a NIC holds.
const OVERRUN: u64 = 8192;

/// The results of one port as the sender of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByDevice {
    /// Its responses to PFC, by priority.
    pub responses: Vec<(usize, Response)>,
    /// Whether the device of the other port paused it while that port received nothing.
    pub is_paused_by_fifo: bool,
}

/// Runs the checks in both directions, at ports whose devices obey the priorities `obeyed`.
pub fn check_by_device<I: Ports, C: FnMut() -> crate::units::Ticks>(
    cable: &mut Cable<I, C>,
    obeyed: ClassSet,
    longest_frame: usize,
) -> [ByDevice; 2] {
    cable.drain(Nanos(1_000_000));
    let len = longest_frame.min(response::LEN);
    [0, 1].map(|from| {
        let measure =
            |priority: usize| (priority, response::measure_of(cable, from, priority as u8, len, Obeying::Device));
        let responses = obeyed.iter().map(measure).collect();
        let first = obeyed.iter().next().unwrap_or_default();
        let is_paused_by_fifo = overruns(cable, from, first as u8, len);
        cable.drain(Nanos(1_000_000));
        ByDevice { responses, is_paused_by_fifo }
    })
}

/// Sends frames while the other port receives none. Returns whether the device stopped sending.
fn overruns<I: Ports, C: FnMut() -> crate::units::Ticks>(
    cable: &mut Cable<I, C>,
    from: usize,
    priority: u8,
    len: usize,
) -> bool {
    let mut flow = Flow::new(cable.macs[from], cable.macs[1 - from], priority, len);
    let silence = cable.ticks(SILENCE);
    let mut last = cable.now();
    while flow.sent() < OVERRUN {
        let mut burst: Burst<I::Pkt> = cable.io.make(flow.next_frame()).into_iter().collect();
        let had_buffer = !burst.is_empty();
        cable.io.tx_queue(from, priority.into(), &mut burst);
        let now = cable.now();
        if had_buffer && burst.is_empty() {
            last = now;
            continue;
        }
        cable.io.free(&mut burst);
        flow.take_back(1);
        if now.since(last) > silence {
            return true;
        }
    }
    false
}

impl ByDevice {
    /// The reasons why a port with these results cannot have `pfc: nic`; empty if it can.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let of = |(priority, response): &(usize, Response)| {
            Some(format!("priority {priority}: {}", response.fault(Obeying::Device)?))
        };
        let mut faults: Vec<String> = self.responses.iter().filter_map(of).collect();
        if self.is_paused_by_fifo {
            faults.push("the other device generates PFC by its own FIFO".to_owned());
        }
        faults
    }

    /// The longest time from a PFC frame to the last frame of its priority.
    #[must_use]
    pub fn longest(&self) -> Nanos {
        self.responses.iter().map(|(_, response)| response.time).max().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "by_device_tests.rs"]
mod tests;
