use proptest::prelude::*;

use super::super::decision::Ecn;
use super::super::tests::switch;
use super::*;
use crate::mmu::{Admission, ExactPool, HpccRules, Lease, Pools, PortLedger, SharedPool, Threshold};
use crate::units::{Alpha, Ticks};

/// Class 3 in the switch of the replay's tests: cells of 100 B, 4 of reserve, 6 of headroom, offset 4, a pool of 40.
const RESERVE: u32 = 4;
const HEADROOM: u32 = 6;
const OFFSET: u32 = 4;
const POOL: u32 = 40;
/// Limits that the tests use: alpha 1/2 (an exponent), and a number of cells.
const ALPHA: Threshold = Threshold::Dynamic(match Alpha::from_exponent(-1) {
    Some(alpha) => alpha,
    None => panic!("a valid exponent"),
});

fn frame(port: usize, cells: u32) -> Frame {
    Frame { port, class: 3, bytes: (cells * 100) as u16, egress: 2, ecn: Ecn::Ect0 }
}

/// Rules by which HPCC's simulator decides otherwise on an arriving frame.
fn arrive(replay: &mut Replay, frame: Frame) -> (Decision, Vec<HpccRule>) {
    let before = replay.hpcc_group(&frame).unwrap();
    let decision = replay.arrive(frame);
    let rules = replay.hpcc_rules(&before, &decision);
    (decision, rules)
}

fn depart(replay: &mut Replay) -> Option<(Decision, Vec<HpccRule>)> {
    let frame = replay.next(2, None)?;
    let before = replay.hpcc_group(&frame).unwrap();
    let decision = replay.depart(2, None)?;
    let rules = replay.hpcc_rules(&before, &decision);
    Some((decision, rules))
}

fn rules_of(replay: &mut Replay, frames: &[(usize, u32)]) -> Vec<Vec<HpccRule>> {
    frames.iter().map(|&(port, cells)| arrive(replay, frame(port, cells)).1).collect()
}

#[test]
fn share_that_reaches_the_threshold_is_xoff_there_before_headroom_here() {
    let mut replay = switch(Threshold::Static(Cells(8)));
    // 4 of reserve and 8 shared: T is reached, and no frame is in headroom.
    let rules = rules_of(&mut replay, &[(0, 4), (0, 4), (0, 4)]);
    assert_eq!(rules, [vec![], vec![], vec![HpccRule::XoffAtThreshold]]);
}

#[test]
fn reserve_holds_a_frame_here_that_is_dropped_there() {
    let mut replay = switch(Threshold::Static(Cells(0)));
    // Five cells do not fit the reserve, so the headroom holds them all.
    let rules = rules_of(&mut replay, &[(0, 5), (0, 4)]);
    assert_eq!(rules, [vec![], vec![HpccRule::ReserveRefused]]);
}

#[test]
fn xon_comes_there_only_with_a_departure_of_the_group() {
    let mut replay = switch(ALPHA);
    // Four frames of port 0 behind the first of port 1 lower T to 10 cells, and the last of port 1 goes to headroom.
    for port in [1, 0, 0, 0, 0, 1, 1, 1] {
        arrive(&mut replay, frame(port, 4));
    }
    assert!(replay.ports[1].ledger.xoff().contains(3));
    // The frame of port 1 empties its headroom, and the frame of port 0 raises T to 12 cells.
    let rules = [depart(&mut replay), depart(&mut replay)].map(|departure| departure.unwrap().1);
    let of_pfc =
        rules.map(|rules| rules.into_iter().filter(|rule| *rule != HpccRule::EcnAfterDeparture).collect::<Vec<_>>());
    assert_eq!(of_pfc, [vec![], vec![HpccRule::XonOwnDeparture]]);
    assert!(!replay.ports[1].ledger.xoff().contains(3));
}

#[test]
fn mark_depends_there_on_the_depth_without_the_departing_frame() {
    let mut replay = switch(Threshold::Static(Cells(20)));
    // kmin is 200 B: the first of two frames of 200 B leaves a queue of 400 B here and of 200 B there.
    rules_of(&mut replay, &[(0, 2), (0, 2)]);
    let (decision, rules) = depart(&mut replay).unwrap();
    assert!(decision.marking.is_some_and(|marking| marking > 0));
    assert_eq!(rules, [HpccRule::EcnAfterDeparture]);
    replay.set_time(Ticks(1_000_000));
    let (decision, rules) = depart(&mut replay).unwrap();
    assert_eq!((decision.marking, rules), (Some(0), vec![]));
}

/// `SwitchMmu` by its description, with a state of its own: one queue of each port, in cells.
#[derive(Default)]
struct SwitchMmu {
    /// By port: cells outside headroom, cells in headroom, whether it is paused.
    queues: [(u32, u32, bool); 2],
    shared_used: u32,
}

impl SwitchMmu {
    fn shared(&self, port: usize) -> u32 {
        self.queues[port].0.saturating_sub(RESERVE)
    }

    fn threshold(&self, limit: Threshold) -> u32 {
        limit.limit(Cells(POOL - self.shared_used)).0
    }

    /// Returns the place of the frame, and whether the port sends XOFF.
    fn arrive(&mut self, port: usize, cells: u32, limit: Threshold) -> (HpccPlace, bool) {
        let (outside, headroom, _) = self.queues[port];
        if cells + headroom > HEADROOM && cells + self.shared(port) > self.threshold(limit) {
            return (HpccPlace::Dropped, false);
        }
        let place = if outside + cells <= RESERVE {
            self.queues[port].0 += cells;
            HpccPlace::Buffer
        } else if outside + cells - RESERVE > self.threshold(limit) {
            self.queues[port].1 += cells;
            HpccPlace::Headroom
        } else {
            self.queues[port].0 += cells;
            self.shared_used += cells.min(outside + cells - RESERVE);
            HpccPlace::Buffer
        };
        let (_, headroom, paused) = self.queues[port];
        let xoff = !paused && (headroom > 0 || self.shared(port) >= self.threshold(limit));
        self.queues[port].2 |= xoff;
        (place, xoff)
    }

    /// Returns whether the port sends XON.
    fn depart(&mut self, port: usize, cells: u32, limit: Threshold) -> bool {
        let from_headroom = cells.min(self.queues[port].1);
        let from_shared = (cells - from_headroom).min(self.shared(port));
        self.queues[port].1 -= from_headroom;
        self.queues[port].0 -= cells - from_headroom;
        self.shared_used -= from_shared;
        let shared = self.shared(port);
        let (_, headroom, paused) = self.queues[port];
        let xon = paused && headroom == 0 && (shared == 0 || shared + OFFSET <= self.threshold(limit));
        self.queues[port].2 &= !xon;
        xon
    }
}

fn place_of(decision: &Decision) -> HpccPlace {
    match decision.outcome {
        EventResult::Headroom => HpccPlace::Headroom,
        EventResult::Dropped(_) => HpccPlace::Dropped,
        _ => HpccPlace::Buffer,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Two switches decide a random trace, each from its own state. They agree until the first named rule, and the
    /// first event on which they differ has a named rule: the rules explain every difference.
    #[test]
    fn named_rules_explain_every_difference(
        steps in prop::collection::vec((any::<bool>(), 0..2_usize, 1..7_u32), 1..80),
        limit in prop_oneof![Just(ALPHA), (0..12_u32).prop_map(|cells| Threshold::Static(Cells(cells)))],
    ) {
        let (mut replay, mut theirs) = (switch(limit), SwitchMmu::default());
        for (arrives, port, cells) in steps {
            let (ours, rules, other) = if arrives {
                let (decision, rules) = arrive(&mut replay, frame(port, cells));
                let (place, xoff) = theirs.arrive(port, cells, limit);
                let ours = (place_of(&decision), decision.transitions.clone());
                (ours, rules, (place, xoff.then_some((port, true))))
            } else {
                let Some((decision, rules)) = depart(&mut replay) else { continue };
                let port = decision.frame.port;
                let xon = theirs.depart(port, decision.cells.0, limit);
                ((HpccPlace::Buffer, decision.transitions.clone()), rules, (HpccPlace::Buffer, xon.then_some((port, false))))
            };
            let changes: Vec<_> = ours.1.iter().map(|change| (change.port, change.xoff)).collect();
            let is_equal = ours.0 == other.0 && changes == other.1.into_iter().collect::<Vec<_>>();
            let is_named = rules.iter().any(|rule| *rule != HpccRule::EcnAfterDeparture);
            prop_assert_eq!(is_equal, !is_named, "{:?} and {:?}: {:?}", ours, other, rules);
            if !is_equal {
                // From here on the states differ.
                return Ok(());
            }
        }
    }
}

/// Changes of XOFF: ports, each with whether it is paused.
type Changes = Vec<(usize, bool)>;

/// A ledger of its own for each port, with rules, and the frames of one egress queue in order.
struct Ledgers {
    ports: [PortLedger; 2],
    pools: Pools,
    waiting: std::collections::VecDeque<(usize, u32)>,
}

impl Ledgers {
    fn new(limit: Threshold, rules: HpccRules) -> Self {
        let profile = *switch(limit).ports[0].ledger.profile();
        let lease = |size| Lease::new(SharedPool::new(Cells(size)));
        Self {
            ports: [0, 1].map(|_| PortLedger::new(&profile).with_hpcc(rules)),
            pools: Pools { shared: [lease(0), lease(POOL)], headroom: ExactPool::new(Cells(0)) },
            waiting: std::collections::VecDeque::new(),
        }
    }

    fn arrive(&mut self, port: usize, cells: u32) -> (HpccPlace, Changes) {
        let before = self.xoff();
        let place = match self.ports[port].admit_as_hpcc(3, Cells(cells), &mut self.pools) {
            Admission::Refused(_) => HpccPlace::Dropped,
            Admission::Headroom => HpccPlace::Headroom,
            _ => HpccPlace::Buffer,
        };
        if place != HpccPlace::Dropped {
            self.waiting.push_back((port, cells));
        }
        // An arrival lets no group resume, since it raises no threshold. A switch evaluates in its next poll.
        (place, self.changes(before))
    }

    /// Returns the port and the cells of the frame that departs.
    fn depart(&mut self) -> Option<(usize, u32, Changes)> {
        let before = self.xoff();
        let (port, cells) = self.waiting.pop_front()?;
        self.ports[port].release(3, Cells(cells), &mut self.pools);
        for port in &mut self.ports {
            port.reevaluate_xoff(&self.pools);
        }
        Some((port, cells, self.changes(before)))
    }

    fn xoff(&self) -> [bool; 2] {
        self.ports.each_ref().map(|port| port.xoff().contains(3))
    }

    /// Returns the changes of XOFF since `before`.
    fn changes(&self, before: [bool; 2]) -> Changes {
        let after = self.xoff();
        (0..2).filter(|&port| before[port] != after[port]).map(|port| (port, after[port])).collect()
    }
}

fn limits() -> impl Strategy<Value = Threshold> {
    prop_oneof![Just(ALPHA), (0..12_u32).prop_map(|cells| Threshold::Static(Cells(cells)))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The simulator's ledger with all rules is `SwitchMmu`, over whole traces and for frames larger than the headroom.
    #[test]
    fn ledger_with_all_rules_decides_as_switch_mmu(
        steps in prop::collection::vec((any::<bool>(), 0..2_usize, 1..9_u32), 1..120),
        limit in limits(),
    ) {
        let (mut ours, mut theirs) = (Ledgers::new(limit, HpccRules::all()), SwitchMmu::default());
        for (arrives, port, cells) in steps {
            if arrives {
                let (place, xoff) = theirs.arrive(port, cells, limit);
                let changes: Vec<_> = xoff.then_some((port, true)).into_iter().collect();
                prop_assert_eq!(ours.arrive(port, cells), (place, changes));
            } else if let Some((port, cells, changes)) = ours.depart() {
                let xon = theirs.depart(port, cells, limit);
                let expected: Vec<_> = xon.then_some((port, false)).into_iter().collect();
                prop_assert_eq!(changes, expected);
            }
            for port in 0..2 {
                let held = ours.ports[port].group(3);
                let (outside, headroom, paused) = theirs.queues[port];
                prop_assert_eq!((held.used(), held.headroom), (Cells(outside), Cells(headroom)));
                prop_assert_eq!(ours.ports[port].xoff().contains(3), paused);
            }
        }
    }

    /// A ledger with some rules differs from a ledger without. The first event that differs is the first one that the
    /// replay names with one of these rules.
    #[test]
    fn ledger_with_some_rules_differs_where_the_replay_names_them(
        steps in prop::collection::vec((any::<bool>(), 0..2_usize, 1..7_u32), 1..80),
        limit in limits(),
        chosen in prop::sample::subsequence(HpccRule::ALL.to_vec(), 1..=HpccRule::ALL.len()),
    ) {
        let rules: HpccRules = chosen.into_iter().collect();
        let (mut replay, mut ledgers) = (switch(limit), Ledgers::new(limit, rules));
        for (arrives, port, cells) in steps {
            let (decision, names, other) = if arrives {
                let (decision, names) = arrive(&mut replay, frame(port, cells));
                (decision, names, ledgers.arrive(port, cells))
            } else {
                let Some((decision, names)) = depart(&mut replay) else { continue };
                let Some((.., changes)) = ledgers.depart() else { panic!("both queues have the same frames") };
                (decision, names, (HpccPlace::Buffer, changes))
            };
            let mut changes: Vec<_> = decision.transitions.iter().map(|change| (change.port, change.xoff)).collect();
            changes.sort_unstable();
            let is_equal = (place_of(&decision), changes) == other;
            let is_named = names.iter().any(|rule| *rule != HpccRule::EcnAfterDeparture && rules.contains(*rule));
            prop_assert_eq!(is_equal, !is_named, "{:?} with {}: {:?}", decision, rules, names);
            if is_named {
                return Ok(());
            }
        }
    }
}
