//! The peer that the benchmarks send with, `perf/rig/link.rs`, obeys PFC for the time that it states.

use holdfast::sets::{CLASSES, ClassSet};
use holdfast::units::{BitRate, Quanta};
use holdfast::wire::mac_control::PfcFrame;
use proptest::prelude::*;

use crate::link::{Flow, Link, LinkSpec};

const CLASS: u8 = 3;
const FRAME_LEN: usize = 1500;

/// Ticks from the end of the last frame before the pause until the first frame after it is complete.
fn silence(rate: BitRate, hz: u64, quanta: u16) -> u64 {
    let spec = LinkSpec { ring: 1, ..LinkSpec::new(rate, FRAME_LEN).sending(&[Flow::new(CLASS, 0)]) };
    let mut link = Link::new(0, spec, hz, 0);
    let mut pause = PfcFrame { enabled: ClassSet::only(usize::from(CLASS)), quanta: [Quanta(0); CLASSES] };
    pause.quanta[usize::from(CLASS)] = Quanta(quanta);
    link.hear(&pause, 0);
    let (mut last, mut longest) = (0, 0);
    for now in 0.. {
        link.advance(now);
        if let Some(arrival) = link.take(now) {
            longest = longest.max(arrival.at() - last);
            last = arrival.at();
        }
        if longest > 3 * link.wire_ticks + 10 || now > 20_000_000 {
            return longest;
        }
    }
    longest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pause_lasts_its_quanta_on_slow_and_quick_links(
        gigabits in 10_u64..900,
        hz in 2_000_000_000_u64..3_500_000_000,
        quanta in 5_000_u16..,
    ) {
        let rate = BitRate(gigabits * 1_000_000_000);
        let pause = u128::from(quanta) * 512 * u128::from(hz) / u128::from(rate.0);
        let frame = (FRAME_LEN as u128 + 24) * 8 * u128::from(hz) / u128::from(rate.0);
        let silence = u128::from(silence(rate, hz, quanta));
        // The last frame may be on the wire when the pause begins, and the first after it must be complete.
        prop_assert!((pause - 2..=pause + 2 * frame + 4).contains(&silence), "{pause} + {frame}: {silence} ticks");
    }
}
