//! Severities of lines on standard error, and the form in which systemd's journal takes them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Variable in which systemd names the device and inode of the stream that leads to its journal.
const JOURNAL: &str = "JOURNAL_STREAM";

/// How much a line on standard error deserves attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Frames were lost, or a part of the switch failed.
    Error,
    /// A state that an operator should end.
    Warning,
    /// A change of state that is part of operation.
    Notice,
    /// Everything else.
    Info,
}

impl Severity {
    /// Every severity with its name in JSON and its level of syslog(3).
    pub const TABLE: [(Self, &'static str, u8); 4] = [
        (Self::Error, "error", 3),
        (Self::Warning, "warning", 4),
        (Self::Notice, "notice", 5),
        (Self::Info, "info", 6),
    ];

    /// The name in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// The lines of `text`, each with a line end; for the journal each begins with its level (sd-daemon(3)).
    pub(super) fn lines(self, text: &str, is_journal: bool) -> String {
        let level = if is_journal { format!("<{}>", Self::TABLE[self as usize].2) } else { String::new() };
        text.lines().map(|line| format!("{level}{line}\n")).collect()
    }
}

/// Whether standard error leads to systemd's journal. A stream that was redirected has another inode, so the first call
/// comes before the program itself redirects it for a while.
pub fn is_journal() -> bool {
    static IS_JOURNAL: OnceLock<bool> = OnceLock::new();
    *IS_JOURNAL.get_or_init(|| std::env::var(JOURNAL).is_ok_and(|stream| is_stream(&stream, io::stderr().as_fd())))
}

/// Whether `stream`, `DEVICE:INODE` in decimal, names `file`.
fn is_stream(stream: &str, file: BorrowedFd<'_>) -> bool {
    let metadata = file.try_clone_to_owned().and_then(|file| File::from(file).metadata());
    metadata.is_ok_and(|metadata| format!("{}:{}", metadata.dev(), metadata.ino()) == stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_the_journal_have_their_level_each() {
        assert_eq!(Severity::Error.lines("one\ntwo", true), "<3>one\n<3>two\n");
        assert_eq!(Severity::Info.lines("one", true), "<6>one\n");
        assert_eq!(Severity::Warning.lines("one\ntwo\n", false), "one\ntwo\n");
    }

    #[test]
    fn labels_and_levels_stand_at_their_variants() {
        for (severity, label, _) in Severity::TABLE {
            assert_eq!(severity.label(), label);
        }
        assert!(Severity::TABLE.is_sorted_by_key(|(severity, _, level)| (*severity, *level)));
    }

    #[test]
    fn journal_is_recognized_by_device_and_inode_of_the_stream() {
        let (reader, writer) = io::pipe().unwrap();
        let metadata = File::from(writer.as_fd().try_clone_to_owned().unwrap()).metadata().unwrap();
        let stream = format!("{}:{}", metadata.dev(), metadata.ino());
        assert!(is_stream(&stream, writer.as_fd()));
        let (_, other) = io::pipe().unwrap();
        assert!(!is_stream(&stream, other.as_fd()), "it was redirected");
        for wrong in ["", "8", "8:", "8:x", &format!("{stream}0")] {
            assert!(!is_stream(wrong, writer.as_fd()), "{wrong}");
        }
        drop(reader);
    }
}
