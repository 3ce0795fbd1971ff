//! Measures the reaction times of a switch: PFC sent and received, polls, and visits of ports.

use holdfast::wire::mac_control::PfcFrame;

use super::{Arrival, Cause, Flow, Histogram, Left, Link, Observer, Samples, Shadow, Watch};

/// A pause of the switch by its peer, for one class at one port, and the frames of that class that still leave.
#[derive(Debug, Default, Clone, Copy)]
struct Pause {
    /// The time at which XOFF could be received, while the pause lasts.
    xoff_at: Option<u64>,
    /// The time at which XON could be received, until the next frame leaves.
    xon_at: Option<u64>,
    /// The times at which the last frame of the class was handed to the device, and was off the wire.
    last: [u64; 2],
    /// Whether the core was not taken away from XOFF to that frame.
    is_undisturbed: bool,
    /// `is_new`: the switch has just received XOFF. `ended`: it has just received XON, and the pause began at this
    /// time.
    is_new: bool,
    ended: Option<u64>,
}

/// The times at which a port was polled for frames.
#[derive(Debug, Default, Clone, Copy)]
struct Visit {
    poll: u64,
    last: u64,
    /// The last time in an earlier poll.
    earlier: u64,
    /// Ticks that had been stolen until then.
    stolen: u64,
}

/// All measured times, by kind.
#[derive(Debug, Default)]
pub struct Times {
    /// Time to XOFF for a threshold: from the frame that crosses it, and (`handling`) from the request for its burst.
    pub xoff: Samples,
    pub handling: Samples,
    /// Time to XOFF for a backlog, from the frame that fills the ring to the mark.
    pub backlog_xoff: Samples,
    /// Time to XON, from the event that made it due: after a threshold, and (`drained_xon`) after a backlog.
    pub xon: Samples,
    pub drained_xon: Samples,
    /// Times from XOFF received to the last frame handed out (`stop`) and off the wire (`silent`). `resume` is the time
    /// from XON received to the first frame.
    pub stop: Samples,
    pub silent: Samples,
    pub resume: Samples,
    /// Times between the beginnings of polls.
    pub gaps: Samples,
    /// Times between the visits of each port, and (`beyond`) the part that exceeds the gap of their polls.
    pub visit_gaps: Vec<Samples>,
    pub beyond: Vec<Samples>,
    /// Data on the wire ahead of a PFC frame. `unheard` adds the time since the port was visited in the poll before:
    /// headroom has its terms `poll gap` and `transmit ring` for both.
    pub ahead: Histogram,
    pub unheard: Samples,
    /// The longest time between two visits of a port, without stolen time.
    pub longest_net: u64,
    /// XOFFs that announce a change, without refreshes.
    pub xoffs: u64,
}

/// Measures the frames that pass the ports, and the pauses of one class at one port.
#[derive(Debug)]
pub struct Reaction {
    /// The shadow ledger, which knows the cause of each PFC frame.
    pub shadow: Shadow,
    /// The measured times.
    pub times: Times,
    /// Whether times are recorded.
    pub measuring: bool,
    /// Number of polls.
    pub polls: u64,
    /// The port whose peer pauses, and the class.
    paused: (usize, u8),
    pause: Pause,
    visits: Vec<Visit>,
    began: u64,
    poll_gap: u64,
}

impl Reaction {
    /// Creates the measurement of a switch of `ports` ports. `paused` is the port and class that a peer pauses.
    pub fn new(shadow: Shadow, ports: usize, paused: (usize, u8)) -> Self {
        let turns = || vec![Samples::default(); ports];
        Self {
            shadow,
            times: Times { visit_gaps: turns(), beyond: turns(), ..Times::default() },
            measuring: false,
            polls: 0,
            paused,
            pause: Pause::default(),
            visits: vec![Visit::default(); ports],
            began: u64::MAX,
            poll_gap: 0,
        }
    }

    /// Records that a poll begins at `now`.
    pub fn begin_poll(&mut self, now: u64, watch: &Watch) {
        self.shadow.begin_poll();
        self.polls += 1;
        self.poll_gap = now.saturating_sub(self.began);
        if self.measuring {
            self.times.gaps.record(self.poll_gap, watch.undisturbed_since(self.began));
        }
        self.began = now;
    }

    /// Ends the records of a pause that the last burst began or ended: only now is the time known.
    fn look_at_pause(&mut self, now: u64, watch: &Watch) {
        let pause = &mut self.pause;
        if std::mem::take(&mut pause.is_new) {
            let since = pause.xoff_at.or(pause.ended).unwrap_or(now);
            pause.is_undisturbed = watch.undisturbed_since(since);
        }
        if let Some(xoff_at) = pause.ended.take().filter(|_| self.measuring) {
            // Zero if no frame left after XOFF.
            let [handed, off_the_wire] = pause.last.map(|last| last.saturating_sub(xoff_at));
            self.times.stop.record(handed, pause.is_undisturbed);
            self.times.silent.record(off_the_wire, pause.is_undisturbed);
        }
    }
}

impl Observer for Reaction {
    #[inline]
    fn received(&mut self, arrival: Arrival, flow: Option<Flow>) {
        match flow {
            Some(flow) => self.shadow.received(arrival, flow),
            None if arrival.as_pfc() == Some(true) => {
                let Pause { last, ended, .. } = self.pause;
                self.pause = Pause { xoff_at: Some(arrival.at()), last, is_new: true, ended, ..Pause::default() };
            }
            None => {
                self.pause.ended = self.pause.xoff_at.take();
                self.pause.xon_at = Some(arrival.at());
            }
        }
    }

    #[inline]
    fn visited(&mut self, port: usize, is_drained: bool, now: u64, watch: &Watch) {
        if is_drained {
            self.shadow.drained(port, now);
        }
        self.look_at_pause(now, watch);
        let visit = &mut self.visits[port];
        let earlier = if visit.poll == self.polls { visit.earlier } else { visit.last };
        let before = std::mem::replace(visit, Visit { poll: self.polls, last: now, earlier, stolen: watch.stolen });
        if before.poll != self.polls && self.measuring {
            let gap = now - before.last;
            self.times.longest_net = self.times.longest_net.max(gap.saturating_sub(watch.stolen - before.stolen));
            let is_undisturbed = watch.undisturbed_since(before.last);
            self.times.visit_gaps[port].record(gap, is_undisturbed);
            self.times.beyond[port].record(gap.saturating_sub(self.poll_gap), is_undisturbed);
        }
    }

    fn asked(&mut self, port: usize, left: Left, link: &Link, now: u64) {
        self.shadow.asked(port, left, link, now);
    }

    #[inline]
    fn sent(&mut self, port: usize, arrival: Arrival, flow: Flow, times: [u64; 2], watch: &Watch) {
        let now = times[0];
        self.shadow.sent(arrival, flow, now);
        if (port, flow.class) != self.paused {
            return;
        }
        self.pause.last = times;
        if let Some(xoff_at) = self.pause.xoff_at {
            self.pause.is_undisturbed = watch.undisturbed_since(xoff_at);
        }
        if let Some(xon_at) = self.pause.xon_at.take().filter(|_| self.measuring) {
            self.times.resume.record(now - xon_at, watch.undisturbed_since(xon_at));
        }
    }

    fn pfc(&mut self, port: usize, frame: &PfcFrame, now: u64, ahead: u64, watch: &Watch) {
        let cause = self.shadow.pfc(port, frame);
        let Some(cause) = cause.filter(|_| self.measuring) else { return };
        self.times.ahead.record(ahead);
        if matches!(cause, Cause::Crossed(_)) {
            let Visit { last, earlier, .. } = self.visits[port];
            self.times.handling.record(now - last, watch.undisturbed_since(last));
            self.times.unheard.record(now - earlier + ahead, watch.undisturbed_since(earlier));
        }
        let (samples, at) = match cause {
            Cause::Crossed(at) => (&mut self.times.xoff, at),
            Cause::Backlog(at) => (&mut self.times.backlog_xoff, at),
            Cause::Fell(at) => (&mut self.times.xon, at),
            Cause::Drained(at) => (&mut self.times.drained_xon, at),
        };
        samples.record(now.saturating_sub(at), watch.undisturbed_since(at));
        self.times.xoffs += u64::from(matches!(cause, Cause::Crossed(_) | Cause::Backlog(_)));
    }
}
