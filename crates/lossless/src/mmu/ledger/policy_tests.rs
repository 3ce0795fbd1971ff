//! Guarantees of the policies: no loss with obedient peers, the steady state of Dynamic Threshold, no flapping, and
//! limits that hold on two lcores.

use proptest::prelude::*;

use super::reference::{Step, Switch, steps, switch};
use super::tests::{alpha, group, pools};
use super::*;
use crate::headroom::{HeadroomInput, LEFT_BEHIND, SmallPackets, headroom};
use crate::mmu::{BufferPools, QueueReserves, Threshold};
use crate::units::{BitRate, Bytes};

const PORTS: usize = 3;
/// Cells of the largest packet, and the smallest eta: a smaller eta could not hold the packet that turns XOFF.
const LARGEST: u32 = 9;

/// Peers that must stop, and the cells that each may still send after XOFF. Eta includes the packet that caused XOFF.
struct Peers<'a> {
    switch: &'a Switch,
    /// Another division of the buffer, which is on its way: peers need no more headroom than either has.
    after: &'a Switch,
    /// Cells left per port and group. With Dynamic and Shared Headroom they are per port, in the entry of group 0.
    left: Vec<[Option<u32>; CLASSES]>,
}

impl Peers<'_> {
    /// With Dynamic and Shared Headroom these peers obey only pauses of the whole port: those alone must suffice.
    fn key(&self, port: usize, group: usize) -> (usize, u32) {
        let (profile, after) = (&self.switch.ports[port], &self.after.ports[port]);
        match profile.policy {
            HeadroomPolicy::Dynamic => (0, profile.insurance.min(after.insurance).0),
            _ => (group, profile.groups[group].headroom.min(after.groups[group].headroom).0),
        }
    }

    fn may_send(&self, port: usize, group: usize, cells: u32) -> bool {
        self.left[port][self.key(port, group).0].is_none_or(|left| cells <= left)
    }

    fn sent(&mut self, port: usize, group: usize, cells: u32, ledger: &PortLedger) {
        let (key, eta) = self.key(port, group);
        if let Some(left) = &mut self.left[port][key] {
            *left -= cells;
        } else if self.is_off(port, key, ledger) {
            self.left[port][key] = Some(eta - cells);
        }
    }

    fn is_off(&self, port: usize, key: usize, ledger: &PortLedger) -> bool {
        match self.switch.ports[port].policy {
            HeadroomPolicy::Dynamic => ledger.is_port_xoff(),
            _ => ledger.xoff().contains(key),
        }
    }

    fn paused(&mut self, port: usize, ledger: &PortLedger) {
        for key in 0..CLASSES {
            if !self.is_off(port, key, ledger) {
                self.left[port][key] = None;
            }
        }
    }
}

/// Packets arrive as long as their senders may send; no lossless packet may be refused.
fn no_loss(switch: &Switch, steps: &[Step]) -> Result<(), TestCaseError> {
    no_loss_while_divided(switch, switch, steps)
}

/// Packets arrive likewise while the buffer of `switch` is divided as that of `after`: each `Step::Clear` is a step of
/// it. The parts are never larger than the buffer, and in the end they are those of `after`.
fn no_loss_while_divided(switch: &Switch, after: &Switch, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut ledgers, mut pools) = (switch.ledgers(), switch.pools(1).remove(0));
    let mut peers = Peers { switch, after, left: vec![[None; CLASSES]; PORTS] };
    let mut grows = false;
    let mut held: Vec<[Vec<u32>; CLASSES]> = vec![Default::default(); PORTS];
    for step in steps {
        match *step {
            Step::Arrive { port, group, cells, .. }
                if switch.ports[port].groups[group].lossless && peers.may_send(port, group, cells) =>
            {
                let admission = ledgers[port].admit(group, Cells(cells), &mut pools);
                prop_assert!(!matches!(admission, Admission::Refused(_)), "lost: {:?}", admission);
                held[port][group].push(cells);
                peers.sent(port, group, cells, &ledgers[port]);
            }
            Step::Depart { port, group, which } if !held[port][group].is_empty() => {
                let which = which.index(held[port][group].len());
                let cells = held[port][group].swap_remove(which);
                ledgers[port].release(group, Cells(cells), &mut pools);
            }
            Step::Poll => {
                for (port, ledger) in ledgers.iter_mut().enumerate() {
                    ledger.reevaluate_xoff(&pools);
                    peers.paused(port, ledger);
                }
            }
            Step::Clear if grows => {
                let division = ledgers.iter_mut().zip(&after.ports);
                division.for_each(|(ledger, wanted)| assert!(ledger.resize(wanted, true, Cells(0), &mut pools)));
            }
            Step::Clear => grows = shrink(&mut ledgers, after, &mut pools),
            _ => {}
        }
        let (own, total) = (own_cells(&ledgers, &pools), switch.total().max(after.total()));
        prop_assert!(own <= total, "{} cells of {}", own, total);
    }
    Ok(())
}

/// Shrinks what `after` makes smaller. Once it all has, the pools grow. Returns whether it has.
fn shrink(ledgers: &mut [PortLedger], after: &Switch, pools: &mut Pools) -> bool {
    let handles = BufferPools {
        shared: pools.shared.each_ref().map(|lease| lease.pool().clone()),
        headroom: pools.headroom.clone(),
        reserves: QueueReserves::fleet([Cells(0); CLASSES], &[0], 1).remove(0),
    };
    let plan = after.plan();
    let mut is_done = true;
    for (ledger, wanted) in ledgers.iter_mut().zip(&after.ports) {
        is_done &= ledger.resize(wanted, false, Cells(0), pools);
    }
    is_done &= handles.shrink_towards(&plan, is_done) == [Cells(0); 3];
    if is_done {
        handles.grow_to(&plan);
    }
    is_done
}

/// All cells that any part of the buffer may use.
fn own_cells(ledgers: &[PortLedger], pools: &Pools) -> u64 {
    let own: u64 = ledgers.iter().map(|ledger| ledger.profile().own_cells()).sum();
    let shared: u64 = pools.shared.iter().map(|lease| u64::from(lease.pool().size().0)).sum();
    own + shared + u64::from(pools.headroom.size().0)
}

/// A switch like `switch` with other sizes of its parts, from `other`.
fn divided(switch: &Switch, other: &Switch) -> Switch {
    let mut after = Switch { ports: switch.ports.clone(), ..other.clone() };
    for (port, other) in after.ports.iter_mut().zip(&other.ports) {
        (port.reserve, port.insurance) = (other.reserve, other.insurance);
        for (group, other) in port.groups.iter_mut().zip(&other.groups) {
            group.reserve = other.reserve;
            group.headroom = if group.lossless { other.headroom.max(Cells(LARGEST)) } else { Cells(0) };
        }
    }
    after
}

/// Ports alternate between two lcores. Each lcore has its own lease, so its free cells are an estimate, but limits are
/// exact.
fn two_lcores(switch: &Switch, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut ledgers, mut pools) = (switch.ledgers(), switch.pools(2));
    let mut held: Vec<[Vec<u32>; CLASSES]> = vec![Default::default(); PORTS];
    for step in steps {
        match *step {
            Step::Arrive { port, group, cells, .. } => {
                let admission = ledgers[port].admit(group, Cells(cells), &mut pools[port % 2]);
                if !matches!(admission, Admission::Refused(_)) {
                    held[port][group].push(cells);
                }
            }
            Step::Depart { port, group, which } if !held[port][group].is_empty() => {
                let which = which.index(held[port][group].len());
                let cells = held[port][group].swap_remove(which);
                ledgers[port].release(group, Cells(cells), &mut pools[port % 2]);
            }
            Step::Poll => {
                for (port, ledger) in ledgers.iter_mut().enumerate() {
                    ledger.reevaluate_xoff(&pools[port % 2]);
                }
            }
            _ => {}
        }
        limits_hold(switch, &ledgers, &pools, &held)?;
    }
    for (port, (ledger, held)) in ledgers.iter_mut().zip(held).enumerate() {
        for (group, packets) in held.into_iter().enumerate() {
            for cells in packets {
                ledger.release(group, Cells(cells), &mut pools[port % 2]);
            }
        }
    }
    for (port, ledger) in ledgers.iter_mut().enumerate() {
        ledger.reevaluate_xoff(&pools[port % 2]);
        prop_assert_eq!(ledger.xoff(), ClassSet::EMPTY, "no endless pause");
    }
    prop_assert_eq!(pools[0].headroom.used(), Cells(0));
    pools.iter_mut().flat_map(|pools| &mut pools.shared).for_each(Lease::flush);
    for kind in 0..2 {
        prop_assert_eq!(pools[0].shared[kind].free(), Cells(switch.sizes[kind]), "no cell is missing");
    }
    Ok(())
}

fn limits_hold(
    switch: &Switch,
    ledgers: &[PortLedger],
    pools: &[Pools],
    held: &[[Vec<u32>; CLASSES]],
) -> Result<(), TestCaseError> {
    for kind in 0..2 {
        let of_lcore = |lcore: usize| ledgers.iter().skip(lcore).step_by(2).map(|ledger| ledger.shared()[kind].0).sum();
        let used: [u32; 2] = std::array::from_fn(of_lcore);
        prop_assert_eq!(used, [0, 1].map(|lcore: usize| pools[lcore].shared[kind].used().0));
        prop_assert!(used[0] + used[1] <= switch.sizes[kind], "pool limit");
    }
    let mut headroom = 0;
    for ((ledger, profile), held) in ledgers.iter().zip(&switch.ports).zip(held) {
        let states: [GroupState; CLASSES] = std::array::from_fn(|group| ledger.group(group));
        for (group, state) in states.iter().enumerate() {
            prop_assert_eq!(state.held().0, held[group].iter().sum::<u32>(), "conservation");
            headroom += state.headroom.0;
            if profile.policy != HeadroomPolicy::Dynamic {
                prop_assert!(state.headroom <= profile.groups[group].headroom, "headroom limit");
            }
        }
        prop_assert!(ledger.insurance_used() <= profile.insurance);
    }
    if switch.ports[0].policy == HeadroomPolicy::SharedPool {
        prop_assert_eq!(pools[0].headroom.used().0, headroom);
        prop_assert!(headroom <= switch.headroom_size, "headroom pool limit");
    }
    Ok(())
}

/// Switches with a headroom pool that has room for all etas.
fn full_pool() -> impl Strategy<Value = Switch> {
    switch(HeadroomPolicy::SharedPool, PORTS, LARGEST..60).prop_map(|switch| {
        let groups = switch.ports.iter().flat_map(|port| port.groups);
        let headroom_size = groups.map(|group| group.headroom.max(Cells(LARGEST)).0).sum();
        Switch { headroom_size, ..switch }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn obedient_peers_lose_nothing_with_independent_headroom(
        switch in switch(HeadroomPolicy::Independent, PORTS, LARGEST..60),
        steps in steps(PORTS, LARGEST),
    ) {
        no_loss(&switch, &steps)?;
    }

    #[test]
    fn obedient_peers_lose_nothing_with_dynamic_headroom(
        switch in switch(HeadroomPolicy::Dynamic, PORTS, LARGEST..60),
        steps in steps(PORTS, LARGEST),
    ) {
        no_loss(&switch, &steps)?;
    }

    /// The pool has room for all etas: the risk of over-subscription starts beyond.
    #[test]
    fn obedient_peers_lose_nothing_if_the_headroom_pool_is_not_oversubscribed(
        switch in switch(HeadroomPolicy::SharedPool, PORTS, LARGEST..60),
        steps in steps(PORTS, LARGEST),
    ) {
        let etas = switch.ports.iter().flat_map(|port| port.groups).map(|group| group.headroom.0).sum();
        no_loss(&Switch { headroom_size: etas, ..switch }, &steps)?;
    }

    #[test]
    fn obedient_peers_lose_nothing_while_the_buffer_is_divided_anew(
        (switch, other) in prop_oneof![
            (switch(HeadroomPolicy::Independent, PORTS, LARGEST..60), switch(HeadroomPolicy::Independent, PORTS, LARGEST..60)),
            (switch(HeadroomPolicy::Dynamic, PORTS, LARGEST..60), switch(HeadroomPolicy::Dynamic, PORTS, LARGEST..60)),
            (full_pool(), full_pool()),
        ],
        steps in steps(PORTS, LARGEST),
    ) {
        no_loss_while_divided(&switch, &divided(&switch, &other), &steps)?;
    }

    #[test]
    fn headroom_policies_hold_their_limits_on_two_lcores(
        switch in prop_oneof![
            switch(HeadroomPolicy::Independent, PORTS, 0..60),
            switch(HeadroomPolicy::SharedPool, PORTS, 0..60),
            switch(HeadroomPolicy::Dynamic, PORTS, 0..60),
        ],
        steps in steps(PORTS, 40),
    ) {
        two_lcores(&switch, &steps)?;
    }
}

/// `alpha = 2^exponent`, and a pool that divides into `shares` shares of alpha without a remainder. Returns the cells
/// of each share, the cells that stay free, and the pool size.
fn divisible(exponent: i8, shares: u32, unit: u32) -> (u32, u32, u32) {
    let (each, free) = match exponent {
        0.. => (unit << exponent, unit),
        _ => (unit, unit << -exponent),
    };
    (each, free, shares * each + free)
}

/// Choudhury & Hahne 1998: n saturated groups get alpha*B/(1+alpha*n) each, and B/(1+alpha*n) stays free.
#[test]
fn saturated_groups_share_as_the_theory_says_to_the_cell() {
    for lossless in [false, true] {
        for (exponent, count, unit) in cases() {
            let (each, free, size) = divisible(exponent, count as u32, unit);
            let profile = PortProfile::independent([group(lossless, alpha(exponent), 0); CLASSES]);
            let mut ledgers = [PortLedger::new(&profile), PortLedger::new(&profile)];
            let mut pools = if lossless { pools(0, size, 0) } else { pools(size, 0, 0) };
            let mut admitted = true;
            while std::mem::take(&mut admitted) {
                for index in 0..count {
                    let admission = ledgers[index % 2].admit(index / 2, Cells(1), &mut pools);
                    admitted |= admission == Admission::Shared;
                }
            }
            for index in 0..count {
                let share = ledgers[index % 2].group(index / 2).shared;
                assert_eq!(share, Cells(each), "alpha 2^{exponent}, {count} groups of {size}");
            }
            assert_eq!(pools.shared[usize::from(lossless)].free(), Cells(free));
        }
    }
}

/// Exponents of alpha, numbers of groups, and pool sizes in units.
fn cases() -> impl Iterator<Item = (i8, usize, u32)> {
    let alphas = [-7, -4, -3, -1, 0, 1, 3];
    alphas.into_iter().flat_map(|alpha| (1..=16).flat_map(move |count| [1, 7, 50].map(|unit| (alpha, count, unit))))
}

/// On the port level, n saturated ports of Nq groups share like n groups with Nq times their alpha.
#[test]
fn saturated_ports_share_dynamic_headroom_as_the_theory_says_to_the_cell() {
    for (ports, unit) in (1..=16).flat_map(|ports| [1, 7, 50].map(|unit| (ports, unit))) {
        // Eight groups of alpha 1/16: alpha 1/2 per port.
        let (each, free, size) = divisible(-1, ports, unit);
        let groups = PortProfile::independent([group(true, alpha(-4), 9); CLASSES]);
        let profile = PortProfile { policy: HeadroomPolicy::Dynamic, ..groups };
        let mut ledgers = vec![PortLedger::new(&profile); ports as usize];
        let mut pools = pools(0, size, 0);
        for packet in 0..=each {
            for ledger in &mut ledgers {
                let admission = ledger.admit(packet as usize % CLASSES, Cells(1), &mut pools);
                assert_eq!(admission == Admission::Shared, packet < each, "{ports} ports of {size}");
            }
        }
        assert!(ledgers.iter().all(|ledger| ledger.shared()[LOSSLESS] == Cells(each) && ledger.is_port_xoff()));
        assert_eq!(pools.shared[LOSSLESS].free(), Cells(free));
    }
}

const POLICIES: [HeadroomPolicy; 3] =
    [HeadroomPolicy::Independent, HeadroomPolicy::SharedPool, HeadroomPolicy::Dynamic];

/// A fault of known models: XOFF per arrival and XON per departure when T is 0.
#[test]
fn no_flapping_at_a_threshold_of_zero() {
    for (policy, floor) in POLICIES.into_iter().flat_map(|policy| [(policy, 0), (policy, 5)]) {
        let member = GroupProfile { xon_floor: Cells(floor), ..group(true, Threshold::Static(Cells(0)), 40) };
        let groups = PortProfile::independent([member; CLASSES]);
        let (mut ledger, mut pools) =
            (PortLedger::new(&PortProfile { policy, insurance: Cells(40), ..groups }), pools(0, 100, 40));
        assert_eq!(ledger.admit(3, Cells(10), &mut pools), Admission::Headroom);
        for _ in 0..100 {
            assert_eq!(ledger.admit(3, Cells(2), &mut pools), Admission::Headroom);
            assert!(!ledger.reevaluate_xoff(&pools) && ledger.xoff().contains(3), "{policy:?}");
            ledger.release(3, Cells(2), &mut pools);
            assert!(!ledger.reevaluate_xoff(&pools) && ledger.xoff().contains(3), "{policy:?}");
        }
        ledger.release(3, Cells(10), &mut pools);
        assert!(ledger.reevaluate_xoff(&pools) && ledger.xoff().is_empty(), "it goes on when its headroom is empty");
    }
}

/// With Dynamic and Shared Headroom a group turns XOFF while its cells are still in the pool. The levels alone must
/// prevent flapping, even if eta exceeds its threshold and the floor exceeds both.
#[test]
fn group_does_not_flap_within_its_xon_offset() {
    for threshold in [0, 3, 30, 100] {
        let member = GroupProfile {
            xon_offset: Cells(4),
            xon_floor: Cells(6),
            ..group(true, Threshold::Static(Cells(threshold)), 50)
        };
        // The other groups give the port enough room.
        let mut groups = [group(true, Threshold::Static(Cells(1000)), 50); CLASSES];
        groups[3] = member;
        let profile =
            PortProfile { policy: HeadroomPolicy::Dynamic, insurance: Cells(50), ..PortProfile::independent(groups) };
        let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 1000, 0));
        let off = 10.max(threshold.saturating_sub(50));
        for _ in 0..off {
            assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Shared);
            assert_eq!(ledger.xoff(), ClassSet::EMPTY);
        }
        assert_eq!(ledger.admit(3, Cells(1), &mut pools), Admission::Shared);
        assert_eq!((ledger.xoff(), ledger.is_port_xoff()), (ClassSet::only(3), false), "beyond X_qoff, in the pool");
        for _ in 0..4 {
            ledger.release(3, Cells(1), &mut pools);
            assert!(!ledger.reevaluate_xoff(&pools), "within the offset");
        }
        ledger.release(3, Cells(1), &mut pools);
        assert!(ledger.reevaluate_xoff(&pools) && ledger.xoff().is_empty());
    }
}

/// Thresholds depend on other groups: a paused group resumes when another group's cells leave and none of its own.
#[test]
fn another_groups_departure_lets_a_paused_group_go_on() {
    for policy in POLICIES {
        let groups = PortProfile::independent([group(true, alpha(-1), 10); CLASSES]);
        let profile = PortProfile { policy, insurance: Cells(10), ..groups };
        let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 200, 100));
        assert_eq!(ledger.admit(1, Cells(20), &mut pools), Admission::Shared, "{policy:?}");
        // Others take all free cells: T is 0.
        assert!(pools.shared[LOSSLESS].take(Cells(180)));
        assert_eq!(ledger.admit(1, Cells(1), &mut pools), Admission::Headroom, "{policy:?}");
        ledger.release(1, Cells(1), &mut pools);
        assert!(!ledger.reevaluate_xoff(&pools) && ledger.xoff().contains(1), "{policy:?}: its share is beyond T");
        // T is 70, and T minus an eta is 60.
        pools.shared[LOSSLESS].give(Cells(140));
        assert!(ledger.reevaluate_xoff(&pools) && ledger.xoff().is_empty(), "{policy:?}");
        assert_eq!(ledger.group(1).shared, Cells(20), "none of its own left");
    }
}

/// One class may exceed its own threshold and use the share that its port's other classes leave; only beyond the port's
/// threshold is the port paused.
#[test]
fn a_port_is_paused_only_when_its_groups_together_exceed_their_thresholds() {
    let groups = PortProfile::independent([group(true, alpha(-4), 10); CLASSES]);
    let profile = PortProfile { policy: HeadroomPolicy::Dynamic, insurance: Cells(10), ..groups };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 1600, 0));
    // omega > T - eta: (1600 - omega)/16 - 10 at omega = 84.
    let mut states = Vec::new();
    while !ledger.is_port_xoff() {
        let before = ledger.xoff();
        let admission = ledger.admit(2, Cells(1), &mut pools);
        if ledger.xoff() != before {
            states.push((ledger.group(2).shared, ledger.xoff(), admission));
        }
    }
    // The port is XOFF if omega + 1 > (1600 - omega)/2, at omega = 533.
    let expected =
        [(Cells(85), ClassSet::only(2), Admission::Shared), (Cells(533), ClassSet::ALL, Admission::Headroom)];
    assert_eq!(states, expected);
    assert_eq!(ledger.insurance_used(), Cells(1));
}

/// The table of docs/buffer.md: 32 ports of 100G, seven lossless classes, links of 2 us.
#[test]
fn headroom_cost_of_each_policy_matches_the_documented_table() {
    let rate: BitRate = "100G".parse().unwrap();
    let input = HeadroomInput {
        rate,
        cable: "400m".parse().unwrap(),
        mtu: 1500,
        poll_gap: "20us".parse().unwrap(),
        posted: HeadroomInput::posted_by_pacing(rate, "20us".parse().unwrap()),
        cell: Bytes(208),
        peer_response: None,
        left: LEFT_BEHIND,
        small_packets: SmallPackets::ALL,
        stops_queues: 0,
        other_rings: 0,
    };
    let eta = headroom(&input);
    let costs = |eta: u64| [eta, 32 * 7 * eta, 32 * eta];
    assert_eq!(costs(56_840), [56_840, 12_732_160, 1_818_880], "the paper");
    assert_eq!(costs(eta.seed.0), [56_932, 12_752_768, 1_821_824]);
    assert_eq!(costs(eta.total.0), [1_175_824, 263_384_576, 37_626_368]);
}

/// Other groups have used up the headroom pool, so a frame is refused while the group's own headroom is empty. Without
/// an offset, XOFF and XON would fall into one evaluation, and the sender would never stop.
#[test]
fn group_refused_by_the_headroom_pool_resumes_when_its_frame_fits() {
    for offset in [0, 2] {
        let member = GroupProfile { xon_offset: Cells(offset), ..group(true, Threshold::Static(Cells(20)), 40) };
        let independent = PortProfile::independent([member; CLASSES]);
        let profile = PortProfile { policy: HeadroomPolicy::SharedPool, ..independent };
        let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 1000, 40));
        for _ in 0..4 {
            assert_eq!(ledger.admit(3, Cells(5), &mut pools), Admission::Shared);
        }
        for group in [1, 1] {
            // The first packet fills the group's share, the second the headroom pool.
            let cells = if ledger.group(group).shared == Cells(0) { 20 } else { 40 };
            assert!(!matches!(ledger.admit(group, Cells(cells), &mut pools), Admission::Refused(_)));
        }
        // Two cells leave, so the threshold alone would allow XON.
        ledger.release(3, Cells(2), &mut pools);
        let refused = Admission::Refused(Refusal::HeadroomPoolEmpty);
        assert_eq!(ledger.admit(3, Cells(5), &mut pools), refused);
        ledger.reevaluate_xoff(&pools);
        assert!(ledger.xoff().contains(3), "XOFF and XON in one judgement, offset {offset}");
        ledger.release(3, Cells(2), &mut pools);
        ledger.reevaluate_xoff(&pools);
        assert!(ledger.xoff().contains(3), "four cells have room, and the frame has five");
        ledger.release(3, Cells(1), &mut pools);
        assert!(ledger.reevaluate_xoff(&pools));
        assert_eq!((ledger.xoff().contains(3), ledger.group(3).refused), (false, Cells(0)));
        assert_eq!(ledger.admit(3, Cells(5), &mut pools), Admission::Shared, "and it has");
    }
}

/// No group is held forever: an empty one resumes, even after a refused frame.
#[test]
fn empty_group_resumes_even_after_a_refused_frame() {
    let member = group(true, Threshold::Static(Cells(0)), 40);
    let independent = PortProfile::independent([member; CLASSES]);
    let profile = PortProfile { policy: HeadroomPolicy::SharedPool, ..independent };
    let (mut ledger, mut pools) = (PortLedger::new(&profile), pools(0, 1000, 40));
    assert_eq!(ledger.admit(1, Cells(40), &mut pools), Admission::Headroom);
    assert_eq!(ledger.admit(3, Cells(5), &mut pools), Admission::Refused(Refusal::HeadroomPoolEmpty));
    assert!(ledger.reevaluate_xoff(&pools));
    assert_eq!(ledger.xoff(), ClassSet::only(1));
}
