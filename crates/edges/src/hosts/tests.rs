//! Hosts on a simulated wire: an in-memory hub that delivers by address, with rings that fill and injectable faults.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use super::*;
use crate::io::{Burst, Packet};
use crate::plan::{LcoreControl, run_companion};
use crate::sets::ClassSet;
use crate::units::{BitRate, Quanta};
use crate::wire::MacAddr;
use crate::wire::mac_control::PfcFrame;

/// Ticks per second: one tick is a picosecond.
const HZ: u64 = 1_000_000_000_000;
const US: u64 = 1_000_000;
const MS: u64 = 1_000 * US;

pub(super) fn flow(to: usize, class: u8, rate: &str) -> FlowSpec {
    FlowSpec {
        to: FlowTarget::Host(to),
        kind: FlowKind::Roce,
        rate: rate.parse().unwrap(),
        frame_len: 1000,
        dscp: 26,
        pcp: 0,
        vlan: None,
        class,
        priority: class,
        ecn: true,
        pattern: FlowPattern::Steady,
    }
}

pub(super) fn host(index: u16) -> HostSpec {
    HostSpec {
        name: format!("h{index}"),
        port: usize::from(index),
        mac: MacAddr::local(1, index),
        ip: Ipv4Addr::new(10, 0, 0, index as u8 + 1),
        rate: BitRate(10_000_000_000),
        obeys_pfc: true,
        queues: 1,
        keeps_frames: false,
        flows: Vec::new(),
    }
}

/// Returns two hosts; the first sends `flows`.
fn pair(flows: Vec<FlowSpec>) -> Vec<HostSpec> {
    vec![HostSpec { flows, ..host(0) }, host(1)]
}

#[derive(Debug, Clone)]
struct Frame(Vec<u8>);

impl Packet for Frame {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
    fn len(&self) -> usize {
        self.0.len()
    }
    fn push_front(&mut self, _: usize) -> bool {
        false
    }
    fn pull_front(&mut self, _: usize) -> bool {
        false
    }
}

/// Delivers each frame at once to the host with its destination address, and broadcasts to all other hosts.
struct Hub {
    rx: Vec<VecDeque<Frame>>,
    macs: Vec<MacAddr>,
    /// Frames that a transmit ring accepts before it is full; refilled at each poll.
    room: usize,
    room_left: usize,
    /// Size of the buffer pool, and buffers in use.
    buffers: usize,
    live: usize,
    /// Fault that is applied to each frame. The hub delivers the frames that it returns.
    fault: Box<dyn FnMut(Frame) -> Vec<Frame>>,
}

impl Hub {
    fn new(specs: &[HostSpec]) -> Self {
        Self {
            rx: specs.iter().map(|_| VecDeque::new()).collect(),
            macs: specs.iter().map(|spec| spec.mac).collect(),
            room: 1024,
            room_left: 0,
            buffers: usize::MAX,
            live: 0,
            fault: Box::new(|frame| vec![frame]),
        }
    }

    fn inject(&mut self, port: usize, bytes: &[u8]) {
        self.live += 1;
        self.rx[port].push_back(Frame(bytes.to_vec()));
    }

    fn deliver(&mut self, from: usize, frame: Frame) {
        self.live -= 1;
        for frame in (self.fault)(frame) {
            for port in 0..self.macs.len() {
                let is_for = frame.0[0] & 1 == 1 || frame.0[..6] == self.macs[port].0;
                if port != from && is_for {
                    self.inject(port, &frame.0);
                }
            }
        }
    }

    fn pfc(&mut self, port: usize, enabled: ClassSet, quanta: u16) {
        let frame = PfcFrame { enabled, quanta: [Quanta(quanta); 8] }.emit(MacAddr::local(0, 9));
        self.inject(port, &frame);
    }
}

impl Ports for Hub {
    type Pkt = Frame;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<Frame>) {
        let until = out.capacity().min(out.len() + most);
        while out.len() < until {
            let Some(frame) = self.rx[port].pop_front() else { break };
            out.push(frame);
        }
    }
    fn tx(&mut self, port: usize, packets: &mut Burst<Frame>) {
        let taken = packets.len().min(self.room_left);
        self.room_left -= taken;
        for frame in packets.drain(..taken).collect::<Vec<_>>() {
            self.deliver(port, frame);
        }
    }
    fn free(&mut self, packets: &mut Burst<Frame>) {
        self.live -= packets.len();
        packets.clear();
    }
    fn copy(&mut self, packet: &Frame) -> Option<Frame> {
        self.live += 1;
        Some(packet.clone())
    }
    fn make(&mut self, frame: &[u8]) -> Option<Frame> {
        if self.live >= self.buffers {
            return None;
        }
        self.live += 1;
        Some(Frame(frame.to_vec()))
    }
}

/// Polls every microsecond from `from` until `until`.
fn run(hosts: &mut Hosts, hub: &mut Hub, from: u64, until: u64) {
    for now in (from..until).step_by(US as usize) {
        hub.room_left = hub.room;
        hosts.poll(hub, Ticks(now));
    }
}

/// Runs from the announcement to `until`, then polls once to receive only.
fn run_and_drain(specs: &[HostSpec], hub: &mut Hub, until: u64) -> Arc<HostCounters> {
    let mut hosts = Hosts::new(specs, HZ);
    run(&mut hosts, hub, US, until);
    hosts.stop_sending();
    run(&mut hosts, hub, until, until + 2 * US);
    assert_eq!(hub.live, 0, "every buffer went back");
    hosts.counters()
}

/// Returns the number of 1000-byte frames that 10 Gb/s carry in `time`.
fn frames_in(time: u64) -> u64 {
    time * 10 / (8 * 1024 * 1000)
}

#[test]
fn sent_frames_are_received_and_counted() {
    let specs = pair(vec![flow(1, 3, "1G"), FlowSpec { kind: FlowKind::Udp, ..flow(1, 0, "2G") }]);
    let counters = run_and_drain(&specs, &mut Hub::new(&specs), 11 * MS);
    let [first, second] = &counters.flows[..] else { panic!("two flows") };
    // Ten milliseconds of sending; a frame of 1000 bytes is 1024 on the wire.
    for (flow, due) in [(first, 1220), (second, 2441)] {
        let sent = flow.sent_frames.get();
        assert!(sent.abs_diff(due) <= 12, "{sent} of {due}");
        assert_eq!(flow.received_frames.get(), sent);
        assert_eq!(flow.received_bytes.get(), sent * 1000);
        assert_eq!((flow.missing(), flow.late_frames.get(), flow.duplicate_frames.get()), (Some(0), 0, 0));
    }
    let [sender, receiver] = &counters.hosts[..] else { panic!("two hosts") };
    assert_eq!(sender.tx_frames[3].get(), first.sent_frames.get());
    assert_eq!(receiver.rx_frames[0].get(), second.sent_frames.get());
    assert_eq!(receiver.rx_bytes[3].get(), first.sent_bytes.get());
    assert_eq!((sender.announced_frames.get(), sender.arp_rx_frames.get()), (1, 1));
    assert_eq!(receiver.foreign_frames.get(), 0);
}

/// A host that had no CPU until the switch has ended finds more frames in its ring than one poll receives.
#[test]
fn frames_waiting_in_rings_at_shutdown_are_received() {
    let specs = pair(vec![flow(1, 3, "1G")]);
    let hosts = Hosts::new(&specs, HZ);
    let (counters, mut hub) = (hosts.counters(), Hub::new(&specs));
    (0..5000).for_each(|_| hub.inject(1, &[0; 60]));
    let control = LcoreControl::new(1).with_companion_apart();
    control.stop();
    control.dismiss();
    let ended = run_companion(HostsOn { hosts, io: hub }, &control, || Ticks(US));
    assert_eq!((counters.hosts[1].foreign_frames.get(), ended.io.live), (5000, 0));
}

#[test]
fn nothing_but_announcements_leaves_before_the_switch_has_settled() {
    let specs = pair(vec![flow(1, 3, "10G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    run(&mut hosts, &mut hub, US, MS);
    assert_eq!(hosts.counters().flows[0].sent_frames.get(), 0);
    run(&mut hosts, &mut hub, MS, MS + 50 * US);
    assert!(hosts.counters().flows[0].sent_frames.get() > 0);
    hub.room_left = 1024;
    hosts.poll(&mut hub, Ticks(70_000 * MS));
    assert_eq!(hosts.counters().hosts[1].announced_frames.get(), 2, "again after a minute");
}

#[test]
fn flows_start_when_the_gate_opens_and_announcements_before() {
    let specs = pair(vec![flow(1, 3, "10G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    let gate = hosts.close_gate();
    run(&mut hosts, &mut hub, US, 20 * MS);
    let sent = |hosts: &Hosts| hosts.counters().flows[0].sent_frames.get();
    assert_eq!((sent(&hosts), hosts.counters().hosts[0].announced_frames.get()), (0, 1));
    drop(gate);
    run(&mut hosts, &mut hub, 20 * MS, 22 * MS);
    assert!(sent(&hosts) > 0);
}

#[test]
fn host_is_announced_in_each_of_its_vlans() {
    let tagged = |vlan| FlowSpec { vlan: Some(vlan), ..flow(1, 3, "1G") };
    let specs = pair(vec![tagged(10), tagged(20), flow(1, 3, "1G")]);
    let counters = run_and_drain(&specs, &mut Hub::new(&specs), MS);
    assert_eq!(counters.hosts[0].announced_frames.get(), 3);
    assert_eq!(counters.hosts[1].announced_frames.get(), 3, "also in VLANs in which it only receives");
}

#[test]
fn flows_share_the_link_and_never_exceed_it() {
    let specs = pair(vec![flow(1, 3, "10G"), flow(1, 4, "10G"), flow(1, 0, "1G")]);
    let counters = run_and_drain(&specs, &mut Hub::new(&specs), 11 * MS);
    let sent = counters.flows.iter().map(|flow| flow.sent_frames.get()).collect::<Vec<_>>();
    let total: u64 = sent.iter().sum();
    assert!(total.abs_diff(frames_in(10 * MS)) <= 10, "{total} of {}", frames_in(10 * MS));
    assert!(sent[0].abs_diff(sent[1]) <= 1, "{sent:?}");
    assert!(sent[2].abs_diff(1220) <= 12, "{sent:?}");
}

#[test]
fn host_thread_that_stalled_sends_no_burst() {
    let specs = pair(vec![flow(1, 3, "10G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    run(&mut hosts, &mut hub, US, 2 * MS);
    let before = hosts.counters().flows[0].sent_frames.get();
    hub.room_left = 1024;
    hosts.poll(&mut hub, Ticks(50 * MS));
    let burst = hosts.counters().flows[0].sent_frames.get() - before;
    assert!(burst <= 9, "{burst} frames after a stall");
}

#[test]
fn a_pause_stops_its_class_for_its_time() {
    let specs = pair(vec![flow(1, 3, "2G"), flow(1, 4, "2G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    run(&mut hosts, &mut hub, US, 2 * MS);
    let counters = hosts.counters();
    let sent = || [counters.flows[0].sent_frames.get(), counters.flows[1].sent_frames.get()];
    let before = sent();
    // 1953 quanta of 51.2 ns are 99.99 us.
    hub.pfc(0, ClassSet::only(3), 1953);
    run(&mut hosts, &mut hub, 2 * MS, 2 * MS + 100 * US);
    let during = sent();
    assert_eq!(during[0], before[0], "paused to the end");
    assert!((23..=26).contains(&(during[1] - before[1])), "the other class runs on");
    run(&mut hosts, &mut hub, 2 * MS + 100 * US, 2 * MS + 102 * US);
    assert!(sent()[0] > during[0], "no longer than the pause");
    assert_eq!(counters.hosts[0].pfc_rx_frames.get(), 1);
    assert_eq!(counters.hosts[0].paused_ticks[3].get(), 100 * US);
    assert_eq!(counters.hosts[0].paused_ticks[4].get(), 0);
}

#[test]
fn xon_ends_the_pause_of_a_virtual_host() {
    let specs = pair(vec![flow(1, 3, "10G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    run(&mut hosts, &mut hub, US, 2 * MS);
    let counters = hosts.counters();
    hub.pfc(0, ClassSet::ALL, 0xffff);
    run(&mut hosts, &mut hub, 2 * MS, 3 * MS);
    let before = counters.flows[0].sent_frames.get();
    hub.pfc(0, ClassSet::ALL, 0);
    run(&mut hosts, &mut hub, 3 * MS, 3 * MS + 5 * US);
    assert!(counters.flows[0].sent_frames.get() > before);
}

#[test]
fn a_host_that_does_not_obey_sends_on() {
    let mut specs = pair(vec![flow(1, 3, "10G")]);
    specs[0].obeys_pfc = false;
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    run(&mut hosts, &mut hub, US, 2 * MS);
    let counters = hosts.counters();
    let before = counters.flows[0].sent_frames.get();
    hub.pfc(0, ClassSet::only(3), 0xffff);
    run(&mut hosts, &mut hub, 2 * MS, 3 * MS);
    assert!((counters.flows[0].sent_frames.get() - before).abs_diff(frames_in(MS)) <= 10);
    assert!(counters.hosts[0].paused_ticks[3].get() > 900 * US, "although it counts the pause");
}

#[test]
fn full_ring_or_empty_pool_delays_flows_without_loss() {
    let specs = pair(vec![flow(1, 3, "5G"), flow(1, 4, "5G")]);
    for (room, buffers) in [(1, usize::MAX), (3, usize::MAX), (1024, 2)] {
        let mut hub = Hub::new(&specs);
        (hub.room, hub.buffers) = (room, buffers);
        let counters = run_and_drain(&specs, &mut hub, 5 * MS);
        for flow in &counters.flows {
            let sent = flow.sent_frames.get();
            assert!(sent > 1800, "{sent} with room for {room}");
            assert_eq!((flow.missing(), flow.late_frames.get(), flow.duplicate_frames.get()), (Some(0), 0, 0));
        }
    }
}

#[test]
fn on_off_flow_sends_only_in_its_on_phases() {
    let pattern = FlowPattern::OnOff { on: Nanos(100_000), off: Nanos(300_000) };
    let specs = pair(vec![FlowSpec { pattern, ..flow(1, 3, "8G") }]);
    let counters = run_and_drain(&specs, &mut Hub::new(&specs), 11 * MS);
    let sent = counters.flows[0].sent_frames.get();
    // Each of the 25 phases may begin with the slack of eight frames.
    let due = frames_in(10 * MS) * 8 / 10 / 4;
    assert!((due - 25..due + 25 * 9).contains(&sent), "{sent} of {due}");
}

/// Runs one flow over a wire that applies `fault` to its frame number 100.
fn with_fault(mut fault: impl FnMut(Frame) -> Vec<Frame> + 'static) -> Arc<HostCounters> {
    let specs = pair(vec![flow(1, 3, "2G")]);
    let mut hub = Hub::new(&specs);
    let mut number = 0;
    hub.fault = Box::new(move |frame| {
        number += u32::from(frame.0.len() == 1000);
        if number == 100 && frame.0.len() == 1000 { fault(frame) } else { vec![frame] }
    });
    run_and_drain(&specs, &mut hub, 5 * MS)
}

#[test]
fn lost_frame_is_counted_as_missing() {
    let counters = with_fault(|_| Vec::new());
    assert_eq!(counters.missing(), 1);
    assert_eq!(counters.flows[0].late_frames.get(), 0);
}

#[test]
fn duplicate_frame_is_counted_and_none_is_missing() {
    let counters = with_fault(|frame| vec![frame.clone(), frame]);
    assert_eq!((counters.missing(), counters.flows[0].duplicate_frames.get()), (0, 1));
}

#[test]
fn host_counts_a_frame_with_a_changed_bit_as_corrupt() {
    let counters = with_fault(|mut frame| {
        frame.0[500] ^= 4;
        vec![frame]
    });
    assert_eq!((counters.missing(), counters.flows[0].corrupt_frames.get()), (0, 1));
}

#[test]
fn reordered_frame_is_counted_as_late() {
    let specs = pair(vec![flow(1, 3, "2G")]);
    let mut hub = Hub::new(&specs);
    let mut held: Option<Frame> = None;
    let mut number = 0;
    hub.fault = Box::new(move |frame| {
        number += 1;
        if number == 100 {
            held = Some(frame);
            return Vec::new();
        }
        std::iter::once(frame).chain(held.take()).collect()
    });
    let counters = run_and_drain(&specs, &mut hub, 5 * MS);
    assert_eq!((counters.missing(), counters.flows[0].late_frames.get()), (0, 1));
}

#[test]
fn latency_is_the_time_on_the_way() {
    // Frames from host 1 to host 0 wait for the next poll, a microsecond later.
    let specs = vec![host(0), HostSpec { flows: vec![flow(0, 3, "1G")], ..host(1) }];
    let counters = run_and_drain(&specs, &mut Hub::new(&specs), 3 * MS);
    let flow = &counters.flows[0];
    assert_eq!((flow.latency_lowest.get(), flow.latency_highest.get()), (US, US));
    let p99 = flow.latency.quantile(990).unwrap();
    assert!((US..US + US / 8).contains(&p99), "{p99}");
    assert_eq!(counters.nanos(US), 1000);
}

#[test]
fn foreign_frames_are_counted_and_not_obeyed() {
    let specs = pair(vec![flow(1, 3, "1G")]);
    let (mut hosts, mut hub) = (Hosts::new(&specs, HZ), Hub::new(&specs));
    let pause = {
        let mut frame = PfcFrame::default().emit(MacAddr::local(0, 9));
        frame[14..18].copy_from_slice(&[0, 1, 0xff, 0xff]);
        frame
    };
    let elsewhere = {
        let mut frame = PfcFrame { enabled: ClassSet::ALL, quanta: [Quanta(0xffff); 8] }.emit(MacAddr::local(0, 9));
        frame[..6].copy_from_slice(&host(1).mac.0);
        frame
    };
    let strange: [&[u8]; 6] = [&[], &[0xff; 13], &[0x45; 64], &pause[..15], &pause, &elsewhere];
    for bytes in strange {
        hub.inject(1, bytes);
    }
    // A frame for the other host, as if it was flooded.
    let who = |index| Station { mac: host(index).mac, ip: host(index).ip };
    hub.inject(0, Template::new(0, &specs[0].flows[0], who(0), who(1)).bytes());
    hosts.poll(&mut hub, Ticks(US));
    let counters = hosts.counters();
    assert_eq!((counters.hosts[1].foreign_frames.get(), counters.hosts[0].foreign_frames.get()), (6, 1));
    assert_eq!(counters.hosts[1].pfc_rx_frames.get(), 0, "PFC to another address is not obeyed");
    assert_eq!(counters.flows[0].received_frames.get(), 0);
}
