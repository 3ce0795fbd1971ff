//! Destinations of copies, as the configuration names them.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::units::{Bytes, Nanos};

/// The sessions' names and destinations. Index `n` belongs to session `n` of
/// [`MirrorSpec::sessions`](crate::plan::mirror::MirrorSpec::sessions).
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct MirrorConfig {
    /// Destinations of the sessions, in their order. Those of sFlow are the last.
    pub targets: Vec<Target>,
    /// The agent of sFlow; `None`: the switch sends no sFlow.
    pub sflow: Option<SflowConfig>,
}

/// A session's name and destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Name in metrics, tables and comments.
    pub name: String,
    /// The destination.
    pub to: Destination,
}

/// The destination of copies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// A port: an output of the switch.
    Port {
        /// Index of the port.
        port: u8,
        /// Whether a line of text with event and state follows the frame, as an Ethernet trailer.
        has_trailer: bool,
    },
    /// A pcapng file (draft-ietf-opsawg-pcapng). Event and state are the comment of each packet.
    File(FileConfig),
    /// The collectors of sFlow.
    Sflow,
}

/// Most files that a session keeps.
pub const MOST_FILES: u8 = 100;

/// A pcapng file, which is cut by size.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileConfig {
    /// Path of the file. With several files, the older ones have `.1`, `.2` and so on behind it.
    pub path: PathBuf,
    /// Size of a file at which the next one begins.
    pub size: Bytes,
    /// Number of files that are kept; at least one.
    pub files: u8,
}

impl FileConfig {
    /// Endings of the paths of a file, of the next one, and of all older ones: a smaller number of files removes those
    /// beyond it.
    fn endings() -> impl Iterator<Item = String> {
        [String::new(), ".new".to_owned()].into_iter().chain((1..MOST_FILES).map(|number| format!(".{number}")))
    }

    /// All paths that the writer of the file may use.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        Self::endings().map(|end| {
            let mut path = self.path.as_os_str().to_owned();
            path.push(end);
            PathBuf::from(path)
        })
    }

    /// Whether the writers of both files may use the same path.
    #[must_use]
    pub fn shares_path(&self, other: &Self) -> bool {
        // An ending has one dot, at its beginning. So a shared path is the path of one of both files.
        let name = |path: &Path| path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        let (own, others) = (name(&self.path), name(&other.path));
        let is_beside = |path: &[u8], of: &[u8]| {
            path.strip_prefix(of).is_some_and(|end| Self::endings().any(|ending| ending.as_bytes() == end))
        };
        self.path.parent() == other.path.parent() && (is_beside(&own, &others) || is_beside(&others, &own))
    }
}

/// The agent of sFlow version 5.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SflowConfig {
    /// Collectors, one to four.
    pub collectors: Vec<SocketAddr>,
    /// Address by which collectors know the switch.
    pub agent: IpAddr,
    /// Interval of counter samples; zero: none.
    pub poll: Nanos,
    /// One of so many received frames is sampled; zero: none.
    pub sample: u32,
    /// Dropped frames that are reported in a second; zero: none.
    pub drops: u32,
    /// Frames marked with CE that are reported in a second; zero: none.
    pub marks: u32,
}

impl Default for SflowConfig {
    fn default() -> Self {
        Self {
            collectors: Vec::new(),
            agent: IpAddr::from([0, 0, 0, 0]),
            poll: Nanos(20_000_000_000),
            sample: 0,
            drops: 0,
            marks: 0,
        }
    }
}
