//! Tests of `tally.rs`. They are in a file of their own because `tests/loom` includes that file and does not need them.

use std::sync::Arc;

use super::{Tallies, TallyWriter};
use crate::units::Cells;

#[test]
fn tally_sums_releases_of_all_lcores() {
    let tallies = Arc::new(Tallies::new(2, 3));
    let [mut one, mut other] = [0, 1].map(|lcore| tallies.writer(lcore));
    one.release(2, 3, Cells(5));
    other.release(2, 3, Cells(7));
    other.release(2, 3, Cells(1));
    [one, other].iter_mut().for_each(TallyWriter::publish);
    assert_eq!(tallies.released(2, 3), 13);
    assert_eq!(tallies.released(2, 4), 0);
}

#[test]
fn tally_shows_releases_once_published() {
    let tallies = Arc::new(Tallies::new(1, 2));
    let mut writer = tallies.writer(0);
    writer.release(0, 3, Cells(1));
    writer.release(1, 3, Cells(4));
    writer.release(0, 3, Cells(2));
    writer.release(1, 4, Cells(8));
    assert_eq!((tallies.released(0, 3), tallies.released(1, 3)), (0, 0), "all of it is pending");
    assert_eq!((writer.written(0, 3), writer.written(1, 3), writer.written(1, 5)), (3, 4, 0));
    writer.publish();
    writer.publish();
    assert_eq!((tallies.released(0, 3), tallies.released(1, 3), tallies.released(1, 4)), (3, 4, 8));
    writer.release(0, 3, Cells(16));
    assert_eq!((tallies.released(0, 3), writer.written(0, 3)), (3, 19));
    writer.publish();
    assert_eq!(tallies.released(0, 3), 19);
}

#[test]
fn dropped_tally_writer_publishes_its_releases() {
    let tallies = Arc::new(Tallies::new(2, 1));
    let mut writer = tallies.writer(1);
    writer.release(0, 0, Cells(7));
    drop(writer);
    assert_eq!(tallies.released(0, 0), 7);
}

#[test]
#[should_panic(expected = "lcore 1 has its tally writer already")]
fn lcore_gets_no_second_tally_writer() {
    let tallies = Arc::new(Tallies::new(2, 1));
    let _others = tallies.writer(0);
    drop(tallies.writer(1));
    let _second = tallies.writer(1);
}
