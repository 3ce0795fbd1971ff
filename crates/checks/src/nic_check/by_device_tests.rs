//! Tests with simulated NICs: each priority has a transmit ring, which the device stops.

use std::cell::Cell;
use std::collections::VecDeque;

use super::*;
use crate::io::Packet;
use crate::io::memory::MemPacket;
use crate::nic_check::{frames, reaction};
use crate::sets::CLASSES;
use crate::units::{BitRate, Ticks};
use crate::wire::MacAddr;
use crate::wire::mac_control::{self, MacControl};

const HZ: u64 = 1_000_000_000;
const RATE: BitRate = BitRate(1_000_000_000);
/// Time that passes at each look at the clock.
const STEP: u64 = 500;
/// Frames of a transmit ring, and of a FIFO that generates PFC.
const RING: usize = 64;
const FIFO: usize = 256;

/// The way in which both devices treat PFC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nic {
    Obeys,
    /// A paused priority stops all.
    StopsAll,
    /// It consumes PFC frames and goes on.
    Consumes,
    /// It obeys, and also passes the frames to software.
    Passes,
    /// It obeys, and its full FIFO pauses the peer.
    Generates,
}

struct Nics<'a> {
    now: &'a Cell<u64>,
    nic: Nic,
    rings: [[VecDeque<Vec<u8>>; CLASSES]; 2],
    until: [[u64; CLASSES]; 2],
    fifo: [VecDeque<Vec<u8>>; 2],
}

impl Nics<'_> {
    /// Moves frames of the rings that are not stopped to the other port.
    fn pump(&mut self) {
        for port in 0..2 {
            for class in 0..CLASSES {
                let until = self.until[port];
                let is_held = match self.nic {
                    Nic::Consumes => false,
                    Nic::StopsAll => until.iter().any(|until| *until > self.now.get()),
                    _ => until[class] > self.now.get(),
                };
                let is_full = self.nic == Nic::Generates && self.fifo[1 - port].len() >= FIFO;
                while !is_held
                    && !is_full
                    && let Some(frame) = self.rings[port][class].pop_front()
                {
                    self.arrive(1 - port, frame);
                }
            }
        }
    }

    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let control = frames::is_control(&frame).then(|| mac_control::parse(&frame)).flatten();
        if let Some(MacControl::Pfc(pfc)) = control {
            for priority in pfc.enabled.iter() {
                let time = u64::from(pfc.quanta[priority].0) * 512_000_000_000 / RATE.0;
                self.until[port][priority] = self.now.get() + time;
            }
            if self.nic != Nic::Passes {
                return;
            }
        }
        self.fifo[port].push_back(frame);
    }
}

impl Ports for Nics<'_> {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        self.pump();
        let count = most.min(out.remaining_capacity()).min(self.fifo[port].len());
        out.extend(self.fifo[port].drain(..count).map(|frame| MemPacket::new(&frame)));
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        self.tx_queue(port, 0, packets);
    }

    fn tx_queue(&mut self, port: usize, queue: usize, packets: &mut Burst<MemPacket>) {
        self.pump();
        let room = RING.saturating_sub(self.rings[port][queue].len()).min(packets.len());
        self.rings[port][queue].extend(packets.drain(..room).map(|packet| packet.bytes().to_vec()));
        self.pump();
    }

    fn free(&mut self, packets: &mut Burst<MemPacket>) {
        packets.clear();
    }

    fn copy(&mut self, packet: &MemPacket) -> Option<MemPacket> {
        self.make(packet.bytes())
    }

    fn make(&mut self, frame: &[u8]) -> Option<MemPacket> {
        Some(MemPacket::new(frame))
    }
}

fn faults(nic: Nic) -> Vec<String> {
    let now = Cell::new(1);
    let io = Nics { now: &now, nic, rings: Default::default(), until: Default::default(), fifo: Default::default() };
    let clock = || {
        now.set(now.get() + STEP);
        Ticks(now.get())
    };
    let macs = [MacAddr::local(0, 1), MacAddr::local(0, 2)];
    let mut cable = Cable { io, clock, hz: HZ, rate: RATE, macs, reaction: reaction(RATE, 1500, true) };
    let [first, second] = check_by_device(&mut cable, ClassSet::from_bits(0b1000), 1514);
    assert_eq!(first, second, "both devices are alike");
    first.faults()
}

#[test]
fn device_that_obeys_one_priority_alone_has_no_fault() {
    assert_eq!(faults(Nic::Obeys), Vec::<String>::new());
}

#[test]
fn device_that_cannot_have_pfc_in_hardware_is_found() {
    for (nic, fault) in [
        (Nic::StopsAll, "priority 3: the pause stopped another priority too"),
        (Nic::Consumes, "priority 3: the priority did not stop in half of the pause"),
        (Nic::Passes, "priority 3: the PFC frame reached software: its device may not obey it"),
        (Nic::Generates, "the other device generates PFC by its own FIFO"),
    ] {
        assert_eq!(faults(nic), [fault], "{nic:?}");
    }
}
