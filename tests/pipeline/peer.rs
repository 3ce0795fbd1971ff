//! Peers at XOFF: one that stops, and one that does not.

use holdfast::sets::ClassSet;

use crate::harness::*;

/// Half the duration of a pause with the most quanta at 10 Gb/s, rounded up to a poll.
const HALF_LIFE_NS: u64 = 1_678_000;
/// Time that the peer has to stop: that of [`holdfast::plan::PortSpec::new`].
const REACTION_NS: u64 = 100_000;

/// Stops, late pauses, late frames, and the masks of obeyed and disobeyed priorities of port 0.
fn answers(bed: &mut Bed) -> [u64; 5] {
    // Busy lcores publish at every 64th poll.
    bed.run(100_000);
    let port = &bed.counters.ports[0];
    let counters = [&port.pfc_stops[LOSSLESS], &port.pfc_late_pauses[LOSSLESS], &port.pfc_late_frames[LOSSLESS]];
    let masks = [&port.pfc_obeyed_mask, &port.pfc_disobeyed_mask];
    let [stops, pauses, frames] = counters.map(holdfast::plan::counters::Counter::get);
    let [obeyed, disobeyed] = masks.map(holdfast::plan::counters::Counter::get);
    [stops, pauses, frames, obeyed, disobeyed]
}

#[test]
fn peer_that_sends_through_three_refreshes_is_found() {
    let mut bed = Bed::blocked(&spec(2));
    bed.fill(33);
    bed.run(REACTION_NS);
    assert_eq!(answers(&mut bed), [0; 5]);
    let mut sent = 0;
    for round in 1..5 {
        bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
        let begin = bed.now;
        while bed.now < begin + HALF_LIFE_NS {
            // Most of them find the headroom full. They came too late all the same.
            bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
            sent += 1;
            bed.run(10_000);
        }
        let [stops, pauses, frames, obeyed, disobeyed] = answers(&mut bed);
        assert_eq!((stops, obeyed, pauses), (0, 0, round));
        assert!(frames + 20 > sent, "{frames} of {sent}");
        assert_eq!(disobeyed, if pauses < 3 { 0 } else { 1 << LOSSLESS });
    }
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(1_000_000);
    bed.assert_empty();
}

#[test]
fn peer_that_stops_after_xoff_obeys_until_its_link_goes_down() {
    let mut bed = Bed::blocked(&spec(2));
    for round in 1..=3 {
        bed.pause(1, ClassSet::only(LOSSLESS), 0xffff);
        bed.run(2_000);
        bed.fill(33);
        bed.run(2_000);
        // Frames that were under way.
        for _ in 0..2 {
            bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
            bed.run(20_000);
        }
        bed.run(3 * REACTION_NS);
        bed.pause(1, ClassSet::only(LOSSLESS), 0);
        bed.run(100_000);
        assert_eq!(answers(&mut bed), [round, 0, 0, if round < 3 { 0 } else { 1 << LOSSLESS }, 0]);
    }
    let times: Vec<u64> = bed.counters.ports[0].pfc_response[LOSSLESS].iter().map(|times| times.get()).collect();
    assert_eq!(times, [0, 0, 0, 3, 0, 0, 0, 0, 0, 0], "the last frame came between 16 and 64 us after XOFF");
    bed.switch.set_link(0, false);
    assert_eq!(answers(&mut bed), [3, 0, 0, 0, 0], "the next peer may be another");
    bed.assert_empty();
}

/// A core that stands still reads frames long after they came.
#[test]
fn frames_that_a_stalled_core_reads_late_accuse_no_peer() {
    let mut bed = Bed::blocked(&spec(2));
    bed.fill(31);
    bed.run(2_000);
    for _ in 0..3 {
        bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, CELL));
    }
    bed.now += 5 * REACTION_NS;
    bed.run(100_000);
    assert_eq!(answers(&mut bed)[1..3], [0, 0]);
}
