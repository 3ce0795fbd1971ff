//! Which frames pass the cable: data, PFC, PAUSE. Whether a device stops sending by itself.

use super::Held;
use super::cable::{Cable, SILENCE};
use super::frames::{Flow, read};
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
    /// Frames of the check that arrived damaged.
    pub damaged: u64,
    /// Frames that arrived twice, or after a later one.
    pub disordered: u64,
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
    // The least number that is not late.
    let mut next = 0;
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
        let mut received = 0;
        cable.receive(to, |frame| {
            // Others are frames of a device's firmware, for example.
            let Some(numbered) = read(frame) else { return };
            if !flow.owns(frame) {
                passed.damaged += 1;
            } else if numbered.number < next {
                passed.disordered += 1;
            } else {
                next = numbered.number + 1;
                received += 1;
            }
        });
        if received > 0 {
            last = cable.now();
        }
        settled = (settled + received).min(flow.sent());
        passed.received += received;
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

/// The longest time for which a device is kept paused to see whether it stops by itself, and the shortest.
const HOLD: (Nanos, Nanos) = (Nanos(20_000_000), Nanos(200_000_000));

/// Whether the device of `paused` stops by itself: keeps it paused by `control` and makes it send. `resume` ends the
/// pause.
pub fn hold<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    paused: usize,
    control: &[u8],
    resume: &[u8],
) -> Held {
    let (peer, macs) = (1 - paused, cable.macs);
    let mut flow = Flow::new(macs[paused], macs[peer], 0, super::frames::SHORTEST);
    let pause = cable.longest_pause().0;
    let (hold, again) = (cable.ticks(Nanos((4 * pause).clamp(HOLD.0.0, HOLD.1.0))), cable.ticks(Nanos(pause / 4)));
    let start = cable.now().0;
    let (mut next_pause, mut has_data) = (start, false);
    // The control frame reaches the device before the data: a cable and a device take much less than a quarter pause.
    let first_data = start + again.min(hold / 8);
    while !has_data && cable.now().0 < start + hold {
        let now = cable.now().0;
        if now >= next_pause {
            cable.send(peer, control);
            next_pause = now + again;
        }
        if now >= first_data && flow.sent() < DURING_PAUSE {
            let frame = flow.next_frame().to_vec();
            cable.send(paused, &frame);
        }
        cable.receive(paused, |_| {});
        cable.receive(peer, |frame| has_data |= flow.owns(frame));
    }
    cable.send(peer, resume);
    if has_data {
        return Held::No;
    }
    let end = cable.now().0 + cable.ticks(SILENCE);
    while !has_data && cable.now().0 < end {
        cable.receive(paused, |_| {});
        cable.receive(peer, |frame| has_data |= flow.owns(frame));
    }
    if has_data { Held::ByItself } else { Held::Silent }
}
