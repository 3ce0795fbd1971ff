//! Ports whose driver frees memory in EAL's interrupt thread.

use std::time::{Duration, Instant};

use crate::dpdk::lcore::set_affinity;
use crate::dpdk::tests::{eal, pool};
use crate::dpdk::{EthPort, Mbuf, PortConfig, allowed_cpus};
use crate::io::{Burst, Packet};
use crate::sets::BURST;
use crate::sync::{AtomicBool, Ordering};

/// Often enough for the interrupt thread to take the CPU from a call of the driver.
const ENDS: usize = 200;

#[test]
fn drivers_register_their_interrupts_with_this_program() {
    assert!(super::is_linked());
}

/// The peer of a memif port ends again and again while a thread sends and receives by the port. Both ends are in this
/// process, and the thread shares a CPU with the interrupt thread, which unmaps the port's memory. Without the guard,
/// the process ends with SIGSEGV.
#[test]
fn peer_of_a_memif_port_ends_while_an_lcore_is_in_its_driver() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = format!("socket={},socket-abstract=no", directory.path().join("s").display());
    let data = pool("memif", 4095);
    let plug = |devargs: String| EthPort::plug(eal(), &devargs, &PortConfig::default(), &data).expect("a memif port");
    let mut server = plug(format!("net_memif0,role=server,{socket}"));
    let mut client = plug(format!("net_memif1,role=client,{socket}"));
    server.start().expect("a start");
    let mut queues = server.queues().expect("its queues");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lcore = scope.spawn(|| {
            let last = *allowed_cpus().last().expect("a CPU");
            set_affinity(&[last as u16]).expect("a CPU that may be used");
            let (mut sent, mut received) = (0_usize, 0_usize);
            while !is_over.load(Ordering::Relaxed) {
                let mut burst: Burst<Mbuf> = (0..BURST / 2).map_while(|_| data.alloc_with(&[0; 1500])).collect();
                let offered = burst.len();
                queues.tx(&mut burst);
                sent += offered - burst.len();
                Mbuf::free_all(&mut burst);
                queues.rx(BURST, &mut burst);
                received += burst.len();
                assert!(burst.iter().all(|frame| frame.len() == 60));
                Mbuf::free_all(&mut burst);
            }
            (sent, received)
        });
        for _ in 0..ENDS {
            client.start().expect("a start");
            let mut peer = client.queues().expect("its queues");
            wait_for(|| server.link().is_ok_and(|link| link.up) && client.link().is_ok_and(|link| link.up));
            let mut burst: Burst<Mbuf> = (0..BURST).map_while(|_| data.alloc_with(&[0; 60])).collect();
            peer.tx(&mut burst);
            Mbuf::free_all(&mut burst);
            peer.rx(BURST, &mut burst);
            Mbuf::free_all(&mut burst);
            drop(peer);
            client.stop().expect("a stop");
            wait_for(|| server.link().is_ok_and(|link| !link.up));
        }
        is_over.store(true, Ordering::Relaxed);
        let (sent, received) = lcore.join().expect("an lcore");
        assert!(sent > 0 && received > 0, "{sent} sent, {received} received");
    });
    drop(queues);
    drop((server, client));
    assert_eq!(data.in_use(), 0, "each frame was freed once");
}

/// The driver leaves its socket and its callback behind, with freed memory as argument, for any peer that connects.
#[test]
fn socket_of_a_memif_port_that_has_ended_listens_no_more() {
    let data = pool("memif-ended", 1023);
    let name = format!("holdfast-ended-{}", std::process::id());
    let listens = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("the kernel's list");
        sockets.lines().filter(|line| line.contains(&name)).count()
    };
    for _ in 0..3 {
        let devargs = format!("net_memif30,role=server,socket={name}");
        let port = EthPort::plug(eal(), &devargs, &PortConfig::default(), &data).expect("the name is free again");
        assert_eq!(listens(), 1);
        drop(port);
        assert_eq!(listens(), 0);
    }
}

/// A server ends in the moment in which the interrupt thread learns that its peer has ended.
#[test]
fn port_may_close_while_a_callback_about_it_is_due() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = format!("socket={},socket-abstract=no", directory.path().join("s").display());
    let data = pool("memif-due", 1023);
    let plug = |devargs: String| EthPort::plug(eal(), &devargs, &PortConfig::default(), &data).expect("a memif port");
    for _ in 0..ENDS {
        let mut server = plug(format!("net_memif31,role=server,{socket}"));
        let mut client = plug(format!("net_memif32,role=client,{socket}"));
        server.start().expect("a start");
        client.start().expect("a start");
        wait_for(|| server.link().is_ok_and(|link| link.up) && client.link().is_ok_and(|link| link.up));
        drop(client);
        drop(server);
    }
}

/// A port whose peer does not stay: its thread is in the driver all the time, so that a callback that closed its gate
/// would not end.
#[test]
fn peer_that_reconnects_without_end_does_not_close_the_gate_of_another_port() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = format!("socket={},socket-abstract=no", directory.path().join("s").display());
    let data = pool("memif-two", 4095);
    let plug = |devargs: String| EthPort::plug(eal(), &devargs, &PortConfig::default(), &data).expect("a memif port");
    let [mut servers, mut clients] = [("server", 10), ("client", 20)]
        .map(|(role, first)| [0, 1].map(|id| plug(format!("net_memif{},role={role},id={id},{socket}", first + id))));
    servers.iter_mut().chain(&mut clients).for_each(|port| port.start().expect("a start"));
    let _queues = servers.each_mut().map(|server| server.queues().expect("its queues"));
    let is_up = |port: &EthPort| port.link().is_ok_and(|link| link.up);
    wait_for(|| servers.iter().chain(&clients).all(is_up));
    let calm = servers[1].id();
    let gate = super::ports().ports.iter().find(|guard| guard.port == calm).and_then(|guard| guard.gates[0].upgrade());
    let gate = gate.expect("its queues are out");
    assert!(gate.enter(), "no callback runs");
    for _ in 0..20 {
        clients[0].stop().expect("a stop");
        wait_for(|| !is_up(&servers[0]));
        clients[0].start().expect("a start");
        wait_for(|| is_up(&servers[0]));
        assert!(is_up(&servers[1]));
    }
    gate.leave();
    assert!(gate.enter(), "it was not closed");
    gate.leave();
}

/// Random callbacks of channels that connect and end, by the rules of the driver: a channel changes only its own port.
#[test]
fn callback_closes_its_own_port_and_unconnected_ones_alone() {
    const PORTS: u16 = 4;
    proptest::proptest!(|(steps in proptest::collection::vec((0..PORTS, proptest::bool::ANY), 1..200))| {
        let mut all = super::Ports::new();
        (0..PORTS).for_each(|port| all.add(port, None));
        let gates = [0, 1, 2, 3].map(|port| all.gate(port));
        // The channel of each connected port.
        let mut links = [None; PORTS as usize];
        let mut next = 1;
        for (port, is_change) in steps {
            let channel = links[usize::from(port)].unwrap_or(next);
            let up = |links: &[Option<usize>; 4]| links.map(|link| link.is_some());
            let before = up(&links);
            for gate in all.before(channel, |port| before[usize::from(port)]) {
                gate.close(|| unreachable!("no thread is inside"));
            }
            for (other, gate) in gates.iter().enumerate() {
                let is_open = gate.enter();
                if is_open {
                    gate.leave();
                }
                let is_concerned = other == usize::from(port) || !before[other];
                proptest::prop_assert_eq!(is_open, !is_concerned, "port {} at a callback of port {}", other, port);
            }
            if is_change {
                let link = &mut links[usize::from(port)];
                *link = if link.is_some() { None } else { Some(channel) };
                next += 1;
            }
            let after = up(&links);
            all.after(channel, |port| after[usize::from(port)]).iter().for_each(|gate| gate.open());
            proptest::prop_assert!(gates.iter().all(|gate| gate.enter()));
            gates.iter().for_each(|gate| gate.leave());
        }
    });
}

fn wait_for(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "the link does not follow its peer");
        std::thread::yield_now();
    }
}
