//! Files in a directory: the newest has the path, older ones have `.1`, `.2` and so on behind it.
//!
//! Only files that begin as pcapng files do are replaced, renamed or removed. A writer holds a lock on its file
//! (`flock`), so that two switches never write or displace the same one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::Store;
use crate::mirror::pcapng;
use crate::mirror::spec::MOST_FILES;

/// Permissions of a file: its group may read it. Copies have users' data.
const MODE: u32 = 0o640;

/// The directory of a file.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    file: Option<File>,
    /// Number of files beyond which older ones were removed; `None`: no file was begun yet.
    kept: Option<u8>,
}

impl Disk {
    /// Creates the place with `path`.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, kept: None }
    }

    /// The path with `.end`.
    fn beside(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(self.path.as_os_str());
        name.push(".");
        name.push(end);
        name.into()
    }

    /// The path of the `age`-th older file; zero: the newest.
    fn older(&self, age: u8) -> PathBuf {
        if age == 0 { self.path.clone() } else { self.beside(&age.to_string()) }
    }

    /// The age that the oldest displaced file gets, which is that of the first gap. Without a gap the second value is
    /// true: the oldest file is lost.
    ///
    /// # Errors
    /// If a file on the way may not be displaced.
    fn last_age(&self, files: u8) -> io::Result<(u8, bool)> {
        for age in 0..files {
            if !may_displace(&self.older(age))? {
                return Ok((age, false));
            }
        }
        Ok((files - 1, true))
    }

    /// Leaves the file, and its lock. A child of the process has copies of all descriptors from its fork to its exec,
    /// and a closed file would stay locked so long.
    fn leave(&mut self) {
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
        }
    }

    /// Whether the file at the path is empty, or has `preamble` and no packet.
    fn has_no_packet(&self, preamble: &[u8]) -> bool {
        let read = || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            open(&self.path, OpenOptions::new().read(true))?.take(preamble.len() as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().is_ok_and(|bytes| bytes.is_empty() || bytes == preamble)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Store for Disk {
    fn begin(&mut self, preamble: &[u8], files: u8) -> io::Result<()> {
        self.leave();
        let files = files.max(1);
        may_displace(&self.path)?;
        // Restarts without copies between them must not displace files with packets.
        let (last, is_lost) = if self.has_no_packet(preamble) { (0, false) } else { self.last_age(files)? };
        // A full disk must not cost older files, so that the new one gets its beginning before they are moved.
        let new = self.beside("new");
        let mut file = create(&new, preamble);
        if last > 0 && is_lost && file.as_ref().is_err_and(is_full) && fs::remove_file(self.older(last)).is_ok() {
            // The oldest file would be the next to go.
            file = create(&new, preamble);
        }
        let file = file?;
        for age in (1..=last).rev() {
            skip_missing(fs::rename(self.older(age - 1), self.older(age)))?;
        }
        fs::rename(&new, &self.path)?;
        self.file = Some(file);
        if self.kept != Some(files) {
            self.trim(files);
        }
        Ok(())
    }

    fn trim(&mut self, files: u8) {
        self.kept = Some(files);
        for path in (files.max(1)..MOST_FILES).map(|age| self.older(age)) {
            let is_pcapng = may_displace(&path).is_ok_and(|is_file| is_file);
            if is_pcapng && fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
                // One that cannot be removed stays, and costs no copies.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let Some(file) = &mut self.file else { return (0, Err(ErrorKind::NotFound.into())) };
        let mut written = 0;
        while written < bytes.len() {
            match file.write(&bytes[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(ErrorKind::NotFound)?;
        // A file that others have made shorter must not grow by zeros.
        if file.metadata()?.len() < len {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        file.set_len(len)
    }

    fn has_room(&self, bytes: u64) -> bool {
        let free = self.file.as_ref().and_then(|file| rustix::fs::fstatvfs(file).ok());
        free.is_some_and(|of| of.f_bavail.saturating_mul(of.f_frsize) >= bytes)
    }

    fn is_in_place(&self, len: u64) -> bool {
        let Some(Ok(own)) = self.file.as_ref().map(File::metadata) else { return false };
        let named = fs::symlink_metadata(&self.path);
        own.len() >= len && named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()))
    }
}

/// Opens `path`, which must not be a symbolic link.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32).mode(MODE).open(path)
}

/// Creates a file that begins with `preamble`, and locks it; removes it if it cannot be written.
fn create(path: &Path, preamble: &[u8]) -> io::Result<File> {
    // One that a switch left that ended at this point.
    if may_displace(path)? {
        skip_missing(fs::remove_file(path))?;
    }
    let mut file = open(path, OpenOptions::new().append(true).create_new(true))?;
    refuse_locked(file.try_lock(), path)?;
    file.write_all(preamble).inspect_err(|_| drop(fs::remove_file(path)))?;
    Ok(file)
}

/// Refuses the file at `path` if another writer has its lock. File systems without locks are written too.
fn refuse_locked(lock: Result<(), TryLockError>, path: &Path) -> io::Result<()> {
    match lock {
        Err(TryLockError::WouldBlock) => {
            let shown = path.display();
            Err(io::Error::other(format!("`{shown}`: another switch or mirror writes it; write another path")))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether there is a file, which may be replaced, renamed or removed.
///
/// # Errors
/// If it is not a regular file that is empty or begins as a pcapng file does, or if another one writes it.
fn may_displace(path: &Path) -> io::Result<bool> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        result => result?.file_type(),
    };
    let shown = path.display();
    if !kind.is_file() {
        let what = match kind {
            _ if kind.is_symlink() => "a symbolic link",
            _ if kind.is_dir() => "a directory",
            _ => "not a regular file",
        };
        let or = if kind.is_symlink() { ", or remove the link" } else { "" };
        let error = format!("`{shown}` is {what}; write another path in the configuration{or}");
        return Err(io::Error::other(error));
    }
    let file = match open(path, OpenOptions::new().read(true)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        result => result?,
    };
    let mut bytes = Vec::new();
    { &file }.take(4).read_to_end(&mut bytes)?;
    if !bytes.is_empty() && !pcapng::is_section(&bytes) {
        return Err(io::Error::other(format!("`{shown}` is not a pcapng file; write another path, or move it")));
    }
    // Its writer holds the lock all the time. The shared one here ends with this function.
    refuse_locked(file.try_lock_shared(), path).map(|()| true)
}

fn skip_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The directory of `path`.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The error of the file at `path`, with its remedy.
pub(super) fn explain(error: &io::Error, path: &Path) -> String {
    if error.kind() == ErrorKind::Other && error.get_ref().is_some() {
        // One of this file, which names its path: that may be the path of an older file.
        return error.to_string();
    }
    let directory = directory(path);
    let has_directory = directory.is_dir();
    let (shown, directory) = (path.display(), directory.display());
    match error.kind() {
        // Special file systems such as /proc refuse new files so.
        ErrorKind::NotFound if has_directory => {
            format!("`{shown}`: no file can be created in `{directory}`; write another path")
        }
        ErrorKind::NotFound => format!("`{shown}`: its directory is missing; create `{directory}`"),
        ErrorKind::PermissionDenied => format!(
            "`{shown}`: the user of the switch may not write it; give that user the right to write in `{directory}`"
        ),
        ErrorKind::ReadOnlyFilesystem => format!(
            "`{shown}`: its file system is read-only; under systemd only /var/log/holdfast can be written; write a \
             path there"
        ),
        _ if is_full(error) => format!(
            "`{shown}`: no space is left in `{directory}`; make room, or write a smaller `size` or fewer `files`"
        ),
        kind => format!("`{shown}`: {kind}; check the file system of `{directory}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_rotated_while_a_starting_program_has_its_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let mut preamble = Vec::new();
        pcapng::section(&mut preamble, &crate::mirror::tests::facts(), 128);
        let mut disk = Disk::new(path.clone());
        disk.begin(&preamble, 2).unwrap();
        disk.append(b"packet").1.unwrap();
        // A child has copies of all descriptors from its fork to its exec.
        let copy = disk.file.as_ref().unwrap().try_clone().unwrap();
        disk.begin(&preamble, 2).unwrap();
        let copy = (copy, disk.file.as_ref().unwrap().try_clone().unwrap());
        drop(disk);
        Disk::new(path).begin(&preamble, 2).unwrap();
        drop(copy);
    }
}
