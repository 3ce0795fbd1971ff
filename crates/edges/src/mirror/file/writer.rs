//! Writers of files. Each has a thread of its own, so that a disk that hangs holds up its own file only.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use super::queue::{Job, Queue, Turn};
use super::{Counts, PcapFile, Store, disk};
use crate::mirror::pcapng::Packet;
use crate::mirror::spec::FileConfig;
use crate::pulse::Pulse;
use crate::units::Nanos;

/// Time after which a turn of a writer that has not ended is an error. Usual writes take far less.
const HANGS: Nanos = Nanos(3_000_000_000);
/// Time for which a full queue is an error.
const FULL: Nanos = Nanos(3_000_000_000);

/// A file and its thread, which begins with [`FileWriter::start`]. Copies wait for it in a bounded queue; no call waits
/// for the disk. The thread of a dropped writer writes the copies that wait, and ends.
pub struct FileWriter {
    name: String,
    config: FileConfig,
    queue: Arc<Queue>,
    /// The file before it is with the thread.
    task: Arc<Mutex<Option<Task>>>,
    thread: Option<JoinHandle<()>>,
    /// Reason for which the system refused a thread.
    refusal: Option<String>,
    /// Turns at the last look, and the time since which they have not changed although there is work.
    turns: u64,
    since: Nanos,
    /// Time of the last copy for which the queue was full.
    full_at: Option<Nanos>,
}

/// The loop of the thread.
type Task = Box<dyn FnOnce() + Send>;

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter").field("config", &self.config).finish_non_exhaustive()
    }
}

impl FileWriter {
    /// Creates the writer of `file` for the session `name`.
    #[must_use]
    pub fn new<S: Store + Send + 'static>(name: &str, file: PcapFile<S>, now: Nanos) -> Self {
        let queue = Arc::new(Queue::new());
        let config = file.config().clone();
        let task: Task = Box::new({
            let queue = queue.clone();
            let name = format!("mirror-{name}");
            move || run(&queue, file, &Pulse::start(&name))
        });
        let task = Arc::new(Mutex::new(Some(task)));
        let name = name.to_owned();
        Self { name, config, queue, task, thread: None, refusal: None, turns: 0, since: now, full_at: None }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &FileConfig {
        &self.config
    }

    /// Starts the thread. If the system refuses one, [`FileWriter::look`] says so until a later call succeeds.
    pub fn start(&mut self, now: Nanos) {
        self.since = now;
        let task = self.task.clone();
        let run = move || {
            let task = task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(task) = task {
                task();
            }
        };
        // Linux shows the first 15 bytes of the name.
        match std::thread::Builder::new().name(format!("mirror-{}", self.name)).spawn(run) {
            Ok(thread) => (self.thread, self.refusal) = (Some(thread), None),
            Err(error) => {
                let path = self.config.path.display();
                self.refusal = Some(format!(
                    "`{path}`: the system refuses a thread for it ({error}); raise the limit of threads of this user"
                ));
            }
        }
    }

    /// Whether the thread was started.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.thread.is_some()
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Whether the thread has nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_started() && self.queue.is_idle()
    }

    /// Changes size and number of files. With another `preamble` the next packet begins a file.
    pub fn configure(&mut self, config: FileConfig, preamble: Vec<u8>) {
        self.config = config.clone();
        self.queue.configure(config, preamble);
    }

    /// Appends a packet, or counts it as lost if the queue is full.
    pub fn push(&mut self, packet: &Packet<'_>, now: Nanos) {
        if !self.queue.push(packet) {
            self.full_at = Some(now);
        }
    }

    /// Ends the thread after the copies that wait.
    pub fn close(&self) {
        self.queue.close();
    }

    /// Lets the thread write the copies that wait. Returns the counts since the look before, and the present error.
    pub fn look(&mut self, now: Nanos) -> (Counts, Option<String>) {
        let answers = self.queue.answers();
        let has_work = answers.is_in_turn || answers.has_jobs || !self.is_started();
        if !has_work || answers.turns != self.turns {
            (self.turns, self.since) = (answers.turns, now);
        }
        let waits = now.0.saturating_sub(self.since.0);
        let is_full = self.full_at.is_some_and(|at| now.0.saturating_sub(at.0) < FULL.0);
        let error = match () {
            () if self.refusal.is_some() => self.refusal.clone(),
            () if self.has_ended() && !self.queue.is_closed() => Some(self.is_broken()),
            () if waits >= HANGS.0 => Some(self.hangs(waits / 1_000_000_000)),
            () if is_full && answers.error.is_none() => Some(self.is_too_slow()),
            () => answers.error,
        };
        (answers.counts, error)
    }

    /// The error of a writer that has work and has finished none for `seconds`.
    fn hangs(&self, seconds: u64) -> String {
        let (path, directory) = (self.config.path.display(), disk::directory(&self.config.path).display());
        let remedy = format!("check whether the disk or network mount of `{directory}` hangs");
        if self.is_started() {
            return format!("`{path}`: has not finished a write for {seconds}s; {remedy}");
        }
        format!("`{path}`: waits for {seconds}s for the last write of a file of the sessions before; {remedy}")
    }

    /// The error of a writer whose thread has ended by a panic, which has printed its message.
    fn is_broken(&self) -> String {
        format!("`{}`: its thread has ended by a defect; report it, and restart the switch", self.config.path.display())
    }

    /// The error of a writer whose queue was full.
    fn is_too_slow(&self) -> String {
        let path = self.config.path.display();
        format!("`{path}`: its disk is too slow for the copies; write a lower `rate` or fewer `bytes` of the session")
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes the jobs of the queue until it is closed. The first turn opens the file.
fn run<S: Store>(queue: &Queue, mut file: PcapFile<S>, pulse: &Pulse) {
    let start = Instant::now();
    let now = || Nanos(start.elapsed().as_nanos() as u64);
    let (mut turn, mut size) = (Turn::Look, 0);
    loop {
        if matches!(turn, Turn::End) {
            return;
        }
        // The exporter reports a disk that hangs.
        pulse.outside(|| {
            match turn {
                Turn::Job(Job::Packets(block)) => {
                    let now = now();
                    block.for_each(|packet, missing| {
                        file.miss(packet.port, missing);
                        file.push(packet, now);
                    });
                }
                Turn::Job(Job::Configure { config, preamble }) => file.configure(config, preamble, now()),
                Turn::Look | Turn::End => {}
            }
            file.flush(now());
        });
        queue.finish(size, file.take_counts(), file.error());
        (turn, size) = queue.next();
    }
}
