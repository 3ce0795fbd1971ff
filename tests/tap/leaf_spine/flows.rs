//! Flows that look like RoCEv2: UDP port 4791 in class 3, a source port for each queue pair, a sequence number in each
//! packet. The receiver notes loss, order and gaps of each flow.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::namespace::Namespace;

/// Flows of each family.
pub const EACH: usize = 8;
/// Flows of both families: IPv4 first.
pub const FLOWS: usize = 2 * EACH;
/// UDP port of RoCEv2.
const ROCE: u16 = 4791;
/// UDP source port of the first flow. A socket of IPv6 takes its port of both families.
const FIRST_SOURCE: u16 = 50_000;
/// DSCP 26 with ECT(0): class 3 of the preset.
const CLASS_3: u8 = 26 << 2 | 2;
/// Bytes of a packet: base transport header, number of the flow, sequence number.
const LENGTH: usize = 256;
/// Time between two packets of a flow.
const PACE: Duration = Duration::from_millis(8);
/// Silence after which all packets have arrived.
const SILENCE: Duration = Duration::from_secs(1);

/// The sockets of the flows, at the sender.
pub struct Sender {
    sockets: Vec<UdpSocket>,
    next: Vec<u32>,
}

/// The arrivals of one flow.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// Packets.
    pub packets: u32,
    /// Packets that came after one with a higher number.
    pub reordered: u32,
    /// Highest sequence number, counted from 1.
    pub highest: u32,
    /// Longest time between two arrivals.
    pub gap: Duration,
    last: Option<Instant>,
}

/// A thread that receives all flows.
pub struct Receiver {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Arrivals>>,
}

impl Sender {
    /// Opens the sockets in `from`, towards these addresses.
    pub fn new(from: &Namespace, v4: &str, v6: &str) -> Self {
        let socket = |flow: usize| {
            let source = FIRST_SOURCE + flow as u16;
            if flow < EACH {
                let socket = from.udp(&format!("0.0.0.0:{source}"));
                sockopt::set_ip_tos(&socket, CLASS_3).expect("a DSCP");
                socket.connect((v4, ROCE)).expect("a route");
                socket
            } else {
                let socket = from.udp(&format!("[::]:{source}"));
                sockopt::set_ipv6_tclass(&socket, CLASS_3.into()).expect("a traffic class");
                socket.connect((v6, ROCE)).expect("a route");
                socket
            }
        };
        Self { sockets: (0..FLOWS).map(socket).collect(), next: vec![0; FLOWS] }
    }

    /// Sends one packet of a flow.
    pub fn send(&mut self, flow: usize) {
        self.next[flow] += 1;
        let mut packet = [0; LENGTH];
        // RC SEND only, of queue pair `flow`.
        packet[0] = 4;
        packet[7] = flow as u8;
        packet[9..12].copy_from_slice(&self.next[flow].to_be_bytes()[1..]);
        packet[12..16].copy_from_slice(&self.next[flow].to_be_bytes());
        // The first attempt fails if the other host has answered an earlier packet with an ICMP error, since no socket
        // was open there.
        let socket = &self.sockets[flow];
        socket.send(&packet).or_else(|_| socket.send(&packet)).expect("a packet that leaves");
    }

    /// Sends all flows in turn while `is_over` returns false.
    pub fn send_until(&mut self, mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            for flow in 0..FLOWS {
                self.send(flow);
            }
            sleep(PACE);
        }
    }

    /// Packets sent of each flow.
    pub fn sent(&self) -> &[u32] {
        &self.next
    }
}

impl Receiver {
    /// Receives in `at` from now on.
    pub fn start(at: &Namespace) -> Self {
        let socket = at.udp(&format!("[::]:{ROCE}"));
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || receive(&socket, &stopped));
        Self { stop, thread }
    }

    /// Waits for the last packets. Returns the arrivals of each flow.
    pub fn finish(self) -> Vec<Arrivals> {
        sleep(SILENCE);
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("it does not panic")
    }
}

fn receive(socket: &UdpSocket, stop: &AtomicBool) -> Vec<Arrivals> {
    let mut arrivals = vec![Arrivals::default(); FLOWS];
    let mut packet = [0; LENGTH];
    loop {
        let Ok(length) = socket.recv(&mut packet) else {
            if stop.load(Ordering::Relaxed) {
                return arrivals;
            }
            continue;
        };
        assert_eq!(length, LENGTH);
        let sequence = u32::from_be_bytes(packet[12..16].try_into().expect("four bytes"));
        arrivals[usize::from(packet[7])].note(sequence, Instant::now());
    }
}

impl Arrivals {
    fn note(&mut self, sequence: u32, now: Instant) {
        self.packets += 1;
        self.reordered += u32::from(sequence < self.highest);
        self.highest = self.highest.max(sequence);
        if let Some(last) = self.last.replace(now) {
            self.gap = self.gap.max(now - last);
        }
    }
}
