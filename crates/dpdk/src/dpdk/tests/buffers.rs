//! Buffers of frames and their pools.

use super::*;

#[test]
fn a_frame_grows_into_the_headroom_and_no_further() {
    let data = pool("push", 63);
    let mut packet = data.alloc_with(&frame(60, 3)).unwrap();
    assert!(packet.push_front(4));
    assert_eq!(packet.len(), 64);
    packet.bytes_mut()[..4].copy_from_slice(&[9; 4]);
    assert_eq!(packet.bytes()[4..], frame(60, 3));
    assert!(packet.push_front(HEADROOM - 4));
    assert!(!packet.push_front(1), "the headroom is used up");
    assert!(!packet.push_front(usize::MAX));
    assert_eq!(packet.len(), 60 + HEADROOM);
    assert!(packet.pull_front(HEADROOM));
    assert_eq!(packet.bytes(), frame(60, 3));
    assert!(!packet.pull_front(61));
    assert!(!packet.pull_front(usize::MAX));
    assert!(!packet.pull_front(65_536 + 1));
    assert!(packet.pull_front(60));
    assert!(packet.is_empty());
    assert!(!packet.set_frame(&[0; 2049]), "longer than the buffer");
    assert!(!packet.set_frame(&[0; 70_000]));
    assert!(packet.set_frame(&frame(2048, 4)));
    assert_eq!(packet.bytes(), frame(2048, 4));
    packet.free();
    assert_eq!(data.in_use(), 0);
    assert!(data.alloc_with(&[0; 2049]).is_none());
    assert_eq!(data.in_use(), 0);
}

#[test]
fn control_frames_have_buffers_when_data_has_none() {
    let (data, control) = (pool("io_data", 63), pool("io_control", 63));
    let (_link, switch, _host) = link("io", 64, &data);
    let mut io = EthIo::new(vec![None, Some(switch)], data.clone(), control.clone());
    assert_eq!(
        (io.len(), io.is_empty(), io.backlog(0, ClassSet::ALL), io.backlog(1, ClassSet::ALL)),
        (2, false, None, Some(0))
    );
    let mut all: Vec<Mbuf> = std::iter::from_fn(|| data.alloc_with(&frame(100, 5))).collect();
    assert_eq!((all.len(), data.available()), (63, 0));
    assert!(io.copy(&all[0]).is_none());
    let made = io.make(&frame(60, 6)).unwrap();
    assert_eq!(made.bytes(), frame(60, 6));
    let mut burst = Burst::new();
    burst.push(made);
    burst.push(all.pop().unwrap());
    io.free(&mut burst);
    let copy = io.copy(&all[0]).unwrap();
    assert_eq!(copy.bytes(), all[0].bytes());
    copy.free();
    all.into_iter().for_each(Mbuf::free);
    assert_eq!((data.in_use(), control.in_use(), io.refused()), (0, 0, 0));
    assert_eq!(io.into_queues().len(), 1);
}

#[test]
fn chained_and_shared_buffers_are_refused() {
    let data = pool("refuse", 255);
    let (_link, mut switch, mut host) = link("refuse", 64, &data);
    let mut burst: Burst<Mbuf> = (0..6_u8).map(|i| data.alloc_with(&[i; 60]).unwrap()).collect();
    let chained = data.alloc_with(&[9; 60]).unwrap();
    burst[1].chain_for_test(chained);
    burst[5].share_for_test();
    let shared = burst[5].alias_for_test();
    switch.tx(&mut burst);
    assert_eq!(host.rx(BURST, &mut burst), 2);
    assert_eq!(burst.iter().map(|packet| packet.bytes()[0]).collect::<Vec<_>>(), [0, 2, 3, 4]);
    Mbuf::free_all(&mut burst);
    assert_eq!(data.in_use(), 1, "the second reference");
    shared.free();
    assert_eq!(data.in_use(), 0);
}
