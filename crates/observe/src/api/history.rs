//! The configurations by which the switch ran, in memory and in a directory.
//!
//! A file `NUMBER.yaml` has a configuration behind a comment that says when it ran and why, so that a switch can be
//! started by the file as it is. It is written under another name, flushed to the disk and renamed: a crash leaves the
//! last whole file. Files that are not whole are left out with a warning.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::model::Past;

/// Number of configurations that are kept.
pub const KEPT: usize = 20;

/// Most bytes of a configuration.
pub const MAX_TEXT: usize = 1 << 20;

/// Most differences that are kept of one configuration; a last line counts the others.
const MAX_DIFFERENCES: usize = 64;

const HEAD: &str = "# holdfast history: ";
const UNFINISHED: &str = ".unfinished";
const LOCK: &str = "lock";

/// A configuration by which the switch ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its time, user and cause.
    pub past: Past,
    /// Its text.
    pub text: Arc<str>,
}

/// The last configurations, the oldest first.
#[derive(Debug, Default)]
pub struct History {
    kept: Mutex<VecDeque<Kept>>,
    /// The directory, with its lock; `None`: they end with the switch.
    directory: Option<(PathBuf, File)>,
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(flatten)]
    past: Past,
    /// Length of the text behind the line.
    bytes: usize,
}

impl History {
    /// Returns the configurations that a switch has kept in `directory`, which is created, and warnings about files
    /// that cannot be used.
    ///
    /// # Errors
    /// The directory cannot be used, or another switch uses it.
    pub fn open(directory: &Path) -> io::Result<(Self, Vec<String>)> {
        fs::create_dir_all(directory)?;
        let lock = File::create(directory.join(LOCK))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(ErrorKind::ResourceBusy, "another switch keeps its history there")
            }
            TryLockError::Error(error) => error,
        })?;
        let (mut kept, mut warnings) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(UNFINISHED) {
                // A switch ended while it wrote.
                fs::remove_file(&path)?;
            } else if name.ends_with(".yaml") {
                match read(&path) {
                    Ok(found) => kept.push(found),
                    Err(error) => warnings.push(format!("{} is left out of the history: {error}", path.display())),
                }
            }
        }
        kept.sort_by_key(|kept| kept.past.number);
        let history = Self { kept: Mutex::new(kept.into()), directory: Some((directory.to_owned(), lock)) };
        history.drop_oldest();
        Ok((history, warnings))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a configuration, whose number it sets. The oldest gives way.
    ///
    /// # Errors
    /// The file cannot be written; then the configuration is known until the switch ends.
    pub fn add(&self, mut past: Past, text: Arc<str>) -> io::Result<()> {
        if past.differences.len() > MAX_DIFFERENCES {
            let others = past.differences.len() - (MAX_DIFFERENCES - 1);
            past.differences.truncate(MAX_DIFFERENCES - 1);
            past.differences.push(format!("{others} more"));
        }
        let mut kept = self.lock();
        past.number = kept.back().map_or(1, |last| last.past.number + 1);
        let added = Kept { past, text };
        kept.push_back(added.clone());
        drop(kept);
        self.drop_oldest();
        self.directory.as_ref().map_or(Ok(()), |(directory, _)| write(directory, &added))
    }

    /// Forgets the oldest configurations beyond [`KEPT`].
    fn drop_oldest(&self) {
        let mut kept = self.lock();
        while kept.len() > KEPT {
            if let (Some(oldest), Some((directory, _))) = (kept.pop_front(), &self.directory) {
                // A file that stays is forgotten at the next start.
                let _ = fs::remove_file(file(directory, oldest.past.number));
            }
        }
    }

    /// Time, user and cause of all, the oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Past> {
        self.lock().iter().map(|kept| kept.past.clone()).collect()
    }

    /// The configuration with a number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<Kept> {
        self.lock().iter().find(|kept| kept.past.number == number).cloned()
    }

    /// The last configuration.
    #[must_use]
    pub fn last(&self) -> Option<Kept> {
        self.lock().back().cloned()
    }
}

fn file(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:06}.yaml"))
}

/// Writes a configuration so that its file is there as a whole or not at all.
fn write(directory: &Path, kept: &Kept) -> io::Result<()> {
    let path = file(directory, kept.past.number);
    let unfinished = path.with_extension(&UNFINISHED[1..]);
    let head = Head { past: kept.past.clone(), bytes: kept.text.len() };
    let written = (|| {
        let mut file = File::create(&unfinished)?;
        writeln!(file, "{HEAD}{}", serde_json::to_string(&head)?)?;
        file.write_all(kept.text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)?;
        File::open(directory)?.sync_all()
    })();
    if written.is_err() {
        // A full disk has more need of the room.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

fn read(path: &Path) -> io::Result<Kept> {
    let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    // A line of differences and keys is short beside the text.
    if fs::metadata(path)?.len() > 2 * MAX_TEXT as u64 {
        return Err(wrong(format!("it has more than {} bytes", 2 * MAX_TEXT)));
    }
    let all = fs::read_to_string(path)?;
    let (head, text) = all.split_once('\n').ok_or_else(|| wrong("it has one line only".to_owned()))?;
    let head = head.strip_prefix(HEAD).ok_or_else(|| wrong(format!("it does not begin with `{HEAD}`")))?;
    let head: Head = serde_json::from_str(head)?;
    if head.bytes != text.len() {
        return Err(wrong(format!("it has {} bytes of {}", text.len(), head.bytes)));
    }
    if file(Path::new(""), head.past.number).as_os_str() != path.file_name().unwrap_or_default() {
        return Err(wrong(format!("it has the number {}", head.past.number)));
    }
    Ok(Kept { past: head.past, text: text.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(source: &str) -> Past {
        Past { source: source.to_owned(), cause: "reload".to_owned(), ..Past::default() }
    }

    fn add(history: &History, text: &str) -> io::Result<()> {
        history.add(past("a.yaml"), text.into())
    }

    fn texts(history: &History) -> Vec<(u64, String)> {
        let kept = history.all().into_iter().map(|past| past.number);
        kept.map(|number| (number, history.get(number).unwrap().text.to_string())).collect()
    }

    #[test]
    fn history_keeps_the_last_configurations_over_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let (history, warnings) = History::open(directory.path()).unwrap();
        assert!(warnings.is_empty() && history.last().is_none());
        for number in 1..=KEPT + 3 {
            add(&history, &format!("ports: {number}\n\n")).unwrap();
        }
        let before = texts(&history);
        assert_eq!((before.len(), before[0].0), (KEPT, 4));
        drop(history);
        let (history, warnings) = History::open(directory.path()).unwrap();
        assert_eq!((texts(&history), warnings), (before, vec![]));
        add(&history, "next").unwrap();
        assert_eq!(history.last().unwrap().past.number, KEPT as u64 + 4);
        let files = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(files, KEPT + 1, "and the lock");
    }

    /// A switch may end at any byte.
    #[test]
    fn file_cut_at_any_byte_is_left_out_and_those_before_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (history, _) = History::open(directory.path()).unwrap();
        add(&history, "first: 1\n").unwrap();
        add(&history, "second: 2\nthird: 3\n").unwrap();
        drop(history);
        let last = file(directory.path(), 2);
        let whole = fs::read(&last).unwrap();
        for end in 0..whole.len() {
            fs::write(&last, &whole[..end]).unwrap();
            fs::write(directory.path().join("000003.unfinished"), &whole[..end]).unwrap();
            let (history, warnings) = History::open(directory.path()).unwrap();
            assert_eq!(texts(&history), [(1, "first: 1\n".to_owned())], "{end}");
            assert!(warnings.len() == 1 && warnings[0].contains("000002.yaml"), "{end}: {warnings:?}");
        }
        assert!(!directory.path().join("000003.unfinished").exists());
    }

    #[test]
    fn directory_of_another_switch_and_of_nobody_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("a/b");
        let (history, _) = History::open(&inside).unwrap();
        assert_eq!(History::open(&inside).unwrap_err().kind(), ErrorKind::ResourceBusy);
        drop(history);
        assert!(History::open(&inside).is_ok());
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(History::open(&directory.path().join("file/b")).is_err());
    }

    #[test]
    fn configuration_is_known_though_its_file_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("state");
        let (history, _) = History::open(&inside).unwrap();
        fs::remove_dir_all(&inside).unwrap();
        assert!(add(&history, "a: 1").is_err());
        assert_eq!(texts(&history), [(1, "a: 1".to_owned())]);
    }

    #[test]
    fn long_lists_of_differences_are_counted() {
        let history = History::default();
        let differences = (0..100).map(|number| number.to_string()).collect();
        history.add(Past { differences, ..Past::default() }, "".into()).unwrap();
        let kept = history.last().unwrap().past.differences;
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (MAX_DIFFERENCES, Some("37 more")));
    }
}
