//! The thread that keeps a mirror of a namespace and sends its differences.

mod requests;
mod worker;

use std::os::fd::OwnedFd;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::mpsc;

use self::worker::Worker;
use super::error::NetlinkError;
use super::mirror::{Change, Limits, Sizes};
use super::socket::{Namespace, RouteSocket};
use crate::sync::{Arc, AtomicBool, Ordering};

/// Groups of events: links, neighbours, addresses and routes of both families, next-hop objects (`RTNLGRP_*`).
const GROUPS: [u32; 7] = [1, 3, 5, 7, 9, 11, 32];

/// Settings of a [`Watcher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Limits of the mirror's tables.
    pub limits: Limits,
    /// Time between dumps that verify the mirror without a cause.
    pub resync: Duration,
    /// Least time between dumps that have a cause: lost messages, or changes that the kernel may have made silently.
    pub gap: Duration,
    /// Size of the socket's receive buffer in bytes. Events beyond it are lost, which causes a dump.
    pub receive_buffer: usize,
    /// Most differences of a batch.
    pub batch: usize,
    /// Most batches that wait for the consumer. Further differences stay in the mirror and merge there.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            resync: Duration::from_secs(60),
            gap: Duration::from_millis(250),
            receive_buffer: 16 << 20,
            batch: 4096,
            queue: 4,
        }
    }
}

/// Counts since the watcher began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Messages that changed the mirror or confirmed it.
    pub messages: u64,
    /// Messages that do not concern the mirror.
    pub ignored: u64,
    /// Messages that could not be parsed, and were skipped.
    pub malformed: u64,
    /// Losses of messages because the receive buffer was full.
    pub overruns: u64,
    /// Complete dumps of all tables.
    pub dumps: u64,
    /// Dumps of one table that were repeated because it changed meanwhile.
    pub repeated_dumps: u64,
    /// Dumps that failed.
    pub failed_dumps: u64,
    /// Entries that were refused because a table was full.
    pub refused: u64,
}

/// Differences, in the order in which they should be applied, with the state of the watcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The differences.
    pub changes: Vec<Change>,
    /// Whether the consumer has the kernel's tables after this batch: nothing is pending, lost or refused by an error.
    pub is_synced: bool,
    /// Counts.
    pub counters: Counters,
    /// Entries of the mirror's tables.
    pub sizes: Sizes,
    /// Reason of the latest failed dump, if it failed since the batch before.
    pub failure: Option<String>,
}

/// Orders for the thread.
#[derive(Debug, Default)]
struct Orders {
    stop: AtomicBool,
    resync: AtomicBool,
}

/// A thread that watches a namespace. Dropping the value ends the thread.
#[derive(Debug)]
pub struct Watcher {
    wake: Arc<OwnedFd>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Starts to watch `namespace`. The first batches describe its tables. The thread ends with the watcher or with
    /// the receiver.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the socket or the thread cannot be made.
    pub fn start(namespace: &Namespace, options: Options) -> Result<(Self, mpsc::Receiver<Batch>), NetlinkError> {
        let socket = RouteSocket::open(namespace, &GROUPS, options.receive_buffer)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(|error| socket.failure("make an event", error.into()))?);
        let orders = Arc::new(Orders::default());
        let (sender, receiver) = mpsc::channel(options.queue.max(1));
        let name = socket.namespace().to_owned();
        let worker = Worker::new(socket, wake.clone(), orders.clone(), sender, options);
        let thread = std::thread::Builder::new().name(worker::NAME.to_owned()).spawn(move || worker.run());
        let thread =
            thread.map_err(|error| NetlinkError::Socket { namespace: name, action: "start a thread", error })?;
        Ok((Self { wake, orders, thread: Some(thread) }, receiver))
    }

    /// Asks for a dump now.
    pub fn resync(&self) {
        self.orders.resync.store(true, Ordering::Release);
        self.wake();
    }

    /// A full counter of the event wakes the thread as well, so a failed write is harmless.
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.orders.stop.store(true, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}
