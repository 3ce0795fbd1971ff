//! `mmu:` of a switch.

use super::*;
use crate::mmu::{AbmSpec, HpccRule, HpccRules};

/// The star with `lines` in its switch, and a second lossless class.
fn with(lines: &str) -> String {
    let two = "{preset: roce, classes: {4: {lossless: true}}, ports";
    STAR.replace("    config:", &format!("    {lines}\n    config:")).replace("{preset: roce, ports", two)
}

#[test]
fn mmu_gives_a_switch_all_some_or_no_rules_of_hpcc() {
    let rules = |lines: &str| accept(&with(lines)).switches[0].config.switch.hpcc;
    assert_eq!(rules("mmu: hpcc"), HpccRules::all());
    assert_eq!(rules("mmu: holdfast"), HpccRules::NONE);
    assert_eq!(accept(STAR).switches[0].config.switch.hpcc, HpccRules::NONE);
    let two = [HpccRule::XonOwnDeparture, HpccRule::EcnAfterDeparture].into_iter().collect();
    assert_eq!(rules("mmu: {hpcc: [ecn-after-departure, xon-own-departure]}"), two);
}

#[test]
fn mmu_gives_queues_and_groups_the_rules_of_reverie() {
    let switch = |lines: &str| accept(&with(lines)).switches[0].config.switch.clone();
    let (own, theirs) = (switch("mmu: holdfast"), switch("mmu: reverie"));
    assert_eq!((own.abm, own.reverie), (None, false));
    assert_eq!((theirs.abm, theirs.reverie), (Some(AbmSpec::USUAL), true));
    let limited = |queue: usize| theirs.queues[queue].limit.is_some_and(|limit| limit.abm);
    assert!(limited(0) && !limited(3), "class 3 is lossless");
    let both = own.buffer.lossy_shared + own.buffer.lossless_shared;
    assert_eq!([theirs.buffer.lossy_shared, theirs.buffer.lossless_shared], [both; 2], "one pool");
    assert_eq!((own.buffer.total, own.buffer.headroom), (theirs.buffer.total, theirs.buffer.headroom));
}

#[test]
fn rules_of_reverie_that_do_not_fit_are_refused() {
    let text = with("mmu: reverie").replace("{preset: roce", "{buffer: {queue_policy: abm}, preset: roce");
    insta::assert_snapshot!(errors_of(&text), @"x.yaml:4:10: switches[0].mmu: Reverie and ABM exclude each other; remove `queue_policy: abm` from the switch's `buffer`");
    let text = with("mmu: reverie\n    headroom: shared-pool");
    insta::assert_snapshot!(errors_of(&text), @"x.yaml:4:10: switches[0].mmu: Reverie has headroom of each group only; write `headroom: independent`");
    let text = with("mmu: reverie\n    lcores: 2");
    insta::assert_snapshot!(errors_of(&text), @"x.yaml:4:10: switches[0].mmu: Reverie's pool has the counts of one lcore; write `lcores: 1`");
}

#[test]
fn pool_per_port_leaves_all_but_one_reserve_and_headroom_in_the_pool() {
    let plan = |lines: &str| {
        let switch = accept(&with(lines)).switches[0].config.switch.clone();
        (switch.buffer, switch.ports[0].buffer.groups[4])
    };
    let (own, group) = plan("mmu: holdfast");
    let (theirs, _) = plan("mmu: {hpcc: [pool-per-port]}");
    // Four ports, and one of two lossless classes is not counted.
    let extra = Cells(4 * (group.reserve.0 + group.headroom.0));
    assert!(extra > Cells(0));
    assert_eq!((theirs.lossless_shared, theirs.total), (own.lossless_shared + extra, own.total + extra));
    assert_eq!(plan("mmu: {hpcc: [xon-own-departure]}").0, own);
}

#[test]
fn rules_of_hpcc_that_do_not_fit_are_refused() {
    insta::assert_snapshot!(errors_of(&with("mmu: ns3")), @"x.yaml:4:10: switches[0].mmu: `ns3` is not one of the choices; write `holdfast`, `hpcc`, `reverie` or e.g. `{hpcc: [xoff-at-threshold]}`");
    insta::assert_snapshot!(errors_of(&with("mmu: abm")), @"x.yaml:4:10: switches[0].mmu: ABM is a policy of queues; write `queue_policy: abm` in the switch's `buffer`");
    insta::assert_snapshot!(errors_of(&with("mmu: {reverie: {x: 1}}")), @"x.yaml:4:10: switches[0].mmu: Reverie has no parameters; write `mmu: reverie`");
    insta::assert_snapshot!(errors_of(&with("mmu: {hpcc: xon}")), @"x.yaml:4:17: switches[0].mmu.hpcc: `xon` is not a list; write `[xoff-at-threshold]`");
    insta::assert_snapshot!(errors_of(&with("mmu: {hpcc: [xon]}")), @"x.yaml:4:18: switches[0].mmu.hpcc[0]: `xon` is not a rule of HPCC's simulator; write one of `xoff-at-threshold`, `xon-own-departure`, `xon-empty-share`, `shared-beside-headroom`, `reserve-refused`, `ecn-after-departure`, `pool-per-port`");
    insta::assert_snapshot!(errors_of(&with("mmu: hpcc\n    headroom: dynamic")), @"x.yaml:4:10: switches[0].mmu: HPCC's simulator has headroom of each group only; write `headroom: independent`");
}
