//! A flow rule that a driver takes: net_tap in a guest, whose kernel has the traffic control that the driver needs.
//!
//! net_tap knows no DSCP, so only the rule for all frames is tried. QEMU has no NIC with flow rules.

use std::net::UdpSocket;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use holdfast::dpdk::{Eal, EalOptions, EthPort, FlowRule, Frames, Mempool, PortConfig, PortQueues, allowed_cpus};
use holdfast::io::Burst;

use crate::guest::{Guest, Machine, PATIENCE, TESTS};
use crate::nic::Nic;

/// Environment variable of this program in the guest.
const IN_GUEST: &str = "HOLDFAST_IN_GUEST";
const QUEUES: u16 = 4;
/// Flows that the kernel spreads over the queues by their hash.
const FLOWS: u16 = 64;

/// Runs `test`, which calls this function, in a guest.
pub fn flow_rule_chooses_the_receive_queue(test: &str) {
    if std::env::var_os(IN_GUEST).is_some() {
        return in_guest();
    }
    let mut guest =
        Guest::start(&Machine { nic: Nic::E1000e, nics: 0, iommu: false, words: String::new(), more: Vec::new() });
    guest.run("modprobe tun; modprobe sch_multiq; modprobe sch_ingress; modprobe cls_flower; modprobe act_skbedit");
    let shown = guest.run(&format!("{IN_GUEST}=1 {TESTS} --ignored --exact {test} 2>&1"));
    assert!(shown.contains("1 passed"), "{shown}");
}

/// Frames of many flows come by many queues. With the rule they come by its queue.
fn in_guest() {
    let cpu = allowed_cpus()[0];
    let options = EalOptions { main_cpu: cpu, worker_cpus: vec![cpu], ..EalOptions::default() };
    let eal = Eal::init(&options).expect("DPDK");
    let pool = Mempool::create(&eal, "steering", 8191, 2048 + 128, 0, None).expect("a pool");
    let config = PortConfig { rx_queues: QUEUES, tx_queues: QUEUES, ..PortConfig::default() };
    let mut port = EthPort::plug(&eal, "net_tap0,iface=hf0", &config, &pool).expect("a tap");
    port.start().expect("a started port");
    let address = "ip link set hf0 up && ip addr add 10.48.4.1/24 dev hf0";
    assert!(Command::new("sh").args(["-c", address]).status().expect("a shell").success());
    let mut queues = port.queues().expect("queues");

    // The kernel drops frames until it has seen the carrier.
    let end = Instant::now() + PATIENCE;
    while frames_by_queue(&mut queues).iter().sum::<usize>() < usize::from(FLOWS) {
        assert!(Instant::now() < end, "no frames from hf0 within {PATIENCE:?}");
    }
    assert!(used(&frames_by_queue(&mut queues)).len() > 1);
    let dscp = port.steer(FlowRule { frames: Frames::Ipv4Udp, mark: 26 << 2, queue: 1 });
    assert_eq!(dscp, Err("item not supported: Operation not supported".to_owned()));
    port.steer(FlowRule { frames: Frames::All, mark: 0, queue: 3 }).expect("a rule");
    assert_eq!(used(&frames_by_queue(&mut queues)), [3]);
}

/// The queues that brought frames.
fn used(frames: &[usize]) -> Vec<usize> {
    (0..frames.len()).filter(|&queue| frames[queue] > 0).collect()
}

/// Lets the kernel send a frame of each flow, and counts them by receive queue.
fn frames_by_queue(queues: &mut PortQueues) -> Vec<usize> {
    let receive = |queues: &mut PortQueues| -> Vec<usize> {
        let count = |queue| {
            let (mut frames, mut burst) = (0, Burst::new());
            loop {
                queues.rx_queue(queue, 32, &mut burst);
                match burst.drain(..).count() {
                    0 => return frames,
                    more => frames += more,
                }
            }
        };
        (0..usize::from(QUEUES)).map(count).collect()
    };
    // Frames that the kernel sent by itself, before or after a change of rules.
    receive(queues);
    for flow in 0..FLOWS {
        let socket = UdpSocket::bind(("10.48.4.1", 5000 + flow)).expect("a socket");
        socket.set_broadcast(true).expect("a socket for broadcast");
        socket.send_to(b"x", ("10.48.4.255", 7)).expect("a frame");
    }
    sleep(Duration::from_millis(200));
    receive(queues)
}
