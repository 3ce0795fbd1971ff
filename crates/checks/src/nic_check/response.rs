//! Response: the time and the bytes that pass between a PFC frame and the last frame of its class.

use super::cable::Cable;
use super::frames::{Flow, read};
use crate::headroom::PACING_SLACK;
use crate::io::{Burst, Ports};
use crate::qos::Shaper;
use crate::sets::ClassSet;
use crate::units::{Bytes, Nanos, Ticks, WIRE_OVERHEAD};
use crate::wire::mac_control::{self, MacControl};

/// Length of the data frames, unless the MTU is smaller.
pub const LEN: usize = 1024;
/// Time of traffic before the pause, and after it: at least that of so many frames.
const PERIOD: Nanos = Nanos(5_000_000);
const PERIOD_FRAMES: u64 = 100;

/// The response to one PFC frame.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Frames of the paused priority that arrived before the pause.
    pub before: u64,
    /// Time from the PFC frame to the last frame of its priority.
    pub time: Nanos,
    /// Bytes of the priority on the wire in that time: headroom must hold them.
    pub bytes: Bytes,
    /// Those that arrived after the sender had received the PFC frame: they were posted to its device.
    pub posted: Bytes,
    /// Whether the sender received the PFC frame.
    pub is_seen: bool,
    /// Frames of another priority that arrived during the pause.
    pub others: u64,
    /// Whether the priority stopped within three quarters of the time that was watched.
    pub stops: bool,
    /// Whether the priority sent again after XON.
    pub resumes: bool,
}

/// One sender with a flow of the paused priority and one of another, paced to the rate of the link.
struct Sender {
    port: usize,
    len: u32,
    flows: [Flow; 2],
    shaper: Shaper,
    timers: crate::pfc::PauseTimers,
    turn: usize,
    seen: Option<Ticks>,
}

impl Sender {
    /// Sends a frame if pacing allows one, in turns among the flows that are not paused.
    fn send<I: Ports, C: FnMut() -> Ticks>(&mut self, cable: &mut Cable<I, C>, now: Ticks) {
        if !self.shaper.is_free(now) {
            return;
        }
        let paused = self.timers.paused(now);
        let may = |flow: &Flow| !paused.contains(flow.priority().into());
        let Some(index) = [self.turn, 1 - self.turn].into_iter().find(|&index| may(&self.flows[index])) else { return };
        let flow = &mut self.flows[index];
        let Some(packet) = cable.io.make(flow.next_frame()) else { return flow.take_back(1) };
        let mut burst = Burst::new();
        burst.push(packet);
        cable.io.tx(self.port, &mut burst);
        if burst.is_empty() {
            self.shaper.charge(self.len, now);
            self.turn = 1 - index;
        } else {
            flow.take_back(1);
            cable.io.free(&mut burst);
        }
    }

    /// Obeys the PFC frames that have arrived.
    fn obey<I: Ports, C: FnMut() -> Ticks>(&mut self, cable: &mut Cable<I, C>, now: Ticks) {
        let (timers, seen) = (&mut self.timers, &mut self.seen);
        cable.receive(self.port, |frame| {
            if let (true, Some(MacControl::Pfc(pfc))) = (super::frames::is_control(frame), mac_control::parse(frame)) {
                timers.receive(&pfc, now);
                *seen = seen.or(Some(now));
            }
        });
    }
}

/// Makes port `from` send two priorities at the rate of the link, and pauses `priority` by a PFC frame of the other
/// port.
pub fn measure<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    from: usize,
    priority: u8,
    len: usize,
) -> Response {
    let (to, macs) = (1 - from, cable.macs);
    let flow = |priority| Flow::new(macs[from], macs[to], priority, len);
    let mut sender = Sender {
        port: from,
        len: len as u32,
        flows: [flow(priority), flow((priority + 1) % 8)],
        shaper: Shaper::new(cable.rate, cable.hz, PACING_SLACK),
        timers: cable.timers(),
        turn: 0,
        seen: None,
    };
    let mut response = Response::default();
    let wire = len as u64 + u64::from(WIRE_OVERHEAD);
    let of_frames = PERIOD_FRAMES * wire * 8 * 1_000_000_000 / cable.rate.0.max(1);
    let period = Nanos(PERIOD.0.max(of_frames));
    run(cable, &mut sender, period, |frame, _, _| response.before += u64::from(frame == priority));

    let pause = cable.pfc(to, ClassSet::only(priority.into()), true);
    cable.send(to, &pause);
    let start = cable.now();
    let time = Nanos((cable.longest_pause().0 / 2).min(period.0));
    let mut last = start;
    run(cable, &mut sender, time, |frame, seen, now| {
        if frame == priority {
            last = now;
            response.bytes.0 += wire;
            response.posted.0 += if seen { wire } else { 0 };
        } else {
            response.others += 1;
        }
    });
    response.is_seen = sender.seen.is_some();
    response.time = cable.nanos(last.since(start));
    response.stops = response.time.0 < time.0 / 4 * 3;

    let resume = cable.pfc(to, ClassSet::only(priority.into()), false);
    cable.send(to, &resume);
    // The pause itself ends later.
    run(cable, &mut sender, Nanos(cable.longest_pause().0 / 4), |frame, _, _| response.resumes |= frame == priority);
    cable.drain(Nanos(1_000_000));
    response
}

/// Sends and receives for `time`. Shows the priority of each received frame, whether the sender had received the PFC
/// frame, and the time.
fn run<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    sender: &mut Sender,
    time: Nanos,
    mut see: impl FnMut(u8, bool, Ticks),
) {
    let end = cable.now().0 + cable.ticks(time);
    loop {
        let now = cable.now();
        if now.0 >= end {
            return;
        }
        sender.obey(cable, now);
        sender.send(cable, now);
        let has_seen = sender.seen.is_some();
        cable.receive(1 - sender.port, |frame| {
            if let Some(frame) = read(frame) {
                see(frame.priority, has_seen, now);
            }
        });
    }
}

impl Response {
    /// The reason why a response is not that of a lossless port.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        if self.before == 0 {
            Some("no frame arrived before the pause")
        } else if !self.is_seen {
            Some("the PFC frame did not reach the sender")
        } else if !self.stops {
            Some("the priority did not stop in half of the pause")
        } else if self.others == 0 {
            Some("the pause stopped another priority too")
        } else if !self.resumes {
            Some("the priority did not resume after XON")
        } else {
            None
        }
    }
}
