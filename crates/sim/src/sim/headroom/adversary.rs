//! Adversaries: combinations of worst-case conditions on a link.

use std::fmt;

use super::link::Link;

/// Frame lengths, as the buffer counts them, that the peer sends from the frame on that crosses the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All frames have this length.
    All(u16),
    /// The first and the last frame are the largest; those between have this length.
    Framed(u16),
    /// All frames have this length, except that the last is the largest.
    Last(u16),
    /// Any lengths, drawn at random.
    Drawn,
    /// The internet mix, in drawn order.
    Imix,
}

/// Traffic from the switch to the peer, behind which PFC frames wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse {
    /// No traffic.
    Quiet,
    /// Just before XOFF, as much as pacing ever posts at once, ending in a largest frame; then nothing.
    Once,
    /// Like `Once`, followed by endless traffic, so that each refresh waits too.
    Lasting,
    /// Endless traffic that began long before: pacing has caught up over several polls.
    Always,
    /// No traffic until XOFF has left, then endless traffic: each refresh waits longer than XOFF did.
    After,
}

impl Reverse {
    /// Whether the traffic lasts as long as a pause and its refreshes.
    #[must_use]
    pub fn lasts(self) -> bool {
        matches!(self, Self::Lasting | Self::Always | Self::After)
    }
}

/// One combination of worst-case conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adversary {
    /// Lengths of the frames that the peer sends.
    pub sizes: Sizes,
    /// Time from the poll that just misses the frame which crosses the threshold to that frame's last bit.
    pub offset_ps: u64,
    /// Length of the frames that the previous poll leaves in the receive ring, too few for a backlog XOFF. Zero: it
    /// leaves none.
    pub left: u16,
    /// Traffic in the opposite direction.
    pub reverse: Reverse,
    /// Whether the poll before the one that receives the crossing frame transmits at its end.
    pub sends_late: bool,
    /// Seed of the drawn lengths and of the switch's poll times.
    pub seed: u64,
}

impl Adversary {
    /// Returns the adversary with these sizes at the worst instant.
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

/// Returns the length of the largest frame that a host sends: the MTU and an Ethernet header without tags.
#[must_use]
pub fn largest(link: &Link) -> u16 {
    link.mtu + 14
}

/// Returns all adversaries that a search tries on a link. They cover each pattern of lengths at the worst instant, and
/// other instants for the crossing frame. They also cover endless reverse traffic, and leftover frames of lengths that
/// waste the most cells.
///
/// If the formula is given a share of small packets, the peer sends no small packet. Leftover frames are an exception,
/// because the formula counts them with any length.
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
