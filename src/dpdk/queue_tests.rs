//! Ports with several transmit queues, one for each thread.

use crate::dpdk::tests::{eal, pool};
use crate::dpdk::{Error, Mbuf, PortConfig, RingLink};
use crate::io::{Burst, Packet};
use crate::sets::BURST;

#[test]
fn a_call_drains_one_queue_of_several_beyond_the_limit_of_a_driver() {
    let data = pool("turns", 1023);
    let config = PortConfig { tx_queues: 2, ..PortConfig::default() };
    let mut link = RingLink::new(eal(), "turns", 128, &config, &data).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let (_owner, mut others) = link.switch.queues_for(2).unwrap();
    let mut host = link.host.queues().unwrap();
    for frames in [40_u8, 100] {
        let mut left = frames;
        while left > 0 {
            let mut burst: Burst<Mbuf> = (0..left.min(32)).map(|i| data.alloc_with(&[i]).unwrap()).collect();
            left -= burst.len() as u8;
            others[0].tx(&mut burst);
            assert!(burst.is_empty());
        }
        let mut received = Burst::new();
        assert_eq!(host.rx(BURST, &mut received), 0);
        assert_eq!(received.len(), usize::from(frames).min(BURST), "a full burst, or all");
        Mbuf::free_all(&mut received);
        host.rx(BURST, &mut received);
        Mbuf::free_all(&mut received);
    }
    drop((_owner, others, host));
    drop(link);
    assert_eq!(data.in_use(), 0);
}

#[test]
fn two_threads_send_by_one_port() {
    const FRAMES: u32 = 2_000;
    let data = pool("joint", 4095);
    let config = PortConfig { tx_queues: 2, ..PortConfig::default() };
    let mut link = RingLink::new(eal(), "joint", 64, &config, &data).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    assert!(matches!(link.switch.queues_for(3).err(), Some(Error::Invalid { .. })), "it has two transmit queues");
    let (mut owner, mut others) = link.switch.queues_for(2).unwrap();
    let mut guest = others.remove(0);
    let mut host = link.host.queues().unwrap();
    let fill = |thread: u8, next: u32| -> Burst<Mbuf> {
        let frame = |number: u32| [&[thread][..], &number.to_be_bytes()].concat();
        (next..FRAMES.min(next + 32)).map_while(|number| data.alloc_with(&frame(number))).collect()
    };
    // Frees what the port refuses, and offers it again.
    let send = |thread: u8, tx: &mut dyn FnMut(&mut Burst<Mbuf>)| {
        let mut next = 0;
        while next < FRAMES {
            let mut burst = fill(thread, next);
            next += burst.len() as u32;
            tx(&mut burst);
            next -= burst.len() as u32;
            if !burst.is_empty() {
                Mbuf::free_all(&mut burst);
                std::thread::yield_now();
            }
        }
    };
    let mut seen = [0_u32; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| send(0, &mut |burst| owner.tx(burst)));
        scope.spawn(|| send(1, &mut |burst| guest.tx(burst)));
        let mut burst = Burst::new();
        while seen != [FRAMES; 2] {
            host.rx(BURST, &mut burst);
            for packet in &burst {
                let (thread, number) = packet.bytes().split_first().unwrap();
                let next = &mut seen[usize::from(*thread)];
                assert_eq!(u32::from_be_bytes(number.try_into().unwrap()), *next, "each thread's frames in order");
                *next += 1;
            }
            Mbuf::free_all(&mut burst);
            std::thread::yield_now();
        }
    });
    assert!(matches!(link.switch.stop().err(), Some(Error::InUse { .. })), "queues are out");
    drop(owner);
    assert!(matches!(link.switch.stop().err(), Some(Error::InUse { .. })), "the guest's queue is out");
    drop((guest, host));
    link.switch.stop().unwrap();
    drop(link);
    assert_eq!(data.in_use(), 0);
}
