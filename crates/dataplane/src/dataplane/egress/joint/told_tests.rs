//! Ports of which an lcore remembers that something is not over.

use super::told::{Depth, Heard, Told};
use crate::sets::PortSet;
use crate::units::{Bytes, Cells};

#[test]
fn word_that_is_newer_than_its_set_is_read_again() {
    let (told, mut heard) = (Told::new(4, 2), Heard::default());
    let depth = Depth { cells: Cells(5), bytes: Bytes(1000) };
    // The other lcore tells a port after this one has read the set, and withdraws it before the next look.
    let set = told.standing_elsewhere(1);
    told.tell_depth(0, 2, 3, depth);
    let before = heard.look(set | PortSet::only(2));
    assert_eq!((before, told.elsewhere(1, 2, 3)), (PortSet::only(2), depth));
    heard.keep(2, true);
    told.tell_depth(0, 2, 3, Depth::default());
    told.tell_standing(0, PortSet::EMPTY);
    assert_eq!(heard.look(told.standing_elsewhere(1)), PortSet::only(2), "its depth is read again");
    heard.keep(2, false);
    assert_eq!(heard.look(told.standing_elsewhere(1)), PortSet::EMPTY);
}

#[test]
fn port_that_was_standing_is_read_once_more() {
    let mut heard = Heard::default();
    assert_eq!(heard.look(PortSet::only(1)), PortSet::only(1));
    heard.keep(1, true);
    assert_eq!(heard.look(PortSet::EMPTY), PortSet::only(1));
    heard.keep(1, true);
    assert_eq!(heard.look(PortSet::EMPTY), PortSet::only(1), "its word came after the set");
    heard.keep(1, false);
    assert_eq!(heard.look(PortSet::EMPTY), PortSet::EMPTY);
}
