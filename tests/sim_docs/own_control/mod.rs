//! The example of docs/congestion-control.md, "Your own", compiles and does as it says.

mod halving;

use std::fs;

use holdfast::sim::control::{Ack, CongestionControl, Loss, Path};
use holdfast::units::{BitRate, Bytes};

use self::halving::{Halving, HalvingSpec};

#[test]
fn page_links_the_example_that_is_compiled() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/congestion-control.md");
    assert!(fs::read_to_string(page).unwrap().contains("(../tests/sim_docs/own_control/halving.rs)"), "{page}");
}

#[test]
fn example_halves_its_window_once_a_round_trip() {
    let path =
        Path { line: BitRate(100_000_000_000), base_rtt_ps: 10_000_000, frame: Bytes(1000), switches: 1, seed: 1 };
    let mut flow = Halving::new(&HalvingSpec::default(), path.line, &path);
    let mut window_after = |cumulative, next, marked| {
        let hops = Default::default();
        flow.acked(&Ack { now_ps: 0, rtt_ps: 0, cumulative, next, frames: 1, marked, bytes: 1000, hops });
        flow.window().unwrap().0
    };
    // It begins with 125 kB, its largest window. The mark of frame 50 halves it when frame 100 is acknowledged.
    assert_eq!(window_after(1, 100, 0), 125_000);
    assert_eq!([window_after(50, 150, 1), window_after(101, 160, 0)], [125_000, 62_500]);
    assert_eq!(window_after(161, 200, 0), 63_500);
    flow.lost(Loss::Timeout, 0);
    assert_eq!((flow.window(), flow.rate()), (Some(Bytes(1000)), path.line));
}
