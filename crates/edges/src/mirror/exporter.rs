//! The exporter: copies in, frames of ports, files and datagrams out.

use std::path::PathBuf;
use std::sync::Arc;

use super::board::{MirrorView, SessionView};
use super::facts::SwitchFacts;
use super::file::{Counts, FileWriter, PcapFile, Retired};
use super::pcapng::{self, Packet};
use super::sflow::{Agent, Copied};
use super::spec::{Destination, FileConfig, MirrorConfig, Target};
use super::text;
use crate::plan::counters::Counters;
use crate::plan::mirror::{CopyFrame, MirrorSpec};
use crate::plan::spec::SwitchSpec;
use crate::sets::PortSet;
use crate::units::Nanos;

/// The shortest frame of Ethernet, without its frame check sequence.
const SHORTEST_FRAME: usize = 60;
/// Bytes of a frame beyond the MTU of its port: the header and a VLAN tag.
const BEYOND_MTU: usize = 14 + 4;

/// Reasons for which a port takes no copy, with their remedies.
const NO_LINK: &str = "has no link; check its cable and its monitor";
const NO_BUFFER: &str = "its lcore has no buffer for further copies; write a lower `rate` of the session";

/// The lcores' ports, as outputs of copies.
pub trait Inject {
    /// Sends `bytes` by `port`. Returns false if the lcore of the port has no buffer for it.
    fn inject(&mut self, port: u8, bytes: &[u8]) -> bool;
}

/// Creates the writer of the file of a session, by the session's name and the beginning of the file.
pub type OpenFile = fn(&str, FileConfig, Vec<u8>, Nanos) -> FileWriter;

/// Exports copies to the destinations of their sessions. It has no clock: its times are on any clock that does not go
/// back. Each file has a thread, so that no call waits for a disk.
#[derive(Debug)]
pub struct Exporter {
    facts: SwitchFacts,
    counters: Arc<Counters>,
    /// The number that copies of these sessions have.
    id: u32,
    sessions: Vec<Session>,
    /// Writers of files of earlier sessions.
    retired: Retired,
    open_file: OpenFile,
    agent: Option<Agent>,
    /// Ports with a link. Copies to others are lost.
    up: PortSet,
    stale: u64,
    line: String,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct Session {
    target: Target,
    /// Bytes of a frame that the session copies.
    bytes: usize,
    output: Output,
    counts: Counts,
    error: Option<String>,
}

#[derive(Debug)]
enum Output {
    Port { port: u8, has_trailer: bool },
    File(Box<FileWriter>),
    Sflow,
}

impl Exporter {
    /// Creates the exporter of the switch of `spec`, which is called `system`, without sessions. The lcores write
    /// `counters`.
    #[must_use]
    pub fn new(spec: &SwitchSpec, system: &str, counters: Arc<Counters>) -> Self {
        Self {
            facts: SwitchFacts::new(spec, system),
            counters,
            id: spec.mirror.id,
            sessions: Vec::new(),
            retired: Retired::default(),
            open_file: |name, config, preamble, now| FileWriter::new(name, PcapFile::new(config, preamble), now),
            agent: None,
            up: PortSet::ALL,
            stale: 0,
            line: String::new(),
            frame: Vec::new(),
        }
    }

    /// Names the program in the files: its name and version.
    #[must_use]
    pub fn of_program(mut self, program: &'static str) -> Self {
        self.facts.program = program;
        self
    }

    /// Creates the writers of files by `open_file`.
    #[must_use]
    pub fn with_files(mut self, open_file: OpenFile) -> Self {
        self.open_file = open_file;
        self
    }

    /// Takes other facts of the switch. Call [`Exporter::configure`] after it: files begin with them.
    pub fn set_facts(&mut self, facts: SwitchFacts) {
        self.facts = SwitchFacts { program: self.facts.program, ..facts };
    }

    /// Replaces the sessions. Files, collectors and counts of those that stay go on.
    pub fn configure(&mut self, config: &MirrorConfig, spec: &MirrorSpec, now: Nanos) {
        self.flush(now);
        self.id = spec.id;
        self.agent = config.sflow.clone().map(|wanted| match self.agent.take() {
            Some(mut agent) if agent.is_same(&wanted) => {
                agent.configure(wanted, now);
                agent
            }
            _ => Agent::new(wanted, self.facts.ports.len(), &self.counters, now),
        });
        let mut before = std::mem::take(&mut self.sessions);
        for (target, session) in config.targets.iter().zip(&spec.sessions) {
            let old = before.iter().position(|old| old.target.name == target.name && is_same(&old.target, target));
            let (counts, output) = old.map(|at| before.swap_remove(at)).map_or_else(
                || (Counts::default(), self.open(target, session.bytes, now)),
                |old| (old.counts, self.keep(old.output, target, session.bytes, now)),
            );
            let bytes = usize::from(session.bytes);
            self.sessions.push(Session { target: target.clone(), bytes, output, counts, error: None });
        }
        for Session { output, .. } in before {
            if let Output::File(writer) = output {
                self.retired.push(*writer);
            }
        }
        self.flush(now);
    }

    fn open(&self, target: &Target, bytes: u16, now: Nanos) -> Output {
        match &target.to {
            Destination::Port { port, has_trailer } => Output::Port { port: *port, has_trailer: *has_trailer },
            Destination::File(config) => {
                let writer = (self.open_file)(&target.name, config.clone(), self.preamble(bytes), now);
                Output::File(Box::new(writer))
            }
            Destination::Sflow => Output::Sflow,
        }
    }

    /// The output of a session whose destination stays.
    fn keep(&self, output: Output, target: &Target, bytes: u16, now: Nanos) -> Output {
        match (output, &target.to) {
            (Output::File(mut writer), Destination::File(config)) => {
                writer.configure(config.clone(), self.preamble(bytes));
                Output::File(writer)
            }
            _ => self.open(target, bytes, now),
        }
    }

    /// The beginning of a file whose packets have up to `bytes` bytes.
    fn preamble(&self, bytes: u16) -> Vec<u8> {
        let mut preamble = Vec::new();
        pcapng::section(&mut preamble, &self.facts, bytes);
        preamble
    }

    /// Whether there is a session, or the counters are sampled.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.sessions.is_empty() || self.agent.is_some()
    }

    /// Whether `copy` was made for other sessions than the present ones.
    #[must_use]
    pub fn is_stale(&self, copy: &CopyFrame) -> bool {
        copy.spec_id != self.id
    }

    /// Exports a copy of the event `at`, in nanoseconds since 1970 in UTC.
    pub fn take(&mut self, copy: &CopyFrame, at: u64, now: Nanos, ports: &mut impl Inject) {
        if self.is_stale(copy) {
            self.stale += 1;
            return;
        }
        let Self { facts, counters, sessions, agent, up, line, frame, .. } = self;
        line.clear();
        let copied = sessions.iter_mut().enumerate().filter(|(index, _)| copy.sessions.contains(*index));
        for (_, Session { bytes, output, counts, error, .. }) in copied {
            let bytes = &copy.bytes[..copy.bytes.len().min(*bytes)];
            if line.is_empty() {
                text::describe(copy, facts, line);
            }
            let sent = match output {
                Output::File(writer) => {
                    let packet = Packet { port: copy.ingress, at, bytes, len: copy.len, comment: line };
                    writer.push(&packet, now);
                    continue;
                }
                Output::Port { port, has_trailer } => {
                    let mtu = facts.ports.get(usize::from(*port)).map_or(0, |port| port.mtu);
                    compose(frame, bytes, if *has_trailer { line } else { "" }, usize::from(mtu) + BEYOND_MTU);
                    let refusal = match () {
                        () if !up.contains(usize::from(*port)) => Some(NO_LINK),
                        () if !ports.inject(*port, frame) => Some(NO_BUFFER),
                        () => None,
                    };
                    *error = refusal.map(|refusal| format!("port {}: {refusal}", facts.name_of(*port)));
                    refusal.is_none().then_some(frame.len())
                }
                Output::Sflow => {
                    agent.as_mut().and_then(|agent| agent.take(Copied { copy, bytes, at }, facts, counters, now))
                }
            };
            match sent {
                Some(len) => (counts.copies, counts.bytes) = (counts.copies + 1, counts.bytes + len as u64),
                None => counts.lost += 1,
            }
        }
    }

    /// Takes the ports with a link, `up`, and samples the counters for sFlow if it is time.
    pub fn tick(&mut self, up: PortSet, now: Nanos) {
        self.up = up;
        if let Some(agent) = &mut self.agent {
            agent.tick(&self.facts, &self.counters, up, now);
        }
    }

    /// Sends all that waits, lets the writers of files write, and takes their counts and errors.
    pub fn flush(&mut self, now: Nanos) {
        if let Some(agent) = &mut self.agent {
            agent.flush(now);
        }
        let writers = self.sessions.iter_mut().filter_map(|session| match &mut session.output {
            Output::File(writer) => Some(&mut **writer),
            _ => None,
        });
        self.retired.start(writers, now);
        for Session { output, counts, error, .. } in &mut self.sessions {
            let Output::File(writer) = output else { continue };
            let new;
            (new, *error) = writer.look(now);
            counts.add(new);
        }
    }

    fn writers(&self) -> impl Iterator<Item = &FileWriter> {
        self.sessions.iter().filter_map(|session| match &session.output {
            Output::File(writer) => Some(&**writer),
            _ => None,
        })
    }

    /// Whether no file has copies to write, or a disk that has not answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.retired.iter().next().is_none() && self.writers().all(FileWriter::is_idle)
    }

    /// Ends the writers of files after the copies that wait. Call [`Exporter::flush`] until none is
    /// [unfinished](Exporter::unfinished).
    pub fn close_files(&mut self) {
        self.writers().for_each(FileWriter::close);
    }

    /// Paths of the files whose writers have not ended.
    #[must_use]
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let writers = self.writers().chain(self.retired.iter()).filter(|writer| !writer.has_ended());
        writers.map(|writer| writer.config().path.clone()).collect()
    }

    /// The state of the sessions.
    #[must_use]
    pub fn view(&self) -> MirrorView {
        let view = |session: &Session| SessionView {
            name: session.target.name.clone(),
            to: match &session.target.to {
                Destination::Port { port, .. } => format!("port {}", self.facts.name_of(*port)),
                Destination::File(FileConfig { path, .. }) => format!("file {}", path.display()),
                Destination::Sflow => "sflow".to_owned(),
            },
            copies: session.counts.copies,
            bytes: session.counts.bytes,
            lost: session.counts.lost,
            error: session.error.clone(),
        };
        let sflow = self.agent.as_ref().map(Agent::view);
        MirrorView { sessions: self.sessions.iter().map(view).collect(), stale: self.stale, sflow }
    }
}

/// Whether both have the same port, the same path, or the collectors as their destination.
fn is_same(before: &Target, now: &Target) -> bool {
    match (&before.to, &now.to) {
        (Destination::Port { port: before, .. }, Destination::Port { port: now, .. }) => before == now,
        (Destination::File(before), Destination::File(now)) => before.path == now.path,
        (Destination::Sflow, Destination::Sflow) => true,
        _ => false,
    }
}

/// Composes the frame of at most `longest` bytes that a port sends: `bytes`, padded to a frame, and a trailer.
fn compose(frame: &mut Vec<u8>, bytes: &[u8], trailer: &str, longest: usize) {
    let longest = longest.max(SHORTEST_FRAME);
    let trailer = &trailer.as_bytes()[..trailer.len().min(longest - SHORTEST_FRAME)];
    frame.clear();
    frame.extend_from_slice(&bytes[..bytes.len().min(longest - trailer.len())]);
    if frame.len() < SHORTEST_FRAME {
        frame.resize(SHORTEST_FRAME, 0);
    }
    frame.extend_from_slice(trailer);
}
