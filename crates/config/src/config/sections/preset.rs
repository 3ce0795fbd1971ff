//! Defaults of classes, and the preset that configures a correct lossless switch in one word.

use super::draft::{Amount, ClassSettings, Limit};
use crate::qos::{QueueDiscipline, WredProfile};
use crate::sets::CLASSES;
use crate::units::{Alpha, Bytes, Probability};

/// Alpha 1/4: four senders that share a pool get an eighth each, and half of the pool stays free for further senders.
/// ECN marks before XOFF on up to sixteen ports of the default buffer.
const LOSSLESS_ALPHA: i8 = -2;

/// Alpha 8 at ingress, so that the queue decides: a lossy packet is dropped because of its egress queue, not its
/// ingress port.
const LOSSY_GROUP_ALPHA: i8 = 3;

/// Alpha 1: a single congested queue takes half of the lossy pool.
const LOSSY_QUEUE_ALPHA: i8 = 0;

/// kmin, kmax and pmax of HPCC's setting at 25G: it marks early enough for 10G and late enough for 100G.
const ROCE_ECN: (u64, u64, u32) = (100_000, 400_000, (1 << 16) / 5);

/// DWRR weight of the lossless class in the preset; each lossy class has weight one.
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
            max_rate: None,
            wred: None,
            telemetry: false,
            qcn: None,
            queue_limit: Limit::Alpha(alpha(LOSSY_QUEUE_ALPHA)),
            queue_reserve: Bytes(0),
        }
    }

    /// A lossless class. Its reserve of two frames prevents that a threshold of zero starves it or makes every frame
    /// cause a pause. XON is ten frames below XOFF, so that a pause is worth its two PFC frames (SONiC profiles have 18
    /// KiB).
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

    /// The defaults of a lossless or of a lossy class.
    pub fn of_kind(lossless: bool) -> Self {
        if lossless { Self::lossless() } else { Self::lossy() }
    }
}

/// A named set of class settings.
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
