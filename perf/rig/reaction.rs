//! What is timed of a switch that reacts: PFC sent and received, polls, and turns of ports.

use holdfast::wire::mac_control::PfcFrame;

use super::{Arrival, Cause, Flow, Histogram, Link, Observer, Samples, Shadow, Watch};

/// The switch is paused by the first port's peer, and what it sends of that class.
#[derive(Debug, Default, Clone, Copy)]
struct Pause {
    /// When XOFF could be received, while it holds.
    xoff_at: Option<u64>,
    /// When XON could be, until a frame has left.
    xon_at: Option<u64>,
    /// When the last frame of the class was handed out, and when it was off the wire.
    last: [u64; 2],
    /// Whether nobody took the core away from XOFF to that frame.
    is_undisturbed: bool,
    /// XOFF has just been handed to the switch, and XON, which ends the pause that began with this XOFF.
    is_new: bool,
    ended: Option<u64>,
}

/// When a port was asked for frames.
#[derive(Debug, Default, Clone, Copy)]
struct Visit {
    poll: u64,
    last: u64,
    /// The last time in a poll before.
    earlier: u64,
    /// What had been stolen until then.
    stolen: u64,
}

/// Times of everything, by what it is.
#[derive(Debug, Default)]
pub struct Times {
    /// XOFF for a threshold, from the frame that crosses it; and of it, from when the switch asked for the burst.
    pub xoff: Samples,
    pub handling: Samples,
    /// XOFF for a backlog, from the frame that fills the ring to the mark.
    pub backlog_xoff: Samples,
    /// XON, from what made it due.
    pub xon: Samples,
    pub drained_xon: Samples,
    /// From XOFF received to the last frame handed out, and off the wire; from XON received to the first.
    pub stop: Samples,
    pub silent: Samples,
    pub resume: Samples,
    /// Polls, begin to begin.
    pub gaps: Samples,
    /// Turns of each port, and by how much they are longer than their poll's gap.
    pub visit_gaps: Vec<Samples>,
    pub beyond: Vec<Samples>,
    /// Data on the wire ahead of a PFC frame; and with the time since its port was asked in the poll before, which is what
    /// headroom's `poll gap` and `transmit ring` are for.
    pub ahead: Histogram,
    pub unheard: Samples,
    /// The longest turn without what was stolen in it.
    pub longest_net: u64,
    /// XOFFs that tell something new.
    pub xoffs: u64,
}

/// Times what passes the ports; pauses of one class at one port.
#[derive(Debug)]
pub struct Reaction {
    /// Who knows why.
    pub shadow: Shadow,
    /// What came of it.
    pub times: Times,
    /// Whether it counts.
    pub measuring: bool,
    /// Polls so far.
    pub polls: u64,
    /// The port whose peer pauses, and the class.
    paused: (usize, u8),
    pause: Pause,
    visits: Vec<Visit>,
    began: u64,
    poll_gap: u64,
}

impl Reaction {
    /// Of a switch of `ports` ports, one of which is paused by its peer in one class.
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

    /// A poll begins at `now`.
    pub fn begin_poll(&mut self, now: u64, watch: &Watch) {
        self.shadow.begin_poll();
        self.polls += 1;
        self.poll_gap = now.saturating_sub(self.began);
        if self.measuring {
            self.times.gaps.record(self.poll_gap, watch.undisturbed_since(self.began));
        }
        self.began = now;
    }

    /// The burst that has just been handed out may have begun a pause, or ended one: only now is there a clock at hand.
    fn look_at_pause(&mut self, now: u64, watch: &Watch) {
        let pause = &mut self.pause;
        if std::mem::take(&mut pause.is_new) {
            let since = pause.xoff_at.or(pause.ended).unwrap_or(now);
            pause.is_undisturbed = watch.undisturbed_since(since);
        }
        if let Some(xoff_at) = pause.ended.take().filter(|_| self.measuring) {
            // Zero if no frame left after it.
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
    fn visited(&mut self, port: usize, frames: usize, now: u64, watch: &Watch) {
        self.shadow.visited(port, frames, now);
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

    fn asked(&mut self, port: usize, left: usize, link: &Link, now: u64) {
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
