//! The frames that a switch copies, as its lcores know them.

use std::ops::BitAnd;

use arrayvec::ArrayVec;

use crate::plan::drops::DropReason;
use crate::sets::{ClassSet, PortSet};

/// Most sessions. sFlow takes up to three of them.
pub const MAX_SESSIONS: usize = 12;

/// The event that a copied frame met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyCause {
    /// It was dropped.
    Dropped(DropReason),
    /// It left with a CE mark that this switch wrote.
    Marked,
    /// It was received, and is one of a share of all frames.
    Sampled,
}

impl CopyCause {
    /// Number of kinds.
    pub const KINDS: usize = 3;
    /// Labels of the kinds in metrics, JSON and the configuration, by [`CopyCause::kind`].
    pub const LABELS: [&str; Self::KINDS] = ["dropped", "marked", "sampled"];

    /// Index of the kind of the event.
    #[must_use]
    pub const fn kind(self) -> usize {
        match self {
            Self::Dropped(_) => 0,
            Self::Marked => 1,
            Self::Sampled => 2,
        }
    }
}

/// A set of drop reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReasonSet(u64);

const _: () = assert!(DropReason::COUNT <= 64, "a reason is a bit of a word");

impl ReasonSet {
    /// All reasons.
    pub const ALL: Self = Self(u64::MAX);
    /// No reason.
    pub const EMPTY: Self = Self(0);

    /// Adds `reason`.
    pub fn insert(&mut self, reason: DropReason) {
        self.0 |= 1 << reason as u8;
    }

    /// The reasons of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `reason` is in the set.
    #[must_use]
    pub const fn contains(self, reason: DropReason) -> bool {
        self.0 >> reason as u8 & 1 == 1
    }
}

/// A set of sessions, by their index in [`MirrorSpec::sessions`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionSet(pub u16);

impl BitAnd for SessionSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl SessionSet {
    /// No session.
    pub const EMPTY: Self = Self(0);

    /// Number of sessions.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.0.count_ones() as u64
    }

    /// Adds session `index`.
    pub fn insert(&mut self, index: usize) {
        self.0 |= 1 << index;
    }

    /// Whether session `index` is in the set.
    #[must_use]
    pub const fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Keeps the sessions that are in `others` too.
    pub fn retain(&mut self, others: Self) {
        self.0 &= others.0;
    }

    /// The sessions in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..u16::BITS as usize).filter(move |&index| self.contains(index))
    }

    /// Whether no session is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The frames that one session copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MirrorSession {
    /// Whether dropped frames are copied, if their reason is in `reasons`.
    pub dropped: bool,
    /// Whether frames are copied that the switch marks with CE.
    pub marked: bool,
    /// One of so many received frames is copied; zero: none.
    pub sample: u32,
    /// Reasons of dropped frames.
    pub reasons: ReasonSet,
    /// Ports that received the frame.
    pub ports: PortSet,
    /// Traffic classes of the frame. Only a session of all classes copies frames without class, such as malformed ones.
    pub classes: ClassSet,
    /// Bytes of a frame that are copied.
    pub bytes: u16,
    /// Copies that each lcore makes in a second, at most: of each kind of event, and of each traffic class.
    pub rate: u32,
}

impl Default for MirrorSession {
    fn default() -> Self {
        Self {
            dropped: false,
            marked: false,
            sample: 0,
            reasons: ReasonSet::ALL,
            ports: PortSet::ALL,
            classes: ClassSet::ALL,
            bytes: 128,
            rate: 1000,
        }
    }
}

impl MirrorSession {
    /// Whether the session copies frames that meet `cause`, were received by `port` and have `class`.
    #[must_use]
    pub fn wants(&self, cause: CopyCause, port: usize, class: Option<u8>) -> bool {
        let is_wanted = match cause {
            CopyCause::Dropped(reason) => self.dropped && self.reasons.contains(reason),
            CopyCause::Marked => self.marked,
            CopyCause::Sampled => self.sample > 0,
        };
        is_wanted
            && self.ports.contains(port)
            && class.map_or(self.classes == ClassSet::ALL, |class| self.classes.contains(class.into()))
    }
}

/// All sessions of a switch.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub struct MirrorSpec {
    /// The sessions.
    pub sessions: ArrayVec<MirrorSession, MAX_SESSIONS>,
    /// Number that distinguishes these sessions, with their destinations, from others before a reload. Copies carry it.
    pub id: u32,
    /// Sessions whose copies collectors of sFlow get.
    pub sflow: SessionSet,
    /// Ports that send copies and nothing else except frames of their link. They forward no frame that they receive.
    pub outputs: PortSet,
}
