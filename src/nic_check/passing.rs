//! Which frames pass the cable: data, PFC, PAUSE. Whether a device stops sending by itself.

use super::cable::{Cable, SILENCE};
use super::frames::{Flow, is_control};
use crate::io::Ports;
use crate::sets::{CLASSES, ClassSet};
use crate::units::{Nanos, Ticks};
use crate::wire::mac_control::FRAME_LEN;

/// Frames that may be on their way: fewer than any receive ring holds.
const WINDOW: u64 = 64;

/// Time without a frame after which those on their way are given up as lost.
const STALL: Nanos = Nanos(10_000_000);

/// Frames that a device must send during a pause.
const DURING_PAUSE: u64 = 16;

/// Data frames sent and received in one direction.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// Frames that the device took.
    pub sent: u64,
    /// Frames that arrived as they were sent.
    pub received: u64,
    /// Frames that arrived and were not sent so.
    pub foreign: u64,
}

/// Sends `frames` data frames of `len` bytes from `from` to the other port.
pub fn pass_data<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    from: usize,
    frames: u64,
    len: usize,
) -> Passed {
    let (to, macs) = (1 - from, cable.macs);
    let mut flow = Flow::new(macs[from], macs[to], 0, len);
    let mut passed = Passed::default();
    // Frames that have arrived or are given up as lost.
    let mut settled = 0;
    let (stall, silence) = (cable.ticks(STALL), cable.ticks(SILENCE));
    let mut last = cable.now();
    while passed.received < frames {
        let waited = cable.now().since(last);
        if waited > silence {
            break;
        }
        if waited > stall && flow.sent() < frames {
            settled = flow.sent();
        }
        if flow.sent() < frames && flow.sent() - settled < WINDOW {
            let frame = flow.next_frame().to_vec();
            if !cable.send(from, &frame) {
                flow.take_back(1);
                break;
            }
        }
        let (mut received, mut foreign) = (0, 0);
        cable.receive(to, |frame| if flow.owns(frame) { received += 1 } else { foreign += 1 });
        if received > 0 {
            last = cable.now();
        }
        settled = (settled + received).min(flow.sent());
        (passed.received, passed.foreign) = (passed.received + received, passed.foreign + foreign);
    }
    Passed { sent: flow.sent(), ..passed }
}

/// Sends a PFC frame for each priority from `from`. Returns the priorities whose frames arrived byte by byte.
pub fn pass_pfc<I: Ports, C: FnMut() -> Ticks>(cable: &mut Cable<I, C>, from: usize) -> ClassSet {
    let mut arrived = ClassSet::EMPTY;
    for priority in 0..CLASSES {
        for is_xoff in [true, false] {
            let frame = cable.pfc(from, ClassSet::only(priority), is_xoff);
            let passes = pass_frame(cable, from, &frame);
            arrived.set(priority, passes && (is_xoff || arrived.contains(priority)));
        }
    }
    arrived
}

/// Sends a MAC control frame from `from`, and waits for it at the other port. The device may pad it.
fn pass_frame<I: Ports, C: FnMut() -> Ticks>(cable: &mut Cable<I, C>, from: usize, frame: &[u8]) -> bool {
    if !cable.send(from, frame) {
        return false;
    }
    let end = cable.now().0 + cable.ticks(SILENCE);
    let mut has_arrived = false;
    while !has_arrived && cable.now().0 < end {
        cable.receive(1 - from, |seen| has_arrived |= seen.get(..FRAME_LEN) == Some(frame));
    }
    has_arrived
}

/// Pauses the device of `paused` for the longest time by `control`, and makes it send data. Returns the time until the
/// first of these frames arrived; `None`: none did. A device that obeys by itself holds them back for the pause.
pub fn first_during_pause<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    paused: usize,
    control: &[u8],
) -> Option<Nanos> {
    let (peer, macs) = (1 - paused, cable.macs);
    let mut flow = Flow::new(macs[paused], macs[peer], 0, super::frames::SHORTEST);
    if !cable.send(peer, control) {
        return None;
    }
    // The control frame reaches the device before the data: a cable and a device take far less than a millisecond.
    let begin = cable.now().0 + cable.ticks(Nanos(1_000_000));
    while cable.now().0 < begin {
        cable.receive(paused, |_| {});
    }
    let start = cable.now();
    for _ in 0..DURING_PAUSE {
        let frame = flow.next_frame().to_vec();
        cable.send(paused, &frame);
    }
    let end = start.0 + cable.ticks(Nanos(cable.longest_pause().0.saturating_add(SILENCE.0)));
    let mut first = None;
    while first.is_none() && cable.now().0 < end {
        let mut is_data = false;
        cable.receive(peer, |frame| is_data |= flow.owns(frame) && !is_control(frame));
        first = is_data.then(|| cable.now());
    }
    first.map(|first| cable.nanos(first.since(start)))
}
