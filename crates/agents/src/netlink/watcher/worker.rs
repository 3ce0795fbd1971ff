//! The thread of a [`Watcher`](super::Watcher): events, dumps, and batches for the consumer.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::requests::{DumpFailure, request, tolerate};
use super::{Batch, Counters, Options, Orders};
use crate::netlink::decode::{decode, entry_key};
use crate::netlink::frame::{Answer, RawMessage, messages};
use crate::netlink::mirror::{DumpEnd, Mirror, TableName};
use crate::netlink::model::KernelEvent;
use crate::netlink::socket::{Received, RouteSocket, wait};
use crate::pulse::{PERIOD, Pulse};
use crate::sync::{Arc, Ordering};

/// Name of the thread.
pub const NAME: &str = "hf-netlink";
/// Attempts at a dump of one table that changes meanwhile.
const ATTEMPTS: u32 = 5;
/// Time from a failed dump to the next.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time without a message of a dump.
const SILENCE: Duration = Duration::from_secs(5);
/// Time to the next attempt to send, if the consumer is behind.
const BEHIND: Duration = Duration::from_millis(20);
/// Datagrams between two attempts to send.
const BURST: usize = 64;
/// Most bursts that are received before a dump.
const DRAIN: usize = 4096;

/// State of the thread.
pub struct Worker {
    pulse: Pulse,
    socket: RouteSocket,
    wake: Arc<OwnedFd>,
    orders: Arc<Orders>,
    sender: mpsc::Sender<Batch>,
    options: Options,
    mirror: Mirror,
    counters: Counters,
    buffer: Vec<u8>,
    /// Messages may have been lost since the last complete dump began, or there was none.
    has_lost: bool,
    /// Messages may have been lost since the current dump began.
    has_lost_in_dump: bool,
    /// The consumer has room for no batch.
    is_behind: bool,
    /// Last published value of [`Batch::is_synced`]; none before the first batch.
    published_synced: Option<bool>,
    failure: Option<String>,
    /// Earliest time of the next dump that the mirror wants.
    earliest: Instant,
    /// Time of the next dump without a cause.
    periodic: Instant,
}

impl Worker {
    pub fn new(
        socket: RouteSocket,
        wake: Arc<OwnedFd>,
        orders: Arc<Orders>,
        sender: mpsc::Sender<Batch>,
        options: Options,
    ) -> Self {
        let now = Instant::now();
        Self {
            pulse: Pulse::start(NAME),
            socket,
            wake,
            orders,
            sender,
            options,
            mirror: Mirror::new(options.limits),
            counters: Counters::default(),
            buffer: Vec::new(),
            has_lost: true,
            has_lost_in_dump: false,
            is_behind: false,
            published_synced: None,
            failure: None,
            earliest: now,
            periodic: now,
        }
    }

    /// Runs until the watcher or the consumer has gone.
    pub fn run(mut self) {
        while !self.is_stopped() {
            // Events are published before a dump, which takes longer.
            if !self.publish() {
                return;
            }
            self.dump_if_due();
            if !self.publish() || self.is_stopped() {
                return;
            }
            let now = Instant::now();
            let wanted = if self.mirror.wants_dump() { self.earliest } else { self.periodic };
            let mut timeout = wanted.min(self.periodic).saturating_duration_since(now);
            if self.is_behind {
                timeout = timeout.min(BEHIND);
            }
            // A broken socket is read again after a pause.
            if let Err(failure) = self.wait(timeout).and_then(|()| self.receive_events().map(drop)) {
                self.fail(failure);
                let _ = wait([self.wake.as_fd()], RETRY);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.orders.stop.load(Ordering::Acquire) || self.sender.is_closed()
    }

    /// Waits for a message, an order or the end of `timeout`.
    fn wait(&self, timeout: Duration) -> Result<(), DumpFailure> {
        self.pulse.beat();
        let waited = wait([self.socket.as_fd(), self.wake.as_fd()], timeout.min(PERIOD));
        let [_, is_woken] = waited.map_err(|error| self.socket.failure("wait", error))?;
        if is_woken {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        Ok(())
    }

    /// Applies the events that have arrived, at most one burst. Returns whether there may be more.
    fn receive_events(&mut self) -> Result<bool, DumpFailure> {
        for _ in 0..BURST {
            if self.receive()? == Received::Nothing {
                return Ok(false);
            }
            let datagram = std::mem::take(&mut self.buffer);
            for message in messages(&datagram) {
                self.event(message.ok());
            }
            self.buffer = datagram;
        }
        Ok(true)
    }

    /// Receives a datagram and notes losses.
    fn receive(&mut self) -> Result<Received, DumpFailure> {
        self.pulse.beat();
        let received = self.socket.receive(&mut self.buffer)?;
        if received == Received::Overrun {
            self.counters.overruns += 1;
            (self.has_lost, self.has_lost_in_dump) = (true, true);
            self.mirror.want_dump();
        }
        Ok(received)
    }

    /// Applies an event. None is a malformed message.
    fn event(&mut self, message: Option<RawMessage<'_>>) {
        let Some(message) = message else {
            self.counters.malformed += 1;
            self.mirror.want_dump();
            return;
        };
        // Answers to this socket's requests belong to a dump that was given up.
        if message.port == self.socket.port() {
            return;
        }
        if !apply(&mut self.mirror, &mut self.counters, &message, Mirror::feed) {
            self.mirror.want_dump();
        }
    }

    fn dump_if_due(&mut self) {
        let now = Instant::now();
        let is_ordered = self.orders.resync.swap(false, Ordering::AcqRel);
        let is_wanted = self.mirror.wants_dump() && now >= self.earliest;
        if !is_ordered && !is_wanted && now < self.periodic {
            return;
        }
        self.mirror.clear_wish();
        self.has_lost_in_dump = false;
        for table in TableName::ALL {
            if let Err(failure) = self.dump(table) {
                self.mirror.cancel_dump(table);
                self.fail(failure);
                return;
            }
        }
        self.counters.dumps += 1;
        self.has_lost = self.has_lost_in_dump;
        let now = Instant::now();
        self.earliest = after(now, self.options.gap);
        self.periodic = after(now, self.options.resync);
    }

    /// Notes a failure and has the next dump wait.
    fn fail(&mut self, failure: DumpFailure) {
        let DumpFailure::Failed(reason) = failure else { return };
        self.counters.failed_dumps += 1;
        self.failure = Some(reason);
        self.published_synced = None;
        self.mirror.want_dump();
        let now = Instant::now();
        self.earliest = now + RETRY;
        self.periodic = after(now, self.options.resync.max(RETRY));
    }

    /// Dumps a table, again if it changes meanwhile.
    fn dump(&mut self, table: TableName) -> Result<(), DumpFailure> {
        let mut is_consistent = false;
        for _ in 0..ATTEMPTS {
            // The kernel refuses a dump while the receive buffer is full.
            self.drain()?;
            self.mirror.begin_dump(table);
            is_consistent = self.receive_dump(table)?;
            if is_consistent && self.mirror.end_dump(table) == DumpEnd::Complete {
                return Ok(());
            }
            self.counters.repeated_dumps += 1;
        }
        self.mirror.cancel_dump(table);
        if !is_consistent {
            return Err(DumpFailure::Failed(format!("the dump of {table} was interrupted {ATTEMPTS} times")));
        }
        // The mirror has the dump and the events that disturbed it. Another dump will tell whether they agree.
        self.mirror.want_dump();
        Ok(())
    }

    /// Applies all events that have arrived, but does not run after a fast sender for ever.
    fn drain(&mut self) -> Result<(), DumpFailure> {
        for _ in 0..DRAIN {
            if !self.receive_events()? || self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    /// Requests the entries of a table and applies them, and events among them. Returns whether the kernel's table
    /// has stayed the same meanwhile.
    fn receive_dump(&mut self, table: TableName) -> Result<bool, DumpFailure> {
        let sequence = request(&mut self.socket, table)?;
        let mut is_consistent = true;
        let mut silent_since = Instant::now();
        loop {
            if self.is_stopped() {
                return Err(DumpFailure::Stopped);
            }
            if self.receive()? == Received::Nothing {
                let left = SILENCE.saturating_sub(silent_since.elapsed());
                if left.is_zero() {
                    return Err(DumpFailure::Failed(format!("the dump of {table} does not end")));
                }
                self.wait(left)?;
                continue;
            }
            let datagram = std::mem::take(&mut self.buffer);
            let (mut end, mut has_events) = (None, false);
            for message in messages(&datagram) {
                let Ok(message) = message else {
                    self.event(None);
                    continue;
                };
                if message.port != self.socket.port() || message.sequence != sequence {
                    has_events = true;
                    self.event(Some(message));
                    continue;
                }
                silent_since = Instant::now();
                is_consistent &= !message.is_interrupted();
                match message.answer() {
                    Answer::Entry => apply_entry(&mut self.mirror, &mut self.counters, table, &message),
                    Answer::Overrun => is_consistent = false,
                    Answer::End(result) => end = Some(result),
                }
            }
            self.buffer = datagram;
            if has_events {
                self.publish();
            }
            match end {
                Some(Err(refusal)) => return tolerate(table, &refusal),
                Some(Ok(())) => return Ok(is_consistent),
                None => {}
            }
        }
    }

    /// Sends differences while the consumer has room. Returns false if there is no consumer.
    fn publish(&mut self) -> bool {
        // Before the first complete dump the tables have gaps.
        if self.counters.dumps == 0 && self.failure.is_none() {
            return true;
        }
        loop {
            self.is_behind = self.sender.capacity() == 0;
            if self.is_behind {
                return !self.sender.is_closed();
            }
            let limit = if self.counters.dumps == 0 { 0 } else { self.options.batch.max(1) };
            let changes = self.mirror.changes(limit);
            let is_last = changes.len() < limit;
            let is_synced = is_last && !self.has_lost && self.failure.is_none();
            if changes.is_empty() && self.published_synced == Some(is_synced) {
                return true;
            }
            let counters = Counters { refused: self.mirror.refused(), ..self.counters };
            let (sizes, failure) = (self.mirror.sizes(), self.failure.take());
            match self.sender.try_send(Batch { changes, is_synced, counters, sizes, failure }) {
                Ok(()) => self.published_synced = Some(is_synced),
                // Only this thread sends, so there is room.
                Err(TrySendError::Full(_)) => self.mirror.want_dump(),
                Err(TrySendError::Closed(_)) => return false,
            }
            if is_last || limit == 0 {
                return true;
            }
        }
    }
}

/// Feeds a message to the mirror and counts it. Returns false if it cannot be decoded.
fn apply(
    mirror: &mut Mirror,
    counters: &mut Counters,
    message: &RawMessage<'_>,
    feed: fn(&mut Mirror, KernelEvent),
) -> bool {
    match decode(message.kind, message.flags, message.payload) {
        Ok(Some(event)) => {
            counters.messages += 1;
            feed(mirror, event);
        }
        Ok(None) => counters.ignored += 1,
        Err(_) => {
            counters.malformed += 1;
            return false;
        }
    }
    true
}

/// Applies an entry of the dump of `table`. If it cannot be decoded, the mirror keeps the entries of its key.
fn apply_entry(mirror: &mut Mirror, counters: &mut Counters, table: TableName, message: &RawMessage<'_>) {
    if !apply(mirror, counters, message, Mirror::feed_dumped) {
        mirror.keep_undecoded(table, entry_key(message.kind, message.payload));
    }
}

/// A time after `now`, at most a day, so that no interval is too long for the clock.
fn after(now: Instant, interval: Duration) -> Instant {
    now + interval.min(Duration::from_secs(86_400))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::mirror::{Change, Limits};
    use crate::netlink::model::{KernelRoute, RouteHops, RouteKind, RouteMode};

    /// RTM_NEWROUTE to 10.1.0.0/16 in the main table, with a metric of two bytes instead of four.
    const BROKEN: [u8; 28] = [2, 16, 0, 0, 254, 186, 0, 6, 0, 0, 0, 0, 8, 0, 1, 0, 10, 1, 0, 0, 6, 0, 6, 0, 1, 2, 0, 0];

    #[test]
    fn dumped_route_that_cannot_be_decoded_keeps_the_one_before() {
        let (mut mirror, mut counters) = (Mirror::new(Limits::default()), Counters::default());
        let (prefix, hops) = ("10.1.0.0/16".parse().unwrap(), RouteHops::Direct(Vec::new()));
        let route = KernelRoute { prefix, metric: 20, protocol: 186, kind: RouteKind::Blackhole, hops };
        mirror.feed(KernelEvent::Route { route, mode: RouteMode::Exclusive });
        mirror.changes(100);
        let table = TableName::RoutesV4;
        mirror.begin_dump(table);
        let message = RawMessage { kind: 24, flags: 0, sequence: 1, port: 1, payload: &BROKEN };
        apply_entry(&mut mirror, &mut counters, table, &message);
        mirror.end_dump(table);
        assert_eq!(mirror.changes(100), [Change::Undecoded { table }]);
        assert_eq!((counters.malformed, mirror.sizes().routes), (1, 1));
    }
}
