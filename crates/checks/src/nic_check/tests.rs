use std::cell::Cell;
use std::collections::VecDeque;

use super::*;
use crate::io::memory::MemPacket;
use crate::io::{Burst, Packet};
use crate::units::{BitRate, Bytes};
use crate::wire::MacAddr;
use crate::wire::mac_control::{self, MacControl};

/// Ticks per second: a tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
const RATE: BitRate = BitRate(1_000_000_000);
/// Time that passes at each look at the clock.
const STEP: u64 = 500;
/// Time of a frame on the cable.
const DELAY: u64 = 20_000;
/// Further time of PFC frames, ten times as long as a port at 1G has.
const LATE: u64 = 1_000_000;

/// A fault of the device at port 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It drops PFC frames that software sends.
    DropsSentPfc,
    /// It consumes MAC control frames, and obeys PAUSE.
    ObeysPause,
    /// It loses one frame of 100.
    Loses,
    /// It passes PFC frames to software after [`LATE`].
    IsLate,
}

/// Two ports in memory.
struct Wires<'a> {
    now: &'a Cell<u64>,
    rate: BitRate,
    fault: Fault,
    /// Frames on their way to each port, with the time of their arrival.
    to: [VecDeque<(u64, Vec<u8>)>; 2],
    /// The device at port 1 holds its frames back until this time.
    held_until: u64,
    count: u64,
}

impl Wires<'_> {
    /// Whether the device of `port` drops or consumes `frame`, which arrives or leaves there.
    fn consumes(&mut self, port: usize, frame: &[u8], arrives: bool) -> bool {
        let control = frames::is_control(frame).then(|| mac_control::parse(frame)).flatten();
        match (self.fault, control) {
            _ if port == 0 => false,
            (Fault::DropsSentPfc, Some(MacControl::Pfc(_))) => !arrives,
            (Fault::ObeysPause, Some(control)) if arrives => {
                if let MacControl::Pause(Quanta(quanta)) = control {
                    self.held_until = self.now.get() + u64::from(quanta) * 512_000_000_000 / self.rate.0;
                }
                true
            }
            (Fault::Loses, None) => {
                self.count += 1;
                self.count.is_multiple_of(100)
            }
            _ => false,
        }
    }
}

impl Ports for Wires<'_> {
    type Pkt = MemPacket;

    fn rx(&mut self, port: usize, most: usize, out: &mut Burst<MemPacket>) {
        let until = out.capacity().min(out.len() + most);
        while out.len() < until
            && let Some((at, _)) = self.to[port].front()
            && *at <= self.now.get()
            && (port == 1 || self.held_until <= self.now.get())
        {
            let (_, frame) = self.to[port].pop_front().expect("it is there");
            if !self.consumes(port, &frame, true) {
                out.push(MemPacket::new(&frame));
            }
        }
    }

    fn tx(&mut self, port: usize, packets: &mut Burst<MemPacket>) {
        for packet in packets.drain(..) {
            let is_late = self.fault == Fault::IsLate && port == 0 && frames::is_control(packet.bytes());
            let at = self.now.get() + DELAY + if is_late { LATE } else { 0 };
            if !self.consumes(port, packet.bytes(), false) {
                self.to[1 - port].push_back((at, packet.bytes().to_vec()));
            }
        }
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

fn directions(fault: Fault) -> [Direction; 2] {
    directions_at(RATE, fault)
}

fn directions_at(rate: BitRate, fault: Fault) -> [Direction; 2] {
    let now = Cell::new(0);
    let io = Wires { now: &now, rate, fault, to: Default::default(), held_until: 0, count: 0 };
    let clock = || {
        now.set(now.get() + STEP);
        Ticks(now.get())
    };
    let macs = [MacAddr::local(0, 1), MacAddr::local(0, 2)];
    check(&mut Cable { io, clock, hz: HZ, rate, macs, reaction: reaction(rate, 1500, true) }, 1514)
}

#[test]
fn good_ports_have_no_fault_and_a_response_of_the_cable() {
    for direction in directions(Fault::None) {
        assert_eq!(direction.faults(), Vec::<String>::new());
        assert_eq!((direction.stops(), direction.observed()), (8, Observed::Obeys));
        for response in direction.responses {
            // The PFC frame and the last data frame take the cable's time each. Two frames take 17 us.
            assert!(response.time > Nanos(DELAY) && response.time < Nanos(3 * DELAY), "{response:?}");
            assert!(response.posted > Bytes(0) && response.bytes > response.posted, "{response:?}");
            assert!(response.bytes < Bytes(5_000), "{response:?}");
            assert!(response.before > 100 && response.others > 100, "{response:?}");
        }
    }
}

#[test]
fn port_that_stops_late_is_found_by_the_law_of_the_switch() {
    let [first, second] = directions(Fault::IsLate);
    assert_eq!((first.faults(), first.observed()), (Vec::new(), Observed::Obeys));
    assert_eq!((second.stops(), second.observed()), (0, Observed::Disobeys));
    let faults = second.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains(" frames came later than ") && faults[0].contains("`peer_response`"), "{faults:?}");
}

#[test]
fn device_that_drops_sent_pfc_is_found_where_it_sends() {
    let [first, second] = directions(Fault::DropsSentPfc);
    assert_eq!(second.faults(), ["PFC frames of priority 0, 1, 2, 3, 4, 5, 6, 7 do not arrive at the other port"]);
    assert_eq!(first.faults().len(), 8);
    assert_eq!(first.faults()[0], "priority 0: the PFC frame did not reach the sender");
}

#[test]
fn device_that_obeys_pause_by_itself_is_found() {
    let [first, second] = directions(Fault::ObeysPause);
    assert_eq!(first.faults()[0], "PFC frames of priority 0, 1, 2, 3, 4, 5, 6, 7 do not arrive at the other port");
    let faults = second.faults();
    assert!(faults.iter().any(|fault| fault == "the device obeys PAUSE by itself, for all classes"), "{faults:?}");
}

/// At 100G the longest pause takes 335 us.
#[test]
fn device_that_obeys_short_pauses_by_itself_is_found() {
    let [_, second] = directions_at(BitRate(100_000_000_000), Fault::ObeysPause);
    let faults = second.faults();
    assert!(faults.iter().any(|fault| fault == "the device obeys PAUSE by itself, for all classes"), "{faults:?}");
}

#[test]
fn lost_data_frames_are_counted() {
    let [first, second] = directions(Fault::Loses);
    let expected = "of 10000 data frames of 60 B 10000 were sent and 9900 arrived, 0 damaged and 0 late or twice";
    assert_eq!(first.faults()[0], expected);
    assert!(
        second.faults()[0].starts_with("of 10000 data frames of 60 B 10000 were sent and 99"),
        "{:?}",
        second.faults()
    );
}
