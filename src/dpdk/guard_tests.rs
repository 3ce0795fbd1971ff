//! Ports whose driver frees memory in EAL's interrupt thread.

use std::time::{Duration, Instant};

use crate::dpdk::tests::{eal, pool};
use crate::dpdk::{EthPort, Mbuf, PortConfig, allowed_cpus, pin_to};
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
            pin_to(&allowed_cpus()[allowed_cpus().len() - 1..]).expect("a CPU");
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

fn wait_for(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "the link does not follow its peer");
        std::thread::yield_now();
    }
}
