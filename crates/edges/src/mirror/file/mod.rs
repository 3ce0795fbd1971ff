//! Pcapng files of bounded size.
//!
//! A file only ever has whole packets: one that could not be written wholly is cut off. Copies that cannot be written
//! are lost and counted, and a second later the file is tried again. Files of others are neither written nor displaced.
//!
//! [`PcapFile`] has no clock and no threads, and its calls last as long as the disk takes. A [`FileWriter`] runs it on
//! a thread of its own. [`Retired`] has the writers that a reload has ended.

mod disk;
mod queue;
mod retired;
#[cfg(test)]
mod tests;
mod writer;

use std::io;

pub use disk::Disk;
pub use retired::Retired;
pub use writer::FileWriter;

use super::after;
use super::pcapng::{self, Packet};
use super::spec::FileConfig;
use crate::units::Nanos;

/// Time from an error to the next attempt, and between two looks whether the file is still in its place.
const RETRY: Nanos = Nanos(1_000_000_000);
/// Bytes of packets after which they are written before the look ends.
const BATCH: usize = 256 << 10;

/// The place of a file.
pub trait Store {
    /// Begins a file with `preamble` and keeps up to `files` with older ones. If it fails, all files are as before,
    /// except that the oldest may be missing.
    ///
    /// # Errors
    /// If the place takes no file, or one that would be displaced is none of this writer.
    fn begin(&mut self, preamble: &[u8], files: u8) -> io::Result<()>;
    /// Removes older files beyond the newest `files`, as far as they can be.
    fn trim(&mut self, files: u8);
    /// Appends `bytes`. Returns the number of bytes that were written, and the error that ended it.
    fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>);
    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// If the file could not be cut.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Whether the file system of the file has `bytes` free.
    fn has_room(&self, bytes: u64) -> bool;
    /// Whether the file is still in its place and has at least `len` bytes.
    fn is_in_place(&self, len: u64) -> bool;
}

/// Copies, bytes and losses of a session.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Copies that reached their destination.
    pub copies: u64,
    /// Bytes of these, with all that was added to them.
    pub bytes: u64,
    /// Copies that did not.
    pub lost: u64,
}

impl Counts {
    /// Adds `more`.
    pub fn add(&mut self, more: Self) {
        self.copies += more.copies;
        self.bytes += more.bytes;
        self.lost += more.lost;
    }
}

/// A packet of the batch.
#[derive(Debug, Clone, Copy)]
struct Written {
    /// End in the batch.
    end: usize,
    port: u8,
    /// Lost copies of its port that the packet states.
    missing: u64,
}

/// A pcapng file and its older ones.
#[derive(Debug)]
pub struct PcapFile<S = Disk> {
    config: FileConfig,
    store: S,
    preamble: Vec<u8>,
    is_open: bool,
    /// Length of the file.
    len: u64,
    batch: Vec<u8>,
    packets: Vec<Written>,
    packet: Vec<u8>,
    /// Time before which nothing is written after an error, and time of the next look at the place.
    retry_at: Nanos,
    look_at: Nanos,
    /// Lost copies of each port that no packet states yet.
    missing: Vec<u64>,
    counts: Counts,
    error: Option<String>,
    /// Whether the error is lack of room in the file system. A quota is another: its rest cannot be asked.
    is_full: bool,
}

impl PcapFile {
    /// Creates the writer of the file of `config`. [`PcapFile::flush`] opens it.
    #[must_use]
    pub fn new(config: FileConfig, preamble: Vec<u8>) -> Self {
        let store = Disk::new(config.path.clone());
        Self::with_store(config, preamble, store)
    }
}

impl<S: Store> PcapFile<S> {
    /// Creates the writer of a file in `store`, otherwise like [`PcapFile::new`].
    #[must_use]
    pub fn with_store(config: FileConfig, preamble: Vec<u8>, store: S) -> Self {
        Self {
            config,
            store,
            preamble,
            is_open: false,
            len: 0,
            batch: Vec::new(),
            packets: Vec::new(),
            packet: Vec::new(),
            retry_at: Nanos(0),
            look_at: Nanos(0),
            missing: vec![0; 1 << u8::BITS],
            counts: Counts::default(),
            error: None,
            is_full: false,
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &FileConfig {
        &self.config
    }

    /// Changes size and number of files. With another `preamble` the next packet begins a file.
    pub fn configure(&mut self, config: FileConfig, preamble: Vec<u8>, now: Nanos) {
        if preamble != self.preamble {
            self.flush(now);
            (self.is_open, self.preamble) = (false, preamble);
        }
        if config.files < self.config.files && self.is_open {
            self.store.trim(config.files);
        }
        self.config = config;
    }

    /// The error of the last attempt to write, with its remedy; `None`: it succeeded, or a full disk has room again.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Takes what was counted since the call before.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Lets the next packet of `port` state `copies` more that the file misses. They are counted elsewhere.
    pub fn miss(&mut self, port: u8, copies: u64) {
        self.missing[usize::from(port)] += copies;
    }

    /// Appends a packet.
    pub fn push(&mut self, packet: &Packet<'_>, now: Nanos) {
        if !self.is_ready(now) {
            return self.lose(packet.port, 0, 1);
        }
        let missing = std::mem::take(&mut self.missing[usize::from(packet.port)]);
        self.packet.clear();
        pcapng::packet(&mut self.packet, packet, missing);
        let len = self.len + self.batch.len() as u64;
        if len > self.preamble.len() as u64 && len + self.packet.len() as u64 > self.config.size.0 {
            self.write(now);
            self.is_open = false;
            if !self.is_ready(now) {
                return self.lose(packet.port, missing, 1);
            }
        }
        self.batch.extend_from_slice(&self.packet);
        self.packets.push(Written { end: self.batch.len(), port: packet.port, missing });
        if self.batch.len() >= BATCH {
            self.write(now);
        }
    }

    /// Opens the file if it is not, and writes all packets, in one piece unless they are many. Once a second it looks
    /// whether the file is in place, and whether a full disk has room again.
    pub fn flush(&mut self, now: Nanos) {
        if self.is_open && now >= self.look_at {
            self.look_at = after(now, RETRY);
            self.is_open = self.store.is_in_place(self.len);
            // Else the error would stay until the next event.
            if self.is_open && self.is_full && self.store.has_room(BATCH as u64) {
                (self.error, self.is_full) = (None, false);
            }
        }
        if self.is_ready(now) {
            self.write(now);
        }
    }

    /// Whether the file takes packets; opens it if it is time.
    fn is_ready(&mut self, now: Nanos) -> bool {
        if now < self.retry_at || self.is_open {
            return now >= self.retry_at;
        }
        match self.store.begin(&self.preamble, self.config.files) {
            Ok(()) => {
                (self.is_open, self.error, self.look_at) = (true, None, after(now, RETRY));
                self.is_full = false;
                self.len = self.preamble.len() as u64;
            }
            Err(error) => self.fail(&error, now),
        }
        self.is_open
    }

    /// Writes the batch. After an error the file ends with the last whole packet.
    fn write(&mut self, now: Nanos) {
        if self.batch.is_empty() {
            return;
        }
        let (written, result) = self.store.append(&self.batch);
        let whole = self.packets.partition_point(|packet| packet.end <= written);
        let kept = whole.checked_sub(1).map_or(0, |last| self.packets[last].end) as u64;
        self.len += kept;
        self.counts.copies += whole as u64;
        self.counts.bytes += kept;
        for Written { port, missing, .. } in std::mem::take(&mut self.packets).split_off(whole) {
            self.lose(port, missing, 1);
        }
        self.batch.clear();
        match result {
            Ok(()) => (self.error, self.is_full) = (None, false),
            Err(error) => {
                // A file that cannot be cut is left; the next attempt begins another.
                self.is_open = self.store.cut(self.len).is_ok();
                self.fail(&error, now);
            }
        }
    }

    /// Counts lost copies of `port`; the packet that was to state `missing` of them is not written.
    fn lose(&mut self, port: u8, missing: u64, copies: u64) {
        self.missing[usize::from(port)] += missing + copies;
        self.counts.lost += copies;
    }

    /// Notes an error. Packets of the batch are lost.
    fn fail(&mut self, error: &io::Error, now: Nanos) {
        self.retry_at = after(now, RETRY);
        self.error = Some(disk::explain(error, &self.config.path));
        self.is_full = error.kind() == io::ErrorKind::StorageFull;
        self.batch.clear();
        for Written { port, missing, .. } in std::mem::take(&mut self.packets) {
            self.lose(port, missing, 1);
        }
    }
}
