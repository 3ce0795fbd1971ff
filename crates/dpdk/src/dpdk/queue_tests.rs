//! Ports with several transmit queues, one for each thread.

use std::ffi::c_void;

use dpdk_sys::rte_mbuf;

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

/// A callback of a transmit queue (`rte_tx_callback_fn`).
type Callback = unsafe extern "C" fn(u16, u16, *mut *mut rte_mbuf, u16, *mut c_void) -> u16;

unsafe extern "C" {
    fn rte_eth_add_tx_callback(port: u16, queue: u16, callback: Callback, argument: *mut c_void) -> *const c_void;
    fn rte_eth_remove_tx_callback(port: u16, queue: u16, callback: *const c_void) -> i32;
}

unsafe extern "C" fn keeps_all(_: u16, _: u16, _: *mut *mut rte_mbuf, count: u16, _: *mut c_void) -> u16 {
    count
}

unsafe extern "C" fn drops_the_last(_: u16, _: u16, packets: *mut *mut rte_mbuf, count: u16, _: *mut c_void) -> u16 {
    // SAFETY: the queue passes `count` buffers, at least one, and this callback owns those that it drops.
    unsafe { dpdk_sys::rte_pktmbuf_free_bulk(packets.add(usize::from(count) - 1), 1) };
    count - 1
}

#[test]
fn transmit_panics_after_a_callback_that_drops_and_not_after_others() {
    let data = pool("callback", 1023);
    let mut link = RingLink::new(eal(), "callback", 64, &PortConfig::default(), &data).unwrap();
    link.switch.start().unwrap();
    link.host.start().unwrap();
    let mut queues = link.switch.queues().unwrap();
    let mut host = link.host.queues().unwrap();
    let mut send = || {
        let mut burst: Burst<Mbuf> = (0..4).map(|i| data.alloc_with(&[i; 60]).unwrap()).collect();
        queues.tx(&mut burst);
        burst.len()
    };
    let port = link.switch.id();
    // SAFETY: the port is started with queue 0, and the functions are static.
    let set = |callback| unsafe { rte_eth_add_tx_callback(port, 0, callback, std::ptr::null_mut()) };
    let all = set(keeps_all);
    assert!(!all.is_null());
    assert_eq!(send(), 0);
    let last = set(drops_the_last);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut send)).unwrap_err();
    // DPDK keeps callbacks for the next port of this number.
    // SAFETY: as above, and no thread sends.
    let removed = [last, all].map(|callback| unsafe { rte_eth_remove_tx_callback(port, 0, callback) });
    assert_eq!(removed, [0; 2]);
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("a callback of a transmit queue dropped frames"), "{text}");
    let mut received = Burst::new();
    host.rx(BURST, &mut received);
    assert_eq!(received.len(), 4, "those before it");
    Mbuf::free_all(&mut received);
}
