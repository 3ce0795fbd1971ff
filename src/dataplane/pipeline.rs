//! The life of a packet, in order. Each stage is a function over a burst; this file reads like the picture in
//! docs/architecture.md.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::counters::{Counters, UNCLASSIFIED};
use super::drops::DropReason;
use super::gauges::PollClock;
use super::port::Port;
use super::queue::{Slab, Tag};
use super::spec::{QueueSpec, SwitchSpec};
use crate::forward::fdb::Learned;
use crate::forward::{Fdb, VlanTable};
use crate::mmu::{Judgement, Lease, SharedPool, Tallies};
use crate::packet::{BURST, Burst, MAX_PORTS, Packet, Ports};
use crate::qos::wred::Dice;
use crate::qos::{CLASSES, ClassMap};
use crate::units::{CellSize, Cells, Ticks};
use crate::wire::MacAddr;

/// The one lcore there is, in the tallies.
pub(super) const LCORE: usize = 0;

/// The switch as one lcore runs it: all ports, the whole way of a packet.
#[derive(Debug)]
pub struct Pipeline<P> {
    pub(super) ports: Box<[Port]>,
    pub(super) classes: ClassMap,
    pub(super) queue_specs: [QueueSpec; CLASSES],
    pub(super) vlans: VlanTable,
    pub(super) fdb: Fdb,
    pub(super) cell: CellSize,
    /// This lcore's hands in the lossy and the lossless pool, in this order: indexed by `lossless as usize`.
    pub(super) pools: [Lease; 2],
    pub(super) tallies: Tallies,
    pub(super) slab: Slab<P>,
    pub(super) dice: Dice,
    pub(super) counters: Arc<Counters>,
    /// Ports that have a link.
    pub(super) up: u64,
    /// Ports with groups that hold cells, and with groups at XOFF.
    pub(super) holding: u64,
    pub(super) xoff: u64,
    /// Ports whose gauges are out of date.
    pub(super) touched: u64,
    /// Dropped frames whose buffers go back together.
    pub(super) trash: Burst<P>,
    /// The burst being received, kept so that its memory is.
    pub(super) burst: Burst<P>,
    /// The burst being sent, and what each of its frames is charged to: empty but during a transmission.
    pub(super) posted: Burst<P>,
    pub(super) charges: ArrayVec<Tag, BURST>,
    clock: PollClock,
}

impl<P: Packet> Pipeline<P> {
    /// A switch by `spec` on a clock of `hz` ticks a second; all links are up, all queues empty.
    ///
    /// # Panics
    /// On a spec that the configuration would have refused: too many ports, maps beyond eight classes.
    #[must_use]
    pub fn new(spec: &SwitchSpec, counters: Arc<Counters>, hz: u64, seed: u32) -> Self {
        let ports = spec.ports.len();
        assert!(ports <= MAX_PORTS && ports == counters.ports.len(), "as many counters as ports, and no more than fit");
        assert!(spec.classes.is_valid(), "a class map beyond eight classes");
        let lossless = SharedPool::new(spec.buffer.lossless_shared);
        let lossy = SharedPool::new(spec.buffer.lossy_shared);
        Self {
            ports: spec.ports.iter().map(|port| Port::new(port, spec, hz)).collect(),
            classes: spec.classes.clone(),
            queue_specs: spec.queues,
            vlans: VlanTable::new(spec.ports.iter().map(|port| &port.vlan)),
            fdb: Fdb::new(&spec.fdb, hz),
            cell: CellSize::new(spec.buffer.cell),
            pools: [Lease::new(lossy), Lease::new(lossless)],
            tallies: Tallies::new(1, ports),
            slab: Slab::new(spec.buffer.total.0 as usize),
            dice: Dice::new(seed),
            counters,
            up: all_ports(ports),
            holding: 0,
            xoff: 0,
            touched: all_ports(ports),
            trash: Burst::new(),
            burst: Burst::new(),
            posted: Burst::new(),
            charges: ArrayVec::new(),
            clock: PollClock::new(hz),
        }
    }

    /// One round over all ports at the instant `now`. Returns the frames received and sent.
    pub fn poll<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> usize {
        self.fdb.set_time(now);
        self.collect_releases();
        self.judge_paused();
        let mut moved = 0;
        for port in 0..self.ports.len() {
            self.ports[port].start_pauses(now);
            for _ in 0..self.ports[port].bursts {
                let received = self.receive(io, port, now);
                moved += received;
                // At once: what a peer still sends until it hears this goes into the headroom.
                self.send_pfc(io, port, now);
                if received < BURST {
                    break;
                }
            }
        }
        for port in 0..self.ports.len() {
            for _ in 0..self.ports[port].bursts {
                let sent = self.transmit(io, port, now);
                moved += sent;
                if sent < BURST {
                    break;
                }
            }
        }
        io.free(&mut self.trash);
        self.clock.poll(&self.counters.lcores[LCORE], now, moved);
        if self.clock.is_gauge_time() || moved == 0 {
            self.publish_gauges(now);
            self.fdb.sweep();
        }
        moved
    }

    /// Tells the ledgers what has left since the last poll.
    #[inline]
    pub(super) fn collect_releases(&mut self) {
        for port in bits(self.holding) {
            let state = &mut self.ports[port];
            for group in bits(u64::from(state.holding)) {
                let released = self.tallies.released(port, group);
                let cells = released - state.released[group];
                if cells == 0 {
                    continue;
                }
                state.released[group] = released;
                let pool = &mut self.pools[usize::from(state.lossless >> group & 1)];
                state.ledgers[group].release(Cells(cells as u32), pool);
                if released == state.admitted[group] {
                    state.holding &= !(1 << group);
                }
            }
            self.touched |= 1 << port;
            if state.holding == 0 {
                self.holding &= !(1 << port);
            }
        }
    }

    /// Judges every paused group, whether its own packets left or not: the threshold moves with others.
    #[inline]
    fn judge_paused(&mut self) {
        for port in bits(self.xoff) {
            let state = &mut self.ports[port];
            for group in bits(u64::from(state.xoff)) {
                let free = self.pools[usize::from(state.lossless >> group & 1)].free();
                if state.ledgers[group].judge(free) == Judgement::Resume {
                    state.follow_ledger(group);
                }
            }
            if state.xoff == 0 {
                self.xoff &= !(1 << port);
            }
        }
    }

    /// Sends the PFC frame that is due, past every queue and outside of pacing.
    #[inline]
    pub(super) fn send_pfc<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, now: Ticks) {
        let state = &mut self.ports[port];
        let Some(frame) = state.generator.due(now) else { return };
        if self.up >> port & 1 == 0 {
            return;
        }
        // No buffer or no room in the ring: it stays due, and the next poll tries again.
        let Some(packet) = io.make(&frame.emit(state.mac)) else { return };
        let mut one = Burst::new();
        one.push(packet);
        io.tx(port, &mut one);
        if !one.is_empty() {
            io.free(&mut one);
            return;
        }
        state.generator.sent(&frame, now);
        let counters = &self.counters.ports[port];
        counters.pfc_tx_frames.add(1);
        for priority in bits(u64::from(frame.enabled)) {
            let xoff = frame.quanta[priority].0 > 0;
            let side = if xoff { &counters.pfc_tx_xoff } else { &counters.pfc_tx_xon };
            side[priority].add(1);
        }
        self.touched |= 1 << port;
    }

    /// Counts a drop at `port` and puts the buffer with those to be freed.
    #[inline]
    pub(super) fn drop_frame<I: Ports<Pkt = P>>(
        &mut self,
        io: &mut I,
        packet: P,
        port: usize,
        class: Option<u8>,
        reason: DropReason,
    ) {
        let row = class.map_or(UNCLASSIFIED, usize::from);
        self.counters.ports[port].drops[row][reason as usize].add(1);
        self.discard(io, packet);
    }

    /// Puts a buffer with those that go back together.
    #[inline]
    pub(super) fn discard<I: Ports<Pkt = P>>(&mut self, io: &mut I, packet: P) {
        if self.trash.is_full() {
            io.free(&mut self.trash);
        }
        self.trash.push(packet);
    }

    /// The link of `port` went up or down. Down: what waits for it is dropped, what was learned there is forgotten,
    /// and its peer's pauses end with the peer. Up: the peer hears again what it must not send.
    pub fn set_link<I: Ports<Pkt = P>>(&mut self, io: &mut I, port: usize, up: bool) {
        let bit = 1 << port;
        if (self.up & bit != 0) == up {
            return;
        }
        self.up ^= bit;
        if up {
            self.ports[port].generator.repeat();
        } else {
            self.fdb.forget_port(port);
            self.ports[port].timers.clear(self.clock.last());
            self.drop_queues(io, port, DropReason::EgressDown);
        }
        self.touched |= bit;
    }

    /// Ends the switch's work: every XOFF is followed by XON, and every buffer goes back. The frames still queued are
    /// dropped as `shutdown`. False if a port would not take its XON; calling again tries again.
    pub fn shutdown<I: Ports<Pkt = P>>(&mut self, io: &mut I, now: Ticks) -> bool {
        for port in 0..self.ports.len() {
            self.drop_queues(io, port, DropReason::Shutdown);
            for group in 0..CLASSES {
                self.ports[port].generator.set(group, false);
            }
            self.send_pfc(io, port, now);
        }
        self.collect_releases();
        io.free(&mut self.trash);
        self.publish_gauges(now);
        (0..self.ports.len()).all(|port| self.up >> port & 1 == 0 || self.ports[port].generator.due(now).is_none())
    }

    /// Tells the forwarding database of a station, as a frame from it would.
    pub fn learn(&mut self, vlan: u16, mac: MacAddr, port: usize, now: Ticks) -> Learned {
        self.fdb.set_time(now);
        self.fdb.learn(self.fdb.locate(vlan, mac), port)
    }

    /// All ports, as a mask.
    #[must_use]
    pub fn port_mask(&self) -> u64 {
        all_ports(self.ports.len())
    }

    /// Cells held, by the ledgers: zero in an idle switch.
    #[must_use]
    pub fn held_cells(&self) -> u64 {
        let ledgers = self.ports.iter().flat_map(|port| &port.ledgers);
        ledgers.map(|ledger| u64::from(ledger.used().0) + u64::from(ledger.headroom().0)).sum()
    }

    /// Frames that wait in queues.
    #[must_use]
    pub fn held_frames(&self) -> usize {
        self.slab.held() as usize
    }
}

/// A mask of the first `ports` ports; of one at least, since a shift by all bits is none.
fn all_ports(ports: usize) -> u64 {
    u64::MAX >> (64 - ports.max(1))
}

/// Indices of the bits set in `mask`, lowest first.
#[inline]
pub(super) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(bit)
    })
}
