//! The agent of sFlow version 5 (sflow.org): samples of frames, of dropped frames and of counters, to collectors.
//!
//! | event | sample | data source |
//! |---|---|---|
//! | a received frame is sampled | flow sample | the interface that received it |
//! | a frame is dropped | discarded packet | the interface that received it |
//! | a frame is marked with CE | flow sample | logical entity of the number of the interface that it leaves by |
//! | the interval of polls ends | counters of each interface | the interface |
//!
//! sFlow has no structure for marked frames. Their data source stands for the stream of frames that an interface marks:
//! its pool is their number. The switch bounds the copies of a second, so that there is no fixed sampling rate. The
//! agent states the quotient of marked frames and samples of the last one to two seconds.
//!
//! Copies that an lcore did not make, because of their rate or for lack of buffers, are counted for the whole switch.
//! Each data source states all of them as drops.

mod datagram;
mod interfaces;
mod reasons;
mod samples;
mod sender;
#[cfg(test)]
mod tests;
mod xdr;

pub use reasons::DropCode;

use self::datagram::Datagrams;
use self::samples::{IF_INDEX, LOGICAL_ENTITY, Source, if_index};
use self::sender::Sender;
use super::after;
use super::board::SflowView;
use super::facts::SwitchFacts;
use super::spec::SflowConfig;
use crate::plan::counters::{Counter, Counters};
use crate::plan::mirror::{CopyCause, CopyFrame};
use crate::sets::PortSet;
use crate::units::Nanos;

/// Interval between the points from which the sampling rate of marked frames is estimated.
const ROLL: Nanos = Nanos(1_000_000_000);

/// The agent.
#[derive(Debug)]
pub struct Agent {
    config: SflowConfig,
    datagrams: Datagrams,
    sender: Sender,
    /// Samples of each port: those of frames by the kind of their event, and of counters.
    flows: Vec<[u32; CopyCause::KINDS]>,
    polls: Vec<u32>,
    marks: Vec<Estimate>,
    sample: Vec<u8>,
    next_poll: Nanos,
    next_roll: Nanos,
    /// Datagrams, each counted once for all collectors.
    sent: u64,
}

/// Frames of a stream, and its samples.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Point {
    pool: u64,
    samples: u64,
}

/// The estimate of a sampling rate, by the difference to a point that is one to two intervals old.
#[derive(Debug, Default, Clone, Copy)]
struct Estimate {
    older: Point,
    newer: Point,
    now: Point,
}

impl Estimate {
    /// Adds a sample. Returns the sampling rate.
    fn sample(&mut self, pool: u64) -> u32 {
        self.now = Point { pool, samples: self.now.samples + 1 };
        let (pool, samples) = (pool.saturating_sub(self.older.pool), self.now.samples - self.older.samples);
        u32::try_from(pool / samples.max(1)).unwrap_or(u32::MAX).max(1)
    }

    fn roll(&mut self, pool: u64) {
        self.now.pool = pool;
        (self.older, self.newer) = (self.newer, self.now);
    }
}

/// A copy to be sampled.
#[derive(Debug, Clone, Copy)]
pub struct Copied<'a> {
    /// The copy.
    pub copy: &'a CopyFrame,
    /// Bytes of it that the session has.
    pub bytes: &'a [u8],
    /// Time of the event, in nanoseconds since 1970 in UTC.
    pub at: u64,
}

impl Agent {
    /// Creates the agent of a switch with `ports` ports.
    #[must_use]
    pub fn new(config: SflowConfig, ports: usize, counters: &Counters, now: Nanos) -> Self {
        let mut agent = Self {
            datagrams: Datagrams::new(config.agent),
            config: SflowConfig::default(),
            sender: Sender::default(),
            flows: vec![[0; CopyCause::KINDS]; ports],
            polls: vec![0; ports],
            marks: vec![Estimate::default(); ports],
            sample: Vec::new(),
            next_poll: now,
            next_roll: after(now, ROLL),
            sent: 0,
        };
        // Frames that were marked before have no samples.
        for (port, marks) in agent.marks.iter_mut().enumerate() {
            let now = Point { pool: marked(counters, port), samples: 0 };
            *marks = Estimate { older: now, newer: now, now };
        }
        agent.configure(config, now);
        agent
    }

    /// Whether the agent keeps its numbers under `config`. Another address is another agent.
    #[must_use]
    pub fn is_same(&self, config: &SflowConfig) -> bool {
        self.config.agent == config.agent
    }

    /// Changes collectors, intervals and rates.
    pub fn configure(&mut self, config: SflowConfig, now: Nanos) {
        self.flush(now);
        self.sender.configure(&config.collectors);
        self.next_poll = self.next_poll.min(after(now, config.poll));
        self.config = config;
    }

    /// Samples a copy. Returns the bytes of the sample; `None`: it has no room in a datagram, or its port does not
    /// exist.
    pub fn take(&mut self, copied: Copied<'_>, facts: &SwitchFacts, counters: &Counters, now: Nanos) -> Option<usize> {
        let Copied { copy, bytes, at } = copied;
        let kind = copy.cause.kind();
        let port = match copy.cause {
            CopyCause::Marked => copy.egress.unwrap_or(copy.ingress),
            CopyCause::Dropped(_) | CopyCause::Sampled => copy.ingress,
        };
        let port = usize::from(port);
        let sequence = &mut self.flows.get_mut(port)?[kind];
        *sequence = sequence.wrapping_add(1);
        let class = if copy.cause == CopyCause::Marked { LOGICAL_ENTITY } else { IF_INDEX };
        let (id, sequence, drops) = ((class, if_index(port)), *sequence, lost(counters, kind));
        let source = Source { id, sequence, drops, copy, bytes, at, cell: facts.cell };
        self.sample.clear();
        match copy.cause {
            CopyCause::Dropped(reason) => samples::discard(&mut self.sample, &source, reason),
            CopyCause::Sampled => {
                samples::flow(&mut self.sample, &source, self.config.sample, received(counters, port))
            }
            CopyCause::Marked => {
                let pool = marked(counters, port);
                samples::flow(&mut self.sample, &source, self.marks[port].sample(pool), pool);
            }
        }
        let Self { datagrams, sender, sample, sent, .. } = self;
        datagrams.add(sample, now, &mut |datagram| send(sender, sent, datagram)).then_some(sample.len())
    }

    /// Samples the counters if it is time. `up` are the ports with a link.
    pub fn tick(&mut self, facts: &SwitchFacts, counters: &Counters, up: PortSet, now: Nanos) {
        if now >= self.next_roll {
            self.next_roll = after(now, ROLL);
            for (port, marks) in self.marks.iter_mut().enumerate() {
                marks.roll(marked(counters, port));
            }
        }
        if self.config.poll == Nanos(0) || now < self.next_poll {
            return;
        }
        self.next_poll = after(now, self.config.poll);
        let Self { datagrams, sender, sample, sent, polls, .. } = self;
        for (port, (facts, sequence)) in facts.ports.iter().zip(polls).enumerate() {
            *sequence = sequence.wrapping_add(1);
            sample.clear();
            interfaces::sample(sample, *sequence, port, facts, counters, up.contains(port));
            datagrams.add(sample, now, &mut |datagram| send(sender, sent, datagram));
        }
    }

    /// Sends the samples that wait.
    pub fn flush(&mut self, now: Nanos) {
        let Self { datagrams, sender, sent, .. } = self;
        datagrams.flush(now, &mut |datagram| send(sender, sent, datagram));
    }

    /// The state of the agent.
    #[must_use]
    pub fn view(&self) -> SflowView {
        let collectors = self.sender.view();
        let errors = collectors.iter().map(|collector| collector.errors).sum();
        SflowView { agent: self.config.agent.to_string(), datagrams: self.sent, send_errors: errors, collectors }
    }
}

fn send(sender: &mut Sender, sent: &mut u64, datagram: &[u8]) {
    *sent += 1;
    sender.send(datagram);
}

/// Copies of events of `kind` for sFlow that no lcore made.
fn lost(counters: &Counters, kind: usize) -> u64 {
    counters.lcores.iter().map(|lcore| lcore.sflow_lost[kind].get()).sum()
}

/// Frames of `port` that might have been sampled.
fn received(counters: &Counters, port: usize) -> u64 {
    counters.of_port(port).map(|counters| counters.sample_pool.get()).sum()
}

/// Frames that `port` has marked with CE.
fn marked(counters: &Counters, port: usize) -> u64 {
    let of = counters.of_port(port).flat_map(|counters| counters.ecn_marked.iter());
    of.map(Counter::get).sum()
}
