//! Lossy queues of a simulated switch that decides as Reverie, worked out by hand.

use super::Egress;
use super::enqueue::QueueContext;
use super::links::Links;
use crate::config;
use crate::dataplane::buffer::Buffer;
use crate::dataplane::frame::desc::FrameDesc;
use crate::dataplane::handoff::mesh::HandoffFrame;
use crate::dataplane::port::Port;
use crate::io::memory::MemPacket;
use crate::mmu::{AbmSpec, QueueAdmission, QueueLimit, Threshold};
use crate::plan::drops::DropReason;
use crate::plan::spec::SwitchSpec;
use crate::sets::ClassSet;
use crate::units::{Alpha, Cells};

const HZ: u64 = 1_000_000_000;
/// Cells of each frame.
const FRAME: Cells = Cells(5);
/// The queue that is limited, and the port to which all frames go.
const QUEUE: usize = 1;
const PORT: usize = 0;

/// A switch of three ports with a pool of 100 cells. Queue 1 of each has a reserve of 10 and alpha 1.
fn spec() -> SwitchSpec {
    let mut spec = config::embedded().switch;
    spec.ports.truncate(3);
    spec.ports.iter_mut().for_each(|port| port.lcore = 0);
    (spec.lcores, spec.abm, spec.reverie) = (1, Some(AbmSpec::USUAL), true);
    (spec.buffer.lossy_shared, spec.buffer.lossless_shared) = (Cells(100), Cells(100));
    let threshold = Threshold::Dynamic(Alpha::from_exponent(0).expect("in range"));
    spec.queues[QUEUE].limit = Some(QueueLimit { threshold, abm: true });
    spec.queues[QUEUE].reserve = Cells(10);
    spec.queues[QUEUE].wred = None;
    spec
}

struct Bed {
    ports: Vec<Port>,
    buffer: Buffer,
    rule: QueueAdmission,
    links: Links,
    egress: Egress<MemPacket>,
}

impl Bed {
    fn new() -> Self {
        let spec = spec();
        Self {
            ports: (0..3).map(|port| Port::new(port, &spec, None, HZ)).collect(),
            buffer: Buffer::fleet(&spec).remove(0),
            rule: QueueAdmission::new(spec.queues.map(|queue| queue.admission())),
            links: Links::new(3, false),
            egress: Egress::new(&spec, 7, HZ),
        }
    }

    fn take(&mut self, cells: u32) {
        assert!(self.buffer.pools.shared[0].take(Cells(cells)));
    }

    /// Charges a frame to the pool, and offers it to the queue. Returns the reason for which the queue refuses it.
    fn offer(&mut self) -> Option<DropReason> {
        self.take(FRAME.0);
        let Self { ports, buffer, rule, links, egress } = self;
        let mut context = QueueContext { ports, buffer, rule, links };
        let desc = FrameDesc::new(1_000, FRAME, 2, QUEUE as u8, QUEUE as u8);
        let packet = MemPacket::new(&[0; 14]);
        let frame = HandoffFrame { packet, desc, egress: PORT as u8, must_accept: false, droppable: false };
        let (_, reason) = egress.enqueue(&mut context, frame).err()?;
        self.buffer.pools.shared[0].give(FRAME);
        Some(reason)
    }

    /// Lets the filter of the queue rise to its depth.
    fn settle(&mut self) {
        let port = &mut self.ports[PORT];
        let depth = port.queues[QUEUE].cells();
        let filters = port.filters.as_mut().expect("the switch decides as Reverie");
        (0..2_000).for_each(|_| filters[QUEUE].depart(depth));
    }

    /// Returns the filtered depth of the queue if it held `depth`.
    fn filtered(&self, depth: u32) -> u32 {
        self.ports[PORT].filters.as_ref().expect("the switch decides as Reverie")[QUEUE].of(Cells(depth)).0
    }
}

/// 20 cells are reserved for the queues of the other ports. Beyond its reserve of 10 the queue has a filtered depth of
/// zero, and a frame of 5 must fit what it leaves unreserved.
#[test]
fn lossy_queue_passes_its_limit_until_its_filter_has_followed() {
    let mut it = Bed::new();
    for frames in 0..10 {
        assert_eq!(it.offer(), None, "{frames} frames in the queue");
    }
    assert_eq!(it.ports[PORT].queues[QUEUE].cells(), Cells(50), "with the frame 50 of 30 cells that DT allows");
    it.settle();
    assert_eq!(it.offer(), Some(DropReason::QueueThreshold), "55 of 25 cells");
}

/// Each queue has a reserve of 10, and all 30 free cells of the pool are reserved.
#[test]
fn reverie_queue_admits_frames_only_within_its_reserve_if_the_pool_is_reserved() {
    let mut it = Bed::new();
    it.take(70);
    assert_eq!(it.offer(), None, "no cell is unreserved, but the reserve holds the frame");
    it.settle();
    assert_eq!(it.offer(), None, "the second half of the reserve");
    assert_eq!(it.offer(), Some(DropReason::QueueThreshold), "a filtered depth of 5, but no reserve is left");
}

#[test]
fn discard_lowers_the_filtered_depth() {
    let mut it = Bed::new();
    for _ in 0..9 {
        assert_eq!(it.offer(), None);
    }
    it.settle();
    assert_eq!((it.filtered(1_000), it.filtered(20)), (45, 20), "never more than the depth");
    let Bed { ports, buffer, egress, .. } = &mut it;
    ports[PORT].schedule_discard(ClassSet::only(QUEUE), DropReason::Watchdog);
    egress.run_discards(PORT, &mut ports[PORT], buffer, 7, |_, _, _| {});
    assert_eq!(it.filtered(1_000), 10, "two frames are left");
    let Bed { ports, buffer, egress, .. } = &mut it;
    egress.run_discards(PORT, &mut ports[PORT], buffer, 7, |_, _, _| {});
    assert_eq!(it.filtered(1_000), 0);
}
