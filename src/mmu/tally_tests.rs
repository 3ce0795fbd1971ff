//! Beside and not inside `tally.rs`, since `tests/loom` includes that file and has no use for these.

use std::sync::Arc;

use super::Tallies;
use crate::units::Cells;

#[test]
fn releases_of_all_lcores_add_up() {
    let tallies = Tallies::new(2, 3);
    tallies.release(0, 2, 3, Cells(5));
    tallies.release(1, 2, 3, Cells(7));
    tallies.release(1, 2, 3, Cells(1));
    assert_eq!(tallies.released(2, 3), 13);
    assert_eq!(tallies.released(2, 4), 0);
}

#[test]
fn a_run_is_stored_when_the_pair_changes_or_on_publish() {
    let tallies = Arc::new(Tallies::new(1, 2));
    let mut writer = tallies.writer(0);
    writer.release(0, 3, Cells(1));
    writer.release(0, 3, Cells(2));
    assert_eq!((tallies.released(0, 3), writer.written(0, 3)), (0, 3), "the run is pending");
    writer.release(1, 3, Cells(4));
    assert_eq!((tallies.released(0, 3), tallies.released(1, 3)), (3, 0));
    assert_eq!((writer.written(0, 3), writer.written(1, 3), writer.written(1, 4)), (3, 4, 0));
    writer.release(1, 4, Cells(8));
    assert_eq!((tallies.released(1, 3), tallies.released(1, 4)), (4, 0));
    writer.publish();
    writer.publish();
    assert_eq!(tallies.released(1, 4), 8);
    writer.release(0, 3, Cells(16));
    writer.publish();
    assert_eq!(tallies.released(0, 3), 19);
}

#[test]
fn a_dropped_writer_publishes() {
    let tallies = Arc::new(Tallies::new(2, 1));
    let mut writer = tallies.writer(1);
    writer.release(0, 0, Cells(7));
    drop(writer);
    assert_eq!(tallies.released(0, 0), 7);
}

#[test]
fn a_writer_goes_on_from_what_was_released_before() {
    let tallies = Arc::new(Tallies::new(1, 1));
    tallies.release(0, 0, 0, Cells(5));
    tallies.writer(0).release(0, 0, Cells(2));
    assert_eq!(tallies.released(0, 0), 7);
}

#[test]
#[should_panic(expected = "lcore 1 has its tally writer already")]
fn an_lcore_has_one_writer() {
    let tallies = Arc::new(Tallies::new(2, 1));
    let _others = tallies.writer(0);
    drop(tallies.writer(1));
    let _second = tallies.writer(1);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "lcore 0 releases past its tally writer")]
fn none_releases_past_its_writer() {
    let tallies = Arc::new(Tallies::new(1, 1));
    let _writer = tallies.writer(0);
    tallies.release(0, 0, 0, Cells(1));
}
