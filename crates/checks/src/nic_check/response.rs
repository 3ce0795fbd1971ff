//! Response: the time and the bytes that pass between a PFC frame and the last frame of its class.

use super::cable::{Cable, pfc};
use super::frames::{Flow, read};
use crate::headroom::PACING_SLACK;
use crate::io::{Burst, Ports};
use crate::pfc::{JudgedPoll, Obedience, Received};
use crate::qos::Shaper;
use crate::sets::{BURST, ClassSet};
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
    /// Whether the priority stopped in its time, which ended while it was watched.
    pub is_timely: bool,
    /// Frames of it that came later, by the law of a running switch: see [`Obedience`].
    pub late_frames: u64,
}

/// The part of a port that stops its frames at a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obeying {
    /// The program, which receives the PFC frames.
    Software,
    /// The device, which has a transmit queue for each priority.
    Device,
}

/// The receiver of the frames, which judges their sender as a running switch does.
struct Judge {
    obedience: Obedience,
    priority: u8,
    received: Received,
    is_drained: bool,
}

impl Judge {
    /// Judges the last poll when the next one begins.
    fn begin_poll(&mut self, now: Ticks) {
        let (received, poll) = (self.received, JudgedPoll { is_drained: self.is_drained, takes_frames: true });
        self.obedience.judge(now, poll, |_| received);
    }

    /// Records that XOFF or XON left in the poll that began at `now`.
    fn told(&mut self, is_xoff: bool, now: Ticks) {
        self.obedience.sent(&pfc(ClassSet::only(self.priority.into()), is_xoff), now);
    }
}

/// One sender with a flow of the paused priority and one of another, paced to the rate of the link.
struct Sender {
    port: usize,
    obeying: Obeying,
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
        for index in [self.turn, 1 - self.turn] {
            let flow = &mut self.flows[index];
            if paused.contains(flow.priority().into()) {
                continue;
            }
            let Some(packet) = cable.io.make(flow.next_frame()) else { return flow.take_back(1) };
            let mut burst = Burst::new();
            burst.push(packet);
            match self.obeying {
                Obeying::Software => cable.io.tx(self.port, &mut burst),
                Obeying::Device => cable.io.tx_queue(self.port, flow.priority().into(), &mut burst),
            }
            if burst.is_empty() {
                self.shaper.charge(self.len, now);
                self.turn = 1 - index;
                return;
            }
            flow.take_back(1);
            cable.io.free(&mut burst);
        }
    }

    /// Obeys the PFC frames that have arrived.
    fn obey<I: Ports, C: FnMut() -> Ticks>(&mut self, cable: &mut Cable<I, C>, now: Ticks) {
        let (timers, seen, obeying) = (&mut self.timers, &mut self.seen, self.obeying);
        cable.receive(self.port, |frame| {
            if let (true, Some(MacControl::Pfc(pfc))) = (super::frames::is_control(frame), mac_control::parse(frame)) {
                if obeying == Obeying::Software {
                    timers.receive(&pfc, now);
                }
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
    measure_of(cable, from, priority, len, Obeying::Software)
}

/// Does the work of [`measure`] for a port whose frames are stopped by `obeying`.
pub fn measure_of<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    from: usize,
    priority: u8,
    len: usize,
    obeying: Obeying,
) -> Response {
    let (to, macs) = (1 - from, cable.macs);
    let flow = |priority| Flow::new(macs[from], macs[to], priority, len);
    let mut sender = Sender {
        port: from,
        obeying,
        len: len as u32,
        flows: [flow(priority), flow((priority + 1) % 8)],
        shaper: Shaper::new(cable.rate, cable.hz, PACING_SLACK),
        timers: cable.timers(),
        turn: 0,
        seen: None,
    };
    let mut judge = Judge {
        obedience: Obedience::new(cable.rate, cable.reaction, cable.hz),
        priority,
        received: Received::default(),
        is_drained: true,
    };
    let mut response = Response::default();
    let wire = len as u64 + u64::from(WIRE_OVERHEAD);
    let of_frames = PERIOD_FRAMES * wire * 8 * 1_000_000_000 / cable.rate.0.max(1);
    let period = Nanos(PERIOD.0.max(of_frames));
    run(cable, &mut sender, &mut judge, period, |frame, _, _| response.before += u64::from(frame == priority));

    let pause = cable.pfc(to, ClassSet::only(priority.into()), true);
    let told = cable.now();
    if cable.send(to, &pause) {
        judge.told(true, told);
    }
    let start = cable.now();
    let time = Nanos((cable.longest_pause().0 / 2).min(period.0));
    let mut last = start;
    run(cable, &mut sender, &mut judge, time, |frame, seen, now| {
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
    judge.told(false, cable.now());
    response.late_frames = judge.obedience.answers()[usize::from(priority)].late.frames;
    // A switch counts a stop only if frames came after XOFF, since it cannot know whether the peer has any.
    response.is_timely = response.late_frames == 0 && time > cable.reaction;
    cable.send(to, &resume);
    // The pause itself ends later.
    let rest = Nanos(cable.longest_pause().0 / 4);
    run(cable, &mut sender, &mut judge, rest, |frame, _, _| response.resumes |= frame == priority);
    cable.drain(Nanos(1_000_000));
    response
}

/// Sends and receives for `time`. Shows the priority of each received frame, whether the sender had received the PFC
/// frame, and the time.
fn run<I: Ports, C: FnMut() -> Ticks>(
    cable: &mut Cable<I, C>,
    sender: &mut Sender,
    judge: &mut Judge,
    time: Nanos,
    mut see: impl FnMut(u8, bool, Ticks),
) {
    let end = cable.now().0 + cable.ticks(time);
    loop {
        let now = cable.now();
        judge.begin_poll(now);
        if now.0 >= end {
            return;
        }
        sender.obey(cable, now);
        sender.send(cable, now);
        let has_seen = sender.seen.is_some();
        let count = cable.receive(1 - sender.port, |frame| {
            if let Some(frame) = read(frame) {
                judge.received.frames += u64::from(frame.priority == judge.priority);
                see(frame.priority, has_seen, now);
            }
        });
        judge.is_drained = count < BURST;
    }
}

impl Response {
    /// The reason why a response is not that of a lossless port.
    #[must_use]
    pub fn fault(&self, obeying: Obeying) -> Option<&'static str> {
        if self.before == 0 {
            Some("no frame arrived before the pause")
        } else if !self.is_seen && obeying == Obeying::Software {
            Some("the PFC frame did not reach the sender")
        } else if self.is_seen && obeying == Obeying::Device {
            Some("the PFC frame reached software: its device may not obey it")
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
