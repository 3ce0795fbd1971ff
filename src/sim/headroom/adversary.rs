//! What goes wrong at once.

use std::fmt;

use super::link::Link;

/// Lengths of the frames that the peer sends from the one on that crosses the threshold, as the buffer sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    All(u16),
    /// The first and the last the largest, and these in between.
    Framed(u16),
    /// These, and the last the largest.
    Last(u16),
    /// Any, drawn.
    Drawn,
    /// The internet mix, drawn.
    Imix,
}

/// What the switch sends to the peer meanwhile, which its PFC frames wait behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse {
    /// Nothing.
    Quiet,
    /// Just before XOFF as much as pacing ever posts at once, a largest frame last, and nothing more.
    Once,
    /// As `Once`, and from then on without end, so that each refresh waits too.
    Lasting,
    /// Without end, and since long before: pacing has caught up over several polls.
    Always,
    /// Nothing until XOFF has left, and from then on without end: each refresh waits longer than XOFF did.
    After,
}

impl Reverse {
    /// Whether it goes on for as long as a pause and its refreshes.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(self, Self::Lasting | Self::Always | Self::After)
    }
}

/// One way in which everything goes wrong at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adversary {
    /// What the peer sends.
    pub sizes: Sizes,
    /// Time from the poll that just does not see the frame which crosses the threshold to that frame's last bit.
    pub offset_ps: u64,
    /// Length of the frames that the poll before leaves in the receive ring, too few for an XOFF by the backlog; zero:
    /// it leaves none.
    pub left: u16,
    /// What goes the other way.
    pub reverse: Reverse,
    /// The poll before the one that sees the frame sends at its end.
    pub sends_late: bool,
    /// Of what is drawn, and of when the switch polls.
    pub seed: u64,
}

impl Adversary {
    /// With these sizes, at the worst instant.
    #[must_use]
    pub fn of(sizes: Sizes) -> Self {
        Self { sizes, offset_ps: 1, left: 0, reverse: Reverse::Once, sends_late: true, seed: 1 }
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sizes {
            Sizes::All(len) => write!(f, "{len}")?,
            Sizes::Framed(len) => write!(f, "L+{len}+L")?,
            Sizes::Last(len) => write!(f, "{len}+L")?,
            Sizes::Drawn => write!(f, "drawn")?,
            Sizes::Imix => write!(f, "imix")?,
        }
        if self.left > 0 {
            write!(f, ",left={}", self.left)?;
        }
        match self.reverse {
            Reverse::Quiet => write!(f, ",quiet")?,
            Reverse::Once => {}
            Reverse::Lasting => write!(f, ",lasting")?,
            Reverse::Always => write!(f, ",always")?,
            Reverse::After => write!(f, ",after")?,
        }
        if !self.sends_late {
            write!(f, ",early")?;
        }
        write!(f, "@{}", self.offset_ps)?;
        if self.seed != 1 { write!(f, "#{}", self.seed) } else { Ok(()) }
    }
}

/// The largest frame that a host sends: without tags.
#[must_use]
pub fn largest(link: &Link) -> u16 {
    link.mtu + 14
}

/// All that a search tries on a link: each pattern of lengths with the crossing frame at the worst instant, beside it and
/// at all others; traffic the other way that does not end; and frames left behind, of lengths that are worst for cells.
///
/// Where the formula is told that not all packets are small, the peer keeps that promise: it sends no small packet. Frames
/// that a poll leaves behind are an exception, since the formula counts them whatever their length.
#[must_use]
pub fn all(link: &Link) -> Vec<Adversary> {
    let (largest, cell, short) = (largest(link), link.cell.0 as u16, link.worst_frame().frame as u16);
    let may_be_small = link.small_packets.is_all();
    let lengths = [short, cell + 1].into_iter().filter(|len| may_be_small || !link.is_small(*len));
    let framed = lengths.clone().map(Sizes::Framed);
    let same = lengths.chain([largest]).map(Sizes::All);
    let mixes = [Sizes::Imix, Sizes::Drawn].into_iter().filter(|_| may_be_small);
    let mut all = Vec::new();
    for sizes in framed.chain(same).chain(mixes) {
        let seeds = if matches!(sizes, Sizes::Imix | Sizes::Drawn) { 1..=3 } else { 1..=1 };
        all.extend(seeds.map(|seed| Adversary { seed, ..Adversary::of(sizes) }));
    }
    let worst = Adversary::of(Sizes::Framed(short));
    let gap = link.poll_gap.0 * 1000;
    all.extend((1..8).map(|part| Adversary { offset_ps: gap * part / 8, ..worst }));
    all.extend([1000, 2000].map(|offset_ps| Adversary { offset_ps, ..worst }));
    all.push(Adversary { sends_late: false, ..worst });
    let reverse = [Reverse::Quiet, Reverse::Lasting, Reverse::Always, Reverse::After];
    all.extend(reverse.map(|reverse| Adversary { reverse, ..worst }));
    let cells = 1..=largest / cell;
    let lengths = cells.map(|cells| cells * cell + 1).chain([largest]).filter(|left| *left <= largest);
    for left in lengths {
        all.extend([Reverse::Once, Reverse::Always].map(|reverse| Adversary { left, reverse, ..worst }));
    }
    all
}
