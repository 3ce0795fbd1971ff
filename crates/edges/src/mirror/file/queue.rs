//! The queue of copies from the thread of mirrors to the writer of a file, and the writer's answers.
//!
//! It is bounded in bytes: a push beyond them counts the copy as lost. No call to the disk is made under its lock, so
//! that neither side waits for the disk there.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{BATCH, Counts};
use crate::mirror::pcapng::Packet;
use crate::mirror::spec::FileConfig;

/// Bytes of packets that wait for a writer or are with it. They last for seconds at the default rate and length.
pub(super) const CAPACITY: usize = 4 << 20;
/// Longest time that a writer waits for copies. Then it looks whether its file is in place, or tries it again.
const LOOK: Duration = Duration::from_millis(250);

/// The queue, with the state of both sides.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    jobs: VecDeque<Job>,
    /// Bytes of the jobs, and of the one that the writer has.
    bytes: usize,
    /// Lost copies of each port that no queued packet states.
    missing: Vec<u64>,
    /// Whether no further packets are taken, and the writer ends after the last job.
    is_closed: bool,
    answers: Answers,
}

/// The writer's side as the thread of mirrors sees it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    /// Turns that the writer has finished.
    pub turns: u64,
    /// Whether it is in a turn, which may call the disk. The first turn opens the file.
    pub is_in_turn: bool,
    /// Whether jobs wait.
    pub has_jobs: bool,
    /// Copies since the answers before.
    pub counts: Counts,
    /// The error of its last attempt to write.
    pub error: Option<String>,
}

/// A part of the writer's work.
#[derive(Debug)]
pub(super) enum Job {
    /// Packets to write.
    Packets(Block),
    /// Other settings for the packets after it.
    Configure { config: FileConfig, preamble: Vec<u8> },
}

impl Job {
    fn size(&self) -> usize {
        match self {
            Self::Packets(block) => block.size(),
            Self::Configure { .. } => 0,
        }
    }
}

/// Packets in order.
#[derive(Debug, Default)]
pub(super) struct Block {
    entries: Vec<Entry>,
    /// Frames and comments, one behind the other.
    bytes: Vec<u8>,
    comments: String,
}

#[derive(Debug)]
struct Entry {
    port: u8,
    at: u64,
    len: u16,
    /// Bytes of the frame and of the comment.
    bytes: usize,
    comment: usize,
    /// Copies of its port that were lost before it.
    missing: u64,
}

impl Block {
    /// Bytes that `packet` takes in a block.
    fn size_of(packet: &Packet<'_>) -> usize {
        packet.bytes.len() + packet.comment.len() + size_of::<Entry>()
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.comments.len() + self.entries.len() * size_of::<Entry>()
    }

    fn push(&mut self, packet: &Packet<'_>, missing: u64) {
        let Packet { port, at, bytes, len, comment } = *packet;
        self.bytes.extend_from_slice(bytes);
        self.comments.push_str(comment);
        self.entries.push(Entry { port, at, len, bytes: bytes.len(), comment: comment.len(), missing });
    }

    /// Passes each packet to `take`, with the copies of its port that were lost before it.
    pub fn for_each(&self, mut take: impl FnMut(&Packet<'_>, u64)) {
        let (mut bytes, mut comments) = (&self.bytes[..], &self.comments[..]);
        for entry in &self.entries {
            let (frame, comment);
            (frame, bytes) = bytes.split_at(entry.bytes);
            (comment, comments) = comments.split_at(entry.comment);
            take(&Packet { port: entry.port, at: entry.at, bytes: frame, len: entry.len, comment }, entry.missing);
        }
    }
}

/// The next turn of a writer.
#[derive(Debug)]
pub(super) enum Turn {
    /// A job.
    Job(Job),
    /// A look at the file, without a job.
    Look,
    /// No further turn: the queue is closed and empty.
    End,
}

impl Queue {
    /// Creates the queue of a writer whose first turn is to come.
    pub fn new() -> Self {
        let answers = Answers { is_in_turn: true, ..Answers::default() };
        let missing = vec![0; 1 << u8::BITS];
        let state = State { jobs: VecDeque::new(), bytes: 0, missing, is_closed: false, answers };
        Self { state: Mutex::new(state), wake: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a packet. Returns false if it is lost, since the queue is full or closed.
    pub fn push(&self, packet: &Packet<'_>) -> bool {
        let mut state = self.lock();
        let State { jobs, bytes, missing, is_closed, answers } = &mut *state;
        let missing = &mut missing[usize::from(packet.port)];
        let size = Block::size_of(packet);
        if *is_closed || *bytes + size > CAPACITY {
            *missing += 1;
            answers.counts.lost += 1;
            return false;
        }
        *bytes += size;
        if !matches!(jobs.back(), Some(Job::Packets(block)) if block.size() < BATCH) {
            jobs.push_back(Job::Packets(Block::default()));
        }
        if let Some(Job::Packets(block)) = jobs.back_mut() {
            block.push(packet, std::mem::take(missing));
        }
        true
    }

    /// Appends other settings. They replace those that no packet follows yet.
    pub fn configure(&self, config: FileConfig, preamble: Vec<u8>) {
        let mut state = self.lock();
        if matches!(state.jobs.back(), Some(Job::Configure { .. })) {
            state.jobs.pop_back();
        }
        state.jobs.push_back(Job::Configure { config, preamble });
    }

    /// Ends the writer after the jobs that wait.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Wakes a writer that has jobs, and takes its answers.
    pub fn answers(&self) -> Answers {
        let mut state = self.lock();
        let has_jobs = !state.jobs.is_empty();
        let mut answers = state.answers.clone();
        state.answers.counts = Counts::default();
        answers.has_jobs = has_jobs;
        drop(state);
        if has_jobs && !answers.is_in_turn {
            self.wake.notify_one();
        }
        answers
    }

    /// Whether no further packets are taken.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Whether the writer has no job and is in no turn.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.jobs.is_empty() && !state.answers.is_in_turn
    }

    /// Ends a turn, which had a job of `size` bytes.
    pub fn finish(&self, size: usize, counts: Counts, error: Option<&str>) {
        let mut state = self.lock();
        state.bytes -= size;
        let answers = &mut state.answers;
        (answers.turns, answers.is_in_turn) = (answers.turns + 1, false);
        answers.counts.add(counts);
        if answers.error.as_deref() != error {
            answers.error = error.map(str::to_owned);
        }
    }

    /// Waits for the next turn, and begins it. Returns the bytes of its job too.
    pub fn next(&self) -> (Turn, usize) {
        let is_idle = |state: &mut State| state.jobs.is_empty() && !state.is_closed;
        let waited = self.wake.wait_timeout_while(self.lock(), LOOK, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let job = state.jobs.pop_front();
        if job.is_none() && state.is_closed {
            return (Turn::End, 0);
        }
        state.answers.is_in_turn = true;
        let size = job.as_ref().map_or(0, Job::size);
        (job.map_or(Turn::Look, Turn::Job), size)
    }
}
