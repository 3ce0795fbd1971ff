//! Mirrors: copies of dropped, marked and sampled frames, and ports that send copies.

use holdfast::dataplane::LiveConfig;
use holdfast::mmu::{QueueLimit, Threshold};
use holdfast::plan::exception::{EXCEPTION_FRAMES, ExceptionLink};
use holdfast::plan::mirror::{CopyCause, CopyFrame, MirrorSession, ReasonSet};
use holdfast::plan::{DropReason, SwitchSpec};
use holdfast::qos::WredProfile;
use holdfast::route::InjectTo;
use holdfast::sets::{ClassSet, MAX_PORTS, PortSet};
use holdfast::units::{BitRate, Bytes, Cells, Probability};

use crate::harness::*;
use crate::layout::Layout;

const DROPS: MirrorSession = MirrorSession {
    dropped: true,
    marked: false,
    sample: 0,
    reasons: ReasonSet::ALL,
    ports: PortSet::ALL,
    classes: ClassSet::ALL,
    bytes: 64,
    rate: 1_000_000,
};

/// A switch with these sessions.
fn mirrored(mut spec: SwitchSpec, sessions: &[MirrorSession]) -> SwitchSpec {
    spec.mirror.sessions = sessions.iter().copied().collect();
    spec.mirror.id = 7;
    spec
}

/// A bed that knows its stations, and the threads of its mirrors.
fn bed(spec: &SwitchSpec) -> (Bed, Vec<ExceptionLink<CopyFrame>>) {
    let mut bed = Bed::learned(spec);
    let links = bed.switch.attach_mirrors();
    (bed, links)
}

/// Takes all copies.
fn copies(links: &mut [ExceptionLink<CopyFrame>]) -> Vec<CopyFrame> {
    let mut all = Vec::new();
    for link in links {
        while let Some(copy) = link.receive() {
            all.push(CopyFrame::clone(&copy));
            link.give_back(copy);
        }
    }
    all
}

/// Counts of the kind `kind` on all lcores: copies, policed, without buffer.
fn counts(bed: &Bed, kind: usize) -> [u64; 3] {
    let lcores = || bed.counters.lcores.iter();
    [
        lcores().map(|lcore| lcore.copies[kind].get()).sum(),
        lcores().map(|lcore| lcore.copies_policed[kind].get()).sum(),
        lcores().map(|lcore| lcore.copies_full[kind].get()).sum(),
    ]
}

/// A switch whose lossy queues hold at most four cells.
fn narrow() -> SwitchSpec {
    let mut spec = spec(4);
    for queue in spec.queues.iter_mut().filter(|queue| queue.limit.is_some()) {
        queue.limit = Some(QueueLimit::from(Threshold::Static(Cells(4))));
    }
    spec
}

/// Injects `frames` frames from station 0 to station 2, which its lcore shares with it.
fn inject(bed: &mut Bed, dscp: u8, frames: usize) {
    for _ in 0..frames {
        bed.io.inject(0, &frame(0, 2, dscp, CELL));
    }
}

#[test]
fn a_frame_that_its_queue_refuses_is_copied_with_its_state() {
    let (mut bed, mut links) = bed(&mirrored(narrow(), &[DROPS]));
    bed.io.set_room(2, Some(0));
    inject(&mut bed, 0, 6);
    bed.run(10_000);
    let copies = copies(&mut links);
    assert_eq!(copies.len() as u64, bed.drops(2, DropReason::QueueThreshold));
    let copy = &copies[0];
    assert_eq!(copy.bytes, frame(0, 2, 0, CELL)[..64]);
    assert_eq!((copy.len as usize, copy.cause), (CELL, CopyCause::Dropped(DropReason::QueueThreshold)));
    assert_eq!((copy.ingress, copy.egress, copy.class, copy.spec_id), (0, Some(2), Some(0), 7));
    let queue = copy.queue.expect("a queue refused it");
    assert_eq!((queue.queue, queue.depth, queue.limit), (0, Some(Cells(5)), Some(Cells(4))));
    let group = copy.group.expect("its group had admitted it");
    assert!(group.group == 0 && group.held >= Cells(4) && group.pool_free > Cells(0), "{group:?}");
}

#[test]
fn a_frame_that_its_group_refuses_is_copied_with_its_state() {
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[DROPS]));
    bed.pause(2, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    // Ten cells of reserve, 20 shared, 5 of headroom.
    inject(&mut bed, LOSSLESS_DSCP, 36);
    bed.run(10_000);
    let copies = copies(&mut links);
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0].cause, CopyCause::Dropped(DropReason::HeadroomFull));
    let group = copies[0].group.expect("a group refused it");
    assert_eq!((group.group, group.held, group.headroom_left), (LOSSLESS as u8, Cells(35), Cells(0)));
    assert_eq!((group.shared, group.limit), (Cells(20), Cells(20)), "the limit bounds the share alone");
    assert_eq!((copies[0].queue, copies[0].class), (None, Some(LOSSLESS as u8)));
}

#[test]
fn a_frame_without_class_is_copied_for_sessions_of_all_classes() {
    let of_class = MirrorSession { classes: ClassSet::only(0), ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[DROPS, of_class]));
    bed.io.inject(1, &[2; 9]);
    bed.run(1_000);
    let copies = copies(&mut links);
    assert_eq!(copies.len(), 1);
    assert_eq!((copies[0].bytes.as_slice(), copies[0].class, copies[0].ingress), (&[2; 9][..], None, 1));
    assert_eq!(copies[0].sessions.iter().collect::<Vec<_>>(), [0]);
}

#[test]
fn sessions_select_by_reason_port_and_class() {
    let mut reasons = ReasonSet::EMPTY;
    reasons.insert(DropReason::SamePort);
    let session = MirrorSession { reasons, ports: PortSet::only(1), classes: ClassSet::only(LOSSLESS), ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[session]));
    for (port, to, dscp) in
        [(1, 1, LOSSLESS_DSCP), (1, 1, 0), (0, 0, LOSSLESS_DSCP), (1, 77, LOSSLESS_DSCP), (1, 1, LOSSLESS_DSCP)]
    {
        bed.io.inject(port, &frame(port, to, dscp, 100));
    }
    bed.run(1_000);
    let causes: Vec<CopyCause> = copies(&mut links).iter().map(|copy| copy.cause).collect();
    assert_eq!(causes, [CopyCause::Dropped(DropReason::SamePort); 2]);
}

#[test]
fn marked_frames_are_copied_with_their_mark_and_depth() {
    let mut spec = spec(4);
    spec.ports[0].buffer.groups[LOSSLESS].threshold = Threshold::Static(Cells(1000));
    spec.queues[LOSSLESS].wred = WredProfile::new(Bytes(10 * 208), Bytes(10 * 208), Probability::ONE);
    let session = MirrorSession { dropped: false, marked: true, ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec, &[session]));
    bed.pause(2, ClassSet::only(LOSSLESS), 0xffff);
    bed.poll();
    inject(&mut bed, LOSSLESS_DSCP, 20);
    bed.run(10_000);
    bed.pause(2, ClassSet::only(LOSSLESS), 0);
    bed.run(100_000);
    let marked = bed.data(2).iter().filter(|frame| ecn_of(frame) == 3).count();
    let mut copies = copies(&mut links);
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.queue.and_then(|queue| queue.depth)));
    assert_eq!(copies.len(), marked);
    let depths: Vec<u32> = copies.iter().map(|copy| copy.queue.unwrap().depth.unwrap().0).collect();
    // Six frames leave in the first poll. In the second 14 are queued, and the device has less than a cell.
    let expected = if Layout::current().is_joint() { vec![20; 20] } else { [vec![20; 6], vec![15; 5]].concat() };
    assert_eq!(depths, expected, "a joint port posts all at once");
    assert!(copies.iter().all(|copy| copy.cause == CopyCause::Marked && ecn_of(&copy.bytes) == 3));
    assert_eq!((copies[0].ingress, copies[0].egress), (0, Some(2)));
}

#[test]
fn samples_are_frames_in_received_form_with_their_egress_port() {
    let mut spec = spec(4);
    spec.ports[2].live.rewrite.dscp = [Some(1); 8];
    let all = MirrorSession { dropped: false, sample: 1, bytes: 2000, ports: PortSet::only(0), ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec, &[all]));
    bed.io.inject(0, &frame(0, 2, 0, 300));
    bed.io.inject(1, &frame(1, 2, 0, 300));
    bed.io.inject(0, &frame(0, 0xffff, 0, 60));
    bed.run(10_000);
    let copies = copies(&mut links);
    assert_eq!(copies.len(), 2, "of port 0 alone");
    assert_eq!((&copies[0].bytes, copies[0].egress), (&frame(0, 2, 0, 300), Some(2)));
    assert_eq!((copies[0].cause, copies[0].vlan, copies[0].class), (CopyCause::Sampled, Some(1), Some(0)));
    assert_eq!((copies[1].egress, copies[1].queue), (None, None), "a flood has several");
    assert!(copies[0].group.is_some() && copies[0].queue.is_some_and(|queue| queue.depth.is_some()));
}

#[test]
fn one_of_so_many_frames_is_sampled_at_random() {
    let sample = MirrorSession { dropped: false, sample: 10, rate: u32::MAX, ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[sample]));
    let mut taken = 0;
    for _ in 0..1000 {
        inject(&mut bed, 0, 10);
        bed.run(10_000);
        taken += copies(&mut links).len();
        bed.data(2);
    }
    // 10,000 frames: 1,000 samples, and a deviation below 32.
    assert!((800..1200).contains(&taken), "{taken}");
}

#[test]
fn copies_beyond_the_rate_or_the_buffers_are_counted() {
    let slow = MirrorSession { rate: 10, ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[slow]));
    for _ in 0..1000 {
        bed.io.inject(1, &[2; 9]);
        bed.run(1_000);
    }
    // Half of ten at once, and none of the rate of one in 100 ms. The rest is for other ports.
    assert_eq!((copies(&mut links).len(), counts(&bed, 0)), (5, [5, 995, 0]));
    bed.io.inject(2, &[2; 9]);
    bed.run(1_000);
    assert_eq!(copies(&mut links).iter().map(|copy| copy.ingress).collect::<Vec<_>>(), [2]);

    let (mut bed, mut links) = self::bed(&mirrored(spec(4), &[MirrorSession { rate: 1_000_000_000, ..DROPS }]));
    for _ in 0..1000 {
        bed.io.inject(1, &[2; 9]);
        bed.run(1_000);
    }
    // Half of the buffers that are common to all ports, and the port's own.
    let most = (EXCEPTION_FRAMES - MAX_PORTS) / 2 + 1;
    let full = (1000 - most) as u64;
    assert_eq!((copies(&mut links).len(), counts(&bed, 0)), (most, [most as u64, 0, full]));
}

#[test]
fn a_flood_of_drops_hides_neither_other_classes_nor_other_events() {
    let slow = MirrorSession { rate: 10, sample: 100, ..DROPS };
    let (mut bed, mut links) = bed(&mirrored(spec(4), &[slow]));
    for _ in 0..1000 {
        bed.io.inject(1, &frame(1, 1, 0, 100));
        bed.run(1_000);
    }
    bed.io.inject(1, &frame(1, 1, LOSSLESS_DSCP, 100));
    bed.run(1_000);
    let copies = copies(&mut links);
    let of = |cause: CopyCause, class: u8| {
        copies.iter().filter(|copy| copy.cause == cause && copy.class == Some(class)).count()
    };
    let drop = CopyCause::Dropped(DropReason::SamePort);
    assert_eq!((of(drop, 0), of(drop, LOSSLESS as u8)), (5, 1));
    assert!(of(CopyCause::Sampled, 0) > 0, "{copies:?}");
}

/// A switch whose port 3 sends copies.
fn with_output() -> SwitchSpec {
    let mut spec = mirrored(narrow(), &[DROPS]);
    spec.mirror.outputs = PortSet::only(3);
    spec
}

/// A poll that copies or sends copies without bound would send XOFF too late.
#[test]
fn a_poll_copies_and_sends_few_bytes() {
    let whole = MirrorSession { bytes: 9018, rate: u32::MAX, ..DROPS };
    let mut spec = with_output();
    spec.mirror.sessions = [whole].into_iter().collect();
    let (mut bed, mut links) = bed(&spec);
    for _ in 0..32 {
        bed.io.inject(1, &frame(1, 1, 0, 1500));
    }
    let owner = 3 % usize::from(Layout::current().lcores);
    for _ in 0..40 {
        assert!(links[owner].inject(&frame(0, 1, 0, 400), InjectTo::Link(3), 0));
    }
    bed.now += 1000;
    bed.switch.poll_once(&mut bed.io, bed.now);
    let taken = copies(&mut links);
    let bytes: usize = taken.iter().map(|copy| copy.bytes.len()).sum();
    assert!((8192..8192 + 1500).contains(&bytes), "{bytes}");
    assert_eq!(counts(&bed, 0)[1] as usize + taken.len(), 32);
    let left = |bed: &mut Bed| bed.data(3).len() as u64 + bed.drops(3, DropReason::QueueThreshold);
    assert!(left(&mut bed) <= 4);
    bed.run(40_000);
    assert!(left(&mut bed) >= 36, "the others follow");
}

/// By a port of the same lcore and by one of the other: a queue refuses some frames, and loses others with its link.
#[test]
fn lost_frames_of_the_switch_itself_are_not_copied() {
    let (mut bed, mut links) = bed(&with_output());
    let mut plane = bed.switch.attach_exceptions(2048);
    for egress in [1, 2] {
        bed.io.set_room(egress, Some(0));
        for _ in 0..20 {
            assert!(plane[0].inject(&frame(0, egress, 0, 300), InjectTo::Link(egress as u8), 0));
        }
    }
    bed.run(20_000);
    let lost = |bed: &Bed, reason| (0..4).map(|port| bed.drops(port, reason)).sum::<u64>();
    assert_eq!(lost(&bed, DropReason::QueueThreshold), 2 * 18);
    for egress in [1, 2] {
        bed.switch.set_link(egress, false);
    }
    bed.run(20_000);
    assert_eq!(lost(&bed, DropReason::EgressDown), 2 * 2);
    assert_eq!(copies(&mut links), [], "no port has received them");
}

#[test]
fn output_port_of_a_mirror_takes_and_forwards_no_frame() {
    let (mut bed, mut links) = bed(&with_output());
    bed.io.inject(3, &frame(3, 1, 0, 100));
    bed.io.inject(0, &frame(0, 0xffff, 0, 100));
    bed.io.inject(0, &frame(0, 3, 0, 100));
    bed.run(10_000);
    // Its station announced itself before.
    assert_eq!((bed.drops(3, DropReason::MirrorOutput), bed.data(3).len()), (2, 0));
    assert_eq!(bed.data(1).len(), 2, "a broadcast, and a frame to an unknown station");
    assert_eq!(copies(&mut links)[0].cause, CopyCause::Dropped(DropReason::MirrorOutput));
    bed.assert_empty();
}

#[test]
fn copies_leave_by_their_output_and_their_loss_is_not_copied() {
    let (mut bed, mut links) = bed(&with_output());
    let owner = 3 % usize::from(Layout::current().lcores);
    let copy = frame(0, 1, LOSSLESS_DSCP, 300);
    bed.io.set_room(3, Some(0));
    for _ in 0..8 {
        assert!(links[owner].inject(&copy, InjectTo::Link(3), 0));
    }
    bed.run(10_000);
    let lost = bed.drops(3, DropReason::QueueThreshold);
    assert_eq!(lost, 6, "a queue holds two frames of two cells");
    assert_eq!(copies(&mut links), []);
    bed.io.set_room(3, None);
    bed.run(10_000);
    assert_eq!(bed.data(3), [copy.clone(), copy], "unchanged, in a lossy class");
    bed.assert_empty();
}

#[test]
fn a_flood_of_copies_costs_lossless_traffic_nothing() {
    let (mut bed, mut links) = bed(&with_output());
    let owner = 3 % usize::from(Layout::current().lcores);
    for round in 0..200 {
        while links[owner].inject(&frame(0, 1, 0, 1500), InjectTo::Link(3), 0) {}
        if round % 4 == 0 {
            inject(&mut bed, LOSSLESS_DSCP, 4);
        }
        bed.run(1_000);
        copies(&mut links);
    }
    bed.run(100_000);
    assert_eq!(bed.data(2).len(), 200, "all lossless frames left");
    let reasons = [DropReason::HeadroomFull, DropReason::HeadroomPoolEmpty];
    assert!(reasons.iter().all(|reason| bed.drops(0, *reason) == 0));
}

#[test]
fn output_sends_copies_again_after_it_was_out_for_another_rate() {
    let mut before = with_output();
    before.ports[3].tx_queues = 1;
    let shut = |spec: &SwitchSpec| {
        let mut spec = spec.clone();
        spec.ports[3].live.is_enabled = false;
        spec
    };
    let mut after = before.clone();
    (after.ports[3].rate, after.ports[3].mtu) = (BitRate(1_000_000_000), 9000);
    let (mut bed, mut links) = bed(&before);
    let owner = 3 % usize::from(Layout::current().lcores);
    let copy = frame(0, 1, LOSSLESS_DSCP, 300);
    let plans = [&before, &shut(&before), &shut(&after), &after];
    for step in plans.windows(2) {
        assert!(links[owner].inject(&copy, InjectTo::Link(3), 0));
        let change = LiveConfig::between(step[0], step[1], HZ).expect("it is out");
        bed.apply(&change.leaving(PortSet::only(3)));
        inject(&mut bed, LOSSLESS_DSCP, 4);
        bed.run(20_000);
        assert_eq!(bed.data(2).len(), 4, "others go on");
    }
    bed.data(3);
    assert!(links[owner].inject(&copy, InjectTo::Link(3), 0));
    bed.run(20_000);
    assert_eq!(bed.data(3), [copy]);
    assert_eq!(copies(&mut links).iter().filter(|copy| copy.ingress == 3).count(), 0);
    bed.assert_empty();
}

#[test]
fn a_reload_replaces_sessions_but_no_outputs() {
    let spec = with_output();
    let (mut bed, mut links) = bed(&spec);
    let none = mirrored(spec.clone(), &[]);
    bed.switch.apply(&LiveConfig::between(&spec, &none, HZ).expect("live"));
    bed.io.inject(1, &[2; 9]);
    bed.run(1_000);
    assert_eq!(copies(&mut links), []);
    let sample = MirrorSession { sample: 1, ..DROPS };
    let mut other = mirrored(spec.clone(), &[sample]);
    other.mirror.id = 8;
    bed.switch.apply(&LiveConfig::between(&none, &other, HZ).expect("live"));
    bed.io.inject(1, &[2; 9]);
    bed.run(1_000);
    let ids: Vec<u32> = copies(&mut links).iter().map(|copy| copy.spec_id).collect();
    assert_eq!(ids, [8, 8], "a sample and a drop");
    other.mirror.outputs = PortSet::EMPTY;
    assert!(LiveConfig::between(&spec, &other, HZ).is_none());
}

#[test]
fn nothing_is_copied_without_a_thread_that_takes_copies() {
    let mut bed = Bed::learned(&mirrored(spec(4), &[MirrorSession { sample: 1, marked: true, ..DROPS }]));
    bed.io.inject(1, &[2; 9]);
    bed.run(1_000);
    assert_eq!([0, 1, 2].map(|kind| counts(&bed, kind)), [[0; 3]; 3]);
}
