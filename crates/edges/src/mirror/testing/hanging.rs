//! A disk that hangs on order, and waiting for writers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::mirror::file::{Disk, FileWriter, PcapFile, Store};
use crate::mirror::spec::FileConfig;
use crate::units::Nanos;

/// The disk of a file. Its calls hang as long as the file's path with `.hangs` exists.
#[derive(Debug)]
struct Hanging {
    disk: Disk,
    path: PathBuf,
}

/// The file that lets the disk of `path` hang.
fn order(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.hangs", path.display()))
}

/// Lets the disk of `path` hang, or return.
pub fn set_hanging(path: &Path, hangs: bool) {
    if hangs { std::fs::write(order(path), "").unwrap() } else { std::fs::remove_file(order(path)).unwrap() }
}

/// Creates the writer of a file whose disk hangs on order.
pub fn open_hanging(name: &str, config: FileConfig, preamble: Vec<u8>, now: Nanos) -> FileWriter {
    let path = config.path.clone();
    let store = Hanging { disk: Disk::new(path.clone()), path };
    FileWriter::new(name, PcapFile::with_store(config, preamble, store), now)
}

impl Hanging {
    /// The disk when it returns. A test that has ended lets its threads go on.
    fn disk(&mut self) -> &mut Disk {
        wait("the disk to return", || !order(&self.path).exists());
        &mut self.disk
    }
}

impl Store for Hanging {
    fn begin(&mut self, preamble: &[u8], files: u8) -> io::Result<()> {
        self.disk().begin(preamble, files)
    }

    fn trim(&mut self, files: u8) {
        self.disk().trim(files);
    }

    fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        self.disk().append(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.disk().cut(len)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.disk.has_room(bytes)
    }

    fn is_in_place(&self, len: u64) -> bool {
        self.disk.is_in_place(len)
    }
}

/// Waits until `is_done`.
#[track_caller]
pub fn wait(what: &str, mut is_done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
