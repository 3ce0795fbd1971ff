//! What classes are when nothing is said about them, and the preset that makes a right lossless switch in one word.

use crate::mmu::Threshold;
use crate::mmu::headroom::largest_frame;
use crate::qos::{QueueDiscipline, WredProfile};
use crate::sets::CLASSES;
use crate::units::{Alpha, Bytes, Cells, Probability};

/// A number of bytes, or of largest frames where ports differ in MTU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    Frames(u32),
    Bytes(Bytes),
}

impl Amount {
    /// In cells, for a port with this MTU.
    pub fn cells(self, mtu: u16, cell: Bytes) -> Cells {
        match self {
            Amount::Frames(frames) => Cells(frames.saturating_mul(largest_frame(mtu).to_cells_ceil(cell).0)),
            Amount::Bytes(bytes) => bytes.to_cells_ceil(cell),
        }
    }
}

/// Limit on what a group or queue may hold of its pool, before cells are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Alpha(Alpha),
    Static(Bytes),
}

impl Limit {
    /// In cells.
    pub fn threshold(self, cell: Bytes) -> Threshold {
        match self {
            Limit::Alpha(alpha) => Threshold::Dynamic(alpha),
            Limit::Static(bytes) => Threshold::Static(bytes.to_cells_floor(cell)),
        }
    }
}

/// One traffic class, and so its group, queue and PFC priority.
#[derive(Debug, Clone, Copy)]
pub struct ClassSettings {
    pub lossless: bool,
    pub reserve: Amount,
    pub limit: Limit,
    pub xon_offset: Amount,
    pub xon_floor: Amount,
    /// `None`: from each port's cable, rate and MTU.
    pub headroom: Option<Bytes>,
    pub scheduler: QueueDiscipline,
    pub wred: Option<WredProfile>,
    /// For lossy classes: what the queue may hold of the lossy pool, and what of it is kept for each such queue.
    pub queue_limit: Limit,
    pub queue_reserve: Bytes,
}

/// 1/4: four senders that share a pool by it get an eighth each, and half the pool stays free for who comes next; ECN
/// marks before XOFF on up to sixteen ports of the default buffer.
const LOSSLESS_ALPHA: i8 = -2;

/// 8 at ingress, so that the queue decides: a lossy packet is dropped for the queue it wants, not the port it came by.
const LOSSY_GROUP_ALPHA: i8 = 3;

/// 1: a single congested queue takes half the lossy pool.
const LOSSY_QUEUE_ALPHA: i8 = 0;

/// kmin, kmax and pmax of HPCC's setting at 25G: marks early enough for 10G, late enough for 100G.
const ROCE_ECN: (u64, u64, u32) = (100_000, 400_000, (1 << 16) / 5);

/// DWRR weight of the lossless class in the preset, against one of each lossy class.
const ROCE_WEIGHT: u8 = 4;

fn alpha(exponent: i8) -> Alpha {
    Alpha::from_exponent(exponent).expect("a constant within range")
}

impl ClassSettings {
    /// A lossy class of weight one.
    pub fn lossy() -> Self {
        Self {
            lossless: false,
            reserve: Amount::Frames(0),
            limit: Limit::Alpha(alpha(LOSSY_GROUP_ALPHA)),
            xon_offset: Amount::Frames(0),
            xon_floor: Amount::Frames(0),
            headroom: None,
            scheduler: QueueDiscipline::Dwrr { weight: 1 },
            wred: None,
            queue_limit: Limit::Alpha(alpha(LOSSY_QUEUE_ALPHA)),
            queue_reserve: Bytes(0),
        }
    }

    /// A lossless class: two frames of its own, so that a threshold of zero neither starves it nor makes every frame a
    /// pause; XON ten frames below XOFF, so that a pause is worth its two frames (SONiC profiles have 18 KiB).
    pub fn lossless() -> Self {
        Self {
            lossless: true,
            reserve: Amount::Frames(2),
            limit: Limit::Alpha(alpha(LOSSLESS_ALPHA)),
            xon_offset: Amount::Frames(10),
            xon_floor: Amount::Frames(1),
            ..Self::lossy()
        }
    }

    /// The defaults of the one kind or the other.
    pub fn of_kind(lossless: bool) -> Self {
        if lossless { Self::lossless() } else { Self::lossy() }
    }
}

/// A set of classes by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Every class lossy, weight one.
    None,
    /// Class 3 lossless with ECN, class 6 strict for congestion notification packets.
    Roce,
}

impl Preset {
    pub fn classes(self) -> [ClassSettings; CLASSES] {
        let mut classes = [ClassSettings::lossy(); CLASSES];
        if self == Preset::Roce {
            let (kmin, kmax, pmax) = ROCE_ECN;
            classes[3] = ClassSettings {
                scheduler: QueueDiscipline::Dwrr { weight: ROCE_WEIGHT },
                wred: WredProfile::new(Bytes(kmin), Bytes(kmax), Probability(pmax)),
                ..ClassSettings::lossless()
            };
            classes[6] = ClassSettings {
                reserve: Amount::Frames(1),
                scheduler: QueueDiscipline::Strict,
                ..ClassSettings::lossy()
            };
        }
        classes
    }
}
