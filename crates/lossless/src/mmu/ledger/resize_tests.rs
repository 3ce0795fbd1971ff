//! New sizes of the parts of a port, by hand.

use super::tests::{alpha, group, pools};
use super::*;
use crate::mmu::Threshold;
use crate::sets::ClassSet;

/// A port whose group 3 is lossless, with reserves of its own and of the port, and headroom.
fn profile(reserve: u32, port_reserve: u32, headroom: u32) -> PortProfile {
    let mut groups = [group(false, alpha(0), 0); CLASSES];
    groups[3] = GroupProfile { reserve: Cells(reserve), ..group(true, alpha(0), headroom) };
    PortProfile { reserve: [Cells(0), Cells(port_reserve)], ..PortProfile::independent(groups) }
}

#[test]
fn cells_beyond_a_smaller_reserve_become_shared_ones() {
    let (mut ledger, mut pools) = (PortLedger::new(&profile(10, 6, 40)), pools(0, 100, 0));
    assert_eq!(ledger.admit(3, Cells(16), &mut pools), Admission::PortReserve);
    assert!(ledger.resize(&profile(4, 1, 40), false, Cells(0), &mut pools));
    let state = ledger.group(3);
    assert_eq!((state.reserve, state.port_reserve, state.shared), (Cells(4), Cells(1), Cells(11)));
    assert_eq!(
        (ledger.reserve_used(), ledger.shared()[1], pools.shared[1].used()),
        ([Cells(0), Cells(1)], Cells(11), Cells(11))
    );
    ledger.release(3, Cells(16), &mut pools);
    assert_eq!((ledger.group(3).held(), pools.shared[1].used()), (Cells(0), Cells(0)));
}

#[test]
fn reserve_waits_for_room_in_the_pool() {
    let (mut ledger, mut pools) = (PortLedger::new(&profile(10, 0, 40)), pools(0, 100, 0));
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Reserve);
    assert!(pools.shared[1].take(Cells(95)));
    assert!(!ledger.resize(&profile(4, 0, 40), false, Cells(0), &mut pools), "six cells have no room");
    assert_eq!((ledger.group(3).reserve, ledger.profile().groups[3].reserve), (Cells(10), Cells(10)));
    ledger.release(3, Cells(3), &mut pools);
    assert!(ledger.resize(&profile(4, 0, 40), false, Cells(0), &mut pools), "three have");
    assert_eq!((ledger.group(3).reserve, ledger.group(3).shared), (Cells(4), Cells(3)));
}

#[test]
fn headroom_keeps_what_it_promised_until_xon() {
    let (mut ledger, mut pools) = (PortLedger::new(&profile(0, 0, 40)), pools(0, 20, 0));
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Shared);
    assert_eq!(ledger.admit(3, Cells(5), &mut pools), Admission::Headroom);
    assert!(!ledger.resize(&profile(0, 0, 10), false, Cells(0), &mut pools));
    assert_eq!(ledger.admit(3, Cells(35), &mut pools), Admission::Headroom, "under way since before XOFF");
    ledger.release(3, Cells(50), &mut pools);
    assert!(ledger.reevaluate_xoff(&pools) && ledger.resize(&profile(0, 0, 10), false, Cells(0), &mut pools));
    assert_eq!(ledger.profile().groups[3].headroom, Cells(10));
}

#[test]
fn parts_grow_only_when_they_may() {
    let (mut ledger, mut pools) = (PortLedger::new(&profile(4, 4, 10)), pools(0, 100, 0));
    assert!(ledger.resize(&profile(9, 9, 90), false, Cells(0), &mut pools), "nothing must be given up");
    assert_eq!(ledger.profile(), &profile(4, 4, 10));
    assert!(ledger.resize(&profile(9, 9, 90), true, Cells(0), &mut pools));
    assert_eq!(ledger.profile(), &profile(9, 9, 90));
    assert_eq!(ledger.admit(3, Cells(18), &mut pools), Admission::PortReserve);
}

/// The port of [`profile`] whose group 3 is lossy, with reserves of 4 and 6.
fn lossy(reserve: u32, port_reserve: u32) -> PortProfile {
    let mut profile = profile(reserve, port_reserve, 0);
    profile.groups[3].lossless = false;
    PortProfile { reserve: [Cells(port_reserve), Cells(0)], ..profile }
}

#[test]
fn group_becomes_lossless_with_its_headroom_and_takes_its_cells_along() {
    let (mut ledger, mut pools) = (PortLedger::new(&lossy(4, 6)), pools(100, 30, 0));
    assert_eq!(ledger.admit(3, Cells(20), &mut pools), Admission::Shared);
    let wanted = profile(4, 3, 40);
    assert!(ledger.resize(&wanted, false, Cells(0), &mut pools), "its lossy port reserve is given up");
    assert_eq!((ledger.lossless(), ledger.shared()), (ClassSet::EMPTY, [Cells(16), Cells(0)]));
    assert!(pools.shared[1].take(Cells(20)));
    assert!(!ledger.resize(&wanted, true, Cells(0), &mut pools), "13 cells have no room");
    assert_eq!((ledger.lossless(), ledger.profile().groups[3].headroom), (ClassSet::EMPTY, Cells(40)));
    pools.shared[1].give(Cells(20));
    assert!(ledger.resize(&wanted, true, Cells(0), &mut pools));
    assert_eq!((ledger.lossless(), ledger.profile()), (ClassSet::only(3), &wanted));
    let state = ledger.group(3);
    assert_eq!((state.reserve, state.port_reserve, state.shared), (Cells(4), Cells(3), Cells(13)));
    assert_eq!([0, 1].map(|kind| pools.shared[kind].used()), [Cells(0), Cells(13)]);
    ledger.release(3, Cells(20), &mut pools);
    assert_eq!([0, 1].map(|kind| pools.shared[kind].used()), [Cells(0); 2]);
}

#[test]
fn group_becomes_lossy_with_its_cells_in_headroom_and_is_xon() {
    let (mut ledger, mut pools) = (PortLedger::new(&profile(4, 0, 40)), pools(30, 20, 0));
    assert_eq!(ledger.admit(3, Cells(20), &mut pools), Admission::Shared);
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Headroom);
    let wanted = lossy(4, 0);
    assert!(!ledger.resize(&wanted, false, Cells(5), &mut pools), "26 of 30 cells, of which 5 are promised");
    assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Headroom, "still lossless");
    ledger.release(3, Cells(2), &mut pools);
    assert!(ledger.resize(&wanted, false, Cells(5), &mut pools));
    assert_eq!((ledger.lossless(), ledger.xoff(), ledger.profile()), (ClassSet::EMPTY, ClassSet::EMPTY, &wanted));
    assert_eq!((ledger.group(3).headroom, ledger.group(3).shared), (Cells(0), Cells(25)));
    assert_eq!([0, 1].map(|kind| pools.shared[kind].used()), [Cells(25), Cells(0)]);
    ledger.release(3, Cells(29), &mut pools);
    assert_eq!(ledger.group(3).held(), Cells(0));
}

#[test]
fn levels_of_a_group_follow_its_kind() {
    let (mut ledger, mut pools) = (PortLedger::new(&lossy(4, 0)), pools(100, 3, 0));
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Shared);
    let mut wanted = profile(4, 0, 40);
    wanted.groups[3].threshold = Threshold::Static(Cells(1));
    ledger.set_groups(&wanted.groups);
    assert!(ledger.resize(&wanted, false, Cells(0), &mut pools));
    assert!(!ledger.resize(&wanted, true, Cells(0), &mut pools));
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Shared, "lossy by its former threshold");
    ledger.release(3, Cells(14), &mut pools);
    assert!(ledger.resize(&wanted, true, Cells(0), &mut pools));
    assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Headroom);
    assert_eq!(ledger.xoff(), ClassSet::only(3));
}
