//! Settings that change while frames are held, paused and in transit.

use std::cell::Cell;
use std::sync::Arc;

use holdfast::dataplane::{LiveConfig, Work};
use holdfast::forward::StaticEntry;
use holdfast::mmu::Threshold;
use holdfast::pfc::{WatchdogAction, WatchdogSpec};
use holdfast::plan::{Companion, DropReason, LcoreControl, SwitchSpec, mailbox};
use holdfast::qos::{MaxRate, QueueDiscipline, Trust, WredProfile};
use holdfast::sets::ClassSet;
use holdfast::units::{BitRate, Bytes, Cells, Nanos, Probability, Ticks};

use crate::harness::*;

/// Applies to the bed the changes that `change` makes to `spec`, and returns the new spec.
fn apply(bed: &mut Bed, spec: &SwitchSpec, change: impl FnOnce(&mut SwitchSpec)) -> SwitchSpec {
    let mut wanted = spec.clone();
    change(&mut wanted);
    let live_config = LiveConfig::between(spec, &wanted, HZ).expect("only what may change has changed");
    bed.switch.apply(&live_config);
    wanted
}

fn limit(cells: u32) -> impl Fn(&mut SwitchSpec) {
    move |spec| {
        for port in &mut spec.ports {
            port.buffer.groups[LOSSLESS].threshold = Threshold::Static(Cells(cells));
        }
    }
}

#[test]
fn lowered_limit_sends_xoff_at_next_frame_and_raised_limit_allows_xon() {
    let spec = spec(2);
    let mut bed = Bed::blocked(&spec);
    bed.fill(25);
    bed.run(10_000);
    assert_eq!(bed.pfcs(0), [], "10 of reserve and 15 of 20 are held");
    let lower = apply(&mut bed, &spec, limit(12));
    bed.run(10_000);
    assert_eq!(bed.pfcs(0), [], "nothing came");
    bed.fill(1);
    bed.run(10_000);
    let told: Vec<_> = bed.pfcs(0).iter().map(|pfc| (pfc.enabled, pfc.quanta[LOSSLESS].0 > 0)).collect();
    assert_eq!(told, [(ClassSet::only(LOSSLESS), true)], "the frame went to headroom");
    assert_eq!(bed.counters.ports[0].group_headroom_cells[LOSSLESS].get(), 1);
    apply(&mut bed, &lower, limit(40));
    bed.run(10_000);
    assert_eq!(bed.pfcs(0), [], "there is a frame in headroom");
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    let told: Vec<_> = bed.pfcs(0).iter().map(|pfc| (pfc.enabled, pfc.quanta[LOSSLESS].0)).collect();
    assert_eq!(told, [(ClassSet::only(LOSSLESS), 0)]);
    assert_eq!(bed.data(1).len(), 26);
    bed.assert_empty();
}

#[test]
fn maximum_rate_is_set_and_removed_while_frames_wait() {
    let spec = spec(2);
    let limit = |spec: &mut SwitchSpec| {
        spec.ports[1].live.max_rates[0] = Some(MaxRate { rate: BitRate(1_000_000_000), burst: Bytes(100) });
    };
    if !spec.joint_ports().is_empty() {
        let mut wanted = spec.clone();
        limit(&mut wanted);
        assert!(LiveConfig::between(&spec, &wanted, HZ).is_none(), "the port would get an owner");
        return;
    }
    let mut bed = Bed::learned(&spec);
    for _ in 0..1000 {
        bed.io.inject(0, &frame(0, 1, 0, 1226));
    }
    bed.run(50_000);
    let limited = apply(&mut bed, &spec, limit);
    // Frames of a microsecond: 50 and the slack at the rate of the port, then one in ten, then all again.
    let in_order = |bed: &mut Bed, about: usize| {
        let sent = bed.data(1).len();
        assert!(sent.abs_diff(about) <= 12, "{sent}, not about {about}");
    };
    in_order(&mut bed, 50);
    bed.run(200_000);
    in_order(&mut bed, 20);
    apply(&mut bed, &limited, |spec| spec.ports[1].live.max_rates[0] = None);
    bed.run(100_000);
    in_order(&mut bed, 105);
}

#[test]
fn frames_that_are_held_keep_their_class() {
    let spec = spec(2);
    let mut bed = Bed::blocked(&spec);
    bed.fill(5);
    bed.run(10_000);
    apply(&mut bed, &spec, |spec| {
        spec.ports.iter_mut().for_each(|port| (port.live.trust, port.live.port_class) = (Trust::Port, 0));
    });
    bed.fill(5);
    bed.run(10_000);
    assert_eq!(bed.data(1).len(), 5, "class 0 is not paused");
    let counters = &bed.counters.ports[0];
    assert_eq!((counters.rx_frames[LOSSLESS].get(), counters.rx_frames[0].get()), (5, 6));
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(20_000);
    assert_eq!(bed.counters.sum(1, |port| &port.tx_frames[LOSSLESS]), 5);
    bed.assert_empty();
}

#[test]
fn reload_of_dwrr_weights_changes_the_shares() {
    let spec = spec(2);
    let mut bed = Bed::learned(&spec);
    bed.io.set_room(1, Some(0));
    for _ in 0..600 {
        bed.io.inject(0, &frame(0, 1, 0, 1000));
        bed.io.inject(0, &frame(0, 1, 8, 1000));
    }
    bed.run(100_000);
    apply(&mut bed, &spec, |spec| spec.queues[1].discipline = QueueDiscipline::Dwrr { weight: 3 });
    bed.io.set_room(1, None);
    bed.run(450_000);
    let sent = bed.data(1);
    let three = sent.iter().filter(|frame| frame[15] >> 2 == 8).count();
    let ratio = three as f64 / (sent.len() - three) as f64;
    assert!(sent.len() > 500 && (2.7..3.2).contains(&ratio), "{three} of {}", sent.len());
}

#[test]
fn new_wred_profile_applies_to_queued_frames() {
    let spec = spec(2);
    let mut bed = Bed::blocked(&spec);
    bed.fill(20);
    bed.run(10_000);
    apply(&mut bed, &spec, |spec| {
        spec.queues[LOSSLESS].wred = WredProfile::new(Bytes(10 * 208), Bytes(10 * 208), Probability::ONE);
    });
    bed.pause(1, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    let marks: Vec<bool> = bed.data(1).iter().map(|frame| ecn_of(frame) == 3).collect();
    // Six, then five frames of 185.6 ns leave in a poll, by the depth at that poll.
    let marked = if crate::layout::Layout::current().is_joint() { 20 } else { 11 };
    assert_eq!(marks, [vec![true; marked], vec![false; 20 - marked]].concat(), "a joint port posts all at once");
}

fn watched(action: WatchdogAction) -> Option<WatchdogSpec> {
    Some(WatchdogSpec { detection: Nanos(400_000), restoration: Nanos(400_000), action })
}

#[test]
fn storm_survives_action_change_and_ends_when_watchdog_is_removed() {
    let mut spec = spec(2);
    spec.ports[1].live.watchdog = watched(WatchdogAction::Drop);
    let mut bed = Bed::blocked(&spec);
    bed.fill(5);
    bed.run(2_000_000);
    assert_eq!(bed.drops(1, DropReason::Watchdog), 5);
    let forwarding = apply(&mut bed, &spec, |spec| spec.ports[1].live.watchdog = watched(WatchdogAction::Forward));
    bed.fill(5);
    bed.run(100_000);
    assert_eq!((bed.drops(1, DropReason::Watchdog), bed.data(1).len()), (5, 5), "sent though it is paused");
    apply(&mut bed, &forwarding, |spec| spec.ports[1].live.watchdog = None);
    bed.fill(5);
    bed.run(100_000);
    assert_eq!(bed.data(1).len(), 0, "the pause is obeyed");
    let counters = &bed.counters.ports[1];
    let storms = (counters.watchdog_storms[LOSSLESS].get(), counters.watchdog_restores[LOSSLESS].get());
    assert_eq!((storms, counters.watchdog_mask.get()), ((1, 1), 0));
}

#[test]
fn watchdog_that_is_added_or_made_faster_looks_in_time() {
    let slow = || watched(WatchdogAction::Drop).map(|spec| WatchdogSpec { detection: Nanos(1 << 40), ..spec });
    for before in [None, slow()] {
        let mut spec = spec(2);
        spec.ports[1].live.watchdog = before;
        let mut bed = Bed::blocked(&spec);
        bed.fill(5);
        bed.run(2_000_000);
        assert_eq!(bed.drops(1, DropReason::Watchdog), 0, "{before:?}");
        apply(&mut bed, &spec, |spec| spec.ports[1].live.watchdog = watched(WatchdogAction::Drop));
        bed.run(4_000_000);
        assert_eq!(bed.drops(1, DropReason::Watchdog), 5, "{before:?}");
    }
}

#[test]
fn change_to_action_drop_discards_queue_of_a_running_storm() {
    let mut spec = spec(2);
    spec.ports[1].live.watchdog = watched(WatchdogAction::Alert);
    let mut bed = Bed::blocked(&spec);
    bed.fill(5);
    bed.run(2_000_000);
    assert_eq!((bed.data(1).len(), bed.drops(1, DropReason::Watchdog)), (0, 0), "only told of");
    apply(&mut bed, &spec, |spec| spec.ports[1].live.watchdog = watched(WatchdogAction::Drop));
    bed.run(100_000);
    assert_eq!((bed.data(1).len(), bed.drops(1, DropReason::Watchdog)), (0, 5), "none is sent to a peer that is stuck");
    bed.assert_empty();
}

/// Memory, group maps, rates, addresses and tables stay as at the start of the switch.
#[test]
fn restart_only_change_yields_no_live_config() {
    let spec = spec(2);
    let changes: [fn(&mut SwitchSpec); 9] = [
        |spec| spec.ports[0].lcore += 1,
        |spec| spec.ports[0].rate.0 += 1,
        |spec| spec.ports[0].mtu += 1,
        |spec| spec.ports[1].name.push('x'),
        |spec| spec.queues[0].reserve.0 += 1,
        |spec| spec.buffer.total.0 += 1,
        |spec| spec.classes.tc_to_queue[0] = 1,
        |spec| spec.fdb.capacity *= 2,
        |spec| _ = spec.ports.pop(),
    ];
    for (index, change) in changes.iter().enumerate() {
        let mut wanted = spec.clone();
        change(&mut wanted);
        wanted.queues[1].discipline = QueueDiscipline::Strict;
        assert!(LiveConfig::between(&spec, &wanted, HZ).is_none(), "change {index}");
    }
    assert!(LiveConfig::between(&spec, &spec, HZ).is_some());
}

struct Silent;

impl Companion for Silent {
    fn poll(&mut self, _: Ticks) {}
    fn fall_silent(&mut self) {}
}

/// The control thread gives an lcore one change at a time. The lcore applies it at the end of a poll and returns it.
#[test]
fn lcore_applies_live_config_between_two_polls() {
    let mut spec = spec(2);
    spec.ports.iter_mut().for_each(|port| port.lcore = 0);
    spec.lcores = 1;
    let (sender, receiver) = mailbox();
    let sender = std::cell::RefCell::new(sender);
    let bed = Bed::learned(&spec);
    let (control, polls, now) = (Arc::new(LcoreControl::new(1)), Cell::new(0), Cell::new(bed.now));
    let live_config = |cells| {
        let mut wanted = spec.clone();
        limit(cells)(&mut wanted);
        Box::new(LiveConfig::between(&spec, &wanted, HZ).unwrap())
    };
    let clock = || {
        polls.set(polls.get() + 1);
        let mut sender = sender.borrow_mut();
        match polls.get() {
            2 => {
                assert!(sender.send(live_config(12)).is_ok());
                assert!(sender.send(live_config(13)).is_err() && !sender.is_idle(), "before the poll ends");
            }
            3 => {
                assert!(sender.is_idle());
                assert!(sender.send(live_config(14)).is_ok());
            }
            4 => control.stop(),
            _ => {}
        }
        Ticks(now.replace(now.get() + 1000))
    };
    let work = work(bed.switch.into_one(), bed.io, None::<Silent>, &control);
    let work = Work { live_config: Some(receiver), ..work };
    let work = work.run(clock);
    assert!(sender.borrow_mut().is_idle());
    assert_eq!(work.pipeline.view(0, LOSSLESS).threshold, Cells(14));
}

#[test]
fn new_rewrite_table_applies_from_the_next_frame() {
    let spec = spec(2);
    let mut bed = Bed::learned(&spec);
    let dscps = |bed: &mut Bed| {
        (0..3).for_each(|_| bed.io.inject(0, &frame(0, 1, LOSSLESS_DSCP, 100)));
        bed.run(10_000);
        bed.data(1).iter().map(|frame| frame[15] >> 2).collect::<Vec<_>>()
    };
    assert_eq!(dscps(&mut bed), [LOSSLESS_DSCP; 3]);
    let marking = apply(&mut bed, &spec, |spec| spec.ports[1].live.rewrite.dscp[LOSSLESS] = Some(5));
    assert_eq!(dscps(&mut bed), [5; 3]);
    apply(&mut bed, &marking, |spec| spec.ports[1].live.rewrite.dscp[LOSSLESS] = None);
    assert_eq!(dscps(&mut bed), [LOSSLESS_DSCP; 3]);
    bed.assert_empty();
}

/// Station 1 is known behind port 1.
#[test]
fn static_entries_change_a_few_with_each_message_and_frames_follow_them() {
    let spec = spec(3);
    let mut bed = Bed::learned(&spec);
    let mut wanted = spec.clone();
    let stations = std::iter::once(1).chain(1000..1040);
    wanted.fdb.entries = stations.map(|station| StaticEntry { vlan: 1, mac: mac(station), port: 2 }).collect();
    let send = |bed: &mut Bed, to: usize| {
        bed.io.inject(0, &frame(0, to, LOSSLESS_DSCP, 100));
        bed.run(10_000);
        (0..3).map(|port| bed.data(port).len()).collect::<Vec<_>>()
    };
    assert_eq!(send(&mut bed, 1), [0, 1, 0]);
    let change = LiveConfig::between(&spec, &wanted, HZ).expect("static entries may change");
    assert_eq!((change.statics().len(), bed.switch.apply_statics(&change)), (41, 2));
    assert_eq!((send(&mut bed, 1), send(&mut bed, 1039)), (vec![0, 0, 1], vec![0, 0, 1]));
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    assert_eq!(bed.data(0).len(), 1);
    assert_eq!(send(&mut bed, 1), [0, 0, 1], "it does not move to the port of its last frame");
    assert!(LiveConfig::between(&wanted, &wanted, HZ).expect("nothing differs").statics().is_empty());
    bed.switch.apply_statics(&LiveConfig::between(&wanted, &spec, HZ).expect("static entries may change"));
    assert_eq!(send(&mut bed, 1), [0, 0, 0]);
    assert_eq!(bed.drops(0, DropReason::LosslessUnknown), 1, "it is unknown now");
    bed.io.inject(1, &frame(1, 0, 0, 100));
    bed.run(10_000);
    bed.data(0);
    assert_eq!(send(&mut bed, 1), [0, 1, 0], "and learned like any other");
    bed.assert_empty();
}
